//go:build !linux

package process

import (
	"context"
	"net"
	"os"
	"syscall"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/record"
	"golang.org/x/sys/unix"
)

// Without subreapers, pidfds and /proc this package cannot keep its promises, so
// Open fails and the other functions are never called.

type stat = identity.Stat

func bootID() (string, error) { return "", ErrUnsupported }

func tryLock(*os.File) error { return ErrUnsupported }

func unlock(*os.File) error { return nil }

func reserveDisk(*os.File, int64) error { return ErrUnsupported }

func ownSession() *syscall.SysProcAttr { return nil }

func socketPair() (*net.UnixConn, *os.File, error) { return nil, nil, ErrUnsupported }

func sendFiles(*net.UnixConn, []byte, ...*os.File) error { return ErrUnsupported }

func hungUp(*net.UnixConn) bool { return true }

func (p *proc) dial() (*net.UnixConn, error) { return nil, ErrUnsupported }

func claim(string, record.Record) (bool, error) { return false, ErrUnsupported }

func claimant(record.Record) identity.Process { return identity.Process{} }

func awaitEnd(context.Context, identity.Process) error { return ErrUnsupported }

func awaitAll(context.Context, []stat) {}

func marked(string) []stat { return nil }

func belonging(string, string, int, uint64) []stat { return nil }

// MemoryControl says who holds the limit of memory of commands: nobody here.
func MemoryControl() (held string, err error) { return "", ErrUnsupported }

func signalEach([]stat, unix.Signal, func(record.Record) bool) {}

func (m *Manager) failHere(string) {}
