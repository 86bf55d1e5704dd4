// Package workspacepb is the workspace on the wire: the messages of
// workspace.proto and the service over gRPC.
//
// Everything but this file is generated. After a change of workspace.proto, run
//
//	go generate ./internal/workspace/workspacepb
//
// which needs protoc. A field is never given another meaning, and a number never
// used again: workspaces and those who use them are not upgraded together.
package workspacepb

//go:generate ./generate.sh
