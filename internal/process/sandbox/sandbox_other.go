//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"os/exec"
)

// Without Landlock nothing is confined, and the other functions are never called.

type rules struct{ file *os.File }

func kernelABI() int { return 0 }

// Filters reports whether system calls can be filtered on this machine.
func Filters() bool { return false }

func (s *Sandbox) rulesFor(plan) (*os.File, error) { return nil, errNoLandlock }

// TrySealed returns why commands cannot be sealed.
func TrySealed() error { return errNotLinux }

var errNotLinux = errors.New("sealed commands need Linux")

func (s *Sandbox) seal(Request) (Confinement, error) {
	return Confinement{}, &Error{errNotLinux}
}

// StartReading starts a program that only has to read. It is not confined here.
func (s *Sandbox) StartReading(cmd *exec.Cmd) error { return cmd.Start() }

// StartOwn starts a program of the user's own. It is not confined here.
func (s *Sandbox) StartOwn(cmd *exec.Cmd) error { return cmd.Start() }

// A mountTable finds nothing here.
type mountTable struct{}

func (*mountTable) otherPaths([]string) []string { return nil }

func (*mountTable) through([]string) []string { return nil }

func (*mountTable) close() {}
