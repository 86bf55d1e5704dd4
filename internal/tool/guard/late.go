package guard

import (
	"context"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// lateLooks are the looks that could not be made when they were due, because the workspace
// was away. Each is tried until it was made. If the process ends before, the mark of the
// command is left, and the next call looks.
type lateLooks struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	waiting map[lateLook]bool
	running sync.WaitGroup
}

// A lateLook is a look after the command of a call.
type lateLook struct {
	session event.SessionID
	key     string
}

// latePause is the pause between two attempts. Each attempt waits for the workspace as
// long as any call does.
const latePause = time.Second

func newLateLooks() lateLooks {
	ctx, cancel := context.WithCancel(context.Background())
	return lateLooks{ctx: ctx, cancel: cancel, waiting: make(map[lateLook]bool)}
}

func (l *lateLooks) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.running.Wait()
}

// lookLater looks at the files when the workspace of a session is back.
func (g *Guard) lookLater(look lateLook) {
	l := &g.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.waiting[look] {
		return
	}
	l.waiting[look] = true
	l.running.Go(func() {
		g.tryUntilLooked(look)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, look)
	})
}

func (g *Guard) tryUntilLooked(look lateLook) {
	for {
		select {
		case <-time.After(latePause):
		case <-g.late.ctx.Done():
			return
		}
		news := event.TaskReportedData{Key: look.key, Ended: true}
		if err := g.lookAtTask(g.late.ctx, look.session, &news); !workspace.Unusable(err) {
			return
		}
	}
}
