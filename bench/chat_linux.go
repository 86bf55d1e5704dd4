package main

import (
	"context"
	"fmt"
	"io"
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
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	engine "github.com/abide-run/abide/internal/session"
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
	l.slowChat(t)
	l.startOfCommands(t)
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
	speed  int // bytes that the terminal takes in a second; zero if it takes all
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
	go c.watch()  // ends when the terminal is closed
	go c.answer() // ends when the screen is closed
	must(c.cmd.Start())
	return c
}

// answer types what the terminal answers to the questions of the chat.
func (c *chatScreen) answer() {
	buf := make([]byte, 256)
	for {
		n, err := c.screen.Read(buf)
		if err != nil {
			return
		}
		_, _ = c.keys.Write(buf[:n]) // the chat may have ended
	}
}

// slowPart is how much a slow terminal takes at once.
const slowPart = 50

// watch draws what the chat writes.
func (c *chatScreen) watch() {
	buf := make([]byte, 64<<10)
	for {
		part := buf
		c.mu.Lock()
		speed := c.speed
		c.mu.Unlock()
		if speed > 0 {
			part = buf[:slowPart]
		}
		n, err := c.keys.Read(part)
		if speed > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(speed))
		}
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

// chatPatience is how long the measurement waits for anything.
const chatPatience = time.Minute

// shows waits until the screen matches.
func (c *chatScreen) shows(pattern string) {
	re := regexp.MustCompile("(?s)" + pattern)
	c.await(pattern, func(shown string) bool { return re.MatchString(shown) })
}

// await waits until the screen is as wanted.
func (c *chatScreen) await(what string, wanted func(shown string) bool) {
	late := false
	defer time.AfterFunc(chatPatience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		late = true
		c.more.Broadcast()
	}).Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !wanted(c.screen.String()) {
		if c.over || late {
			must(fmt.Errorf("the chat does not show %s, but\n%s", what, c.screen.String()))
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
	_ = c.screen.InputPipe().(io.Closer).Close() // a pipe in memory
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
	last := l.fillTurns("home", chatEvents)
	resident := func(c *chatScreen) int64 { return got(memory(c.cmd.Process.Pid, "status", "VmRSS")) }
	empty := l.chat("empty", nil)
	empty.shows(`› ask, or /`)
	base := resident(empty)
	empty.stop()
	var first, page []time.Duration
	var most int64
	for range 9 {
		before := time.Now()
		c := l.chat("home", nil, "--resume", "s")
		c.shows(last + `.*› ask, or /`)
		first = append(first, time.Since(before))
		c.changes("\x0f", `conversation ·`) // Ctrl-O
		for range 5 {
			c.mu.Lock()
			shown := c.screen.String()
			c.mu.Unlock()
			before := time.Now()
			got(c.keys.WriteString("\x1b[5~")) // PgUp
			c.await("another page", func(now string) bool { return now != shown })
			page = append(page, time.Since(before))
		}
		most = max(most, resident(c))
		c.stop()
	}
	t.Row(fmt.Sprintf("first screen of %d events, with the start", chatEvents), fmt.Sprintf("%.0f ms", middle(first).Seconds()*1000), "100 ms, without it")
	t.Row("a page up", fmt.Sprintf("%.0f ms", middle(page).Seconds()*1000), "50 ms")
	t.Row("memory, above an empty chat", mebibytes(most-base), "30 MiB")
}

// fillTurns makes a session of many short turns, with about some number of events. It returns
// what the last answer begins with.
func (l long) fillTurns(home string, atLeast int) (last string) {
	events, info := recorded(func(host *engine.Host) {
		for i := 0; got(host.Status(context.Background(), "s")).End.Seq < event.Seq(atLeast); i++ {
			last = fmt.Sprintf("word %d", i)
			runTurn(host, last+" of **many**, see `f` and https://example.com\n\n```go\nfunc f() int { return 1 }\n```\n\n- an item\n- another one\n")
		}
	})
	must(os.MkdirAll(filepath.Join(l.dir, home), 0o700))
	store := got(sqlite.Open(context.Background(), filepath.Join(l.dir, home, "abide.db"), sqlite.Options{Sync: eventlog.Normal}))
	appendAll(store, "s", events, info)
	must(store.Close())
	return last
}

// A streamed is an endpoint that answers in many pieces, and an engine that uses it.
type streamed struct {
	mu     sync.Mutex
	sent   []time.Time // when each piece was sent, by its number
	server *httptest.Server
	engine *exec.Cmd
	env    []string
}

// stream starts an endpoint that sends pieces with some time between them, and an engine in a
// data folder.
func (l long) stream(home string, pieces int, between time.Duration) *streamed {
	s := &streamed{sent: make([]time.Time, pieces+1)}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(format string, args ...any) {
			fmt.Fprintf(w, "data: "+format+"\n\n", args...)
			w.(http.Flusher).Flush()
		}
		tick := time.NewTicker(between)
		defer tick.Stop()
		for i := 1; i <= pieces && r.Context().Err() == nil; i++ {
			<-tick.C
			s.mu.Lock()
			s.sent[i] = time.Now()
			s.mu.Unlock()
			chunk(`{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"%d; "}}]}`, i)
		}
		chunk(`{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		chunk(`[DONE]`)
	}))
	s.env = []string{"OPENAI_API_KEY=key", "OPENAI_BASE_URL=" + s.server.URL}
	s.engine = exec.Command(l.path, "serve")
	s.engine.Env = append([]string{"ABIDE_HOME=" + filepath.Join(l.dir, home), "HOME=" + l.dir, "PATH=" + os.Getenv("PATH")}, s.env...)
	said := got(s.engine.StdoutPipe())
	must(s.engine.Start())
	got(said.Read(make([]byte, 1))) // it serves
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return s
}

func (s *streamed) stop() {
	_ = s.engine.Process.Kill() // it may have ended
	_ = s.engine.Wait()
	s.server.CloseClientConnections()
	s.server.Close()
}

// streamedChat measures the processor time of a chat, and how late each piece is shown, while
// 1,000 pieces of an answer arrive in each second. Another process is the engine.
func (l long) streamedChat(t *compare.Table) {
	s := l.stream("streamed", chatDeltas, time.Millisecond)
	defer s.stop()
	c := l.chat("streamed", s.env, "--model", "m")
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
		s.mu.Lock()
		for ; last < newest; last++ {
			late = append(late, now.Sub(s.sent[last+1]))
		}
		s.mu.Unlock()
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

// slowKeys is the number of keys that are typed at a slow terminal.
const slowKeys = 15

// slowChat measures how soon keys are shown on a terminal that takes 1 kB in a second, while 50
// pieces of an answer arrive in each second.
func (l long) slowChat(t *compare.Table) {
	s := l.stream("slow", 50*(slowKeys+30), time.Second/50)
	defer s.stop()
	c := l.chat("slow", s.env, "--model", "m")
	defer c.stop()
	c.shows(`› ask, or /`)
	c.mu.Lock()
	c.speed = 1000
	c.mu.Unlock()
	c.changes("go\r", `\d+; `)
	time.Sleep(5 * time.Second) // the chat finds out how slow the terminal is
	var echoes []time.Duration
	typed := ""
	for i := range slowKeys {
		typed += string(rune('a' + i))
		echoes = append(echoes, c.changes(typed[i:], `› `+typed))
		time.Sleep(300 * time.Millisecond)
	}
	slices.Sort(echoes)
	t.Row("1 kB/s, 50 pieces a second: a key is shown after, median; latest", fmt.Sprintf("%.0f; %.0f ms", echoes[len(echoes)/2].Seconds()*1000, echoes[len(echoes)-1].Seconds()*1000), "1000 ms")
}

// ofTheChat matches the packages that only the chat needs, and times their initialisation.
var ofTheChat = regexp.MustCompile(`(?m)^init (?:charm\.land|github\.com/(?:charmbracelet|muesli|clipperhouse|yuin/goldmark|lucasb-eyer|rivo|mattn/go-runewidth|alecthomas/chroma|atotto|aymanbagabas)|\S*/internal/tui)\S* @\S+ ms, (\S+) ms clock`)

// startOfCommands measures what the packages of the chat cost at the start of every command.
func (l long) startOfCommands(t *compare.Table) {
	var sums []time.Duration
	for range 20 {
		cmd := exec.Command(l.path, "--version")
		cmd.Env = []string{"GODEBUG=inittrace=1", "HOME=" + l.dir}
		var said strings.Builder
		cmd.Stderr = &said
		must(cmd.Run())
		sum := 0.0
		for _, m := range ofTheChat.FindAllStringSubmatch(said.String(), -1) {
			sum += got(strconv.ParseFloat(m[1], 64))
		}
		sums = append(sums, time.Duration(sum*float64(time.Millisecond)))
	}
	t.Row("start of every command: packages of the chat (inittrace, median of 20)", fmt.Sprintf("%.2f ms", middle(sums).Seconds()*1000), "1 ms")
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
