package bash

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

//go:embed wait.md
var waitText string

var waitSpec = tool.Spec{
	Name:        "wait",
	Description: waitText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"shellIds":{"type":"array","items":{"type":"string"},"description":"The ids of the commands to wait for. All that run if it is missing."},` +
		`"until":{"type":"string","enum":["exit","output","quiet","port","prompt","time"],"description":"What to wait for: the end of the command, output that matches pattern, no output for a while, an open port, a question, or nothing but the time. exit by default."},` +
		`"which":{"type":"string","enum":["any","all"],"description":"Whether one of the commands is enough. any by default."},` +
		`"pattern":{"type":"string","description":"For output: a regular expression (RE2) that a line of the output you have not seen yet is to match."},` +
		`"quiet":{"type":"number","description":"For quiet: how many seconds. 20 by default."},` +
		`"port":{"type":"integer","description":"For port: the TCP port on this machine."},` +
		`"timeout":{"type":"number","description":"How many seconds to wait at most, up to 3600. 120 by default."}}}`),
	Replay: tool.Keyed,
}

// Reasons why a wait is over (the others are statuses of ended commands), values of
// the argument until, and times.
const (
	reasonMatched  = "matched"
	reasonQuiet    = "quiet"
	reasonOpen     = "port_open"
	reasonAsks     = "needs_input"
	reasonTime     = "timeout"
	reasonNothing  = "nothing_runs"
	untilExit      = "exit"
	untilOutput    = "output"
	untilQuiet     = "quiet"
	untilPort      = "port"
	untilPrompt    = "prompt"
	untilTime      = "time"
	defaultTimeout = 120 * time.Second
	maxTimeout     = time.Hour
	defaultQuiet   = 20 * time.Second
)

// waiter is the tool that waits.
type waiter struct{ *Commands }

func (w *waiter) Spec() tool.Spec                                                  { return waitSpec }
func (w *waiter) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// A waitRequest is the parsed arguments of a call: what to wait for.
type waitRequest struct {
	tasks   []string
	until   string
	all     bool
	pattern *regexp.Regexp
	quiet   time.Duration
	port    int64
	timeout time.Duration
}

func (w *waiter) parse(call tool.Call) (waitRequest, error) {
	a := argument.Read(call.Arguments)
	o := waitRequest{tasks: a.Texts(append([]string{"shellIds", "task_ids", "tasks"}, names...)...), quiet: defaultQuiet, timeout: defaultTimeout}
	o.until = a.Choice("until", untilExit, untilOutput, untilQuiet, untilPort, untilPrompt, untilTime)
	o.all = a.Choice("which", "any", "all") == "all"
	if d, name, ok := a.Seconds("timeout", "duration"); ok {
		if o.timeout = min(d, maxTimeout); d <= 0 {
			a.Wrong(name, "Number must be greater than 0")
		}
	}
	if d, name, ok := a.Seconds("quiet", "idle_timeout"); ok {
		if o.quiet = d; d <= 0 {
			a.Wrong(name, "Number must be greater than 0")
		}
	}
	o.parseCondition(a)
	if o.until == untilPort && (call.Sealed || w.Offline) { // ports of this machine are not for such a session to see
		a.Wrong("until", "Commands have a network of their own here, whose ports nobody else can reach: wait for output, or connect in a command")
	}
	return o, a.Err()
}

// parseCondition parses the arguments that only some waits need.
func (o *waitRequest) parseCondition(a *argument.Set) {
	pattern, _ := a.Text("pattern")
	port, hasPort := a.Number("port")
	switch o.until {
	case untilOutput:
		re, err := regexp.Compile(pattern)
		if o.pattern = re; err != nil || pattern == "" {
			a.Wrong("pattern", "Expected a regular expression (RE2), received '%s'", pattern)
		}
	case untilPort:
		if o.port = port; !hasPort || port < 1 || port > 65535 {
			a.Wrong("port", "Expected a number from 1 to 65535")
		}
	}
}

// A waited is the result of a wait.
type waited struct {
	Reason string   `json:"reason"`
	Waited int64    `json:"waited_ms"`
	Tasks  []Result `json:"tasks"`
	Note   string   `json:"note,omitempty"`
}

func (w *waiter) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	o, err := w.parse(call)
	if err != nil {
		return finish(ctx, tool.Result{}, err)
	}
	r, err := w.wait(ctx, call, o)
	text := encode(r)
	return finish(ctx, tool.Result{Text: text, Contents: contents("", r.Tasks...), Digest: progressDigest(call, text, r.Tasks...)}, err)
}

// wait waits, and returns what is new about the tasks. A timeout is not a failure.
func (w *waiter) wait(ctx context.Context, call tool.Call, o waitRequest) (waited, error) {
	begun := call.Begun
	if begun.IsZero() {
		begun = time.Now()
	}
	tasks, err := w.chosenTasks(ctx, call, o)
	if err != nil {
		return waited{}, err
	}
	result := waited{Reason: reasonNothing, Tasks: []Result{}}
	if len(tasks) > 0 || o.until == untilTime || o.until == untilPort {
		soon, cancel := context.WithDeadline(ctx, begun.Add(o.timeout))
		result.Reason, err = w.until(soon, tasks, o)
		cancel()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return result, cmp.Or(err, ctx.Err())
	}
	result.Waited = time.Since(begun).Milliseconds()
	for _, t := range tasks {
		r, err := w.waitAndRead(ctx, call, t, 0)
		if err != nil {
			return result, err
		}
		result.Tasks = append(result.Tasks, r)
	}
	result.explain(o)
	return result, nil
}

// explain adds a note about a reason that the model may not expect.
func (r *waited) explain(o waitRequest) {
	switch r.Reason {
	case reasonTime:
		r.Note = "The time is over; nothing was stopped."
	case reasonNothing:
		r.Note = "No command is running."
	case reasonAsks:
		r.Note = "A command seems to wait for input. Answer with write_bash, or stop it with stop_bash."
	case statusCompleted, statusFailed, statusKilled, statusLost:
		if o.until != untilExit {
			r.Note = "The command ended before what you waited for."
		}
	}
}

// chosenTasks returns the tasks that a call waits for: those it names, or else all that run.
func (w *waiter) chosenTasks(ctx context.Context, call tool.Call, o waitRequest) ([]Task, error) {
	if len(o.tasks) == 0 && o.until != untilTime && o.until != untilPort {
		return w.running(ctx, call.Session)
	}
	var tasks []Task
	for _, name := range o.tasks {
		t, err := w.task(ctx, call, name)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// until waits for one of the tasks, or for all of them, and returns the last reason.
func (w *waiter) until(ctx context.Context, tasks []Task, o waitRequest) (string, error) {
	conditions := w.conditions(tasks, o)
	if len(conditions) == 0 {
		<-ctx.Done()
		return reasonTime, ctx.Err()
	}
	return waitConditions(ctx, conditions, o.all)
}

// A condition is a function that waits for something and returns the reason.
type condition func(ctx context.Context) (string, error)

// conditions returns one condition for each task. If the call waits for a port, the
// open port meets each of them too.
func (w *waiter) conditions(tasks []Task, o waitRequest) []condition {
	var list []condition
	for _, t := range tasks {
		list = append(list, func(ctx context.Context) (string, error) { return waitConditions(ctx, w.taskConditions(t, o), false) })
	}
	if o.until == untilPort {
		open := func(ctx context.Context) (string, error) { return reasonOpen, waitPort(ctx, o.port) }
		if len(list) == 0 {
			return []condition{open}
		}
		for i, ends := range list {
			list[i] = func(ctx context.Context) (string, error) { return waitConditions(ctx, []condition{open, ends}, false) }
		}
	}
	return list
}

// taskConditions returns the conditions for a task, one of which must be met. The end of the
// task and a question are always among them: after these no further waiting helps.
func (w *waiter) taskConditions(t Task, o waitRequest) []condition {
	p := t.Process
	list := []condition{func(ctx context.Context) (string, error) {
		info, err := w.Processes.Wait(ctx, p.Owner, p.ID)
		return statusOf(info), err
	}}
	if o.until == untilTime {
		return nil
	}
	if p.Stdin || p.TTY {
		list = append(list, func(ctx context.Context) (string, error) {
			_, _, err := waitPrompt(ctx, w.Processes, p)
			return reasonAsks, err
		})
	}
	switch o.until {
	case untilOutput:
		list = append(list, func(ctx context.Context) (string, error) {
			return reasonMatched, waitMatch(ctx, w.Processes, p, t.unread(), o.pattern)
		})
	case untilQuiet:
		list = append(list, func(ctx context.Context) (string, error) {
			_, err := waitQuiet(ctx, w.Processes, p, o.quiet)
			return reasonQuiet, err
		})
	}
	return list
}

// waitConditions runs conditions until one of them is met, or all are, and returns the reason
// of the last. A condition that cannot be met any more, because the process has ended,
// is ignored. All goroutines have ended when gather returns.
func waitConditions(ctx context.Context, conditions []condition, all bool) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	type met struct {
		reason string
		err    error
	}
	results := make(chan met, len(conditions))
	for _, c := range conditions {
		running.Go(func() {
			reason, err := c(ctx)
			results <- met{reason, err}
		})
	}
	reason := reasonTime
	for range conditions {
		m := <-results
		switch {
		case errors.Is(m.err, process.ErrEnded):
			continue
		case m.err != nil:
			return reasonTime, m.err
		}
		if reason = m.reason; !all {
			return reason, nil
		}
	}
	return reason, nil
}

// maxLine is the number of bytes of an incomplete line that are kept for matching.
const maxLine = 64 << 10

// waitMatch waits until a line of the output after an offset matches. An incomplete
// line can match too.
func waitMatch(ctx context.Context, in Processes, p process.Info, at int64, pattern *regexp.Regexp) error {
	var line []byte
	for {
		chunk, err := waitMore(ctx, in, p, at)
		if err != nil {
			return err
		}
		at = chunk.Next
		text := clean(append(line, chunk.Data...))
		for l := range strings.Lines(text) {
			if pattern.MatchString(strings.TrimSuffix(l, "\n")) {
				return nil
			}
		}
		line = append(line, chunk.Data...)
		line = line[strings.LastIndexByte(string(line), '\n')+1:]
		line = line[max(0, len(line)-maxLine):]
	}
}

// waitPort waits until a program listens on a TCP port of this machine.
func waitPort(ctx context.Context, port int64) error {
	const first, most = 20 * time.Millisecond, time.Second
	address := net.JoinHostPort("localhost", strconv.FormatInt(port, 10))
	for wait := first; ; wait = min(2*wait, most) {
		d := net.Dialer{Timeout: most}
		if conn, err := d.DialContext(ctx, "tcp", address); err == nil {
			return conn.Close()
		}
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
	}
}
