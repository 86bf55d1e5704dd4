package process

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/abide-run/abide/internal/process/outlog"
	"github.com/abide-run/abide/internal/process/output"
)

const (
	defaultLimit = 64 << 10
	maxLimit     = 16 << 20 // maximum bytes of one chunk
)

// readLog calls f with the output log and the status from before the log was opened. It
// calls f again if the keeper removes a segment while f reads it.
func (p *proc) readLog(f func(l *outlog.Log, s status) error) error {
	s, _ := p.now()
	if s.dropped {
		return fmt.Errorf("process %s: %w", p.id, ErrDropped)
	}
	return outlog.Retry(p.dir, s.totals, func(l *outlog.Log) error { return f(l, s) })
}

// complete checks a request and fills in the default limits.
func (r ReadRequest) complete() (ReadRequest, error) {
	switch {
	case r.Offset < 0:
		return r, invalid("offset", "%d is before the beginning", r.Offset)
	case r.Until < 0 || r.Until > 0 && r.Until < r.Offset:
		return r, invalid("until", "%d is before the offset %d", r.Until, r.Offset)
	case r.Limit < 0:
		return r, invalid("limit", "%d is negative", r.Limit)
	case r.Stream > Stderr:
		return r, invalid("stream", "there is no stream %d", r.Stream)
	}
	r.Limit = min(cmp.Or(r.Limit, defaultLimit), maxLimit)
	r.Until = cmp.Or(r.Until, math.MaxInt64)
	return r, nil
}

// Read returns a part of the output.
func (m *Manager) Read(ctx context.Context, owner Owner, id ID, r ReadRequest) (Chunk, error) {
	p, err := m.find(owner, id)
	if err != nil {
		return Chunk{}, err
	}
	if r, err = r.complete(); err != nil {
		return Chunk{}, err
	}
	for {
		_, changed := p.now()
		c, err := p.chunk(r)
		if err != nil || !r.Wait || len(c.Data) > 0 || c.Omitted > 0 || c.End || c.Next >= r.Until {
			return c, err
		}
		p.arm(c.Next)
		r.Offset = c.Next // output of the other stream was skipped
		select {
		case <-changed:
		case <-ctx.Done():
			return c, context.Cause(ctx)
		case <-m.ctx.Done():
			return c, ErrClosed
		}
	}
}

func (p *proc) chunk(r ReadRequest) (c Chunk, err error) {
	err = p.readLog(func(l *outlog.Log, s status) error {
		part, err := l.Read(r.Offset, min(r.Until, max(l.End(), r.Offset)), r.Limit, output.Stream(r.Stream))
		c = chunkOf(part)
		c.End = s.gone && c.Next >= l.End()
		return err
	})
	return c, err
}

func chunkOf(part outlog.Part) Chunk {
	c := Chunk{Data: part.Data, Next: part.Next, Omitted: part.Omitted, Runs: make([]Run, len(part.Pieces))}
	for i, piece := range part.Pieces {
		c.Runs[i] = Run{Stream(piece.Stream), piece.Offset, piece.Len, piece.Time}
	}
	return c
}

// Tail returns the last n bytes of the output, or of one of its streams.
func (m *Manager) Tail(owner Owner, id ID, n int, stream Stream) (c Chunk, err error) {
	p, err := m.find(owner, id)
	if err != nil {
		return Chunk{}, err
	}
	if n < 0 {
		return Chunk{}, invalid("tail", "%d is negative", n)
	}
	n = min(n, maxLimit)
	err = p.readLog(func(l *outlog.Log, s status) error {
		part, err := tail(l, n, output.Stream(stream))
		c = chunkOf(part)
		c.End = s.gone
		return err
	})
	return c, err
}

func tail(l *outlog.Log, n int, stream output.Stream) (outlog.Part, error) {
	from, err := l.TailStart(int64(n), stream)
	if err != nil {
		return outlog.Part{}, err
	}
	return l.Read(from, l.End(), n, stream)
}

// View returns the output as a model sees it: the same text as [HeadTailBuffer.Output]
// of all bytes that were written.
func (m *Manager) View(owner Owner, id ID, stream Stream) (text string, info *TruncationInfo, err error) {
	p, err := m.find(owner, id)
	if err != nil {
		return "", nil, err
	}
	err = p.readLog(func(l *outlog.Log, _ status) error {
		of := output.Stream(stream)
		t, err := l.Count()
		if err != nil {
			return err
		}
		head, err := l.Read(0, l.End(), MaxHeadBytes, of)
		if err != nil {
			return err
		}
		rest := t.Of(of) - int64(len(head.Data)) - head.Omitted
		end, err := tail(l, int(min(rest, MaxTailBytes)), of)
		text, info = render(head.Data, end.Data, int(t.Of(of)))
		return err
	})
	return text, info, err
}
