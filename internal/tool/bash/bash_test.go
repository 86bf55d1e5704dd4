package bash_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
)

func TestAQuickCommandReturnsItsOutputAndExitCode(t *testing.T) {
	for _, test := range []struct {
		output string
		code   int
		want   string
	}{
		{"test\n", 0, "test\n<exited with exit code 0>"},
		{"hello\nworld\n", 0, "hello\nworld\n<exited with exit code 0>"},
		{"no newline", 1, "no newline\n<exited with exit code 1>"},
		{"", 3, "\n<exited with exit code 3>"},
		{"\n\n  indented\n\n", 0, "  indented\n<exited with exit code 0>"},
	} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			done := d.callInBackground("bash", `{"command":"x","description":"d"}`)
			synctest.Wait()
			s.started(0).print(process.Stdout, test.output)
			s.started(0).exit(test.code)
			r := <-done
			if r.Text != test.want || r.Failed {
				t.Errorf("result is %q, want %q", r.Text, test.want)
			}
			if list := bash.Results(r.Contents); r.Task || len(list) != 1 || !list[0].Ended() || *list[0].ExitCode != test.code || !s.started(0).info.Seen {
				t.Errorf("contents are %s", r.Contents)
			}
		})
	}
}

func TestDeathBySignalIsToldFromAnExitCode(t *testing.T) {
	for _, test := range []struct {
		state process.State
		exit  *process.Exit
		why   string
		want  string
	}{
		{process.Exited, &process.Exit{Code: 137}, "", "<exited with exit code 137>"},
		{process.Exited, &process.Exit{Code: 137, Signal: "SIGKILL"}, "", "<exited with exit code 137: killed by SIGKILL>"},
		{process.Killed, &process.Exit{Code: 143, Signal: "SIGTERM"}, "its time limit", "<exited with exit code 143: killed by SIGTERM; its time limit>"},
		{process.Lost, nil, "the keeper was killed", "<lost: nobody knows how the command ended; the keeper was killed>"},
		{process.Killed, nil, "", "<ended without an exit code>"},
	} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			done := d.callInBackground("bash", `{"command":"x","description":"d"}`)
			synctest.Wait()
			a := s.started(0)
			s.mu.Lock()
			a.info.Reason = test.why
			a.exitLocked(test.state, test.exit)
			s.mu.Unlock()
			if r := <-done; r.Text != "\n"+test.want {
				t.Errorf("result is %q, want %q", r.Text, test.want)
			}
		})
	}
}

func TestABackgroundCommandIsStartedAndNotWaitedFor(t *testing.T) {
	for _, args := range []string{
		`{"command":"npm install","description":"Install dependencies","mode":"async"}`,
		`{"command":"npm install","description":"Install dependencies","run_in_background":true}`,
		`{"command":"npm install &","description":"Install dependencies"}`,
		`{"command":"npm install &","description":"Install dependencies","mode":"async","timeout":5}`,
	} {
		for _, name := range []string{"bash", "exec"} {
			withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
				r := d.run(name, d.call(args))
				got := decode(t, r.Text)
				if got.Status != bash.StatusStarted || got.TaskID == "" || !got.Success || got.ExitCode != nil || !strings.Contains(got.Message, got.TaskID) || !strings.Contains(got.Message, "read_bash") {
					t.Errorf("%s %s: %+v", name, args, got)
				}
				a := s.started(0)
				if a.spec.Command != "npm install" || a.spec.Class != process.Service || a.spec.Title != "Install dependencies" || a.spec.Stdin {
					t.Errorf("%s: started %+v", args, a.spec)
				}
				if list := bash.Results(r.Contents); !r.Task || len(list) != 1 || list[0].Ended() || list[0].TaskID != got.TaskID {
					t.Errorf("contents are %s", r.Contents)
				}
			})
		}
	}
}

func TestACommandThatEndsAtOnceInTheBackgroundIsStillOnlyStarted(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		call := d.call(`{"command":"true","mode":"async"}`)
		first := decode(t, d.run("bash", call).Text)
		s.started(0).exit(0)
		if again := decode(t, d.run("bash", call).Text); again.Status != first.Status || again.TaskID != first.TaskID || s.count() != 1 || s.started(0).info.Seen {
			t.Errorf("made again: %+v", again)
		}
	})
}

func TestASlowCommandGoesOnInTheBackground(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		begun := time.Now()
		done := d.callInBackground("exec", `{"command":"slow-build","timeout":1,"description":"Run slow build"}`)
		synctest.Wait()
		a := s.started(0)
		a.print(process.Stdout, "compiling\n")
		r := decode(t, (<-done).Text)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it was waited for %v", took)
		}
		if r.Status != bash.StatusAutoBackgrounded || r.TaskID == "" || r.Output != "compiling\n" || r.ExitCode != nil {
			t.Errorf("result is %+v", r)
		}
		for _, part := range []string{"no work was lost", "1 seconds", r.TaskID, "read_bash"} {
			if !strings.Contains(r.Message, part) {
				t.Errorf("%q is not in %q", part, r.Message)
			}
		}
		a.print(process.Stdout, "build completed successfully\n")
		a.exit(0)
		if got := d.mustCall("read_bash", `{"shellId":%q,"delay":0}`, r.TaskID); got != "build completed successfully\n<exited with exit code 0>" {
			t.Errorf("the rest is %q", got)
		}
		if s.count() != 1 {
			t.Errorf("%d processes were started", s.count())
		}
		n, err := d.c.Notice(context.Background(), d.session, r.TaskID, "")
		if err != nil || n.Status() != "completed" || !strings.Contains(n.Tail, "build completed") {
			t.Errorf("notice is %+v, %v", n, err)
		}
	})
}

func TestACommandThatEndsAtTheTimeoutIsReportedAsEnded(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		s.onGet = func(a *scriptedProcess) { // the command ends after the timeout, before its state is read
			if a.info.State == process.Running {
				a.printLocked(process.Stdout, "just in time\n")
				a.exitLocked(process.Exited, &process.Exit{})
			}
		}
		if got := d.mustCall("bash", `{"command":"x","initial_wait":1}`); got != "just in time\n<exited with exit code 0>" {
			t.Errorf("result is %q", got)
		}
		if !s.started(0).info.Seen || s.count() != 1 {
			t.Error("the end was not told, or there are two")
		}
	})
}

func TestASleepInTheForegroundIsRefused(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		for _, name := range []string{"bash", "exec"} {
			for _, args := range []string{
				`{"command":"sleep 10"}`, `{"command":"sleep 2"}`, `{"command":"true && (sleep 1m)"}`, `{"command":"bash -c 'sleep 10'"}`,
				`{"command":"sleep infinity"}`, `{"command":"sleep 10","timeout":9}`, `{"command":"sleep 5; sleep 5","initial_wait":9}`,
			} {
				if text := d.mustFail(name, args); !strings.Contains(text, "blocked") || !strings.Contains(text, "wait") {
					t.Errorf("%s: %s", args, text)
				}
				if _, err := d.tools[name].Permission(t.Context(), d.call(args)); err == nil {
					t.Errorf("%s: somebody is asked", args)
				}
			}
		}
		if s.count() != 0 {
			t.Error("something was started")
		}
		for _, args := range []string{
			`{"command":"sleep 1.5"}`, `{"command":"sleep 10","mode":"async"}`, `{"command":"sleep 10 &"}`, `{"command":"echo sleep 5"}`,
			`{"command":"sleep 10","initial_wait":15,"mode":"sync"}`, `{"command":"sleep 100","mode":"sync","initial_wait":105}`,
			`{"command":"sleep 2 && echo done","initial_wait":5}`, `{"command":"sleep 700","timeout":800}`,
		} {
			if r := d.run("bash", d.call(args)); r.Failed {
				t.Errorf("%s: %s", args, r.Text)
			}
		}
	})
}

func TestACancelledCallLeavesATask(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		call := d.call(`{"command":"server","description":"Serve","initial_wait":600}`)
		go func() {
			_, err := d.tools["bash"].Run(ctx, call)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("the call came to %v", err)
		}
		running, err := d.c.Running(context.Background(), d.session)
		if err != nil || len(running) != 1 {
			t.Fatalf("running: %+v, %v", running, err)
		}
		id := running[0].ID
		if text := bash.Summary(running, time.Now()); !strings.Contains(text, "["+id+"] Serve") {
			t.Errorf("summary is %q", text)
		}
		if text := d.mustCall("list_bash", `{}`); !strings.Contains(text, "shellId: "+id+",") || !strings.Contains(text, "status: running") {
			t.Errorf("list is %q", text)
		}
		if text := d.mustCall("stop_bash", `{"shellId":%q}`, id); !strings.HasPrefix(text, "<command with id: "+id+" stopped>") {
			t.Errorf("stop says %q", text)
		}
		if s.started(0).info.State != process.Killed {
			t.Error("it was not stopped")
		}
	})
}

func TestACallThatIsMadeAgainFindsItsProcess(t *testing.T) {
	notes := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		before := newCaller(t, s, notes)
		ctx, kill := context.WithCancel(context.Background())
		call := before.call(`{"command":"make","initial_wait":10,"shellId":"build"}`)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = before.tools["bash"].Run(ctx, call)
		}()
		time.Sleep(4 * time.Second)
		kill()
		<-done
		s.started(0).print(process.Stdout, "half\n")

		after := before.restarted(s, notes)
		begun := time.Now()
		call.Attempt = 2
		r := decode(t, after.run("bash", call).Text)
		if r.Status != bash.StatusAutoBackgrounded || r.TaskID != "build" || r.Output != "half\n" || time.Since(begun) != 6*time.Second {
			t.Errorf("after %v: %+v", time.Since(begun), r)
		}
		if again := decode(t, after.run("bash", call).Text); again.Output != "half\n" {
			t.Errorf("made once more: %+v", again)
		}
		s.started(0).exit(0)
		if got := after.run("bash", call).Text; got != "half\n<exited with exit code 0>" {
			t.Errorf("ended meanwhile: %q", got)
		}
		if s.count() != 1 {
			t.Errorf("%d processes", s.count())
		}
	})
}

func TestUnusableArgumentsAreRefusedAndNothingIsStarted(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		for args, want := range map[string]string{
			`{}`:                                               `Invalid input: "command": Required`,
			`[]`:                                               `Invalid input: Multiple validation errors`,
			`{"command":7}`:                                    `Invalid input: "command": Expected string, received number`,
			`{"command":""}`:                                   "No command provided. Please supply a valid command to execute.",
			`{"command":" \n\t"}`:                              "No command provided. Please supply a valid command to execute.",
			`{"command":"a\u0000b"}`:                           "NUL byte",
			`{"command":"a","cwd":"x\u0000"}`:                  "NUL byte",
			`{"command":"a","mode":"bogus"}`:                   `Invalid input: "mode": Invalid enum value. Expected 'sync' | 'async', received 'bogus'`,
			`{"command":"a","initial_wait":0}`:                 "Invalid initial_wait value 0. Please supply a valid initial_wait value in seconds between 0 and 600.",
			`{"command":"a","initial_wait":-5}`:                "Invalid initial_wait value -5.",
			`{"command":"a","timeout":-0.5}`:                   "Invalid timeout value -0.5.",
			`{"command":"a","timeout":"soon"}`:                 `Invalid input: "timeout": Expected a number of seconds`,
			`{"command":"a","timeout":1e999}`:                  `Invalid input: "timeout": Invalid number`,
			`{"command":"a","shellId":"a b"}`:                  `Invalid input: "shellId"`,
			`{"command":"a","shellId":"a\n<x>"}`:               `Invalid input: "shellId"`,
			`{"command":"` + strings.Repeat("a", 1<<20) + `"}`: "1048576 bytes long",
		} {
			for _, name := range []string{"bash", "exec"} {
				if got := d.mustFail(name, args); !strings.HasPrefix(got, want) && !strings.Contains(got, want) {
					t.Errorf("%.60s: %q, want %q", args, got, want)
				}
				var refused *tool.Refusal
				if _, err := d.tools[name].Permission(t.Context(), d.call(args)); !errors.As(err, &refused) {
					t.Errorf("%.60s: permission says %v", args, err)
				}
			}
		}
		if s.count() != 0 {
			t.Error("something was started")
		}
	})
}

func TestTimeoutsAreLimitedAndReadInManyForms(t *testing.T) {
	for args, want := range map[string]time.Duration{
		`{"command":"x"}`:                    10 * time.Second,
		`{"command":"x","initial_wait":700}`: 600 * time.Second,
		`{"command":"x","timeout":1e300}`:    600 * time.Second,
		`{"command":"x","timeout":"1m"}`:     time.Minute,
		`{"command":"x","timeout":"90"}`:     90 * time.Second,
		`{"command":"x","timeout":0.001}`:    time.Millisecond,
		`{"command":"x","initial_wait":1}`:   time.Second,
	} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			begun := time.Now()
			if r := decode(t, d.mustCall("bash", "%s", args)); r.Status != bash.StatusAutoBackgrounded || time.Since(begun) != want {
				t.Errorf("%s: %s after %v, want %v", args, r.Status, time.Since(begun), want)
			}
		})
	}
}

func TestACommandThatDoesNotStartIsNotReportedAsStarted(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&process.StartError{Reason: "chdir /nowhere: no such file or directory"}, "The command did not start: chdir /nowhere: no such file or directory."},
		{&process.CapError{What: "running processes", Has: 64, Cap: 64}, "64 processes are running"},
		{process.ErrConflict, "The key belongs to another command"},
		{&os.PathError{Op: "Start", Err: syscall.ENOSPC}, "The command did not start: the disk on which its output is kept is full."},
	} {
		for _, args := range []string{`{"command":"x"}`, `{"command":"x","run_in_background":true}`} {
			withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
				s.refuse = test.err
				if got := d.mustFail("bash", args); !strings.Contains(got, test.want) {
					t.Errorf("%v: %q, want %q", test.err, got, test.want)
				}
			})
		}
	}
}

func TestExecAnswersInJSON(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		done := d.callInBackground("exec", `{"command":"make","description":"Build"}`)
		time.Sleep(1500 * time.Millisecond)
		a := s.started(0)
		a.print(process.Stdout, "out <1>\n")
		a.print(process.Stderr, "err\n")
		a.print(process.Stdout, "out 2\n")
		a.exit(2)
		r := <-done
		var got map[string]any
		if err := json.Unmarshal([]byte(r.Text), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "task_id")
		want := map[string]any{
			"status": "failed", "success": false, "output": "out <1>\nerr\nout 2\n", "stdout": "out <1>\nout 2\n", "stderr": "err\n",
			"exit_code": 2.0, "wall_duration_ms": 1500.0, "offset": 18.0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if r.Failed {
			t.Error("an exit code is not a failure of the tool")
		}
		var parts []map[string]any
		if err := json.Unmarshal(r.Contents, &parts); err != nil || len(parts) != 1 || parts[0]["type"] != "shell_exit" || parts[0]["exitCode"] != 2.0 || parts[0]["cwd"] != "/w" || parts[0]["outputPreview"] != "out <1>\nerr\nout 2\n" {
			t.Errorf("contents are %s, %v", r.Contents, err)
		}
		if list := bash.Results(r.Contents); list[0].Stderr != "err\n" || list[0].Output != "" {
			t.Errorf("the struct in the contents is %+v", list)
		}
	})
}

func TestANoteSaysWhichToolWouldHaveBeenBetter(t *testing.T) {
	for command, want := range map[string]string{"cat a.txt": "view", "grep -rn x .": "grep", "find . -name '*.go'": "glob", "make": ""} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			done := d.callInBackground("bash", `{"command":`+quote(command)+`}`)
			synctest.Wait()
			s.started(0).exit(0)
			got := (<-done).Text
			if want == "" && strings.Contains(got, "note") || want != "" && !strings.Contains(got, "<note: The "+want+" tool") {
				t.Errorf("%s: %q", command, got)
			}
		})
	}
}

func TestTheDirectoryIsThatOfTheSessionByDefault(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"x &"}`:                          "/w",
		`{"command":"x &","cwd":"sub/../a"}`:         "/w/a",
		`{"command":"x &","work_dir":"/tmp"}`:        "/tmp",
		`{"command":"x &","workdir":"b"}`:            "/w/b",
		`{"command":"x &","working_directory":"/c"}`: "/c",
	} {
		withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
			d.mustCall("bash", "%s", args)
			if got := s.started(0).spec.Dir; got != want {
				t.Errorf("%s: %s, want %s", args, got, want)
			}
		})
	}
}

func TestTheEnvironmentKeepsCommandsFromAsking(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.c.Hidden = []string{"SECRET", "ABIDE_*"}
		call := d.call(`{"command":"x &"}`)
		call.Env = []string{"HOME=/h", "PAGER=less", "FORCE_COLOR=1", "SECRET=x", "SECRETS=y", "ABIDE_KEY=z", "SSH_ASKPASS=/ask", "=odd", "none"}
		d.run("bash", call)
		env := s.started(0).spec.Env
		for _, want := range []string{"HOME=/h", "SECRETS=y", "PAGER=cat", "GIT_PAGER=cat", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "EDITOR=true", "VISUAL=true",
			"GIT_TERMINAL_PROMPT=0", "NO_COLOR=1", "TERM=dumb", "DEBIAN_FRONTEND=noninteractive"} {
			if !slices.Contains(env, want) {
				t.Errorf("%s is missing", want)
			}
		}
		seen := map[string]bool{}
		for _, v := range env {
			name, _, _ := strings.Cut(v, "=")
			if seen[name] || slices.Contains([]string{"SECRET", "ABIDE_KEY", "FORCE_COLOR", "SSH_ASKPASS", "", "none"}, name) {
				t.Errorf("%s is there", v)
			}
			seen[name] = true
		}
		d.mustCall("bash", `{"command":"x &","tty":true}`)
		if a := s.started(1); !slices.Contains(a.spec.Env, "TERM=xterm") || a.spec.TTY == nil || !a.spec.Stdin {
			t.Errorf("with a terminal: %+v", a.spec)
		}
	})
}

func TestPermissionToRunIsAsked(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, _ *scriptedProcesses) {
		r, err := d.tools["bash"].Permission(t.Context(), d.call(`{"command":"git push origin main > log.txt && curl https://x.org/a","description":"Push","cwd":"/tmp"}`))
		if faults := append(shapetest.Value("PermissionRequest", r.Ask), shapetest.Value("PermissionPromptRequest", r.Prompt)...); len(faults) > 0 {
			t.Errorf("typed clients cannot read the question: %q", faults)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(r.Ask, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"kind": "shell", "toolCallId": "toolcall_0", "fullCommandText": "git push origin main > log.txt && curl https://x.org/a", "intention": "Push",
			"commands":           []any{map[string]any{"identifier": "git push", "readOnly": false}, map[string]any{"identifier": "curl", "readOnly": false}},
			"commandIdentifiers": []any{"git push", "curl"}, "possiblePaths": []any{"log.txt", "/tmp"}, "possibleUrls": []any{map[string]any{"url": "https://x.org/a"}},
			"hasWriteFileRedirection": true, "canOfferSessionApproval": true, "cwd": "/tmp",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if r.Kind != approval.Shell || r.Plain == nil || r.Elsewhere != "/tmp" {
			t.Errorf("request is %+v", r)
		}
		if !strings.Contains(string(r.Prompt), `"kind":"commands"`) {
			t.Errorf("prompt is %s", r.Prompt)
		}
		echo, _ := d.tools["bash"].Permission(t.Context(), d.call(`{"command":"echo test","description":"Run echo test"}`))
		if echo.Plain.String() != "'echo' 'test'" || echo.Subjects != nil || echo.Elsewhere != "" || echo.Allowed {
			t.Errorf("echo: %+v", echo)
		}
		odd, _ := d.tools["bash"].Permission(t.Context(), d.call(`{"command":"$CMD x; ((("}`))
		if odd.Plain != nil || len(odd.SessionGrants()) > 0 || !strings.Contains(string(odd.Ask), `"canOfferSessionApproval":false`) || !strings.Contains(string(odd.Ask), "warning") {
			t.Errorf("odd: %+v %s", odd, odd.Ask)
		}
		nothing, _ := d.tools["bash"].Permission(t.Context(), d.call(`{"command":"[[ -f x ]]"}`))
		if len(nothing.Offers()) != 1 {
			t.Errorf("what is not understood is offered for longer: %+v", nothing.Offers())
		}
		for _, name := range []string{"read_bash", "stop_bash", "list_bash", "wait"} {
			if r, err := d.tools[name].Permission(t.Context(), d.call(`{"shellId":"x"}`)); r != nil || err != nil {
				t.Errorf("%s asks: %+v, %v", name, r, err)
			}
		}
		if r, err := d.tools["write_bash"].Permission(t.Context(), d.call(`{"shellId":"x","input":"rm -rf /\n"}`)); err != nil || !strings.Contains(string(r.Ask), `rm -rf /`) || r.Plain != nil {
			t.Errorf("write_bash: %+v, %v", r, err)
		}
	})
}

func TestOnlyExecHasToBeAskedForByName(t *testing.T) {
	d := newCaller(t, newScripted(), t.TempDir())
	for name, one := range d.tools {
		spec := one.Spec()
		if spec.OnDemand != (name == "exec") || spec.Detaches != (name == "exec" || name == "bash") || spec.Description == "" || !json.Valid(spec.Parameters) || spec.Replay == tool.Once {
			t.Errorf("%s: %+v", name, spec)
		}
	}
	if len(d.tools) != 7 {
		t.Errorf("there are %d tools", len(d.tools))
	}
}
