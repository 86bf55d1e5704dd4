// Package sdk plays programs that were written with the real Copilot SDKs, and
// kills whatever they depend on.
//
// It holds tests only. The program under test is the real binary, built once;
// its clients are the official SDK for Go and, where Node is installed, the one
// of npm. Every test plays the part of a user: it sends, answers what it is
// asked, loses its connection, its process or its server with SIGKILL, comes back
// with another client, and expects its answer. When all is done, the log is read
// over the private socket and has to agree: the chain verifies, every call has
// one result, every question one answer, and nothing is left open.
//
// It is a module of its own, so that the SDK never becomes a dependency of abide.
//
// ABIDE_CROWD=200x10 makes the crowd as large as that: so many clients, each
// killed so many times. ABIDE_SEED makes other choices.
package sdk
