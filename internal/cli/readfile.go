package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errNotFile is the error of a name that leads to something that cannot be read to its end.
var errNotFile = errors.New("it is not a file: give a regular file")

// readFile reads a file of at most so many bytes that a person names. It never waits: a pipe or a
// device is refused, also if it takes the place of a file meanwhile.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, cause(err)
	case info.IsDir():
		return nil, errors.New("it is a directory: give a file")
	case !info.Mode().IsRegular():
		return nil, errNotFile
	case info.Size() > most:
		return nil, tooLarge(most)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, cause(err)
	}
	if int64(len(text)) > most { // it grows, or does not say its size
		return nil, tooLarge(most)
	}
	return text, nil
}

func tooLarge(most int64) error {
	if most < 1<<20 {
		return fmt.Errorf("it has more than %d KiB", most>>10)
	}
	return fmt.Errorf("it has more than %d MiB", most>>20)
}
