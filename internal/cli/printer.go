package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// A printer is a writer that stops after the first error and keeps it. It is safe for
// concurrent use.
type printer struct {
	w   io.Writer
	mu  sync.Mutex
	err error

	isJSON bool // true if JSON was written
}

func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.w.Write(b)
	p.err = err
	return n, err
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// json writes a value as one line.
func (p *printer) json(v any) error {
	p.mu.Lock()
	p.isJSON = true
	p.mu.Unlock()
	enc := json.NewEncoder(p)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil && p.err == nil {
		return fmt.Errorf("cannot encode the output: %w", err)
	}
	return p.err
}

// buffered calls f with a buffered writer, and flushes it afterwards.
func (p *printer) buffered(f func(io.Writer) error) error {
	w := bufio.NewWriterSize(p, 64<<10)
	err := f(w)
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	return err
}
