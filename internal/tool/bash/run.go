package bash

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/tool/bash/screen"
	"github.com/abide-run/abide/internal/workspace"
)

//go:embed bash.md
var bashText string

//go:embed exec.md
var execText string

var bashSpec = tool.Spec{
	Name:        "bash",
	Description: bashText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"string","description":"The command line, for bash."},` +
		`"description":{"type":"string","description":"What the command is for, in a few words."},` +
		`"mode":{"type":"string","enum":["sync","async"],"description":"sync waits for the command; async starts it in the background and returns at once. sync by default."},` +
		`"initial_wait":{"type":"number","description":"How many seconds to wait in sync mode before the command goes on in the background, up to 600. 10 by default."},` +
		`"shellId":{"type":"string","description":"A name for the command, to be used with read_bash, write_bash, stop_bash and wait. One is made up if it is missing."},` +
		`"cwd":{"type":"string","description":"The directory to run it in. The working directory of the session by default."},` +
		`"stdin":{"type":"boolean","description":"Keep the command's input open, for write_bash. Otherwise it is empty."},` +
		`"tty":{"type":"boolean","description":"Give the command a terminal. Its input is open then."},` +
		`"rows":{"type":"integer","description":"The number of rows of the terminal, up to 200. 24 by default."},` +
		`"cols":{"type":"integer","description":"The number of columns of the terminal, up to 400. 80 by default."}},` +
		`"required":["command","description"]}`),
	Replay:   tool.Keyed,
	Detaches: true,
	Looks:    true,
}

var execSpec = tool.Spec{
	Name:        "exec",
	Description: execText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"string","description":"The command line, for bash."},` +
		`"description":{"type":"string","description":"What the command is for, in a few words."},` +
		`"work_dir":{"type":"string","description":"The directory to run it in. The working directory of the session by default."},` +
		`"timeout":{"type":"number","description":"How many seconds to wait before the command goes on in the background, up to 600. 10 by default."},` +
		`"run_in_background":{"type":"boolean","description":"Start the command in the background and return at once."}},` +
		`"required":["command"]}`),
	Replay:   tool.Keyed,
	Detaches: true,
	OnDemand: true,
	Looks:    true,
}

const (
	defaultWait  = 10 * time.Second
	maxWait      = 600 * time.Second
	refusedSleep = 2 * time.Second // a sleep in the foreground of at least this time is refused
	maxCommand   = 128<<10 - 1     // maximum bytes of a command: of one argument on Linux
	maxTaskName  = 64
	terminalRows = 24
	terminalCols = 80
)

// runner is the tool that runs commands.
type runner struct {
	*Commands
	spec  tool.Spec
	style style
}

func (r *runner) Spec() tool.Spec { return r.spec }

// A request is the parsed arguments of a call.
type request struct {
	script      *shell.Script
	text        string // command as the model wrote it
	command     string // command without the & at its end
	description string
	name        string
	dir         string
	background  bool
	wait        time.Duration
	stdin       bool
	tty         bool
	size        screen.Size // size of the terminal; zero for the usual one
	free        bool        // true if it is to run without the sandbox
}

// request parses the arguments of a call, with the names of bash and of exec.
func (r *runner) request(call tool.Call) (request, error) {
	a := argument.Read(call.Arguments)
	q := request{text: a.Needed("command"), wait: r.Wait}
	q.description, _ = a.Text("description", "model_intent")
	q.name, _ = a.Text("shellId", "task_id")
	dir, _ := a.Text("cwd", "work_dir", "workdir", "working_directory")
	async := a.Choice("mode", "sync", "async") == "async"
	named, name, isNamed := a.Seconds("initial_wait", "timeout")
	q.background = a.Flag("run_in_background") || async
	q.stdin, q.tty, q.size = a.Flag("stdin"), a.Flag("tty"), readSize(a)
	q.free = a.Flag("unsandboxed") && r.Confined
	if strings.ContainsFunc(q.name, unprintable) || len(q.name) > maxTaskName {
		a.Wrong("shellId", "Expected at most %d letters, digits and signs without spaces", maxTaskName)
	}
	if err := a.Err(); err != nil {
		return q, err
	}
	if isNamed && named <= 0 {
		return q, fail("", "Invalid %s value %s. Please supply a valid %s value in seconds between 0 and 600.", name, plainSeconds(named), name)
	}
	if isNamed {
		q.wait = min(named, maxWait)
	}
	if q.dir = call.Dir; dir != "" {
		q.dir = absolute(call.Dir, dir)
	}
	return q, q.check(named)
}

func unprintable(c rune) bool {
	return !unicode.IsPrint(c) || unicode.IsSpace(c) || c == '<' || c == '>'
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// check checks and parses the command. The argument named is the timeout that the call
// gives, which may be longer than any call waits; a sleep in the foreground may be as
// long.
func (q *request) check(named time.Duration) error {
	switch {
	case strings.TrimSpace(q.text) == "":
		return fail("No command provided", "No command provided. Please supply a valid command to execute.")
	case strings.ContainsRune(q.text, 0):
		return fail("NUL byte in the command", "Command not executed. It contains a NUL byte, which no shell accepts. Write \\0 in the way of the program that is to see it.")
	case strings.ContainsRune(q.dir, 0):
		return fail("NUL byte in the directory", "Command not executed. Its directory contains a NUL byte.")
	case len(q.text) > maxCommand:
		return fail("The command is too long", "Command not executed. It is %d bytes long, and a shell takes at most %d. Write it to a file with the create tool and run that.", len(q.text), maxCommand)
	}
	q.script = shell.Parse(q.text)
	command, background := q.script.Foreground()
	q.command, q.background = command, q.background || background
	if pause := q.script.Pause(); !q.background && pause.Longest >= refusedSleep && named < pause.Total {
		return refuseSleep(pause)
	}
	return nil
}

// refuseSleep returns the refusal of a command that would only make the session wait.
func refuseSleep(p shell.Pause) error {
	how := "for good"
	if p.Total < 100*365*24*time.Hour {
		how = "for " + plainSeconds(p.Total) + " seconds"
	}
	return fail("Blocked: sleep in the foreground",
		"Command not executed. `%s` was blocked: it would hold up everything %s. "+
			"To wait for something, start that with mode \"async\" (or run_in_background) and use the wait tool. "+
			"If the pause itself is needed, name an initial_wait (or timeout) at least that long. A sleep of less than %s seconds is fine.",
		oneLine(p.Text, maxDescription), how, plainSeconds(refusedSleep))
}

// A shellRequest is the permission request that clients show for a command.
type shellRequest struct {
	Kind        string          `json:"kind"`
	ToolCallID  string          `json:"toolCallId"`
	Text        string          `json:"fullCommandText"`
	Intention   string          `json:"intention"`
	Commands    []shell.Command `json:"commands"`
	Identifiers []string        `json:"commandIdentifiers"`
	Paths       []string        `json:"possiblePaths"`
	URLs        []possibleURL   `json:"possibleUrls"`
	Writes      bool            `json:"hasWriteFileRedirection"`
	CanOffer    bool            `json:"canOfferSessionApproval"`
	Warning     string          `json:"warning,omitempty"`
	Dir         string          `json:"cwd,omitempty"`     // an addition of abide to the protocol
	InputTo     string          `json:"inputTo,omitempty"` // an addition of abide: key of the running command that gets the text as input, or none if there is no such command
}

type possibleURL struct {
	URL string `json:"url"`
}

func (r *runner) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	q, err := r.request(call)
	if err != nil {
		return nil, err
	}
	in, err := r.surroundings(ctx, call, q)
	if err != nil {
		return nil, err
	}
	return r.readThere(ctx, call, in, func(in approval.Surroundings) (*approval.Request, error) { return permission(call, q, in) })
}

// surroundings returns where and how a command runs.
func (r *runner) surroundings(ctx context.Context, call tool.Call, q request) (in approval.Surroundings, err error) {
	in = approval.Surroundings{Dir: q.dir, Home: call.Dir, Terminal: q.tty, Input: q.stdin, Protected: r.Protected}
	env, err := r.env(ctx, call, q.tty)
	if err != nil {
		return in, err
	}
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			in.SearchPath = path
		}
	}
	if r.Scope != nil {
		in.Scope, err = r.Scope(ctx, call)
	}
	return in, err
}

// permission returns the request for permission to run a command.
func permission(call tool.Call, q request, in approval.Surroundings) (*approval.Request, error) {
	report := q.script.Report(in.Trusted)
	ask := &approval.Request{Kind: approval.Shell, Unconfined: q.free}
	ask.ReadCommand(q.script, in)
	body := shellRequest{
		Kind: approval.Shell, ToolCallID: call.ID, Text: q.text, Intention: q.description,
		Commands: report.Commands, Identifiers: []string{}, Paths: report.Paths, URLs: []possibleURL{},
		Writes: report.Writes, Dir: q.dir,
	}
	if q.dir != call.Dir {
		body.Paths = append(body.Paths, q.dir)
	}
	if body.Paths == nil {
		body.Paths = []string{}
	}
	if body.Commands == nil {
		body.Commands = []shell.Command{}
	}
	for _, u := range report.URLs {
		body.URLs = append(body.URLs, possibleURL{u})
	}
	for _, c := range report.Commands {
		body.Identifiers = append(body.Identifiers, c.Identifier)
	}
	plain, err := q.script.Plain()
	body.CanOffer = err == nil && !q.free
	if err != nil {
		body.Warning = "What this command runs is not fully known in advance: it has " + err.Error() + "."
	}
	if q.free {
		body.Warning = strings.TrimSpace("This command is to run without the sandbox: it can do everything that you can. " + body.Warning)
	}
	ask.More = event.PermissionMore{Dir: q.dir, Terminal: q.tty, Input: ask.Input, Commands: readingOf(plain), SearchPath: in.SearchPath}
	return ask, addBody(ask, body)
}

// readingOf returns the commands of a command line as they were understood.
func readingOf(p *shell.Plain) []event.CommandReading {
	if p == nil {
		return nil
	}
	var list []event.CommandReading
	for _, c := range p.Commands() {
		r := event.CommandReading{Join: c.Joint, Words: c.Words}
		for _, to := range c.Redirects {
			r.Files = append(r.Files, event.Redirection{Operator: operator(to), Target: to.To})
		}
		list = append(list, r)
	}
	return list
}

// operator returns a redirection without its target, as people write it.
func operator(r shell.Redirect) string {
	if r.FD == 0 || r.FD == 1 && r.Op != ">&" {
		return r.Op
	}
	return strconv.Itoa(r.FD) + r.Op
}

// addBody adds the body that clients show to a permission request.
func addBody(ask *approval.Request, body shellRequest) (err error) {
	if ask.Ask, err = json.Marshal(body); err != nil {
		return err
	}
	body.Kind = "commands"
	ask.Prompt, err = json.Marshal(body)
	return err
}

func (r *runner) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	q, err := r.request(call)
	if err != nil {
		return finish(ctx, tool.Result{}, err)
	}
	result, err := r.run(ctx, call, q)
	answer := r.style.answer(q.dir, result)
	answer.Digest = q.digest(result)
	return finish(ctx, answer, err)
}

// run starts the command, or finds it again if this call started it before.
func (r *runner) run(ctx context.Context, call tool.Call, q request) (Result, error) {
	if err := r.name(ctx, call, q.name); err != nil {
		return Result{}, err
	}
	if q.tty && q.size != (screen.Size{}) {
		if err := r.recordSize(call.Session, call.Key, q.size); err != nil {
			return Result{}, err
		}
	}
	spec, err := r.process(ctx, call, q)
	if err != nil {
		return Result{}, err
	}
	info, attached, err := r.Processes.Start(ctx, spec)
	if errors.Is(err, workspace.ErrLost) {
		return Result{}, r.unreachable(call, q, err)
	}
	var failed *process.StartError
	if errors.As(err, &failed) {
		return Result{}, fail("The command did not start", "%s", sentence(err.Error()))
	}
	if errors.Is(err, syscall.ENOSPC) {
		return Result{}, fail("The command did not start", "The command did not start: the disk on which its output is kept is full. Free some space there, or ask the user to.")
	}
	if err != nil {
		return Result{}, err
	}
	t := Task{ID: cmp.Or(q.name, string(info.ID)), Process: info, note: note{Rows: q.size.Rows, Cols: q.size.Cols}}
	if q.background {
		return started(t), nil
	}
	since := time.Now()
	if attached { // a repeated call waits only for the rest of the time
		since = info.Started
	}
	result, err := r.watch(ctx, call, q, t, since.Add(q.wait))
	if ctx.Err() == nil && workspace.Unusable(err) {
		return Result{}, r.unreachable(call, q, err)
	}
	return result, err
}

// unreachable returns the error of a call whose command was started, or may have been, in
// a workspace that is away since then. The command is a task: its end is reported when
// the workspace is back, and if it was not started, nothing is.
func (r *runner) unreachable(call tool.Call, q request, why error) error {
	id := cmp.Or(q.name, string(process.IDOf(r.Owner(call.Session), call.Key)))
	refused := fail("The workspace cannot be reached", "%s The command may have been started there. If so, it goes on as task %s, and you will be notified when it ends. Do not start it again.",
		sentence(why.Error()), id)
	refused.Result.Task = true
	return refused
}

// process returns the spec of the process for a request.
func (r *runner) process(ctx context.Context, call tool.Call, q request) (process.Spec, error) {
	env, err := r.env(ctx, call, q.tty)
	if err != nil {
		return process.Spec{}, err
	}
	if call.Decision != nil && call.Decision.SearchPath != "" { // the session may have got another one since it was judged
		env = withVariable(env, "PATH", call.Decision.SearchPath)
	}
	command := q.command
	if call.Decision.FromWords() { // only what was judged is run, and nothing in the environment changes what it does
		command, env = call.Decision.Command, steadyEnv(env)
	}
	spec := process.Spec{
		Key: call.Key, Owner: r.Owner(call.Session), Command: command, Dir: q.dir,
		Env: env, Title: q.description, Class: process.OneShot, Stdin: q.stdin || q.tty, Free: q.free,
	}
	if call.Sealed && !q.free {
		spec.Profile = sandbox.Sealed
	}
	if r.Place != nil {
		place, err := r.Place(ctx, call)
		if err != nil {
			return process.Spec{}, err
		}
		spec.Root, spec.Writable, spec.Repository, spec.Family = place.Root, place.Writable, place.Repository, place.Family
	}
	if q.background {
		spec.Class = process.Service
	}
	if q.tty {
		spec.TTY = &process.Size{Rows: terminalRows, Cols: terminalCols}
		if q.size != (screen.Size{}) {
			spec.TTY = &process.Size{Rows: uint16(q.size.Rows), Cols: uint16(q.size.Cols)}
		}
	}
	return spec, nil
}

// name records the name that the model chose for the task that the call is about to
// start.
func (r *runner) name(ctx context.Context, call tool.Call, name string) error {
	if name == "" {
		return nil
	}
	t, err := r.Task(ctx, call.Session, name)
	switch {
	case errors.Is(err, process.ErrNotFound):
	case err != nil:
		return err
	case !t.Process.State.Ended() && t.Process.Key != call.Key:
		return fail("The shellId is in use", "<command with shellId: %s is already running, wait for output with read_bash, stop it with stop_bash tool>", name)
	}
	return r.changeNote(call.Session, call.Key, func(n *note) { n.Name = name })
}

// started returns the result of a command that was started in the background.
func started(t Task) Result {
	r := report(t, excerpt{})
	r.Status = StatusStarted
	r.Message = fmt.Sprintf("The command runs in the background as task %s. Its output is kept: read_bash with shellId %q reads it. "+
		"You will be notified when it ends, so do not poll; use wait to wait for it and stop_bash to stop it.", t.ID, t.ID)
	return r
}

// watch waits for a command, at most until the deadline of the call.
func (r *runner) watch(ctx context.Context, call tool.Call, q request, t Task, until time.Time) (Result, error) {
	soon, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	info, err := r.Processes.Wait(soon, t.Process.Owner, t.Process.ID)
	if overdue(ctx, soon, err) { // the command may have ended at the deadline: its state now decides
		info, err = r.Processes.Get(ctx, t.Process.Owner, t.Process.ID)
	}
	if err != nil {
		return Result{}, err
	}
	t.Process = info
	if info.State.Ended() {
		return r.ended(ctx, call, q, t)
	}
	return r.backgrounded(ctx, call, q, t)
}

// ended returns the result of a command that ended within its call.
func (r *runner) ended(ctx context.Context, call tool.Call, q request, t Task) (Result, error) {
	e, err := r.excerpt(ctx, t.Process, 0, t.Process.Output.Bytes)
	if err != nil {
		return Result{}, err
	}
	if e, err = r.asScreen(ctx, t, e); err != nil {
		return Result{}, err
	}
	if t.Process.Lingering || q.name != "" || q.size != (screen.Size{}) { // such a task has a note, which records what was read
		if err := r.recordShown(call.Session, t, call.Key, 0, e.next); err != nil {
			return Result{}, err
		}
	}
	result := report(t, e)
	if command, better := q.script.FileTool(); better != "" && result.Note == "" {
		result.Note = fmt.Sprintf("The %s tool does what %s does here, needs no command and shows where a file goes on. Use it next time.", better, command)
	}
	if reason := r.refusal(t.Process, e.text); reason != "" {
		result.Note = strings.TrimSpace(result.Note + " " + reason)
	}
	if e.omitted > 0 {
		result.Message = fmt.Sprintf("%d bytes of output are not shown. read_bash with shellId %q and an offset reads them.", e.omitted, t.ID)
	}
	return result, r.Processes.MarkSeen(ctx, t.Process.Owner, t.Process.ID)
}

// backgrounded returns the result of a command that takes longer than the call waits, and
// continues in the background.
func (r *runner) backgrounded(ctx context.Context, call tool.Call, q request, t Task) (Result, error) {
	e, err := r.excerpt(ctx, t.Process, 0, t.Process.Output.Bytes)
	if err != nil {
		return Result{}, err
	}
	if e, err = r.asScreen(ctx, t, e); err != nil {
		return Result{}, err
	}
	result := report(t, e)
	result.Status = StatusAutoBackgrounded
	if result.NeedsInput, err = questionOf(ctx, r.Processes, t.Process); err != nil {
		return Result{}, err
	}
	result.Message = fmt.Sprintf("The command was still running after %s seconds. It goes on in the background as task %s, and no work was lost. "+
		"Its output so far is here; read_bash with shellId %q reads on. You will be notified when it ends; use wait to wait for it and stop_bash to stop it.",
		plainSeconds(q.wait), t.ID, t.ID)
	return result, r.recordShown(call.Session, t, call.Key, 0, e.next)
}
