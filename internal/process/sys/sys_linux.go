package sys

import (
	"syscall"
	"time"
	"unsafe"
)

// Numbers of system calls that are the same on every architecture, and constants for
// their arguments.
const (
	pidfdSendSignal = 424
	pidfdOpen       = 434
	closeRange      = 436

	PidfdNonblock = syscall.O_NONBLOCK

	PollIn  = 1
	PollOut = 4

	closeRangeCloexec = 4

	prSetDumpable       = 4
	prSetName           = 15
	prSetChildSubreaper = 36

	ResizePipe = 1031 // fcntl: F_SETPIPE_SZ

	openPath   = 0x200000
	maxSeconds = 1 << 30
)

// A PollFD is a descriptor to wait for, with the wanted and the actual events.
type PollFD struct {
	FD      int32
	Events  int16
	Revents int16
}

// Poll waits until a descriptor is ready or the timeout is over; a negative timeout
// never ends. It returns the number of ready descriptors.
func Poll(fds []PollFD, timeout time.Duration) (int, error) {
	var limit *syscall.Timespec
	if timeout >= 0 {
		t := syscall.NsecToTimespec(int64(min(timeout, maxSeconds*time.Second)))
		limit = &t
	}
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)),
		uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	return int(n), result(errno)
}

func result(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// PidfdOpen returns a pidfd of the process that has the number pid now.
func PidfdOpen(pid, flags int) (int, error) {
	fd, _, errno := syscall.Syscall(pidfdOpen, uintptr(pid), uintptr(flags), 0)
	return int(fd), result(errno)
}

// PidfdSendSignal sends a signal to the process of a pidfd.
func PidfdSendSignal(fd int, sig syscall.Signal) error {
	_, _, errno := syscall.Syscall6(pidfdSendSignal, uintptr(fd), uintptr(sig), 0, 0, 0, 0)
	return result(errno)
}

// SetDumpable says whether other processes of the same user may look into this one: read
// its memory and the environment that it was started with, attach to it, or open its
// descriptors. While they may not, the files of this process in /proc belong to root, so
// that without root this process itself can read but not write them. A program that is
// executed can be looked into again.
func SetDumpable(on bool) error {
	var value uintptr
	if on {
		value = 1
	}
	_, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prSetDumpable, value, 0)
	return result(errno)
}

// SetName sets the name of this thread.
func SetName(name string) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prSetName, uintptr(unsafe.Pointer(p)), 0)
	return result(errno)
}

// AdoptOrphans makes this process the parent of its descendants whose own parent
// ends.
func AdoptOrphans() error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0, 0, 0, 0)
	return result(errno)
}

// CloseOnExecFrom marks fd and all higher descriptors to be closed in programs that
// are executed.
func CloseOnExecFrom(fd int) {
	if _, _, errno := syscall.Syscall(closeRange, uintptr(fd), 1<<31, closeRangeCloexec); errno == 0 {
		return
	}
	for last := fd + 1000; fd < last; fd++ { // Linux before 5.11 has no such call
		syscall.CloseOnExec(fd)
	}
}

// Link gives a file in a folder a second name. It fails if that name exists.
func Link(dir int, from, to string) error {
	f, err := syscall.BytePtrFromString(from)
	if err != nil {
		return err
	}
	t, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_LINKAT, uintptr(dir), uintptr(unsafe.Pointer(f)), uintptr(dir), uintptr(unsafe.Pointer(t)), 0, 0)
	return result(errno)
}

// IsFolder returns nil if a path is a folder that can be used, or else the error.
func IsFolder(path string) error {
	fd, err := syscall.Open(path, openPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err == nil {
		syscall.Close(fd)
	}
	return err
}

// Ioctl sends a request to a device.
func Ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return result(errno)
}

// Fcntl runs a command on a descriptor.
func Fcntl(fd, command, argument int) error {
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(command), uintptr(argument))
	return result(errno)
}

// Duplicate returns another descriptor of an open file, which executed programs do not get.
func Duplicate(fd int) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	return int(n), result(errno)
}

// ReadFile returns the content of a small file in /proc. It does not use package os,
// which would set up its poller.
func ReadFile(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	b := make([]byte, 1024)
	for n := 0; ; {
		m, err := syscall.Read(fd, b[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m <= 0 {
			return b[:n], err
		}
		if n += m; n == len(b) {
			b = append(b, make([]byte, len(b))...)
		}
	}
}

// WriteFile writes to a file in /proc.
func WriteFile(path string, text []byte) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, text)
	return err
}

// Reads reports whether a descriptor can be used to read its file. One that was opened with
// O_PATH, or with both bits of the access mode, cannot: no right to read was needed for it.
func Reads(fd int) bool {
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
	mode := flags & syscall.O_ACCMODE
	return errno == 0 && flags&openPath == 0 && (mode == syscall.O_RDONLY || mode == syscall.O_RDWR)
}
