package cli

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// terminal returns the file behind a stream if it is a terminal, else nil.
func terminal(stream any) *os.File {
	if p, ok := stream.(*printer); ok {
		stream = p.w
	}
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	isTerminal := func(fd int) error {
		_, err := unix.IoctlGetTermios(fd, getTermios)
		return err
	}
	if control(f, isTerminal) != nil {
		return nil
	}
	return f
}

// control calls a function with the descriptor of a file, without changing its blocking
// mode.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// awaitInput waits until something can be read from a terminal, also the end of input or
// an error.
func awaitInput(tty *os.File) { pollInput(tty, nil) }

// hasInput reports whether something can be read from a terminal without waiting.
func hasInput(tty *os.File) bool { return pollInput(tty, new(unix.Timeval)) }

// pollInput waits until something can be read from a terminal, or for a time; nil is
// without end.
func pollInput(tty *os.File, timeout *unix.Timeval) bool {
	ready := 0
	err := control(tty, func(fd int) error {
		for {
			var set unix.FdSet
			set.Set(fd)
			var err error
			if ready, err = unix.Select(fd+1, &set, nil, nil, timeout); err != unix.EINTR {
				return err
			}
		}
	})
	return err != nil || ready > 0 // reading tells the error
}

// width returns the maximum number of columns of a table; zero if there is no limit.
func width(out io.Writer) int {
	f := terminal(out)
	if f == nil {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	most := 80
	_ = control(f, func(fd int) error { // 80 columns if the terminal does not tell
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil && size.Col > 0 {
			most = int(size.Col)
		}
		return err
	})
	return most
}

// A style is the escape sequence for a colour or weight of text.
type style string

const (
	faint      style = "\x1b[2m"
	bold       style = "\x1b[1m"
	red        style = "\x1b[31m"
	green      style = "\x1b[32m"
	plainStyle style = ""
)

// A painter adds styles to text if colours are on.
type painter struct{ colours bool }

// paint returns the painter for a stream. NO_COLOR and a dumb terminal turn
// colours off.
func paint(out io.Writer) painter {
	return painter{terminal(out) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p painter) in(s style, text string) string {
	if !p.colours || s == plainStyle || text == "" {
		return text
	}
	return string(s) + text + "\x1b[0m"
}
