package output

import (
	"bytes"
	"syscall"
)

const (
	maxSegments = 64        // maximum number of segments, even if gaps make them small
	runMicros   = 1_000_000 // longest time that one run covers, in microseconds
)

// A Writer appends to a log. It never fails: bytes that cannot be kept are counted.
type Writer struct {
	dir    int // descriptor of the folder
	quota  int64
	totals Totals

	kept    []extent // the closed segments, in order
	head    int      // number of closed segments at the beginning that are never removed
	used    int64    // bytes on disk of the closed segments
	partial bool     // true if some bytes were not kept
	pipe    bool     // true if only what was consumed is removed

	data, index int    // descriptors of the open segment; -1 if there is none
	open        extent // the open segment
	stream      Stream // stream of the last run
	time        int64  // time of the last run
	scratch     []byte // buffer for encoding, used again
}

// An extent is a segment and its size on disk.
type extent struct {
	offset int64
	data   int64 // bytes in the data file
	index  int64 // bytes in the index file
}

func (e extent) size() int64 { return e.data + e.index }

// NewWriter returns a Writer of a new log in a folder, given by its descriptor.
func NewWriter(dir int, quota int64) *Writer {
	return &Writer{dir: dir, quota: max(quota, MinQuota), data: -1, index: -1, scratch: make([]byte, 0, 64)}
}

// NewPipe returns a Writer of a new log of which only what was consumed is removed. The quota
// is the size at which it is full; it can be written to all the same.
func NewPipe(dir int, quota int64) *Writer {
	w := NewWriter(dir, quota)
	w.pipe = true
	return w
}

// Full reports whether a pipe has reached its quota.
func (w *Writer) Full() bool { return w.pipe && w.used+w.open.size() >= w.quota }

// Consume removes the segments of a pipe that end before an offset. The last segment stays, so
// that readers find the end of the log.
func (w *Writer) Consume(offset int64) {
	for w.pipe && len(w.kept) > 0 && (len(w.kept) > 1 || w.data >= 0) && w.kept[0].offset+w.kept[0].data <= offset {
		w.remove(w.kept[0])
		w.used -= w.kept[0].size()
		w.kept = w.kept[:copy(w.kept, w.kept[1:])]
	}
}

// Totals counts what was written so far.
func (w *Writer) Totals() Totals { return w.totals }

// Kept returns the number of bytes that can be read.
func (w *Writer) Kept() int64 {
	n := w.open.data
	for _, e := range w.kept {
		n += e.data
	}
	return n
}

// Append adds bytes that came from a stream; now is in microseconds. Those that cannot be
// written are skipped.
func (w *Writer) Append(s Stream, p []byte, now int64) {
	if n := w.Write(s, p, now); n < len(p) {
		w.Skip(s, p[n:])
	}
}

// Write adds as many bytes as can be written, and returns their number.
func (w *Writer) Write(s Stream, p []byte, now int64) (done int) {
	for done < len(p) {
		n := w.space(s, now)
		if n <= 0 {
			w.finish()
			if !w.begin() {
				return done
			}
			continue
		}
		part := p[done:min(int64(len(p)), int64(done)+n)]
		kept := w.write(s, part, now)
		w.count(s, part[:kept])
		done += kept
		if kept < len(part) {
			w.finish()
			return done
		}
	}
	return done
}

// space returns how many bytes of a stream fit into the open segment.
func (w *Writer) space(s Stream, now int64) int64 {
	if w.data < 0 {
		return 0
	}
	n := w.segmentSize() - w.open.size()
	if w.needsRun(s, now) {
		n -= runSize
	}
	return n
}

func (w *Writer) segmentSize() int64 { return w.quota / segmentCount }

// needsRun reports whether the next byte of a stream needs a new run in the index.
func (w *Writer) needsRun(s Stream, now int64) bool {
	return w.stream != s || now-w.time >= runMicros || now < w.time
}

// write writes the run, if one is needed, and then the bytes. It returns how many
// bytes were written.
func (w *Writer) write(s Stream, p []byte, now int64) (n int) {
	if w.needsRun(s, now) && !w.writeRun(Run{w.totals.Bytes, now, s}) {
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

func (w *Writer) writeRun(r Run) bool {
	w.scratch = appendRun(w.scratch[:0], r)
	// The run is written at its offset, not appended: a full disk may have left half
	// a run there.
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

// Skip counts bytes that are not kept. What follows is in another segment.
func (w *Writer) Skip(s Stream, p []byte) {
	w.partial = true
	w.finish()
	w.count(s, p)
}

// begin opens a new segment at the current end of the output.
func (w *Writer) begin() bool {
	w.makeSpace()
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

// finish closes the open segment, and removes it if it is empty.
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
		if !w.pipe && !w.partial && w.head == len(w.kept)-1 && w.used <= w.quota/2 {
			w.head = len(w.kept)
		}
	}
	w.open = extent{}
}

// makeSpace removes segments from the middle until another one fits.
func (w *Writer) makeSpace() {
	for !w.pipe && len(w.kept) > w.head && (w.used+w.segmentSize() > w.quota || len(w.kept) >= maxSegments) {
		w.partial = true
		old := w.kept[w.head]
		w.remove(old)
		w.used -= old.size()
		w.kept = append(w.kept[:w.head], w.kept[w.head+1:]...)
	}
}

// remove removes the files of a segment, the data file first: a reader finds
// segments by it.
func (w *Writer) remove(e extent) {
	syscall.Unlinkat(w.dir, DataFile(e.offset))
	syscall.Unlinkat(w.dir, IndexFile(e.offset))
}

// Close closes the files.
func (w *Writer) Close() { w.finish() }
