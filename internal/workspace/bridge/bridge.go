// Package bridge joins a workspace with those who use it from elsewhere, over
// gRPC: [Server] serves one, [Client] is one.
//
//   - What a workspace promises holds across the bridge, errors included.
//   - A connection that is lost ends nothing but itself. The client makes a new
//     one, asks again what can be asked twice, and reads on where the output
//     stopped. What cannot be asked twice is workspace.ErrLost.
//   - Tokens are compared in constant time, and before anything else is read.
//   - Memory does not depend on the size of files and outputs.
//
// Any gRPC client can use a workspace; workspacepb/workspace.proto is all it needs.
package bridge
