// Package oracle asks the official SDKs whether our wires are right.
//
// The stories that test each wire are played once more: what we send must be
// what the SDK's own types can say, and what comes back must mean the same to
// the SDK as to us. It is a module of its own, so that the SDKs never become a
// dependency of abide.
package oracle
