package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/workspace"
)

// Files tests the promises of a workspace about files.
func Files(t *testing.T, open Open) {
	tests := map[string]func(*testing.T, *Fixture){
		"WhatIsWrittenIsRead":                         written,
		"PathsStartAtTheFolderOrAreAbsolute":          paths,
		"NamesAreBytes":                               names,
		"StatSaysWhatIsThere":                         stat,
		"AWriteKeepsPermissionsAndFollowsLinks":       keeps,
		"ANewFileReplacesNothing":                     newFile,
		"ADraftThatIsGivenUpChangesNothing":           givenUp,
		"ADraftWhoseContextEndsChangesNothing":        cancelled,
		"AReaderSeesTheOldFileOrTheNewOne":            atomicWrite,
		"StreamsHaveNoLimitAndStartAnywhere":          streams,
		"WholeFilesHaveALimit":                        tooLarge,
		"FoldersAreListedInOrderAndInPages":           list,
		"AListingOfLongNamesComesInPages":             longNames,
		"ARecursiveListingFollowsNoLinks":             listAll,
		"FoldersAreMadeWithTheOnesAbove":              mkdir,
		"RenameReplacesFilesAndNothingElse":           rename,
		"DeleteTakesWhatItIsToldTo":                   remove,
		"BelowARootNoLinkIsFollowed":                  noFollow,
		"WhatIsNoFileIsNotRead":                       special,
		"BadPathsAreRefused":                          badPaths,
		"SwappingAFolderForALinkNeverLeadsOutOfARoot": race,
	}
	maps.Copy(tests, scopedTests)
	maps.Copy(tests, projectTests)
	maps.Copy(tests, guardedTests)
	maps.Copy(tests, lookTests)
	maps.Copy(tests, changesTests)
	runAll(t, open, tests)
}

// Projects tests the promises of a workspace about files that the runtime reads by itself,
// which Files tests too: for workspaces that give access to a part of the files.
func Projects(t *testing.T, open Open) { runAll(t, open, projectTests) }

// Changes tests the promises of a workspace about what git knows, which Files tests too.
func Changes(t *testing.T, open Open) { runAll(t, open, changesTests) }

// Guarded tests the promises of a workspace about protected files, which Files tests too.
func Guarded(t *testing.T, open Open) { runAll(t, open, guardedTests) }

// Scoped tests the promises of a workspace about files as the rules of a session allow
// them, which Files tests too: for workspaces that give access to a part of the files.
func Scoped(t *testing.T, open Open) { runAll(t, open, scopedTests) }

func runAll(t *testing.T, open Open, tests map[string]func(*testing.T, *Fixture)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// at returns a path in the folder of the workspace.
func (p *Fixture) at(names ...string) string {
	return filepath.Join(append([]string{p.Dir}, names...)...)
}

// put writes a file directly, without the workspace.
func (p *Fixture) put(t *testing.T, name, content string) string {
	t.Helper()
	path := p.at(name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// hasContent checks the content of a file directly, without the workspace.
func (p *Fixture) hasContent(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(p.at(name))
	must(t, err)
	if string(got) != want {
		t.Errorf("%s holds %.80q, want %.80q", name, got, want)
	}
}

// noTempFiles checks that no temporary file was left in a folder.
func (p *Fixture) noTempFiles(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(p.at(dir))
	must(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".abide-") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t *testing.T, err, want error, doing string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", doing, err, want)
	}
}

func written(t *testing.T, p *Fixture) {
	for i, content := range []string{"", "hello\n", "\x00\xff\xfe not a text", strings.Repeat("line\n", 100_000)} {
		name := workspace.At(fmt.Sprintf("deep/er/%d", i))
		must(t, p.WriteFile(t.Context(), name, []byte(content), workspace.WriteOptions{}))
		got, err := p.ReadFile(t.Context(), name)
		must(t, err)
		if string(got) != content {
			t.Errorf("file %d holds %.60q, want %.60q", i, got, content)
		}
		must(t, p.WriteFile(t.Context(), name, []byte("new"), workspace.WriteOptions{}))
		p.hasContent(t, name.Name, "new")
	}
	p.noTempFiles(t, "deep/er")
}

func paths(t *testing.T, p *Fixture) {
	p.put(t, "a/b", "found")
	for _, path := range []workspace.Path{
		workspace.At("a/b"), workspace.At("./a/../a/b"), workspace.At(p.at("a/b")),
		workspace.Below("a", "b"), workspace.Below(p.at("a"), "./b"), workspace.Below(p.Dir, "a/b"),
	} {
		got, err := p.ReadFile(t.Context(), path)
		if string(got) != "found" || err != nil {
			t.Errorf("%+v: %q, %v", path, got, err)
		}
	}
}

func names(t *testing.T, p *Fixture) {
	if runtime.GOOS != "linux" {
		t.Skip("here file names are text")
	}
	name := "a \n\xff\xc3 name"
	must(t, p.WriteFile(t.Context(), workspace.At(name), []byte("x"), workspace.WriteOptions{}))
	p.hasContent(t, name, "x")
	l, err := p.List(t.Context(), workspace.At("."), workspace.ListOptions{})
	must(t, err)
	if len(l.Entries) != 1 || l.Entries[0].Name != name {
		t.Errorf("listed: %+v", l.Entries)
	}
	_, err = p.ReadFile(t.Context(), workspace.At("missing\xff"))
	fails(t, err, fs.ErrNotExist, "reading a missing file whose name is no text")
}

func stat(t *testing.T, p *Fixture) {
	path := p.put(t, "f", "12345")
	must(t, os.Chmod(path, 0o640))
	must(t, os.Mkdir(p.at("d"), 0o750))
	must(t, os.Symlink("f", p.at("l")))
	want, err := os.Stat(path)
	must(t, err)
	for _, c := range []struct {
		path workspace.Path
		mode fs.FileMode
	}{
		{workspace.At("f"), 0o640},
		{workspace.At("d"), fs.ModeDir | 0o750},
		{workspace.At("l"), 0o640},
		{workspace.Below(p.Dir, "f"), 0o640},
		{workspace.At("/dev/null"), fs.ModeDevice | fs.ModeCharDevice | 0o666},
	} {
		got, err := p.Stat(t.Context(), c.path)
		if err != nil || got.Mode != c.mode {
			t.Errorf("%+v: mode %v, %v; want %v", c.path, got.Mode, err, c.mode)
		}
	}
	got, err := p.Stat(t.Context(), workspace.At("f"))
	if err != nil || got.Size != 5 || !got.ModTime.Equal(want.ModTime()) || got.Name != "f" {
		t.Errorf("%+v, %v; want %v", got, err, want)
	}
	link, err := p.Stat(t.Context(), workspace.Below(p.Dir, "l"))
	if err != nil || link.Mode.Type() != fs.ModeSymlink {
		t.Errorf("a link below a root: %+v, %v", link, err)
	}
	_, err = p.Stat(t.Context(), workspace.At("none"))
	fails(t, err, fs.ErrNotExist, "a missing file")
	if err != nil && !strings.Contains(err.Error(), "none") {
		t.Errorf("the error does not name the file: %v", err)
	}
}

func keeps(t *testing.T, p *Fixture) {
	must(t, os.Chmod(p.put(t, "d/script", "old"), 0o751))
	must(t, os.Symlink("d/script", p.at("link")))
	must(t, os.Symlink("link", p.at("again")))
	must(t, p.WriteFile(t.Context(), workspace.At("again"), []byte("new"), workspace.WriteOptions{}))
	p.hasContent(t, "d/script", "new")
	info, err := os.Lstat(p.at("d/script"))
	must(t, err)
	if info.Mode() != 0o751 {
		t.Errorf("the file has mode %v", info.Mode())
	}
	if link, err := os.Readlink(p.at("again")); link != "link" || err != nil {
		t.Errorf("the link leads to %q, %v", link, err)
	}
	must(t, os.Symlink("d/later", p.at("dangling")))
	must(t, p.WriteFile(t.Context(), workspace.At("dangling"), []byte("x"), workspace.WriteOptions{Perm: 0o600}))
	p.hasContent(t, "d/later", "x")
	if info, err := os.Lstat(p.at("d/later")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the new file has mode %v, %v", info.Mode(), err)
	}
	must(t, os.Symlink("round", p.at("round")))
	err = p.WriteFile(t.Context(), workspace.At("round"), nil, workspace.WriteOptions{})
	if err == nil {
		t.Error("a link to itself was written")
	}
	p.noTempFiles(t, ".")
}

func newFile(t *testing.T, p *Fixture) {
	o := workspace.WriteOptions{New: true}
	must(t, p.WriteFile(t.Context(), workspace.At("f"), []byte("first"), o))
	fails(t, p.WriteFile(t.Context(), workspace.At("f"), []byte("second"), o), fs.ErrExist, "a second new file")
	p.hasContent(t, "f", "first")
	// Of several concurrent writers, exactly one creates the file.
	var made, refused int
	var mu sync.Mutex
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			err := p.WriteFile(t.Context(), workspace.Below(p.Dir, "one"), fmt.Append(nil, i), o)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case errors.Is(err, fs.ErrExist):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if made != 1 || refused != 7 {
		t.Errorf("%d made the file and %d were refused", made, refused)
	}
	p.noTempFiles(t, ".")
}

func givenUp(t *testing.T, p *Fixture) {
	p.put(t, "f", "old")
	d, err := p.Create(t.Context(), workspace.At("f"), workspace.WriteOptions{})
	must(t, err)
	_, err = d.Write([]byte("half of it"))
	must(t, err)
	must(t, d.Close())
	p.hasContent(t, "f", "old")
	if _, err := d.Write([]byte("more")); err == nil {
		t.Error("a closed draft can be written")
	}
	if d.Commit() == nil {
		t.Error("a closed draft can be committed")
	}
	p.hasContent(t, "f", "old")
}

func cancelled(t *testing.T, p *Fixture) {
	p.put(t, "f", "old")
	ctx, cancel := context.WithCancel(t.Context())
	d, err := p.Create(ctx, workspace.At("f"), workspace.WriteOptions{})
	must(t, err)
	defer d.Close()
	_, err = d.Write([]byte("new"))
	must(t, err)
	cancel()
	fails(t, d.Commit(), context.Canceled, "committing after the context ended")
	p.hasContent(t, "f", "old")
	fails(t, p.WriteFile(ctx, workspace.At("f"), []byte("new"), workspace.WriteOptions{}), context.Canceled, "writing after the context ended")
	p.hasContent(t, "f", "old")
}

func atomicWrite(t *testing.T, p *Fixture) {
	versions := []string{strings.Repeat("a", 200_000), strings.Repeat("b", 200_000)}
	must(t, p.WriteFile(t.Context(), workspace.At("f"), []byte(versions[0]), workspace.WriteOptions{}))
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			got, err := p.ReadFile(t.Context(), workspace.At("f"))
			if err != nil || !slices.Contains(versions, string(got)) {
				t.Errorf("read %d bytes from %.20q to %.20q, %v", len(got), got, got[max(0, len(got)-20):], err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for i := range 20 {
		must(t, p.WriteFile(t.Context(), workspace.At("f"), []byte(versions[i%2]), workspace.WriteOptions{}))
	}
	close(done)
	reader.Wait()
}

func streams(t *testing.T, p *Fixture) {
	block := bytes.Repeat([]byte("0123456789abcdef"), 4<<10) // 64 KiB
	const blocks = workspace.MaxFile>>16 + 3
	d, err := p.Create(t.Context(), workspace.Below(p.Dir, "sub/big"), workspace.WriteOptions{})
	must(t, err)
	defer d.Close()
	for range blocks {
		_, err := d.Write(block)
		must(t, err)
	}
	if _, err := os.Stat(p.at("sub/big")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there before it is whole: %v", err)
	}
	must(t, d.Commit())
	must(t, d.Close())
	for _, offset := range []int64{0, blocks<<16 - 70_001, blocks<<16 - 5, blocks << 16, blocks<<16 + 1} {
		r, err := p.Open(t.Context(), workspace.At("sub/big"), offset)
		must(t, err)
		n, err := io.Copy(&contentChecker{block, int(offset)}, r)
		if want := max(0, blocks<<16-offset); n != want || err != nil {
			t.Errorf("from %d: %d bytes, %v; want %d", offset, n, err, want)
		}
		must(t, r.Close())
	}
	_, err = p.Open(t.Context(), workspace.At("sub/big"), -1)
	fails(t, err, fs.ErrInvalid, "a negative offset")
	// A reader may close the file early.
	r, err := p.Open(t.Context(), workspace.At("sub/big"), 0)
	must(t, err)
	_, err = r.Read(make([]byte, 10))
	must(t, err)
	must(t, r.Close())
}

// contentChecker is a writer that checks the content of a file of repeated blocks, from an
// offset on.
type contentChecker struct {
	block []byte
	at    int
}

func (e *contentChecker) Write(p []byte) (int, error) {
	for i := 0; i < len(p); {
		part := e.block[e.at%len(e.block):]
		part = part[:min(len(part), len(p)-i)]
		if !bytes.Equal(part, p[i:i+len(part)]) {
			return i, fmt.Errorf("other bytes at %d", e.at)
		}
		i += len(part)
		e.at += len(part)
	}
	return len(p), nil
}

func tooLarge(t *testing.T, p *Fixture) {
	must(t, os.Truncate(p.put(t, "f", ""), workspace.MaxFile+1))
	_, err := p.ReadFile(t.Context(), workspace.At("f"))
	fails(t, err, workspace.ErrTooLarge, "reading one byte too many")
	fails(t, p.WriteFile(t.Context(), workspace.At("g"), make([]byte, workspace.MaxFile+1), workspace.WriteOptions{}), workspace.ErrTooLarge, "writing one byte too many")
	must(t, p.WriteFile(t.Context(), workspace.At("f"), make([]byte, workspace.MaxFile), workspace.WriteOptions{}))
	got, err := p.ReadFile(t.Context(), workspace.At("f"))
	if len(got) != workspace.MaxFile || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func entryNames(l workspace.Listing) string {
	var names []string
	for _, e := range l.Entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func list(t *testing.T, p *Fixture) {
	for _, name := range []string{"b", "a", "Z", "c/x", "ä"} {
		p.put(t, name, name)
	}
	for _, c := range []struct {
		o    workspace.ListOptions
		want string
	}{
		{workspace.ListOptions{}, "Z a b c ä"},
		{workspace.ListOptions{Offset: 1, Limit: 2}, "a b"},
		{workspace.ListOptions{Offset: 4}, "ä"},
		{workspace.ListOptions{Offset: 9}, ""},
		{workspace.ListOptions{Offset: -1, Limit: -1}, "Z a b c ä"},
	} {
		l, err := p.List(t.Context(), workspace.At("."), c.o)
		if err != nil || entryNames(l) != c.want || l.Total != 5 {
			t.Errorf("%+v: %s of %d, %v; want %s", c.o, entryNames(l), l.Total, err, c.want)
		}
	}
	l, err := p.List(t.Context(), workspace.Below(p.Dir, "."), workspace.ListOptions{})
	if err != nil || l.Total != 5 || !l.Entries[3].Mode.IsDir() || l.Entries[1].Size != 1 {
		t.Errorf("below the root: %+v, %v", l, err)
	}
	_, err = p.List(t.Context(), workspace.At("a"), workspace.ListOptions{})
	fails(t, err, workspace.ErrNotFolder, "listing a file")
	_, err = p.List(t.Context(), workspace.At("none"), workspace.ListOptions{})
	fails(t, err, fs.ErrNotExist, "listing a missing folder")
}

func listAll(t *testing.T, p *Fixture) {
	p.put(t, "d/e/f", "")
	p.put(t, "g", "")
	must(t, os.Symlink("..", p.at("d/up")))
	must(t, os.Symlink("d", p.at("link")))
	l, err := p.List(t.Context(), workspace.At(p.Dir), workspace.ListOptions{Recursive: true})
	if want := "d d/e d/e/f d/up g link"; err != nil || entryNames(l) != want || l.Total != 6 {
		t.Errorf("listed %s of %d, %v; want %s", entryNames(l), l.Total, err, want)
	}
	l, err = p.List(t.Context(), workspace.At("link"), workspace.ListOptions{Recursive: true})
	if want := "e e/f up"; err != nil || entryNames(l) != want {
		t.Errorf("listed %s, %v; want %s", entryNames(l), err, want)
	}
	_, err = p.List(t.Context(), workspace.Below(p.Dir, "link"), workspace.ListOptions{Recursive: true})
	fails(t, err, workspace.ErrLink, "listing a link below a root")
}

func longNames(t *testing.T, p *Fixture) {
	dir := p.Dir
	for range 13 {
		dir = filepath.Join(dir, strings.Repeat("x", 250))
	}
	must(t, os.MkdirAll(dir, 0o755))
	const files = 3000 // their names have 10 MB
	for i := range files {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	seen := make(map[string]bool)
	for pages := 1; ; pages++ {
		l, err := p.List(t.Context(), workspace.At("."), workspace.ListOptions{Recursive: true, Offset: len(seen)})
		must(t, err)
		for _, e := range l.Entries {
			seen[e.Name] = true
		}
		if len(seen) == l.Total || len(l.Entries) == 0 {
			if len(seen) != files+13 || pages == 1 {
				t.Errorf("%d entries on %d pages, want %d on some", len(seen), pages, files+13)
			}
			return
		}
	}
}

func mkdir(t *testing.T, p *Fixture) {
	for _, path := range []workspace.Path{
		workspace.At("a/b/c"), workspace.At("a/b/c"), workspace.At("."),
		workspace.Below(p.Dir, "r/s"), workspace.Below(p.Dir, "r/s"), workspace.Below(p.Dir, "."),
	} {
		must(t, p.Mkdir(t.Context(), path))
		if info, err := os.Stat(p.at(path.Name)); err != nil || !info.IsDir() {
			t.Errorf("%+v was not made: %v", path, err)
		}
	}
	p.put(t, "f", "")
	for _, path := range []workspace.Path{workspace.At("f"), workspace.At("f/g"), workspace.Below(p.Dir, "f"), workspace.Below(p.Dir, "f/g")} {
		fails(t, p.Mkdir(t.Context(), path), workspace.ErrNotFolder, "making "+path.String())
	}
}

func rename(t *testing.T, p *Fixture) {
	p.put(t, "a", "a")
	p.put(t, "b", "b")
	p.put(t, "d/x", "x")
	p.put(t, "e/y", "y")
	must(t, p.Rename(t.Context(), workspace.At("a"), workspace.At("b")))
	p.hasContent(t, "b", "a")
	must(t, p.Rename(t.Context(), workspace.Below(p.Dir, "b"), workspace.Below(p.at("d"), "z")))
	p.hasContent(t, "d/z", "a")
	fails(t, p.Rename(t.Context(), workspace.At("gone"), workspace.At("d/z")), fs.ErrNotExist, "renaming what is not there")
	fails(t, p.Rename(t.Context(), workspace.At("d"), workspace.At("e")), workspace.ErrNotEmpty, "replacing a folder that has something in it")
	fails(t, p.Rename(t.Context(), workspace.At("d/z"), workspace.At("e")), workspace.ErrFolder, "replacing a folder by a file")
	fails(t, p.Rename(t.Context(), workspace.At("d"), workspace.At("e/y")), workspace.ErrNotFolder, "replacing a file by a folder")
	fails(t, p.Rename(t.Context(), workspace.At("d"), workspace.At("none/d")), fs.ErrNotExist, "renaming into a missing folder")
	must(t, p.Rename(t.Context(), workspace.At("d"), workspace.At("new")))
	p.hasContent(t, "new/x", "x")
}

func remove(t *testing.T, p *Fixture) {
	p.put(t, "f", "")
	p.put(t, "d/e/f", "")
	p.put(t, "kept/f", "kept")
	must(t, os.Mkdir(p.at("empty"), 0o755))
	must(t, os.Symlink("../kept", p.at("d/link")))
	must(t, os.Symlink("kept", p.at("link")))
	for _, path := range []workspace.Path{workspace.At("f"), workspace.At("empty"), workspace.Below(p.Dir, "link")} {
		must(t, p.Delete(t.Context(), path, false))
		if _, err := os.Lstat(p.at(path.Name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v is still there: %v", path, err)
		}
	}
	fails(t, p.Delete(t.Context(), workspace.At("d"), false), workspace.ErrNotEmpty, "deleting a folder that has something in it")
	fails(t, p.Delete(t.Context(), workspace.At("f"), false), fs.ErrNotExist, "deleting what is gone")
	fails(t, p.Delete(t.Context(), workspace.At("f"), true), fs.ErrNotExist, "deleting all of what is gone")
	must(t, p.Delete(t.Context(), workspace.At("d"), true))
	if _, err := os.Lstat(p.at("d")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	p.hasContent(t, "kept/f", "kept")
	fails(t, p.Delete(t.Context(), workspace.Below(p.Dir, "."), true), fs.ErrInvalid, "deleting a root")
	fails(t, p.Delete(t.Context(), workspace.At("/"), true), fs.ErrInvalid, "deleting everything")
}

func noFollow(t *testing.T, p *Fixture) {
	p.put(t, "out/secret", "secret")
	must(t, os.Mkdir(p.at("root"), 0o755))
	must(t, os.Symlink("../out", p.at("root/folder")))
	must(t, os.Symlink("../out/secret", p.at("root/file")))
	must(t, os.Symlink("../out/made", p.at("root/dangling")))
	must(t, os.Symlink("root", p.at("alias")))
	for _, root := range []string{"root", "alias"} { // the root itself may be reached through a link
		below := func(name string) workspace.Path { return workspace.Below(root, name) }
		for _, name := range []string{"file", "folder/secret"} {
			_, err := p.ReadFile(t.Context(), below(name))
			fails(t, err, workspace.ErrLink, "reading "+name)
			_, err = p.Open(t.Context(), below(name), 0)
			fails(t, err, workspace.ErrLink, "opening "+name)
		}
		for _, name := range []string{"file", "folder/secret", "folder/new", "dangling"} {
			fails(t, p.WriteFile(t.Context(), below(name), []byte("bad"), workspace.WriteOptions{}), workspace.ErrLink, "writing "+name)
		}
		fails(t, p.Mkdir(t.Context(), below("folder")), workspace.ErrLink, "making a folder where a link is")
		fails(t, p.Mkdir(t.Context(), below("folder/sub")), workspace.ErrLink, "making a folder behind a link")
		fails(t, p.Delete(t.Context(), below("folder/secret"), false), workspace.ErrLink, "deleting behind a link")
		fails(t, p.Rename(t.Context(), below("folder/secret"), below("mine")), workspace.ErrLink, "renaming from behind a link")
		_, err := p.Stat(t.Context(), below("folder/secret"))
		fails(t, err, workspace.ErrLink, "looking behind a link")
	}
	p.hasContent(t, "out/secret", "secret")
	if entries, err := os.ReadDir(p.at("out")); len(entries) != 1 || err != nil {
		t.Errorf("outside there is %v, %v", entries, err)
	}
}

func special(t *testing.T, p *Fixture) {
	must(t, syscall.Mkfifo(p.at("pipe"), 0o600)) // a read of it would block for ever
	for _, path := range []workspace.Path{workspace.At("pipe"), workspace.Below(p.Dir, "pipe"), workspace.At("/dev/null")} {
		_, err := p.ReadFile(t.Context(), path)
		fails(t, err, workspace.ErrSpecial, "reading "+path.String())
	}
	fails(t, p.WriteFile(t.Context(), workspace.At("pipe"), nil, workspace.WriteOptions{}), workspace.ErrSpecial, "writing a pipe")
	_, err := p.ReadFile(t.Context(), workspace.At("."))
	fails(t, err, workspace.ErrFolder, "reading a folder")
	fails(t, p.WriteFile(t.Context(), workspace.At("."), nil, workspace.WriteOptions{}), workspace.ErrFolder, "writing a folder")
}

func badPaths(t *testing.T, p *Fixture) {
	p.put(t, "f", "")
	for _, path := range []workspace.Path{
		{}, {Root: p.Dir}, workspace.At("a\x00b"), workspace.Below(p.Dir, "../x"), workspace.Below(p.Dir, "/etc"),
		workspace.Below(p.Dir, "a/../../x"), workspace.Below("a\x00b", "x"),
	} {
		_, err := p.Stat(t.Context(), path)
		fails(t, err, fs.ErrInvalid, fmt.Sprintf("looking at %+v", path))
		fails(t, p.WriteFile(t.Context(), path, nil, workspace.WriteOptions{}), fs.ErrInvalid, fmt.Sprintf("writing %+v", path))
	}
	_, err := p.ReadFile(t.Context(), workspace.Below(p.Dir, "f/g"))
	fails(t, err, workspace.ErrNotFolder, "a file on the way")
	_, err = p.ReadFile(t.Context(), workspace.At("f/g"))
	fails(t, err, workspace.ErrNotFolder, "a file on the way")
	_, err = p.Stat(t.Context(), workspace.At(strings.Repeat("x", 5000)))
	if err == nil {
		t.Error("a name of 5000 bytes was found")
	}
}

// swapWithLink lets the folder d and the link beside it, both in dir, take each other's
// place all the time, until stop is called.
func (p *Fixture) swapWithLink(dir string) (stop func()) {
	at := func(name string) string { return p.at(filepath.Join(dir, name)) }
	done := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			_ = os.Rename(at("d"), at("was"))
			_ = os.Rename(at("link"), at("d"))
			_ = os.Rename(at("d"), at("link"))
			_ = os.Rename(at("was"), at("d"))
			select {
			case <-done:
				return
			default:
			}
		}
	})
	return sync.OnceFunc(func() { close(done); swapper.Wait() })
}

func race(t *testing.T, p *Fixture) {
	p.put(t, "out/f", "outside")
	p.put(t, "root/d/f", "inside")
	must(t, os.Symlink(p.at("out"), p.at("root/link")))
	stop := p.swapWithLink("root")
	defer stop()
	path := workspace.Below(p.at("root"), "d/f")
	for i := range 50 {
		if got, err := p.ReadFile(t.Context(), path); err == nil && string(got) == "outside" {
			t.Fatal("a link was followed")
		}
		_ = p.WriteFile(t.Context(), path, []byte("inside"), workspace.WriteOptions{})
		if i%10 == 0 {
			_ = p.Delete(t.Context(), workspace.Below(p.at("root"), "d/sub"), true)
			_ = p.Mkdir(t.Context(), workspace.Below(p.at("root"), "d/sub/x"))
		}
	}
	stop()
	p.hasContent(t, "out/f", "outside")
	if entries, err := os.ReadDir(p.at("out")); len(entries) != 1 || err != nil {
		t.Errorf("outside there is %v, %v", entries, err)
	}
}
