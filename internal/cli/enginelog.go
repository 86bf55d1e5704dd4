package cli

import (
	"bytes"
	"os"
)

// maxEngineLog is the maximum size of the log of an engine that goes on after its command, in
// bytes.
const maxEngineLog = 4 << 20

// removedLines is the first line of a log from which older lines were removed.
const removedLines = "abide: older lines were removed"

// openEngineLog opens the log of an engine and empties it.
func openEngineLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
}

// removeEmptyLog removes the log of an engine that had nothing to report.
func removeEmptyLog(path string) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		os.Remove(path)
	}
}

// A boundedLog is a log that keeps its newer half when it gets longer than max bytes. One
// goroutine writes at a time.
type boundedLog struct {
	file *os.File // open for reading and appending
	max  int64
}

func (l *boundedLog) Write(b []byte) (int, error) {
	n, err := l.file.Write(b)
	if err == nil {
		err = l.shorten()
	}
	return n, err
}

// shorten removes the older half of a log that is too long.
func (l *boundedLog) shorten() error {
	info, err := l.file.Stat()
	if err != nil || info.Size() <= l.max {
		return err
	}
	newer := make([]byte, l.max/2)
	if _, err := l.file.ReadAt(newer, info.Size()-int64(len(newer))); err != nil {
		return err
	}
	_, newer, _ = bytes.Cut(newer, []byte("\n")) // the first line is not whole
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.Write(append([]byte(removedLines+"\n"), newer...))
	return err
}
