//go:build !linux

package postgres

import "time"

var began = time.Now()

// sinceBoot returns a time that nobody can set. It may stand still while the machine sleeps.
func sinceBoot() time.Duration { return time.Since(began) }
