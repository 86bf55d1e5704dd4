package output_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/process/outlog"
	. "github.com/abide-run/abide/internal/process/output"
	_ "github.com/abide-run/abide/internal/test/seedtest"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// A naive log is the model: it keeps all bytes in memory.
type naive struct {
	data    []byte
	streams []Stream
}

func (n *naive) add(s Stream, p []byte) {
	n.data = append(n.data, p...)
	for range p {
		n.streams = append(n.streams, s)
	}
}

// pick returns the bytes of a stream between two offsets for which kept is true, and
// the number of those for which it is false.
func (n *naive) pick(from, to int64, s Stream, kept []bool) (data []byte, omitted int64) {
	for i := from; i < to; i++ {
		switch {
		case s != Any && n.streams[i] != s:
		case kept[i]:
			data = append(data, n.data[i])
		default:
			omitted++
		}
	}
	return data, omitted
}

func openDir(t interface{ Fatal(...any) }, dir string) int {
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// keptBytes reports for every byte whether it is in a file.
func keptBytes(t *rapid.T, dir string, total int64) []bool {
	kept := make([]bool, total)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if offset, ok := ParseDataFile(e.Name()); ok {
			info, _ := e.Info()
			for i := range info.Size() {
				kept[offset+i] = true
			}
		}
	}
	return kept
}

func count(kept []bool) (n int64) {
	for _, k := range kept {
		if k {
			n++
		}
	}
	return n
}

func TestTheLogMatchesTheModel(t *testing.T) {
	root := t.TempDir()
	round := 0
	readOnly, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(readOnly)
	rapid.Check(t, func(t *rapid.T) {
		round++
		dir := filepath.Join(root, fmt.Sprint(round))
		os.Mkdir(dir, 0o700)
		defer os.RemoveAll(dir)
		fd := openDir(t, dir)
		defer unix.Close(fd)

		quota := int64(rapid.IntRange(MinQuota, 4*MinQuota).Draw(t, "quota"))
		failures := rapid.Bool().Draw(t, "failures")
		w := NewWriter(fd, quota)
		defer w.Close()
		var model naive
		now := int64(1)
		failed := false
		for range rapid.IntRange(0, 40).Draw(t, "writes") {
			s := rapid.SampledFrom([]Stream{Stdout, Stderr}).Draw(t, "stream")
			p := bytes.Repeat(rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\xff\x00é")), 0, 40).Draw(t, "data"), rapid.SampledFrom([]int{1, 1, 7, 100}).Draw(t, "times"))
			now += int64(rapid.SampledFrom([]int{0, 1000, 2_000_000}).Draw(t, "pause"))
			restore := func() {}
			if failures && rapid.IntRange(0, 9).Draw(t, "full") == 0 && len(p) > 0 {
				restore = w.Fail(readOnly)
				failed = true
			}
			w.Append(s, p, now)
			restore()
			model.add(s, p)
		}
		total := w.Totals()
		if total.Bytes != int64(len(model.data)) || total.Lines != int64(bytes.Count(model.data, []byte("\n"))) {
			t.Fatalf("totals = %+v of %d bytes", total, len(model.data))
		}
		if disk := outlog.Disk(dir); disk > quota {
			t.Fatalf("%d bytes on disk, the quota is %d", disk, quota)
		}
		kept := keptBytes(t, dir, total.Bytes)
		if got := w.Kept(); got != count(kept) {
			t.Fatalf("Kept = %d, want %d", got, count(kept))
		}
		if !failed {
			checkHeadAndTail(t, kept, quota)
		}
		var known *Totals
		if failed || rapid.Bool().Draw(t, "closed") {
			known = &total
		}
		l, err := outlog.Open(dir, known)
		if err != nil {
			t.Fatal(err)
		}
		if l.Kept() != count(kept) || l.End() != total.Bytes {
			t.Fatalf("kept %d of %d bytes, want %d of %d", l.Kept(), l.End(), count(kept), total.Bytes)
		}
		if got, err := l.Count(); err != nil || got.Bytes != total.Bytes || got.Stdout != total.Stdout {
			t.Fatalf("Count = %+v, %v, want %+v", got, err, total)
		}
		checkPages(t, l, model, kept)
		checkTail(t, l, model, kept)
	})
}

func checkHeadAndTail(t *rapid.T, kept []bool, quota int64) {
	edge := quota/2 - 2*quota/Parts - 40*RunSize
	for i := range kept {
		if !kept[i] && (int64(i) < edge || int64(len(kept)-i) < edge) {
			t.Fatalf("byte %d of %d is not kept, with a quota of %d", i, len(kept), quota)
		}
	}
}

func checkPages(t *rapid.T, l *outlog.Log, model naive, kept []bool) {
	stream := rapid.SampledFrom([]Stream{Any, Stdout, Stderr}).Draw(t, "wanted")
	limit := rapid.IntRange(1, 5000).Draw(t, "limit")
	end := int64(len(model.data))
	var got []byte
	var omitted, at int64
	for at < end {
		p, err := l.Read(at, end, limit, stream)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Data) > limit || p.Next <= at {
			t.Fatalf("a page of %d from %d on has %d bytes and ends at %d", limit, at, len(p.Data), p.Next)
		}
		checkPieces(t, p, model)
		got = append(got, p.Data...)
		omitted += p.Omitted
		at = p.Next
	}
	want, missing := model.pick(0, end, stream, kept)
	if !bytes.Equal(got, want) || omitted != missing {
		t.Fatalf("stream %d: %d bytes and %d omitted, want %d and %d", stream, len(got), omitted, len(want), missing)
	}
	from := int64(rapid.IntRange(0, int(end)).Draw(t, "from"))
	until := int64(rapid.IntRange(int(from), int(end)).Draw(t, "until"))
	p, err := l.Read(from, until, int(end)+1, Any)
	want, missing = model.pick(from, until, Any, kept)
	if err != nil || !bytes.Equal(p.Data, want) || p.Omitted != missing || p.Next != until {
		t.Fatalf("%d to %d: %d bytes, %d omitted until %d, %v; want %d and %d", from, until, len(p.Data), p.Omitted, p.Next, err, len(want), missing)
	}
}

func checkPieces(t *rapid.T, p outlog.Part, model naive) {
	at := 0
	for _, piece := range p.Pieces {
		for i := range piece.Len {
			o := piece.Offset + int64(i)
			if model.data[o] != p.Data[at] || model.streams[o] != piece.Stream {
				t.Fatalf("byte %d is %q of %d, want %q of %d", o, p.Data[at], piece.Stream, model.data[o], model.streams[o])
			}
			at++
		}
	}
	if at != len(p.Data) {
		t.Fatalf("%d bytes have a stream, of %d", at, len(p.Data))
	}
}

func checkTail(t *rapid.T, l *outlog.Log, model naive, kept []bool) {
	stream := rapid.SampledFrom([]Stream{Any, Stdout, Stderr}).Draw(t, "tail of")
	n := rapid.IntRange(1, 5000).Draw(t, "tail")
	from, err := l.TailStart(int64(n), stream)
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Read(from, l.End(), n, stream)
	all, _ := model.pick(0, int64(len(model.data)), stream, kept)
	if want := all[max(0, len(all)-n):]; err != nil || !bytes.Equal(p.Data, want) {
		t.Fatalf("the last %d of %d: %d bytes, %v, want %d", n, stream, len(p.Data), err, len(want))
	}
}

// With a damaged index the streams of bytes are lost, but never the bytes.
func FuzzDamagedLog(f *testing.F) {
	f.Add([]byte("idx"), uint16(3))
	f.Fuzz(func(t *testing.T, index []byte, size uint16) {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, IndexFile(0)), index, 0o600)
		os.WriteFile(filepath.Join(dir, DataFile(0)), make([]byte, size), 0o600)
		l, err := outlog.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Read(0, l.End(), 1<<20, Any)
		if err != nil || len(p.Data) != int(size) {
			t.Errorf("%d bytes, %v, want %d", len(p.Data), err, size)
		}
	})
}
