package bash

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

//go:embed stop.md
var stopText string

var stopSpec = tool.Spec{
	Name:        "stop_bash",
	Description: stopText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"shellId":{"type":"string","description":"The id of the command."}},` +
		`"required":["shellId"]}`),
	Replay: tool.Keyed,
}

// stopper is the tool that ends a command.
type stopper struct{ *Commands }

func (s *stopper) Spec() tool.Spec                                                  { return stopSpec }
func (s *stopper) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

func (s *stopper) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	a := argument.Read(call.Arguments)
	name := a.Needed(names...)
	if err := a.Err(); err != nil {
		return finish(ctx, tool.Result{}, err)
	}
	r, dir, err := s.stop(ctx, call, name)
	text := fmt.Sprintf("<command with id: %s stopped>\n%s", r.TaskID, r.endLine())
	return finish(ctx, tool.Result{Text: text, Contents: contents(dir, r)}, err)
}

// stop ends a task and all its children. Output that was not read stays unread.
func (s *stopper) stop(ctx context.Context, call tool.Call, name string) (Result, string, error) {
	t, err := s.task(ctx, call, name)
	if err != nil {
		return Result{}, "", err
	}
	if t.Process, err = s.Processes.Stop(ctx, t.Process.Owner, t.Process.ID); err != nil {
		return Result{}, "", err
	}
	s.Seen(ctx, call.Session, t.Process.Key)
	return report(t, excerpt{next: t.unread()}), t.Process.Dir, nil
}
