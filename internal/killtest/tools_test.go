package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// A workshop has the tools of a victim. If calls finish in turn, every run of a
// scenario has the same writes: side by side, two results may share one.
type workshop struct {
	effects string
	inTurn  bool

	mu      sync.Mutex
	changed sync.Cond
	begun   int    // calls that are stored as begun in this process
	ran     int    // those that had their effect
	ending  string // the call whose turn it is to finish
	given   int    // how often all calls were given up
}

func newWorkshop(effects string, inTurn bool) *workshop {
	w := &workshop{effects: effects, inTurn: inTurn}
	w.changed.L = &w.mu
	return w
}

func (w *workshop) tools() turn.Catalog {
	return turn.Catalog{&counting{"pure", tool.Pure, w}, &counting{"keyed", tool.Keyed, w}, &counting{"once", tool.Once, w}}
}

// A counting tool writes down every run.
type counting struct {
	name   string
	replay tool.Replay
	shop   *workshop
}

// An effect is one run of a tool.
type effect struct {
	Tool    string
	Session event.SessionID
	Call    string
	Key     string
	Attempt int
}

func (t *counting) Spec() tool.Spec {
	return tool.Spec{
		Name: t.name, Description: "Counts itself.", Replay: t.replay,
		Parameters: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"}}}`),
	}
}

// Permission is needed for values that begin with "ask".
func (t *counting) Permission(call tool.Call) (*approval.Request, error) {
	value, err := valueOf(call.Arguments)
	if err != nil || !strings.HasPrefix(value, "ask") {
		return nil, err
	}
	ask := json.RawMessage(`{"kind":"custom-tool","toolName":"` + t.name + `"}`)
	return &approval.Request{Kind: approval.CustomTool, Subjects: []string{t.name}, Ask: ask, Prompt: ask}, nil
}

func (t *counting) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	value, err := valueOf(call.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	err = t.shop.count(effect{t.name, call.Session, call.ID, call.Key, call.Attempt})
	if err != nil {
		return tool.Result{}, err
	}
	t.shop.ended(call.ID)
	return tool.Result{Text: t.name + " " + value}, ctx.Err()
}

func valueOf(arguments json.RawMessage) (string, error) {
	var a struct{ Value string }
	err := json.Unmarshal(arguments, &a)
	return a.Value, err
}

// count writes an effect down, for good.
func (w *workshop) count(e effect) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(w.effects, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// ended waits until it is the call's turn to finish.
func (w *workshop) ended(call string) {
	if !w.inTurn {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran++
	w.changed.Broadcast()
	given := w.given
	for w.ending != "" && w.given == given {
		w.changed.Wait()
	}
	if w.given == given {
		w.ending = call
	}
}

// finishing waits, before a result is stored, until all calls that were begun
// have had their effect: the worst moment to die.
func (w *workshop) finishing(events []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.inTurn && w.ends(events) && w.ran < w.begun {
		w.changed.Wait()
	}
}

// stored takes in what a write has stored. After one that failed, the runtime
// gives up all calls under way.
func (w *workshop) stored(events []event.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.changed.Broadcast()
	if w.ends(events) {
		w.ending = ""
	}
	if err != nil {
		w.begun, w.ran, w.ending = 0, 0, ""
		w.given++
		return
	}
	for _, e := range events {
		if e.Type == event.ToolBegun {
			w.begun++
		}
	}
}

// ends reports whether the events have the result of the call whose turn it is.
func (w *workshop) ends(events []event.Event) bool {
	for _, e := range events {
		if e.Type != event.ToolComplete {
			continue
		}
		if d, err := event.As[event.ToolCompleteData](e); err == nil && d.ToolCallID == w.ending {
			return true
		}
	}
	return false
}
