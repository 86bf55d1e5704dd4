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

// countingTools are the tools of a victim. If parallel calls finish one after the
// other, every run of a scenario has the same writes: otherwise two results may share
// one.
type countingTools struct {
	effects  string
	oneByOne bool

	mu      sync.Mutex
	changed sync.Cond
	begun   int    // number of calls that this process has stored as begun
	ran     int    // number of calls that had their effect
	ending  string // id of the call that may finish now
	aborted int    // number of times that all calls were aborted
}

func newCountingTools(effects string, inTurn bool) *countingTools {
	w := &countingTools{effects: effects, oneByOne: inTurn}
	w.changed.L = &w.mu
	return w
}

func (w *countingTools) tools() turn.Catalog {
	return turn.Catalog{&countingTool{"pure", tool.Pure, w}, &countingTool{"keyed", tool.Keyed, w}, &countingTool{"once", tool.Once, w}}
}

// A countingTool is a tool that records every run.
type countingTool struct {
	name   string
	replay tool.Replay
	tools  *countingTools
}

// An effect is one run of a tool.
type effect struct {
	Tool    string
	Session event.SessionID
	Call    string
	Key     string
	Attempt int
}

func (t *countingTool) Spec() tool.Spec {
	return tool.Spec{
		Name: t.name, Description: "Counts itself.", Replay: t.replay,
		Parameters: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"}}}`),
	}
}

// Permission is needed for values that begin with "ask".
func (t *countingTool) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	value, err := valueOf(call.Arguments)
	if err != nil || !strings.HasPrefix(value, "ask") {
		return nil, err
	}
	ask := json.RawMessage(`{"kind":"custom-tool","toolName":"` + t.name + `"}`)
	return &approval.Request{Kind: approval.CustomTool, Subjects: []string{t.name}, Ask: ask, Prompt: ask}, nil
}

func (t *countingTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	value, err := valueOf(call.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	err = t.tools.count(effect{t.name, call.Session, call.ID, call.Key, call.Attempt})
	if err != nil {
		return tool.Result{}, err
	}
	t.tools.awaitTurn(call.ID)
	return tool.Result{Text: t.name + " " + value}, ctx.Err()
}

func valueOf(arguments json.RawMessage) (string, error) {
	var a struct{ Value string }
	err := json.Unmarshal(arguments, &a)
	return a.Value, err
}

// count records an effect, and syncs the file.
func (w *countingTools) count(e effect) error {
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

// awaitTurn waits until the call may finish.
func (w *countingTools) awaitTurn(call string) {
	if !w.oneByOne {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran++
	w.changed.Broadcast()
	given := w.aborted
	for w.ending != "" && w.aborted == given {
		w.changed.Wait()
	}
	if w.aborted == given {
		w.ending = call
	}
}

// awaitEffects waits, before a result is stored, until all calls that were begun have
// had their effect: the worst moment for a kill.
func (w *countingTools) awaitEffects(events []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.oneByOne && w.ends(events) && w.ran < w.begun {
		w.changed.Wait()
	}
}

// recordWrite counts the calls that a write begins. After a write that failed, the
// runtime aborts all calls under way.
func (w *countingTools) recordWrite(events []event.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.changed.Broadcast()
	if w.ends(events) {
		w.ending = ""
	}
	if err != nil {
		w.begun, w.ran, w.ending = 0, 0, ""
		w.aborted++
		return
	}
	for _, e := range events {
		if e.Type == event.ToolBegun {
			w.begun++
		}
	}
}

// ends reports whether the events have the result of the call that may finish now.
func (w *countingTools) ends(events []event.Event) bool {
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
