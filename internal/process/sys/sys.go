// Package sys is the few system calls that package syscall lacks.
//
// A keeper uses them before anything else of the program is initialised, and
// golang.org/x/sys/unix needs a good part of the standard library.
package sys
