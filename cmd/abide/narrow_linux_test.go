package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInANarrowTerminalNothingIsTooWideAndTheWayOutIsReadable(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		says string // without the blanks
	}{
		{[]string{"doctor"}, "setOPENAI_API_KEY,ANTHROPIC_API_KEYorOPENAI_BASE_URL"},
		{[]string{"config", "keys", "--long"}, "acknowledgeddatasurvivesapowerfailure"},
		{[]string{"models"}, "offline"},
	} {
		x := newTerminal(t)
		must(t, unix.IoctlSetWinsize(int(x.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}))
		p := x.start(dir, "abide", append(test.args, "--quiet")...)
		p.Env = append(p.Env, "NO_COLOR=1", "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=", "ANTHROPIC_AUTH_TOKEN=", "ANTHROPIC_BASE_URL=")
		must(t, p.Start())
		if code := x.awaitExit(p); code != 0 {
			t.Errorf("%v: exit code %d", test.args, code)
		}
		shown := x.all()
		for line := range strings.SplitSeq(shown, "\r\n") {
			if len([]rune(line)) > 40 {
				t.Errorf("%v: the line %q is wider than the terminal", test.args, line)
			}
		}
		if strings.Contains(shown, "\x1b") || !strings.Contains(strings.Join(strings.Fields(shown), ""), test.says) {
			t.Errorf("%v shows %q", test.args, shown)
		}
	}
}
