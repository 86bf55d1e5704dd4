// Package confine takes rights from the thread that a command is started from, so that
// the command and all its children have only what is left. A keeper calls it on a thread
// that ends with the start: the keeper itself stays as it is.
//
//   - What was taken never comes back: not by executing a program, not with setuid
//     programs, not in a new namespace.
//   - If one step fails, Apply returns an error and the thread must not start anything.
//
// Package sandbox decides what is taken. This package imports little, because a keeper
// imports it.
package confine
