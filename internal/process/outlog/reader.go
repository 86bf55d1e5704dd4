// Package outlog reads the output log of a command, while it is being written or
// later. Package output describes the format.
package outlog

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/process/output"
)

// A Log is the output log as it was at one moment.
type Log struct {
	dir      string
	segments []segment      // segments on disk, by offset
	totals   *output.Totals // totals of a complete log; nil while it is being written
}

// A segment is a contiguous part of the output that is on disk. Its index is read
// when it is needed.
type segment struct {
	offset int64
	size   int64

	indexed bool          // true if the fields below are set
	before  output.Totals // totals before the segment
	runs    []output.Run
}

func (s *segment) end() int64 { return s.offset + s.size }

// A Piece is a part of the output that came from one stream.
type Piece struct {
	Stream output.Stream
	Offset int64
	Len    int
	Time   time.Time
}

// A Part is some of the output.
type Part struct {
	Data    []byte
	Pieces  []Piece
	Next    int64 // offset to continue reading at
	Omitted int64 // number of requested bytes before Next that are not kept
}

// errMoved means that the writer removed a segment while it was read.
var errMoved = errors.New("the log has moved on")

// Open opens the log in a folder. The totals of a complete log are known; while it
// is being written totals is nil.
func Open(dir string, totals *output.Totals) (*Log, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, totals: totals}
	for _, e := range entries {
		offset, ok := output.ParseDataFile(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // the writer has just removed the segment
		}
		l.segments = append(l.segments, segment{offset: offset, size: info.Size()})
	}
	slices.SortFunc(l.segments, func(a, b segment) int { return cmp.Compare(a.offset, b.offset) })
	return l, nil
}

// End returns the offset after the last byte.
func (l *Log) End() int64 {
	if l.totals != nil {
		return l.totals.Bytes
	}
	if n := len(l.segments); n > 0 {
		return l.segments[n-1].end()
	}
	return 0
}

// Kept returns the number of bytes that can be read.
func (l *Log) Kept() (n int64) {
	for i := range l.segments {
		n += l.segments[i].size
	}
	return n
}

// Disk returns the sum of the sizes of the files in a folder.
func Disk(dir string) int64 {
	entries, _ := os.ReadDir(dir)
	var n int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}

// Remove removes the log from a folder.
func Remove(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if output.IsFile(e.Name()) {
			if gone := os.Remove(filepath.Join(dir, e.Name())); err == nil && !errors.Is(gone, fs.ErrNotExist) {
				err = gone
			}
		}
	}
	return err
}

// load reads the index of a segment. Without a valid index the segment counts as
// standard output.
func (l *Log) load(s *segment) error {
	if s.indexed {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(l.dir, output.IndexFile(s.offset)))
	if errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	if err != nil {
		return err
	}
	before, runs, err := output.ParseIndex(b)
	if err != nil || before.Bytes != s.offset {
		before, runs = output.Totals{Bytes: s.offset, Stdout: s.offset}, nil
	}
	if len(runs) == 0 || runs[0].Offset > s.offset {
		runs = append([]output.Run{{Offset: s.offset, Stream: output.Stdout}}, runs...)
	}
	s.before, s.runs, s.indexed = before, runs, true
	return nil
}

// pieces calls visit with the parts of the runs of a segment that are between two
// offsets, forward or backward, until visit returns false.
func (s *segment) pieces(from, to int64, backward bool, visit func(r output.Run, from, to int64) bool) {
	n := len(s.runs)
	first, _ := slices.BinarySearchFunc(s.runs, from+1, func(r output.Run, at int64) int { return cmp.Compare(r.Offset, at) })
	for k := max(first-1, 0); k < n; k++ {
		i := k
		if backward {
			i = n - 1 - (k - max(first-1, 0))
		}
		end := s.end()
		if i+1 < n {
			end = min(end, s.runs[i+1].Offset)
		}
		begin, stop := max(from, s.runs[i].Offset), min(to, end)
		if begin < stop && !visit(s.runs[i], begin, stop) {
			return
		}
	}
}

// until returns the totals before an offset in a segment, except that Lines counts
// only the lines before the segment.
func (s *segment) until(offset int64) output.Totals {
	t := output.Totals{Bytes: offset, Stdout: s.before.Stdout, Lines: s.before.Lines}
	s.pieces(s.offset, offset, false, func(r output.Run, from, to int64) bool {
		if r.Stream == output.Stdout {
			t.Stdout += to - from
		}
		return true
	})
	return t
}

// find returns the first segment that ends after an offset.
func (l *Log) find(offset int64) int {
	i, _ := slices.BinarySearchFunc(l.segments, offset, func(s segment, at int64) int {
		if s.end() <= at {
			return -1
		}
		return 1
	})
	return i
}

// gap returns how many bytes of a stream are missing between an offset and the
// segment with the index next, or the end of the log if there is no such segment.
func (l *Log) gap(offset int64, next int, stream output.Stream) (int64, error) {
	var after output.Totals
	switch {
	case next < len(l.segments):
		s := &l.segments[next]
		if s.offset <= offset {
			return 0, nil
		}
		if err := l.load(s); err != nil {
			return 0, err
		}
		after = s.before
	case l.totals != nil && l.totals.Bytes > offset:
		after = *l.totals
	default:
		return 0, nil
	}
	if stream == output.Any {
		return after.Bytes - offset, nil
	}
	// How many bytes of a gap came from which stream is known only for the whole gap.
	// Usually a reader reaches a gap at its beginning; one that starts inside it gets
	// at most the bytes from there on.
	before, err := l.totalsBefore(min(offset, l.gapStart(next)), next)
	return min(after.Of(stream)-before.Of(stream), after.Bytes-offset), err
}

// gapStart returns where the gap before a segment begins.
func (l *Log) gapStart(next int) int64 {
	if next == 0 {
		return 0
	}
	return l.segments[next-1].end()
}

func (l *Log) totalsBefore(offset int64, next int) (output.Totals, error) {
	if next == 0 {
		return output.Totals{}, nil
	}
	s := &l.segments[next-1]
	if err := l.load(s); err != nil {
		return output.Totals{}, err
	}
	return s.until(offset), nil
}

// Read returns the bytes of a stream between two offsets, at most limit bytes.
func (l *Log) Read(from, until int64, limit int, stream output.Stream) (Part, error) {
	p := Part{Next: max(from, 0)}
	for i := l.find(p.Next); p.Next < until && len(p.Data) < limit; i++ {
		if err := l.skipGap(&p, i, until, stream); err != nil {
			return p, err
		}
		if i == len(l.segments) || p.Next >= until {
			break
		}
		if err := l.readSegment(&p, &l.segments[i], until, limit, stream); err != nil {
			return p, err
		}
	}
	return p, nil
}

// skipGap moves p.Next to the beginning of segment i, or to the end of the log after
// the last one, and counts the bytes that are missing before it.
func (l *Log) skipGap(p *Part, i int, until int64, stream output.Stream) error {
	next := max(p.Next, l.End())
	if i < len(l.segments) {
		next = max(p.Next, l.segments[i].offset)
	}
	if next > until {
		if stream == output.Any {
			p.Omitted += until - p.Next
		} // otherwise the read that reaches the end of the gap counts them
		p.Next = until
		return nil
	}
	missing, err := l.gap(p.Next, i, stream)
	p.Omitted += missing
	p.Next = next
	return err
}

// readSegment continues a read in one segment.
func (l *Log) readSegment(p *Part, s *segment, until int64, limit int, stream output.Stream) error {
	if err := l.load(s); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(l.dir, output.DataFile(s.offset)))
	if errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	if err != nil {
		return err
	}
	defer f.Close()
	stop := min(until, s.end())
	s.pieces(p.Next, stop, false, func(r output.Run, from, to int64) bool {
		if stream != output.Any && r.Stream != stream {
			p.Next = to
			return true
		}
		n := int(min(to-from, int64(limit-len(p.Data))))
		at := len(p.Data)
		p.Data = slices.Grow(p.Data, n)[:at+n]
		if n, err = f.ReadAt(p.Data[at:], from-s.offset); n < len(p.Data)-at && (err == nil || err == io.EOF) {
			err = io.ErrUnexpectedEOF
		} else {
			err = nil
		}
		p.Data = p.Data[:at+n]
		p.add(Piece{r.Stream, from, n, time.UnixMicro(r.Time)})
		p.Next = from + int64(n)
		return err == nil && len(p.Data) < limit
	})
	return err
}

// add appends a piece unless it is empty.
func (p *Part) add(piece Piece) {
	if piece.Len > 0 {
		p.Pieces = append(p.Pieces, piece)
	}
}

// TailStart returns the offset of the last n bytes of a stream that are kept.
func (l *Log) TailStart(n int64, stream output.Stream) (int64, error) {
	start := l.End()
	for i := len(l.segments) - 1; i >= 0 && n > 0; i-- {
		s := &l.segments[i]
		if err := l.load(s); err != nil {
			return 0, err
		}
		s.pieces(s.offset, s.end(), true, func(r output.Run, from, to int64) bool {
			if stream == output.Any || r.Stream == stream {
				take := min(n, to-from)
				n -= take
				start = to - take
			}
			return n > 0
		})
	}
	return start, nil
}

// Count returns the totals of the log, except that Lines does not include the lines
// of the last segment.
func (l *Log) Count() (output.Totals, error) {
	if l.totals != nil {
		return *l.totals, nil
	}
	n := len(l.segments)
	if n == 0 {
		return output.Totals{}, nil
	}
	s := &l.segments[n-1]
	err := l.load(s)
	return s.until(s.end()), err
}

// Retry opens the log and calls f, again and again until the writer removes no
// segment while f reads it.
func Retry(dir string, totals *output.Totals, f func(*Log) error) error {
	for {
		l, err := Open(dir, totals)
		if err != nil {
			return err
		}
		if err := f(l); !errors.Is(err, errMoved) {
			return err
		}
	}
}
