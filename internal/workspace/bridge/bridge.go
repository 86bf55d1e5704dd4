// Package bridge gives access to a workspace on another machine, over gRPC: a [Server]
// serves a workspace, a [Client] uses it.
//
//   - All promises of a workspace hold across the bridge, including its errors.
//   - A lost connection ends no process. The client connects again, repeats requests
//     that are idempotent, and continues to read where the output stopped. Other
//     requests fail with workspace.ErrLost.
//   - Tokens are compared in constant time, before anything else is read.
//   - Memory use does not depend on the size of files and outputs.
//
// Any gRPC client can use a workspace; it needs only workspacepb/workspace.proto.
package bridge
