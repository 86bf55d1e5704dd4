#!/bin/sh
# Makes the Go code of workspace.proto anew. It needs protoc, which Debian has in
# the package protobuf-compiler; the plugins are built from their modules.
set -eu
cd "$(dirname "$0")"
GOBIN=$(mktemp -d)
trap 'rm -rf "$GOBIN"' EXIT
export GOBIN
go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1
PATH=$GOBIN:$PATH protoc -I . --go_out=. --go_opt=paths=source_relative \
  --connect-go_out=. --connect-go_opt=paths=source_relative,package_suffix=,simple=true workspace.proto
