// Package output writes what a command prints to a log, in order of arrival, in a
// limited amount of disk space.
//
// The log is a sequence of segments. Each is two files: out.OFFSET has the bytes as
// they were written, idx.OFFSET says which of them came from which stream, and
// when. OFFSET is the offset of the segment in the whole output, in hexadecimal.
// A [Writer] fills one segment after the other. When the quota is reached it
// removes the oldest segment that is not part of the head, so head and tail remain.
//
//   - Offsets count all bytes ever written, kept or not, and never change.
//   - Bytes that are not kept (beyond the quota, or the disk was full) leave a
//     gap between two segments. The next segment says how many of them came from
//     which stream and how many line breaks they had, so that all counts are
//     exact without them.
//   - The stream of a byte is in the index before the byte can be read.
//   - Neither side needs memory in proportion to what was written.
//
// One writer and any number of readers, in different processes, need no lock.
// Package outlog reads the log.
package output

import (
	"errors"
	"strconv"

	"github.com/abide-run/abide/internal/process/record"
)

// A Stream is one of the streams that a command writes to.
type Stream uint8

const (
	Any    Stream = iota // in a request: both streams
	Stdout               // standard output, or the terminal
	Stderr               // standard error
)

// Totals count what was written up to an offset.
type Totals struct {
	Bytes  int64 // bytes of both streams
	Stdout int64 // part of Bytes that came from standard output
	Lines  int64 // number of line breaks
}

// Of returns the number of bytes that came from a stream.
func (t Totals) Of(s Stream) int64 {
	switch s {
	case Stdout:
		return t.Stdout
	case Stderr:
		return t.Bytes - t.Stdout
	}
	return t.Bytes
}

// A Run is a part of a segment that came from one stream. It ends where the next one
// begins.
type Run struct {
	Offset int64 // offset in the whole output
	Time   int64 // Unix time in microseconds
	Stream Stream
}

const (
	segmentCount = 16  // number of full segments that the quota has space for
	minSegment   = 256 // smallest size of a full segment, in bytes

	// MinQuota is the smallest quota of a log.
	MinQuota = segmentCount * minSegment
)

const (
	magic      = "abx1"
	headerSize = 32 // bytes of magic, offset, stdout, lines and checksum
	runSize    = 20 // bytes of offset, time and stream, and checksum
)

var errIndex = errors.New("not an index")

// appendHeader appends the header of an index: the totals before the segment.
func appendHeader(dst []byte, before Totals) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = appendUint64(dst, uint64(before.Bytes))
	dst = appendUint64(dst, uint64(before.Stdout))
	dst = appendUint64(dst, uint64(before.Lines))
	return appendUint32(dst, record.Sum(dst[at:]))
}

func appendRun(dst []byte, r Run) []byte {
	at := len(dst)
	dst = appendUint64(dst, uint64(r.Offset))
	dst = appendUint64(dst, uint64(r.Time)<<8|uint64(r.Stream))
	return appendUint32(dst, record.Sum(dst[at:]))
}

// checksumOK reports whether the last four bytes are the checksum of the others.
func checksumOK(b []byte) bool {
	n := len(b) - 4
	return uint32(uint64At(b[n-4:])) == record.Sum(b[:n])
}

// ParseIndex decodes an index, up to the first run that is incomplete or invalid.
func ParseIndex(b []byte) (before Totals, runs []Run, err error) {
	if len(b) < headerSize || string(b[:4]) != magic || !checksumOK(b[:headerSize]) {
		return Totals{}, nil, errIndex
	}
	before = Totals{
		int64(uint64At(b[4:])),
		int64(uint64At(b[12:])),
		int64(uint64At(b[20:])),
	}
	if before.Bytes < 0 || before.Stdout < 0 || before.Stdout > before.Bytes || before.Lines < 0 || before.Lines > before.Bytes {
		return Totals{}, nil, errIndex
	}
	last := before.Bytes
	for b = b[headerSize:]; len(b) >= runSize && checksumOK(b[:runSize]); b = b[runSize:] {
		packed := uint64At(b[8:])
		r := Run{int64(uint64At(b)), int64(packed >> 8), Stream(packed)}
		if r.Offset < last || r.Stream != Stdout && r.Stream != Stderr {
			break
		}
		last = r.Offset
		runs = append(runs, r)
	}
	return before, runs, nil
}

const (
	dataName  = "out."
	indexName = "idx."
	digits    = 16
)

// DataFile returns the name of the file with the bytes of a segment.
func DataFile(offset int64) string { return name(dataName, offset) }

// IndexFile returns the name of the file with the index of a segment.
func IndexFile(offset int64) string { return name(indexName, offset) }

func name(prefix string, offset int64) string {
	hex := strconv.FormatInt(offset, 16)
	return prefix + "0000000000000000"[len(hex):] + hex
}

// ParseDataFile returns the offset of the segment whose data file has this name.
func ParseDataFile(file string) (offset int64, ok bool) {
	if len(file) != len(dataName)+digits {
		return 0, false
	}
	offset, err := strconv.ParseInt(file[len(dataName):], 16, 64)
	return offset, err == nil && offset >= 0 && DataFile(offset) == file
}

// IsFile reports whether a file belongs to a log.
func IsFile(file string) bool {
	_, ok := ParseDataFile(dataName + file[min(len(indexName), len(file)):])
	return ok && (file[:len(dataName)] == dataName || file[:len(indexName)] == indexName)
}

func appendUint64(dst []byte, n uint64) []byte {
	return appendUint32(appendUint32(dst, uint32(n>>32)), uint32(n))
}

func appendUint32(dst []byte, n uint32) []byte {
	return append(dst, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func uint64At(b []byte) (n uint64) {
	for _, c := range b[:8] {
		n = n<<8 | uint64(c)
	}
	return n
}
