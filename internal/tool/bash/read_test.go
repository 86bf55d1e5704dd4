package bash_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
)

func TestAReadThatIsMadeAgainShowsTheSame(t *testing.T) {
	notes := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		d := newCaller(t, s, notes)
		id := decode(t, d.mustCall("bash", `{"command":"x","mode":"async"}`)).TaskID
		s.started(0).print(process.Stdout, "one\n")
		first, second := d.call(`{"shellId":"`+id+`"}`), d.call(`{"shellId":"`+id+`"}`)
		if got := d.run("read_bash", first).Text; !strings.HasPrefix(got, "one\n<") {
			t.Errorf("first: %q", got)
		}
		s.started(0).print(process.Stdout, "two\n")
		if got := d.run("read_bash", second).Text; !strings.HasPrefix(got, "two\n<") {
			t.Errorf("second: %q", got)
		}
		d = d.restarted(s, notes)
		if got := d.run("read_bash", first).Text; !strings.HasPrefix(got, "one\ntwo\n<") {
			t.Errorf("first again: %q", got)
		}
		if got := d.run("read_bash", second).Text; !strings.HasPrefix(got, "two\n<") {
			t.Errorf("second again: %q", got)
		}
		if got := d.mustCall("read_bash", `{"shellId":%q}`, id); !strings.Contains(got, "no output since you last looked") {
			t.Errorf("third: %q", got)
		}
	})
}

// All calls together show the model the whole output, once and in order.
func TestNothingIsShownTwiceOrLeftOut(t *testing.T) {
	notes := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab\né漢😀")), 0, 40, -1).Draw(rt, "text"))
		pieces := rapid.SliceOfN(rapid.IntRange(0, 5), len(text), len(text)).Draw(rt, "pieces") // number of bytes to print before the next read
		wait := rapid.IntRange(1, 20).Draw(rt, "wait")
		runs++
		synctest.Test(t, func(t *testing.T) {
			s := newScripted()
			d := newCaller(t, s, filepath.Join(notes, fmt.Sprint(runs)))
			done := d.callInBackground("exec", fmt.Sprintf(`{"command":"x","timeout":%d,"shellId":"a"}`, wait))
			synctest.Wait()
			shown, rest, backgrounded := "", text, false
			for _, n := range pieces {
				n = min(n, len(rest))
				s.started(0).print(process.Stdout, string(rest[:n]))
				rest = rest[n:]
				if time.Sleep(time.Second); backgrounded {
					shown += decodeWaited(t, d.mustCall("wait", `{"shellIds":["a"],"until":"time","timeout":0.1}`)).Tasks[0].Output
					continue
				}
				select {
				case r := <-done:
					shown, backgrounded = decode(t, r.Text).Output, true
				default:
				}
			}
			if !backgrounded {
				shown = decode(t, (<-done).Text).Output
			}
			s.started(0).print(process.Stdout, string(rest))
			s.started(0).exit(0)
			shown += decodeWaited(t, d.mustCall("wait", `{"shellIds":["a"]}`)).Tasks[0].Output
			if shown != string(text) {
				t.Errorf("%q was printed, %q was shown", text, shown)
			}
		})
	})
}

func TestAReadWaitsForTheEndAndNoLonger(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x","mode":"async","shellId":"a"}`)
		begun := time.Now()
		if got := d.mustCall("read_bash", `{"shellId":"a","delay":5}`); time.Since(begun) != 5*time.Second ||
			got != "\n<command with shellId: a is still running after 5 seconds. The command is still running but hasn't produced output yet. Use read_bash to continue waiting, or stop_bash to stop it.>" {
			t.Errorf("after %v: %q", time.Since(begun), got)
		}
		s.started(0).print(process.Stdout, "out\n")
		if got := d.mustCall("read_bash", `{"shellId":"a"}`); got != "out\n<command with shellId: a is still running after 5 seconds. The command is still running. Use read_bash to continue waiting for output, or stop_bash to stop it.>" {
			t.Errorf("%q", got)
		}
		done := d.callInBackground("read_bash", `{"shellId":"a","delay":600}`)
		time.Sleep(time.Second)
		s.started(0).print(process.Stderr, "last\n")
		s.started(0).exit(4)
		if r := <-done; r.Text != "last\n<exited with exit code 4>" || len(bash.Results(r.Contents)) != 1 {
			t.Errorf("%+v", r)
		}
		if got := d.mustCall("read_bash", `{"shellId":"a"}`); got != "\n<exited with exit code 4>" {
			t.Errorf("read again: %q", got)
		}
	})
}

func TestOutputCanBeReadByOffset(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x","mode":"async","shellId":"a"}`)
		s.started(0).print(process.Stdout, strings.Repeat("0123456789\n", 10000))
		s.started(0).exit(0)
		if got := d.mustCall("read_bash", `{"shellId":"a","offset":11}`); !strings.HasPrefix(got, "0123456789\n0") || !strings.HasSuffix(got, "\n<bytes 11 to 32779 of 110000; use offset 32779 to go on>") {
			t.Errorf("%q … %q", got[:20], got[len(got)-80:])
		}
		if got := d.mustCall("read_bash", `{"shellId":"a","offset":109999}`); got != "\n\n<bytes 109999 to 110000 of 110000>" {
			t.Errorf("%q", got)
		}
		if got := d.mustFail("read_bash", `{"shellId":"a","offset":110001}`); !strings.Contains(got, "has 110000 bytes") {
			t.Errorf("%q", got)
		}
		if got := d.mustFail("read_bash", `{"shellId":"a","offset":-1}`); !strings.Contains(got, "greater than or equal to 0") {
			t.Errorf("%q", got)
		}
		if got := d.mustCall("read_bash", `{"shellId":"a"}`); !strings.Contains(got, "... [omitted 77232 bytes] ...") {
			t.Error("paging has marked the output as read")
		}
	})
}

// The first and the last 16 KiB are shown, and the bytes between them are counted
// exactly, whatever the size.
func TestOutputIsBoundedAndItsLastLineIsThere(t *testing.T) {
	const head, tail = process.MaxHeadBytes, process.MaxTailBytes
	for _, size := range []int{0, 1, head - 1, head, head + 1, head + tail - 1, head + tail, head + tail + 1, 3 * (head + tail), 5 << 20} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			const last = "\nthe last line: exit status 2\n"
			text := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
			if size > len(last) {
				text = text[:size-len(last)] + last
			}
			done := d.callInBackground("exec", `{"command":"x"}`)
			synctest.Wait()
			for rest := text; rest != ""; {
				n := min(len(rest), 4097)
				s.started(0).print(process.Stdout, rest[:n])
				rest = rest[n:]
			}
			s.started(0).exit(0)
			r := decode(t, (<-done).Text)
			if size <= head+tail {
				if r.Output != text || r.Truncated != nil {
					t.Errorf("%d bytes: %d are shown, %+v", size, len(r.Output), r.Truncated)
				}
				return
			}
			omitted := size - head - tail
			want := text[:head] + fmt.Sprintf("\n\n... [omitted %d bytes] ...\n\n", omitted) + text[size-tail:]
			if r.Output != want || r.Truncated == nil || r.Truncated.OmittedBytes != omitted || r.Truncated.OriginalBytes != size || r.Truncated.Strategy != "head_tail" {
				t.Errorf("%d bytes: %d are shown, %+v", size, len(r.Output), r.Truncated)
			}
			if !strings.HasSuffix(r.Output, last) || !strings.Contains(r.Message, "read_bash") {
				t.Errorf("%d bytes: the end is %q", size, r.Output[len(r.Output)-40:])
			}
		})
	}
}

func TestTheEndOfOneEndlessLineIsShown(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		done := d.callInBackground("exec", `{"command":"x"}`)
		synctest.Wait()
		s.started(0).print(process.Stdout, strings.Repeat("x", 10<<20)+"THE END")
		s.started(0).exit(0)
		r := decode(t, (<-done).Text)
		if !strings.HasSuffix(r.Output, "THE END") || len(r.Output) > 2*process.MaxLineLength+200 {
			t.Errorf("%d bytes, ending %q", len(r.Output), r.Output[max(0, len(r.Output)-60):])
		}
		if shown := strings.Count(r.Output, "x"); shown+r.Truncated.OmittedBytes != 10<<20 {
			t.Errorf("%d are shown and %d omitted", shown, r.Truncated.OmittedBytes)
		}
	})
}

func TestNoCutSplitsACharacter(t *testing.T) {
	for _, char := range []string{"é", "漢", "😀"} {
		for shift := range 5 {
			withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
				done := d.callInBackground("bash", `{"command":"x"}`)
				synctest.Wait()
				s.started(0).print(process.Stdout, strings.Repeat("x", shift)+strings.Repeat(char+"\x1b[0m\n", 20000)+"\xff\x00\xfe")
				s.started(0).exit(0)
				got := (<-done).Text
				if !utf8.ValidString(got) || strings.Contains(strings.TrimSuffix(got, "\uFFFD\uFFFD\uFFFD\n<exited with exit code 0>"), "\uFFFD") {
					t.Errorf("%s, shift %d: %q", char, shift, got[len(got)-60:])
				}
			})
		}
	}
}

func TestOutputThatWasNotKeptIsCounted(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		done := d.callInBackground("exec", `{"command":"x"}`)
		synctest.Wait()
		s.started(0).print(process.Stdout, strings.Repeat("a", 1000)+strings.Repeat("b", 8000)+strings.Repeat("c", 1000))
		s.started(0).drop(1000, 9000)
		s.started(0).exit(0)
		r := decode(t, (<-done).Text)
		if r.Truncated == nil || r.Truncated.OmittedBytes != 8000 || r.Truncated.OriginalBytes != 10000 || strings.Count(r.Output, "a") != 1000 || strings.Count(r.Output, "c") != 1000 {
			t.Errorf("%+v: %q", r.Truncated, r.Output)
		}
	})
}

func TestInputIsWrittenOnceAndTheAnswerShown(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"python","mode":"async","shellId":"py","stdin":true}`)
		a := s.started(0)
		a.print(process.Stdout, ">>> ")
		if got := d.mustCall("read_bash", `{"shellId":"py"}`); !strings.Contains(got, "It seems to wait for input (>>>)") {
			t.Errorf("%q", got)
		}
		call := d.call(`{"shellId":"py","input":"1+1{enter}"}`)
		done := make(chan tool.Result, 1)
		go func() { done <- d.run("write_bash", call) }()
		synctest.Wait()
		a.print(process.Stdout, "2\n")
		if r := <-done; !strings.HasPrefix(r.Text, "2\n<command with shellId: py is still running") {
			t.Errorf("%q", r.Text)
		}
		d.run("write_bash", call)
		d.mustCall("write_bash", `{"shellId":"py","eof":true,"delay":0}`)
		if string(a.stdin) != "1+1\n<eof>" {
			t.Errorf("it has read %q", a.stdin)
		}
		a.exit(0)
		if got := d.mustCall("write_bash", `{"shellId":"py","input":"x"}`); got != "\n<exited with exit code 0>" {
			t.Errorf("after its end: %q", got)
		}
		d.mustCall("bash", `{"command":"x &","shellId":"deaf"}`)
		if got := d.mustFail("write_bash", `{"shellId":"deaf","input":"x"}`); !strings.Contains(got, "stdin or tty") {
			t.Errorf("%q", got)
		}
		if got := d.mustFail("write_bash", `{"shellId":"py"}`); got != `Invalid input: "input": Required` {
			t.Errorf("%q", got)
		}
	})
}

func TestWhatWasShownInItsCallIsNotShownAgain(t *testing.T) {
	for _, args := range []string{`{"command":"x"}`, `{"command":"x","shellId":"a"}`} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			done := d.callInBackground("bash", args)
			synctest.Wait()
			s.started(0).print(process.Stdout, "shown\n")
			s.started(0).exit(0)
			<-done
			if got := d.mustCall("read_bash", `{"shellId":%q}`, s.started(0).info.ID); got != "\n<exited with exit code 0>" {
				t.Errorf("%s: %q", args, got)
			}
		})
	}
}

// TestInputGoesToTheCommandThatItWasAllowedFor: a person is shown which command gets an input.
// When the answer comes, that command may have ended and another one may have its name.
func TestInputGoesToTheCommandThatItWasAllowedFor(t *testing.T) {
	for name, allow := range map[string]func(*approval.Request, *tool.Call){
		"by a person": func(r *approval.Request, call *tool.Call) { call.Asked = r.Ask },
		"by a grant": func(r *approval.Request, call *tool.Call) {
			call.Decision = &event.Decision{By: event.ByGrant, Grants: r.SessionGrants()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
				allowed := func() tool.Call {
					t.Helper()
					call := d.call(`{"shellId":"x","input":"rm -rf /{enter}","delay":0}`)
					r, err := d.tools["write_bash"].Permission(t.Context(), call)
					if err != nil {
						t.Fatal(err)
					}
					allow(r, &call)
					return call
				}
				d.mustCall("bash", `{"command":"cat","mode":"async","shellId":"x","stdin":true}`)
				d.run("write_bash", allowed())
				if got := string(s.started(0).stdin); got != "rm -rf /\n" {
					t.Errorf("cat has read %q", got)
				}
				late := allowed()
				s.started(0).exit(0)
				d.mustCall("bash", `{"command":"bash","mode":"async","shellId":"x","stdin":true}`)
				if r := d.run("write_bash", late); !strings.Contains(r.Text, "exited with exit code 0") || len(s.started(1).stdin) > 0 {
					t.Errorf("%q, and bash has read %q", r.Text, s.started(1).stdin)
				}
			})
		})
	}
}

// Nor does it go to a command that did not exist when the person was asked.
func TestInputForNoCommandGoesToNone(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		call := d.call(`{"shellId":"x","input":"rm -rf /{enter}","delay":0}`)
		r, err := d.tools["write_bash"].Permission(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		call.Asked = r.Ask
		d.mustCall("bash", `{"command":"bash","mode":"async","shellId":"x","stdin":true}`)
		if r := d.run("write_bash", call); !r.Failed || len(s.started(0).stdin) > 0 {
			t.Errorf("%q, and bash has read %q", r.Text, s.started(0).stdin)
		}
	})
}
