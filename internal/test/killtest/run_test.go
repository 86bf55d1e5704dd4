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

// limit is the time after which a run counts as stuck.
const limit = 3 * time.Minute

// A run is a conversation on one data folder, over any number of victims.
type run struct {
	t            *testing.T
	ctx          context.Context
	instructions instructions
	conversation conversation
	recorder     *recorder
	driveClient  func(context.Context, *client) error // drives the client to the end of the conversation
}

// An outcome is what can be seen of a run when it is over.
type outcome struct {
	recorder *recorder
	log      []event.Event
	verify   api.VerifyResult
	index    api.SessionInfo
	effects  []effect
	writes   []report // reports of the last victim
	history  []string // the history of the last request, where it can be seen
}

// newRun prepares a run of a conversation.
func newRun(t *testing.T, conv conversation) *run {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("it is stuck"))
	t.Cleanup(cancel)
	dir := t.TempDir()
	return &run{
		t: t, ctx: ctx, conversation: conv, recorder: newRecorder(), driveClient: func(ctx context.Context, c *client) error { return c.drive(ctx) },
		instructions: instructions{Dir: filepath.Join(dir, "data"), Effects: filepath.Join(dir, "effects"), OneByOne: true},
	}
}

// seen is the point at which the parent kills the victim because a client was shown
// a number of events, stored or not.
const seen point = "seen"

// play kills a victim at each of the stops, one after the other, and then runs one to
// the end. Only the first victim is sure to reach its stop: what a later one recovers
// may share a write with the resume of the client.
func (r *run) play(stops ...stop) outcome {
	r.t.Helper()
	for i, s := range stops {
		reached, err := r.runUntilStop(s)
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
	o := r.instructions
	if s != (stop{}) {
		o.Stop = s
	}
	return r.startVictim(o)
}

// serve starts a victim without a client, which goes on with everything by itself.
func (r *run) serve() *process {
	r.t.Helper()
	o := r.instructions
	o.Args = []string{"serve"}
	return r.startVictim(o)
}

func (r *run) startVictim(o instructions) *process {
	r.t.Helper()
	r.recorder.update(func() { r.recorder.reports = nil })
	return start(r.t, o, r.recorder.recordReport)
}

// runUntilStop drives a victim until it is killed, and reports whether it reached its
// stop. A victim that did not is killed at the end of the conversation.
func (r *run) runUntilStop(s stop) (reached bool, err error) {
	p := r.start(s)
	watched, first := make(chan struct{}), len(r.recorder.shown)
	go func() { defer close(watched); r.killWhenDue(p, s, first) }()
	c, err := r.drive(p)
	defer c.close()
	reached = err != nil || s.Point == after || s.Point == seen
	if err == nil {
		p.kill()
	} else if !errors.Is(err, errDied) {
		return false, r.describe(p, err)
	}
	if err := r.await(p); err != nil {
		return false, r.describe(p, err)
	}
	<-watched
	r.audit()
	if !reached && r.instructions.Step != (step{}) {
		return false, fmt.Errorf("there is no such step; the victim said: %s", p.stderrText())
	}
	return reached, p.wasKilled()
}

// audit lets the auditor look at what is stored, when nobody writes to it. What a
// kill leaves unfinished is not broken.
func (r *run) audit() *audit.Report {
	r.t.Helper()
	report, err := audit.Run(r.ctx, r.instructions.Dir, audit.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range report.Findings {
		r.t.Errorf("the auditor finds %s broken: %s, session %q, event %d: %s", f.Invariant, f.Rule, f.Session, f.Seq, f.Text)
	}
	for _, d := range report.Unknown {
		if d.Invariant == "I2" || d.Invariant == "I9" { // the log records what allowed a call, and whether it may be repeated
			r.t.Errorf("the auditor cannot decide %s: %s, session %q, event %d: %s", d.Invariant, d.Rule, d.Session, d.Seq, d.Text)
		}
	}
	return report
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

// describe ends a victim with SIGQUIT, and adds the stacks that it prints to an error.
func (r *run) describe(p *process, err error) error {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.dead
	return fmt.Errorf("%w\nthe victim ended with %v and said: %s", err, p.cmd.ProcessState, p.stderrText())
}

// killWhenDue kills the victim at the points that only the parent can see. first is
// the number of the victim's first connection.
func (r *run) killWhenDue(p *process, s stop, first int) {
	w := r.recorder
	due := func() bool { return false }
	switch s.Point {
	case after:
		due = func() bool { return w.isDelivered(s.Write) }
	case seen:
		due = func() bool { return w.countShown(first) >= s.Write }
	}
	if w.waitUntil(r.ctx, p.dead, due) == nil {
		p.kill()
	}
}

// isDelivered reports whether everything that a write caused has reached the
// parent, or the victim waits to be killed. The recorder is locked.
func (w *recorder) isDelivered(write int) bool {
	for _, r := range w.reports {
		if r.Blocked || r.Write == write && len(r.Shown) > 0 && w.pending == 0 && w.wasShown(r.Shown) {
			return true
		}
	}
	return false
}

// countShown counts the events that were shown since a connection. The recorder is
// locked.
func (w *recorder) countShown(since int) (n int) {
	for _, events := range w.shown[min(since, len(w.shown)):] {
		n += len(events)
	}
	return n
}

// drive connects to a victim and drives the client to the end of the conversation.
func (r *run) drive(p *process) (*client, error) {
	c, err := connect(r.ctx, stdio{p}, r.recorder, r.conversation)
	if err == nil {
		err = r.driveClient(r.ctx, c)
	}
	return c, err
}

// finish drives a victim to the end of the conversation and collects the outcome.
func (r *run) finish() (out outcome, err error) {
	p := r.start(stop{})
	c, err := r.drive(p)
	defer c.close()
	if err == nil {
		out, err = r.collect(c)
	}
	if err != nil {
		return out, r.describe(p, err)
	}
	c.close()
	err = p.leave()
	r.audit()
	for _, report := range r.recorder.reports { // all of them, now that it is dead
		if report.Write > 0 {
			out.writes = append(out.writes, report)
		}
	}
	return out, err
}

// watch starts a victim without a client, and kills it when the session is idle.
func (r *run) watch() error {
	p := r.serve()
	err := r.recorder.waitUntil(r.ctx, p.dead, func() bool {
		return slices.ContainsFunc(r.recorder.reports, func(report report) bool { return slices.Contains(report.Events, event.SessionIdle) })
	})
	if err != nil {
		return r.describe(p, err)
	}
	p.kill()
	return p.wasKilled()
}

// collect reads the outcome of a run.
func (r *run) collect(c *client) (outcome, error) {
	out := outcome{recorder: r.recorder}
	var err error
	if out.log, err = c.log(r.ctx); err != nil {
		return out, err
	}
	if err := c.awaitLastEvent(r.ctx, out.log); err != nil {
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
	out.effects, err = readEffects(r.instructions.Effects, c.session)
	return out, err
}

// readEffects reads the runs of tools for a session.
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
