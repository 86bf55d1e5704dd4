package postgres

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns the time since this machine was started. It goes on while the machine sleeps,
// unlike that of package time, and nobody can set it.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // every Linux has it
	}
	return time.Duration(now.Nano())
}
