package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

// A story is what a session does in its workspace, over any number of engines. Each step
// can be asked for again: the log says whether it was done.
type story struct {
	*matrix
	id    event.SessionID
	ctx   context.Context
	on    *client.Client
	watch *client.Stream
}

// storyTime is the time after which a story counts as stuck.
const storyTime = 5 * time.Minute

// largeText is longer than a frame of the wire's first part, so that a write can be cut.
var largeText = strings.Repeat("a line that is written as one of many\n", 2000)

// Prompts of the story.
const (
	runOnce      = "Run `echo ran >>ran; tail -n 2 made`"
	runUntilFile = "Run `echo began >>began; while [ ! -e go ]; do sleep 0.02; done; echo over; exit 7` in the background"
	runAtTheEnd  = "Run `echo last >>last; tail -n 2 made`"
)

func (m *matrix) newStory() *story {
	ctx, cancel := context.WithTimeoutCause(m.t.Context(), storyTime, errors.New("it is stuck"))
	m.t.Cleanup(cancel)
	return &story{matrix: m, id: event.SessionID(event.NewID()), ctx: ctx}
}

// play runs the story to its end. The first engine dies at a write, if dies is not empty;
// any engine may be killed.
func (s *story) play(dies string) {
	s.t.Helper()
	for ; ; dies = "" {
		e, err := s.start(dies)
		if err == nil {
			s.on = e.client
			if err = s.tell(); err == nil {
				e.stop()
				return
			}
		}
		if !e.killed(err) {
			s.t.Fatalf("%v\n%s\n%s", cmp.Or(context.Cause(s.ctx), err), s.shortLog(), s.stacks())
		}
		s.audit()
	}
}

// shortLog returns the last events.
func (s *story) shortLog() string {
	var lines []string
	for e, err := range s.on.Events(s.t.Context(), s.id, 0) {
		if err != nil {
			return err.Error()
		}
		lines = append(lines, fmt.Sprintf("%d %.300s", e.Seq, e.Bytes))
	}
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// tell tells the engine what to do, step by step.
func (s *story) tell() error {
	for _, step := range []func() error{
		s.open,
		s.use("create", map[string]any{"path": s.src("made"), "file_text": largeText + "one\ntwo\n"}),
		s.use("edit", map[string]any{"path": s.src("made"), "old_str": "two", "new_str": "three"}),
		s.use("grep", map[string]any{"pattern": "thr[e]e", "path": s.src("made"), "output_mode": "content", "-n": true}),
		s.says(runOnce),
		s.says(runUntilFile),
		s.attach,
		s.use("create", map[string]any{"path": s.src("undone"), "file_text": "nothing\n"}),
		s.use("edit", map[string]any{"path": s.src("made"), "old_str": "three", "new_str": "four"}),
		s.rewind,
		s.letGo,
		s.says(runAtTheEnd),
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// open creates the session, or comes back to it.
func (s *story) open() error {
	s.watch = s.on.Watch(s.id)
	known, err := s.on.Metadata(s.ctx, s.id)
	switch {
	case err != nil:
	case known == nil:
		_, err = s.on.Create(s.ctx, api.OpenParams{SessionID: s.id, Model: "offline", Abide: &api.OpenAbide{Approve: "all", Workspace: "box"}})
	default:
		_, err = s.on.Resume(s.ctx, api.OpenParams{SessionID: s.id, Abide: &api.OpenAbide{Keep: true}})
	}
	return err
}

// use lets the model use a tool.
func (s *story) use(tool string, arguments map[string]any) func() error {
	text, err := json.Marshal(arguments)
	must(s.t, err)
	return s.says(fmt.Sprintf("Use %s with %s", tool, text))
}

// says returns a step that sends a prompt and waits for the end of its turn.
func (s *story) says(prompt string) func() error { return func() error { return s.send(prompt) } }

func (s *story) send(prompt string, attached ...json.RawMessage) error {
	if _, err := s.find(isPrompt(prompt)); err == nil {
		return s.await(isPrompt(prompt), isIdle) // an engine before this one was told so
	} else if !errors.Is(err, errNoEvent) {
		return err
	}
	if _, err := s.on.Send(s.ctx, api.SendParams{SessionID: s.id, Prompt: prompt, Attachments: attached, Key: prompt[:min(len(prompt), 60)]}); err != nil {
		return err
	}
	return s.await(isPrompt(prompt), isIdle)
}

const readAttached = "Reply with exactly: I have seen it"

func (s *story) attach() error {
	return s.send(readAttached, json.RawMessage(`{"type":"file","path":"`+s.src("made")+`","displayName":"made"}`))
}

// rewind takes back everything since the file was created that is to be gone.
func (s *story) rewind() error {
	_, err := s.find(func(e event.Event) bool { return e.Type == event.HistoryHidden })
	if errors.Is(err, errNoEvent) {
		var at event.Event
		if at, err = s.find(func(e event.Event) bool {
			return e.Type == event.UserMessage && strings.Contains(string(e.Bytes), s.src("undone"))
		}); err != nil {
			return err
		}
		head, err := at.Head()
		must(s.t, err)
		if _, err := s.on.Rewind(s.ctx, api.RewindParams{SessionID: s.id, EventID: head.ID}); err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, errNoEvent) {
		return err
	}
	return s.await(func(e event.Event) bool { return e.Type == event.FilesRestored })
}

// letGo lets the command in the background end, and waits until the model was told.
func (s *story) letGo() error {
	must(s.t, os.WriteFile(s.src("go"), nil, 0o644))
	return s.await(func(e event.Event) bool {
		return e.Type == event.SystemNotification && strings.Contains(string(e.Bytes), "exit-code>7<")
	}, isIdle)
}

var errNoEvent = errors.New("there is no such event")

func isIdle(e event.Event) bool { return e.Type == event.SessionIdle }

func isPrompt(prompt string) func(event.Event) bool {
	return func(e event.Event) bool {
		d, err := event.As[event.UserMessageData](e)
		return e.Type == event.UserMessage && err == nil && d.Content == prompt
	}
}

// find returns the first event that is wanted.
func (s *story) find(wanted func(event.Event) bool) (event.Event, error) {
	for e, err := range s.on.Events(s.ctx, s.id, 0) {
		if err != nil || wanted(e) {
			return e, err
		}
	}
	return event.Event{}, errNoEvent
}

// await waits until the log has events that are wanted, one after the other.
func (s *story) await(wanted ...func(event.Event) bool) error {
	for after := event.Seq(0); ; {
		for e, err := range s.on.Events(s.ctx, s.id, after) {
			if err != nil {
				return err
			}
			after = e.Seq
			if wanted[0](e) {
				if wanted = wanted[1:]; len(wanted) == 0 {
					return nil
				}
			}
		}
		if _, err := s.watch.Next(s.ctx); err != nil {
			return err
		}
	}
}

// check compares what is there with what should be.
func (s *story) check() {
	s.t.Helper()
	s.holds("made", largeText+"one\nthree\n")
	s.lacks("undone")
	for _, name := range []string{"ran", "began", "last"} {
		s.holds(name, name+"\n")
	}
	s.audit()
	s.checkLog()
}

// checkLog compares the log with what should be in it.
func (s *story) checkLog() {
	s.t.Helper()
	e, err := s.start("")
	must(s.t, err)
	s.on = e.client
	count := make(map[string]int)
	for e, err := range s.on.Events(s.ctx, s.id, 0) {
		must(s.t, err)
		text := string(e.Bytes)
		count[string(e.Type)]++
		switch {
		case e.Type == event.ToolComplete && strings.Contains(text, `"success":false`):
			s.t.Errorf("a call failed: %.2000s", text)
		case e.Type == event.ToolComplete && strings.Contains(text, "2002:three"):
			count["found"]++
		case e.Type == event.UserMessage && strings.Contains(text, "(2002 lines)"):
			count["attached"]++
		}
	}
	for kind, want := range map[string]int{
		string(event.ToolComplete): 8, string(event.SystemNotification): 1, string(event.FilesRestored): 1, "found": 1, "attached": 1,
	} {
		if count[kind] != want {
			s.t.Errorf("%d × %s, want %d", count[kind], kind, want)
		}
	}
	e.stop()
}

// calm plays the story without any fault, and counts the writes of the engine and the
// requests to the workspace.
func calm(t *testing.T) (writes, requests int) {
	t.Helper()
	m := newMatrix(t, matrixOptions{})
	s := m.newStory()
	s.play("")
	writes, err := readWrites(m.writes())
	must(t, err)
	requests = m.wire.count()
	s.check()
	return writes, requests
}

// chosen reports whether a case is tried: each of them with ABIDE_SOAK, and otherwise one of
// some.
func chosen(n, some int) bool { return os.Getenv("ABIDE_SOAK") != "" || n%some == 0 }

func TestMatrixEngineIsKilledAtEveryWrite(t *testing.T) {
	writes, _ := calm(t)
	for n := 1; n <= writes; n++ {
		for i, point := range []string{"before", "committed"} {
			if !chosen(2*n+i, 13) {
				continue
			}
			dies := fmt.Sprintf("%s %d", point, n)
			t.Run(dies, func(t *testing.T) {
				t.Parallel()
				s := newMatrix(t, matrixOptions{}).newStory()
				s.play(dies)
				s.check()
			})
		}
	}
}

// faults are what happens at a moment of a request. Each returns whether the connection goes
// on.
var faults = map[string]func(m *matrix) bool{
	"wire is cut": func(m *matrix) bool {
		m.wire.set(wireRefused)
		time.AfterFunc(300*time.Millisecond, func() { m.wire.set(wireOpen) })
		return false
	},
	"wire is silent": func(m *matrix) bool {
		m.wire.set(wireSilent)
		time.AfterFunc(300*time.Millisecond, func() { m.wire.set(wireOpen) })
		return true
	},
	"connection is lost": func(m *matrix) bool { return false },
	"workspace is killed": func(m *matrix) bool {
		m.killWorkspace()
		m.serve()
		return false
	},
	"engine is killed": func(m *matrix) bool {
		m.killEngine()
		return true
	},
	"both are killed": func(m *matrix) bool {
		m.killEngine()
		m.killWorkspace()
		m.serve()
		return false
	},
}

func TestMatrixFaultAtEveryRequest(t *testing.T) {
	_, requests := calm(t)
	names := slices.Sorted(maps.Keys(faults))
	count := 0
	for n := 1; n <= requests; n++ {
		for _, at := range requestPoints {
			for _, name := range names {
				if count++; !chosen(count, 109) {
					continue
				}
				t.Run(fmt.Sprintf("%s %d %s", at, n, name), func(t *testing.T) {
					t.Parallel()
					m := newMatrix(t, matrixOptions{tcp: n%2 == 0})
					m.meet(moment{request: n, at: at}, faults[name])
					s := m.newStory()
					s.play("")
					s.check()
				})
			}
		}
	}
}

// meet lets a fault happen once, at a moment.
func (m *matrix) meet(at moment, fault func(*matrix) bool) {
	var once sync.Once
	m.wire.when(func(now moment) (goesOn bool) {
		goesOn = true
		if now.request == at.request && now.at == at.at {
			once.Do(func() { goesOn = fault(m) })
		}
		return goesOn
	})
}

// In the middle of a write, a grep and a command the wire is cut or silent for as long as
// nobody waits for calls by default, and everything is done once it is back. It takes a minute
// with ABIDE_SOAK, and a moment otherwise.
func TestMatrixWireIsAwayInTheMiddle(t *testing.T) {
	away, patience := time.Second, "1m"
	if os.Getenv("ABIDE_SOAK") != "" {
		away, patience = time.Minute, "5m"
	}
	for what, text := range map[string]string{"Write": largeText[:40], "Grep": "thr[e]e", "Command": "echo ran"} {
		for name, state := range map[string]wireState{"Cut": wireRefused, "Silent": wireSilent, "Reset": wireReset} {
			if all := os.Getenv("ABIDE_SOAK") != ""; !all && (len(what)+int(state))%2 == 0 {
				continue
			}
			t.Run(what+name, func(t *testing.T) {
				t.Parallel()
				m := newMatrix(t, matrixOptions{patience: patience})
				var once sync.Once
				m.wire.when(func(now moment) (goesOn bool) {
					goesOn = true
					if now.at != halfway || !bytes.Contains(now.data, []byte(text)) {
						return true
					}
					once.Do(func() {
						m.wire.set(state)
						time.AfterFunc(away, func() { m.wire.set(wireOpen) })
						goesOn = state == wireSilent
					})
					return goesOn
				})
				s := m.newStory()
				s.play("")
				s.check()
			})
		}
	}
}
