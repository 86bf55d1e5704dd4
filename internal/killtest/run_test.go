package killtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/event"
)

// limit is how long a run may take before it counts as stuck.
const limit = time.Minute

// A run is a talk on one data folder, over any number of victims.
type run struct {
	t       *testing.T
	ctx     context.Context
	orders  orders
	talk    talk
	witness *witness
	carry   func(context.Context, *client) error // brings a talk to its end
}

// An outcome is what is left of a run.
type outcome struct {
	witness *witness
	log     []event.Event
	verify  api.VerifyResult
	index   api.SessionInfo
	effects []effect
	writes  []report // of the last victim
	told    []string // the history of the last request, where it can be seen
}

// newRun prepares a run of a talk.
func newRun(t *testing.T, talk talk) *run {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("it is stuck"))
	t.Cleanup(cancel)
	dir := t.TempDir()
	return &run{
		t: t, ctx: ctx, talk: talk, witness: newWitness(), carry: func(ctx context.Context, c *client) error { return c.drive(ctx) },
		orders: orders{Dir: filepath.Join(dir, "data"), Effects: filepath.Join(dir, "effects"), InTurn: true},
	}
}

// seen is the point at which the parent kills the victim when it was shown so
// many events, stored or not.
const seen point = "seen"

// play kills a victim at each of the stops, one after the other, and then lets
// one live to the end. Only the first victim is sure to come to its stop: what
// a later one finds to do may share a write with the client's coming back.
func (r *run) play(stops ...stop) outcome {
	r.t.Helper()
	for i, s := range stops {
		reached, err := r.cutShort(s)
		if err == nil && !reached && i == 0 {
			err = errors.New("there is no such place")
		}
		if err != nil {
			r.t.Fatalf("killed at %v: %v", stops[:i+1], err)
		}
	}
	out, err := r.finish()
	if err != nil {
		r.t.Fatalf("after being killed at %v: %v", stops, err)
	}
	return out
}

func (s stop) String() string { return fmt.Sprintf("%s/%d", s.Point, s.Write) }

// start starts a victim on the run's folder.
func (r *run) start(s stop) *process {
	r.t.Helper()
	o := r.orders
	if s != (stop{}) {
		o.Stop = s
	}
	r.witness.note(func() { r.witness.reports = nil })
	return start(r.t, o, r.witness.reported)
}

// cutShort drives a victim until it is killed, at the end of the talk if it has
// not come to its stop before, and reports whether it has.
func (r *run) cutShort(s stop) (reached bool, err error) {
	p := r.start(s)
	hunted, first := make(chan struct{}), len(r.witness.shown)
	go func() { defer close(hunted); r.hunt(p, s, first) }()
	c, err := r.drive(p)
	defer c.close()
	reached = err != nil || s.Point == after || s.Point == seen
	if err == nil {
		p.kill()
	} else if !errors.Is(err, errDied) {
		return false, r.stuck(p, err)
	}
	if err := r.await(p); err != nil {
		return false, r.stuck(p, err)
	}
	<-hunted
	r.audit()
	return reached, p.wasKilled()
}

// audit lets the auditor look at what is stored, when nobody writes to it. What a
// kill leaves unfinished is not broken.
func (r *run) audit() {
	r.t.Helper()
	report, err := audit.Run(r.ctx, r.orders.Dir, audit.Options{Once: []string{"once"}, Again: []string{"pure", "keyed"}})
	if err != nil {
		r.t.Error(err)
		return
	}
	for _, f := range report.Findings {
		r.t.Errorf("the auditor finds %s broken: %s, session %q, event %d: %s", f.Invariant, f.Rule, f.Session, f.Seq, f.Text)
	}
}

// await waits until a victim is dead.
func (r *run) await(p *process) error {
	select {
	case <-p.dead:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// stuck adds what a victim was doing to an error.
func (r *run) stuck(p *process, err error) error {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.dead
	return fmt.Errorf("%w\nthe victim ended with %v and said: %s", err, p.cmd.ProcessState, p.said())
}

// hunt kills the victim, whose first connection has the given number, at the
// points that the parent can see.
func (r *run) hunt(p *process, s stop, first int) {
	w := r.witness
	due := func() bool { return false }
	switch s.Point {
	case after:
		due = func() bool { return w.settled(s.Write) }
	case seen:
		due = func() bool { return w.total(first) >= s.Write }
	}
	if w.until(r.ctx, p.dead, due) == nil {
		p.kill()
	}
}

// settled reports whether everything that a write caused has reached the
// parent, or the victim waits for the end. The witness is locked.
func (w *witness) settled(write int) bool {
	for _, r := range w.reports {
		if r.Blocked || r.Write == write && len(r.Shown) > 0 && w.asking == 0 && w.hasSeen(r.Shown) {
			return true
		}
	}
	return false
}

// total counts what was shown since a connection. The witness is locked.
func (w *witness) total(since int) (n int) {
	for _, events := range w.shown[min(since, len(w.shown)):] {
		n += len(events)
	}
	return n
}

// drive connects to a victim and brings the talk to its end.
func (r *run) drive(p *process) (*client, error) {
	c, err := connect(r.ctx, stdio{p}, r.witness, r.talk)
	if err == nil {
		err = r.carry(r.ctx, c)
	}
	return c, err
}

// finish drives a victim to the end and collects what is left.
func (r *run) finish() (out outcome, err error) {
	p := r.start(stop{})
	c, err := r.drive(p)
	defer c.close()
	if err == nil {
		out, err = r.collect(c)
	}
	if err != nil {
		return out, r.stuck(p, err)
	}
	c.close()
	err = p.leave()
	r.audit()
	for _, report := range r.witness.reports { // all of them, now that it is dead
		if !report.Engine {
			out.writes = append(out.writes, report)
		}
	}
	return out, err
}

// watch starts a victim that nobody talks to, and kills it when the session is
// idle.
func (r *run) watch() error {
	p := r.start(stop{})
	err := r.witness.until(r.ctx, p.dead, func() bool {
		return slices.ContainsFunc(r.witness.reports, func(report report) bool { return slices.Contains(report.Events, event.SessionIdle) })
	})
	if err != nil {
		return r.stuck(p, err)
	}
	p.kill()
	return p.wasKilled()
}

// collect reads everything that is left of a run.
func (r *run) collect(c *client) (outcome, error) {
	out := outcome{witness: r.witness}
	var err error
	if out.log, err = c.log(r.ctx); err != nil {
		return out, err
	}
	if err := c.sawTheEnd(r.ctx, out.log); err != nil {
		return out, err
	}
	this := api.SessionParams{SessionID: c.session}
	if err := c.call(r.ctx, api.Verify, this, &out.verify); err != nil {
		return out, err
	}
	var meta api.MetadataResult
	if err := c.call(r.ctx, api.SessionGetMetadata, this, &meta); err != nil {
		return out, err
	}
	if meta.Session == nil {
		return out, errors.New("the index does not know the session")
	}
	out.index = *meta.Session
	out.effects, err = readEffects(r.orders.Effects, c.session)
	return out, err
}

// readEffects reads what the tools have done for a session.
func readEffects(path string, id event.SessionID) ([]effect, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var list []effect
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var e effect
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		if e.Session == id {
			list = append(list, e)
		}
	}
	return list, err
}
