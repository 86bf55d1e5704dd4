// Package sys has the few system calls that package syscall lacks.
//
// A keeper uses them before the rest of the program is initialised. It cannot use
// golang.org/x/sys/unix, which imports much of the standard library.
package sys
