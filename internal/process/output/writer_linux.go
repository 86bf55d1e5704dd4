package output

import (
	"bytes"
	"syscall"
)

const (
	maxParts  = 64 // segments that are kept, also if gaps make them small
	runMicros = 1_000_000
)

// A Writer appends to a log. It never fails: what cannot be kept is counted.
type Writer struct {
	dir    int // descriptor of the folder
	quota  int64
	totals Totals

	kept    []extent // the closed segments, in order
	head    int      // how many of them are never removed
	used    int64    // bytes of the closed ones
	partial bool     // something was not kept

	data, index int // descriptors of the open segment; -1 if there is none
	open        extent
	stream      Stream // of the last run
	time        int64
	scratch     []byte
}

// An extent is a segment and its size on disk.
type extent struct {
	offset int64
	data   int64
	index  int64
}

func (e extent) size() int64 { return e.data + e.index }

// NewWriter writes a new log into a folder.
func NewWriter(dir int, quota int64) *Writer {
	return &Writer{dir: dir, quota: max(quota, MinQuota), data: -1, index: -1, scratch: make([]byte, 0, 64)}
}

// Totals returns what was written so far.
func (w *Writer) Totals() Totals { return w.totals }

// Kept returns how many bytes can be read.
func (w *Writer) Kept() int64 {
	n := w.open.data
	for _, e := range w.kept {
		n += e.data
	}
	return n
}

// Append adds what came from a stream at a time, in microseconds.
func (w *Writer) Append(s Stream, p []byte, now int64) {
	for len(p) > 0 {
		n := w.room(s, now)
		if n <= 0 {
			w.finish()
			if !w.begin() {
				w.skip(s, p)
				return
			}
			continue
		}
		part := p[:min(int64(len(p)), n)]
		kept := w.write(s, part, now)
		w.count(s, part[:kept])
		if kept < len(part) {
			w.skip(s, p[kept:])
			w.finish()
			return
		}
		p = p[kept:]
	}
}

// room returns how many bytes of a stream the open segment can take.
func (w *Writer) room(s Stream, now int64) int64 {
	if w.data < 0 {
		return 0
	}
	n := w.part() - w.open.size()
	if w.needsRun(s, now) {
		n -= runSize
	}
	return n
}

func (w *Writer) part() int64 { return w.quota / parts }

// needsRun reports whether a byte of a stream has to be announced in the index.
func (w *Writer) needsRun(s Stream, now int64) bool {
	return w.stream != s || now-w.time >= runMicros || now < w.time
}

// write puts bytes on disk, their stream first, and returns how many are there.
func (w *Writer) write(s Stream, p []byte, now int64) (n int) {
	if w.needsRun(s, now) && !w.announce(Run{w.totals.Bytes, now, s}) {
		return 0
	}
	for n < len(p) {
		m, err := syscall.Write(w.data, p[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m <= 0 {
			break
		}
		n += m
	}
	w.open.data += int64(n)
	return n
}

func (w *Writer) announce(r Run) bool {
	w.scratch = appendRun(w.scratch[:0], r)
	// At its place, not at the end: half a run may be there from a full disk.
	n, err := syscall.Pwrite(w.index, w.scratch, w.open.index)
	if err != nil || n < runSize {
		return false
	}
	w.open.index += runSize
	w.stream, w.time = r.Stream, r.Time
	return true
}

var newline = []byte{'\n'}

func (w *Writer) count(s Stream, p []byte) {
	w.totals.Bytes += int64(len(p))
	if s == Stdout {
		w.totals.Stdout += int64(len(p))
	}
	w.totals.Lines += int64(bytes.Count(p, newline))
}

// skip counts what is not kept.
func (w *Writer) skip(s Stream, p []byte) {
	w.partial = true
	w.count(s, p)
}

// begin opens a new segment where the output is now.
func (w *Writer) begin() bool {
	w.makeRoom()
	const flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC | syscall.O_APPEND | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	at := w.totals.Bytes
	index, err := syscall.Openat(w.dir, IndexFile(at), flags&^syscall.O_APPEND, 0o600)
	if err != nil {
		return false
	}
	w.scratch = appendHeader(w.scratch[:0], w.totals)
	n, err := syscall.Write(index, w.scratch)
	data := -1
	if err == nil && n == headerSize {
		data, err = syscall.Openat(w.dir, DataFile(at), flags, 0o600)
	}
	if err != nil || data < 0 {
		syscall.Close(index)
		syscall.Unlinkat(w.dir, IndexFile(at))
		return false
	}
	w.data, w.index = data, index
	w.open = extent{at, 0, headerSize}
	w.stream = Any
	return true
}

// finish closes the open segment, and removes it if there is nothing in it.
func (w *Writer) finish() {
	if w.data < 0 {
		return
	}
	syscall.Close(w.data)
	syscall.Close(w.index)
	w.data, w.index = -1, -1
	if w.open.data == 0 {
		w.remove(w.open)
	} else {
		w.kept = append(w.kept, w.open)
		w.used += w.open.size()
		if !w.partial && w.head == len(w.kept)-1 && w.used <= w.quota/2 {
			w.head = len(w.kept)
		}
	}
	w.open = extent{}
}

// makeRoom removes segments from the middle until another one fits.
func (w *Writer) makeRoom() {
	for len(w.kept) > w.head && (w.used+w.part() > w.quota || len(w.kept) >= maxParts) {
		w.partial = true
		old := w.kept[w.head]
		w.remove(old)
		w.used -= old.size()
		w.kept = append(w.kept[:w.head], w.kept[w.head+1:]...)
	}
}

// remove takes the data away first: a reader looks for that.
func (w *Writer) remove(e extent) {
	syscall.Unlinkat(w.dir, DataFile(e.offset))
	syscall.Unlinkat(w.dir, IndexFile(e.offset))
}

// Close closes the files.
func (w *Writer) Close() { w.finish() }
