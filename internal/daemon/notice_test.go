package daemon

import (
	"testing"
	"time"
)

func TestEachReasonToWaitIsSaidOnce(t *testing.T) {
	var n notices
	now := time.Now()
	for i, c := range []struct {
		line  string
		vague bool
		after time.Duration
		want  bool
	}{
		{"7 does not answer", true, 0, true},
		{"7 does not answer", true, noticeAfter, false},
		{"7 is stopped", false, noticeAfter, true},
		{"7 is stopped", false, noticeAfter, false},
		{"7 does not answer", true, noticeAfter, false}, // it was just let go on
		{"7 is stopped", false, time.Minute, true},      // another wait
		{"the disk is full", false, noticeAfter, true},
	} {
		now = now.Add(c.after)
		if got := n.isNew(c.line, c.vague, now); got != c.want {
			t.Errorf("%d: %q is said: %v", i, c.line, got)
		}
	}
}
