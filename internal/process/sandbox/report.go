package sandbox

import "fmt"

// Versions of Landlock that added rights.
const (
	referABI    = 2
	truncateABI = 3
	ioctlABI    = 5
	scopeABI    = 6
	unixABI     = 9
)

// A Fact is one thing that is held on this machine, or not.
type Fact struct {
	What   string
	Held   bool
	Why    string // reason that it is not held
	Recent bool   // true if few kernels can hold it: nothing is wrong with one that does not
}

// Report returns what the profile Workspace holds with a version of Landlock.
func Report(abi int, filters bool) []Fact {
	fact := func(what string, since int) Fact {
		f := Fact{What: what, Held: abi >= since}
		if !f.Held {
			f.Why = fmt.Sprintf("needs Landlock %d", since)
		}
		return f
	}
	list := []Fact{
		fact("files outside of the working directory cannot be written", 1),
		fact("files outside cannot be emptied", truncateABI),
		fact("the data folder and devices cannot be read", 1),
		fact("other processes cannot be traced", 1),
		fact("devices take no orders", ioctlABI),
		fact("other processes get no signals", scopeABI),
		fact("abstract sockets of others cannot be reached", scopeABI),
	}
	sockets := fact("sockets of programs that run commands for others, such as Docker, cannot be reached", unixABI)
	sockets.Recent = true
	list = append(list, sockets)
	calls := Fact{What: "io_uring, bpf, keyrings, other processes' limits and typing into terminals are refused", Held: filters && abi > 0}
	if !calls.Held {
		calls.Why = "needs Landlock, and a processor for which abide knows the system calls"
	}
	return append(list, calls)
}

// Kernel returns the version of Landlock of this machine; 0 if there is none.
func Kernel() int { return kernelABI() }
