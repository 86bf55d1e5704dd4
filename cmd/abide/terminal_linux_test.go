package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// A terminal is a real pseudo-terminal on which the test types.
type terminal struct {
	t    *testing.T
	keys *os.File // end of the terminal at which the test types and reads
	tty  *os.File // end of the terminal that the program has

	mu       sync.Mutex
	more     *sync.Cond
	shown    string
	over     bool
	emulator *vt.Emulator // is given the output, too; nil if the test needs no screen
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	raw, err := keys.SyscallConn() // Fd would make a pending read keep the terminal open
	must(t, err)
	n := 0
	must(t, raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	must(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	x := &terminal{t: t, keys: keys, tty: tty}
	x.more = sync.NewCond(&x.mu)
	var watching sync.WaitGroup
	watching.Go(x.watch)
	t.Cleanup(func() { tty.Close(); watching.Wait(); keys.Close() })
	return x
}

// watch reads the output until the program's side of the terminal is closed.
func (x *terminal) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := x.keys.Read(buf)
		x.mu.Lock()
		x.shown += string(buf[:n])
		if x.emulator != nil {
			_, _ = x.emulator.Write(buf[:n])
		}
		x.over = err != nil
		x.more.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until the output matches a pattern, and forgets the output up to the end
// of the match.
func (x *terminal) await(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile("(?s)" + pattern)
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		if at := re.FindStringIndex(x.shown); at != nil {
			found := x.shown[:at[1]]
			x.shown = x.shown[at[1]:]
			return found
		}
		if x.over {
			x.t.Fatalf("the terminal does not show %s, but %q", pattern, x.shown)
		}
		x.more.Wait()
	}
}

func (x *terminal) typed(text string) {
	x.t.Helper()
	_, err := io.WriteString(x.keys, text)
	must(x.t, err)
}

// start starts a program at the terminal. Its stdout goes there too, unless the
// test takes it.
func (x *terminal) start(dir, name string, args ...string) *program {
	x.t.Helper()
	p := command(x.t, dir, args...)
	p.Path, p.Args[0] = lookPath(x.t, name), name
	p.Env = append(p.Env, "TERM=xterm", "NO_COLOR=", "COLUMNS=")
	p.Stdin, p.Stdout, p.Stderr = x.tty, x.tty, x.tty
	return p
}

// awaitExit closes the test's hold on the program's side, so that the end of the
// program is the end of what is shown.
func (x *terminal) awaitExit(p *program) int {
	x.t.Helper()
	x.tty.Close()
	p.Wait()
	return p.ProcessState.ExitCode()
}

func TestAtATerminalPermissionIsAskedThere(t *testing.T) {
	const prompt = "Use note with value 'X', then reply with the result"
	for _, c := range []struct {
		keys, notes, says string
	}{
		{"y\n", "X\n", "noted X"},
		{"YES\n", "X\n", "noted X"},
		{"ok\n", "X\n", "noted X"},
		{"Yes.\n", "X\n", "noted X"},
		{"t\n", "X\n", "noted X"},
		{"tool\n", "X\n", "noted X"},
		{"n\n", "", "the turn ended without an answer, because this was refused: may it run this command: note X; to go on, say what to do instead: abide run --resume "},
		{"rather not\n", "", "User feedback: rather not"},
	} {
		t.Run(strings.TrimSpace(c.keys), func(t *testing.T) {
			x, dir := newTerminal(t), t.TempDir()
			p := x.start(dir, "abide-tools", "run", prompt)
			must(t, p.Start())
			x.await(`\? may it run this command: note X.*instead:`)
			if got := notes(t, dir); got != "" {
				t.Errorf("it was done before anybody answered: %q", got)
			}
			x.typed("\n") // an empty line is no answer
			x.await(`\? may it run this command: note X.*instead:`)
			x.typed(c.keys)
			x.await(regexp.QuoteMeta(c.says))
			want := 0
			if c.keys == "n\n" { // the work was not done: a script that goes on after a success stops
				want = 1
			}
			if code := x.awaitExit(p); code != want || notes(t, dir) != c.notes {
				t.Errorf("exit code %d, notes %q, want %d and %q", code, notes(t, dir), want, c.notes)
			}
		})
	}
}

// TestWhatIsNoAnswerIsAskedAgain: a question mark explains, and neither a slip of the
// finger nor a friendly yes is taken for a refusal.
func TestWhatIsNoAnswerIsAskedAgain(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide-tools", "run", "Use note with value 'X', then reply with the result")
	must(t, p.Start())
	x.await(`asked because no rule or grant allows it.*\[y\]es, once; \[t\] yes, and any call of note; \[n\]o; \[\?\] explain.*instead:`)
	x.typed("?\n")
	x.await(`y  yes, this call only\r\n  t  tool: yes, and any call of note, for the rest of the session\r\n  n  no; the turn ends\r\n.*instead:`)
	for _, keys := range []string{"huh", "yes please", "ok, go on", "a", "always", "1", "approve-session:everything", "prefix"} {
		x.typed(keys + "\n")
		x.await(`(is no answer|names none of the offers).*instead:`)
	}
	if got := notes(t, dir); got != "" {
		t.Errorf("it was done before anybody answered: %q", got)
	}
	x.typed("yes\n")
	x.await(`noted X`)
	if code := x.awaitExit(p); code != 0 || notes(t, dir) != "X\n" {
		t.Errorf("exit code %d, notes %q", code, notes(t, dir))
	}
}

// A long change is cut at the terminal, and that is said; the person can see all of it, and
// so can whoever lists the questions.
func TestAPersonCanSeeTheWholeChange(t *testing.T) {
	for lines, cut := range map[int]bool{100: false, 300: true} {
		t.Run(strconv.Itoa(lines), func(t *testing.T) {
			x, dir := newTerminal(t), t.TempDir()
			var text strings.Builder
			for i := range lines {
				fmt.Fprintf(&text, `line %d.\n`, i+1)
			}
			p := x.start(dir, "abide", "run", `Use create with {"path":".envrc","file_text":"`+text.String()+`"}`)
			must(t, p.Start())
			last := fmt.Sprintf(`\+line %d\.`, lines)
			if cut {
				shown := x.await(`more lines are not shown.*instead:`)
				if strings.Contains(shown, fmt.Sprintf("line %d.", lines)) {
					t.Error("the change is not cut")
				}
				x.typed("d\n")
			}
			x.await(last + `.*instead:`)
			if shown := output(t, dir, "questions"); !regexp.MustCompile(last).MatchString(shown) || strings.Contains(shown, "not shown") {
				t.Errorf("abide questions does not show the whole change")
			}
			x.typed("go ahead\n")
			x.await(`"go ahead" is no answer: a yes is yes, or y.*instead:`)
			x.typed("n\n")
			x.awaitExit(p)
		})
	}
}

func TestAYesForTheSessionIsNotAskedAgain(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide-tools", "run", "Call note with value 'X' and note with value 'Y', then reply with both results")
	must(t, p.Start())
	x.await(`note X.*instead:`)
	x.typed("t\n")
	x.await(`note Y.*instead:`) // it was asked before
	x.typed("y\n")
	x.await(`noted X\r\nnoted Y`)
	x.awaitExit(p)

	x = newTerminal(t)
	p = x.start(dir, "abide-tools", "run", "--continue", "Use note with value 'Z', then reply with the result")
	must(t, p.Start())
	if shown := x.await(`noted Z`); strings.Contains(shown, "instead:") {
		t.Errorf("it was asked again: %s", shown)
	}
	x.awaitExit(p)
}

func TestWhatWasTypedBeforeTheQuestionIsNotItsAnswer(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	x.typed("y\ny\n")
	p := x.start(dir, "abide-tools", "run", "Use note with value 'X', then reply with the result")
	must(t, p.Start())
	x.await(`instead:`)
	x.typed("n\n")
	x.await(`without an answer`)
	x.awaitExit(p)
	if got := notes(t, dir); got != "" {
		t.Errorf("it was done: %q", got)
	}
}

func TestQuestionsOfTheModelAreAnsweredByNumberOrText(t *testing.T) {
	const scenario = `{"rules":[
		{"when":{"step":1},"reply":{"calls":[{"tool":"ask_user","arguments":{"question":"Which one?","choices":["red","blue"]}}]}},
		{"reply":{"text":"{{result}}"}}]}`
	for keys, says := range map[string]string{"2\n": "User selected: blue", "red\n": "User selected: red", "3\n": "User responded: 3", "any\n": "User responded: any"} {
		x, dir := newTerminal(t), t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "s.json"), []byte(scenario), 0o600))
		p := x.start(dir, "abide", "run", "--scenario", "s.json", "hello")
		must(t, p.Start())
		x.await(`\? the model asks: Which one\?.*\r\n  1  red\r\n  2  blue\r\n.*number or answer:`)
		x.typed(keys)
		x.await(regexp.QuoteMeta(says))
		x.awaitExit(p)
	}
}

func TestAQuestionIsLeftOpenIfThePersonLeaves(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide", "run", "Ask me: Q?")
	must(t, p.Start())
	x.await(`answer:`)
	x.typed("\x04") // end of input
	shown := x.await(`is waiting for an answer, as long as it takes:\r\n.*Q\?\r\nAnswer with: abide answer \S+ TEXT\r\nTo be asked again here: abide run --resume \S+\r\n`)
	if strings.Contains(shown, "no terminal") {
		t.Errorf("the terminal shows %q", shown)
	}
	if code := x.awaitExit(p); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
	if got := output(t, dir, "questions"); !strings.Contains(got, "Q?") {
		t.Errorf("the question is gone: %s", got)
	}
}

func TestAQuestionThatIsAnsweredElsewhereIsNotAskedAnyMore(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide", "run", "Ask me: Q?")
	must(t, p.Start())
	id := regexp.MustCompile(`session ([0-9a-f-]+)`).FindStringSubmatch(x.await(`answer:`))[1]
	if got := output(t, dir, "answer", id, "from elsewhere"); got != "User responded: from elsewhere\n" {
		t.Errorf("the other one is told %q", got)
	}
	x.await(`User responded: from elsewhere`)
	if code := x.awaitExit(p); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestOnATerminalTheAnswerAppearsOnce(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide", "run", "--quiet", "Reply with exactly: one two three")
	must(t, p.Start())
	x.awaitExit(p)
	if shown := x.all(); shown != "one two three\r\n" {
		t.Errorf("the terminal shows %q", shown)
	}
}

// all waits for the end and returns what is shown.
func (x *terminal) all() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for !x.over {
		x.more.Wait()
	}
	return x.shown
}

func TestAnAnswerThatBreaksOffIsSetApartFromTheNextAttempt(t *testing.T) {
	const scenario = `{"witness":"attempts.txt","rules":[{"reply":{"deltas":["one ","two ","three"],"error":{"kind":"stream","afterDeltas":2,"times":1}}}]}`
	x, dir := newTerminal(t), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "s.json"), []byte(scenario), 0o600))
	p := x.start(dir, "abide", "run", "--quiet", "--scenario", "s.json", "hello")
	must(t, p.Start())
	x.awaitExit(p)
	if shown := x.all(); !strings.HasSuffix(shown, "one two three\r\n") || strings.Count(shown, "three") != 1 {
		t.Errorf("the terminal shows %q", shown)
	}
}

func TestTextOfOthersCannotSpeakToTheTerminal(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	p := x.start(dir, "abide", "run", "--quiet", "Reply with exactly: a\x1b[2Jb\x07c")
	must(t, p.Start())
	x.awaitExit(p)
	if shown := x.all(); strings.ContainsAny(shown, "\x1b\x07") || !strings.Contains(shown, "b") {
		t.Errorf("the terminal shows %q", shown)
	}
}

// What a command printed is shown on a terminal without what would change the terminal, and
// byte for byte to a program.
func TestLogsLeaveTheTerminalAsItWas(t *testing.T) {
	dir := t.TempDir()
	script := `printf '\033[?1049h\033]0;title\007\033]52;c;eA==\007\033[31mred\n'`
	output(t, dir, "run", "--model", "offline", "--yolo", `Use bash with {"command":"`+strings.ReplaceAll(script, `\`, `\\`)+`","description":"x","shellId":"painter","run_in_background":true}`)
	const all = "\x1b[?1049h\x1b]0;title\a\x1b]52;c;eA==\a\x1b[31mred\n"
	if got := output(t, dir, "logs", "-f", "painter"); got != all {
		t.Errorf("a program is told %q", got)
	}
	x := newTerminal(t)
	p := x.start(dir, "abide", "logs", "-f", "painter")
	must(t, p.Start())
	if code := x.awaitExit(p); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if got := x.all(); got != "\x1b[31mred\r\n\x1b[0m" {
		t.Errorf("the terminal is told %q", got)
	}
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	dir := t.TempDir()
	output(t, dir, "run", "Reply with exactly: X")
	for _, c := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		x := newTerminal(t)
		p := x.start(dir, "abide", "sessions", "list")
		p.Env = append(p.Env, c.env)
		must(t, p.Start())
		x.awaitExit(p)
		if shown := x.all(); strings.Contains(shown, "\x1b[") != c.want || !strings.Contains(shown, "MODIFIED") {
			t.Errorf("with %s: %q", c.env, shown)
		}
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	dir := t.TempDir()
	long := "Reply with exactly: " + strings.Repeat("a long text with 漢字 and more, ", 10)
	output(t, dir, "run", long)
	for name, c := range map[string]struct {
		size uint16
		env  string
		most int
	}{
		"window":       {60, "COLUMNS=", 60},
		"COLUMNS":      {200, "COLUMNS=50", 50},
		"not told":     {0, "COLUMNS=", 80},
		"not a number": {70, "COLUMNS=wide", 70},
	} {
		x := newTerminal(t)
		must(t, unix.IoctlSetWinsize(int(x.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: c.size}))
		p := x.start(dir, "abide", "sessions", "list")
		p.Env = append(p.Env, c.env, "NO_COLOR=1")
		must(t, p.Start())
		x.awaitExit(p)
		lines := strings.Split(strings.TrimSuffix(x.all(), "\r\n"), "\r\n")
		if len(lines) != 2 {
			t.Fatalf("%s: %q", name, lines)
		}
		wide := len([]rune(lines[1])) + strings.Count(lines[1], "漢") + strings.Count(lines[1], "字")
		if wide > c.most || wide < c.most-1 || !strings.HasSuffix(lines[1], "…") {
			t.Errorf("%s: the line has %d columns, want %d: %q", name, wide, c.most, lines[1])
		}
	}
	if _, line, _ := strings.Cut(output(t, dir, "sessions", "list"), "\n"); len([]rune(line)) <= 80 {
		t.Errorf("where there is no terminal the line is cut: %q", line)
	}
}

// TestAPersonCanRefuseToTrust: refusing is no mistake of the person, who sees the change and
// no error.
func TestAPersonCanRefuseToTrust(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "abide.toml"), []byte("[model]\nbase_url = \"http://x\"\n"), 0o600))
	p := x.start(dir, "abide", "trust")
	must(t, p.Start())
	shown := x.await(`trust this configuration\?`)
	if !strings.Contains(shown, "abide.toml:\r\n") || !strings.Contains(shown, `+base_url = "http://x"`) || strings.Contains(shown, "0000000") || strings.HasPrefix(shown, "\r\n") {
		t.Errorf("the terminal shows %q", shown)
	}
	x.typed("n\n")
	x.await(`abide\.toml is not trusted: you did not say yes`)
	if code := x.awaitExit(p); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// TestAPersonIsAskedBeforeSessionsAreDeleted: at a terminal nothing is deleted without a yes,
// from the keyboard or the command line.
func TestAPersonIsAskedBeforeSessionsAreDeleted(t *testing.T) {
	dir := t.TempDir()
	output(t, dir, "run", "--name", "first", "Reply with exactly: HI")
	output(t, dir, "run", "--name", "second", "Reply with exactly: HI")
	var list []struct{ SessionID string }
	must(t, json.Unmarshal([]byte(output(t, dir, "sessions", "list", "--json")), &list))
	second, first := list[0].SessionID, list[1].SessionID
	for _, c := range []struct {
		args  []string
		typed string
		want  string
		code  int
	}{
		{[]string{first}, "n\n", `nothing was deleted: you did not say yes`, 1},
		{[]string{first}, "\x04", `nothing was deleted`, 1},
		{[]string{first}, "y\n", `deleted session ` + first, 0},
		{[]string{"--yes", second}, "", `^deleted session ` + second, 0},
	} {
		x := newTerminal(t)
		p := x.start(dir, "abide", append([]string{"sessions", "delete"}, c.args...)...)
		must(t, p.Start())
		if c.typed != "" {
			if shown := x.await(`delete this session permanently\? \(y/n\)`); !strings.HasPrefix(shown, first+"  idle  first\r\n") {
				t.Errorf("the terminal shows %q", shown)
			}
			x.typed(c.typed)
		}
		x.await(c.want)
		if code := x.awaitExit(p); code != c.code {
			t.Errorf("%v after %q: exit code %d, want %d", c.args, c.typed, code, c.code)
		}
	}
}

// Whatever is not a yes to the question trusts nothing: a key that leaves, and what was
// typed before the file was shown. The file is shown also where the output is to be short.
func TestWhateverIsNoYesTrustsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		before, keys string
		args         []string
		says         string
		code         int
	}{
		"Ctrl-C":         {"", "\x03", nil, `interrupted; \S+abide\.toml is not trusted`, 130},
		"Ctrl-D":         {"", "\x04", nil, `is not trusted: you did not say yes`, 1},
		"an empty line":  {"", "\n", nil, `is not trusted: you did not say yes`, 1},
		"typed too soon": {"y\n", "\n", nil, `is not trusted: you did not say yes`, 1},
		"quiet":          {"", "n\n", []string{"-q"}, `is not trusted: you did not say yes`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, dir := newTerminal(t), t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "abide.toml"), []byte("[model]\nbase_url = \"http://x\"\n"), 0o600))
			x.typed(c.before)
			p := x.start(dir, "abide", append([]string{"trust"}, c.args...)...)
			p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must(t, p.Start())
			x.await(`\+base_url = "http://x".*trust this configuration\? \(y/n\)`)
			x.typed(c.keys)
			x.await(c.says)
			if code := x.awaitExit(p); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if got := output(t, dir, "trust", "--list"); got != "" {
				t.Errorf("it is trusted: %s", got)
			}
		})
	}
}

// Nobody is asked to trust a file of which a part is not shown.
func TestAFileThatCannotBeShownIsNotTrusted(t *testing.T) {
	x, dir := newTerminal(t), t.TempDir()
	long := strings.Repeat("#\n", 300_000) + "[model]\nbase_url = \"http://x\"\n" + strings.Repeat("#\n", 150_000)
	must(t, os.WriteFile(filepath.Join(dir, "abide.toml"), []byte(long), 0o600))
	p := x.start(dir, "abide", "trust")
	must(t, p.Start())
	x.await(`is not trusted: it is too long to be shown \(\d+ lines and \d+ bytes of the change are not shown\); read the file, and then say yes with: abide trust --yes`)
	if code := x.awaitExit(p); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if got := output(t, dir, "trust", "--list"); got != "" {
		t.Errorf("it is trusted: %s", got)
	}
	if got := output(t, dir, "trust", "-q", "--yes"); !strings.Contains(got, "is trusted") {
		t.Errorf("it is not trusted by who has read it: %s", got)
	}
}

func TestAYesTrusts(t *testing.T) {
	for _, content := range []string{"", "[model]\nbase_url = \"http://x\"\n"} {
		x, dir := newTerminal(t), t.TempDir()
		if content != "" {
			must(t, os.WriteFile(filepath.Join(dir, "abide.toml"), []byte(content), 0o600))
		}
		for range 2 { // the second time there is nothing to ask
			p := x.start(dir, "abide", "trust")
			must(t, p.Start())
			if got := x.await(`\(y/n\)|is trusted`); strings.Contains(got, "(y/n)") {
				x.typed("Yes\n")
				x.await(`is trusted`)
			}
			must(t, p.Wait())
		}
		if got := output(t, dir, "trust", "--list"); !strings.Contains(got, filepath.Base(dir)) {
			t.Errorf("it is not trusted: %q", got)
		}
	}
}
