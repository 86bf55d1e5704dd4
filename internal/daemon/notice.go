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

// tellWait tells people what clients of this process wait for.
func (n *Node) tellWait(why string, vague bool) {
	if n.config.Notice != nil && n.ctx.Err() == nil && n.notices.isNew(why, vague, time.Now()) {
		n.config.Notice(why)
	}
}

// tellSilence tells people who does not answer.
func (n *Node) tellSilence() { n.blame("does not answer") }

// blame tells people who holds the folder, and what to do about it.
func (n *Node) blame(fault string) {
	h := n.folder.Holder()
	what := fmt.Sprintf("%s holds the data folder %s and ", h, n.folder.Dir())
	switch {
	case h.Stopped:
		n.tellWait(fmt.Sprintf("%sis stopped: let it go on with kill -CONT %d", what, h.PID), false)
	case h.PID != 0:
		n.tellWait(fmt.Sprintf("%s%s: waiting for it; kill %d would end it, and lose nothing that is stored", what, fault, h.PID), true)
	default:
		n.tellWait(fmt.Sprintf("%s%s: waiting for it", what, fault), true)
	}
}

// tellNoEngine tells people why no engine can be reached.
func (n *Node) tellNoEngine() {
	if trouble := n.troubleNow(); trouble != nil {
		n.tellWait(fmt.Sprintf("waiting for an engine, and it is tried again: %v", trouble), false)
		return
	}
	n.blame("does not listen")
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
			n.tellSilence()
		}
	}
}
