// Command recorder stands for every program in the sandbox of the package difftest. It
// appends to a file how it was executed, and ends with the status that a file asks for.
// It is started some times for each script, so it uses little that has to be initialised.
package main

import (
	"encoding/binary"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

const (
	logFile    = "/rec/log"
	statusFile = "/rec/status"
	missing    = "/rec/missing" // called by bash, with the words of a command that was not found
)

// maxFD is the number of descriptors that are looked at.
const maxFD = 32

func main() {
	path, args := executedPath(), os.Args
	if path == missing {
		args = args[1:]
	}
	if err := appendRecord(path, args); err != nil {
		os.Stderr.WriteString("recorder: " + err.Error() + "\n")
		os.Exit(99)
	}
	os.Exit(status(args))
}

// executedPath returns the path that was passed to execve. The kernel writes it behind
// the arguments and the environment, at the end of the stack, with zeros after it.
func executedPath() string {
	last := os.Args[len(os.Args)-1]
	p := unsafe.Add(unsafe.Pointer(unsafe.StringData(last)), len(last)+1)
	path := ""
	for {
		n := 0
		for *(*byte)(unsafe.Add(p, n)) != 0 {
			n++
		}
		if n == 0 {
			return strings.Clone(path)
		}
		path = unsafe.String((*byte)(p), n)
		p = unsafe.Add(p, n+1)
	}
}

func appendRecord(path string, args []string) error {
	dir, err := syscall.Getwd()
	if err != nil {
		dir = "none: " + err.Error()
	}
	b := appendStrings(nil, []string{path, dir})
	b = appendStrings(b, args)
	b = appendStrings(b, syscall.Environ())
	b = appendFiles(b)
	f, err := syscall.Open(logFile, syscall.O_WRONLY|syscall.O_APPEND, 0)
	if err != nil {
		return err
	}
	// One write: the commands of a pipe append at the same time.
	_, err = syscall.Write(f, append(binary.AppendUvarint(nil, uint64(len(b))), b...))
	return err
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// appendFiles appends number, device, inode, type and flags of every open descriptor.
func appendFiles(b []byte) []byte {
	for fd := range maxFD {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) != nil {
			continue
		}
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
		for _, n := range []uint64{uint64(fd), uint64(st.Dev), st.Ino, uint64(st.Mode), uint64(flags)} {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

// status returns the status to end with: 0, 1, or one that depends on the words.
func status(args []string) int {
	var mode [1]byte
	if f, err := syscall.Open(statusFile, syscall.O_RDONLY, 0); err == nil {
		_, _ = syscall.Read(f, mode[:])
	}
	switch mode[0] {
	case '0':
		return 0
	case '1':
		return 1
	}
	sum := uint32(2166136261)
	for _, a := range args {
		for i := range len(a) {
			sum = (sum ^ uint32(a[i])) * 16777619
		}
		sum *= 16777619
	}
	return int(sum>>7) & 1
}
