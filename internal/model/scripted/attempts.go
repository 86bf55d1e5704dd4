package scripted

import (
	"bytes"
	"errors"
	"os"
)

// countAttempt adds an attempt with the given key to the file and returns the number of
// its attempts. Each attempt is a line that is appended in one write, so that the count
// survives the process and several processes can share the file.
func countAttempt(path, key string) (int, error) {
	line := []byte(key + "\n")
	if err := appendTo(path, line); err != nil {
		return 0, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n := 0
	for l := range bytes.Lines(data) {
		if bytes.Equal(l, line) {
			n++
		}
	}
	return n, nil
}

func appendTo(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}
