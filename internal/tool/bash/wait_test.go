package bash_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool/bash"
)

func TestAWaitEndsWhenWhatItWaitsForHappens(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   string
		play   func(a, b *scriptedProcess)
		reason string
		after  time.Duration
	}{
		{"the end", `{"shellIds":["a"]}`, func(a, _ *scriptedProcess) { a.exit(0) }, "completed", 3 * time.Second},
		{"a failure", `{"task_id":"a"}`, func(a, _ *scriptedProcess) { a.exit(1) }, "failed", 3 * time.Second},
		{"any", `{"shellIds":["a","b"]}`, func(_, b *scriptedProcess) { b.exit(0) }, "completed", 3 * time.Second},
		{"any of all that run", `{}`, func(_, b *scriptedProcess) { b.exit(0) }, "completed", 3 * time.Second},
		{"all, and one is missing", `{"which":"all","timeout":60}`, func(_, b *scriptedProcess) { b.exit(0) }, "timeout", 60 * time.Second},
		{"all", `{"which":"all"}`, func(a, b *scriptedProcess) { a.exit(0); b.exit(0) }, "completed", 3 * time.Second},
		{"nothing happens", `{"shellIds":["a"]}`, func(_, _ *scriptedProcess) {}, "timeout", 120 * time.Second},
		{"a match", `{"shellIds":["a"],"until":"output","pattern":"listening on \\d+"}`, func(a, _ *scriptedProcess) {
			a.print(process.Stdout, "x\nlisten")
			synctest.Wait()
			a.print(process.Stderr, "ing on 80")
		}, "matched", 3 * time.Second},
		{"a match in colours", `{"shellIds":["a"],"until":"output","pattern":"^ready$"}`, func(a, _ *scriptedProcess) { a.print(process.Stdout, "x\n\x1b[32mready\x1b[0m\n") }, "matched", 3 * time.Second},
		{"no match", `{"shellIds":["a"],"until":"output","pattern":"ready","timeout":9}`, func(a, _ *scriptedProcess) { a.print(process.Stdout, "other") }, "timeout", 9 * time.Second},
		{"the end instead of a match", `{"shellIds":["a"],"until":"output","pattern":"ready"}`, func(a, _ *scriptedProcess) { a.exit(0) }, "completed", 3 * time.Second},
		{"quiet from the start", `{"shellIds":["a"],"until":"quiet","quiet":20}`, func(_, _ *scriptedProcess) {}, "quiet", 20 * time.Second},
		{"quiet after some output", `{"shellIds":["a"],"until":"quiet","quiet":5}`, func(a, _ *scriptedProcess) { a.print(process.Stdout, "x") }, "quiet", 8 * time.Second},
		{"the time", `{"until":"time","timeout":30}`, func(a, b *scriptedProcess) { a.exit(0); b.exit(0) }, "timeout", 30 * time.Second},
		{"too long a time", `{"until":"time","timeout":1e30}`, func(_, _ *scriptedProcess) {}, "timeout", time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
				d.mustCall("bash", `{"command":"x &","shellId":"a"}`)
				d.mustCall("bash", `{"command":"y &","shellId":"b"}`)
				begun := time.Now()
				done := d.callInBackground("wait", test.args)
				time.Sleep(3 * time.Second)
				test.play(s.started(0), s.started(1))
				w := decodeWaited(t, (<-done).Text)
				if took := time.Since(begun); w.Reason != test.reason || took < test.after || took > test.after+100*time.Millisecond {
					t.Errorf("%s after %v, want %s after %v", w.Reason, took, test.reason, test.after)
				}
			})
		})
	}
}

func TestAWaitShowsWhatIsNew(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x &","shellId":"a"}`)
		s.started(0).print(process.Stdout, "old\n")
		d.mustCall("read_bash", `{"shellId":"a"}`)
		s.started(0).print(process.Stdout, "new\n")
		s.started(0).exit(0)
		r := d.run("wait", d.call(`{"shellIds":["a"]}`))
		w := decodeWaited(t, r.Text)
		if len(w.Tasks) != 1 || w.Tasks[0].Output != "new\n" || w.Tasks[0].Offset != 8 || *w.Tasks[0].ExitCode != 0 || w.Tasks[0].Stdout != "" {
			t.Errorf("%+v", w)
		}
		if list := bash.Results(r.Contents); len(list) != 1 || !list[0].Ended() {
			t.Errorf("%s", r.Contents)
		}
		if w := decodeWaited(t, d.mustCall("wait", `{}`)); w.Reason != "nothing_runs" || len(w.Tasks) != 0 {
			t.Errorf("%+v", w)
		}
		if w := decodeWaited(t, d.mustCall("wait", `{"shellIds":["a"]}`)); w.Reason != "completed" || w.Tasks[0].Output != "" {
			t.Errorf("finished long ago: %+v", w)
		}
	})
}

func TestAWaitThatIsMadeAgainDoesNotBeginAnew(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x &","shellId":"a"}`)
		call := d.call(`{"shellIds":["a"],"timeout":60}`)
		call.Begun = time.Now()
		time.Sleep(50 * time.Second) // the daemon was down
		begun := time.Now()
		if w := decodeWaited(t, d.run("wait", call).Text); w.Reason != "timeout" || time.Since(begun) != 10*time.Second || w.Waited != 60000 {
			t.Errorf("%+v after %v", w, time.Since(begun))
		}
	})
}

func TestAQuestionEndsAWaitAndIsForgottenWhenTheCommandGoesOn(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x &","shellId":"a","stdin":true}`)
		a := s.started(0)
		a.print(process.Stdout, "checking <html>")
		done := d.callInBackground("wait", `{"shellIds":["a"],"timeout":600}`)
		time.Sleep(30 * time.Second)
		select {
		case r := <-done:
			t.Fatalf("ordinary output is a question: %s", r.Text)
		default:
		}
		asked := time.Now()
		a.print(process.Stdout, "\nPassword: ")
		w := decodeWaited(t, (<-done).Text)
		if w.Reason != "needs_input" || w.Tasks[0].NeedsInput != "Password:" || time.Since(asked) > 3*time.Second {
			t.Errorf("after %v: %+v", time.Since(asked), w)
		}
		text, at, err := bash.WaitPrompt(context.Background(), s, a.info)
		if text != "Password:" || at != a.info.Output.Bytes || err != nil {
			t.Errorf("%q at %d, %v", text, at, err)
		}
		a.print(process.Stdout, "\nworking\n")
		done = d.callInBackground("wait", `{"shellIds":["a"],"timeout":600}`)
		time.Sleep(60 * time.Second)
		a.exit(0)
		if w := decodeWaited(t, (<-done).Text); w.Reason != "completed" || w.Tasks[0].NeedsInput != "" {
			t.Errorf("%+v", w)
		}
		if _, _, err := bash.WaitPrompt(context.Background(), s, a.info); !errors.Is(err, process.ErrEnded) {
			t.Errorf("after its end: %v", err)
		}
	})
}

// A command may begin to read its terminal long after its last output, whatever that
// output was.
func TestACommandThatReadsItsTerminalAsksWhateverItPrinted(t *testing.T) {
	for printed, want := range map[string]string{
		"":                  "It waits for input and does not say what for.",
		"done\n":            "done",
		"one\ntwo> ":        "two>",
		"a\x1b[1m# \x1b[0m": "a#",
	} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			d.mustCall("bash", `{"command":"x &","shellId":"a","tty":true}`)
			a := s.started(0)
			a.print(process.Stdout, printed)
			done := d.callInBackground("wait", `{"shellIds":["a"],"timeout":600}`)
			time.Sleep(60 * time.Second)
			select {
			case r := <-done:
				t.Fatalf("%q is a question although nobody reads: %s", printed, r.Text)
			default:
			}
			asked := time.Now()
			a.read(true)
			w := decodeWaited(t, (<-done).Text)
			if w.Reason != "needs_input" || w.Tasks[0].NeedsInput != want || time.Since(asked) > 10*time.Second {
				t.Errorf("%q, after %v: %+v", printed, time.Since(asked), w)
			}
			if r := d.mustCall("read_bash", `{"shellId":"a","delay":1}`); !strings.Contains(r, want) { // all output was shown before
				t.Errorf("%q: read_bash says %q", printed, r)
			}
			a.read(false)
			a.print(process.Stdout, "working> ")
			if w := decodeWaited(t, d.mustCall("wait", `{"shellIds":["a"],"timeout":60}`)); w.Reason != "timeout" || w.Tasks[0].NeedsInput != "" {
				t.Errorf("%q: when it went on: %+v", printed, w)
			}
		})
	}
}

func TestACommandWithoutInputAsksNoQuestion(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x &","shellId":"a"}`)
		s.started(0).print(process.Stdout, "Password: ")
		if w := decodeWaited(t, d.mustCall("wait", `{"shellIds":["a"],"timeout":60}`)); w.Reason != "timeout" || w.Tasks[0].NeedsInput != "" {
			t.Errorf("%+v", w)
		}
	})
}

func TestAWaitForAPort(t *testing.T) {
	d := newCaller(t, newScripted(), t.TempDir())
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if w := decodeWaited(t, d.mustCall("wait", `{"until":"port","port":%d}`, port)); w.Reason != "port_open" {
		t.Errorf("%+v", w)
	}
	l.Close()
	if w := decodeWaited(t, d.mustCall("wait", `{"until":"port","port":%d,"timeout":0.05}`, port)); w.Reason != "timeout" {
		t.Errorf("%+v", w)
	}
}

// A sealed session sees nothing of the ports of this machine.
func TestAWaitForAPortIsRefusedWhereCommandsHaveANetworkOfTheirOwn(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := newCaller(t, newScripted(), t.TempDir())
	call := d.call(fmt.Sprintf(`{"until":"port","port":%d}`, l.Addr().(*net.TCPAddr).Port))
	call.Sealed = true
	if r := d.run("wait", call); !r.Failed || !strings.Contains(r.Text, "a network of their own") {
		t.Errorf("%+v", r)
	}
}

func TestAWaitThatMakesNoSenseIsRefused(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, _ *scriptedProcesses) {
		for args, want := range map[string]string{
			`{"until":"never"}`:                `"until": Invalid enum value`,
			`{"until":"output"}`:               `"pattern": Expected a regular expression`,
			`{"until":"output","pattern":"("}`: `"pattern": Expected a regular expression`,
			`{"until":"port"}`:                 `"port": Expected a number from 1 to 65535`,
			`{"until":"port","port":70000}`:    `"port": Expected a number from 1 to 65535`,
			`{"timeout":-1}`:                   `"timeout": Number must be greater than 0`,
			`{"timeout":0}`:                    `"timeout": Number must be greater than 0`,
			`{"until":"quiet","quiet":-1}`:     `"quiet": Number must be greater than 0`,
			`{"shellIds":[7]}`:                 `"shellIds": Expected string or array of strings`,
		} {
			if got := d.mustFail("wait", args); !strings.HasPrefix(got, "Invalid input: "+want) {
				t.Errorf("%s: %q", args, got)
			}
		}
	})
}

func TestACancelledWaitLeavesEverythingAsItIs(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"x &","shellId":"a","stdin":true}`)
		s.started(0).print(process.Stdout, "unread\n")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		call := d.call(`{"until":"output","pattern":"never"}`)
		go func() {
			_, err := d.tools["wait"].Run(ctx, call)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if got := d.mustCall("read_bash", `{"shellId":"a"}`); !strings.HasPrefix(got, "unread\n") {
			t.Errorf("%q", got)
		}
	})
}
