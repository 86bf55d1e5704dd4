package places_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
)

func rule(kind, argument string) event.Rule { return event.Rule{Kind: kind, Argument: &argument} }

func set(rules ...event.Rule) func([]event.Rule) []event.Rule {
	return func([]event.Rule) []event.Rule { return rules }
}

func names(rules []event.Rule) (list []string) {
	for _, r := range rules {
		list = append(list, *r.Argument)
	}
	return list
}

func repository(t *testing.T) (root, below string) {
	root = t.TempDir()
	below = filepath.Join(root, "a", "b")
	for _, dir := range []string{below, filepath.Join(root, ".git")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return root, below
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRulesApplyInTheirPlaceOrEverywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locations.json")
	p := places.Open(path)
	repo, below := repository(t)
	elsewhere := t.TempDir()
	must(t, p.Change(repo, set(rule("shell", "make"))), p.ChangeAlways(set(rule("shell", "git"))))
	for _, known := range []*places.Places{p, places.Open(path)} { // the rules survive a restart
		for dir, want := range map[string][]string{repo: {"git", "make"}, below: {"git", "make"}, elsewhere: {"git"}} {
			key, rules, err := known.Standing(dir)
			if err != nil || !slices.Equal(names(rules), want) || (dir == below && key != repo) {
				t.Errorf("in %s, of the place %s: %v, %v; want %v", dir, key, names(rules), err, want)
			}
		}
	}
}

func TestARemovedRuleAppliesNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locations.json")
	p := places.Open(path)
	repo, _ := repository(t)
	must(t, p.Change(repo, set(rule("shell", "make"))), p.ChangeAlways(set(rule("shell", "git"))))
	must(t, p.Change(repo, set()), p.ChangeAlways(set()))
	for _, known := range []*places.Places{p, places.Open(path)} {
		always, there, err := known.All()
		if err != nil || len(always)+len(there) > 0 {
			t.Errorf("left are %v and %v, %v", always, there, err)
		}
	}
}

func TestAChangeThatCannotBeWrittenIsUndone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gone", "locations.json")
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	p := places.Open(path)
	must(t, p.ChangeAlways(set(rule("shell", "git"))), os.Rename(filepath.Dir(path), filepath.Join(dir, "away")))
	if p.ChangeAlways(set(rule("shell", "rm"))) == nil {
		t.Fatal("nobody noticed that nothing was written")
	}
	must(t, os.Rename(filepath.Join(dir, "away"), filepath.Dir(path)))
	if _, rules, err := p.Standing("/"); err != nil || !slices.Equal(names(rules), []string{"git"}) {
		t.Errorf("allowed is %v, %v", names(rules), err)
	}
}

func TestADamagedFileAllowsNothingAndIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locations.json")
	must(t, os.WriteFile(path, []byte(`{"always":[{"kind":"shell"}],"locations":7}`), 0o600))
	p := places.Open(path)
	_, rules, err := p.Standing("/")
	if len(rules) > 0 || err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("allowed is %v, %v", rules, err)
	}
	if p.Trust("/") == nil {
		t.Error("a file that could not be read was written over")
	}
}

func TestTrustAppliesToFoldersBelow(t *testing.T) {
	p := places.Open("")
	must(t, p.Trust("/a/b"), p.Trust("/a/b"))
	for dir, want := range map[string]bool{"/a/b": true, "/a/b/c": true, "/a": false, "/a/bc": false} {
		if got, err := p.Trusted(dir); got != want || err != nil {
			t.Errorf("%s is trusted: %v, %v", dir, got, err)
		}
	}
}

// TestAFolderElsewhereIsLocatedWithoutThisMachine: a repository of this machine around the
// name of a folder of another one has nothing to do with it.
func TestAFolderElsewhereIsLocatedWithoutThisMachine(t *testing.T) {
	there := event.SessionConfiguredData{WorkingDirectory: "/src/a", Workspace: &event.Workspace{Identity: "w"}}
	if at := places.Locate(there.Location()); at.Kind != "dir" || at.Key != "/abide-workspace/w/src/a" {
		t.Errorf("%+v", at)
	}
}
