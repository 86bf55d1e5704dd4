package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/event"
	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files"
)

func TestCreateTexts(t *testing.T) {
	b := newFixture(t)
	b.put("there", "x")
	b.put("dir/x", "x")
	for _, test := range []struct{ arguments, want, message string }{
		{`{"path":"$/new.txt","file_text":"Created by test"}`, "Created file $/new.txt with 15 characters", ""},
		{`{"path":"wide.txt","file_text":"é😀\n"}`, "Created file $/wide.txt with 4 characters", ""},
		{`{"path":"empty.txt","file_text":""}`, "Created file $/empty.txt with 0 characters", ""},
		{`{"path":"there","file_text":"y"}`, "Path $/there already exists as a file. Use `view` to check contents then edit it.", "Path already exists"},
		{`{"path":"dir","file_text":"y"}`, "Path $/dir already exists as a directory. Use `view` to check contents then edit it.", "Path already exists"},
		{`{"path":"none/x","file_text":"y"}`, "Parent directory $/none does not exist. You need to create it before creating the file.", "Parent directory does not exist"},
	} {
		r := b.run("create", test.arguments)
		if want := strings.ReplaceAll(test.want, "$", b.dir); r.Text != want || r.Failed != (test.message != "") || r.Message != test.message {
			t.Errorf("%s: %q, %q", test.arguments, r.Text, r.Message)
		}
	}
	if b.content("wide.txt") != "é😀\n" || b.content("there") != "x" || b.content("empty.txt") != "" {
		t.Error("the files hold something else")
	}
	if r := b.run("create", `{"path":"d.txt","file_text":"x\n"}`); !strings.HasSuffix(r.Detailed, "@@ -0,0 +1 @@\n+x\n") {
		t.Errorf("people are shown %q", r.Detailed)
	}
}

func TestEditTexts(t *testing.T) {
	b := newFixture(t)
	b.put("a.txt", "Hello World\nGoodbye World\n")
	b.put("foo.txt", "foo\nfoo bar\n")
	b.put("many.txt", strings.Repeat("x\n", 100))
	b.put("self.txt", "aaa")
	b.put("latin.txt", "caf\xe9 x\n")
	b.put("wide.txt", "\xff\xfeh\x00i\x00")
	b.put("binary", "a\x00b")
	if err := os.Mkdir(b.path("dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	gone := `Failed to execute with arguments: {"path":"$/%s","old_str":"a","new_str":"b","command":"edit"} due to error: Error: `
	for _, test := range []struct{ arguments, want, message string }{
		{`{"path":"a.txt","old_str":"Hello World","new_str":"Hi Universe"}`, "File $/a.txt updated with changes.", "-"},
		{`{"path":"a.txt","old_str":"Nothing","new_str":"x"}`, "No match found: old_str not found in $/a.txt; no changes made; you might want to try again with correct old_str", "No match found"},
		{`{"path":"foo.txt","old_str":"foo","new_str":"x"}`, `Ambiguous match for old_str in $/foo.txt: pattern starting with "foo" matched at lines 1, 2. No changes made; try again with a more specific old_str.`, "Multiple matches found"},
		{`{"path":"many.txt","old_str":"x","new_str":"y"}`, `Ambiguous match for old_str in $/many.txt: pattern starting with "x" matched at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and 80 more. No changes made; try again with a more specific old_str.`, "Multiple matches found"},
		{`{"path":"self.txt","old_str":"aa","new_str":"b"}`, `Ambiguous match for old_str in $/self.txt: pattern starting with "aa" matched at lines 1, 1. No changes made; try again with a more specific old_str.`, "Multiple matches found"},
		{`{"path":"a.txt","old_str":"x","new_str":"x"}`, "No changes made: old_str and new_str are the same", "-"},
		{`{"path":"none.txt","old_str":"a","new_str":"b"}`, fmt.Sprintf(gone, "none.txt") + "ENOENT: no such file or directory, open '$/none.txt'", ""},
		{`{"path":"dir","old_str":"a","new_str":"b"}`, fmt.Sprintf(gone, "dir") + "EISDIR: illegal operation on a directory, read", ""},
		{`{"path":"latin.txt","old_str":"caf\ufffd","new_str":"b"}`, "No match found: old_str not found in $/latin.txt; no changes made; you might want to try again with correct old_str The file has bytes that are not UTF-8, which are shown as \ufffd: choose an old_str without them.", "No match found"},
		{`{"path":"wide.txt","old_str":"h","new_str":"b"}`, "File $/wide.txt is UTF-16 and cannot be edited here; no changes made. Convert it to UTF-8 first, or use a shell command.", ""},
		{`{"path":"binary","old_str":"a","new_str":"b"}`, "File $/binary is binary and cannot be edited here; no changes made.", ""},
	} {
		r := b.run("edit", test.arguments)
		message := test.message
		if message == "-" {
			message = ""
		}
		if want := strings.ReplaceAll(test.want, "$", b.dir); r.Text != want || r.Failed != (test.message != "-") || r.Message != message {
			t.Errorf("%s:\n%q, want\n%q; %q", test.arguments, r.Text, want, r.Message)
		}
	}
	if got := b.content("a.txt"); got != "Hi Universe\nGoodbye World\n" {
		t.Errorf("%q", got)
	}
	if got := b.content("foo.txt"); got != "foo\nfoo bar\n" {
		t.Errorf("%q", got)
	}
}

func TestEditKeepsWhatItDoesNotReplace(t *testing.T) {
	b := newFixture(t)
	for _, test := range []struct{ before, old, new, after string }{
		{"a\r\nb\r\nc", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc"},
		{"a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n"},
		{"a\nb\r\nc\n", "b\nc", "x\ny", "a\nx\r\ny\n"},
		{"a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n"},
		{"a\r\nb", "b", "x\ny", "a\r\nx\r\ny"},
		{"a\nb", "b", "x\r\ny", "a\nx\r\ny"},
		{"\r\n", "\n", "x\n", "x\r\n"},
		{"a\r\n\r\nb", "\n\n", "\n", "a\r\nb"},
		{"\xef\xbb\xbfa\r\nb", "a\n", "x\n", "\xef\xbb\xbfx\r\nb"},
		{"caf\xe9 \xff one", "one", "two", "caf\xe9 \xff two"},
		{"no end", "end", "final end", "no final end"},
		{"a\n", "a\n", "", ""},
		{"a", "a", "b\n", "b\n"},
		{"one\rtwo", "\r", "\n", "one\ntwo"},
	} {
		b.put("f", test.before)
		r := b.run("edit", `{"path":"f","old_str":`+quoted(test.old)+`,"new_str":`+quoted(test.new)+`}`)
		if got := b.content("f"); got != test.after || r.Failed {
			t.Errorf("%q, %q → %q: %q, want %q; %s", test.before, test.old, test.new, got, test.after, r.Text)
		}
	}
}

// naiveEdit is the model of an edit: it removes carriage returns first.
func naiveEdit(data, old, now string) (string, int) {
	plain, windows := data, false
	if !strings.Contains(old, "\r") && strings.Contains(data, "\r\n") {
		plain, windows = strings.ReplaceAll(data, "\r\n", "\n"), true
	}
	count := 0
	for i := range plain {
		if strings.HasPrefix(plain[i:], old) {
			count++
		}
	}
	if count != 1 {
		return data, count
	}
	out := strings.Replace(plain, old, now, 1)
	if windows { // all lines of these files have the same line break
		out = strings.ReplaceAll(strings.ReplaceAll(out, "\r\n", "\n"), "\n", "\r\n")
	}
	return out, 1
}

// TestEditsMatchTheModel uses random files with one kind of line break.
func TestEditsMatchTheModel(t *testing.T) {
	b := newFixture(t)
	piece := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "\n", "é", "😀", " "}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string { return strings.Join(piece.Draw(t, label), "") }
		data, old, now := text("data"), text("old"), text("new")
		if rapid.Bool().Draw(t, "windows") {
			data = strings.ReplaceAll(data, "\n", "\r\n")
		}
		if rapid.Bool().Draw(t, "marked") {
			data = "\xef\xbb\xbf" + data
		}
		if old == "" || old == now {
			return
		}
		perm := rapid.SampledFrom([]fs.FileMode{0o644, 0o600, 0o755}).Draw(t, "perm")
		b.put("f", data)
		if err := os.Chmod(b.path("f"), perm); err != nil {
			t.Fatal(err)
		}
		r := b.run("edit", `{"path":"f","old_str":`+quoted(old)+`,"new_str":`+quoted(now)+`}`)
		want, count := naiveEdit(data, old, now)
		if got := b.content("f"); got != want || r.Failed != (count != 1) {
			t.Fatalf("%q, %q → %q: %q, want %q; %s", data, old, now, got, want, r.Text)
		}
		switch {
		case count == 0 && r.Message != "No match found", count > 1 && r.Message != "Multiple matches found":
			t.Fatalf("%d matches: %s", count, r.Text)
		}
		if info, err := os.Stat(b.path("f")); err != nil || info.Mode() != perm {
			t.Fatalf("%v, %v", info.Mode(), err)
		}
	})
}

func TestAnEditOfAFileThatHasChangedSinceItWasShownIsRefused(t *testing.T) {
	b := newFixture(t)
	b.put("f", "one\ntwo\n")
	call := b.call(`{"path":"f","old_str":"two","new_str":"2"}`)
	request, err := b.tools["edit"].Permission(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	call.Granted, call.Asked = true, request.Ask
	b.put("f", "one!\ntwo\n")
	r := b.mustRun("edit", call)
	if !r.Failed || r.Message != "File changed" || !strings.Contains(r.Text, "has changed since this edit was proposed") || b.content("f") != "one!\ntwo\n" {
		t.Errorf("%+v", r)
	}
}

func TestTwoEditsOfOneFileThatWereAskedTogetherAreBothMade(t *testing.T) {
	b := newFixture(t)
	b.put("f", "one\ntwo\n")
	var calls []tool.Call
	for _, arguments := range []string{`{"path":"f","old_str":"one","new_str":"1"}`, `{"path":"f","old_str":"two","new_str":"2"}`} {
		call := b.call(arguments)
		request, err := b.tools["edit"].Permission(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		call.Granted, call.Asked = true, request.Ask
		calls = append(calls, call)
	}
	for _, call := range calls {
		if r := b.mustRun("edit", call); r.Failed {
			t.Errorf("%+v", r)
		}
	}
	if got := b.content("f"); got != "1\n2\n" {
		t.Errorf("%q", got)
	}
}

func TestEditsOfOneFileAtATimeLoseNothing(t *testing.T) {
	b := newFixture(t)
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "<%d>\n", i)
	}
	b.put("f", text.String())
	var wg sync.WaitGroup
	for i := range 20 {
		call := b.call(fmt.Sprintf(`{"path":"f","old_str":"<%d>","new_str":"[%d]"}`, i, i))
		wg.Go(func() {
			if r, err := b.tools["edit"].Run(t.Context(), call); err != nil || r.Failed {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if got := b.content("f"); got != strings.NewReplacer("<", "[", ">", "]").Replace(text.String()) {
		t.Errorf("%q", got)
	}
}

func TestARepeatedCallHasItsEffectOnce(t *testing.T) {
	for _, test := range []struct {
		name, tool, arguments string
		before, after         string // content of the file; "-" for no file
	}{
		{"edit", "edit", `{"path":"f","old_str":"a","new_str":"aa"}`, "xax", "xaax"},
		{"edit that could be made twice", "edit", `{"path":"f","old_str":"x","new_str":"xy"}`, "x", "xy"},
		{"create", "create", `{"path":"f","file_text":"text"}`, "-", "text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := func(b *fixture, text string) {
				if err := os.Remove(b.path("f")); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if text != "-" {
					b.put("f", text)
				}
			}
			b := newFixture(t)
			set(b, test.before)
			call := b.call(test.arguments)
			first, _ := b.runCall(test.tool, call)
			call.Attempt++
			second := b.mustRun(test.tool, call)
			if first.Failed || second.Text != first.Text || second.Detailed != first.Detailed || b.content("f") != test.after {
				t.Errorf("made and made again: %+v, %+v, %q", first, second, b.content("f"))
			}
			set(b, test.before) // the state is that of a first attempt that was interrupted before the write
			call.Attempt++
			if r := b.mustRun(test.tool, call); r.Text != first.Text || b.content("f") != test.after {
				t.Errorf("cut off: %+v, %q", r, b.content("f"))
			}
			set(b, "something else")
			call.Attempt++
			if r := b.mustRun(test.tool, call); r.Code != event.CodeInterrupted || b.content("f") != "something else" {
				t.Errorf("changed by others: %+v, %q", r, b.content("f"))
			}
			set(b, test.before)
			fresh := b.call(test.arguments) // the state is that of a first attempt that was interrupted before its record
			fresh.Attempt = 2
			if r := b.mustRun(test.tool, fresh); r.Text != first.Text || b.content("f") != test.after {
				t.Errorf("cut off early: %+v, %q", r, b.content("f"))
			}
		})
	}
}

func TestAWriteWithoutACheckpointIsNotMade(t *testing.T) {
	b := newFixture(t)
	b.put("f", "a")
	blocked := filepath.Join(filepath.Dir(b.dir), "blocked")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.kept = files.NewCheckpoints(filepath.Join(blocked, "kept"), b.files)
	if r := b.run("edit", `{"path":"f","old_str":"a","new_str":"b"}`); !r.Failed || !strings.Contains(r.Text, "was not changed") || b.content("f") != "a" {
		t.Errorf("%+v, %q", r, b.content("f"))
	}
}

// restore undoes the calls from the given number on.
func restore(t interface{ Fatal(...any) }, c *files.Checkpoints, from int) []files.Reversal {
	all, err := c.Restore(context.Background(), func(key string) bool {
		var n int
		_, err := fmt.Sscanf(key, "key-%d", &n)
		return err == nil && n >= from
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRestoreUndoesTheWritesOfCalls(t *testing.T) {
	b := newFixture(t)
	b.put("old", "one\ntwo\n")
	b.put("mine", "a")
	b.run("edit", `{"path":"old","old_str":"one","new_str":"1"}`) // key-1
	b.run("create", `{"path":"new","file_text":"x"}`)             // key-2
	b.run("edit", `{"path":"new","old_str":"x","new_str":"y"}`)
	b.run("edit", `{"path":"old","old_str":"two","new_str":"2"}`)
	b.run("edit", `{"path":"mine","old_str":"a","new_str":"b"}`) // key-5
	b.put("mine", "changed by hand")
	preview, err := b.kept.Preview(t.Context(), func(string) bool { return true })
	if err != nil || len(preview) != 3 || b.content("old") != "1\n2\n" || preview[2].Added != 2 || preview[2].Gone != 2 {
		t.Fatalf("%+v, %v", preview, err)
	}
	restore(t, b.kept, 4)
	if b.content("old") != "1\ntwo\n" || b.content("new") != "y" {
		t.Errorf("after going back a little: %q, %q", b.content("old"), b.content("new"))
	}
	var got []string
	for _, r := range restore(t, b.kept, 1) {
		got = append(got, filepath.Base(r.Path)+" "+string(r.Outcome)+" "+r.Reason)
	}
	want := []string{"mine skipped it was changed by something else since", "new removed ", "old restored "}
	if !slices.Equal(got, want) || b.content("old") != "one\ntwo\n" || b.content("mine") != "changed by hand" {
		t.Errorf("%q; %q, %q", got, b.content("old"), b.content("mine"))
	}
	if _, err := os.Stat(b.path("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, r := range restore(t, b.kept, 1) {
		if r.Outcome != files.Same && r.Outcome != files.Skipped {
			t.Errorf("made again: %+v", r)
		}
	}
}

// Commands can put a pipe in the place of a file: opening one would wait for ever for its other
// end, and so would a read.
func TestAPipeInThePlaceOfAFileHoldsNothingUp(t *testing.T) {
	b := newFixture(t)
	b.put("edited", "one\n")
	b.put("folder/plain", "one\n")
	b.run("edit", `{"path":"edited","old_str":"one","new_str":"two"}`) // key-1
	b.run("create", `{"path":"made","file_text":"one\n"}`)
	for _, name := range []string{"edited", "made", "folder/pipe", "folder/.gitignore"} {
		if err := os.Remove(b.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(b.path(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range restore(t, b.kept, 1) {
		if r.Outcome != files.Skipped || !strings.Contains(r.Reason, "pipe") {
			t.Errorf("%+v", r)
		}
	}
	for tool, arguments := range map[string]string{
		"view": `{"path":"folder"}`, "glob": `{"pattern":"**/*","path":"folder"}`, "grep": `{"pattern":"one","path":"folder"}`,
	} {
		if r := b.run(tool, arguments); r.Failed || !strings.Contains(r.Text, "plain") {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	for _, name := range []string{"edited", "made", "folder/pipe", "folder/.gitignore"} {
		if info, err := os.Lstat(b.path(name)); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
			t.Errorf("%s was replaced: %v, %v", name, info, err)
		}
	}
}

// TestRestoreGivesTheOldContents uses random sessions that write and restore, and
// compares with copies of the files.
func TestRestoreGivesTheOldContents(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(rt *rapid.T) {
		b := newFixture(t)
		b.put("a", "0")
		states := []map[string]string{{}, snapshot(t, b)} // content of the files before each call
		undone := map[int]bool{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			path := name.Draw(rt, "path")
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				b.run("create", `{"path":"`+path+`","file_text":`+quoted(rapid.StringOfN(rapid.RuneFrom([]rune("01\n")), 0, 5, -1).Draw(rt, "text"))+`}`)
			case 1, 2:
				b.run("edit", `{"path":"`+path+`","old_str":"0","new_str":"`+rapid.SampledFrom([]string{"1", "10", "0\\n1", ""}).Draw(rt, "new")+`"}`)
			case 3:
				from := rapid.IntRange(1, b.calls+1).Draw(rt, "back to")
				for undone[from] { // a session goes back only to what it shows
					from++
				}
				restore(rt, b.kept, from)
				if got := snapshot(t, b); fmt.Sprint(got) != fmt.Sprint(states[from]) {
					rt.Fatalf("back to %d: %q, want %q", from, got, states[from])
				}
				for i := from; i < len(states); i++ {
					states[i] = states[from]
				}
				for i := from; i <= b.calls; i++ {
					undone[i] = true
				}
			}
			for len(states) <= b.calls+1 {
				states = append(states, nil)
			}
			states[b.calls+1] = snapshot(t, b)
		}
	})
}

func snapshot(t *testing.T, b *fixture) map[string]string {
	all := map[string]string{}
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all[e.Name()] = b.content(e.Name())
	}
	return all
}

func TestATruncatedRecordIsSkipped(t *testing.T) {
	folder := t.TempDir()
	c := files.NewCheckpoints(folder, newFiles(t, folder))
	save := func(key string) {
		if err := c.Save(files.Record{Key: key, Path: "/x", Before: "b", After: "a"}, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	save("one")
	f, err := os.OpenFile(folder+"/changes.jsonl", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"key":"cut","pa`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	save("two")
	list, err := c.Records()
	if err != nil || len(list) != 2 || list[0].Key != "one" || list[1].Key != "two" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestADamagedContentIsNotRestored(t *testing.T) {
	b := newFixture(t)
	b.put("f", "a")
	b.run("edit", `{"path":"f","old_str":"a","new_str":"b"}`)
	kept, err := filepath.Glob(filepath.Join(filepath.Dir(b.dir), "kept/contents/*/*"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if err := os.WriteFile(kept[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := restore(t, b.kept, 1); len(r) != 1 || r[0].Outcome != files.Skipped || !strings.Contains(r[0].Reason, "damaged") || b.content("f") != "b" {
		t.Errorf("%+v, %q", r, b.content("f"))
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"key":"a","path":"/nowhere"}`))
	f.Add([]byte(`{"key":"a","path":"/nowhere","before":"../.."}`))
	f.Add([]byte(`{"key":"a","path":"","after":"b"}` + "\n" + `{"key":"a","path":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		folder := t.TempDir()
		if err := os.WriteFile(folder+"/changes.jsonl", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := files.NewCheckpoints(folder, newFiles(t, folder)).Preview(t.Context(), func(string) bool { return true }); err != nil && len(data) < 1<<20 {
			t.Error(err)
		}
	})
}
