package confine

import (
	"errors"
	"syscall"
	"unsafe"
)

// Numbers of system calls that are the same on every architecture, and constants for
// their arguments.
const (
	landlockRestrictSelf = 446

	prCapabilityBoundDrop = 24
	prSetNoNewPrivs       = 38
	prCapabilityAmbient   = 47
	ambientClearAll       = 4

	capabilityVersion = 0x20080522 // version 3: two words
	lastCapability    = 63
)

// keptCapabilities are the capabilities that commands of root keep: those that are about
// files. Which files these are is for the rules of Landlock.
const keptCapabilities = 1<<0 | 1<<1 | 1<<3 | 1<<4 // CHOWN, DAC_OVERRIDE, FOWNER, FSETID

// Rules say what is taken from a thread.
type Rules struct {
	Landlock int     // descriptor of the rules for files, signals and sockets; -1 if there are none
	Sockets  Sockets // sockets that can be made
}

// Sockets are kinds of sockets.
type Sockets int

const (
	AnySockets   Sockets = iota
	LocalSockets         // those that belong to a network: for a thread that has one of its own
	NoSockets            // none but pairs of connected ones
)

// Apply takes rights from the calling thread. The caller has locked the thread, and ends
// it after it has started the command.
func Apply(r Rules) error {
	if err := prctl(prSetNoNewPrivs, 1); err != 0 {
		return errors.New("set no_new_privs: " + err.Error())
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if r.Landlock >= 0 {
		if _, _, err := syscall.RawSyscall(landlockRestrictSelf, uintptr(r.Landlock), 0, 0); err != 0 {
			return errors.New("apply the rules of Landlock: " + err.Error())
		}
	}
	return applyFilter(r.Sockets)
}

func prctl(option, argument uintptr) syscall.Errno {
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, option, argument, 0, 0, 0, 0)
	return err
}

type capabilityHeader struct {
	version uint32
	pid     int32
}

// capabilityWords are 32 capabilities: the effective, permitted and inheritable ones.
type capabilityWords struct{ effective, permitted, inheritable uint32 }

// dropCapabilities leaves the thread the capabilities that are about files, if it has
// them. An ordinary user has none.
func dropCapabilities() error {
	header := capabilityHeader{version: capabilityVersion}
	var has [2]capabilityWords
	if err := capabilities(syscall.SYS_CAPGET, &header, &has); err != 0 {
		return errors.New("read the capabilities: " + err.Error())
	}
	kept := [2]uint32{keptCapabilities}
	if has[0].permitted&^kept[0]|has[1].permitted|has[0].inheritable|has[1].inheritable == 0 {
		return nil
	}
	for c := uintptr(0); c <= lastCapability; c++ {
		if c >= 32 || kept[0]&(1<<c) == 0 {
			prctl(prCapabilityBoundDrop, c) // fails for numbers that the kernel does not know
		}
	}
	syscall.RawSyscall6(syscall.SYS_PRCTL, prCapabilityAmbient, ambientClearAll, 0, 0, 0, 0)
	for i := range has {
		has[i] = capabilityWords{has[i].effective & kept[i], has[i].permitted & kept[i], 0}
	}
	if err := capabilities(syscall.SYS_CAPSET, &header, &has); err != 0 {
		return errors.New("drop capabilities: " + err.Error())
	}
	return nil
}

func capabilities(call uintptr, header *capabilityHeader, words *[2]capabilityWords) syscall.Errno {
	_, _, err := syscall.RawSyscall(call, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(words)), 0)
	return err
}
