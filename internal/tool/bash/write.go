package bash

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

//go:embed write.md
var writeText string

var writeSpec = tool.Spec{
	Name:        "write_bash",
	Description: writeText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"shellId":{"type":"string","description":"The id of the command."},` +
		`"input":{"type":"string","description":"What the command is to read, with a newline where Enter is to be pressed. {enter}, {tab}, {esc}, {backspace}, {up}, {down}, {left}, {right}, {ctrl-c} and {ctrl-d} are keys, and so are {page-up}, {page-down} and {ctrl-a} to {ctrl-z}."},` +
		`"literal":{"type":"boolean","description":"There are no keys in the input: {left} is six characters. A newline is still Enter."},` +
		`"eof":{"type":"boolean","description":"Nothing more will come: the command reads the end of its input."},` +
		`"delay":{"type":"number","description":"How many seconds to wait for an answer, up to 600. 2 by default."}},` +
		`"required":["shellId"]}`),
	Replay: tool.Keyed,
	Looks:  true,
}

const (
	maxInput     = 64 << 10               // maximum bytes of one input
	writeWait    = 2 * time.Second        // default time to wait for an answer
	answeredWhen = 300 * time.Millisecond // time without output after which an answer is complete
)

// writer is the tool that writes to the standard input of a command.
type writer struct{ *Commands }

func (w *writer) Spec() tool.Spec { return writeSpec }

// A writeRequest is the parsed arguments of a call of write_bash.
type writeRequest struct {
	name    string
	input   string
	literal bool // the input has no names of keys
	eof     bool
	delay   time.Duration
}

func parseWrite(call tool.Call) (writeRequest, error) {
	a := argument.Read(call.Arguments)
	e := writeRequest{name: a.Needed(names...), delay: writeWait}
	e.input, _ = a.Text("input", "text", "data")
	e.literal, e.eof = a.Flag("literal"), a.Flag("eof", "close")
	if d, _, ok := a.Seconds("delay"); ok {
		e.delay = min(max(d, 0), maxWait)
	}
	if len(e.input) > maxInput {
		a.Wrong("input", "Expected at most %d bytes, received %d", maxInput, len(e.input))
	}
	if e.input == "" && !e.eof {
		a.Wrong("input", "Required")
	}
	return e, a.Err()
}

// Permission always asks, because a program can take its input for commands. What the
// person is shown is the input itself. Input to a program that is known to take it only
// as data can be approved for as long as the program runs; any other input is asked about
// each time, and a rule that denies commands applies to the commands in it.
func (w *writer) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	e, err := parseWrite(call)
	if err != nil {
		return nil, err
	}
	t, err := w.Task(ctx, call.Session, e.name)
	if err != nil && !errors.Is(err, process.ErrNotFound) {
		return nil, err
	}
	command := cmp.Or(oneLine(t.Process.Command, maxDescription), "an unknown command")
	body := shellRequest{
		Kind: approval.Shell, ToolCallID: call.ID, Text: e.input, Intention: "Write to the input of " + e.name + ": " + command,
		Commands: []shell.Command{{Identifier: writeSpec.Name}}, Identifiers: []string{writeSpec.Name},
		Paths: []string{}, URLs: []possibleURL{}, InputTo: cmp.Or(t.Process.Key, "none"),
	}
	in := approval.Surroundings{Dir: cmp.Or(t.Process.Dir, call.Dir), Home: call.Dir, Fed: true}
	if w.Scope != nil {
		if in.Scope, err = w.Scope(ctx, call); err != nil {
			return nil, err
		}
	}
	free := t.Process.Free // true if what is typed into it is done outside of the sandbox, too
	return w.readThere(ctx, call, in, func(in approval.Surroundings) (*approval.Request, error) {
		return inputRequest(e, t, in, body, free)
	})
}

// inputRequest returns the request for permission to write to the input of a command.
func inputRequest(e writeRequest, t Task, in approval.Surroundings, body shellRequest, free bool) (*approval.Request, error) {
	command := cmp.Or(oneLine(t.Process.Command, maxDescription), "an unknown command")
	ask := &approval.Request{Kind: approval.Shell, Unconfined: free, More: event.PermissionMore{Dir: t.Process.Dir, Terminal: t.Process.TTY, Input: true}}
	if takesData(t.Process.Command) {
		ask.ReadCommand(shell.Parse(""), in) // there are no commands in it
		ask.Subjects, body.CanOffer = []string{approval.InputTo + t.Process.Key}, !free
		ask.More.Reasons = []string{"it is input to the running command " + command}
		return ask, addBody(ask, body)
	}
	in.Edited, in.Unfinished = e.isEdited(t.Process.TTY), e.isUnfinished()
	ask.ReadCommand(shell.Parse(e.judged()), in)
	body.Warning = "The running command may take this input for commands."
	if free {
		body.Warning += " It runs without the sandbox: it can do everything that you can."
	}
	ask.More.Reasons = []string{"the running command " + command + " may take this input for commands"}
	return ask, addBody(ask, body)
}

// dataReaders are the programs that take their input as data only, whatever their
// arguments are, as far as those are words of the closed language.
var dataReaders = []string{
	"base64", "cat", "cksum", "cmp", "comm", "cut", "fold", "grep", "head", "hexdump", "jq", "md5sum", "nl", "od", "paste", "rev", "sha1sum", "sha256sum",
	"sha512sum", "tac", "tail", "tr", "uniq", "wc",
}

// takesData reports whether everything that reads the input of a command line takes it as
// data. Shells, interpreters, debuggers, editors, remote logins and unknown programs may
// not.
func takesData(command string) bool {
	p, err := shell.ReadPlain(command)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(p.Commands(), func(c shell.Simple) bool {
		return !slices.Contains(dataReaders, c.Words[0]) || len(c.Redirects) > 0
	})
}

func (w *writer) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	e, err := parseWrite(call)
	if err != nil {
		return finish(ctx, tool.Result{}, err)
	}
	r, dir, err := w.write(ctx, call, e)
	return finish(ctx, tool.Result{Text: progressText(r), Contents: contents(dir, r)}, err)
}

// write writes an input and waits for the answer of the command.
func (w *writer) write(ctx context.Context, call tool.Call, e writeRequest) (Result, string, error) {
	t, err := w.task(ctx, call, e.name)
	if key := allowedInput(call); err == nil && key != "" && key != t.Process.Key {
		t, err = w.taskOf(ctx, call, key)
	}
	if err != nil {
		return Result{}, "", err
	}
	in := process.Input{Key: call.Key, Data: []byte(e.text()), Close: e.eof}
	if t.Process.TTY {
		in.Data = []byte(e.typed(e.hasArrows() && w.applicationKeys(ctx, t)))
	}
	err = w.Processes.WriteStdin(ctx, t.Process.Owner, t.Process.ID, in)
	switch {
	case errors.Is(err, process.ErrNoStdin):
		return Result{}, "", fail("The input is closed", "The input of %s is not open. Start a command with stdin or tty set to true to write to it.", t.ID)
	case errors.Is(err, process.ErrEnded): // its last output is the answer
	case err != nil:
		return Result{}, "", err
	}
	if err := w.waitAnswer(ctx, t, e.delay); err != nil {
		return Result{}, "", err
	}
	r, err := w.waitAndRead(ctx, call, t, 0)
	return r, t.Process.Dir, err
}

// taskOf returns the task with a key, whatever has its name now.
func (w *writer) taskOf(ctx context.Context, call tool.Call, key string) (Task, error) {
	tasks, err := w.Tasks(ctx, call.Session)
	if i := slices.IndexFunc(tasks, func(t Task) bool { return t.Process.Key == key }); i >= 0 {
		return tasks[i], err
	}
	return Task{}, cmp.Or(err, error(fail("The command is gone", "The command that this input was allowed for is not there. Repeat the call if the input is meant for the one that has its shellId now.")))
}

// allowedInput returns the key of the command to which a person, or a grant, has allowed the
// input of a call; empty if it was allowed in another way. When that command has ended,
// another one can get its name.
func allowedInput(call tool.Call) string {
	var asked struct {
		To string `json:"inputTo"`
	}
	if call.Asked != nil && json.Unmarshal(call.Asked, &asked) == nil && asked.To != "" {
		return asked.To
	}
	if call.Decision != nil {
		for _, g := range call.Decision.Grants {
			if key, ok := strings.CutPrefix(g.Subject, approval.InputTo); ok {
				return key
			}
		}
	}
	return ""
}

// waitAnswer waits until a process has answered, or until the delay is over. It has
// answered when it has printed something and then nothing for a while.
func (w *writer) waitAnswer(ctx context.Context, t Task, delay time.Duration) error {
	soon, cancel := context.WithTimeout(ctx, delay)
	defer cancel()
	at := t.Process.Output.Bytes
	_, err := waitMore(soon, w.Processes, t.Process, at)
	for done := false; err == nil && !done; {
		if at, err = waitQuiet(soon, w.Processes, t.Process, answeredWhen); err == nil {
			done, err = w.answered(soon, t.Process, at)
		}
	}
	if overdue(ctx, soon, err) || errors.Is(err, process.ErrEnded) {
		return nil
	}
	return err
}

// answered reports whether an output is the whole answer of a process that has printed
// nothing since. On a terminal a complete line at the end may be only a pause: a program
// that takes input shows a prompt after its answer, or reads. Then answered waits for
// more, or for the process to read.
func (w *writer) answered(ctx context.Context, p process.Info, at int64) (bool, error) {
	if !p.TTY || at == 0 {
		return true, nil
	}
	last, err := w.part(ctx, p, at-1, at)
	if err != nil || string(last.data) != "\n" {
		return true, err
	}
	if p, err = w.Processes.Get(ctx, p.Owner, p.ID); err != nil || p.Reading || p.State.Ended() {
		return true, err
	}
	_, err = waitOutput(ctx, w.Processes, p, at, answeredWhen)
	return false, err
}
