package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// A chatTerminal is a terminal with a screen on which a chat takes place.
type chatTerminal struct {
	*terminal
	p *program
}

// startChat starts a chat at a terminal of some columns and rows.
func startChat(t *testing.T, dir string, columns, rows int, args ...string) *chatTerminal {
	t.Helper()
	x := &chatTerminal{terminal: newTerminal(t)}
	screen := vt.NewEmulator(columns, rows)
	screen.SetScrollbackSize(100_000)
	answers := make(chan []byte, 100) // of the terminal, which does not wait until they are read
	go func() {
		buf := make([]byte, 256)
		for {
			n, err := screen.Read(buf)
			if err != nil {
				close(answers)
				return
			}
			answers <- bytes.Clone(buf[:n])
		}
	}()
	go func() {
		for answer := range answers {
			_, _ = x.keys.Write(answer) // the program may have ended
		}
	}()
	t.Cleanup(func() { _ = screen.InputPipe().(io.Closer).Close() })
	x.mu.Lock()
	x.emulator = screen // it is memory alone, so nothing closes it while the output is read
	x.mu.Unlock()
	raw, err := x.keys.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
	}))
	must(t, err)
	x.p = x.start(dir, "abide", args...)
	x.p.Dir = filepath.Join(dir, "work") // this folder does not contain the data folder
	must(t, os.MkdirAll(x.p.Dir, 0o700))
	must(t, x.p.Start())
	return x
}

// lines returns the scrollback and the screen.
func (x *chatTerminal) lines() []string {
	var lines []string
	for y := range x.emulator.ScrollbackLen() {
		var b strings.Builder
		for c := range x.emulator.Width() {
			if cell := x.emulator.ScrollbackCellAt(c, y); cell != nil {
				b.WriteString(cell.Content)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	for y := range x.emulator.Height() {
		var b strings.Builder
		for c := range x.emulator.Width() {
			if cell := x.emulator.CellAt(c, y); cell != nil {
				b.WriteString(cell.Content)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// patience is the time after which a test shows the screen instead of waiting on.
const patience = 2 * time.Minute

// sees waits until the scrollback and the screen match a pattern, and returns them.
func (x *chatTerminal) sees(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile("(?s)" + pattern)
	late := false
	defer time.AfterFunc(patience, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		late = true
		x.more.Broadcast()
	}).Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		all := strings.Join(x.lines(), "\n")
		if re.MatchString(all) {
			return all
		}
		if x.over || late {
			x.t.Fatalf("the terminal does not show %s, but:\n%s", pattern, all)
		}
		x.more.Wait()
	}
}

// leaves presses Ctrl-D and returns what the terminal shows then, with the farewell.
func (x *chatTerminal) leaves() string {
	x.t.Helper()
	x.sees(`› ask`)
	x.typed("\x04")
	if code := x.awaitExit(x.p); code != 0 {
		x.t.Errorf("exit code %d", code)
	}
	return x.sees(`\nsession `) // the end of the process may be known before its last output is read
}

// body returns the blocks of a chat: what is between its head and its farewell.
func body(t *testing.T, all string) string {
	t.Helper()
	from, to := strings.Index(all, "\n› "), strings.LastIndex(all, "\nsession ")
	if from < 0 || to < from {
		t.Fatalf("no chat:\n%s", all)
	}
	return strings.Trim(all[from:to], "\n")
}

// chatScenario is a model for chats.
const chatScenario = `{"rules": [
 {"when": {"userContains": "markdown"}, "reply": {"deltaDelay": "2ms", "text": "# A title\n\nSome **bold** words that make a paragraph which is so long that it has to be wrapped on a terminal of eighty columns.\n\n- one\n- two\n\n` + "```go\\nfunc main() {}\\n```" + `\n\nThe end."}},
 {"when": {"userContains": "many"}, "reply": {"deltaDelay": "10ms", "text": "MANY"}},
 {"when": {"userContains": "edit", "step": 1}, "reply": {"text": "I write.", "calls": [{"tool": "create", "arguments": {"path": "a.txt", "file_text": "one\ntwo three\n"}}]}},
 {"when": {"userContains": "edit", "step": 2}, "reply": {"calls": [{"tool": "edit", "arguments": {"path": "a.txt", "old_str": "two three", "new_str": "two four"}}]}},
 {"when": {"userContains": "edit"}, "reply": {"text": "Edited."}},
 {"when": {"userContains": "run it", "step": 1}, "reply": {"text": "I run.", "calls": [{"tool": "bash", "arguments": {"command": "touch ran; echo out", "description": "Run"}}]}},
 {"when": {"userContains": "run it"}, "reply": {"text": "Ran."}},
 {"when": {"userContains": "hostile", "step": 1}, "reply": {"text": "HOSTILE \u001b]0;title\u0007\u001b[2J\u001b[31m\u009b5m\u202e <script>x</script>\n\n` + "```\\n\\u001b[3J\\n```" + `", "calls": [{"tool": "bash", "arguments": {"command": "printf '\\033]52;c;aGk=\\007\\033[2Jx'", "description": "\u001b[2J"}}]}},
 {"when": {"userContains": "hostile"}, "reply": {"text": "over"}},
 {"when": {"userContains": "wait here", "step": 1}, "reply": {"calls": [{"tool": "bash", "arguments": {"command": "echo half way; until test -e go; do sleep 0.1; done", "description": "Wait"}}]}},
 {"when": {"userContains": "wait here"}, "reply": {"text": "Over."}},
 {"when": {"userContains": "slow"}, "reply": {"deltas": ["slow ", "answer ", "ends"], "deltaDelay": "300ms"}},
 {"reply": {"text": "you said: {{user}}"}}
]}`

// chatFolder returns an empty folder and the file of a scenario.
func chatFolder(t *testing.T) (dir, scenario string) {
	t.Helper()
	dir = t.TempDir()
	scenario = filepath.Join(dir, "scenario.json")
	text := strings.Replace(chatScenario, `"MANY"`, fmt.Sprintf("%q", numbered(200)), 1)
	must(t, os.WriteFile(scenario, []byte(text), 0o600))
	return dir, scenario
}

// numbered returns a list with a number of items.
func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "%d. item\n", i)
	}
	return b.String()
}

// TestTheScrollbackIsTheLog: what a chat has left in the scrollback is what another one
// prints that opens the session later, line for line.
func TestTheScrollbackIsTheLog(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {100, 50}, {20, 5}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			dir, scenario := chatFolder(t)
			x := startChat(t, dir, size[0], size[1], "--yolo", "--scenario", scenario)
			x.sees(`› ask`)
			for _, turn := range [][2]string{{"edit", "Edited."}, {"show markdown", "The end."}, {"many", "200. item"}, {"run it", "Ran."}, {"last", "you said: last"}} {
				x.typed(turn[0])
				x.sees(`› ` + turn[0])
				x.typed("\r")
				x.sees(`› ` + turn[0] + `\n.*` + regexp.QuoteMeta(turn[1]) + `\n+› `)
			}
			lived := x.leaves()
			id := regexp.MustCompile(`--resume\s+([-0-9a-f\n]+)`).FindStringSubmatch(lived)[1]
			again := startChat(t, dir, size[0], size[1], "--scenario", scenario, "--resume", strings.ReplaceAll(id, "\n", ""))
			again.sees(`you said: last\n+› `)
			if a, b := body(t, lived), body(t, again.leaves()); size[0] > 20 && a != b {
				t.Errorf("lived:\n%s\n\nopened later:\n%s", a, b)
			}
			if n := strings.Count(lived, "item"); n != 200 {
				t.Errorf("%d of 200 items are in the scrollback", n)
			}
		})
	}
}

// TestAQuestionDoesNotTakeTheKeysOfSomebodyWhoTypes: what is typed while a question comes
// is a draft, Enter and Space approve nothing, and y does when nobody types any more.
func TestAQuestionDoesNotTakeTheKeysOfSomebodyWhoTypes(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 100, 30, "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("run it\r")
	x.typed("yes y") // before the question is there, and while it comes
	x.sees(`may it run this command: touch ran.*a question waits: Tab answers it.*› yes y`)
	x.typed("y\ry")
	x.sees(`› y`)
	if _, err := os.Stat(filepath.Join(dir, "work", "ran")); err == nil {
		t.Fatal("what was typed for the model has approved a command")
	}
	x.typed("\x15") // Ctrl-U empties the editor
	x.sees(`\[y\]es, once`)
	x.typed(" ")
	x.sees(`Enter and Space answer nothing`)
	x.typed("\r")
	x.typed("?")
	x.sees(`yes, this call only`)
	if _, err := os.Stat(filepath.Join(dir, "work", "ran")); err == nil {
		t.Fatal("Enter or Space has approved a command")
	}
	x.typed("y")
	x.sees(`✓ allowed once: touch ran; echo out\n.*Ran\..*you said: yes yy\n+› `)
	if _, err := os.Stat(filepath.Join(dir, "work", "ran")); err != nil {
		t.Error("the command was not run")
	}
	x.leaves()
}

// TestAQuestionCanBeAnsweredElsewhere: the chat says so, and goes on.
func TestAQuestionCanBeAnsweredElsewhere(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 100, 30, "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("run it\r")
	x.sees(`may it run this command: touch ran`)
	id := regexp.MustCompile(`"session_id":"([^"]+)"`).FindStringSubmatch(output(t, dir, "questions", "--json"))[1]
	output(t, dir, "answer", id, "yes")
	x.sees(`answered elsewhere`)
	x.sees(`✓ allowed once: touch ran; echo out\n.*Ran\.`)
	x.leaves()
}

// TestHostileTextDoesNotReachTheTerminal: what a model or a command writes is shown, and
// never obeyed.
func TestHostileTextDoesNotReachTheTerminal(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 100, 40, "--yolo", "--scenario", scenario)
	x.sees(`› ask`)
	x.mu.Lock()
	x.shown = ""
	x.mu.Unlock()
	x.typed("hostile\r")
	all := x.sees(`over\n+› `)
	for _, want := range []string{"HOSTILE <U+001B>]0;title<U+0007><U+001B>[2J<U+001B>[31m<U+009B>5m<U+202E> <script>x</script>", "<U+001B>[3J"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not shown:\n%s", want, all)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, bad := range []string{"\x1b]0;", "\x1b]52", "\x1b[2J", "\x1b[3J", "\x1b[31mH", "\u009b", "\u202e", "title\a"} {
		if strings.Contains(x.shown, bad) {
			t.Errorf("%q has reached the terminal", bad)
		}
	}
}

// TestALongPasteIsOneWord: five megabytes are folded, and sent whole.
func TestALongPasteIsOneWord(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 80, 24, "--scenario", scenario)
	x.sees(`› ask`)
	line := strings.Repeat("x", 99) + "\n"
	pasted := strings.Repeat(line, 50_000)
	x.typed("\x1b[200~" + strings.ReplaceAll(pasted, "\n", "\r") + "\x1b[201~")
	x.sees(`› \[pasted 50000 lines, 5000000 bytes\]`)
	x.typed(" edit\r")
	x.sees(`the newest message alone has about`)
	id := regexp.MustCompile(`--resume\s+(\S+)`).FindStringSubmatch(x.leaves())[1]
	if got := strings.Count(output(t, dir, "sessions", "show", id), strings.Repeat("x", 99)); got != 50_000 {
		t.Errorf("%d of 50000 lines were sent", got)
	}
}

// TestTheChatGoesOnWhenTheDaemonIsKilled: the answer is there once, and the scrollback is
// that of the log.
func TestTheChatGoesOnWhenTheDaemonIsKilled(t *testing.T) {
	dir, scenario := chatFolder(t)
	engine := start(t, dir, "serve")
	engine.await("serves .*engine")
	x := startChat(t, dir, 80, 24, "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("first\r")
	x.sees(`you said: first\n+› `)
	x.typed("slow\r")
	x.sees(`\nslow answer`)
	must(t, engine.Process.Kill())
	x.sees(`slow answer ends\n+› `)
	x.typed("after\r")
	x.sees(`you said: after\n+› `)
	lived := x.leaves()
	for _, once := range []string{"› first", "you said: first", "› slow", "slow answer ends", "› after", "you said: after"} {
		if n := strings.Count(lived, once); n != 1 {
			t.Errorf("%q is there %d times:\n%s", once, n, lived)
		}
	}
}

// TestCtrlCClearsThenStopsThenLeaves and what was stopped stays stopped.
func TestCtrlCClearsThenStopsThenLeaves(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 80, 24, "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("draft")
	x.sees(`› draft`)
	x.typed("\x03")
	x.sees(`cleared; press Ctrl-C again to leave`)
	x.typed("slow\r")
	x.sees(`\nslow `)
	x.typed("\x1b")             // Esc
	x.sees(`✗ stopped\n+› ask`) // nothing is under way any more, so Ctrl-C is not another stop
	x.typed("\x03")
	x.sees(`press Ctrl-C again to leave; nothing is lost`)
	x.typed("\x03")
	if code := x.awaitExit(x.p); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if all := strings.Join(x.lines(), "\n"); !strings.Contains(all, "to come back: abide") || strings.Contains(all, "slow answer ends") {
		t.Errorf("at the end:\n%s", all)
	}
}

// TestOverlaysLeaveNothingBehind: pager, pickers and help are shown and closed, and the
// scrollback is what it was.
func TestOverlaysLeaveNothingBehind(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 80, 24, "--yolo", "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("edit\r")
	before := x.sees(`Edited\.\n+› `)
	for _, o := range [][3]string{
		{"/help\r", `Ctrl-S +send now`, "q"}, {"\x0f", `  file_text:`, "q"}, {"/sessions\r", `type to search names`, "\x1b"},
		{"/rewind\r", `would restore .*a\.txt`, "\x1b"}, {"\x1b\x1b", `would restore .*a\.txt`, "\x1b"}, {"/tasks\r", `nothing found`, "\x1b"}, {"/context\r", `tokens`, "q"},
		{"/cost\r", `REQUESTS`, "q"}, {"/diff\r", `changes · ↑`, "q"}, {"/rules\r", `there are no rules`, "q"},
	} {
		x.typed(o[0])
		x.sees(o[1])
		x.typed(o[2])
		after := x.sees(`Edited\.\n+› ask`)
		if !strings.HasPrefix(after, before[:strings.Index(before, "Edited.")]) {
			t.Errorf("after %q:\n%s\nbefore:\n%s", o[0], after, before)
		}
	}
	x.leaves()
}

// TestAMessageCanWait while a turn runs.
func TestAMessageCanWait(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 80, 24, "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("slow\r")
	x.sees(`\nslow `)
	x.typed("next one\r")
	x.sees(`waits: next one`)
	x.sees(`slow answer ends\n\n› next one\n\nyou said: next one\n+› `)
	x.leaves()
}

// TestAnOwnCommandIsShared: its output is shown, and goes with the next message.
func TestAnOwnCommandIsShared(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 80, 24, "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("!echo from me; exit 3\r")
	x.sees(`! echo from me; exit 3  exit code 3\nfrom me\n.*› \[output of echo from me; exit 3, exit code 3\]`)
	x.typed("why?\r")
	x.sees(`you said: I ran this command \(exit code 3\):.*from me.*why\?`)
	x.leaves()
}

// TestWithoutATerminalNothingChanges: help is printed as before.
func TestWithoutATerminalNothingChanges(t *testing.T) {
	if got := output(t, t.TempDir()); !strings.Contains(got, "Usage:") {
		t.Errorf("printed:\n%s", got)
	}
}

// TestTheTerminalIsAsItWas after the chat, also if it is ended from outside.
func TestTheTerminalIsAsItWas(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 80, 24, "--scenario", scenario)
	x.sees(`› ask`)
	must(t, syscall.Kill(x.p.Process.Pid, syscall.SIGTERM))
	x.p.Wait()
	after, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	must(t, err)
	if after.Lflag&unix.ICANON == 0 || after.Lflag&unix.ECHO == 0 {
		t.Error("the terminal is still raw")
	}
}

// TestRunShowsBlocksAtATerminal: abide run shows the diff of an edit and the output of a
// command, and in a pipe only the answer.
func TestRunShowsBlocksAtATerminal(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := newTerminal(t)
	p := x.start(dir, "abide", "run", "--yolo", "--scenario", scenario, "edit")
	must(t, p.Start())
	x.await(`▸ edit a\.txt\S*\r\n.*@@.*-two.*three.*\+two.*four.*Edited\.`)
	if code := x.awaitExit(p); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x = newTerminal(t)
	p = x.start(dir, "abide", "run", "--yolo", "--scenario", scenario, "run it")
	must(t, p.Start())
	x.await(`▸ bash touch ran; echo out\S*\r\n.*  out.*exit code 0.*Ran\.`)
	x.awaitExit(p)
	if got := output(t, dir, "run", "--yolo", "--scenario", scenario, "edit"); got != "Edited.\n" {
		t.Errorf("in a pipe: %q", got)
	}
}

// TestRunShowsWhatIsUnderWay: at a terminal, abide run shows what the turn waits for, the last
// lines of a command and the answer that arrives, and leaves the answer alone.
func TestRunShowsWhatIsUnderWay(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startChat(t, dir, 80, 24, "run", "--yolo", "--scenario", scenario, "wait here")
	x.sees(`▸ bash echo half way.*running bash \d[^\n]* · Ctrl-C stops\n  half way\n`)
	must(t, os.WriteFile(filepath.Join(dir, "work", "go"), nil, 0o600))
	all := x.ends()
	for _, gone := range []string{"Ctrl-C stops", "running bash"} {
		if strings.Contains(all, gone) {
			t.Errorf("%q is left:\n%s", gone, all)
		}
	}
	if !strings.Contains(all, "\nOver.\n") {
		t.Errorf("there is no answer:\n%s", all)
	}

	x = startChat(t, dir, 80, 24, "run", "--scenario", scenario, "slow")
	x.sees(`slow answer\n[^\n]*answering \d`)
	if all := x.ends(); strings.Count(all, "slow answer") != 1 || !strings.Contains(all, "\nslow answer ends\n") || strings.Contains(all, "answering") {
		t.Errorf("at the end:\n%s", all)
	}

	x = startChat(t, dir, 80, 24, "run", "--scenario", scenario, "show markdown")
	if all := x.ends(); strings.Contains(all, "# A title") || strings.Contains(all, "**") || !strings.Contains(all, "A title") || !strings.Contains(all, "Some bold words") {
		t.Errorf("Markdown is not drawn:\n%s", all)
	}

	x = startChat(t, dir, 80, 24, "run", "--scenario", scenario, "run it")
	x.sees(`may it run this command: touch ran.*instead:`)
	x.typed("y\r")
	if all := x.ends(); !strings.Contains(all, "\nRan.\n") || strings.Contains(all, "Ctrl-C stops") {
		t.Errorf("after a question:\n%s", all)
	}
}

// ends waits for the end of the program and returns what the terminal shows then.
func (x *chatTerminal) ends() string {
	x.t.Helper()
	if code := x.awaitExit(x.p); code != 0 {
		x.t.Errorf("exit code %d", code)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for !x.over {
		x.more.Wait()
	}
	return strings.Join(x.lines(), "\n")
}

// TestPlainDrawsNothingTwice: with --plain, and on a terminal that cannot be drawn on, there
// is not one escape code.
func TestPlainDrawsNothingTwice(t *testing.T) {
	for name, args := range map[string][]string{"flag": {"--plain"}, "dumb": nil} {
		t.Run(name, func(t *testing.T) {
			dir, scenario := chatFolder(t)
			x := newTerminal(t)
			p := x.start(dir, "abide", append(args, "--scenario", scenario)...)
			p.Env = append(p.Env, "NO_COLOR=1")
			if name == "dumb" {
				p.Env = append(p.Env, "TERM=dumb")
			}
			must(t, p.Start())
			shown := x.await(`you: `)
			x.typed("hello\n")
			shown += x.await(`you said: hello\r\n.*you: `)
			x.typed("run it\n")
			shown += x.await(`may it run this command.*instead: `)
			x.typed("y\n")
			shown += x.await(`Ran\.\r\n.*you: `)
			x.typed("/quit\n")
			if code := x.awaitExit(p); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if strings.Contains(shown, "\x1b") {
				t.Errorf("there are escape codes: %q", shown)
			}
		})
	}
}
