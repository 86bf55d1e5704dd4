package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
)

// scopedTests are the tests of files as the rules of a session allow them.
var scopedTests = map[string]func(*testing.T, *Fixture){
	"RulesApplyToWhereAPathLeads":               judgeLinks,
	"WhatIsDeniedStaysDeniedUnderAnotherName":   judgeRenamed,
	"AJudgementHasTheContentIfItIsWanted":       judgeContent,
	"PathsThatCannotBeFollowedAreNotJudged":     judgeBadPaths,
	"AFileIsShownAsAWholeOrInPart":              show,
	"AHugeLineIsShownInPart":                    showHugeLine,
	"ALargeFileIsShownAsAWhole":                 showLarge,
	"ALargeFileIsDecodedAsASmallOneIs":          showDecoded,
	"ALargeFileWhoseAnswerIsLostIsShownAgain":   showCut,
	"AFolderIsShownInPart":                      showFolder,
	"WhatTheRulesDoNotAllowIsNotUsed":           scopedRefusals,
	"AChangeIsMadeOnceAndOnlyToWhatIsExpected":  applyExpected,
	"AChangeThatIsRepeatedIsNoError":            applyAgain,
	"OfManyChangesOneIsMade":                    applyAtOnce,
	"AChangeNeverReachesWhatAPathDidNotLeadTo":  applyRace,
	"AChangeWhoseAnswerIsLostIsMadeOnce":        applyCut,
	"ASearchReturnsWhatCanBeShownAndCountsAll":  grepBounds,
	"ASearchHonoursTheRulesOfGitAndOfTheScope":  grepRules,
	"ASearchNamesFilesByTheirBytes":             grepNames,
	"ASearchThatIsCancelledEnds":                grepCancelled,
	"ASearchWhoseAnswerIsLostIsRepeated":        grepCut,
	"ASearchOfWhatIsNotThereSaysSo":             searchMissing,
	"FilesAreFoundByName":                       globNames,
	"ASearchThatCannotBeUnderstoodIsRefused":    badQueries,
	"WhatAnybodyAsksForIsLimitedByTheWorkspace": hostileLimits,
}

// scope returns a scope that allows to write in a folder of the workspace.
func (p *Fixture) scope(t *testing.T, dir string, deny ...scope.Rule) *scope.Scope {
	t.Helper()
	s, err := p.Scope(t.Context(), []scope.Rule{{Target: p.at(dir), Mode: scope.Write}}, deny)
	must(t, err)
	return s
}

// judge returns the answer to one question.
func (p *Fixture) judge(t *testing.T, s *scope.Scope, path string, mode scope.Mode, most int64) workspace.Judgement {
	t.Helper()
	found, err := p.Judge(t.Context(), s, workspace.Question{Path: path, Mode: mode, Most: most})
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%d answers to one question", len(found))
	}
	return found[0]
}

// real returns the folder of the workspace without links.
func (p *Fixture) real(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(p.Dir)
	must(t, err)
	return path
}

func judgeLinks(t *testing.T, p *Fixture) {
	p.put(t, "in/f", "inside")
	p.put(t, "out/f", "outside")
	must(t, os.Symlink("../out", p.at("in/link")))
	must(t, os.Symlink("in", p.at("alias")))
	must(t, os.Symlink("loop", p.at("in/loop")))
	must(t, os.Symlink(p.at("out", "made"), p.at("in/dangling")))
	s := p.scope(t, "alias") // the link of the target is followed once
	for _, c := range []struct {
		path, leads string
		verdict     scope.Verdict
		kind        scope.Kind
	}{
		{"in/f", "in/f", scope.Allowed, scope.Regular},
		{"alias/f", "in/f", scope.Allowed, scope.Regular},
		{"in", "in", scope.Allowed, scope.Folder},
		{"out/f", "out/f", scope.Unlisted, scope.Regular},
		{"in/link/f", "out/f", scope.Unlisted, scope.Regular},
		{"in/../out", "out", scope.Unlisted, scope.Folder},
		{"in/none", "in/none", scope.Allowed, 0},
		{"in/dangling", "out/made", scope.Unlisted, 0},
	} {
		j := p.judge(t, s, p.Dir+"/"+c.path, scope.Write, 0)
		if j.Verdict != c.verdict || j.Path != filepath.Join(p.real(t), c.leads) || c.kind != 0 && (j.Kind != c.kind || j.Err != nil) || c.kind == 0 && !errors.Is(j.Err, fs.ErrNotExist) {
			t.Errorf("%s: %+v", c.path, j)
		}
	}
	if j := p.judge(t, s.With(filepath.Join(p.real(t), "out"), scope.Read), p.at("in/link/f"), scope.Read, 0); j.Verdict != scope.Allowed {
		t.Errorf("what a person has allowed: %+v", j)
	}
}

func judgeRenamed(t *testing.T, p *Fixture) {
	p.put(t, "secret/f", "secret")
	s := p.scope(t, ".", scope.Rule{Target: p.at("secret"), Mode: scope.Read})
	must(t, os.Rename(p.at("secret"), p.at("plain")))
	must(t, os.Symlink("plain", p.at("link")))
	for _, path := range []string{"plain/f", "link/f", "secret/f", "SECRET/f"} {
		j := p.judge(t, s, p.at(path), scope.Read, 100)
		if j.Verdict != scope.Denied || j.Rule != p.at("secret") || len(j.Content) > 0 {
			t.Errorf("%s: %+v", path, j)
		}
	}
	found, err := p.Grep(t.Context(), s, p.query("secret"))
	if err != nil || found.Count != 0 || found.Problems != 1 {
		t.Errorf("a search: %+v, %v", found, err)
	}
}

func judgeContent(t *testing.T, p *Fixture) {
	p.put(t, "f", "content")
	p.put(t, "empty", "")
	must(t, syscall.Mkfifo(p.at("pipe"), 0o600))
	s := p.scope(t, ".")
	for _, c := range []struct {
		name, want string
		most       int64
		err        error
		text       string
	}{
		{"f", "content", 7, nil, ""},
		{"empty", "", 7, nil, ""},
		{"f", "", 6, scope.ErrTooLarge, "it is too large"},
		{"none", "", 7, fs.ErrNotExist, "no such file or directory"},
		{"f/g", "", 7, syscall.Errno(0), "not a directory"},
		{".", "", 7, syscall.EISDIR, "is a directory"},
		{"pipe", "", 7, scope.ErrSpecial, scope.ErrSpecial.Error()},
	} {
		j := p.judge(t, s, p.at(c.name), scope.Read, c.most)
		if c.text == "" {
			if j.Err != nil || string(j.Content) != c.want || j.Content == nil || j.Kind != scope.Regular {
				t.Errorf("%s: %+v", c.name, j)
			}
			continue
		}
		var named *fs.PathError
		if !errors.As(j.Err, &named) || named.Err.Error() != c.text || named.Path != p.at(c.name) || c.err != syscall.Errno(0) && !errors.Is(j.Err, c.err) {
			t.Errorf("%s: %#v", c.name, j.Err)
		}
	}
}

func judgeBadPaths(t *testing.T, p *Fixture) {
	must(t, os.Symlink("loop", p.at("loop")))
	s := p.scope(t, ".")
	for _, path := range []string{"", "f", "../f", "/a\x00b", "/" + strings.Repeat("x/", 3000), p.at("loop")} {
		if j := p.judge(t, s, path, scope.Read, 10); j.Path != "" || j.Err == nil || j.Verdict == scope.Allowed {
			t.Errorf("%.40q: %+v", path, j)
		}
		if _, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: path, MaxWhole: 10}); err == nil {
			t.Errorf("%.40q is shown", path)
		}
	}
	if _, err := p.Scope(t.Context(), []scope.Rule{{Target: "relative"}}, nil); err == nil || !strings.Contains(err.Error(), `allow read relative: "relative" is not an absolute path`) {
		t.Errorf("a rule about a relative path: %v", err)
	}
}

func show(t *testing.T, p *Fixture) {
	p.put(t, "f", "one\ntwo\nthree\n")
	p.put(t, "wide", "\xff\xfeh\x00i\x00")
	p.put(t, "image", "\x89PNG\r\n\x1a\nrest of it")
	p.put(t, "empty", "")
	must(t, syscall.Mkfifo(p.at("pipe"), 0o600))
	s := p.scope(t, ".")
	for _, c := range []struct {
		r    workspace.ShowRequest
		want workspace.Shown
	}{
		{workspace.ShowRequest{Path: "f", MaxWhole: 14}, workspace.Shown{Size: 14, Content: []byte("one\ntwo\nthree\n")}},
		{workspace.ShowRequest{Path: "f", MaxWhole: 13}, workspace.Shown{Size: 14}},
		{workspace.ShowRequest{Path: "empty", MaxWhole: 13}, workspace.Shown{}},
		{workspace.ShowRequest{Path: "wide", MaxWhole: 13}, workspace.Shown{Size: 6, Content: []byte("hi")}},
		{workspace.ShowRequest{Path: "image", MaxImage: 18}, workspace.Shown{Size: 18, Image: "image/png", Content: []byte("\x89PNG\r\n\x1a\nrest of it")}},
		{workspace.ShowRequest{Path: "image", MaxImage: 17}, workspace.Shown{Size: 18, Image: "image/png"}},
		{workspace.ShowRequest{Path: "f", Lines: true, First: 2, Last: 3, MaxLines: 100}, workspace.Shown{Size: 14, Content: []byte("two\nthree"), Seen: 4}},
		{workspace.ShowRequest{Path: "f", Lines: true, First: 9, MaxLines: 100}, workspace.Shown{Size: 14, Seen: 4}},
	} {
		c.r.Path = p.at(c.r.Path)
		got, err := p.Show(t.Context(), s, c.r)
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%+v:\n%+v, %v; want\n%+v", c.r, got, err, c.want)
		}
	}
	_, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("pipe")})
	fails(t, err, scope.ErrSpecial, "showing a pipe")
	_, err = p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("none")})
	fails(t, err, fs.ErrNotExist, "showing what is not there")
}

func showHugeLine(t *testing.T, p *Fixture) {
	p.put(t, "huge", strings.Repeat("x", 20<<20)+"\nend\n")
	s := p.scope(t, ".")
	got, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("huge"), Lines: true, First: 1, MaxLines: 1000})
	if err != nil || !got.Full || len(got.Content) <= 1000 || len(got.Content) > 1100 || got.Seen != 3 {
		t.Errorf("%d bytes, %d lines, %v, %v", len(got.Content), got.Seen, got.Full, err)
	}
	if got, err = p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("huge"), Lines: true, First: 2, Last: 2, MaxLines: 1000}); err != nil || string(got.Content) != "end" {
		t.Errorf("the line after it: %q, %v", got.Content, err)
	}
	q := p.query("end")
	q.Mode, q.Columns = workspace.GrepLines, 100
	if found, err := p.Grep(t.Context(), s, q); err != nil || found.Count != 1 || found.Groups[0].Items[0].Number != 2 {
		t.Errorf("a search: %+v, %v", found, err)
	}
}

func showLarge(t *testing.T, p *Fixture) {
	s := p.scope(t, ".")
	const most = 10 << 20
	line := "äöü and more\n"
	for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20, most, most + 1} {
		text := strings.Repeat(line, size/len(line)+1)[:size]
		p.put(t, "f", text)
		shown, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("f"), MaxWhole: most, MaxImage: 100, MaxLines: 100, MaxNames: 100})
		if size > most {
			text = ""
		}
		if err != nil || string(shown.Content) != text || shown.Size != int64(size) || shown.Folder || shown.Image != "" {
			t.Errorf("of %d bytes %d are shown, %v", size, len(shown.Content), err)
		}
	}
	if shown, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.Dir, MaxWhole: most, MaxNames: 100}); err != nil || !shown.Folder || len(shown.Names) != 1 {
		t.Errorf("a folder: %+v, %v", shown, err)
	}
	_, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("none"), MaxWhole: most})
	fails(t, err, fs.ErrNotExist, "a file that is not there")
	_, err = p.Show(t.Context(), new(scope.Scope), workspace.ShowRequest{Path: p.at("f"), MaxWhole: most})
	if !errors.As(err, new(*scope.Refusal)) {
		t.Errorf("what is not allowed: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	_, err = p.Show(ctx, s, workspace.ShowRequest{Path: p.at("f"), MaxWhole: most})
	if p.Hold != nil { // a small file of this machine is shown before anybody looks at the context
		fails(t, err, errEnough, "what is cancelled")
	}
}

func showDecoded(t *testing.T, p *Fixture) {
	s := p.scope(t, ".")
	line := "a line\n"
	wide := func(text string) string {
		units := utf16.Encode([]rune(text))
		b := []byte("\xff\xfe")
		for _, u := range units {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	for _, count := range []int{1, 60_000, 300_000} {
		text := strings.Repeat(line, count)
		for what, c := range map[string]struct{ data, want, image string }{
			"plain":                  {text, text, ""},
			"UTF-8 with its mark":    {"\xef\xbb\xbf" + text, text, ""},
			"half a mark":            {"\xef\xbb" + text, "\xef\xbb" + text, ""},
			"UTF-16":                 {wide(text), text, ""},
			"bytes that are no text": {"\x00\xff" + text, "\x00\xff" + text, ""},
			"an image":               {"GIF89a" + text, "GIF89a" + text, "image/gif"},
		} {
			p.put(t, "f", c.data)
			shown, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("f"), MaxWhole: 10 << 20, MaxImage: 10 << 20})
			if err != nil || string(shown.Content) != c.want || shown.Size != int64(len(c.data)) || shown.Image != c.image {
				t.Errorf("%s, %d lines: %d bytes of %d are shown as %q: %.20q, %v", what, count, len(shown.Content), shown.Size, shown.Image, shown.Content, err)
			}
		}
	}
}

func showCut(t *testing.T, p *Fixture) {
	if p.Hold == nil {
		t.Skip("there is no connection")
	}
	text := strings.Repeat("x", 3<<20)
	p.put(t, "f", text)
	s := p.scope(t, ".")
	p.Hold()
	done := make(chan error, 1)
	go func() {
		shown, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("f"), MaxWhole: 10 << 20})
		if err == nil && string(shown.Content) != text {
			err = fmt.Errorf("%d bytes are shown", len(shown.Content))
		}
		done <- err
	}()
	p.Cut()
	must(t, <-done)
}

func showFolder(t *testing.T, p *Fixture) {
	for i := range 250 {
		p.put(t, fmt.Sprintf("d/%03d", i), "")
	}
	p.put(t, "d/\xff\xfe", "")
	got, err := p.Show(t.Context(), p.scope(t, "."), workspace.ShowRequest{Path: p.at("d"), MaxNames: 100})
	if err != nil || !got.Folder || got.Count != 251 || len(got.Names) != 100 || got.Names[0] != "000" || got.Names[99] != "099" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = p.Show(t.Context(), p.scope(t, "."), workspace.ShowRequest{Path: p.at("d"), MaxNames: 300})
	if err != nil || len(got.Names) != 251 || got.Names[250] != "\xff\xfe" {
		t.Errorf("%+v, %v", got, err)
	}
}

func scopedRefusals(t *testing.T, p *Fixture) {
	p.put(t, "in/f", "x")
	p.put(t, "out/f", "secret")
	must(t, os.Symlink("../out/f", p.at("in/link")))
	s, out := p.scope(t, "in"), filepath.Join(p.real(t), "out/f")
	text := p.at("in/link") + ", which leads to " + out + ", is outside of what this session may "
	_, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("in/link"), MaxWhole: 10})
	refused(t, err, text+"read")
	refused(t, p.Apply(t.Context(), s, workspace.Change{Path: p.at("in/link"), Leads: out, Before: workspace.Digest([]byte("secret")), New: []byte("bad")}), text)
	refused(t, p.Apply(t.Context(), s, workspace.Change{Path: p.at("out/new"), Leads: filepath.Join(p.real(t), "out/new"), New: []byte("bad")}), "is outside of what this session may write")
	q := p.query("secret")
	q.Roots = []workspace.SearchRoot{{Path: p.at("in/link"), Given: "link"}}
	_, err = p.Grep(t.Context(), s, q)
	refused(t, err, text+"read")
	_, err = p.Glob(t.Context(), s, workspace.GlobQuery{Pattern: "*", Roots: []workspace.SearchRoot{{Path: p.at("out"), Given: "out"}}})
	refused(t, err, "is outside of what this session may read")
	_, err = p.Show(t.Context(), new(scope.Scope), workspace.ShowRequest{Path: p.at("in/f")})
	refused(t, err, "is outside")
	p.hasContent(t, "out/f", "secret")
}

// refused checks that the rules were in the way.
func refused(t *testing.T, err error, text string) {
	t.Helper()
	var r *scope.Refusal
	if !errors.As(err, &r) || !strings.Contains(r.Error(), text) {
		t.Errorf("%v, want a refusal: %s", err, text)
	}
}

// change returns a change of a file in the folder of the workspace; old and now are nil if
// there is no file before or after it.
func (p *Fixture) change(t *testing.T, name string, old, now []byte) workspace.Change {
	return workspace.Change{Path: p.at(name), Leads: filepath.Join(p.real(t), name), Before: workspace.Digest(old), New: now, Key: t.Name()}
}

func applyExpected(t *testing.T, p *Fixture) {
	s := p.scope(t, ".")
	must(t, p.Apply(t.Context(), s, p.change(t, "f", nil, []byte{})))
	p.hasContent(t, "f", "")
	fails(t, p.Apply(t.Context(), s, p.change(t, "f", nil, []byte("b"))), fs.ErrExist, "creating what is there")
	must(t, os.Chmod(p.at("f"), 0o640))
	must(t, p.Apply(t.Context(), s, p.change(t, "f", []byte{}, []byte("a"))))
	fails(t, p.Apply(t.Context(), s, p.change(t, "f", []byte("b"), []byte("c"))), scope.ErrChanged, "a lost update")
	fails(t, p.Apply(t.Context(), s, p.change(t, "none", []byte("b"), []byte("c"))), fs.ErrNotExist, "changing what is not there")
	fails(t, p.Apply(t.Context(), s, p.change(t, "f", []byte("b"), nil)), scope.ErrChanged, "deleting something else")
	p.hasContent(t, "f", "a")
	if info, err := os.Stat(p.at("f")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	moved := p.change(t, "f", []byte("a"), []byte("c"))
	moved.Leads += "/elsewhere"
	fails(t, p.Apply(t.Context(), s, moved), workspace.ErrMoved, "a path that leads elsewhere")
	fails(t, p.Apply(t.Context(), s, p.change(t, "g", nil, make([]byte, workspace.MaxFile+1))), workspace.ErrTooLarge, "too much at once")
	must(t, p.Apply(t.Context(), s, p.change(t, "f", []byte("a"), nil)))
	if _, err := os.Stat(p.at("f")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	p.noTempFiles(t, ".")
}

func applyAgain(t *testing.T, p *Fixture) {
	s := p.scope(t, ".")
	for _, c := range []workspace.Change{
		p.change(t, "f", nil, []byte("a")), p.change(t, "f", []byte("a"), []byte{}), p.change(t, "f", []byte{}, nil),
	} {
		must(t, p.Apply(t.Context(), s, c))
		if err := p.Apply(t.Context(), s, c); err == nil {
			t.Error("a change that was made is made once more")
		}
		c.Again = true
		must(t, p.Apply(t.Context(), s, c))
	}
	again := p.change(t, "f", nil, []byte("b"))
	again.Again = true
	p.put(t, "f", "of somebody else")
	fails(t, p.Apply(t.Context(), s, again), fs.ErrExist, "a file that somebody else has made")
	again.Before = workspace.Digest([]byte("a"))
	fails(t, p.Apply(t.Context(), s, again), scope.ErrChanged, "a file that somebody else has changed")
	p.hasContent(t, "f", "of somebody else")
}

func applyAtOnce(t *testing.T, p *Fixture) {
	s := p.scope(t, ".")
	for range 10 {
		p.put(t, "f", "old")
		var writers sync.WaitGroup
		var made, lost atomic.Int32
		for i := range 8 { // all have the same key, as a request that is repeated
			c := p.change(t, "f", []byte("old"), bytes.Repeat([]byte{byte('a' + i)}, 1_000_000))
			writers.Go(func() {
				switch err := p.Apply(t.Context(), s, c); {
				case err == nil:
					made.Add(1)
				case errors.Is(err, scope.ErrChanged):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		writers.Wait()
		got, err := os.ReadFile(p.at("f"))
		must(t, err)
		if made.Load() != 1 || lost.Load() != 7 || len(got) != 1_000_000 || bytes.Count(got, got[:1]) != len(got) {
			t.Fatalf("%d of 8 were made, and %d refused; the file has %d bytes", made.Load(), lost.Load(), len(got))
		}
	}
	p.noTempFiles(t, ".")
}

func applyRace(t *testing.T, p *Fixture) {
	p.put(t, "d/f", "inside")
	p.put(t, "other/f", "inside") // the rules allow it, but nobody was asked about it
	must(t, os.Symlink(p.at("other"), p.at("link")))
	s, stop := p.scope(t, "."), p.swapWithLink(".")
	defer stop()
	for i := range 60 {
		_ = p.Apply(t.Context(), s, p.change(t, "d/f", []byte("inside"), []byte("changed")))
		_ = p.Apply(t.Context(), s, p.change(t, "d/f", []byte("changed"), []byte("inside")))
		_ = p.Apply(t.Context(), s, p.change(t, fmt.Sprintf("d/%d", i), nil, []byte("new")))
	}
	stop()
	p.hasContent(t, "other/f", "inside")
	if entries, err := os.ReadDir(p.at("other")); len(entries) != 1 || err != nil {
		t.Errorf("in the other folder there is %v, %v", entries, err)
	}
}

// waitFor waits until something is so.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		must(t, t.Context().Err())
		runtime.Gosched()
	}
}

func applyCut(t *testing.T, p *Fixture) {
	if p.Cut == nil {
		t.Skip("there is no connection to lose")
	}
	p.put(t, "f", "old")
	s := p.scope(t, ".")
	c := p.change(t, "f", []byte("old"), []byte("new"))
	changed := make(chan error, 1)
	p.Hold()
	go func() { changed <- p.Apply(t.Context(), s, c) }()
	waitFor(t, func() bool { got, _ := os.ReadFile(p.at("f")); return string(got) == "new" })
	p.Cut()
	must(t, <-changed)
	p.hasContent(t, "f", "new")
	p.noTempFiles(t, ".")
}

// query returns a search for files in the folder of the workspace.
func (p *Fixture) query(pattern string) workspace.GrepQuery {
	return workspace.GrepQuery{
		Pattern: pattern, Roots: []workspace.SearchRoot{{Path: p.Dir, Given: "."}}, Dir: p.Dir, Columns: 500,
		Limits: workspace.Limits{Keep: 200, PerGroup: 24, Text: 20 << 10},
	}
}

func grepBounds(t *testing.T, p *Fixture) {
	const files, lines = 400, 190
	for i := range files {
		p.put(t, fmt.Sprintf("%03d/f", i), strings.Repeat("needle in a line\n", lines))
	}
	p.put(t, "000/f", strings.Repeat("needle in a line that is "+strings.Repeat("long ", 75)+"\n", lines))
	s := p.scope(t, ".")
	for _, mode := range []workspace.GrepMode{workspace.GrepFiles, workspace.GrepCount, workspace.GrepLines} {
		q := p.query("needle")
		q.Mode = mode
		first, err := p.Grep(t.Context(), s, q)
		must(t, err)
		size := 0
		for _, g := range first.Groups {
			size += len(g.Name)
			for _, it := range g.Items {
				size += len(it.Text)
			}
		}
		want := int64(files)
		if mode == workspace.GrepLines {
			want = files * lines
		}
		if first.Count != want || first.Puts != files || size > 48<<10 || len(first.Groups) == 0 || first.Groups[0].Name[:5] != "./000" {
			t.Errorf("mode %d: %d of %d, %d bytes in %d groups", mode, first.Count, want, size, len(first.Groups))
		}
		second, err := p.Grep(t.Context(), s, q)
		if err != nil || fmt.Sprint(first) != fmt.Sprint(second) {
			t.Errorf("mode %d: the same search has other results, %v", mode, err)
		}
	}
}

func grepRules(t *testing.T, p *Fixture) {
	p.put(t, ".git/config", "needle")
	p.put(t, ".gitignore", "*.log\n/build/\n")
	p.put(t, "a.log", "needle")
	p.put(t, "build/b", "needle")
	p.put(t, "src/c.go", "x\nneedle\ny\n")
	p.put(t, "src/d.ts", "needle")
	p.put(t, "secret/e", "needle")
	p.put(t, "binary", "needle\x00")
	must(t, os.Symlink("../src", p.at("src/self")))
	must(t, syscall.Mkfifo(p.at("pipe"), 0o600))
	s := p.scope(t, ".", scope.Rule{Target: p.at("secret"), Mode: scope.Read})
	q := p.query("needle")
	q.Mode, q.Before, q.After, q.Type = workspace.GrepLines, 1, 1, "{*.go}"
	found, err := p.Grep(t.Context(), s, q)
	must(t, err)
	want := `[{Name:./src/c.go Count:1 Items:[{Text:x Number:1 Context:true Counts:false} {Text:needle Number:2 Context:false Counts:true} {Text:y Number:3 Context:true Counts:false}]}]`
	if got := fmt.Sprintf("%+v", found.Groups); got != want || found.Count != 1 || len(found.Folders) != 1 || !found.Folders[0] {
		t.Errorf("%s, want\n%s", got, want)
	}
	if found.Problems != 1 || !strings.Contains(found.Problem, "secret may not be used to read: a rule denies "+p.at("secret")) {
		t.Errorf("%d problems: %s", found.Problems, found.Problem)
	}
	q = p.query("needle")
	if found, err = p.Grep(t.Context(), s, q); err != nil || len(found.Groups) != 1 || found.Groups[0].Name != "./src/" || len(found.Groups[0].Items) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	q.Glob = "*.log"
	if found, err = p.Grep(t.Context(), s, q); err != nil || found.Count != 1 || found.Groups[0].Items[0].Text != "a.log" {
		t.Errorf("%+v, %v", found, err)
	}
}

func grepNames(t *testing.T, p *Fixture) {
	p.put(t, "\xff\xfe/\xe9.txt", "caf\xe9 needle\n")
	q := p.query("needle")
	q.Mode = workspace.GrepLines
	found, err := p.Grep(t.Context(), p.scope(t, "."), q)
	if err != nil || len(found.Groups) != 1 || found.Groups[0].Name != "./\xff\xfe/\xe9.txt" || found.Groups[0].Items[0].Text != "caf\ufffd needle" {
		t.Errorf("%+v, %v", found, err)
	}
	named, err := p.Glob(t.Context(), p.scope(t, "."), workspace.GlobQuery{Pattern: "*.txt", Roots: q.Roots, Limits: q.Limits})
	if err != nil || len(named.Groups) != 1 || named.Groups[0].Name+named.Groups[0].Items[0].Text != "./\xff\xfe/\xe9.txt" {
		t.Errorf("%+v, %v", named, err)
	}
}

func grepCancelled(t *testing.T, p *Fixture) {
	for i := range 300 {
		p.put(t, fmt.Sprint(i), "x")
	}
	s, why := p.scope(t, "."), errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := p.Grep(ctx, s, p.query("x"))
	fails(t, err, why, "a search that nobody waits for")
	_, err = p.Glob(ctx, s, workspace.GlobQuery{Pattern: "*", Roots: p.query("x").Roots})
	fails(t, err, why, "a search by name that nobody waits for")
	_, err = p.Show(ctx, s, workspace.ShowRequest{Path: p.at("1"), MaxWhole: 10})
	fails(t, err, why, "showing a file to nobody")
	_, err = p.Judge(ctx, s, workspace.Question{Path: p.at("1")})
	fails(t, err, why, "judging for nobody")
	fails(t, p.Apply(ctx, s, p.change(t, "new", nil, []byte("x"))), why, "a change that nobody waits for")
}

func grepCut(t *testing.T, p *Fixture) {
	if p.Cut == nil {
		t.Skip("there is no connection to lose")
	}
	p.put(t, "f", "needle")
	s := p.scope(t, ".")
	type result struct {
		found workspace.Found
		err   error
	}
	searched := make(chan result, 1)
	p.Hold()
	go func() {
		found, err := p.Grep(t.Context(), s, p.query("needle"))
		searched <- result{found, err}
	}()
	p.Cut()
	if r := <-searched; r.err != nil || r.found.Count != 1 {
		t.Errorf("%+v", r)
	}
}

func searchMissing(t *testing.T, p *Fixture) {
	p.put(t, "f", "x")
	q := p.query("x")
	q.Roots = []workspace.SearchRoot{{Path: p.at("f"), Given: "f"}, {Path: p.at("no"), Given: "no"}, {Path: p.at("nor"), Given: "nor"}}
	found, err := p.Grep(t.Context(), p.scope(t, "."), q)
	if err != nil || strings.Join(found.Missing, " ") != "no nor" || found.Count != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	found, err = p.Glob(t.Context(), p.scope(t, "."), workspace.GlobQuery{Pattern: "*", Roots: q.Roots})
	if err != nil || strings.Join(found.Missing, " ") != "no nor" {
		t.Errorf("%+v, %v", found, err)
	}
	q.Roots = []workspace.SearchRoot{{Path: p.at("f/g"), Given: "f/g"}}
	_, err = p.Grep(t.Context(), p.scope(t, "."), q)
	var named *fs.PathError
	if !errors.As(err, &named) || named.Path != p.at("f/g") || named.Err.Error() != "not a directory" {
		t.Errorf("a file on the way: %v", err)
	}
}

func globNames(t *testing.T, p *Fixture) {
	p.put(t, ".gitignore", "*.go")
	p.put(t, "a.go", "")
	p.put(t, "d/b.go", "")
	p.put(t, "d/c.ts", "")
	p.put(t, ".git/d.go", "")
	for pattern, want := range map[string]string{
		"*.go": "./a.go ./d/b.go", "d/*": "./d/b.go ./d/c.ts", ".git/*": "./.git/d.go", "**/*.ts": "./d/c.ts", "z*": "",
	} {
		found, err := p.Glob(t.Context(), p.scope(t, "."), workspace.GlobQuery{Pattern: pattern, Roots: p.query("").Roots, Limits: p.query("").Limits})
		must(t, err)
		var names []string
		for _, g := range found.Groups {
			for _, it := range g.Items {
				names = append(names, g.Name+it.Text)
			}
		}
		if got := strings.Join(names, " "); got != want || found.Count != int64(len(names)) {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func badQueries(t *testing.T, p *Fixture) {
	s := p.scope(t, ".")
	for _, q := range []workspace.GrepQuery{{Pattern: "("}, {Pattern: "a\nb"}, {Pattern: "x", Glob: "["}, {Pattern: "x", Type: "["}} {
		_, err := p.Grep(t.Context(), s, q)
		fails(t, err, fs.ErrInvalid, fmt.Sprintf("%+v", q))
	}
	_, err := p.Glob(t.Context(), s, workspace.GlobQuery{Pattern: "["})
	fails(t, err, fs.ErrInvalid, "a bad pattern of names")
}

func hostileLimits(t *testing.T, p *Fixture) {
	const huge = 1 << 31
	p.put(t, "f", strings.Repeat("needle\n", 5_000))
	s := p.scope(t, ".")
	q := p.query("needle")
	q.Mode, q.Before, q.After, q.Columns = workspace.GrepLines, huge, -huge, -1
	q.Limits = workspace.Limits{Keep: huge, PerGroup: huge, Text: huge}
	found, err := p.Grep(t.Context(), s, q)
	if err != nil || found.Count != 5_000 || len(found.Groups[0].Items) != workspace.MaxFound {
		t.Errorf("%d, %v", found.Count, err)
	}
	q.Limits = workspace.Limits{Keep: -huge, PerGroup: -huge, Text: -huge}
	if found, err = p.Grep(t.Context(), s, q); err != nil || found.Count != 5_000 || len(found.Groups) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	for _, n := range []int64{huge, -huge} {
		if _, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("f"), Lines: true, First: n, Last: -n, MaxWhole: n, MaxImage: n, MaxLines: int(n), MaxNames: int(n)}); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		if _, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.Dir, MaxNames: int(n)}); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	must(t, os.Truncate(p.at("f"), workspace.MaxFile+1))
	if j := p.judge(t, s, p.at("f"), scope.Read, huge*huge); !errors.Is(j.Err, scope.ErrTooLarge) {
		t.Errorf("%v, %d bytes", j.Err, len(j.Content))
	}
	if shown, err := p.Show(t.Context(), s, workspace.ShowRequest{Path: p.at("f"), MaxWhole: huge * huge}); err != nil || len(shown.Content) > 0 {
		t.Errorf("%d bytes, %v", len(shown.Content), err)
	}
}
