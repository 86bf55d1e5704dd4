//go:build !linux

package sys

// SetDumpable does nothing: only Linux has it.
func SetDumpable(bool) error { return nil }
