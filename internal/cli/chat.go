package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/screen"
	"github.com/abide-run/abide/internal/tui/text"
	"github.com/abide-run/abide/internal/workspace/local/walk"
)

// chats reports whether the program was started by a person at a terminal who wants to
// talk: both sides are terminals that can be drawn on.
func (a *app) chats() bool { return terminal(a.in) != nil && terminal(a.out) != nil }

// chat runs the chat. Leaving it stops nothing: what is under way goes on.
func (a *app) chat(ctx context.Context, f *runFlags) error {
	if err := f.checkChat(); err != nil {
		return err
	}
	var ended tui.Result
	a.detached = true
	err := a.withClient(ctx, func(c *client.Client) error {
		s := &chatSessions{app: a, flags: f, client: c}
		first, err := s.first(ctx)
		if err != nil {
			return err
		}
		o := s.options(first)
		back := a.divertErrors(o.Messages)
		defer back()
		ended, err = tui.Run(ctx, o)
		return err
	})
	if err == nil && ended.Session != "" {
		a.out.printf("%s\n", paint(a.out).in(faint, a.farewell(ended)))
	}
	return err
}

// checkChat returns an error if flags make no sense in a chat.
func (f *runFlags) checkChat() error {
	if err := f.check(); err != nil {
		return err
	}
	if len(f.answers) > 0 || len(f.attach) > 0 || f.schema != "" || f.detach || f.format != formatText {
		return usagef("--answer, --attach, --output-schema, --detach and --output-format are for abide run, which takes a prompt")
	}
	return nil
}

// dumb reports whether the terminal cannot be drawn on.
func dumb() bool { return os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" }

// plainChat is a chat in which nothing is drawn twice: each line that is typed is a
// message, and what comes of it is printed as abide run prints it.
func (a *app) plainChat(ctx context.Context, f *runFlags) error {
	if err := f.checkChat(); err != nil {
		return err
	}
	a.opts.signals.catch(syscall.SIGQUIT)
	a.plain = true
	flags := *f
	return a.withClient(ctx, func(c *client.Client) error {
		for again := false; ; again = true {
			line, err := a.readLine(ctx)
			if err != nil || line == "/quit" {
				return err
			}
			r := a.newRunner(&flags)
			r.client, r.again = c, again
			if err := r.run(ctx, line); errors.Is(err, errInterrupted) {
				return r.end(ctx, r.stop(ctx))
			} else if err = r.end(ctx, err); ctx.Err() != nil {
				return err
			} else if err != nil {
				a.err.printf("abide: %s\n", plain(protocol.ReplaceAllString(err.Error(), "")))
			}
			if r.id != "" {
				flags = runFlags{format: formatText, resume: string(r.id), model: f.model, scenario: f.scenario, effort: f.effort, yolo: f.yolo}
			}
		}
	})
}

// readLine asks for a message, and returns the line that is typed. At the end of input it
// returns /quit.
func (a *app) readLine(ctx context.Context) (string, error) {
	for {
		a.err.printf("you: ")
		typed := make(chan string, 1)
		go func() { // ends with the process if nothing is typed
			buf := make([]byte, maxLine)
			n, err := a.in.Read(buf)
			if err != nil || n == 0 {
				typed <- "/quit"
				return
			}
			typed <- strings.TrimSpace(string(buf[:n]))
		}()
		select {
		case line := <-typed:
			if line != "" {
				return line, nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// farewell says how to come back to a session, and what becomes of it.
func (a *app) farewell(r tui.Result) string {
	state := "session " + string(r.Session)
	switch {
	case r.Asked:
		state += ": a question waits"
	case r.Working && a.stays:
		state += ": the turn goes on"
	case r.Working:
		state += ": the turn waits"
	}
	return state + "; to come back: abide --resume " + string(r.Session)
}

// chatSessions opens the sessions of a chat.
type chatSessions struct {
	app    *app
	flags  *runFlags
	client *client.Client
}

// first returns the session that the flags name; empty for a new one.
func (s *chatSessions) first(ctx context.Context) (event.SessionID, error) {
	if !s.flags.resumes() {
		return "", nil
	}
	r := &runner{app: s.app, flags: s.flags, client: s.client}
	info, err := r.findSession(ctx)
	return info.SessionID, err
}

// options returns what the chat needs to know.
func (s *chatSessions) options(first event.SessionID) tui.Options {
	dir, _ := s.app.here() // opening a session says what is wrong
	return tui.Options{
		Client: s.client, In: terminal(s.app.in), Out: terminal(s.app.out), Screen: screenOptions(),
		Blocks:   block.Options{Describe: describeEvent, Asked: askedAbout},
		Dir:      dir,
		Version:  s.app.opts.Version,
		Notify:   true,
		Open:     s.open,
		First:    first,
		Question: s.question,
		Files:    func(ctx context.Context) ([]string, error) { return projectFiles(ctx, dir) },
		Reports:  s.reports(),
		Messages: make(chan string, 100),
		Export: func(ctx context.Context, id event.SessionID, name string) error {
			return exportFile(ctx, s.client, id, name)
		},
	}
}

// screenOptions returns how the terminal is written to, by its environment.
func screenOptions() screen.Options {
	return screen.Options{
		Encoder: text.Encoder{NoColour: os.Getenv("NO_COLOR") != "", ASCII: !knowsUTF8()},
		Rigid:   os.Getenv("XTERM_VERSION") != "" || os.Getenv("TERM") == "linux",
	}
}

// knowsUTF8 reports whether the terminal shows more than ASCII. One whose locale is not
// set does, today.
func knowsUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(os.Getenv(name)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return true
}

// open opens a session, or makes one.
func (s *chatSessions) open(ctx context.Context, id event.SessionID) (tui.Session, error) {
	flags := *s.flags
	r := &runner{app: s.app, flags: &flags, client: s.client, id: id}
	if id == "" {
		return s.create(ctx, r)
	}
	info, err := s.client.Metadata(ctx, id)
	switch {
	case err != nil:
		return tui.Session{}, err
	case info == nil:
		return tui.Session{}, fmt.Errorf("there is no session %s any more", id)
	case info.Abide != nil && info.Abide.Damage != "":
		return tui.Session{}, fmt.Errorf("%s; see: abide sessions verify %s", info.Abide.Damage, id)
	}
	p, err := r.openParams()
	if err != nil {
		return tui.Session{}, err
	}
	keep := true
	p.ContinuePending, p.InfiniteSessions = &keep, nil
	stream := s.client.Watch(id)
	_, err = s.client.Resume(ctx, p)
	return tui.Session{ID: id, Dir: place(*info), Stream: stream}, err
}

// create makes a session.
func (s *chatSessions) create(ctx context.Context, r *runner) (tui.Session, error) {
	r.id = event.SessionID(event.NewID())
	r.flags.resume, r.flags.last = "", false
	p, err := r.openParams()
	if err != nil {
		return tui.Session{}, err
	}
	p.InfiniteSessions = nil
	elsewhere, err := r.elsewhere()
	if err != nil {
		return tui.Session{}, err
	}
	if elsewhere && r.flags.workspace != "" {
		if err := r.checkChoice(ctx, r.flags.workspace); err != nil {
			return tui.Session{}, err
		}
	}
	if !elsewhere {
		if p.WorkingDirectory, err = s.app.here(); err != nil {
			return tui.Session{}, err
		}
	}
	stream := s.client.Watch(r.id)
	_, err = s.client.Create(ctx, p)
	return tui.Session{ID: r.id, Dir: p.WorkingDirectory, Stream: stream, New: true}, err
}

// askedAbout returns what a question is about, in one line; empty if an event asks
// nothing.
func askedAbout(e event.Event) string {
	q, ok, err := questionOf(e)
	if !ok || err != nil {
		return ""
	}
	switch r := q.request(); {
	case r.Kind == "shell":
		return text.OneLine(clip(inLine(r.FullCommandText), maxAbout))
	case r.Kind == "write":
		return "write " + inLine(r.FileName)
	case r.Kind == "read":
		return "read " + inLine(r.Path)
	case r.Kind == "url":
		return "fetch " + inLine(r.URL)
	case q.Input != nil:
		return text.OneLine(clip(inLine(q.Input.Question), maxAbout))
	}
	return text.OneLine(clip(inLine(q.sentence()), maxAbout))
}

// maxAbout is the number of columns of what a question is about.
const maxAbout = 300

// question returns the question that an event asks, if a person can answer it here.
func (s *chatSessions) question(e event.Event) (tui.Question, bool) {
	q, ok, err := questionOf(e)
	if !ok || err != nil || q.Form != nil && q.CallID == "" && !q.asksBudget() && q.Form.Message == "" {
		return nil, false
	}
	return &chatQuestion{q, s.client}, true
}

// A chatQuestion is a question in the chat.
type chatQuestion struct {
	question
	client *client.Client
}

func (q *chatQuestion) ID() string { return q.RequestID }

// lines returns what f writes for some columns.
func (q *chatQuestion) lines(columns int, f func(*sheet)) []text.Line {
	s := &sheet{paint: painter{true}, most: columns}
	f(s)
	return text.Parse(s.String())
}

func (q *chatQuestion) Lines(columns int, all bool) []text.Line {
	how := excerpts
	if all {
		how = whole
	}
	return q.lines(columns, func(s *sheet) { q.on(s, how) })
}

func (q *chatQuestion) Explain(columns int) []text.Line {
	return q.lines(columns, func(s *sheet) {
		if q.Permission == nil {
			q.on(s, excerpts)
			return
		}
		q.meaningOn(s)
	})
}

func (q *chatQuestion) Keys() string {
	keys := q.keys()
	if q.WantsText() {
		return keys
	}
	for _, end := range []string{", or say what to do instead:", ", or say what to change:", ":"} {
		if cut, found := strings.CutSuffix(keys, end); found {
			keys = cut
			break
		}
	}
	if q.asksBudget() || q.asksSampling() {
		return keys + "; [Tab] later"
	}
	return keys + "; [r] say what to do instead; [d] show everything; [Tab] later"
}

// Answer returns the answer that a key stands for. The keys are the same in every
// question.
func (q *chatQuestion) Answer(key string) (string, bool) {
	switch {
	case q.WantsText():
		return "", false
	case key == "y":
		return "yes", true
	case key == "n":
		return "no", true
	case q.asksSampling() && key == "a":
		return samplingAlways, true
	case q.Permission == nil:
		return "", false
	}
	if o, ok := q.offer(key); ok && len(key) == 1 && o.ID != event.OfferOnce {
		return o.ID, true
	}
	return "", false
}

func (q *chatQuestion) WantsText() bool {
	return q.Permission == nil && q.Plan == nil && !q.asksBudget() && !q.asksSampling()
}

func (q *chatQuestion) Send(ctx context.Context, id event.SessionID, answer string) (string, bool, error) {
	won, err := q.answer(ctx, q.client, id, q.typed(answer))
	if again, ok := errors.AsType[*unclear](err); ok {
		return again.text, false, nil
	}
	if hasChanged(err) {
		return strings.Trim(questionChanged, "()"), false, tui.ErrChanged
	}
	if err != nil {
		return "", false, err
	}
	return strings.Trim(q.outcome(answer, won), "()"), true, nil
}

// projectFiles lists the files below a folder that are not ignored, by their relative
// paths.
func projectFiles(ctx context.Context, dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	s, err := scope.New([]scope.Rule{{Target: "/", Mode: scope.Read}}, nil)
	if err != nil {
		return nil, err
	}
	d, err := s.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var files []string
	_, err = walk.Tree(ctx, d, walk.Options{Honour: true, Ignore: walk.Above(s, dir), Filter: leaveGit}, func(_ int, f walk.File) error {
		mu.Lock()
		defer mu.Unlock()
		if files = append(files, f.Path+f.Name); len(files) >= maxFiles {
			cancel(errEnough)
		}
		return nil
	})
	slices.Sort(files)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return files, err
}

// maxFiles is the number of files that are offered to complete a name.
const maxFiles = 50_000

// errEnough ends the search for files.
var errEnough = errors.New("enough files")

// leaveGit leaves out what git keeps about a repository.
func leaveGit(_, name string, isFolder bool) walk.Choice {
	if isFolder && name == ".git" {
		return walk.Leave
	}
	return walk.Neither
}

// reports are the commands of the chat that show what a command of the program prints.
func (s *chatSessions) reports() []tui.Report {
	printed := func(f func(ctx context.Context, a *app, id event.SessionID) error) func(context.Context, event.SessionID, int) (string, error) {
		return func(ctx context.Context, id event.SessionID, _ int) (string, error) {
			var b bytes.Buffer
			sub := *s.app
			sub.out = &printer{w: &b}
			sub.err = sub.out
			err := f(ctx, &sub, id)
			return b.String(), err
		}
	}
	return []tui.Report{
		{Name: "context", About: "what fills the window of the model", Text: func(ctx context.Context, id event.SessionID, columns int) (string, error) {
			r, err := s.client.Context(ctx, id)
			if err != nil {
				return "", err
			}
			var b bytes.Buffer
			err = windowView{r: r, paint: painter{true}, maxWidth: columns}.write(io.Writer(&b), id)
			return b.String(), err
		}},
		{Name: "cost", About: "what the session has cost", Text: printed(func(ctx context.Context, a *app, id event.SessionID) error {
			by := []string{"model", "purpose"}
			r, err := s.client.Cost(ctx, api.CostParams{SessionID: id, By: by})
			if err != nil {
				return err
			}
			return a.printCosts(r, by)
		})},
		{Name: "questions", About: "open questions of all sessions", Text: printed(func(ctx context.Context, a *app, _ event.SessionID) error {
			open, err := s.client.Questions(ctx, "")
			if err != nil {
				return err
			}
			list, err := asked(open)
			if err != nil {
				return err
			}
			return a.printQuestions(list)
		})},
		{Name: "memory", About: "what is remembered of this project", Text: printed(func(ctx context.Context, a *app, _ event.SessionID) error {
			found, err := s.client.Memory(ctx, api.MemoryParams{Cwd: here()})
			if err != nil {
				return err
			}
			return a.printBooks(found.Books)
		})},
		{Name: "rules", About: "what is allowed for longer than a session", Text: printed(func(ctx context.Context, a *app, _ event.SessionID) error {
			rules, err := s.client.Rules(ctx)
			if err != nil {
				return err
			}
			return a.listRules(rules)
		})},
	}
}
