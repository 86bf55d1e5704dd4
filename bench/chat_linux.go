package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/bench/compare"
)

// The measurement of the chat, at a real terminal of 160 columns and 50 rows.
const (
	chatName    = "chat: at a terminal"
	chatColumns = 160
	chatRows    = 50
	chatEvents  = 10_000
	chatDeltas  = 10_000
)

// measureChat measures how long the chat takes to be there, to show a long session and to page
// through it, and what it costs to show an answer that arrives fast. Limits are in parentheses.
func measureChat(at place, only, abide string) (err error) {
	defer stopping(&err)
	if abide == "" || !strings.Contains(chatName, only) {
		return nil
	}
	fmt.Printf("\n%s of %d x %d\n", chatName, chatColumns, chatRows)
	t := compare.NewTable(os.Stdout, "what", "figure", "limit")
	l := long{binary{abide, got(os.MkdirTemp(at.dir, "chat-"))}}
	l.startOfChat(t)
	l.longChat(t)
	l.streamedChat(t)
	t.Print()
	return os.RemoveAll(l.dir)
}

// A chatScreen is a chat at a terminal.
type chatScreen struct {
	cmd  *exec.Cmd
	keys *os.File
	tty  *os.File

	mu     sync.Mutex
	more   *sync.Cond
	screen *vt.Emulator
	seen   func() // called when the screen has changed, with mu held; may be nil
	bytes  int
	over   bool
}

// chat starts a chat in a data folder.
func (l long) chat(home string, env []string, args ...string) *chatScreen {
	keys := got(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))
	raw := got(keys.SyscallConn())
	n := 0
	must(raw.Control(func(fd uintptr) {
		must(unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
		n = got(unix.IoctlGetInt(int(fd), unix.TIOCGPTN))
		must(unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: chatColumns, Row: chatRows}))
	}))
	tty := got(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0))
	work := filepath.Join(l.dir, "work")
	must(os.MkdirAll(work, 0o700))
	c := &chatScreen{cmd: exec.Command(l.path, args...), keys: keys, tty: tty, screen: vt.NewEmulator(chatColumns, chatRows)}
	c.more = sync.NewCond(&c.mu)
	c.cmd.Dir = work
	c.cmd.Env = append([]string{"ABIDE_HOME=" + filepath.Join(l.dir, home), "HOME=" + l.dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8"}, env...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	go c.watch() // ends when the terminal is closed
	must(c.cmd.Start())
	return c
}

// watch draws what the chat writes.
func (c *chatScreen) watch() {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.keys.Read(buf)
		c.mu.Lock()
		_, _ = c.screen.Write(buf[:n])
		c.bytes += n
		c.over = err != nil
		if c.seen != nil {
			c.seen()
		}
		c.more.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// shows waits until the screen matches.
func (c *chatScreen) shows(pattern string) {
	re := regexp.MustCompile("(?s)" + pattern)
	c.mu.Lock()
	defer c.mu.Unlock()
	for !re.MatchString(c.screen.String()) {
		if c.over {
			must(fmt.Errorf("the chat ended, and shows\n%s", c.screen.String()))
		}
		c.more.Wait()
	}
}

// changes types something and waits until the screen matches.
func (c *chatScreen) changes(keys, pattern string) time.Duration {
	before := time.Now()
	got(c.keys.WriteString(keys))
	c.shows(pattern)
	return time.Since(before)
}

// stop ends the chat.
func (c *chatScreen) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = c.cmd.Wait()
	_ = c.tty.Close()
	_ = c.keys.Close()
}

// middle returns the middle one of some times.
func middle(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// startOfChat measures the time until a chat in a known folder can be typed into.
func (l long) startOfChat(t *compare.Table) {
	var ours, shell []time.Duration
	for range 21 {
		before := time.Now()
		must(exec.Command("sh", "-c", "true").Run())
		shell = append(shell, time.Since(before))
		before = time.Now()
		c := l.chat("empty", nil)
		c.shows(`› ask, or /`)
		ours = append(ours, time.Since(before))
		c.stop()
	}
	t.Row("start, above sh -c true", fmt.Sprintf("%.0f ms", (middle(ours)-middle(shell)).Seconds()*1000), "60 ms")
}

// longChat measures the first screen, a page and the memory of a session with many events.
func (l long) longChat(t *compare.Table) {
	l.fill(chatEvents)
	resident := func(c *chatScreen) int64 { return got(memory(c.cmd.Process.Pid, "status", "VmRSS")) }
	empty := l.chat("empty", nil)
	empty.shows(`› ask, or /`)
	base := resident(empty)
	empty.stop()
	var first, page []time.Duration
	var most int64
	for range 5 {
		before := time.Now()
		c := l.chat("home", nil, "--resume", "s")
		c.shows(`noted.*› `)
		first = append(first, time.Since(before))
		c.changes("\x0f", `conversation ·`) // Ctrl-O
		for range 5 {
			c.mu.Lock()
			shown := c.screen.String()
			c.mu.Unlock()
			before := time.Now()
			got(c.keys.WriteString("\x1b[5~")) // PgUp
			c.mu.Lock()
			for c.screen.String() == shown && !c.over {
				c.more.Wait()
			}
			c.mu.Unlock()
			page = append(page, time.Since(before))
		}
		most = max(most, resident(c))
		c.stop()
	}
	t.Row(fmt.Sprintf("first screen of %d events, with the start", chatEvents), fmt.Sprintf("%.0f ms", middle(first).Seconds()*1000), "100 ms, without it")
	t.Row("a page up", fmt.Sprintf("%.0f ms", middle(page).Seconds()*1000), "50 ms")
	t.Row("memory, above an empty chat", mebibytes(most-base), "30 MiB")
}

// streamedChat measures the processor time of a chat, and how late each piece is shown, while
// 1,000 pieces of an answer arrive in each second. Another process is the engine.
func (l long) streamedChat(t *compare.Table) {
	sent := make([]time.Time, chatDeltas+1)
	var mu sync.Mutex // of sent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(format string, args ...any) {
			fmt.Fprintf(w, "data: "+format+"\n\n", args...)
			w.(http.Flusher).Flush()
		}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 1; i <= chatDeltas; i++ {
			<-tick.C
			mu.Lock()
			sent[i] = time.Now()
			mu.Unlock()
			chunk(`{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"%d; "}}]}`, i)
		}
		chunk(`{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		chunk(`[DONE]`)
	}))
	defer server.Close()
	env := []string{"OPENAI_API_KEY=key", "OPENAI_BASE_URL=" + server.URL}
	engine := exec.Command(l.path, "serve")
	engine.Env = append([]string{"ABIDE_HOME=" + filepath.Join(l.dir, "streamed"), "HOME=" + l.dir, "PATH=" + os.Getenv("PATH")}, env...)
	said := got(engine.StderrPipe())
	must(engine.Start())
	defer func() { _ = engine.Process.Kill(); _ = engine.Wait() }()
	got(said.Read(make([]byte, 1))) // it serves
	c := l.chat("streamed", env, "--model", "m")
	defer c.stop()
	c.shows(`› ask, or /`)
	last := 0
	var late []time.Duration
	number := regexp.MustCompile(`(\d+);`)
	c.mu.Lock()
	c.seen = func() {
		newest := last
		for _, m := range number.FindAllStringSubmatch(c.screen.String(), -1) {
			n, _ := strconv.Atoi(m[1]) // they are digits
			newest = max(newest, min(n, chatDeltas))
		}
		now := time.Now()
		mu.Lock()
		for ; last < newest; last++ {
			late = append(late, now.Sub(sent[last+1]))
		}
		mu.Unlock()
	}
	c.bytes = 0
	c.mu.Unlock()
	used := func() time.Duration { return got(processorTime(c.cmd.Process.Pid)) }
	c.changes("go\r", `\d+; `)
	before, began := used(), time.Now()
	c.shows(fmt.Sprintf(`%d;.*› ask`, chatDeltas))
	share := 100 * float64(used()-before) / float64(time.Since(began))
	slices.Sort(late)
	t.Row("1,000 pieces a second: processor time of the chat", fmt.Sprintf("%.1f %% of a core", share), "15 %")
	t.Row("1,000 pieces a second: shown late by, median; latest", fmt.Sprintf("%.0f; %.0f ms", late[len(late)/2].Seconds()*1000, late[len(late)-1].Seconds()*1000), "100 ms")
	t.Row("1,000 pieces a second: written to the terminal", fmt.Sprintf("%d kB", c.bytes/1000), "")
}

// processorTime returns the processor time that a process has used.
func processorTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // of all Linux systems
	return time.Duration(user+system) * tick, err
}
