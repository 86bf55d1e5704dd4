package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	engine "github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/window"
)

// longSessionVariable is the environment variable that makes this program run one session
// with that number of turns, in its working directory, and print the results. In a process
// of its own, the memory is that of the session alone.
const longSessionVariable = "ABIDE_BENCH_CONTEXT"

const (
	longSessionName  = "context: one session in a small window"
	longSessionTurns = 10_000
)

var longSessionLimits = window.Limits{Window: 16_000, Output: 1000}

// A tenth is a tenth of a long session.
type tenth struct {
	Turn        time.Duration // median time of a turn
	Resident    int64         // resident memory at its end, in bytes
	Tokens      int           // tokens of all messages, calls and results
	Compactions int
}

// measureLongSession measures whether turns of a session cost the same after thousands of
// turns as at its beginning, although its history is much larger than the model's window.
func measureLongSession(at place, only string) (err error) {
	if !strings.Contains(longSessionName, only) {
		return nil
	}
	at = at.below("context")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Dir, cmd.Stderr, cmd.Env = at.dir, os.Stderr, append(os.Environ(), longSessionVariable+"="+strconv.Itoa(longSessionTurns))
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", longSessionName, err)
	}
	var way []tenth
	if err := json.Unmarshal(out, &way); err != nil {
		return fmt.Errorf("%s: %w", longSessionName, err)
	}
	printLongSession(way)
	return nil
}

func printLongSession(way []tenth) {
	fmt.Printf("\n%s of %d tokens: %d turns with calls of random size; the last tenth beside the first\n", longSessionName, longSessionLimits.Window, longSessionTurns)
	first, last := way[0], way[len(way)-1]
	t := compare.NewTable(os.Stdout, "", "first", "last", "ratio")
	t.Row("median turn µs", first.Turn.Microseconds(), last.Turn.Microseconds(), ratio(last.Turn, first.Turn))
	t.Row("resident MiB", mebibytes(first.Resident), mebibytes(last.Resident), ratio(last.Resident, first.Resident))
	t.Row("compactions per million tokens", first.perMillion(), last.perMillion(), ratio(last.perMillion(), first.perMillion()))
	t.Print()
}

func ratio[T int | int64 | time.Duration](a, b T) string {
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

func (s tenth) perMillion() int { return s.Compactions * 1_000_000 / max(1, s.Tokens) }

// longSessionProcess runs the session that the environment variable asks for.
func longSessionProcess() {
	turns, err := strconv.Atoi(os.Getenv(longSessionVariable))
	if err != nil {
		return
	}
	dir, err := os.Getwd()
	var way []tenth
	if err == nil {
		way, err = runLongSession(place{dir: dir}, turns)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(way)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A runner runs a session. It is also the model of the session, which makes calls, and
// the tool, which returns long results.
type runner struct {
	ours    *ours
	session *ourSession

	mu     sync.Mutex
	rand   *rand.Rand
	left   int // number of answers with calls that are left in this turn
	calls  int
	tokens int
	failed error
}

// runLongSession runs a session with the given number of turns, and returns the results of
// each tenth of it.
func runLongSession(at place, turns int) (way []tenth, err error) {
	o, err := openOurs(at)
	if err != nil {
		return nil, err
	}
	defer o.store.Close()
	r := &runner{ours: o, rand: rand.New(rand.NewPCG(1, 2))}
	o.opts.Tools = []tool.Tool{r}
	o.opts.Resolve = func(context.Context, provider.Choice) (engine.Endpoint, error) {
		return engine.Endpoint{Model: r, Name: "runner", Window: longSessionLimits.Window, Output: longSessionLimits.Output}, nil
	}
	if r.session, err = o.create(event.SessionConfiguredData{Model: "runner"}); err != nil {
		return nil, err
	}
	defer r.session.close()
	for range 10 {
		s, err := r.run(turns / 10)
		if err != nil {
			return nil, err
		}
		way = append(way, s)
	}
	return way, nil
}

// run runs some turns.
func (r *runner) run(turns int) (s tenth, err error) {
	tokens, before := r.tokens, r.epochs()
	var took []time.Duration
	for n := range turns {
		prompt := fmt.Sprintf("Turn %d: go on. %s", n, strings.Repeat("Please. ", n%50))
		r.begin(prompt)
		begun := time.Now()
		if _, err = r.session.turn(prompt, false); err == nil {
			err = r.failed
		}
		if err != nil {
			return s, err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	s = tenth{Turn: took[len(took)/2], Tokens: r.tokens - tokens, Compactions: r.epochs() - before}
	s.Resident, err = memory(os.Getpid(), "status", "VmRSS")
	return s, err
}

func (r *runner) begin(prompt string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = r.rand.IntN(4)
	r.tokens += window.Tokens(prompt)
}

// epochs returns the number of compactions so far.
func (r *runner) epochs() int {
	f, err := r.session.host.Context.Fill(context.Background(), r.session.id)
	must(err)
	return f.Epoch
}

// Ask implements model.Model. It returns some answers with calls, and then one without. A
// request that does not fit into the window ends the measurement.
func (r *runner) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m window.Meter
	size := m.Read(req).Tokens
	if size > longSessionLimits.Request() {
		r.failed = fmt.Errorf("a request has %d tokens, and there is room for %d", size, longSessionLimits.Request())
	}
	reply := &model.Reply{Text: "It is done.", Finish: "stop", Usage: model.Usage{Input: int64(size), Output: 4}}
	switch {
	case strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, "Please create a detailed summary"):
		reply.Text = fmt.Sprintf("<overview>%d calls were made.</overview>%s", r.calls, strings.Repeat(" More was done.", r.rand.IntN(60)))
		return reply, nil
	case r.left > 0:
		r.left--
		reply.Text = ""
		for range 1 + r.rand.IntN(3) {
			r.calls++
			reply.Calls = append(reply.Calls, model.Call{ID: fmt.Sprintf("c%d", r.calls), Name: "act", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, r.calls))})
		}
	}
	r.tokens += window.Of(&model.Message{Text: reply.Text, Calls: reply.Calls})
	return reply, nil
}

// Spec implements tool.Tool.
func (r *runner) Spec() tool.Spec { return tool.Spec{Name: "act", Description: "Does something."} }

// Permission implements tool.Tool. No permission is needed.
func (r *runner) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run implements tool.Tool. It returns a result of random length, which sometimes does not
// fit into the window.
func (r *runner) Run(context.Context, tool.Call) (tool.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.rand.IntN(1 + r.rand.IntN(12_000))
	if r.rand.IntN(200) == 0 {
		size = 6 * longSessionLimits.Window
	}
	text := strings.Repeat("x y z\n", size/6)
	r.tokens += window.Of(&model.Message{Text: text})
	return tool.Result{Text: text}, nil
}
