package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Retention sets how long things are kept. The zero value keeps everything.
type Retention struct {
	Sessions Age `toml:"sessions" doc:"Time after its last change after which abide serve deletes a session, like 90d; sessions are kept forever if empty. A session that is unfinished, waits for an answer, runs a command, is in use, is damaged or has a name is never deleted. A project's file cannot set it."`
}

// An Age is a setting that is a time after the last change, like 36h or 90d; empty if it
// is not set.
type Age string

// Value returns the length of time, which Load has checked; zero if it is not set.
func (a Age) Value() time.Duration {
	d, _ := ParseAge(string(a))
	return d
}

// maxAge is the longest age, which is longer than that of anything that is stored.
const maxAge = 100 * 365 * 24 * time.Hour

// ParseAge parses an age: a duration like 36h, or a number of days or weeks like 90d or
// 2w.
func ParseAge(text string) (time.Duration, error) {
	day := 24 * time.Hour
	for unit, length := range map[string]time.Duration{"d": day, "w": 7 * day} {
		number, found := strings.CutSuffix(text, unit)
		n, err := strconv.ParseUint(number, 10, 16)
		if found && err == nil {
			return time.Duration(min(n, uint64(maxAge/length))) * length, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not an age like 36h, 90d or 12w", text)
	}
	return min(d, maxAge), nil
}

// age checks a setting that is an age, which must not be zero.
func age(list []mistake, key path, value Age) []mistake {
	if d, err := ParseAge(string(value)); value == "" || err == nil && d > 0 {
		return list
	}
	return append(list, wrong(key, "%q is not an age like 36h, 90d or 12w", value))
}
