package process

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/process/outlog"
)

func TestOutputIsKeptToTheByte(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	loop := strings.Repeat("line\n", 100)
	tests := []struct{ name, command, stdout, stderr string }{
		{"nothing", "true", "", ""},
		{"no final line break", "printf hello", "hello", ""},
		{"both streams", "echo out; echo err >&2", "out\n", "err\n"},
		{"/dev/stderr", "echo one >/dev/stderr; echo two >/dev/stderr", "", "one\ntwo\n"},
		{"/dev/stdout", "echo one >/dev/stdout; echo two >>/dev/stdout; echo three", "one\ntwo\nthree\n", ""},
		{"tee /dev/stderr in a loop", "for i in $(seq 100); do echo line | tee /dev/stderr; done", loop, loop},
		{"NUL", `printf 'a\0b\0'`, "a\x00b\x00", ""},
		{"no text", `printf '\377\376\200'`, "\xff\xfe\x80", ""},
		{"progress bars", `printf '1%%\r2%%\r3%%\r\n'`, "1%\r2%\r3%\r\n", ""},
		{"one long line", "head -c 3000000 /dev/zero | tr '\\0' x", strings.Repeat("x", 3000000), ""},
		{"kill 0 after printing", "trap '' TERM; echo before; kill 0; echo after", "before\nafter\n", ""},
		{"a killed printer", "echo last words; kill -9 $$", "last words\n", ""},
		{"a child's output", "(echo one; (echo two; echo three >&2)); echo four", "one\ntwo\nfour\n", "three\n"},
	}
	for _, tt := range tests {
		info := run(t, m, spec(tt.name, tt.command))
		if got := all(t, m, info.ID, Stdout); got != tt.stdout {
			t.Errorf("%s: stdout has %d bytes, %.60q, want %d", tt.name, len(got), got, len(tt.stdout))
		}
		if got := all(t, m, info.ID, Stderr); got != tt.stderr {
			t.Errorf("%s: stderr has %d bytes, %.60q, want %d", tt.name, len(got), got, len(tt.stderr))
		}
		o, i := int64(len(tt.stdout)), int64(len(tt.stderr))
		if info.Output != (Output{o + i, o, i, 0}) {
			t.Errorf("%s: %+v", tt.name, info.Output)
		}
	}
}

// All output is in the log when the end is announced.
func TestTheEndIsReportedAfterTheLastByte(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	for i := range 30 {
		id := start(t, m, spec(fmt.Sprint(i), "echo a; echo b >&2; printf c")).ID
		info, err := m.Wait(t.Context(), me, id)
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, m, id, Both); len(got) != 5 || info.Output.Bytes != 5 {
			t.Fatalf("%s with %q", info.State, got)
		}
	}
	for i := range 10 { // much output is in the pipe, which a child keeps open
		id := start(t, m, spec(fmt.Sprint("much", i), "sleep 1000 & head -c 5000000 /dev/zero; exit 0")).ID
		info, err := m.Wait(t.Context(), me, id)
		if err != nil || info.Output.Bytes != 5000000 || !info.Lingering {
			t.Fatalf("%+v, %v", info, err)
		}
	}
}

func TestStreamsAreInOrderOfArrival(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "while read x; do echo out $x; done; echo end")
	s.Stdin = true
	id := start(t, m, s).ID
	for i := range 20 {
		input := fmt.Sprintln(i)
		if err := m.WriteStdin(t.Context(), me, id, Input{Data: []byte(input)}); err != nil {
			t.Fatal(err)
		}
		awaitOutput(t, m, id, "out "+input)
	}

	for i := range 20 { // there is no pause between the writes
		info := run(t, m, spec(fmt.Sprint(i), "head -c 300000 /dev/zero; echo error >&2"))
		if c, err := m.Tail(me, info.ID, 6, Both); err != nil || string(c.Data) != "error\n" {
			t.Fatalf("the last bytes are %q, %v", c.Data, err)
		}
	}

	path1, pass1 := gate(t)
	path2, pass2 := gate(t)
	id = start(t, m, spec("two", "echo 1; read x <"+path1+"; echo 2 >&2; read x <"+path2+"; echo 3")).ID
	awaitOutput(t, m, id, "1")
	pass1()
	awaitOutput(t, m, id, "2")
	pass2()
	if _, err := m.WaitGone(t.Context(), me, id); err != nil {
		t.Fatal(err)
	}
	c, err := m.Read(t.Context(), me, id, ReadRequest{})
	if err != nil || string(c.Data) != "1\n2\n3\n" || len(c.Runs) != 3 || c.Runs[1].Stream != Stderr || c.Runs[1].Offset != 2 || !c.End {
		t.Errorf("%+v, %v", c, err)
	}
	for i := range c.Runs[1:] {
		if c.Runs[i+1].Time.Before(c.Runs[i].Time) {
			t.Errorf("times go back: %+v", c.Runs)
		}
	}
}

// numbers returns a command that prints n lines, each with its number in seven
// digits, and the output to expect.
func numbers(n int) (command, want string) {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "%07d\n", i)
	}
	return fmt.Sprintf("seq -f %%07.0f %d", n), b.String()
}

func TestBeyondTheQuotaHeadAndTailRemain(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, want := numbers(200000)
	s := spec("k", command)
	s.Quota = 64 << 10
	info := run(t, m, s)
	total := int64(len(want))
	if info.State != Exited || info.Exit.Code != 0 || info.Output.Bytes != total {
		t.Fatalf("%+v", info)
	}
	if disk := outlog.Disk(info.Files.Dir); disk > s.Quota+4096 {
		t.Errorf("%d bytes on disk", disk)
	}
	c, err := m.Read(t.Context(), me, info.ID, ReadRequest{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if c.Omitted != info.Output.Omitted || int64(len(c.Data))+c.Omitted != total || !c.End || c.Next != total {
		t.Errorf("%d bytes and %d omitted of %d, and %+v", len(c.Data), c.Omitted, total, info.Output)
	}
	for at := 0; len(c.Runs) > 0; c.Runs = c.Runs[1:] {
		r := c.Runs[0]
		if got := string(c.Data[at : at+r.Len]); got != want[r.Offset:r.Offset+int64(r.Len)] {
			t.Fatalf("at %d: %.40q", r.Offset, got)
		}
		at += r.Len
	}
	if !strings.HasPrefix(want, string(c.Data[:20<<10])) || !strings.HasSuffix(want, string(c.Data[len(c.Data)-(20<<10):])) {
		t.Error("head or tail is missing")
	}
	text, cut, err := m.View(me, info.ID, Both)
	if err != nil || cut == nil || cut.OriginalBytes != len(want) || cut.OmittedBytes != len(want)-MaxHeadBytes-MaxTailBytes {
		t.Errorf("View: %+v, %v", cut, err)
	}
	if !strings.HasPrefix(text, want[:MaxHeadBytes]) || !strings.HasSuffix(text, want[len(want)-MaxTailBytes:]) {
		t.Error("View has not the first and the last bytes")
	}
}

func TestOutputIsReadByOffsetRangeTailLineAndStream(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, want := numbers(1000)
	path, pass := gate(t)
	id := start(t, m, withStdin(spec("k", command+"; read x <"+path+"; echo error >&2; read x; printf 'no end'"))).ID
	awaitOutput(t, m, id, "0001000")
	pass()
	awaitOutput(t, m, id, "error")
	if err := m.WriteStdin(t.Context(), me, id, Input{Close: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.WaitGone(t.Context(), me, id); err != nil {
		t.Fatal(err)
	}
	end := int64(len(want))
	for _, tt := range []struct {
		r    ReadRequest
		want string
		next int64
	}{
		{ReadRequest{Limit: 8}, "0000001\n", 8},
		{ReadRequest{Offset: 8, Limit: 8}, "0000002\n", 16},
		{ReadRequest{Offset: 3, Until: 6}, "000", 6},
		{ReadRequest{Offset: end}, "error\nno end", end + 12},
		{ReadRequest{Offset: end - 8, Stream: Stderr}, "error\n", end + 12},
		{ReadRequest{Offset: end - 8, Stream: Stdout}, "0001000\nno end", end + 12},
		{ReadRequest{Offset: end + 12, Wait: true}, "", end + 12},
		{ReadRequest{Offset: end + 1000, Wait: true}, "", end + 1000},
	} {
		c, err := m.Read(t.Context(), me, id, tt.r)
		if err != nil || string(c.Data) != tt.want || c.Next != tt.next || c.Omitted != 0 || c.End != (tt.next >= end+12) {
			t.Errorf("%+v: %q until %d, %v, want %q until %d", tt.r, c.Data, c.Next, err, tt.want, tt.next)
		}
	}
	for _, r := range []ReadRequest{{Offset: -1}, {Limit: -1}, {Offset: 5, Until: 3}, {Until: -1}, {Stream: 9}} {
		if _, err := m.Read(t.Context(), me, id, r); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if c, err := m.Tail(me, id, 13, Stdout); err != nil || string(c.Data) != "001000\nno end" {
		t.Errorf("Tail: %q, %v", c.Data, err)
	}
	if c, err := m.Tail(me, id, 0, Both); err != nil || len(c.Data) != 0 {
		t.Errorf("Tail of nothing: %q, %v", c.Data, err)
	}
	text, info, err := m.View(me, id, Stderr)
	if err != nil || text != "error\n" || info != nil {
		t.Errorf("View: %q, %v, %v", text, info, err)
	}
}

// A View returns what a HeadTailBuffer with the same bytes returns.
func TestAViewIsAHeadTailBufferOfTheWholeOutput(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	for i, n := range []int{0, 1, MaxHeadBytes - 1, MaxHeadBytes, MaxHeadBytes + 1, MaxHeadBytes + MaxTailBytes, MaxHeadBytes + MaxTailBytes + 1, 100000} {
		// Each character has two bytes, so that some cuts fall inside a character.
		info := run(t, m, spec(fmt.Sprint(i), fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x | sed s/xxx/yé/g", n)))
		b := NewHeadTailBuffer()
		b.Write([]byte(all(t, m, info.ID, Both)))
		wantText, want := b.Output()
		text, got, err := m.View(me, info.ID, Both)
		if err != nil || text != wantText || !utf8.ValidString(text) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%d bytes: %+v, %v, want %+v", n, got, err, want)
		}
	}
}

func TestAReaderThatFollowsMissesNothing(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, want := numbers(50000)
	id := start(t, m, spec("k", command+" | (while read x; do echo $x; done)")).ID
	var got bytes.Buffer
	for r := (ReadRequest{Wait: true}); ; {
		c, err := m.Read(t.Context(), me, id, r)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(c.Data)
		if c.End {
			break
		}
		r.Offset = c.Next
	}
	if got.String() != want {
		t.Errorf("%d bytes, want %d", got.Len(), len(want))
	}
}

// The full disk of this test is a file system of two megabytes.
func TestAFullDiskStopsNoCommandAndMissingBytesAreCounted(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("skipped: a full disk, because no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	m := open(t, dir, Options{})
	command, want := numbers(1 << 20) // eight megabytes
	printed, awaitPrinted := gate(t)
	path, pass := gate(t)
	filler := start(t, m, spec("filler", command+"; read x <"+printed+"; read x <"+path+"; echo end")).ID
	awaitPrinted()
	for range 2 {
		if _, _, err := m.Start(t.Context(), spec("refused", "true "+strings.Repeat("x", 100<<10))); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a start on a full disk: %v", err)
		}
	}
	if _, err := m.Find(me, "refused"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was refused: %v", err)
	}
	pass()
	info, err := m.WaitGone(t.Context(), me, filler)
	if err != nil || info.State != Exited || info.Exit.Code != 0 {
		t.Fatalf("%+v, %v", info, err)
	}
	total := int64(len(want) + len("end\n"))
	if info.Output.Bytes != total || info.Output.Omitted == 0 {
		t.Errorf("%+v, want %d bytes", info.Output, total)
	}
	want += "end\n"
	var kept, omitted int64
	for r := (ReadRequest{}); r.Offset < total; {
		c, err := m.Read(t.Context(), me, filler, r)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, run := range c.Runs {
			if got := string(c.Data[at : at+run.Len]); got != want[run.Offset:run.Offset+int64(run.Len)] {
				t.Fatalf("at %d: %.40q", run.Offset, got)
			}
			at += run.Len
		}
		kept, omitted, r.Offset = kept+int64(len(c.Data)), omitted+c.Omitted, c.Next
	}
	if kept+omitted != total || omitted != info.Output.Omitted {
		t.Errorf("%d kept and %d omitted of %d; %+v", kept, omitted, total, info.Output)
	}
}

// A small limit on the size of files has the same effect as a full disk, and needs no
// privileges.
func TestFilesThatCannotGrowAreAFullDisk(t *testing.T) {
	dir := t.TempDir()
	command, want := numbers(100000)
	v := startKillable(t, daemonOrders{Dir: dir, FileSize: 100 << 10, Specs: []Spec{spec("k", command)}})
	v.await(1)
	v.kill()
	m := open(t, dir, Options{})
	info, err := m.WaitGone(t.Context(), me, idOf(me, "k"))
	if err != nil || info.State != Exited || info.Exit.Code != 0 || info.Output.Bytes != int64(len(want)) || info.Output.Omitted == 0 {
		t.Fatalf("%+v, %v", info, err)
	}
	c, err := m.Read(t.Context(), me, info.ID, ReadRequest{Limit: 1 << 20})
	if err != nil || c.Omitted != info.Output.Omitted || int64(len(c.Data))+c.Omitted != info.Output.Bytes {
		t.Errorf("%d bytes and %d omitted, %v", len(c.Data), c.Omitted, err)
	}
}
