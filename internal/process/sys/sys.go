// Package sys has the few system calls that package syscall lacks.
//
// A keeper uses them before the rest of the program is initialised. It cannot use
// golang.org/x/sys/unix, which imports much of the standard library.
package sys

// StageName is the name under which this program arranges the namespaces of a command: its
// argument zero. It is here for those parts of the program that run before all others.
const StageName = "abide-stage"
