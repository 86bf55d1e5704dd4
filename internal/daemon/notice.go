package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// noticeAfter is how long clients wait for an engine before people are told what
// they wait for.
const noticeAfter = time.Second

// notices are what people were told about a wait.
type notices struct {
	mu   sync.Mutex
	last string
	at   time.Time
}

// isNew reports whether a line is to be said. It is asked for again and again
// while a wait lasts: each reason is said once, and that somebody does not answer
// only if there is nothing better to say.
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

// reportWait tells people what clients of this process wait for.
func (n *Node) reportWait(why string, vague bool) {
	if n.config.Notice != nil && n.ctx.Err() == nil && n.notices.isNew(why, vague, time.Now()) {
		n.config.Notice(why)
	}
}

// reportSilence tells people who does not answer.
func (n *Node) reportSilence() { n.reportHolder("does not answer") }

// reportHolder tells people who holds the folder, and what to do about it.
func (n *Node) reportHolder(fault string) {
	h := n.folder.Holder()
	what := fmt.Sprintf("%s holds the data folder %s and ", h, n.folder.Dir())
	switch {
	case h.Stopped:
		n.reportWait(fmt.Sprintf("%sis stopped: let it go on with kill -CONT %d", what, h.PID), false)
	case h.PID != 0:
		n.reportWait(fmt.Sprintf("%s%s: waiting for it; kill %d would end it, and lose nothing that is stored", what, fault, h.PID), true)
	default:
		n.reportWait(fmt.Sprintf("%s%s: waiting for it", what, fault), true)
	}
}

// reportNoEngine tells people why no engine can be reached.
func (n *Node) reportNoEngine() {
	if trouble := n.currentTakeoverError(); trouble != nil {
		n.reportWait(fmt.Sprintf("waiting for an engine, and it is tried again: %v", trouble), false)
		return
	}
	n.reportHolder("does not listen")
}

// watchHolder tells people if the engine is stopped, until this process is the
// engine itself. A client that waits for events asks for nothing, so that
// nobody would notice otherwise.
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
