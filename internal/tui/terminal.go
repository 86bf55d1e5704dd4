package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/tui/screen"
)

// A terminal is where the chat takes place.
type terminal struct {
	in, out *os.File
	before  *term.State // state of the terminal before it was changed
}

// openTerminal makes every key reach the program.
func openTerminal(in, out *os.File) (*terminal, error) {
	before, err := term.MakeRaw(in.Fd())
	if err != nil {
		return nil, fmt.Errorf("cannot set up the terminal: %w", err)
	}
	return &terminal{in, out, before}, nil
}

// restore makes the terminal as it was.
func (t *terminal) restore() { _ = term.Restore(t.in.Fd(), t.before) } // there is nothing else to be done

// again makes every key reach the program after restore.
func (t *terminal) again() { _, _ = term.MakeRaw(t.in.Fd()) } // keys then come line by line

// A watchedInput is a terminal of which somebody else is shown what is read.
type watchedInput struct {
	*os.File
	seen func([]byte)
}

func (w *watchedInput) Read(b []byte) (int, error) {
	n, err := w.File.Read(b)
	w.seen(b[:n])
	return n, err
}

// answerTime is how long a chat that ends waits for an answer of the terminal.
const answerTime = 2 * time.Second

// awaitAnswer reads the answer that the terminal owes. It would be typed for the shell otherwise.
func (t *terminal) awaitAnswer(s *screen.Screen) {
	buf := make([]byte, 256)
	for until := time.Now().Add(answerTime); s.Owes() && time.Now().Before(until); {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}}, int(time.Until(until).Milliseconds())+1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || ready == 0 {
			return
		}
		n, err := t.in.Read(buf)
		if err != nil || n == 0 {
			return
		}
		s.Read(buf[:n])
	}
}

// usualColumns and usualRows are the size of a terminal that does not tell its own.
const (
	usualColumns = 80
	usualRows    = 24
)

// size returns the columns and rows of the terminal.
func (t *terminal) size() (columns, rows int) {
	columns, rows, err := term.GetSize(t.out.Fd())
	if err != nil || columns <= 0 || rows <= 0 {
		return usualColumns, usualRows
	}
	return columns, rows
}

// watchSize calls f when the size has changed, until stop is called.
func (t *terminal) watchSize(f func(columns, rows int)) (stop func()) {
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-changed:
				f(t.size())
			case <-done:
				return
			}
		}
	})
	return func() { signal.Stop(changed); close(done); watching.Wait() }
}

// suspendTime is how long to wait for the shell to stop the process. A process that no
// shell controls is not stopped.
const suspendTime = 500 * time.Millisecond

// suspend stops the process, as Ctrl-Z does, until the shell lets it go on.
func (c *chat) suspend() {
	c.screen.Pause()
	c.terminal.restore()
	on := make(chan os.Signal, 1)
	signal.Notify(on, syscall.SIGCONT)
	defer signal.Stop(on)
	if syscall.Kill(0, syscall.SIGTSTP) == nil {
		select {
		case <-on:
		case <-time.After(suspendTime):
		}
	}
	c.terminal.again()
	c.columns, c.rows = c.terminal.size()
	c.screen.Resize(c.columns, c.rows)
	c.screen.Resume()
}

// A program is another program that has the terminal for a while.
type program struct {
	*exec.Cmd
	chat *chat
}

// Run runs the program on the terminal.
func (p *program) Run() error {
	p.chat.screen.Pause()
	p.chat.terminal.restore()
	defer func() {
		p.chat.terminal.again()
		p.chat.screen.Resume()
	}()
	return p.Cmd.Run()
}

// An execution lets Bubble Tea run a program whose streams are set already.
type execution struct{ *program }

func (*execution) SetStdin(io.Reader)  {}
func (*execution) SetStdout(io.Writer) {}
func (*execution) SetStderr(io.Writer) {}
