package files_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/tool"
)

func TestViewTexts(t *testing.T) {
	b := newFixture(t)
	b.put("five.txt", "one\ntwo\nthree\nfour\nfive\n")
	b.put("open.txt", "one\ntwo")
	b.put("empty.txt", "")
	b.put("windows.txt", "\xef\xbb\xbfone\r\ntwo\r\n")
	b.put("latin.txt", "caf\xe9\n")
	b.put("wide.txt", "\xff\xfeh\x00i\x00\n\x00")
	b.put("pic.svg", "<svg/>")
	b.put("binary", "a\x00b")
	b.put("just.txt", strings.Repeat("x", 20480))
	b.put("over.txt", strings.Repeat("x", 20481))
	b.put("huge.txt", strings.Repeat("x", 10<<20+1))
	b.put("dir/b", "")
	b.put("dir/.a", "")
	b.put("dir/c/d", "")
	b.put("dir/new\nline", "")
	if err := os.Mkdir(b.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		arguments, want string
		message         string // message of a failure
	}{
		{`{"path":"$/five.txt"}`, "one\ntwo\nthree\nfour\nfive\n", ""},
		{`{"path":"five.txt"}`, "one\ntwo\nthree\nfour\nfive\n", ""},
		{`{"path":"dir/../five.txt","unknown":1}`, "one\ntwo\nthree\nfour\nfive\n", ""},
		{`{"path":"five.txt","view_range":[2,4]}`, "two\nthree\nfour", ""},
		{`{"path":"five.txt","view_range":[4,-1]}`, "four\nfive\n", ""},
		{`{"path":"five.txt","view_range":[4]}`, "four\nfive\n", ""},
		{`{"path":"five.txt","view_range":[4,99]}`, "four\nfive\n", ""},
		{`{"path":"five.txt","view_range":[6,6]}`, "", ""},
		{`{"path":"five.txt","view_range":[1,1]}`, "one", ""},
		{`{"path":"five.txt","view_range":[50,60]}`, "Invalid view_range: start line (50) is beyond the end of the file. The file has 6 lines.", "view_range out of bounds"},
		{`{"path":"open.txt","view_range":[3]}`, "Invalid view_range: start line (3) is beyond the end of the file. The file has 2 lines.", "view_range out of bounds"},
		{`{"path":"empty.txt"}`, "", ""},
		{`{"path":"empty.txt","view_range":[1,-1]}`, "", ""},
		{`{"path":"windows.txt"}`, "one\r\ntwo\r\n", ""},
		{`{"path":"latin.txt"}`, "caf\ufffd\n", ""},
		{`{"path":"wide.txt"}`, "hi\n", ""},
		{`{"path":"wide.txt","view_range":[1,1]}`, "hi", ""},
		{`{"path":"pic.svg"}`, "<svg/>", ""},
		{`{"path":"binary"}`, "a\x00b", ""},
		{`{"path":"dir"}`, ".a\nb\nc\n\"new\\nline\"", ""},
		{`{"path":"dir","view_range":[1,1]}`, ".a\nb\nc\n\"new\\nline\"", ""},
		{`{"path":"empty"}`, "", ""},
		{`{"path":"none.txt"}`, "Path $/none.txt does not exist. Please provide a valid path.", "Path does not exist"},
		{`{"path":"~/x"}`, "Path $/~/x does not exist. Please provide a valid path.", "Path does not exist"},
		{`{"path":"just.txt"}`, strings.Repeat("x", 20480), ""},
		{`{"path":"over.txt"}`, "File too large to read at once (20.0 KB). Consider using the grep tool to search within the file, or view with view_range to read specific sections.", ""},
		{`{"path":"over.txt","forceReadLargeFiles":true}`, strings.Repeat("x", 20481), ""},
		{`{"path":"over.txt","view_range":[1,1]}`, strings.Repeat("x", 20480) + "\n\n[Output truncated. Use other tools to examine the file's contents. File may be a single long line.]", ""},
		{`{"path":"huge.txt"}`, "File is too large to view (10.0MB). Maximum file size is 10MB. Use shell tool with head/tail commands or specify a line range with view_range parameter to view specific sections.", "File too large"},
		{`{"path":"huge.txt","forceReadLargeFiles":true}`, "File is too large to view (10.0MB). Maximum file size is 10MB. Use shell tool with head/tail commands or specify a line range with view_range parameter to view specific sections.", "File too large"},
	} {
		r := b.run("view", test.arguments)
		if want := strings.ReplaceAll(test.want, "$", b.dir); r.Text != want || r.Failed != (test.message != "") || r.Message != test.message {
			t.Errorf("%s:\n%.300q, want\n%.300q; message %q", test.arguments, r.Text, want, r.Message)
		}
	}
	p := b.path("five.txt")
	want := "\ndiff --git a" + p + " b" + p + "\nindex 0000000..0000000 100644\n--- a" + p + "\n+++ b" + p + "\n@@ -2,2 +2,2 @@\n two\n three\n"
	if r := b.run("view", `{"path":"five.txt","view_range":[2,3]}`); r.Detailed != want {
		t.Errorf("people are shown %q", r.Detailed)
	}
}

func TestALongRangeIsCutAfterALine(t *testing.T) {
	b := newFixture(t)
	line := strings.Repeat("é", 50) // 101 bytes with its line break
	b.put("long.txt", strings.Repeat(line+"\n", 1888))
	r := b.run("view", `{"path":"long.txt","view_range":[100,-1]}`)
	const shown = 20480 / 101
	want := strings.TrimSuffix(strings.Repeat(line+"\n", shown), "\n") +
		fmt.Sprintf("\n\n[Output truncated. Use view_range=[%d, ...] to continue reading. In your next response, you may batch this with other view calls. File has at least 1889 lines.]", 100+shown)
	if r.Text != want {
		t.Errorf("%.100q … %q", r.Text, r.Text[len(r.Text)-220:])
	}
}

// TestRangesMatchTheLines compares ranges with the split text.
func TestRangesMatchTheLines(t *testing.T) {
	b := newFixture(t)
	piece := rapid.SampledFrom([]string{"a", "é", "\n", "\n", "\r\n", "\xff", "😀", strings.Repeat("x", 30_000), strings.Repeat("ü\n", 4000)})
	rapid.Check(t, func(t *rapid.T) {
		data := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "data"), "")
		b.put("f", data)
		lines := strings.Split(strings.TrimPrefix(data, "\xef\xbb\xbf"), "\n")
		first := rapid.IntRange(1, len(lines)+1).Draw(t, "first")
		last := rapid.IntRange(first, len(lines)+2).Draw(t, "last")
		r := b.run("view", fmt.Sprintf(`{"path":"f","view_range":[%d,%d]}`, first, last))
		if !utf8.ValidString(r.Text) {
			t.Fatalf("%q", r.Text)
		}
		if first > len(lines) {
			if want := fmt.Sprintf("Invalid view_range: start line (%d) is beyond the end of the file. The file has %d lines.", first, len(lines)); r.Text != want {
				t.Fatalf("%q, want %q", r.Text, want)
			}
			return
		}
		want := strings.Join(lines[first-1:min(last, len(lines))], "\n")
		if len(want) <= 20480 {
			if r.Text != string([]rune(want)) {
				t.Fatalf("%.200q, want %.200q", r.Text, want)
			}
			return
		}
		shown, note, cut := strings.Cut(r.Text, "\n\n[Output truncated.")
		if !cut || len(shown) > 3*20480 || !strings.HasPrefix(string([]rune(want)), shown) {
			t.Fatalf("%.200q, want the start of %.200q", r.Text, want)
		}
		if next := first + strings.Count(shown, "\n") + 1; !strings.Contains(note, fmt.Sprintf("[%d, ...]", next)) && !strings.Contains(note, "single long line") {
			t.Fatalf("%q, want %d", note, next)
		}
	})
}

func TestImagesAreImages(t *testing.T) {
	b := newFixture(t)
	for name, test := range map[string]struct{ data, kind string }{
		"a.png":  {"\x89PNG\r\n\x1a\nrest", "image/png"},
		"b.jpg":  {"\xff\xd8\xff\xe0rest", "image/jpeg"},
		"c.gif":  {"GIF89arest", "image/gif"},
		"d.webp": {"RIFF\x00\x00\x00\x00WEBPrest", "image/webp"},
		"no.txt": {"\x89PNG\r\n\x1a\nrest", "image/png"},
	} {
		b.put(name, test.data)
		r := b.run("view", `{"path":"`+name+`"}`)
		var parts []map[string]string
		if err := json.Unmarshal(r.Binary, &parts); err != nil || len(parts) != 1 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		data, err := base64.StdEncoding.DecodeString(parts[0]["data"])
		if err != nil || string(data) != test.data || parts[0]["mimeType"] != test.kind || parts[0]["type"] != "image" ||
			parts[0]["description"] != "Image file at path "+b.path(name) || r.Text != "Viewed image file successfully." || r.Failed {
			t.Errorf("%s: %+v", name, r)
		}
	}
	b.put("big.png", "\x89PNG\r\n\x1a\n"+strings.Repeat("x", 4<<20))
	if r := b.run("view", `{"path":"big.png"}`); !r.Failed || r.Binary != nil || !strings.Contains(r.Text, "Maximum image size is 3.8MB") {
		t.Errorf("%+v", r)
	}
}

func TestALargeFolderIsShownInPart(t *testing.T) {
	b := newFixture(t)
	for i := range 2100 {
		b.put(fmt.Sprintf("many/f%04d", i), "")
	}
	r := b.run("view", `{"path":"many"}`)
	lines := strings.Split(r.Text, "\n")
	if len(lines) != 1002 || lines[0] != "f0000" || lines[999] != "f0999" || !slices.IsSorted(lines[:1000]) ||
		lines[1001] != "[The first 1000 of 2100 entries by name. Use glob with a pattern to find others.]" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

// TestAHugeFileTakesLittleMemory uses a sparse file of ten gigabytes.
func TestAHugeFileTakesLittleMemory(t *testing.T) {
	b := newFixture(t)
	b.put("huge", strings.Repeat("line\n", 1000))
	if err := os.Truncate(b.path("huge"), 10<<30); err != nil {
		t.Skip("the file system has no room for a file of ten gigabytes, so it was not tried:", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, test := range []struct{ tool, arguments, want string }{
		{"view", `{"path":"huge"}`, "File is too large to view (10240.0MB)."},
		{"view", `{"path":"huge","view_range":[10,12]}`, "line\nline\nline"},
		{"view", `{"path":"huge","view_range":[999,-1]}`, "line\nline"},
		{"edit", `{"path":"huge","old_str":"line","new_str":"x"}`, "is too large to edit"},
		{"grep", `{"pattern":"line"}`, "No matches found."},
		{"grep", `{"pattern":"line","path":"huge"}`, "No matches found."},
		{"glob", `{"pattern":"h*"}`, "./huge"},
	} {
		if r := b.run(test.tool, test.arguments); !strings.Contains(r.Text, test.want) {
			t.Errorf("%s %s: %.200q", test.tool, test.arguments, r.Text)
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 50<<20 {
		t.Errorf("%d bytes were allocated", after.TotalAlloc-before.TotalAlloc)
	}
}

func TestALongReadCanBeCancelled(t *testing.T) {
	b := newFixture(t)
	b.put("huge", "x")
	if err := os.Truncate(b.path("huge"), 10<<30); err != nil {
		t.Skip("the file system has no room for a file of ten gigabytes, so it was not tried:", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct{ tool, arguments string }{
		{"view", `{"path":"huge","view_range":[5,6]}`}, {"grep", `{"pattern":"x"}`}, {"grep", `{"pattern":"x","path":"huge"}`}, {"glob", `{"pattern":"x"}`},
	} {
		if _, err := b.tools[test.tool].Run(ctx, b.call(test.arguments)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s %s: %v", test.tool, test.arguments, err)
		}
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	b := newFixture(t)
	if err := syscall.Mkfifo(b.path("pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("loop", b.path("loop")), os.Symlink("gone", b.path("dangling"))); err != nil {
		t.Fatal(err)
	}
	b.put("file", "x")
	for _, test := range []struct{ tool, arguments, want string }{
		{"view", `{"path":"pipe"}`, "only files and folders can be opened"},
		{"grep", `{"pattern":"x","path":"pipe"}`, "only files and folders can be opened"},
		{"edit", `{"path":"pipe","old_str":"a","new_str":"b"}`, "only files and folders can be opened"},
		{"create", `{"path":"pipe","file_text":"a"}`, "already exists as a file"},
		{"view", `{"path":"loop"}`, "too many levels of symbolic links"},
		{"view", `{"path":"dangling"}`, "does not exist"},
		{"view", `{"path":"file/below"}`, "not a directory"},
		{"view", `{"path":"a\u0000b"}`, "NUL"},
		{"view", `{"path":"` + strings.Repeat("x", 300) + `"}`, "file name too long"},
		{"create", `{"path":"` + strings.Repeat("x/", 3000) + `","file_text":"a"}`, "file name too long"},
	} {
		if r := b.run(test.tool, test.arguments); !r.Failed || !strings.Contains(r.Text, test.want) || len(r.Text) > 7000 {
			t.Errorf("%s %.100s: %.300q", test.tool, test.arguments, r.Text)
		}
	}
	if os.Getuid() == 0 {
		t.Log("root may read everything, so a file without permission was not tried")
		return
	}
	if err := os.Chmod(b.path("file"), 0); err != nil {
		t.Fatal(err)
	}
	if r := b.run("view", `{"path":"file"}`); !r.Failed || !strings.Contains(r.Text, "permission denied") {
		t.Errorf("%q", r.Text)
	}
	if r := b.run("grep", `{"pattern":"x"}`); !strings.Contains(r.Text, "1 path(s) could not be searched") {
		t.Errorf("%q", r.Text)
	}
}

func FuzzArgumentsOfTools(f *testing.F) {
	f.Add("view", `{"path":"f","view_range":[1,2]}`)
	f.Add("grep", `{"pattern":"(a|b)+","-C":1,"output_mode":"content","glob":"*"}`)
	f.Add("glob", `{"pattern":"{a,b}/[!x]**"}`)
	f.Add("edit", `{"path":"f","old_str":"\n","new_str":"x"}`)
	f.Add("create", `{"path":"../x","file_text":""}`)
	b := newFixture(f)
	f.Fuzz(func(t *testing.T, name, arguments string) {
		if b.tools[name] == nil {
			return
		}
		b.put("f", "a\r\nb\xff\n")
		call := b.call("")
		call.Arguments = json.RawMessage(arguments)
		if _, err := b.tools[name].Permission(t.Context(), call); err != nil {
			var refused *tool.Refusal
			if !errors.As(err, &refused) {
				t.Error(err)
			}
		}
		r, err := b.tools[name].Run(t.Context(), call)
		if err != nil || !utf8.ValidString(r.Text) {
			t.Errorf("%q, %v", r.Text, err)
		}
	})
}
