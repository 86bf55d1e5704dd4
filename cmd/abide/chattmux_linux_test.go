package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A tmuxTerminal is a terminal that wraps lines again when its width changes.
type tmuxTerminal struct {
	t      *testing.T
	socket string
}

// startTmux starts a shell in a terminal of tmux.
func startTmux(t *testing.T, dir string, columns, rows int) *tmuxTerminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here")
	}
	short, err := os.MkdirTemp("", "tmux") // the name of a socket is short
	must(t, err)
	x := &tmuxTerminal{t, filepath.Join(short, "s")}
	t.Cleanup(func() { x.run("kill-server"); os.RemoveAll(short) })
	p := command(t, dir)
	var env []string
	for _, v := range append(p.Env, "NO_COLOR=") {
		env = append(env, "-e", v)
	}
	x.run(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "-c", dir}, append(env, "exec env 'PS1=ready> ' bash --norc -i")...)...)
	x.run("set-option", "-g", "history-limit", "50000")
	x.sees(`ready>`)
	return x
}

func (x *tmuxTerminal) run(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil && args[0] != "kill-server" {
		x.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// keys types keys by their names.
func (x *tmuxTerminal) keys(names ...string) { x.run(append([]string{"send-keys"}, names...)...) }

// sees waits until the scrollback and the screen match a pattern, and returns them, with
// the lines that the terminal has wrapped joined again.
func (x *tmuxTerminal) sees(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile("(?s)" + pattern)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.After(patience)
	for {
		all := x.run("capture-pane", "-p", "-J", "-S", "-")
		if re.MatchString(all) {
			return all
		}
		select {
		case <-look.C:
		case <-late:
			x.t.Fatalf("tmux does not show %s, but:\n%s", pattern, all)
		}
	}
}

// TestTheScrollbackSurvivesResizesAndOverlays: when the terminal gets larger or smaller, also
// below an overlay, every line is in the scrollback once, in order, and nothing of the live
// region is.
func TestTheScrollbackSurvivesResizesAndOverlays(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startTmux(t, dir, 80, 24)
	x.keys("cd work 2>/dev/null || mkdir work && cd work; abide --yolo --scenario "+scenario, "Enter")
	x.sees(`› ask`)
	sizes := [][2]int{{90, 24}, {60, 20}, {120, 40}, {50, 30}, {45, 12}, {100, 20}, {70, 16}}
	resize := func(columns, rows int) {
		x.run("resize-window", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows))
	}
	for i, size := range sizes {
		word := fmt.Sprintf("word%d", i)
		x.keys(word, "Enter")
		x.sees(`you said: ` + word + ` *\n+› `)
		if i%2 == 0 {
			resize(size[0], size[1])
		}
		x.keys("C-o")
		x.sees(`conversation ·`)
		resize(size[0], size[1])
		x.keys("q")
		x.sees(`you said: ` + word + ` *\n+› `)
	}
	x.keys("many", "Enter")
	x.sees(`200\. item *\n+› `)
	x.keys("C-d")
	all := x.sees(`to come back: abide.*ready>\s*$`)
	all = strings.SplitN(all, "stops nothing", 2)[1]
	var shown, want []string
	for _, m := range regexp.MustCompile(`(?m)^(› \S+|you said: \S+|\d+\. item) *$`).FindAllString(all, -1) {
		shown = append(shown, strings.TrimSpace(m))
	}
	for i := range sizes {
		want = append(want, fmt.Sprintf("› word%d", i), fmt.Sprintf("you said: word%d", i))
	}
	want = append(append(want, "› many"), strings.Split(strings.TrimSpace(numbered(200)), "\n")...)
	if a, b := strings.Join(shown, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("shown:\n%s\nwant:\n%s\nall:\n%s", a, b, all)
	}
	if strings.Contains(all, "› ask") || strings.Contains(all, "Esc stops") {
		t.Errorf("the live region is in the scrollback:\n%s", all)
	}
}

// TestTextWithoutBlanksSurvivesResizes: a paragraph of Chinese or Japanese is as wide as the
// terminal, and tmux loses its place where such a line was wrapped by it.
func TestTextWithoutBlanksSurvivesResizes(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startTmux(t, dir, 45, 15)
	x.keys("abide --scenario "+scenario, "Enter")
	x.sees(`› ask`)
	said := "wide " + strings.Repeat("日本語", 15)
	for i := range 2 {
		x.keys("-l", fmt.Sprint(said, i))
		x.keys("Enter")
		x.sees(fmt.Sprintf(`you said: wide [^›]*%d *\n+› `, i))
	}
	for _, size := range [][2]int{{90, 25}, {50, 20}, {101, 15}} {
		x.run("resize-window", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]))
		x.keys("x")
		x.sees(`› x `)
		x.keys("BSpace")
		x.sees(`› ask`)
	}
	x.keys("C-d")
	all := x.sees(`to come back: abide.*ready>\s*$`)
	joined := strings.NewReplacer("\n  ", "", "\n", "").Replace(all)
	for i := range 2 {
		for _, line := range []string{"› " + said + fmt.Sprint(i), "you said: " + said + fmt.Sprint(i)} {
			if n := strings.Count(strings.ReplaceAll(joined, " ", ""), strings.ReplaceAll(line, " ", "")); n != 1 {
				t.Errorf("%q is there %d times:\n%s", line, n, all)
			}
		}
	}
}

// TestSuspendAndResume: Ctrl-Z gives the terminal to the shell, and fg brings the chat back.
func TestSuspendAndResume(t *testing.T) {
	dir, scenario := chatFolder(t)
	x := startTmux(t, dir, 80, 24)
	x.keys("abide --scenario "+scenario, "Enter")
	x.sees(`› ask`)
	x.keys("first", "Enter")
	x.sees(`you said: first *\n+› `)
	x.keys("draft", "C-z")
	x.sees(`Stopped.*ready>\s*$`)
	x.keys("echo in the shell", "Enter")
	x.sees(`\nin the shell`)
	x.keys("fg", "Enter")
	x.sees(`in the shell.*› draft`)
	x.keys(" sent", "Enter")
	all := x.sees(`you said: draft sent *\n+› `)
	if n := strings.Count(all, "you said: first"); n != 1 {
		t.Errorf("a line is there %d times:\n%s", n, all)
	}
	x.keys("C-d")
	x.sees(`to come back: abide.*ready>\s*$`)
}
