package confine

import (
	"errors"
	"syscall"
	"unsafe"
)

// An instruction is one of the small language in which the kernel takes filters of system
// calls.
type instruction struct {
	code   uint16
	yes    uint8 // number of instructions to skip if the condition holds
	no     uint8 // number of instructions to skip otherwise
	number uint32
}

// Codes of instructions.
const (
	load   = 0x20 // load a word of the call
	equal  = 0x15 // compare with a number
	anyBit = 0x45 // compare bits
	keep   = 0x54 // keep bits of the word
	answer = 0x06 // end with a verdict
	jump   = 0x05 // skip instructions
)

// Places of the words of a call.
const (
	numberAt = 0
	archAt   = 4
	argument = 16 // the first argument; each takes 8 bytes, of which the first four are the lower ones
)

// Verdicts.
const (
	allow  = 0x7fff0000
	refuse = 0x00050000 // plus the number of the error
)

const (
	eperm        = uint32(syscall.EPERM)
	enosys       = uint32(syscall.ENOSYS)
	eafnosupport = uint32(syscall.EAFNOSUPPORT)
)

// Requests of terminals that type for somebody else or reach into the console.
const (
	tiocsti   = 0x5412
	tioclinux = 0x541c
)

// fileOrders are requests to file systems that change what can be opened only for reading, or make
// and remove what no call for folders would: the kind of the request and its number, without the
// size of its argument.
var fileOrders = []uint32{
	0x6613,                 // encrypt a folder
	0x6685,                 // make a file read-only for good, and have its content checked (fs-verity)
	0x9401, 0x9417, 0x943f, // Btrfs: make a snapshot, in two ways, and remove a subvolume by its number
	0x940e, 0x9418, 0x940f, // make a subvolume, in two ways, and remove one
	0x941a, 0x9425, // change the flags of one, and where it is said to come from
}

// localSockets are the families of LocalSockets: unix, inet, inet6, netlink. Others, such as
// vsock, do not belong to a network.
var localSockets = []uint32{1, 2, 10, 16}

// An abi is the numbers that an architecture has for what is refused.
type abi struct {
	arch       uint32
	x32        bool // true if numbers with bit 30 are those of another ABI
	forbidden  []uint32
	ioctl      uint32
	prlimit    uint32
	socket     uint32
	socketcall uint32 // zero if there is none
}

// uring are the numbers of io_uring, which are the same everywhere: its requests pass by
// this filter. Programs that find none use ordinary calls.
var uring = []uint32{425, 426, 427}

// clone3 has the same number everywhere. It can start a process in another control group, where
// the limits of the command do not hold, and its arguments cannot be seen from here. Libraries
// that do not find it use clone.
const clone3 = 435

// quotactlFD is quotactl for a file that is open, with the same number everywhere.
const quotactlFD = 443

// filter returns the instructions for all architectures that programs here can have.
func filter(abis []abi, sockets Sockets) []instruction {
	var program []instruction
	for _, a := range abis {
		part := a.filter(sockets)
		program = append(program, instruction{load, 0, 0, archAt}, instruction{equal, 1, 0, a.arch},
			instruction{jump, 0, 0, uint32(len(part))})
		program = append(program, part...)
	}
	return append(program, instruction{answer, 0, 0, refuse | enosys})
}

// filter returns the instructions for the calls of one architecture. They always end with
// a verdict.
func (a abi) filter(sockets Sockets) []instruction {
	p := []instruction{{load, 0, 0, numberAt}}
	if a.x32 {
		p = append(p, instruction{anyBit, 0, 1, 1 << 30}, instruction{answer, 0, 0, refuse | enosys})
	}
	for _, n := range append([]uint32{clone3}, uring...) {
		p = append(p, instruction{equal, 0, 1, n}, instruction{answer, 0, 0, refuse | enosys})
	}
	for _, n := range append([]uint32{quotactlFD}, a.forbidden...) {
		p = append(p, instruction{equal, 0, 1, n}, instruction{answer, 0, 0, refuse | eperm})
	}
	p = append(p, when(a.ioctl, orders())...)
	p = append(p, when(a.prlimit, []instruction{ // reading limits, and setting one's own, is allowed
		{load, 0, 0, argument},
		{equal, 4, 0, 0},
		{load, 0, 0, argument + 16},
		{equal, 0, 3, 0},
		{load, 0, 0, argument + 20},
		{equal, 0, 1, 0},
		{answer, 0, 0, allow},
		{answer, 0, 0, refuse | eperm},
	})...)
	switch sockets {
	case LocalSockets:
		p = append(p, a.sockets(localSockets)...)
	case NoSockets:
		p = append(p, a.sockets(nil)...)
	}
	return append(p, instruction{answer, 0, 0, allow})
}

// orders returns the instructions that refuse requests to devices and file systems.
func orders() []instruction {
	p := []instruction{
		{load, 0, 0, argument + 8},
		{equal, 1, 0, tiocsti},
		{equal, 0, 1, tioclinux},
		{answer, 0, 0, refuse | eperm},
		{keep, 0, 0, 0xffff},
	}
	for _, n := range fileOrders {
		p = append(p, instruction{equal, 0, 1, n}, instruction{answer, 0, 0, refuse | eperm})
	}
	return append(p, instruction{answer, 0, 0, allow})
}

// sockets returns the instructions that refuse sockets of other families.
func (a abi) sockets(families []uint32) []instruction {
	part := []instruction{{load, 0, 0, argument}}
	for _, family := range families {
		part = append(part, instruction{equal, 0, 1, family}, instruction{answer, 0, 0, allow})
	}
	p := when(a.socket, append(part, instruction{answer, 0, 0, refuse | eafnosupport}))
	if a.socketcall != 0 { // its arguments cannot be seen from here
		p = append(p, instruction{equal, 0, 1, a.socketcall}, instruction{answer, 0, 0, refuse | enosys})
	}
	return p
}

// when returns instructions that are for one call only. The part loads other words, so it
// ends with a verdict.
func when(call uint32, part []instruction) []instruction {
	return append([]instruction{{equal, 0, uint8(len(part)), call}}, part...)
}

// A program is a filter as the kernel takes it.
type program struct {
	length uint16
	first  *instruction
}

const seccompSetFilter = 1

// applyFilter makes the kernel refuse system calls of this thread.
func applyFilter(sockets Sockets) error {
	if len(abis) == 0 {
		return nil
	}
	list := filter(abis, sockets)
	p := program{uint16(len(list)), &list[0]}
	if _, _, err := syscall.RawSyscall(seccomp, seccompSetFilter, 0, uintptr(unsafe.Pointer(&p))); err != 0 {
		return errors.New("filter system calls: " + err.Error())
	}
	return nil
}

// Filters reports whether system calls can be filtered on this architecture.
func Filters() bool { return len(abis) > 0 }
