package screen_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/abide-run/abide/internal/tui/screen"
	"github.com/abide-run/abide/internal/tui/text"
)

// drawsFor names the socket of the test for which this program draws.
const drawsFor = "SCREEN_TEST_SOCKET"

func TestMain(m *testing.M) {
	if socket := os.Getenv(drawsFor); socket != "" {
		if err := drawInTmux(socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// drawInTmux draws on its terminal what a test tells it.
func drawInTmux(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	before, err := term.MakeRaw(os.Stdin.Fd())
	if err != nil {
		return err
	}
	defer term.Restore(os.Stdin.Fd(), before)
	columns, rows, err := term.GetSize(os.Stdout.Fd())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	size := func() (columns, rows int) {
		columns, rows, _ = term.GetSize(os.Stdout.Fd()) // a terminal that is gone has no size
		return columns, rows
	}
	s := screen.New(os.Stdout, columns, rows, screen.Options{Size: size, Settle: time.Second})
	height, cursor, ticks, moving := 3, 3, 0, false // of the live region
	draw := func() {
		var f screen.Frame
		for i := range height {
			f.Lines = append(f.Lines, text.Plain(fmt.Sprintf("live %d %s", i, strings.Repeat("=-"[ticks%2:ticks%2+1], max(0, columns-7-i)))))
		}
		f.Row, f.Col = max(0, height-2), cursor
		if height > 1 { // the cursor is behind the last cell, as in an editor
			f.Lines[f.Row] = text.Plain(fmt.Sprintf("live %d %s", f.Row, strings.Repeat("=", max(0, cursor-7))))
			f.Col = f.Lines[f.Row].Width()
		}
		s.Draw(f)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	go func() {
		for range resized {
			mu.Lock()
			if c, r, err := term.GetSize(os.Stdout.Fd()); err == nil {
				columns, rows, moving = c, r, true
				s.Resize(c, r)
				draw()
			}
			mu.Unlock()
		}
	}()
	draw()
	go func() { // something moves from a change of the size on
		for range time.Tick(10 * time.Millisecond) {
			mu.Lock()
			if moving {
				ticks++
				draw()
			}
			mu.Unlock()
		}
	}()
	for in := bufio.NewScanner(conn); in.Scan(); {
		var a, b int
		mu.Lock()
		switch line := in.Text(); {
		case scan(line, "append %d %d", &a, &b):
			for i := a; i < b; i++ {
				s.Append(text.Plain(testLine(i)))
			}
			draw()
		case scan(line, "live %d %d", &a, &b):
			height, cursor = a, b
			draw()
		case line == "still":
			moving = false
		case line == "size":
			fmt.Fprintln(conn, columns, rows)
			mu.Unlock()
			continue
		case line == "close":
			mu.Unlock()
			err := s.Close()
			fmt.Fprintln(conn, "closed")
			return err
		}
		mu.Unlock()
		s.Flush()
		fmt.Fprintln(conn, "done")
	}
	return nil
}

func scan(line, format string, a ...any) bool {
	n, err := fmt.Sscanf(line, format, a...)
	return err == nil && n == len(a)
}

// testLine returns a finished line. Some are wider than the terminal.
func testLine(i int) string {
	if i%5 == 3 {
		return fmt.Sprintf("line %d %s", i, strings.Repeat("x", 20+i%90)) + "."
	}
	return fmt.Sprintf("line %d", i)
}

// A drawing is a program that draws in a terminal of tmux.
type drawing struct {
	t      *testing.T
	socket string
	conn   net.Conn
	in     *bufio.Scanner
}

func startDrawing(t *testing.T, columns, rows int) *drawing {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here")
	}
	dir, err := os.MkdirTemp("", "screen") // the name of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	d := &drawing{t: t, socket: filepath.Join(dir, "tmux")}
	l, err := net.Listen("unix", filepath.Join(dir, "test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.tmux("kill-server"); l.Close(); os.RemoveAll(dir) })
	d.tmux("-f", "/dev/null", "set-option", "-g", "history-limit", "50000", ";", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "-e", drawsFor+"="+filepath.Join(dir, "test"),
		"sleep 1000000 & "+os.Args[0]+"; wait")
	if d.conn, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	d.in = bufio.NewScanner(d.conn)
	return d
}

func (d *drawing) tmux(args ...string) string {
	d.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", d.socket}, args...)...).CombinedOutput()
	if err != nil && args[0] != "kill-server" {
		d.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// tell tells the program to do something, and returns what it says when it has done it.
func (d *drawing) tell(format string, a ...any) string {
	d.t.Helper()
	fmt.Fprintf(d.conn, format+"\n", a...)
	if !d.in.Scan() {
		d.t.Fatalf("the program is gone: %v\n%s", d.in.Err(), d.tmux("capture-pane", "-p"))
	}
	return d.in.Text()
}

// resize gives the terminal one size after the other, each when the program knows the one
// before, and waits until the program has drawn for the last one. Nothing moves before
// and after that.
func (d *drawing) resize(sizes ...[2]int) {
	d.t.Helper()
	d.tell("still")
	for _, size := range sizes {
		d.tmux("resize-window", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]))
		for d.tell("size") != fmt.Sprint(size[0], size[1]) {
			time.Sleep(time.Millisecond) // between two looks
		}
	}
	d.tell("nothing")
	d.tell("still")
}

// check compares the finished lines with what the terminal shows.
func (d *drawing) check(n int, context string) {
	d.t.Helper()
	all := d.tmux("capture-pane", "-p", "-J", "-S", "-")
	shown, want := regexp.MustCompile(`(?m)line \d+( x+\.?)?`).FindAllString(all, -1), []string(nil)
	for i := range n {
		want = append(want, testLine(i))
	}
	if live := strings.Count(all, "live 0"); live != 1 || !slices.Equal(shown, want) {
		d.t.Errorf("%s: the live region is there %d times, shown:\n%s", context, live, all)
	}
}

// TestResizesLoseNothing: whatever size the terminal gets, and however fast one change
// follows the other, the finished lines are there once and in order, and so is the live
// region.
func TestResizesLoseNothing(t *testing.T) {
	d := startDrawing(t, 80, 24)
	n := 0
	for _, c := range []struct {
		height, cursor int
		sizes          [][2]int
	}{
		{3, 10, [][2]int{{110, 24}}},
		{3, 100, [][2]int{{50, 24}}}, // the rows of the line end where its text does
		{5, 40, [][2]int{{50, 16}}},
		{2, 50, [][2]int{{100, 40}, {60, 20}}},
		{4, 60, [][2]int{{50, 30}, {90, 30}}},
		{5, 80, [][2]int{{60, 30}, {110, 18}, {50, 18}}},
		{1, 50, [][2]int{{70, 17}, {50, 39}, {50, 16}}},
	} {
		d.tell("append %d %d", n, n+20)
		n += 20
		d.tell("live %d %d", c.height, c.cursor)
		d.resize(c.sizes...)
		d.check(n, fmt.Sprint(c))
	}
	d.tell("close")
	if all := d.tmux("capture-pane", "-p", "-J", "-S", "-"); strings.Contains(all, "live") {
		t.Errorf("the live region is left:\n%s", all)
	}
}

// A live region that begins in the first row is not moved to the scrollback when it is
// drawn again.
func TestTheFirstRowIsErasedToo(t *testing.T) {
	d := startDrawing(t, 40, 6)
	d.tell("live 4 10")
	d.tell("append 0 1")
	d.check(1, "a line above a live region that began in the first row")
}
