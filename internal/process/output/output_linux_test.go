package output

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	Parts   = segmentCount
	RunSize = runSize
)

// Fail makes the next writes fail as on a full disk, also if the files are open
// already.
func (w *Writer) Fail(readOnly int) (restore func()) {
	if w.data >= 0 {
		unix.Close(w.data)
		w.data, _ = unix.FcntlInt(uintptr(readOnly), unix.F_DUPFD_CLOEXEC, 0)
		return func() {}
	}
	w.makeSpace() // removing files works on a full disk
	dir := w.dir
	w.dir = -1
	return func() { w.dir = dir }
}

func FuzzIndex(f *testing.F) {
	b := appendHeader(nil, Totals{10, 4, 2})
	f.Add(appendRun(appendRun(b, Run{10, 5, Stdout}), Run{12, 6, Stderr}), int64(20))
	f.Add([]byte("abx1"), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		before, runs, err := ParseIndex(b)
		if err != nil {
			return
		}
		again := appendHeader(nil, before)
		for _, r := range runs {
			again = appendRun(again, r)
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("%x was read as what is written %x", b, again)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add("out.00000000000000ff")
	f.Fuzz(func(t *testing.T, file string) {
		IsFile(file)
		if offset, ok := ParseDataFile(file); ok && (offset < 0 || DataFile(offset) != file) {
			t.Errorf("ParseDataFile(%q) = %d", file, offset)
		}
	})
}
