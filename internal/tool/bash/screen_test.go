package bash_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/process"
)

func TestTheScreenIsShownWhileAProgramDrawsOnIt(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x","mode":"async","shellId":"a","tty":true,"rows":5,"cols":20}`)
		a := s.started(0)
		if *a.spec.TTY != (process.Size{Rows: 5, Cols: 20}) {
			t.Errorf("the terminal has %v", *a.spec.TTY)
		}
		a.print(process.Stdout, "$ \x1b[1mpi\x1b[m\r\n")
		if got := d.mustCall("read_bash", `{"shellId":"a"}`); !strings.HasPrefix(got, "$ pi\n<command with") {
			t.Errorf("lines: %q", got)
		}
		a.print(process.Stdout, "\x1b]2;a title\x07\x1b[?1049h\x1b[2J\x1b[2;3Hhere\x1b[5;1Hlast\x1b[2;3H")
		want := "\n  here\n\n\nlast\n<screen of 5 rows and 20 columns; the cursor is in row 2, column 3; its title is \"a title\">\n"
		for range 2 { // the second look finds nothing new, and the same screen
			if got := d.mustCall("read_bash", `{"shellId":"a"}`); !strings.HasPrefix("\n"+got, want) {
				t.Errorf("%q", got)
			}
		}
		if got := d.mustCall("read_bash", `{"shellId":"a","rows":3,"cols":30}`); !strings.Contains(got, "<screen of 3 rows and 30 columns") || len(a.sizes) != 1 {
			t.Errorf("%q, %v", got, a.sizes)
		}
		a.print(process.Stdout, "\x1b[?1049lback\r\n")
		if got := d.mustCall("read_bash", `{"shellId":"a"}`); !strings.HasPrefix(got, "back\n<command with") {
			t.Errorf("lines again: %q", got)
		}
		a.exit(0)
	})
}

func TestWhatWasDrawnAndRemovedIsNotShown(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		done := d.callInBackground("bash", `{"command":"x","tty":true}`)
		synctest.Wait()
		s.started(0).print(process.Stdout, "before\r\n\x1b[?1049h\x1b[H~\r\n~\r\n\x1b[?1049lafter\r\n")
		s.started(0).exit(0)
		if got := (<-done).Text; got != "before\nafter\n<exited with exit code 0>" {
			t.Errorf("%q", got)
		}
	})
}

func TestKeysAreSentAsTheTerminalWantsThem(t *testing.T) {
	for name, tt := range map[string]struct{ mode, arguments, want string }{
		"enter":                     {"", `"input":"a{enter}b\nc\r\n"`, "a\rb\rc\r"},
		"literally":                 {"", `"input":"print(f\"{left}\")\n","literal":true`, "print(f\"{left}\")\r"},
		"control":                   {"", `"input":"{ctrl-c}{ctrl-x}{ctrl-j}"`, "\x03\x18\n"},
		"arrows":                    {"", `"input":"{up}{left}"`, "\x1b[A\x1b[D"},
		"arrows of the application": {"\x1b[?1h", `"input":"{up}{left}"`, "\x1bOA\x1bOD"},
		"arrows afterwards":         {"\x1b[?1h\x1b[?1l", `"input":"{up}"`, "\x1b[A"},
	} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			d.mustCall("bash", `{"command":"x","mode":"async","shellId":"a","tty":true}`)
			a := s.started(0)
			a.print(process.Stdout, tt.mode+"> ")
			d.mustCall("write_bash", `{"shellId":"a","delay":0,%s}`, tt.arguments)
			if got := string(a.stdin); got != tt.want {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
			a.exit(0)
		})
	}
}

func TestASizeThatNoTerminalHasIsRefused(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		for _, size := range []string{`"rows":0`, `"rows":201`, `"cols":401`, `"rows":-1`, `"cols":"wide"`} {
			if got := d.mustFail("bash", `{"command":"x","tty":true,`+size+`}`); !strings.HasPrefix(got, "Invalid input: ") {
				t.Errorf("%s: %q", size, got)
			}
		}
		d.mustCall("bash", `{"command":"x","mode":"async","shellId":"a"}`)
		if got := d.mustFail("read_bash", `{"shellId":"a","rows":10}`); !strings.Contains(got, "has no terminal") {
			t.Errorf("%q", got)
		}
		s.started(0).exit(0)
	})
}

// Output that nobody could draw is shown as text, as it was.
func TestOutputThatIsNoScreenIsShownAsText(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x","mode":"async","shellId":"a","tty":true}`)
		s.started(0).print(process.Stdout, "\x1b[?1049h"+strings.Repeat("\x1b[2J", 1<<18)+"end")
		if got := d.mustCall("read_bash", `{"shellId":"a"}`); strings.Contains(got, "<screen") || !strings.Contains(got, "end\n") {
			t.Errorf("%.200q", got)
		}
		s.started(0).exit(0)
	})
}

// The last byte may have come long after the first one of its run.
func TestAnAnswerInTheMiddleOfARunIsNotOver(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x","mode":"async","shellId":"a","stdin":true}`)
		a := s.started(0)
		done := d.callInBackground("write_bash", `{"shellId":"a","input":"go\n","delay":10}`)
		synctest.Wait()
		a.printSlowly(15, "line\n")
		if got := strings.Count((<-done).Text, "line\n"); got != 15 {
			t.Errorf("%d lines", got)
		}
		a.exit(0)
	})
}
