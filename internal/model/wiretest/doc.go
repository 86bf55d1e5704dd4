// Package wiretest holds the wires against what the providers document: a server for each
// profile that refuses what the real one refuses, and requests and replies as the public
// pages show them.
package wiretest
