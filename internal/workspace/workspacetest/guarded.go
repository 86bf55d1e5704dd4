package workspacetest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// guardedTests are the tests of protected files.
var guardedTests = map[string]func(*testing.T, *Fixture){
	"ASurveyFindsWhatHasChanged":           surveyChanges,
	"ASurveyOfManyLargeFilesIsComplete":    surveyMany,
	"ASurveyThatIsCancelledEnds":           surveyCancelled,
	"AProtectedFileGetsItsOldStateBack":    restoreState,
	"AProtectedFileThatHasMovedOnIsLeft":   restoreMoved,
	"ARestoreWhoseAnswerIsLostIsMadeAgain": restoreCut,
	"AFileThatIsTooLargeIsSetAside":        restoreAside,
	"ASurveySaysWhyFilesAreProtected":      surveyReasons,
}

// survey looks at the protected files of the folder.
func (p *Fixture) survey(t *testing.T, known map[string]protect.State) workspace.Survey {
	t.Helper()
	found, err := p.Survey(t.Context(), workspace.SurveyRequest{Dirs: []string{p.Dir}, Known: known})
	must(t, err)
	if found.Taken.IsZero() || found.Missed != "" {
		t.Errorf("taken at %v, missed is %q", found.Taken, found.Missed)
	}
	for _, target := range found.Targets {
		if _, ok := found.States[target.Path]; !ok || target.Reason == "" {
			t.Errorf("%+v has no state or no reason", target)
		}
	}
	return found
}

func (p *Fixture) repository(t *testing.T) {
	t.Helper()
	p.put(t, ".git/HEAD", "ref: refs/heads/main\n")
	p.put(t, ".git/config", "[core]\n\tbare = false\n")
	p.put(t, ".git/hooks/pre-commit", "exit 0\n")
}

func surveyChanges(t *testing.T, p *Fixture) {
	p.repository(t)
	p.put(t, "empty", "")
	p.put(t, "other", "x")
	first := p.survey(t, map[string]protect.State{p.at("other"): {}, p.at("empty"): {}, p.at("none"): {}})
	for name, want := range map[string]string{".git/config": "[core]\n\tbare = false\n", ".git/hooks/pre-commit": "exit 0\n", "other": "x", "empty": ""} {
		if s := first.States[p.at(name)]; !s.Exists || s.Content == nil || string(s.Content) != want || s.Digest != protect.Digest([]byte(want)) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s, ok := first.States[p.at("none")]; !ok || s.Exists {
		t.Errorf("a file that is not there: %+v", s)
	}
	if !slices.ContainsFunc(first.Targets, func(s workspace.SurveyTarget) bool { return s.Path == p.at(".git/config") && s.Git }) || !slices.Contains(first.Folders, p.at(".githooks")) {
		t.Errorf("%d targets, in %q", len(first.Targets), first.Folders)
	}
	hook := p.at(".git/hooks/pre-commit")
	for first.States[hook].Marks == [2]protect.Mark{} { // it was written a moment ago, so that its marks prove nothing
		first = p.survey(t, first.States)
	}
	again := p.survey(t, first.States)
	for path, s := range again.States {
		if before := first.States[path]; s.Digest != before.Digest || !slices.Equal(s.Content, before.Content) || s.Exists != before.Exists || s.Mode != before.Mode {
			t.Errorf("%s was %+v, and is %+v", path, before, s)
		}
	}
	p.put(t, ".git/hooks/pre-commit", "exit 1\n")
	p.put(t, ".githooks/new", "new\n")
	must(t, os.Remove(p.at("other")))
	third := p.survey(t, again.States)
	if got := string(third.States[p.at(".git/hooks/pre-commit")].Content) + string(third.States[p.at(".githooks/new")].Content); got != "exit 1\nnew\n" || third.States[p.at("other")].Exists {
		t.Errorf("%q, %+v", got, third.States[p.at("other")])
	}
	only, err := p.Survey(t.Context(), workspace.SurveyRequest{Dirs: []string{p.Dir}, Known: map[string]protect.State{p.at("empty"): {}}, Only: true})
	if err != nil || len(only.States) != 1 || len(only.Targets) > 0 {
		t.Errorf("%+v, %v", only, err)
	}
}

func surveyMany(t *testing.T, p *Fixture) {
	p.repository(t)
	for i := range 24 {
		p.put(t, fmt.Sprintf(".githooks/h%02d", i), strings.Repeat(fmt.Sprintf("%02d", i), protect.MaxKept/2))
	}
	p.put(t, ".githooks/larger", strings.Repeat("x", protect.MaxKept+1))
	found := p.survey(t, nil)
	for i := range 24 {
		if s := found.States[p.at(fmt.Sprintf(".githooks/h%02d", i))]; len(s.Content) != protect.MaxKept || s.Digest != protect.Digest(s.Content) {
			t.Errorf("%d has %d bytes", i, len(s.Content))
		}
	}
	if s := found.States[p.at(".githooks/larger")]; s.Content != nil || s.Digest == "" {
		t.Errorf("a larger one has %d bytes, %q", len(s.Content), s.Digest)
	}
}

func surveyCancelled(t *testing.T, p *Fixture) {
	p.repository(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	_, err := p.Survey(ctx, workspace.SurveyRequest{Dirs: []string{p.Dir}})
	fails(t, err, errEnough, "a survey")
	fails(t, p.Restore(ctx, p.at("f"), protect.State{}, protect.State{}), errEnough, "a restore")
}

// present returns the state of a file.
func (p *Fixture) present(t *testing.T, name string) protect.State {
	t.Helper()
	found, err := p.Survey(t.Context(), workspace.SurveyRequest{Known: map[string]protect.State{p.at(name): {}}, Only: true})
	must(t, err)
	s := found.States[p.at(name)]
	s.Marks = [2]protect.Mark{}
	return s
}

func restoreState(t *testing.T, p *Fixture) {
	p.put(t, "text", "old")
	p.put(t, "empty", "")
	p.put(t, "script", "run")
	must(t, os.Chmod(p.at("script"), 0o755))
	must(t, os.Symlink("text", p.at("link")))
	must(t, os.Symlink("nothing", p.at("dangling")))
	changes := map[string]func(path string) error{
		"text":     func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) },
		"empty":    func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) },
		"script":   func(path string) error { return os.Chmod(path, 0o644) },
		"link":     os.Remove,
		"dangling": func(path string) error { _ = os.Remove(path); return os.Symlink("text", path) },
		"made":     func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) },
	}
	for name, change := range changes {
		before := p.present(t, name)
		must(t, change(p.at(name)))
		after := p.present(t, name)
		if reflect.DeepEqual(before, after) {
			t.Errorf("the change of %s is not seen", name)
		}
		for range 2 { // the second attempt finds that it is done
			must(t, p.Restore(t.Context(), p.at(name), after, before))
			if got := p.present(t, name); !reflect.DeepEqual(got, before) {
				t.Errorf("%s is %+v, want %+v", name, got, before)
			}
		}
	}
}

func restoreMoved(t *testing.T, p *Fixture) {
	p.put(t, "f", "one")
	one := p.present(t, "f")
	p.put(t, "f", "two")
	two := p.present(t, "f")
	p.put(t, "f", "three")
	fails(t, p.Restore(t.Context(), p.at("f"), two, one), protect.ErrMoved, "a file that was changed again")
	one.Content = nil
	fails(t, p.Restore(t.Context(), p.at("f"), p.present(t, "f"), one), protect.ErrNotKept, "a content that is not known")
	fails(t, p.Restore(t.Context(), "f", two, one), fs.ErrInvalid, "a relative path")
	if text, err := os.ReadFile(p.at("f")); string(text) != "three" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func restoreCut(t *testing.T, p *Fixture) {
	if p.Hold == nil {
		t.Skip("there is no connection")
	}
	p.put(t, "f", "old")
	old := p.present(t, "f")
	p.put(t, "f", "new")
	now := p.present(t, "f")
	p.Hold()
	done := make(chan error, 1)
	go func() { done <- p.Restore(t.Context(), p.at("f"), now, old) }()
	p.Cut()
	must(t, <-done)
	if text, err := os.ReadFile(p.at("f")); string(text) != "old" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// surveyReasons: also why one is protected that is gone, and so is no target any more.
func surveyReasons(t *testing.T, p *Fixture) {
	p.repository(t)
	p.put(t, ".husky/pre-push", "exit 0\n")
	first := p.survey(t, nil)
	must(t, os.Remove(p.at(".husky/pre-push")))
	again := p.survey(t, first.States)
	if reason := again.Reasons[p.at(".husky/pre-push")]; !strings.Contains(reason, "git runs the hooks in this folder") {
		t.Errorf("the reason is %q", reason)
	}
	if reason, ok := again.Reasons[p.at(".git/config")]; ok {
		t.Errorf("a target has another reason: %q", reason)
	}
}

// restoreAside: a large file is neither lost nor run, whether it is new or in the place of
// another one.
func restoreAside(t *testing.T, p *Fixture) {
	p.put(t, "old", "old")
	large := strings.Repeat("x", protect.MaxKept+1)
	for _, name := range []string{"old", "new"} {
		before := p.present(t, name)
		p.put(t, name, large)
		must(t, os.Chmod(p.at(name), 0o755))
		after := p.present(t, name)
		after.Aside = protect.AsideName("1-" + name)
		for range 2 { // the second attempt finds that it is done
			must(t, p.Restore(t.Context(), p.at(name), after, before))
			if got := p.present(t, name); !reflect.DeepEqual(got, before) {
				t.Errorf("%s is %+v, want %+v", name, got, before)
			}
		}
		kept, err := os.ReadFile(p.at(after.Aside))
		info, _ := os.Stat(p.at(after.Aside))
		if err != nil || string(kept) != large || info.Mode() != 0o600 {
			t.Errorf("%d bytes of %s were set aside, %v, %v", len(kept), name, info.Mode(), err)
		}
		for range 2 {
			must(t, p.Restore(t.Context(), p.at(name), before, after))
			back := p.present(t, name)
			if back.Aside = after.Aside; !reflect.DeepEqual(back, after) {
				t.Errorf("%s is %+v, want %+v", name, back, after)
			}
		}
		if _, err := os.Stat(p.at(after.Aside)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", after.Aside, err)
		}
	}
	now := p.present(t, "new")
	for _, name := range []string{"../x", "x", ".abide-a/b.tmp", "/etc/.abide-x.tmp"} {
		now.Aside = name
		fails(t, p.Restore(t.Context(), p.at("new"), now, protect.State{}), fs.ErrInvalid, "the name "+name)
	}
	if got := p.present(t, "new"); got.Digest != now.Digest {
		t.Errorf("the file is %+v", got)
	}
}

// surveyBusy: processes of the owners count, and those that they left behind, and no
// others.
func surveyBusy(t *testing.T, p *Fixture) {
	busy := func(owner process.Owner, since time.Time, kin ...process.Owner) bool {
		t.Helper()
		found, err := p.Survey(t.Context(), workspace.SurveyRequest{Dirs: []string{p.Dir}, Owner: owner, Kin: kin, Since: since})
		must(t, err)
		return found.Busy
	}
	began, _ := p.Survey(t.Context(), workspace.SurveyRequest{})
	if busy(me, time.Time{}, "other") {
		t.Error("nothing was started")
	}
	info, _, err := p.run().Start(t.Context(), process.Spec{Owner: me, Key: "k", Command: "(while [ ! -e go ]; do sleep 0.01; done) & exit 0", Dir: p.Dir})
	must(t, err)
	_, err = p.run().Wait(t.Context(), me, info.ID)
	must(t, err)
	far := began.Taken.Add(time.Hour)
	if !busy(me, far) || !busy("other", far, me) || busy("other", far) || busy("", far, me) {
		t.Error("what is left behind counts for its owner and its kin, and for nobody else")
	}
	p.put(t, "go", "")
	for !gone(t, p, info.ID) {
	}
	if busy(me, began.Taken) || busy("other", far, me) {
		t.Error("it is gone")
	}
	if !busy("other", began.Taken.Add(-time.Second), me) {
		t.Error("one of the kin was started since")
	}
}

func gone(t *testing.T, p *Fixture, id process.ID) bool {
	t.Helper()
	info, err := p.run().Get(t.Context(), me, id)
	must(t, err)
	return info.Gone
}
