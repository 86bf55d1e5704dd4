package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/workspace"
)

// projectTests are the tests of files that the runtime reads by itself.
var projectTests = map[string]func(*testing.T, *Fixture){
	"FilesAreCollectedByNameUpToTheRepository": collectNames,
	"FilesAreCollectedByPattern":               collectPattern,
	"WhatIsCollectedIsLimited":                 collectLimits,
	"NothingIsCollectedFromOutsideOfAProject":  collectLinks,
	"ACollectionThatIsCutIsRepeated":           collectCut,
	"ACollectionThatIsCancelledEnds":           collectCancelled,
	"LinesAndEntriesAreCounted":                count,
	"TemporaryFilesHaveAPlace":                 temporary,
}

// collect returns the files of a selection.
func (p *Fixture) collect(t *testing.T, s workspace.Selection) []workspace.Collected {
	t.Helper()
	if s.Most == 0 {
		s.Most = 100
	}
	found, err := p.Collect(t.Context(), s)
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%d answers to one selection", len(found))
	}
	return found[0]
}

// contents returns what was collected as text.
func contents(list []workspace.Collected) string {
	var all []string
	for _, f := range list {
		all = append(all, string(f.Content))
	}
	return strings.Join(all, " ")
}

func collectNames(t *testing.T, p *Fixture) {
	for _, name := range []string{"A", "repo/A", "repo/B", "repo/sub/B", "repo/sub/deep/A", "repo/sub/deep/docs/A"} {
		p.put(t, name, strings.ReplaceAll(name, "/", "-"))
	}
	p.put(t, "repo/.git/HEAD", "")
	must(t, os.Mkdir(p.at("repo/sub/A"), 0o755)) // a folder is no file
	for want, s := range map[string]workspace.Selection{
		"repo-sub-deep-A repo-sub-B repo-A":        {Dir: p.at("repo/sub/deep"), Names: []string{"A", "B"}, First: true, Above: true},
		"repo-sub-deep-A repo-sub-B repo-A repo-B": {Dir: p.at("repo/sub/deep"), Names: []string{"A", "B"}, Above: true},
		"repo-sub-deep-A repo-sub-deep-docs-A":     {Dir: p.at("repo/sub/deep"), Names: []string{"none", "A", "docs/A"}},
		"repo-sub-deep-docs-A":                     {Dir: p.at("repo/sub/deep"), Names: []string{"docs/A", "A"}, First: true},
		"":                                         {Dir: p.at("nowhere"), Names: []string{"A"}},
	} {
		if got := contents(p.collect(t, s)); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	found := p.collect(t, workspace.Selection{Dir: p.at("repo"), Names: []string{"A"}})
	if len(found) != 1 || found[0].Path != p.at("repo/A") || found[0].Size != 6 || found[0].Cut() || found[0].Err != nil {
		t.Errorf("%+v", found)
	}
}

func collectPattern(t *testing.T, p *Fixture) {
	for _, name := range []string{"skills/b/S", "skills/a/S", "skills/c/T", "skills/S", "skills/[x]/S", "d/x.md", "d/.md", "d/y.txt", "d/z\xff.md"} {
		p.put(t, name, name)
	}
	must(t, os.Symlink("../skills/a", p.at("skills/link")))
	must(t, os.Symlink("a", p.at("skills/near")))
	must(t, syscall.Mkfifo(p.at("pipe"), 0o600))
	for want, s := range map[string]workspace.Selection{
		"skills/[x]/S skills/a/S skills/b/S skills/a/S skills/a/S": {Dir: p.at("skills"), Pattern: "*/S", Within: []string{p.Dir}},
		"d/.md d/x.md d/z\xff.md":                                  {Dir: p.Dir, Pattern: "d/*.md"},
		"d/x.md":                                                   {Dir: p.at("d"), Pattern: "x.*md"},
		"skills/S":                                                 {Dir: p.at("skills"), Pattern: "S"},
		"":                                                         {Dir: p.Dir, Pattern: "none/*"},
	} {
		if got := contents(p.collect(t, s)); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	for _, name := range []string{"pipe", "d/x.md"} { // a pipe must not block
		if found := p.collect(t, workspace.Selection{Dir: p.at(name), Pattern: "*/S"}); len(found) != 1 || found[0].Err == nil || found[0].Path != p.at(name) {
			t.Errorf("a folder that is none: %+v", found)
		}
	}
	_, err := p.Collect(t.Context(), workspace.Selection{Dir: p.Dir, Pattern: "../*"})
	fails(t, err, fs.ErrInvalid, "a pattern that leaves the folder")
}

func collectLimits(t *testing.T, p *Fixture) {
	p.put(t, "f", "12345")
	for most, want := range map[int]string{-1: "", 1: "1", 4: "1234", 5: "12345", 6: "12345"} {
		found := p.collect(t, workspace.Selection{Dir: p.Dir, Names: []string{"f"}, Most: most})
		if len(found) != 1 || string(found[0].Content) != want || found[0].Cut() != (most < 5) || found[0].Size != 5 {
			t.Errorf("%d: %+v", most, found)
		}
	}
	for i := range workspace.MaxCollected + 1 {
		p.put(t, fmt.Sprintf("many/%04d", i), "x")
	}
	found := p.collect(t, workspace.Selection{Dir: p.at("many"), Pattern: "*"})
	if last := found[len(found)-1]; len(found) != workspace.MaxCollected+1 || !errors.Is(last.Err, workspace.ErrTooMany) {
		t.Errorf("%d files, the last is %+v", len(found), last)
	}
	for _, name := range []string{"large/a", "large/b", "large/c"} {
		p.put(t, name, "")
		must(t, os.Truncate(p.at(name), workspace.MaxCollectBytes/2))
	}
	found = p.collect(t, workspace.Selection{Dir: p.at("large"), Pattern: "*", Most: 1 << 40})
	if len(found) != 3 || found[1].Err != nil || !errors.Is(found[2].Err, workspace.ErrTooLarge) || len(found[2].Content) > 0 {
		t.Errorf("of three large files: %d, %+v", len(found), found[len(found)-1].Err)
	}
}

func collectLinks(t *testing.T, p *Fixture) {
	p.put(t, "secret", "secret")
	p.put(t, "other/.git/HEAD", "")
	p.put(t, "other/f", "other")
	p.put(t, "repo/.git/HEAD", "")
	p.put(t, "repo/docs/f", "inside")
	p.put(t, "repo/nested/.git/HEAD", "")
	must(t, syscall.Mkfifo(p.at("repo/pipe"), 0o600))
	for link, to := range map[string]string{
		"repo/in": "docs/f", "repo/nested/up": "../docs/f", "repo/out": "../secret", "repo/absolute": p.at("secret"), "repo/environ": "/proc/self/environ",
		"repo/zero": "/dev/zero", "repo/other": "../other/f", "repo/folder": "../other", "repo/loop": "loop", "repo/dangling": "none",
	} {
		must(t, os.Symlink(to, p.at(link)))
	}
	for name, want := range map[string]error{
		"in": nil, "out": workspace.ErrOutside, "absolute": workspace.ErrOutside, "environ": workspace.ErrOutside, "zero": workspace.ErrOutside,
		"other": workspace.ErrOutside, "folder/f": workspace.ErrOutside, "pipe": workspace.ErrOutside, "nested/up": nil,
	} {
		found := p.collect(t, workspace.Selection{Dir: p.at("repo"), Names: []string{name}})
		if len(found) != 1 || !errors.Is(found[0].Err, want) || want != nil && len(found[0].Content) > 0 || found[0].Path != p.at("repo", name) {
			t.Errorf("%s: %+v", name, found)
		}
	}
	for _, name := range []string{"loop", "dangling", "none"} {
		if found := p.collect(t, workspace.Selection{Dir: p.at("repo"), Names: []string{name}}); len(found) > 1 || len(found) == 1 && found[0].Err == nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
	nested := workspace.Selection{Dir: p.at("repo/nested"), Names: []string{"up"}, Most: 100}
	if found := p.collect(t, nested); len(found) != 1 || !errors.Is(found[0].Err, workspace.ErrOutside) {
		t.Errorf("a link out of a repository in a repository: %+v", found)
	}
	nested.Within = []string{p.at("other"), p.at("repo")}
	if found := p.collect(t, nested); contents(found) != "inside" {
		t.Errorf("a link inside of the project that was named: %+v", found)
	}
}

func collectCut(t *testing.T, p *Fixture) {
	if p.Hold == nil {
		t.Skip("there is no connection")
	}
	p.put(t, "f", "content")
	p.Hold()
	done := make(chan string, 1)
	go func() {
		found, err := p.Collect(t.Context(), workspace.Selection{Dir: p.Dir, Names: []string{"f"}, Most: 100})
		if err != nil {
			done <- err.Error()
			return
		}
		done <- contents(slices.Concat(found...))
	}()
	p.Cut()
	if got := <-done; got != "content" {
		t.Errorf("%q", got)
	}
}

func collectCancelled(t *testing.T, p *Fixture) {
	p.put(t, "f", "content")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	_, err := p.Collect(ctx, workspace.Selection{Dir: p.Dir, Names: []string{"f"}, Most: 100})
	fails(t, err, errEnough, "a collection by names")
	_, err = p.Collect(ctx, workspace.Selection{Dir: p.Dir, Pattern: "*", Most: 100})
	fails(t, err, errEnough, "a collection by pattern")
	_, err = p.Count(ctx, p.at("f"))
	fails(t, err, errEnough, "a count")
}

var errEnough = errors.New("enough")

func count(t *testing.T, p *Fixture) {
	want := map[string]int{".": -1, "none": -1, "pipe": -1, "huge": -1, "limit": 1}
	for text, n := range map[string]int{"": 0, "\n": 1, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2, strings.Repeat("x\n", 100_000): 100_000, strings.Repeat("\n", 65_536) + "x": 65_537} {
		name := fmt.Sprintf("texts/%d", n*1000+len(text))
		p.put(t, name, text)
		want[name] = n
	}
	want["texts"] = len(want) - 5
	must(t, syscall.Mkfifo(p.at("pipe"), 0o600))
	p.put(t, "huge", "")
	must(t, os.Truncate(p.at("huge"), workspace.MaxCounted+1))
	p.put(t, "limit", "")
	must(t, os.Truncate(p.at("limit"), workspace.MaxCounted))
	want["."] = 4 // texts, pipe, huge, limit
	var paths []string
	for name := range want {
		paths = append(paths, p.at(name))
	}
	counts, err := p.Count(t.Context(), paths...)
	must(t, err)
	for i, n := range counts {
		if name, _ := filepath.Rel(p.Dir, paths[i]); n != want[name] {
			t.Errorf("%s: %d, want %d", name, n, want[name])
		}
	}
	if counts, err := p.Count(t.Context()); len(counts) > 0 || err != nil {
		t.Errorf("of nothing: %v, %v", counts, err)
	}
}

func temporary(t *testing.T, p *Fixture) {
	folders, err := p.Folders(t.Context())
	must(t, err)
	home, _ := os.UserHomeDir()
	if folders.Home != home || !filepath.IsAbs(folders.Temp) {
		t.Errorf("%+v", folders)
	}
	at := workspace.At(filepath.Join(folders.Temp, "abide-test-"+filepath.Base(filepath.Dir(p.Dir))))
	must(t, p.WriteFile(t.Context(), at, []byte("x"), workspace.WriteOptions{New: true, Perm: 0o600}))
	defer func() { must(t, p.Delete(context.WithoutCancel(t.Context()), at, false)) }()
	s, err := p.Scope(t.Context(), nil, nil)
	must(t, err)
	shown, err := p.Show(t.Context(), s.With(at.Name, 0), workspace.ShowRequest{Path: at.Name, MaxWhole: 10})
	if string(shown.Content) != "x" || err != nil {
		t.Errorf("a tool reads %q, %v", shown.Content, err)
	}
}
