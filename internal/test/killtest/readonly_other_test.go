//go:build !linux

package killtest

import "errors"

func makeReadOnly(string) error {
	return errors.New("this system cannot mount a folder read-only for one process")
}
