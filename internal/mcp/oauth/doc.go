// Package oauth makes logins to MCP servers as the authorization part of MCP asks: it finds
// where a login is made, registers this program there, makes the address that a person
// opens, and changes the answer into a token.
//
//   - A login can be continued by another process: whatever it needs is in a [Login], which
//     its owner stores.
//   - Nothing is sent to a place that the server has no right to name: addresses are https,
//     or those of this machine if the server is on this machine too, and redirections to
//     other places are refused.
//   - An answer counts only for the login that it belongs to (state), from the server that
//     was asked (iss), and only with the verifier (PKCE).
//   - What servers say is bounded in size and time.
package oauth
