package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	notes "github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/memory/worker"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	engine "github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/recall"
	"github.com/abide-run/abide/internal/window"
)

// The parameters of the measurement of what is still known late in long work.
const (
	recallName        = "recall: what was said early is in a late request"
	recallSessions    = 3 // sessions with facts; memory is consolidated after each
	recallCompactions = 7 // compactions of each session at least, before anything is asked
	resultBytes       = 8000
	recallFound       = 95 // per cent of the facts asked for that have to be in the request
)

var recallLimits = window.Limits{Window: 16_000, Output: 1000}

// A planted fact is a fact, a constraint or a preference that is mentioned once, early.
type planted struct {
	said     string // the sentence
	question string // what is asked late
	key      string // the part of the sentence that answers it
	by       teller
}

// A teller is who mentions a fact.
type teller int

const (
	byUser  teller = iota // a message of the user
	byTool                // the result of a call
	byModel               // an answer
)

// A tongue is a language with what is said in it.
type tongue struct {
	name    string
	goOn    string // what the user says when there is nothing new
	filler  string // a sentence of results and answers that says nothing
	planted []planted
}

// measureRecall runs the same work three times: with compaction and memory, with compaction
// alone, and with as many of the newest messages as fit. Facts that are mentioned early are
// asked for late, in the same session after many compactions and in a new session after
// consolidations. The model, which also summarises and extracts, follows fixed rules that know
// nothing of the facts.
func measureRecall(at place, only string) (err error) {
	defer stopping(&err)
	if !strings.Contains(recallName, only) {
		return nil
	}
	fmt.Printf("\n%s, in a window of %d tokens; facts found of those asked for\n", recallName, recallLimits.Window)
	t := compare.NewTable(os.Stdout, "language", "asked", "abide", "without memory", "newest messages", "compactions", "consolidations")
	var lost []string
	found, asked := 0, 0
	for _, l := range tongues {
		with, without := runRecall(at, l, true), runRecall(at, l, false)
		t.Row(l.name+", same session", with.same.asked, with.same.found, without.same.found, with.newest.same, with.compactions, with.consolidations)
		t.Row(l.name+", new session", with.later.asked, with.later.found, without.later.found, with.newest.later, "", "")
		found, asked = found+with.same.found+with.later.found, asked+with.same.asked+with.later.asked
		lost = append(lost, with.lost...)
	}
	t.Print()
	for _, text := range lost {
		fmt.Println("lost:", text)
	}
	fmt.Printf("in all: %d of %d, %.1f %% (%d)\n", found, asked, 100*float64(found)/float64(asked), recallFound)
	if found*100 < asked*recallFound {
		return fmt.Errorf("%s: %d of %d facts, want %d %%", recallName, found, asked, recallFound)
	}
	return nil
}

// A score counts the facts that were asked for, and those of them that were in the request.
type score struct{ asked, found int }

// A recalled is the outcome of a run.
type recalled struct {
	same, later score // asked in the same session, and in a new one
	newest      struct{ same, later int }
	lost        []string

	compactions, consolidations int
}

// A worked is the work of a run: a host, and the model that answers, summarises and extracts.
type worked struct {
	tongue   tongue
	memory   bool
	store    *sqlite.Store
	host     *engine.Host
	worker   *worker.Worker
	dir      string
	sessions int

	mu      sync.Mutex
	pending []planted        // facts that the next result or answer mentions
	asking  bool             // true while a question is answered
	calls   int              // number of calls so far
	left    int              // calls that are left in this turn
	last    *model.Request   // last request of a turn
	said    []*model.Message // everything that was said in the session, as one that keeps all would have it
}

// runRecall does the work of a language.
func runRecall(at place, l tongue, memory bool) (r recalled) {
	dir := got(os.MkdirTemp(at.dir, "recall-"))
	w := &worked{tongue: l, memory: memory, dir: workspaceIn(dir, "work")}
	w.store = got(sqlite.Open(context.Background(), filepath.Join(dir, "abide.db"), sqlite.Options{Sync: eventlog.Normal})) // no time is measured
	defer func() { must(w.store.Close()) }()
	books := book.NewSet(filepath.Join(dir, "memory"), notes.Kinds...)
	opts := engine.Options{Version: "bench", Tools: []tool.Tool{w}}
	opts.Resolve = func(context.Context, provider.Choice) (engine.Endpoint, error) {
		return engine.Endpoint{Model: w, Name: "worker", Window: recallLimits.Window, Output: recallLimits.Output}, nil
	}
	if memory {
		w.worker = worker.New(w.store, books, worker.Options{})
		opts.Memory = w.worker.Session()
		opts.Tools = []tool.Tool{w, recall.New(w.store, books)}
	}
	w.host = engine.New(w.store, opts)
	defer w.host.Close()
	if memory {
		w.worker.SetHost(w.host)
		w.worker.Start()
		defer w.worker.Stop()
	}
	each := len(l.planted) / recallSessions
	for n := range recallSessions {
		facts := l.planted[n*each : (n+1)*each]
		s := w.open()
		w.plant(s, facts)
		before := got(w.epochs(s))
		for rounds := 0; got(w.epochs(s))-before < recallCompactions; rounds++ {
			if rounds > 500 {
				must(fmt.Errorf("%s: %d compactions after 500 turns", l.name, got(w.epochs(s))))
			}
			w.turn(s, l.goOn)
		}
		r.compactions += got(w.epochs(s))
		for _, f := range facts {
			w.check(s, f, &r.same, &r.newest.same, &r.lost, "same session")
		}
		if memory {
			id := got(w.host.Memory.Schedule(context.Background(), s.id))
			must(w.worker.Wait(context.Background(), id))
			r.consolidations++
		}
		w.host.Detach(s.id, s.client, false)
	}
	s := w.open()
	for _, f := range l.planted {
		w.check(s, f, &r.later, &r.newest.later, &r.lost, "new session")
	}
	return r
}

// open creates a session.
func (w *worked) open() *ourSession {
	w.sessions++
	w.said = nil
	id := event.SessionID(fmt.Sprintf("%s-%v-%d", w.tongue.name, w.memory, w.sessions))
	s := &ourSession{id: id, host: w.host, idle: make(chan error, 1)}
	zero := 0.0
	config := event.SessionConfiguredData{
		WorkingDirectory: w.dir, Model: "worker", Memory: event.MemoryRules{IdleMs: 1 << 40},
		Compaction: event.CompactionRules{KeepAll: true},       // shortened results would need more turns for a compaction, and change nothing else
		Infinite:   &event.InfiniteSessions{Background: &zero}, // what runs beside a turn would make figures differ between runs
	}
	got(w.host.Create(context.Background(), id, engine.Spec{Config: config}, nil))
	return s
}

// plant has the facts mentioned, each in a turn of its own.
func (w *worked) plant(s *ourSession, facts []planted) {
	for _, f := range facts {
		prompt := f.said
		if f.by != byUser {
			prompt = w.tongue.goOn
			w.mu.Lock()
			w.pending = append(w.pending, f)
			w.mu.Unlock()
		}
		w.turn(s, prompt)
	}
}

// turn runs a turn with some calls.
func (w *worked) turn(s *ourSession, prompt string) {
	w.mu.Lock()
	w.left = 2
	w.said = append(w.said, &model.Message{Role: model.User, Text: prompt})
	w.mu.Unlock()
	got(s.turn(prompt, false))
}

// check asks for a fact, and finds out whether the request that is answered has it.
func (w *worked) check(s *ourSession, f planted, of *score, newest *int, lost *[]string, where string) {
	w.mu.Lock()
	w.asking, w.left = true, 0
	if w.memory {
		w.left = 1
	}
	w.said = append(w.said, &model.Message{Role: model.User, Text: f.question})
	if slices.ContainsFunc(newestOf(w.said, recallLimits.Request()), func(m *model.Message) bool { return strings.Contains(m.Text, f.key) }) {
		*newest++
	}
	w.mu.Unlock()
	got(s.turn(f.question, false))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking = false
	of.asked++
	if strings.Contains(w.last.System, f.key) || slices.ContainsFunc(w.last.Messages, func(m *model.Message) bool { return strings.Contains(m.Text, f.key) }) {
		of.found++
	} else if w.memory {
		*lost = append(*lost, fmt.Sprintf("%s, %s: %q", w.tongue.name, where, f.said))
	}
}

// newestOf returns the newest messages that fit.
func newestOf(all []*model.Message, tokens int) []*model.Message {
	first := len(all)
	for first > 0 {
		if tokens -= window.Of(all[first-1]); tokens < 0 {
			break
		}
		first--
	}
	return all[first:]
}

// epochs returns the number of compactions of a session.
func (w *worked) epochs(s *ourSession) (int, error) {
	f, err := w.host.Context.Fill(context.Background(), s.id)
	return f.Epoch, err
}

// Ask implements model.Model.
func (w *worked) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	newest := req.Messages[len(req.Messages)-1]
	switch {
	case req.Tools != nil && len(req.Tools.List) == 1 && req.Tools.List[0].Name == notes.WriteExtracted:
		return extractByRule(newest.Text), nil
	case strings.HasPrefix(newest.Text, "Please create a detailed summary"):
		return &model.Reply{Text: summariseByRule(req), Finish: model.FinishStop}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = req
	reply := &model.Reply{Finish: model.FinishStop, Text: w.tongue.filler}
	if w.left > 0 {
		w.left--
		w.calls++
		name, arguments := "act", []byte(`{}`)
		if w.asking {
			name, arguments = "memory_search", got(json.Marshal(map[string]string{"query": w.said[len(w.said)-1].Text}))
		}
		reply.Text = ""
		reply.Calls = []model.Call{{ID: fmt.Sprintf("c%d", w.calls), Name: name, Arguments: arguments}}
		return reply, nil
	}
	if said, ok := w.mention(byModel); ok {
		reply.Text = said + " " + reply.Text
	}
	w.said = append(w.said, &model.Message{Role: model.Assistant, Text: reply.Text})
	return reply, nil
}

// mention returns the next fact that is to be mentioned by a teller.
func (w *worked) mention(by teller) (string, bool) {
	if len(w.pending) == 0 || w.pending[0].by != by {
		return "", false
	}
	said := w.pending[0].said
	w.pending = w.pending[1:]
	return said, true
}

// Spec implements tool.Tool.
func (w *worked) Spec() tool.Spec {
	return tool.Spec{Name: "act", Description: "Does something.", Replay: tool.Pure}
}

// Permission implements tool.Tool. No permission is needed.
func (w *worked) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run implements tool.Tool. Its result is long, and may begin with a fact.
func (w *worked) Run(context.Context, tool.Call) (tool.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Repeat(w.tongue.filler+"\n", 1+resultBytes/len(w.tongue.filler))
	if said, ok := w.mention(byTool); ok {
		text = said + "\n" + text
	}
	w.said = append(w.said, &model.Message{Role: model.ToolRole, CallID: "c", Text: text})
	return tool.Result{Text: text}, nil
}

// The limits of the summariser that follows rules.
const (
	ruleLine    = 200  // bytes of each line
	ruleSummary = 5000 // bytes of a summary
)

// summariseByRule returns a summary: the summary so far, and the first sentence of each answer
// and each result that is not there yet. If there is no room, the oldest lines go.
func summariseByRule(req *model.Request) string {
	var lines []string
	seen := make(map[string]bool)
	add := func(line string) {
		line = strings.TrimSpace(line)
		if len(line) > ruleLine {
			line = strings.ToValidUTF8(line[:ruleLine], "")
		}
		if line != "" && !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	for i, m := range req.Messages {
		if _, before, found := strings.Cut(m.Text, "<history>\n"); found {
			for line := range strings.SplitSeq(before, "\n") {
				if strings.TrimSpace(line) == "</history>" {
					break
				}
				add(line)
			}
		}
		if i < len(req.Messages)-1 && (m.Role != model.User || m.CallID != "") {
			first, _, _ := strings.Cut(m.Text, "\n")
			add(firstSentence(first))
		}
	}
	if _, record, found := strings.Cut(req.Messages[len(req.Messages)-1].Text, "\n<record>\n"); found { // it is read in parts
		for line := range strings.SplitSeq(record, "\n") {
			who, said, named := strings.Cut(line, ": ")
			if named && (who == "assistant" || strings.HasPrefix(who, "result of ")) {
				add(firstSentence(said))
			}
		}
	}
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	for len(lines) > 1 && size > ruleSummary {
		size -= len(lines[0]) + 1
		lines = lines[1:]
	}
	return "<overview>Work goes on.</overview>\n<history>\n" + strings.Join(lines, "\n") + "\n</history>"
}

// firstSentence returns the first sentence of a line.
func firstSentence(line string) string {
	for i, r := range line {
		end := i + utf8.RuneLen(r)
		if r == '。' || r == '.' && (end == len(line) || line[end] == ' ') {
			return line[:end]
		}
	}
	return line
}

// extractByRule hands in every message of the user that says something as a request, and the
// first sentence of every result and answer as an attempt.
func extractByRule(text string) *model.Reply {
	_, record, _ := strings.Cut(text, "<record>\n")
	type request struct {
		Intent  string `json:"intent"`
		Summary string `json:"summary"`
		Sources []int  `json:"sources"`
	}
	type attempt struct {
		Action    string `json:"action"`
		Result    string `json:"result"`
		Succeeded bool   `json:"succeeded"`
		Sources   []int  `json:"sources"`
	}
	requests, attempts := []request{}, []attempt{}
	seen := make(map[string]bool)
	for block := range strings.SplitSeq(record, "\n[") { // further lines of a message are indented
		block = strings.TrimPrefix(block, "[")
		var at int
		if _, err := fmt.Sscanf(block, "%d]", &at); err != nil {
			continue
		}
		_, rest, _ := strings.Cut(block, "] ")
		who, said, _ := strings.Cut(rest, ": ")
		if _, dated, found := strings.Cut(said, "</current_datetime>"); found {
			said = dated
		}
		said, _, _ = strings.Cut(strings.TrimSpace(said), "\n")
		said = firstSentence(strings.TrimSpace(said))
		if utf8.RuneCountInString(said) < 10 || seen[said] || strings.ContainsAny(said, "?？") || strings.HasPrefix(who, "assistant calls") {
			continue
		}
		seen[said] = true
		if who == "user" && len(requests) < 50 {
			requests = append(requests, request{said, "", []int{at}})
		} else if who != "user" && len(attempts) < 50 {
			attempts = append(attempts, attempt{said, "", true, []int{at}})
		}
	}
	arguments := got(json.Marshal(map[string]any{"decisions": []any{}, "discussions": []any{}, "attempts": attempts, "requests": requests}))
	return &model.Reply{Calls: []model.Call{{ID: "x", Name: notes.WriteExtracted, Arguments: arguments}}}
}
