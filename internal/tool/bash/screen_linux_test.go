package bash_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process"
)

// onATerminal runs a story with a program, if the program is there.
func onATerminal(t *testing.T, program string, story func(t *testing.T, m *testHost)) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("skipped: %s is not installed", program)
	}
	onEachWorkspace(t, process.Options{Quiet: 50 * time.Millisecond}, story)
}

// until looks at a task until its text meets a condition.
func (m *testHost) until(task string, so func(text string) bool) string {
	m.t.Helper()
	for {
		text := m.mustCall("read_bash", `{"shellId":"%s"}`, task)
		if so(text) {
			return text
		}
		if strings.Contains(text, "<exited with") || m.t.Context().Err() != nil {
			m.t.Fatalf("it shows %q", text)
		}
		m.mustCall("wait", `{"shellIds":["%s"],"until":"output","pattern":".","timeout":1}`, task)
	}
}

func shows(parts ...string) func(string) bool {
	return func(text string) bool {
		for _, p := range parts {
			if !strings.Contains(text, p) {
				return false
			}
		}
		return true
	}
}

func TestAnEditorIsShownAsItsScreen(t *testing.T) {
	onATerminal(t, "vim", func(t *testing.T, m *testHost) {
		file := filepath.Join(m.dir, "letter.txt")
		if err := os.WriteFile(file, []byte("first\nsecond\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m.mustCall("bash", `{"command":"exec vim -u NONE -N letter.txt","mode":"async","tty":true,"shellId":"ed"}`)
		text := m.until("ed", shows("first\nsecond\n~\n", "<screen of 24 rows and 80 columns; the cursor is in row 1, column 1"))
		if strings.ContainsAny(text, "\x1b\x00") || strings.Count(text, "\n~\n")+strings.Count(text, "\n~") < 20 {
			t.Errorf("%q", text)
		}
		m.mustCall("write_bash", `{"shellId":"ed","input":"{down}othird {left} {esc}"}`)
		m.until("ed", shows("first\nsecond\nthird"))
		m.restart() // the screen is made from what is stored
		m.until("ed", shows("first\nsecond\nthird"))

		m.mustCall("read_bash", `{"shellId":"ed","rows":10,"cols":40}`)
		text = m.until("ed", shows("<screen of 10 rows and 40 columns"))
		if strings.Count(text, "~\n") > 7 || !strings.Contains(text, "third") {
			t.Errorf("after a resize: %q", text)
		}
		m.mustCall("write_bash", `{"shellId":"ed","input":":wq{enter}","delay":60}`)
		end := m.mustCall("read_bash", `{"shellId":"ed","delay":60}`)
		if !strings.Contains(end, "<exited with exit code 0>") || strings.Contains(end, "~") {
			t.Errorf("%q", end)
		}
		if got, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(got), "first\nsecond\nthird") {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestAPagerIsShownAsItsScreen(t *testing.T) {
	onATerminal(t, "less", func(t *testing.T, m *testHost) {
		m.mustCall("bash", `{"command":"seq 1 1000 > n; exec less n","mode":"async","tty":true,"rows":10,"cols":30,"shellId":"less"}`)
		m.until("less", shows("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "<screen of 10 rows and 30 columns"))
		m.mustCall("write_bash", `{"shellId":"less","input":"{page-down}"}`)
		m.until("less", shows("10\n11\n12\n13\n14\n15\n16\n17\n18\n"))
		m.mustCall("write_bash", `{"shellId":"less","input":"{up}"}`) // it wants the key of the application mode
		m.until("less", shows("9\n10\n11\n12\n13\n14\n15\n16\n17\n:"))
		m.mustCall("write_bash", `{"shellId":"less","input":"q","delay":0}`)
		if end := m.mustCall("read_bash", `{"shellId":"less","delay":60}`); strings.TrimSpace(end) != "<exited with exit code 0>" {
			t.Errorf("%q", end)
		}
	})
}

func TestAMonitorIsShownAsItsScreen(t *testing.T) {
	onATerminal(t, "top", func(t *testing.T, m *testHost) {
		m.mustCall("bash", `{"command":"exec top -d 0.2","mode":"async","tty":true,"shellId":"top"}`)
		text := m.until("top", shows("load average", "PID", "<screen of 24 rows and 80 columns"))
		if n := strings.Count(text, "load average"); n != 1 {
			t.Errorf("%d times: %s", n, text)
		}
		m.mustCall("write_bash", `{"shellId":"top","input":"q","delay":0}`)
		if end := m.mustCall("read_bash", `{"shellId":"top","delay":60}`); !strings.Contains(end, "<exited with exit code 0>") {
			t.Errorf("%q", end)
		}
	})
}

func TestASlowAnswerIsShownWhole(t *testing.T) {
	onATerminal(t, "python3", func(t *testing.T, m *testHost) {
		m.mustCall("bash", `{"command":"exec python3 -q","mode":"async","tty":true,"shellId":"py"}`)
		m.until("py", shows(">>>"))
		m.mustCall("write_bash", `{"shellId":"py","input":"import time; left = 'it'\n"}`)
		m.mustCall("write_bash", `{"shellId":"py","input":"def slow():\n  for i in range(8): print('line', i); time.sleep(0.1 + i %% 2 * 0.4)\n\n"}`)
		got := m.mustCall("write_bash", `{"shellId":"py","input":"slow()\n","delay":60}`)
		if !shows("line 0", "line 7", ">>>")(got) || strings.Contains(got, "<screen") {
			t.Errorf("%q", got)
		}
		// A name in braces is a key, unless the call says otherwise.
		got = m.mustCall("write_bash", `{"shellId":"py","input":"print(f\"<{left}>\")\n","literal":true}`)
		if !strings.Contains(got, "<it>") {
			t.Errorf("%q", got)
		}
		m.mustCall("write_bash", `{"shellId":"py","eof":true,"delay":0}`)
		if end := m.mustCall("read_bash", `{"shellId":"py","delay":60}`); !strings.Contains(end, "<exited with exit code 0>") {
			t.Errorf("%q", end)
		}
	})
}

func TestAPasswordIsAskedForOnTheTerminal(t *testing.T) {
	onATerminal(t, "stty", func(t *testing.T, m *testHost) {
		m.mustCall("bash", `{"command":"(stty -echo; printf 'Password: '; read x; stty echo; echo; echo \"<$x>\") </dev/tty >/dev/tty 2>/dev/null | cat","mode":"async","tty":true,"shellId":"pw"}`)
		m.until("pw", shows("Password:", "It seems to wait for input"))
		got := m.mustCall("write_bash", `{"shellId":"pw","input":"secret\n","delay":0}`)
		if got += m.mustCall("read_bash", `{"shellId":"pw","delay":60}`); !shows("<secret>", "<exited with exit code 0>")(got) {
			t.Errorf("%q", got)
		}
	})
}
