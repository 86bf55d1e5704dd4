package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"sync"
)

// A printer is a writer that stops after the first error and keeps it. It is safe for
// concurrent use.
type printer struct {
	w   io.Writer
	mu  sync.Mutex
	err error

	isJSON bool    // true if JSON was written
	region *region // what is below the output on the terminal; nil if there is nothing
}

func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	n, err := 0, error(nil)
	if p.region != nil {
		n, err = p.region.write(p.w, b)
	} else {
		n, err = p.w.Write(b)
	}
	p.err = err
	return n, err
}

// setRegion says what is below the output on the terminal; nil for nothing.
func (p *printer) setRegion(r *region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.region = r
}

// redirect makes the printer write to another writer from now on, which has not failed yet.
func (p *printer) redirect(w io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w, p.err = w, nil
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

// jsonList writes values as one line that is a list, each when it is there.
func (p *printer) jsonList(values iter.Seq2[any, error]) error {
	p.mu.Lock()
	p.isJSON = true
	p.mu.Unlock()
	return p.buffered(func(w io.Writer) error {
		separator := "["
		for v, err := range values {
			if err != nil {
				return err
			}
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(v); err != nil {
				return fmt.Errorf("cannot encode the output: %w", err)
			}
			if _, err := fmt.Fprintf(w, "%s%s", separator, bytes.TrimSuffix(b.Bytes(), []byte("\n"))); err != nil {
				return err
			}
			separator = ","
		}
		if separator == "," {
			separator = ""
		}
		_, err := io.WriteString(w, separator+"]\n")
		return err
	})
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
