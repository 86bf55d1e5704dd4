package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/guard"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A command is a tool that does what a test says.
type command struct {
	act  func()
	task bool // the command goes on in the background
}

func (c *command) Spec() tool.Spec {
	return tool.Spec{Name: "bash", Replay: tool.Keyed, Detaches: true}
}

func (c *command) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

func (c *command) Run(context.Context, tool.Call) (tool.Result, error) {
	if c.act != nil {
		c.act()
	}
	c.act = nil // a call that is repeated finds its process
	return tool.Result{Text: "done", Task: c.task}, nil
}

// A reader is a tool that starts nothing.
type reader struct{ command }

func (*reader) Spec() tool.Spec { return tool.Spec{Name: "read_bash", Replay: tool.Keyed} }

// A fixture is a guard, a home and a project with a repository.
type fixture struct {
	t             *testing.T
	home, project string
	data          string
	guard         *guard.Guard
	command       *command
	bash, reading tool.Tool
	busy          bool
	away          func(call string) bool  // reports whether a call of the workspace finds it away
	place         string                  // name of the workspace
	asked         workspace.SurveyRequest // last look that was about processes
	calls         int
}

// A place is the workspace of a fixture.
type place struct {
	workspace.Guarded
	f *fixture
}

func (p place) Survey(ctx context.Context, r workspace.SurveyRequest) (workspace.Survey, error) {
	if p.f.away("survey") {
		return workspace.Survey{}, workspace.ErrAway
	}
	if r.Owner == "s" || r.Owner == "agent" {
		p.f.asked = r
	}
	found, err := p.Guarded.Survey(ctx, r)
	found.Busy = found.Busy || p.f.busy && r.Owner != ""
	return found, err
}

func (p place) Restore(ctx context.Context, path string, now, want protect.State) error {
	if p.f.away("restore") {
		return workspace.ErrLost
	}
	err := p.Guarded.Restore(ctx, path, now, want)
	if p.f.away("answer") {
		return workspace.ErrLost
	}
	return err
}

func newFixture(t *testing.T) *fixture {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project"), data: filepath.Join(dir, "data"), place: "here", away: func(string) bool { return false }}
	f.write(f.home+"/.bashrc", "mine\n")
	f.write(f.project+"/.git/HEAD", "ref: refs/heads/main\n")
	f.write(f.project+"/.git/config", "[core]\n\tbare = false\n")
	f.restart()
	return f
}

// restart makes another guard on the same folders, as a process does that starts after a
// crash.
func (f *fixture) restart() {
	list := protect.New(protect.Options{Homes: []string{f.home}, Data: f.data})
	ws, err := local.NewServed(f.home, nil, local.Options{List: list})
	if err != nil {
		f.t.Fatal(err)
	}
	f.guard = guard.New(guard.Options{
		Place: func(_ context.Context, id event.SessionID) (workspace.Guarded, string, error) {
			return place{ws.Files, f}, f.place, nil
		},
		Root: func(_ context.Context, id event.SessionID) event.SessionID {
			if id == "agent" {
				return "s"
			}
			return id
		},
		Folder: func(id event.SessionID) (string, error) {
			dir := filepath.Join(f.data, "sessions", string(id))
			return dir, os.MkdirAll(dir, 0o700)
		},
	})
	f.t.Cleanup(f.guard.Close)
	f.command = &command{}
	tools := f.guard.Wrap([]tool.Tool{f.command, &reader{}})
	f.bash, f.reading = tools[0], tools[1]
}

func (f *fixture) write(path, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// content returns what a file holds; "none" if there is no file.
func (f *fixture) content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "none"
	}
	return string(data)
}

func (f *fixture) want(path, text string) {
	f.t.Helper()
	if got := f.content(path); got != text {
		f.t.Errorf("%s holds %q, want %q", path, got, text)
	}
}

func (f *fixture) call() tool.Call {
	f.calls++
	key := string(rune('a' + f.calls))
	return tool.Call{Session: "s", ID: "call-" + key, Key: key, Attempt: 1, Dir: f.project, Arguments: json.RawMessage(`{}`)}
}

// run makes a call of the command.
func (f *fixture) run(call tool.Call, act func()) tool.Result {
	f.t.Helper()
	f.command.act = act
	r, err := f.bash.Run(f.t.Context(), call)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// answer makes a call again after a person has answered its question.
func (f *fixture) answer(call tool.Call, r tool.Result, yes bool) tool.Result {
	f.t.Helper()
	if r.Review == nil {
		f.t.Fatalf("nothing was asked: %+v", r)
	}
	call.Attempt++
	call.Review = &tool.Review{Shown: r.Review, Approved: yes, Feedback: "because"}
	return f.run(call, nil)
}

// TestAChangeIsPutBackAndAskedAbout: with a yes it is made again, with a no it stays put
// back.
func TestAChangeIsPutBackAndAskedAbout(t *testing.T) {
	for _, yes := range []bool{true, false} {
		f := newFixture(t)
		hook, rc := f.project+"/.git/hooks/pre-commit", f.home+"/.bashrc"
		call := f.call()
		r := f.run(call, func() {
			f.write(hook, "evil\n")
			f.write(rc, "theirs\n")
			f.write(f.project+"/code.go", "fine")
		})
		f.want(hook, "none")
		f.want(rc, "mine\n")
		f.want(f.project+"/code.go", "fine")
		shown := string(r.Review)
		for _, part := range []string{`"kind":"write"`, `"toolCallId":"` + call.ID + `"`, hook, rc, `+evil`, `-mine`, `+theirs`, `"canOfferSessionApproval":false`, "a shell runs it"} {
			if !strings.Contains(shown, part) {
				t.Errorf("the question lacks %q: %s", part, shown)
			}
		}
		if !strings.Contains(r.Text, "put back") || !strings.HasPrefix(r.Text, "done") {
			t.Errorf("nobody to ask: %q", r.Text)
		}
		r = f.answer(call, r, yes)
		if r.Review != nil {
			t.Errorf("asked again: %s", r.Review)
		}
		if yes {
			f.want(hook, "evil\n")
			f.want(rc, "theirs\n")
		} else {
			f.want(hook, "none")
			f.want(rc, "mine\n")
		}
		if strings.Contains(r.Text, "User feedback: because") == yes || strings.Contains(r.Text, "The user allowed the change") != yes {
			t.Errorf("yes %v: the model reads %q", yes, r.Text)
		}
		if r := f.run(f.call(), nil); r.Review != nil || r.Text != "done" {
			t.Errorf("a later call: %+v", r)
		}
	}
}

// TestOrdinaryCommandsAreNotNoticed: nothing is asked, and the result is as it was.
func TestOrdinaryCommandsAreNotNoticed(t *testing.T) {
	f := newFixture(t)
	for _, act := range []func(){
		func() {},
		func() { f.write(f.project+"/.git/config", "[core]\n\tbare = false\n[user]\n\tname = Ann\n") },
		func() { f.write(f.project+"/.git/hooks/pre-commit.sample", "x") },
		func() { f.write(f.project+"/.git/index", "x") },
		func() { f.write(f.project+"/.github/workflows/ci.yml", "x") },
		func() { f.write(f.home+"/.cache/x", "x") },
		func() { f.write(f.data+"/abide.db", "x") },
	} {
		if r := f.run(f.call(), act); r.Review != nil || r.Text != "done" {
			t.Errorf("%+v %s", r, r.Review)
		}
	}
	// What is put back later keeps the harmless change.
	r := f.run(f.call(), func() { f.write(f.project+"/.git/config", "[alias]\n\tst = !evil\n") })
	if r.Review == nil || !strings.Contains(f.content(f.project+"/.git/config"), "name = Ann") {
		t.Errorf("%+v; the file holds %q", r, f.content(f.project+"/.git/config"))
	}
}

// TestWhatAPersonChangesBetweenCommandsIsLeftAlone: no command runs, so it was none.
func TestWhatAPersonChangesBetweenCommandsIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.run(f.call(), nil)
	f.write(f.home+"/.bashrc", "mine, longer\n")
	f.write(f.project+"/.git/hooks/pre-commit", "mine")
	if r := f.run(f.call(), nil); r.Review != nil {
		t.Errorf("asked: %s", r.Review)
	}
	f.want(f.home+"/.bashrc", "mine, longer\n")
	r := f.run(f.call(), func() { f.write(f.home+"/.bashrc", "theirs") })
	f.want(f.home+"/.bashrc", "mine, longer\n") // the file is not what it was in the beginning
	if r.Review == nil {
		t.Error("nothing was asked")
	}
}

// TestABackgroundCommandIsLookedAfter: at the next call, at the next request, and when it
// ends; and what it leaves behind is not taken for a person's doing.
func TestABackgroundCommandIsLookedAfter(t *testing.T) {
	rc := func(f *fixture) string { return f.home + "/.bashrc" }
	for name, look := range map[string]func(f *fixture, key string){
		"next command": func(f *fixture, _ string) { f.command.task = false; f.run(f.call(), nil) },
		"other call": func(f *fixture, _ string) {
			if r, err := f.reading.Run(f.t.Context(), f.call()); err != nil || r.Review == nil {
				f.t.Errorf("%+v, %v", r, err)
			}
		},
		"request": func(f *fixture, key string) {
			if _, err := f.guard.Tasks(source{}).Summary(f.t.Context(), "s", []string{key}); err != nil {
				f.t.Error(err)
			}
		},
		"end": func(f *fixture, key string) {
			news, err := f.guard.Tasks(source{}).Watch(f.t.Context(), "s", key, "")
			if err != nil || !strings.Contains(news.Text, "put back") {
				f.t.Errorf("%+v, %v", news, err)
			}
			if r := f.run(f.call(), nil); r.Review == nil { // the next call asks
				f.t.Error("nothing was asked")
			}
		},
		"news": func(f *fixture, key string) {
			if news, ok := f.guard.Tasks(source{}).News(f.t.Context(), "s", key); !ok || !strings.Contains(news.Text, "put back") {
				f.t.Errorf("%+v", news)
			}
		},
		"restart": func(f *fixture, _ string) { f.restart(); f.run(f.call(), nil) },
		"left behind": func(f *fixture, key string) {
			f.write(rc(f), "mine\n")
			f.guard.Tasks(source{}).News(f.t.Context(), "s", key)
			f.busy = true // a process of the command goes on
			f.write(rc(f), "theirs\n")
			f.run(f.call(), nil)
		},
	} {
		f := newFixture(t)
		f.command.task = true
		call := f.call()
		if r := f.run(call, nil); r.Review != nil {
			t.Errorf("%s: asked: %s", name, r.Review)
		}
		f.write(rc(f), "theirs\n")
		look(f, call.Key)
		if got := f.content(rc(f)); got != "mine\n" {
			t.Errorf("%s: the file holds %q", name, got)
		}
	}
}

// source is the background commands of a session, of which each has just ended.
type source struct{}

func (source) Watch(_ context.Context, _ event.SessionID, key, _ string) (event.TaskReportedData, error) {
	return event.TaskReportedData{Key: key, Ended: true, Text: "A command has ended."}, nil
}

func (s source) News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool) {
	news, _ := s.Watch(ctx, id, key, "")
	return news, true
}

func (source) Summary(context.Context, event.SessionID, []string) (string, error) { return "", nil }
func (source) Seen(context.Context, event.SessionID, string)                      {}

// TestACrashLosesNothing: the process dies at each point, and the call is made again.
func TestACrashLosesNothing(t *testing.T) {
	f := newFixture(t)
	rc := f.home + "/.bashrc"
	call := f.call()
	f.run(call, nil) // the first run is lost together with its process
	f.write(filepath.Join(f.data, "sessions/s/protected/running", call.Key), "")
	f.write(rc, "theirs\n")
	f.restart()
	call.Attempt++
	r := f.run(call, nil)
	f.want(rc, "mine\n")
	first := r.Review
	f.restart() // before the question was recorded
	call.Attempt++
	if r = f.run(call, nil); string(r.Review) != string(first) || !strings.Contains(r.Text, "put back") {
		t.Errorf("another question: %s, %s; the model reads %q", r.Review, first, r.Text)
	}
	f.write(rc, "theirs\n") // between storing the change and undoing it
	f.restart()
	call.Attempt++
	if r = f.run(call, nil); string(r.Review) != string(first) {
		t.Errorf("another question: %s, %s", r.Review, first)
	}
	f.want(rc, "mine\n")
	f.restart()
	f.answer(call, r, true)
	f.want(rc, "theirs\n")
	f.restart() // after the answer was carried out, before the result was recorded
	r = f.answer(call, r, true)
	f.want(rc, "theirs\n")
	if r.Review != nil {
		t.Errorf("asked again: %s", r.Review)
	}
}

// TestACrashAfterTheYesKeepsIt: the change was made again, and the note of it was lost.
func TestACrashAfterTheYesKeepsIt(t *testing.T) {
	f := newFixture(t)
	rc := f.home + "/.bashrc"
	call := f.call()
	r := f.run(call, func() { f.write(rc, "theirs\n") })
	f.write(rc, "theirs\n") // the lost process would have written this
	f.restart()
	if r = f.answer(call, r, true); r.Review != nil {
		t.Errorf("asked again: %s", r.Review)
	}
	f.want(rc, "theirs\n")
}

// TestAYesDoesNotOverwrite: the person has changed the file between question and answer.
func TestAYesDoesNotOverwrite(t *testing.T) {
	f := newFixture(t)
	rc := f.home + "/.bashrc"
	call := f.call()
	r := f.run(call, func() { f.write(rc, "theirs\n") })
	f.write(rc, "mine, newer\n")
	r = f.answer(call, r, true)
	if !strings.Contains(r.Text, "could not be made again") {
		t.Errorf("the model reads %q", r.Text)
	}
}

// TestWhatAPersonAllowedElsewhereStays: another session is told to make the change, and
// a command of this one is running.
func TestWhatAPersonAllowedElsewhereStays(t *testing.T) {
	f := newFixture(t)
	rc := f.home + "/.bashrc"
	if r := f.run(f.call(), func() { f.write(rc, "edited"); f.guard.Approve(tool.Call{Session: "other"}, rc, []byte("edited")) }); r.Review != nil {
		t.Errorf("asked: %s", r.Review)
	}
	f.want(rc, "edited")
}

// TestWhatTheQuestionNamedIsNotAskedAgain: the person has seen that the command writes
// the file.
func TestWhatTheQuestionNamedIsNotAskedAgain(t *testing.T) {
	f := newFixture(t)
	rc := f.home + "/.bashrc"
	call := f.call()
	call.Asked, _ = json.Marshal(map[string]any{"protectedPaths": []string{rc}})
	r := f.run(call, func() { f.write(rc, "theirs\n"); f.write(f.home+"/.profile", "theirs\n") })
	f.want(rc, "theirs\n")
	f.want(f.home+"/.profile", "none")
	if r.Review == nil || strings.Contains(string(r.Review), ".bashrc") {
		t.Errorf("asked: %s", r.Review)
	}
}

// TestARepositoryThatACommandMakes: it brings more files to look at, which were there.
func TestARepositoryThatACommandMakes(t *testing.T) {
	f := newFixture(t)
	call := f.call()
	call.Dir = f.project + "/sub/deep"
	f.write(f.project+"/sub/.envrc", "mine")
	f.write(f.project+"/sub/.husky/pre-commit", "mine")
	old := func(path string) { // the clock of the file system is coarse
		for !protect.Look(path, protect.State{}).Before(time.Now()) {
		}
	}
	old(f.project + "/sub/.envrc")
	old(f.project + "/sub/.husky/pre-commit")
	if err := os.MkdirAll(call.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := f.run(call, func() {
		f.write(f.project+"/sub/.git/HEAD", "x")
		f.write(f.project+"/sub/.git/config", "[core]\n")
	})
	if r.Review != nil {
		t.Errorf("asked: %s", r.Review)
	}
	f.want(f.project+"/sub/.envrc", "mine")
	f.want(f.project+"/sub/.husky/pre-commit", "mine")
}

// TestAFolderThatIsExchanged: the files in the new one are old, and still a change.
func TestAFolderThatIsExchanged(t *testing.T) {
	f := newFixture(t)
	f.write(f.home+"/prepared/evil.desktop", "evil")
	for !protect.Look(f.home+"/prepared/evil.desktop", protect.State{}).Before(time.Now()) {
	}
	f.write(f.home+"/.config/autostart/mine.desktop", "mine")
	r := f.run(f.call(), func() {
		os.Rename(f.home+"/.config/autostart", f.home+"/old")
		os.Rename(f.home+"/prepared", f.home+"/.config/autostart")
	})
	f.want(f.home+"/.config/autostart/evil.desktop", "none")
	f.want(f.home+"/.config/autostart/mine.desktop", "mine")
	if r.Review == nil {
		t.Error("nothing was asked")
	}
}

// TestTheFirstLookTakesEverythingAsItIs: a call that is repeated because the process died
// before anything was stored, and one while an unguarded command runs, know of no earlier
// state.
func TestTheFirstLookTakesEverythingAsItIs(t *testing.T) {
	for _, busy := range []bool{false, true} {
		f := newFixture(t)
		f.busy = busy
		call := f.call()
		call.Attempt = 2
		if r := f.run(call, nil); r.Review != nil {
			t.Errorf("asked: %s", r.Review)
		}
		f.want(f.home+"/.bashrc", "mine\n")
	}
}

// TestAProcessThatIsLeftBehindIsLookedAfter: it writes the file after the command has
// ended, and is gone before anybody looks. What a person changes afterwards is left alone.
func TestAProcessThatIsLeftBehindIsLookedAfter(t *testing.T) {
	for name, restart := range map[string]bool{"same engine": false, "after a crash": true} {
		f := newFixture(t)
		hook := f.project + "/.git/hooks/pre-commit"
		f.run(f.call(), func() { f.busy = true })
		f.write(hook, "evil\n")
		f.busy = false
		if restart {
			f.restart()
		}
		call := f.call()
		r := f.run(call, func() { f.want(hook, "none") }) // the hook was restored before the next command begins
		if f.want(hook, "none"); r.Review == nil {
			t.Errorf("%s: nothing was asked", name)
		}
		f.answer(call, r, false)
		f.write(hook, "mine\n")
		if r := f.run(f.call(), nil); r.Review != nil {
			t.Errorf("%s: asked about a person's change: %s", name, r.Review)
		}
		f.want(hook, "mine\n")
	}
}

// TestACrowdedFolderIsSeen: a project cannot make the guard blind by the number of its
// files, and neither can a command.
func TestACrowdedFolderIsSeen(t *testing.T) {
	f := newFixture(t)
	husky := f.project + "/.husky"
	crowd := func(dir string) {
		for i := range 1010 {
			f.write(fmt.Sprintf("%s/%04d", dir, i), "x")
		}
	}
	crowd(husky)
	for !protect.Look(husky+"/1009", protect.State{}).Before(time.Now()) { // older than the first look, for certain
	}
	hook := f.project + "/.git/hooks/pre-commit"
	call := f.call()
	r := f.run(call, func() { f.write(hook, "evil\n") })
	f.want(hook, "none")
	f.answer(call, r, false)
	call = f.call()
	r = f.run(call, func() { f.write(husky+"/zzz", "x") })
	if r.Review == nil || !strings.Contains(string(r.Review), `"fileName":"`+husky+`"`) || !strings.Contains(string(r.Review), "could not be put back") {
		t.Errorf("asked: %s", r.Review)
	}
	if r = f.answer(call, r, true); r.Review != nil || !strings.Contains(r.Text, "The user allowed the change") {
		t.Errorf("%+v", r)
	}
	f.want(husky+"/zzz", "x")
	call = f.call()
	r = f.run(call, func() { // the files that are left are not new
		for i := range 20 {
			os.Remove(fmt.Sprintf("%s/%04d", husky, i))
		}
	})
	f.want(husky+"/0500", "x")
	f.answer(call, r, true)
	f.want(husky+"/0500", "x")
	r = f.run(f.call(), func() { crowd(f.home + "/.config/autostart") })
	if r.Review == nil || !strings.Contains(string(r.Review), "autostart") {
		t.Errorf("asked: %s", r.Review)
	}
}

// TestWhatCannotBeLookedAtKeepsCommandsFromStarting: it is named, and so is the way out.
func TestWhatCannotBeLookedAtKeepsCommandsFromStarting(t *testing.T) {
	f := newFixture(t)
	modules := f.project + "/.git/modules"
	r := f.run(f.call(), func() {
		for i := range 1010 {
			f.write(fmt.Sprintf("%s/%d/HEAD", modules, i), "x")
		}
		f.write(f.home+"/.bashrc", "theirs\n")
	})
	f.want(f.home+"/.bashrc", "mine\n")
	if r.Review == nil || !strings.Contains(r.Text, "too many submodules") {
		t.Errorf("%+v", r)
	}
	ran := false
	if r := f.run(f.call(), func() { ran = true }); ran || !r.Failed || !strings.Contains(r.Text, "too many submodules to be looked at; remove some of them") {
		t.Errorf("ran %v: %+v", ran, r)
	}
	if r, err := f.reading.Run(t.Context(), f.call()); err != nil || r.Failed {
		t.Errorf("%+v, %v", r, err)
	}
	os.RemoveAll(modules)
	if r := f.run(f.call(), func() { ran = true }); !ran || r.Failed {
		t.Errorf("ran %v: %+v", ran, r)
	}
}

// TestManyFoldersAreRefused: none that was used before is forgotten for a new one.
func TestManyFoldersAreRefused(t *testing.T) {
	f := newFixture(t)
	in := func(dir string) tool.Call {
		call := f.call()
		call.Arguments, _ = json.Marshal(map[string]string{"cwd": dir})
		return call
	}
	f.run(in("d0"), nil)
	stored := f.data + "/sessions/s/protected/baseline.json"
	var base map[string]any
	if err := json.Unmarshal([]byte(f.content(stored)), &base); err != nil {
		t.Fatal(err)
	}
	dirs := base["dirs"].([]any)
	for len(dirs) < 255 { // many commands would add as many
		dirs = append(dirs, fmt.Sprint(f.project, "/d", len(dirs)))
	}
	base["dirs"] = dirs
	text, _ := json.Marshal(base)
	f.write(stored, string(text))
	f.restart()
	for dir, refused := range map[string]bool{"d255": false, "more": true, "d7": false, ".": false} {
		if dir == "more" {
			f.run(in("d255"), nil)
		}
		if r := f.run(in(dir), nil); r.Failed != refused {
			t.Errorf("%s: %+v", dir, r)
		}
	}
	r := f.run(in("d3"), func() { f.write(f.project+"/d0/.envrc", "evil") })
	if f.want(f.project+"/d0/.envrc", "none"); r.Review == nil {
		t.Error("nothing was asked")
	}
}

// TestAYesIsForOneChange: a command that makes the same change again, after the person
// has taken it back, is asked about again. So it is with a yes to another session, and
// with a change that a tool made.
func TestAYesIsForOneChange(t *testing.T) {
	for name, allow := range map[string]func(f *fixture, rc string){
		"command": func(f *fixture, rc string) {
			call := f.call()
			f.answer(call, f.run(call, func() { f.write(rc, "evil\n") }), true)
		},
		"tool": func(f *fixture, rc string) {
			f.write(rc, "evil\n")
			f.guard.Approve(tool.Call{Session: "other"}, rc, []byte("evil\n"))
		},
		"other session": func(f *fixture, rc string) {
			call := f.call()
			call.Session = "other"
			f.answer(call, f.run(call, func() { f.write(rc, "evil\n") }), true)
		},
	} {
		f := newFixture(t)
		rc := f.home + "/.bashrc"
		f.run(f.call(), nil)
		allow(f, rc)
		if f.want(rc, "evil\n"); t.Failed() {
			t.Fatal(name)
		}
		f.write(rc, "mine\n")
		r := f.run(f.call(), func() { f.write(rc, "evil\n") })
		if f.want(rc, "mine\n"); r.Review == nil {
			t.Errorf("%s: nothing was asked", name)
		}
	}
}

// TestWhatIsPutBackIsNobodysChange: another session has seen the change before it was put
// back, and a command of it is running meanwhile.
func TestWhatIsPutBackIsNobodysChange(t *testing.T) {
	f := newFixture(t)
	rc, hook := f.home+"/.bashrc", f.project+"/.git/hooks/pre-commit"
	other := f.call()
	other.Session = "other"
	f.run(other, nil)
	f.run(f.call(), func() {
		f.write(rc, "evil\n")
		f.write(hook, "evil\n")
		other := f.call()
		other.Session, other.Key = "other", "x"
		bash := f.guard.Wrap([]tool.Tool{&command{task: true}})[0]
		if _, err := bash.Run(t.Context(), other); err != nil { // it goes on
			t.Fatal(err)
		}
	})
	f.want(rc, "mine\n")
	f.guard.Tasks(source{}).News(t.Context(), "other", "x")
	f.want(rc, "mine\n")
	f.want(hook, "none")
}

// TestALookDoesNotMakeTheFolderOfADeletedSessionAgain: the session is deleted while its
// files are looked at.
func TestALookDoesNotMakeTheFolderOfADeletedSessionAgain(t *testing.T) {
	f := newFixture(t)
	f.run(f.call(), nil)
	folder := filepath.Join(f.data, "sessions", "s")
	f.busy = true // the guard has to store this state
	f.away = func(string) bool {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
		return false
	}
	f.guard.Tasks(source{}).News(t.Context(), "s", "k")
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder is there again")
	}
}

// TestAFolderThatIsMovedIn: the files in it are older than the last look, and the folder
// is still new where it is.
func TestAFolderThatIsMovedIn(t *testing.T) {
	for to, file := range map[string]string{
		"/.git/modules/x":     "hooks/pre-commit",
		"/.git/modules/a/x":   "hooks/pre-commit",
		"/.git/worktrees/x":   "commondir",
		"/.devcontainer/x":    "devcontainer.json",
		"/.claude/hooks":      "x",
		"/.git/hooks":         "pre-commit",
		"/.husky/_":           "h",
		"/.github/hooks":      "x.json",
		"/.opencode/plugin":   "x.ts",
		"/.vscode":            "tasks.json",
		"/../home/.vim/after": "plugin/x.vim",
	} {
		f := newFixture(t)
		f.write(f.project+"/prepared/HEAD", "x")
		f.write(f.project+"/prepared/"+file, "evil")
		for !protect.Look(f.project+"/prepared/"+file, protect.State{}).Before(time.Now()) {
		}
		os.MkdirAll(filepath.Dir(f.project+to), 0o755)
		r := f.run(f.call(), func() {
			if err := os.Rename(f.project+"/prepared", f.project+to); err != nil {
				t.Fatal(err)
			}
		})
		if f.want(f.project+to+"/"+file, "none"); r.Review == nil {
			t.Errorf("%s: nothing was asked", to)
		}
	}
}

// TestALargeFileThatIsNewIsNotLost: it is too large to be stored with the question, and it
// is kept beside it.
func TestALargeFileThatIsNewIsNotLost(t *testing.T) {
	for _, yes := range []bool{true, false} {
		f := newFixture(t)
		hook, text := f.project+"/.git/hooks/pre-commit", "evil\n"+strings.Repeat("#", protect.MaxKept)
		call := f.call()
		r := f.run(call, func() { f.write(hook, text) })
		f.want(hook, "none")
		f.restart()
		r = f.answer(call, r, yes)
		if yes && f.content(hook) != text || !yes && f.content(hook) != "none" {
			t.Errorf("yes %v: the file holds %.20q; the model reads %q", yes, f.content(hook), r.Text)
		}
		if left, _ := os.ReadDir(filepath.Dir(hook)); yes && len(left) != 1 || !yes && len(left) > 0 {
			t.Errorf("yes %v: %v is left", yes, left)
		}
		if r.Review != nil || strings.Contains(r.Text, "The user allowed the change") != yes {
			t.Errorf("%+v", r)
		}
	}
}

// TestALargeFileInThePlaceOfASmallOneIsNotLost: the small one is put back, and the large
// one can be had again.
func TestALargeFileInThePlaceOfASmallOneIsNotLost(t *testing.T) {
	for _, yes := range []bool{true, false} {
		f := newFixture(t)
		rc, text := f.home+"/.bashrc", "evil\n"+strings.Repeat("#", protect.MaxKept)
		before, _ := os.ReadDir(f.home)
		call := f.call()
		r := f.run(call, func() { f.write(rc, text); os.Chmod(rc, 0o755) })
		f.want(rc, "mine\n")
		f.restart()
		r = f.answer(call, r, yes)
		if yes && f.content(rc) != text || !yes && f.content(rc) != "mine\n" {
			t.Errorf("yes %v: the file holds %.20q; the model reads %q", yes, f.content(rc), r.Text)
		}
		if info, err := os.Stat(rc); err != nil || (info.Mode() == 0o755) != yes {
			t.Errorf("yes %v: %v, %v", yes, info.Mode(), err)
		}
		if left, _ := os.ReadDir(f.home); len(left) != len(before) {
			t.Errorf("yes %v: %v is left", yes, left)
		}
	}
}

// TestNoCommandStartsWhileTheWorkspaceIsAway: the reason is told, and nothing is forgotten.
func TestNoCommandStartsWhileTheWorkspaceIsAway(t *testing.T) {
	f := newFixture(t)
	rc := f.home + "/.bashrc"
	f.run(f.call(), nil)
	f.away = func(string) bool { return true }
	ran := false
	if r := f.run(f.call(), func() { ran = true }); ran || !r.Failed || !strings.Contains(r.Text, "cannot be reached") {
		t.Errorf("ran %v: %+v", ran, r)
	}
	f.away = func(string) bool { return false }
	f.write(rc, "mine, longer\n")
	if r := f.run(f.call(), nil); r.Review != nil {
		t.Errorf("asked: %s", r.Review)
	}
	f.want(rc, "mine, longer\n")
}

// TestAWorkspaceThatGoesAway: at each point of a look, before and after a file is put back.
// The look is made when the workspace is back, by the same engine or by the next one, with
// one question about the change.
func TestAWorkspaceThatGoesAway(t *testing.T) {
	for _, point := range []string{"survey", "restore", "answer", "second survey"} {
		for name, crash := range map[string]bool{"same engine": false, "next engine": true} {
			f := newFixture(t)
			rc, hook := f.home+"/.bashrc", f.project+"/.git/hooks/pre-commit"
			call := f.call()
			surveys := 0
			r := f.run(call, func() {
				f.write(rc, "theirs\n")
				f.write(hook, "evil\n")
				f.away = func(at string) bool {
					if at == "survey" {
						surveys++
					}
					return at == point || at == "survey" && surveys > 1 && point == "second survey"
				}
			})
			if r.Review != nil || !strings.Contains(r.Text, "could not be looked at") || !strings.HasPrefix(r.Text, "done") {
				t.Errorf("%s, %s: %+v", point, name, r)
			}
			if crash {
				f.restart()
			}
			f.away = func(string) bool { return false }
			next := f.call()
			r = f.run(next, func() { f.want(rc, "mine\n"); f.want(hook, "none") })
			if n := strings.Count(string(r.Review), `+theirs`); n != 1 {
				t.Errorf("%s, %s: asked %d times about it: %s", point, name, n, r.Review)
			}
			f.answer(next, r, true)
			f.want(rc, "theirs\n")
			f.want(hook, "evil\n")
		}
	}
}

// TestALookThatIsDueIsMadeWhenTheWorkspaceIsBack: without another call.
func TestALookThatIsDueIsMadeWhenTheWorkspaceIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		rc := f.home + "/.bashrc"
		var away atomic.Bool
		f.away = func(string) bool { return away.Load() }
		f.run(f.call(), func() { f.write(rc, "theirs\n"); away.Store(true) })
		time.Sleep(time.Minute)
		f.want(rc, "theirs\n")
		away.Store(false)
		time.Sleep(time.Minute)
		f.want(rc, "mine\n")
		if r := f.run(f.call(), nil); !strings.Contains(string(r.Review), "+theirs") {
			t.Errorf("asked: %s", r.Review)
		}
		f.guard.Close()
	})
}

// TestAnAnswerWaitsForTheWorkspace: the person is asked again, and the yes counts then.
func TestAnAnswerWaitsForTheWorkspace(t *testing.T) {
	for _, point := range []string{"survey", "restore", "answer"} {
		f := newFixture(t)
		rc := f.home + "/.bashrc"
		call := f.call()
		r := f.run(call, func() { f.write(rc, "theirs\n") })
		f.away = func(at string) bool { return at == point }
		f.answer(call, r, true)
		f.away = func(string) bool { return false }
		next := f.call()
		r = f.run(next, nil)
		if point != "answer" {
			f.want(rc, "mine\n")
		}
		f.answer(next, r, true)
		f.want(rc, "theirs\n")
	}
}

// TestTheEndOfATaskIsNotReportedUnseen: nobody is told of it before the files could be
// looked at.
func TestTheEndOfATaskIsNotReportedUnseen(t *testing.T) {
	f := newFixture(t)
	f.command.task = true
	call := f.call()
	f.run(call, nil)
	f.write(f.home+"/.bashrc", "theirs\n")
	f.away = func(string) bool { return true }
	tasks := f.guard.Tasks(source{})
	if news, err := tasks.Watch(t.Context(), "s", call.Key, ""); err == nil {
		t.Errorf("%+v", news)
	}
	if news, ok := tasks.News(t.Context(), "s", call.Key); ok {
		t.Errorf("%+v", news)
	}
	f.away = func(string) bool { return false }
	if news, err := tasks.Watch(t.Context(), "s", call.Key, ""); err != nil || !strings.Contains(news.Text, "put back") {
		t.Errorf("%+v, %v", news, err)
	}
}

// TestALookThatWaitsHoldsUpNobodyElse: neither another session nor whoever stops waiting.
func TestALookThatWaitsHoldsUpNobodyElse(t *testing.T) {
	f := newFixture(t)
	f.run(f.call(), nil)
	waits, back := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.away = func(string) bool {
		held := false
		once.Do(func() { held = true })
		if held {
			close(waits)
			<-back
		}
		return held
	}
	done := make(chan tool.Result)
	slow := f.call()
	go func() {
		r, _ := f.guard.Wrap([]tool.Tool{&command{}})[0].Run(context.WithoutCancel(t.Context()), slow)
		done <- r
	}()
	<-waits
	for i := range 200 { // many sessions: no two of them share a lock
		call := f.call()
		call.Session = event.SessionID(fmt.Sprint("other", i))
		if r, err := f.reading.Run(t.Context(), call); err != nil || r.Failed {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := f.bash.Run(ctx, f.call()); err == nil {
		t.Errorf("%+v", r)
	}
	close(back)
	if r := <-done; !r.Failed {
		t.Errorf("%+v", r)
	}
}

// TestAYesIsForOneWorkspace: a file at the same path of another machine is another file.
func TestAYesIsForOneWorkspace(t *testing.T) {
	f := newFixture(t)
	rc := f.home + "/.bashrc"
	f.run(f.call(), nil)
	r := f.run(f.call(), func() {
		f.write(rc, "edited")
		f.place = "there"
		f.guard.Approve(tool.Call{Session: "other"}, rc, []byte("edited"))
		f.place = "here"
	})
	if f.want(rc, "mine\n"); r.Review == nil {
		t.Error("nothing was asked")
	}
}

// TestTheAgentsOfASessionCountAsItsOwn: the workspace is asked about the processes of all
// that work for the same session, also by the next engine.
func TestTheAgentsOfASessionCountAsItsOwn(t *testing.T) {
	f := newFixture(t)
	agent := f.call()
	agent.Session = "agent"
	f.run(agent, nil)
	f.restart()
	f.run(f.call(), nil)
	if got := fmt.Sprint(f.asked.Owner, f.asked.Kin); got != "s[agent]" {
		t.Errorf("asked about %s", got)
	}
	agent = f.call()
	agent.Session = "agent"
	f.run(agent, nil)
	if got := fmt.Sprint(f.asked.Owner, f.asked.Kin); got != "agent[s]" {
		t.Errorf("asked about %s", got)
	}
}
