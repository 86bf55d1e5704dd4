package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// ask sends a request to the keeper of a process and waits for its answer.
func (p *proc) ask(ctx context.Context, r record.Record) error {
	err := p.exchange(ctx, r)
	var refusal *refusal
	switch {
	case err == nil || errors.As(err, &refusal):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if s, _ := p.now(); s.state.Ended() {
		return ErrEnded
	}
	// A keeper that closes the connection has ended, or is about to.
	if p.await(ctx, func(s *status) bool { return s.state.Ended() }) == nil {
		return ErrEnded
	}
	return err
}

// A refusal is the answer of a keeper that did not carry out a request.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func (p *proc) exchange(ctx context.Context, r record.Record) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(r.Line()); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadSlice('\n')
	if err != nil {
		return err
	}
	answer, err := record.Parse(line)
	if err != nil {
		return err
	}
	if answer.Kind != keeper.OK {
		return &refusal{answer.Get("reason")}
	}
	return nil
}

// connect returns a new connection to the keeper. If the keeper listens on no
// socket, connect sends it one end of a new socket pair. After a restart connect
// waits until the keeper was found; if the keeper is gone, the error is ErrEnded.
func (p *proc) connect(ctx context.Context) (net.Conn, error) {
	err := p.await(ctx, func(s *status) bool { return s.gone || s.lost || p.isWatched() })
	if err != nil {
		return nil, err
	}
	if conn, err := p.dial(); err == nil {
		return conn, nil
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err := p.sendConn(theirs); err != nil {
		ours.Close()
		return nil, err
	}
	return ours, nil
}

func (p *proc) isWatched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watch != nil
}

// sendConn sends the keeper its end of a new connection.
func (p *proc) sendConn(theirs *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watch == nil {
		return ErrEnded
	}
	return sendFiles(p.watch, record.New(keeper.Meet).Line(), theirs)
}

// control sends a request to the keeper of a process that has not ended.
func (m *Manager) control(ctx context.Context, owner Owner, id ID, r record.Record) error {
	p, err := m.find(owner, id)
	if err != nil {
		return err
	}
	if s, _ := p.now(); s.state.Ended() {
		return fmt.Errorf("process %s: %w", id, ErrEnded)
	}
	if err := p.ask(ctx, r); err != nil {
		return fmt.Errorf("process %s: %s: %w", id, r.Kind, err)
	}
	return nil
}

// WriteStdin writes to the standard input of a process. It returns when all data is
// in the pipe or terminal of the process, so the process has read all but the last
// of it. If ctx ends first, data that the keeper has received is still delivered.
func (m *Manager) WriteStdin(ctx context.Context, owner Owner, id ID, in Input) error {
	p, err := m.find(owner, id)
	if err != nil {
		return err
	}
	if !p.start.spec.Stdin {
		return fmt.Errorf("process %s: %w", id, ErrNoStdin)
	}
	for part := 0; ; part++ {
		n := min(len(in.Data), keeper.MaxInput)
		last := n == len(in.Data)
		r := record.New(keeper.Stdin).With("data", string(in.Data[:n])).WithFlag("close", last && in.Close)
		if in.Key != "" {
			r = r.With("key", in.Key+"/"+itoa(part))
		}
		err := m.control(ctx, owner, id, r)
		var refusal *refusal
		if errors.As(err, &refusal) {
			return fmt.Errorf("process %s: %w", id, ErrNoStdin)
		}
		if err != nil || last {
			return err
		}
		in.Data = in.Data[n:]
	}
}

// Consume says that the output of a pipe before an offset is not needed any more: it may be
// removed, and the process may write more.
func (m *Manager) Consume(ctx context.Context, owner Owner, id ID, offset int64) error {
	return m.control(ctx, owner, id, record.New(keeper.Consume).WithInt("at", offset))
}

// Rest says that a process has nothing to do until the next input with a key. When no engine was
// there for a time, its keeper ends it. With zero it goes on without one for ever, as it does
// while it has something to do.
func (m *Manager) Rest(ctx context.Context, owner Owner, id ID, after time.Duration) error {
	return m.control(ctx, owner, id, record.New(keeper.Rest).WithInt("after", int64(after)))
}

// Resize changes the size of the process's terminal.
func (m *Manager) Resize(ctx context.Context, owner Owner, id ID, size Size) error {
	p, err := m.find(owner, id)
	if err != nil {
		return err
	}
	if p.start.spec.TTY == nil {
		return fmt.Errorf("process %s: %w", id, ErrNoTerminal)
	}
	if size.Rows == 0 || size.Cols == 0 {
		return invalid("size", "a terminal has at least one row and one column")
	}
	return m.control(ctx, owner, id, record.New(keeper.Resize).WithInt("rows", int64(size.Rows)).WithInt("cols", int64(size.Cols)))
}

// Signal sends a signal to the process and its group.
func (m *Manager) Signal(ctx context.Context, owner Owner, id ID, sig syscall.Signal) error {
	if sig < 1 || sig > 64 {
		return invalid("signal", "there is no signal %d", int(sig))
	}
	return m.control(ctx, owner, id, record.New(keeper.Signal).WithInt("signal", int64(sig)))
}

// Stop ends a process and all its children with TERM, and after the grace time with
// KILL. It returns when all of them have ended. If ctx ends first, stopping
// continues. Stopping a process that is gone is not an error.
func (m *Manager) Stop(ctx context.Context, owner Owner, id ID) (Info, error) {
	return m.end(ctx, owner, id, record.New(keeper.Stop).With("reason", "stopped").WithInt("grace", int64(m.opts.Grace)))
}

// Interrupt is Stop for a command whose turn was stopped: like Ctrl-C at a terminal,
// it begins with INT, and TERM and KILL follow only if that does not help. The keeper
// needs nobody for that once it has been asked.
func (m *Manager) Interrupt(ctx context.Context, owner Owner, id ID) (Info, error) {
	grace := int64(m.opts.Patience) // for keepers of older versions, which begin with TERM
	return m.end(ctx, owner, id, record.New(keeper.Stop).With("reason", "interrupted").WithInt("interrupt", grace).WithInt("grace", grace))
}

// end sends a process a request to end it, and waits until it and all its children
// have ended.
func (m *Manager) end(ctx context.Context, owner Owner, id ID, r record.Record) (Info, error) {
	p, err := m.find(owner, id)
	if err != nil {
		return Info{}, err
	}
	if s, _ := p.now(); !s.gone && !s.lost {
		if err := p.ask(ctx, r); err != nil && !errors.Is(err, ErrEnded) {
			return p.info(), fmt.Errorf("stop process %s: %w", id, err)
		}
	}
	if s, _ := p.now(); s.lost && !s.gone {
		return p.stopLost(ctx)
	}
	err = p.await(ctx, func(s *status) bool { return s.gone })
	return p.info(), err
}

// stopLost tries again to end the children of a lost process.
func (p *proc) stopLost(ctx context.Context) (Info, error) {
	done := make(chan error, 1)
	p.m.work.Go(func() { done <- p.endSurvivors() })
	select {
	case err := <-done:
		info := p.info()
		if err == nil && !info.Gone {
			err = fmt.Errorf("stop process %s: %v could not be ended", p.id, info.Survivors)
		}
		return info, err
	case <-ctx.Done():
		return p.info(), context.Cause(ctx)
	}
}
