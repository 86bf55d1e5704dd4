package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// noticeAfter is the time that clients wait for an engine before a notice is printed.
const noticeAfter = time.Second

// notices holds the last notice about a wait.
type notices struct {
	mu   sync.Mutex
	last string
	at   time.Time
}

// isNew reports whether a line is to be printed. It is called repeatedly while a wait
// lasts: each reason is printed once, and a vague one only if there is no better one.
func (n *notices) isNew(line string, vague bool, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	waits := n.last != "" && now.Sub(n.at) < 5*noticeAfter
	n.at = now
	if waits && (vague || line == n.last) {
		return false
	}
	n.last = line
	return true
}

// reportWait prints what the clients of this process wait for.
func (n *Node) reportWait(why string, vague bool) {
	if n.config.Notice != nil && n.ctx.Err() == nil && n.notices.isNew(why, vague, time.Now()) {
		n.config.Notice(why)
	}
}

// warn tells people what is wrong with the data folder, and goes on. A command that is there
// for a moment only logs it, because abide doctor and every other command tell it.
func (n *Node) warn(line string) {
	n.log.Warn(line, "folder", n.folder.Dir())
	if n.config.Notice != nil && !n.config.Visitor {
		n.config.Notice(line)
	}
}

// reportSilence prints which process does not answer.
func (n *Node) reportSilence() { n.reportHolder("does not answer") }

// reportHolder prints which process holds the folder, and the way out.
func (n *Node) reportHolder(fault string) {
	h := n.folder.Holder()
	what := fmt.Sprintf("%s holds the data folder %s and ", h, n.folder.Dir())
	switch {
	case h.Stopped:
		n.reportWait(fmt.Sprintf("%sis stopped: resume it with kill -CONT %d", what, h.PID), false)
	case h.PID != 0:
		n.reportWait(fmt.Sprintf("%s%s: waiting for it; to end it without losing stored data: kill %d", what, fault, h.PID), true)
	default:
		n.reportWait(fmt.Sprintf("%s%s: waiting for it", what, fault), true)
	}
}

// reportNoEngine prints why no engine can be reached.
func (n *Node) reportNoEngine() {
	if trouble := n.currentTakeoverError(); trouble != nil {
		n.reportWait(fmt.Sprintf("waiting for an engine (trying again): %v", trouble), false)
		return
	}
	n.reportHolder("does not listen")
}

// watchHolder prints a notice if the engine is stopped, until this process is the engine
// itself. A client that only waits for events would not notice otherwise.
func (n *Node) watchHolder(ctx context.Context) {
	tick := time.NewTicker(noticeAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-n.promoted:
			return
		case <-ctx.Done():
			return
		}
		if n.folder.Holder().Stopped {
			n.reportSilence()
		}
	}
}
