package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// me is the owner of the processes of the tests.
const me process.Owner = "tenant/session-1"

// Processes tests the promises of a workspace about processes.
func Processes(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, *Fixture){
		"ACommandRunsAndItsOutputIsKept":             runs,
		"TheEndIsExact":                              ends,
		"CommandsRunWhereTheyAreTold":                directories,
		"TheEnvironmentIsTheWorkspacesOrTheCommands": environments,
		"AKeyIsOneProcess":                           oneKey,
		"ManyStartsWithOneKeyAreOneProcess":          atOnce,
		"WhatCannotStartIsNeverStarted":              notStarted,
		"BadRequestsAreRefused":                      badRequests,
		"NobodyElseCanTellThatAProcessExists":        foreign,
		"WithoutAnOwnerNothingIsAnswered":            noOwner,
		"FramesComeInTheOrderOfArrival":              order,
		"OutputIsReadFromAnyOffset":                  offsets,
		"AllOfALongOutputComes":                      long,
		"BytesAreKeptAsTheyAre":                      binary,
		"ACommandReadsWhatItIsGiven":                 stdin,
		"AnInputWithAKeyIsGivenOnce":                 inputOnce,
		"ATerminalCanBeResized":                      terminal,
		"ASignalReachesTheGroup":                     signals,
		"StopLeavesNothingBehind":                    stop,
		"AContextThatEndsEndsNoProcess":              contexts,
		"AFollowerMayLeave":                          leaves,
		"AChildThatHoldsTheOutputKeepsNobodyWaiting": lingering,
		"AChildThatGoesOnWritingKeepsNobodyWaiting":  noise,
		"TheCapIsAnErrorThatSaysSo":                  caps,
		"AStartWhoseReplyIsLostIsOneProcess":         lostReply,
		"ACutConnectionLosesNoOutput":                cutOutput,
		"AWriteWhoseReplyIsLostIsReadOnce":           lostInput,
		"ProcessesOutliveWhoServesThem":              restart,
		"AQuickCommandAndASlowOneAsASessionUsesThem": background,
		"AnEndedProcessStaysKnown":                   seen,
		"ManyFollowersSeeTheSame":                    followers,
		"ASurveySaysWhetherProcessesRun":             surveyBusy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t)
			t.Cleanup(func() { p.stopAll(t) })
			test(t, p)
		})
	}
}

// stopAll ends the processes that a test left running.
func (p *Fixture) stopAll(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, owner := range []process.Owner{me, "other"} {
		all, err := p.run().List(ctx, owner)
		if err != nil {
			t.Errorf("list: %v", err)
		}
		for _, info := range all {
			if !info.Gone && info.State != process.FailedToStart && info.State != process.Lost {
				if _, err := p.run().Stop(ctx, owner, info.ID); err != nil {
					t.Errorf("stop %s: %v", info.ID, err)
				}
			}
		}
	}
}

// start starts a shell command that must start.
func (p *Fixture) start(t *testing.T, command string, more ...func(*process.Spec)) process.Info {
	t.Helper()
	spec := process.Spec{Key: "key of " + command, Owner: me, Command: command}
	for _, change := range more {
		change(&spec)
	}
	info, _, err := p.run().Start(t.Context(), spec)
	must(t, err)
	return info
}

func withStdin(s *process.Spec) { s.Stdin = true }

// wait waits for the end of a process.
func (p *Fixture) wait(t *testing.T, id process.ID) process.Info {
	t.Helper()
	info, err := p.run().Wait(t.Context(), me, id)
	must(t, err)
	return info
}

// output returns all output of a process until it ends.
func (p *Fixture) output(t *testing.T, id process.ID, offset int64) string {
	t.Helper()
	text, _, err := p.follow(t.Context(), id, offset, nil)
	must(t, err)
	return text
}

// follow collects output until the end, or until enough returns true.
func (p *Fixture) follow(ctx context.Context, id process.ID, offset int64, enough func(string) bool) (string, *process.Info, error) {
	var all strings.Builder
	for frame, err := range p.run().Follow(ctx, me, id, offset) {
		if err != nil {
			return all.String(), nil, err
		}
		if want := offset + int64(all.Len()); frame.Offset != want || frame.Omitted != 0 {
			return all.String(), nil, fmt.Errorf("a frame at %d after %d bytes left out, want it at %d", frame.Offset, frame.Omitted, want)
		}
		all.Write(frame.Data)
		if frame.End != nil || enough != nil && enough(all.String()) {
			return all.String(), frame.End, nil
		}
	}
	return all.String(), nil, errors.New("the output ended without an end")
}

// await waits until the output contains a text.
func (p *Fixture) await(t *testing.T, id process.ID, text string) string {
	t.Helper()
	got, _, err := p.follow(t.Context(), id, 0, func(s string) bool { return strings.Contains(s, text) })
	must(t, err)
	if !strings.Contains(got, text) {
		t.Fatalf("the process ended with %q and never wrote %q", got, text)
	}
	return got
}

// writeStdin writes a text to the standard input of a process.
func (p *Fixture) writeStdin(t *testing.T, id process.ID, text string) {
	t.Helper()
	must(t, p.run().WriteStdin(t.Context(), me, id, process.Input{Data: []byte(text)}))
}

func runs(t *testing.T, p *Fixture) {
	info := p.start(t, "echo out; echo err >&2; echo more", func(s *process.Spec) { s.Title = "three lines" })
	if info.Owner != me || info.Command == "" || info.Title != "three lines" || info.Created.IsZero() {
		t.Errorf("started: %+v", info)
	}
	end := p.wait(t, info.ID)
	if end.State != process.Exited || end.Exit == nil || end.Exit.Code != 0 || end.Ended.IsZero() || end.Output.Bytes != 13 || end.Output.Stderr != 4 {
		t.Errorf("ended: %+v", end)
	}
	for stream, want := range map[process.Stream]string{process.Stdout: "out\nmore\n", process.Stderr: "err\n"} {
		c, err := p.run().Read(t.Context(), me, info.ID, process.ReadRequest{Stream: stream})
		if err != nil || string(c.Data) != want {
			t.Errorf("%v: %q, %v; want %q", stream, c.Data, err, want)
		}
		text, cut, err := p.run().View(t.Context(), me, info.ID, stream)
		if text != want || cut != nil || err != nil {
			t.Errorf("view of %v: %q, %v, %v", stream, text, cut, err)
		}
	}
	tail, err := p.run().Tail(t.Context(), me, info.ID, 5, process.Stdout)
	if string(tail.Data) != "more\n" || err != nil {
		t.Errorf("tail: %q, %v", tail.Data, err)
	}
	list, err := p.run().List(t.Context(), me)
	if len(list) != 1 || list[0].ID != info.ID || err != nil {
		t.Errorf("list: %+v, %v", list, err)
	}
	found, err := p.run().Find(t.Context(), me, info.Key)
	if found.ID != info.ID || err != nil {
		t.Errorf("find: %+v, %v", found, err)
	}
}

func ends(t *testing.T, p *Fixture) {
	for command, want := range map[string]process.Exit{
		"exit 0":        {},
		"exit 3":        {Code: 3},
		"exit 137":      {Code: 137},
		"kill -KILL $$": {Code: 137, Signal: "SIGKILL"},
		"kill -TERM $$": {Code: 143, Signal: "SIGTERM"},
	} {
		end := p.wait(t, p.start(t, command).ID)
		if end.State != process.Exited || end.Exit == nil || end.Exit.Code != want.Code || end.Exit.Signal != want.Signal {
			t.Errorf("%s: %s %+v, want %+v", command, end.State, end.Exit, want)
		}
	}
}

func directories(t *testing.T, p *Fixture) {
	must(t, os.MkdirAll(p.at("sub/folder"), 0o755))
	for dir, want := range map[string]string{"": p.Dir, "sub": p.at("sub"), "./sub/folder": p.at("sub/folder"), p.at("sub"): p.at("sub"), "/": "/"} {
		info := p.start(t, "pwd", func(s *process.Spec) { s.Key, s.Dir = "in "+dir, dir })
		if got := p.output(t, info.ID, 0); got != want+"\n" {
			t.Errorf("in %q: %q, want %q", dir, got, want)
		}
	}
}

func environments(t *testing.T, p *Fixture) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "C.UTF-8,"},
		{[]string{"PATH=/usr/bin:/bin", "X=a b\nc"}, ",a b\nc"},
		{[]string{}, ","},
	} {
		info := p.start(t, `printf "%s,%s" "$LANG" "$X"`, func(s *process.Spec) { s.Key, s.Env = fmt.Sprintf("%#v", c.env), c.env })
		if got := p.output(t, info.ID, 0); got != c.want {
			t.Errorf("%q: %q, want %q", c.env, got, c.want)
		}
	}
}

func oneKey(t *testing.T, p *Fixture) {
	spec := process.Spec{Key: "one", Owner: me, Command: "echo started >> count; read line", Stdin: true}
	first, attached, err := p.run().Start(t.Context(), spec)
	if err != nil || attached {
		t.Fatalf("the first start: attached %v, %v", attached, err)
	}
	second, attached, err := p.run().Start(t.Context(), spec)
	if err != nil || !attached || second.ID != first.ID {
		t.Errorf("the second start: %s, attached %v, %v; want %s", second.ID, attached, err, first.ID)
	}
	p.writeStdin(t, first.ID, "\n")
	p.wait(t, first.ID)
	third, attached, err := p.run().Start(t.Context(), spec)
	if err != nil || !attached || third.ID != first.ID || third.State != process.Exited {
		t.Errorf("after the end: %+v, attached %v, %v", third, attached, err)
	}
	p.hasContent(t, "count", "started\n")
	other := spec
	other.Command = "echo something else"
	_, _, err = p.run().Start(t.Context(), other)
	fails(t, err, process.ErrConflict, "the key with another command")
	theirs := spec
	theirs.Owner = "other"
	theirs.Command = "true"
	info, attached, err := p.run().Start(t.Context(), theirs)
	if err != nil || attached || info.ID == first.ID {
		t.Errorf("the key of another owner: %s, attached %v, %v", info.ID, attached, err)
	}
}

func atOnce(t *testing.T, p *Fixture) {
	spec := process.Spec{Key: "one", Owner: me, Command: "echo started >> count"}
	ids := make([]process.ID, 8)
	var fresh int
	var mu sync.Mutex
	var starters sync.WaitGroup
	for i := range ids {
		starters.Go(func() {
			info, attached, err := p.run().Start(t.Context(), spec)
			if err != nil {
				t.Errorf("start: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[i] = info.ID
			if !attached {
				fresh++
			}
		})
	}
	starters.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("the starts found %v", ids)
			break
		}
	}
	if fresh != 1 {
		t.Errorf("%d starts say that they began it", fresh)
	}
	p.wait(t, ids[0])
	p.hasContent(t, "count", "started\n")
}

func notStarted(t *testing.T, p *Fixture) {
	for name, spec := range map[string]process.Spec{
		"no folder":  {Dir: "none", Command: "true"},
		"a file":     {Dir: "file", Command: "true"},
		"no program": {Args: []string{"/no/such/program"}},
	} {
		p.put(t, "file", "")
		spec.Key, spec.Owner = name, me
		for range 2 { // the second attempt has the same result
			info, _, err := p.run().Start(t.Context(), spec)
			var start *process.StartError
			if !errors.As(err, &start) || start.Reason == "" {
				t.Errorf("%s: %+v, %v; want the reason why it did not start", name, info, err)
			}
		}
	}
}

func badRequests(t *testing.T, p *Fixture) {
	for name, spec := range map[string]process.Spec{
		"no command":    {Key: "k", Owner: me},
		"no key":        {Owner: me, Command: "true"},
		"two commands":  {Key: "k", Owner: me, Command: "true", Args: []string{"true"}},
		"a zero byte":   {Key: "k", Owner: me, Command: "echo a\x00b"},
		"unknown class": {Key: "k", Owner: me, Command: "true", Class: "pet"},
	} {
		_, _, err := p.run().Start(t.Context(), spec)
		fails(t, err, process.ErrInvalid, name)
	}
	if list, err := p.run().List(t.Context(), me); len(list) != 0 || err != nil {
		t.Errorf("there is %+v, %v", list, err)
	}
	info := p.start(t, "true")
	p.wait(t, info.ID)
	_, err := p.run().Read(t.Context(), me, info.ID, process.ReadRequest{Offset: -1})
	fails(t, err, process.ErrInvalid, "a negative offset")
	for _, id := range []process.ID{"", "none", "../..", "\xff", process.ID(strings.Repeat("x", 10_000))} {
		_, err := p.run().Get(t.Context(), me, id)
		fails(t, err, process.ErrNotFound, fmt.Sprintf("the process %.20q", id))
	}
}

// calls makes every call about a process and returns the errors.
func (p *Fixture) calls(ctx context.Context, owner process.Owner, id process.ID) map[string]error {
	all := make(map[string]error)
	_, all["get"] = p.run().Get(ctx, owner, id)
	_, all["wait"] = p.run().Wait(ctx, owner, id)
	_, all["read"] = p.run().Read(ctx, owner, id, process.ReadRequest{})
	_, all["tail"] = p.run().Tail(ctx, owner, id, 10, process.Both)
	_, _, all["view"] = p.run().View(ctx, owner, id, process.Both)
	all["stdin"] = p.run().WriteStdin(ctx, owner, id, process.Input{Data: []byte("x\n")})
	all["resize"] = p.run().Resize(ctx, owner, id, process.Size{Rows: 1, Cols: 1})
	all["signal"] = p.run().Signal(ctx, owner, id, syscall.SIGKILL)
	_, all["stop"] = p.run().Stop(ctx, owner, id)
	all["seen"] = p.run().MarkSeen(ctx, owner, id)
	for _, err := range p.run().Follow(ctx, owner, id, 0) {
		all["follow"] = err
		break
	}
	return all
}

func foreign(t *testing.T, p *Fixture) {
	info := p.start(t, "echo secret; read line; echo $line", withStdin)
	p.await(t, info.ID, "secret")
	for _, owner := range []process.Owner{"other", me + "2", me[:len(me)-1], "session-1"} {
		for call, err := range p.calls(t.Context(), owner, info.ID) {
			fails(t, err, process.ErrNotFound, fmt.Sprintf("%s by %s", call, owner))
			_, none := p.run().Get(t.Context(), owner, "never-was")
			if err != nil && call == "get" && strings.ReplaceAll(err.Error(), string(info.ID), "never-was") != none.Error() {
				t.Errorf("a foreign process (%v) can be told from none (%v)", err, none)
			}
		}
		if list, err := p.run().List(t.Context(), owner); len(list) != 0 || err != nil {
			t.Errorf("%s sees %+v, %v", owner, list, err)
		}
		_, err := p.run().Find(t.Context(), owner, info.Key)
		fails(t, err, process.ErrNotFound, fmt.Sprintf("find by %s", owner))
	}
	p.writeStdin(t, info.ID, "untouched\n")
	if got := p.output(t, info.ID, 0); got != "secret\nuntouched\n" {
		t.Errorf("the output is %q", got)
	}
}

func noOwner(t *testing.T, p *Fixture) {
	info := p.start(t, "read line", withStdin)
	for call, err := range p.calls(t.Context(), "", info.ID) {
		fails(t, err, process.ErrNoOwner, call)
	}
	_, err := p.run().List(t.Context(), "")
	fails(t, err, process.ErrNoOwner, "list")
	_, err = p.run().Find(t.Context(), "", info.Key)
	fails(t, err, process.ErrNoOwner, "find")
	_, _, err = p.run().Start(t.Context(), process.Spec{Key: "k", Command: "true"})
	fails(t, err, process.ErrNoOwner, "start")
	if now, err := p.run().Get(t.Context(), me, info.ID); now.State != process.Running || err != nil {
		t.Errorf("the process is %s, %v", now.State, err)
	}
}

func order(t *testing.T, p *Fixture) {
	info := p.start(t, "echo one; read x; echo two >&2; read x; echo three; read x; echo four >&2; exit 5", withStdin)
	want := []string{"stdout 0 one\n", "stderr 4 two\n", "stdout 8 three\n", "stderr 14 four\n", "end 5"}
	var live []string
	for frame, err := range p.run().Follow(t.Context(), me, info.ID, 0) {
		must(t, err)
		live = append(live, describe(frame))
		if frame.End == nil && len(live) < 4 {
			p.writeStdin(t, info.ID, "\n")
		}
	}
	if fmt.Sprintf("%q", live) != fmt.Sprintf("%q", want) {
		t.Errorf("the frames are %q, want %q", live, want)
	}
	var again []string
	for frame, err := range p.run().Follow(t.Context(), me, info.ID, 0) {
		must(t, err)
		again = append(again, describe(frame))
	}
	if fmt.Sprintf("%q", again) != fmt.Sprintf("%q", want) {
		t.Errorf("later they are %q, want %q", again, want)
	}
}

func describe(f workspace.Frame) string {
	if f.End != nil {
		return fmt.Sprintf("end %d", f.End.Exit.Code)
	}
	return fmt.Sprintf("%v %d %s", f.Stream, f.Offset, f.Data)
}

func offsets(t *testing.T, p *Fixture) {
	const text = "0123456789abcdef"
	info := p.start(t, "printf "+text)
	p.wait(t, info.ID)
	for offset := range int64(len(text)) + 1 {
		if got := p.output(t, info.ID, offset); got != text[offset:] {
			t.Errorf("from %d: %q", offset, got)
		}
		c, err := p.run().Read(t.Context(), me, info.ID, process.ReadRequest{Offset: offset, Limit: 3})
		if want := text[offset:min(int(offset)+3, len(text))]; err != nil || string(c.Data) != want || c.Next != offset+int64(len(want)) {
			t.Errorf("read from %d: %q, next %d, %v; want %q", offset, c.Data, c.Next, err, want)
		}
		c, err = p.run().Tail(t.Context(), me, info.ID, int(offset), process.Both)
		if want := text[len(text)-int(offset):]; offset > 0 && (err != nil || string(c.Data) != want) {
			t.Errorf("the last %d: %q, %v; want %q", offset, c.Data, err, want)
		}
	}
	c, err := p.run().Read(t.Context(), me, info.ID, process.ReadRequest{Offset: 4, Until: 8})
	if string(c.Data) != "4567" || err != nil {
		t.Errorf("from 4 to 8: %q, %v", c.Data, err)
	}
}

// numbers returns what the command seq prints.
func numbers(n int) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

func long(t *testing.T, p *Fixture) {
	const n = 300_000 // 2 MB
	want := numbers(n)
	info := p.start(t, fmt.Sprintf("seq %d", n))
	if got := p.output(t, info.ID, 0); got != want {
		t.Errorf("%d bytes, want %d; they differ", len(got), len(want))
	}
	c, err := p.run().Read(t.Context(), me, info.ID, process.ReadRequest{Limit: 100 << 20})
	if err != nil || len(c.Data) > workspace.MaxOutput || len(c.Data) == 0 || string(c.Data) != want[:len(c.Data)] {
		t.Errorf("a large read brought %d bytes, %v", len(c.Data), err)
	}
	tail, err := p.run().Tail(t.Context(), me, info.ID, 100<<20, process.Both)
	if err != nil || len(tail.Data) > workspace.MaxOutput || !strings.HasSuffix(want, string(tail.Data)) {
		t.Errorf("a large tail brought %d bytes, %v", len(tail.Data), err)
	}
	text, cut, err := p.run().View(t.Context(), me, info.ID, process.Both)
	if err != nil || cut == nil || cut.OriginalBytes != len(want) || cut.Strategy != "head_tail" || !strings.HasPrefix(text, "1\n2\n") || !strings.HasSuffix(text, "\n300000\n") {
		t.Errorf("the view has %d bytes, %+v, %v", len(text), cut, err)
	}
}

func binary(t *testing.T, p *Fixture) {
	info := p.start(t, `printf 'a\000b\377\303\r\n\033[0m'; printf '\200' >&2; : `+"\xff", func(s *process.Spec) { s.Key = "bytes" })
	if got, want := p.output(t, info.ID, 0), "a\x00b\xff\xc3\r\n\x1b[0m"; strings.Replace(got, "\x80", "", 1) != want || len(got) != len(want)+1 {
		t.Errorf("the output is %q", got)
	}
	if end := p.wait(t, info.ID); !strings.HasSuffix(end.Command, "\xff") {
		t.Errorf("the command is %q", end.Command)
	}
}

func stdin(t *testing.T, p *Fixture) {
	info := p.start(t, "cat; echo done", withStdin)
	p.writeStdin(t, info.ID, "hello ")
	p.await(t, info.ID, "hello ")
	large := strings.Repeat("0123456789abcde\n", 1<<14) // larger than a pipe
	p.writeStdin(t, info.ID, large)
	must(t, p.run().WriteStdin(t.Context(), me, info.ID, process.Input{Data: []byte("bye\n"), Close: true}))
	if got := p.output(t, info.ID, 0); got != "hello "+large+"bye\ndone\n" {
		t.Errorf("%d bytes came back: %.20q…%.20q", len(got), got, got[max(0, len(got)-20):])
	}
	fails(t, p.run().WriteStdin(t.Context(), me, info.ID, process.Input{Data: []byte("x")}), process.ErrEnded, "writing to what has ended")
	// Without Stdin the standard input is empty.
	quiet := p.start(t, "cat; echo nothing")
	if got := p.output(t, quiet.ID, 0); got != "nothing\n" {
		t.Errorf("without stdin: %q", got)
	}
	blocked := p.start(t, "sleep 1000")
	fails(t, p.run().WriteStdin(t.Context(), me, blocked.ID, process.Input{Data: []byte("x")}), process.ErrNoStdin, "writing where nothing is read")
}

func inputOnce(t *testing.T, p *Fixture) {
	info := p.start(t, "cat", withStdin)
	for range 3 {
		must(t, p.run().WriteStdin(t.Context(), me, info.ID, process.Input{Key: "first", Data: []byte("a")}))
	}
	must(t, p.run().WriteStdin(t.Context(), me, info.ID, process.Input{Key: "second", Data: []byte("b"), Close: true}))
	if got := p.output(t, info.ID, 0); got != "ab" {
		t.Errorf("the process read %q", got)
	}
}

func terminal(t *testing.T, p *Fixture) {
	info := p.start(t, "stty size; read x; stty size; test -t 1 && echo terminal", func(s *process.Spec) {
		s.Stdin, s.TTY = true, &process.Size{Rows: 10, Cols: 20}
	})
	p.await(t, info.ID, "10 20")
	must(t, p.run().Resize(t.Context(), me, info.ID, process.Size{Rows: 33, Cols: 44}))
	p.writeStdin(t, info.ID, "\n")
	if got := p.output(t, info.ID, 0); !strings.Contains(got, "33 44") || !strings.Contains(got, "terminal") {
		t.Errorf("the terminal shows %q", got)
	}
	if !info.TTY {
		t.Error("the process does not say that it has a terminal")
	}
	plain := p.start(t, "sleep 1000")
	fails(t, p.run().Resize(t.Context(), me, plain.ID, process.Size{Rows: 1, Cols: 1}), process.ErrNoTerminal, "resizing what is no terminal")
}

func signals(t *testing.T, p *Fixture) {
	polite := p.start(t, "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 1000 & wait $!; done")
	p.await(t, polite.ID, "ready")
	must(t, p.run().Signal(t.Context(), me, polite.ID, syscall.SIGINT))
	if end := p.wait(t, polite.ID); end.Exit == nil || end.Exit.Code != 7 {
		t.Errorf("after SIGINT: %+v", end)
	}
	if got := p.output(t, polite.ID, 0); got != "ready\ncaught\n" {
		t.Errorf("the output is %q", got)
	}
	killed := p.start(t, "echo ready; sleep 1000; echo more")
	p.await(t, killed.ID, "ready")
	must(t, p.run().Signal(t.Context(), me, killed.ID, syscall.SIGKILL))
	if end := p.wait(t, killed.ID); end.Exit == nil || end.Exit.Signal != "SIGKILL" || end.Exit.Code != 137 {
		t.Errorf("after SIGKILL: %+v", end)
	}
	fails(t, p.run().Signal(t.Context(), me, killed.ID, syscall.SIGTERM), process.ErrEnded, "a signal to what has ended")
}

func stop(t *testing.T, p *Fixture) {
	info := p.start(t, "trap '' TERM; (trap '' TERM; echo $$ $PPID; sleep 1000) & sleep 1000; wait")
	p.await(t, info.ID, "\n")
	end, err := p.run().Stop(t.Context(), me, info.ID)
	if err != nil || !end.State.Ended() || !end.Gone {
		t.Errorf("stopped: %+v, %v", end, err)
	}
	if err := syscall.Kill(-end.PID, 0); err != syscall.ESRCH {
		t.Errorf("something of the group is left: %v", err)
	}
	if _, err := p.run().Stop(t.Context(), me, info.ID); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

func contexts(t *testing.T, p *Fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	info, _, err := p.run().Start(ctx, process.Spec{Key: "k", Owner: me, Command: "echo one; read x; echo two", Stdin: true})
	must(t, err)
	waited := make(chan error, 2)
	go func() {
		_, err := p.run().Wait(ctx, me, info.ID)
		waited <- err
	}()
	go func() {
		_, _, err := p.follow(ctx, info.ID, 0, nil)
		waited <- err
	}()
	p.await(t, info.ID, "one")
	cancel()
	for range 2 {
		fails(t, <-waited, context.Canceled, "waiting with a context that ended")
	}
	p.writeStdin(t, info.ID, "\n")
	if got := p.output(t, info.ID, 0); got != "one\ntwo\n" {
		t.Errorf("the output is %q", got)
	}
}

func leaves(t *testing.T, p *Fixture) {
	info := p.start(t, "yes | head -c 3000000; echo end")
	for range 3 {
		for frame, err := range p.run().Follow(t.Context(), me, info.ID, 0) {
			must(t, err)
			if frame.Offset > 0 || frame.End != nil {
				break
			}
		}
	}
	if got := p.output(t, info.ID, 0); len(got) != 3_000_004 {
		t.Errorf("%d bytes came", len(got))
	}
}

func lingering(t *testing.T, p *Fixture) {
	info := p.start(t, "(sleep 1000; echo late) & echo ok")
	text, end, err := p.follow(t.Context(), info.ID, 0, nil)
	must(t, err)
	if text != "ok\n" || end.Exit == nil || end.Exit.Code != 0 || !end.Lingering {
		t.Errorf("%q, %+v", text, end)
	}
	waited := p.wait(t, info.ID)
	if waited.State != process.Exited || waited.Gone {
		t.Errorf("waited: %+v", waited)
	}
}

func noise(t *testing.T, p *Fixture) {
	info := p.start(t, "yes noise & read x; exit 3", withStdin, func(s *process.Spec) { s.Quota = 4 << 20 })
	p.await(t, info.ID, "noise")
	var end *process.Info
	for frame, err := range p.run().Follow(t.Context(), me, info.ID, 0) {
		must(t, err)
		if frame.Offset == 0 {
			p.writeStdin(t, info.ID, "\n")
		}
		end = frame.End
	}
	if end == nil || end.Exit == nil || end.Exit.Code != 3 || !end.Lingering {
		t.Errorf("the end is %+v", end)
	}
}

func caps(t *testing.T, p *Fixture) {
	for i := range MaxRunning {
		p.start(t, "sleep 1000", func(s *process.Spec) { s.Key = fmt.Sprint(i) })
	}
	_, _, err := p.run().Start(t.Context(), process.Spec{Key: "more", Owner: me, Command: "true"})
	var full *process.CapError
	if !errors.As(err, &full) || full.Cap != MaxRunning || full.Has != MaxRunning {
		t.Errorf("one more: %v (%+v), want a refusal that says what is full", err, full)
	}
	again, attached, err := p.run().Start(t.Context(), process.Spec{Key: "0", Owner: me, Command: "sleep 1000"})
	if err != nil || !attached {
		t.Errorf("a key that runs: %+v, %v", again, err)
	}
	other, _, err := p.run().Start(t.Context(), process.Spec{Key: "k", Owner: "other", Command: "true"})
	if err != nil {
		t.Errorf("somebody else: %+v, %v", other, err)
	}
}

// loseAnswer makes a call whose answer is lost, and returns when the client has repeated it.
// The function happened waits until the call has had its effect for the first time.
func (p *Fixture) loseAnswer(t *testing.T, do func() error, happened func()) {
	t.Helper()
	if p.Cut == nil { // without a connection the caller repeats the call itself
		must(t, do())
		happened()
		must(t, do())
		return
	}
	_, err := p.run().List(t.Context(), me) // makes a connection
	must(t, err)
	p.Hold()
	done := make(chan error, 1)
	go func() { done <- do() }()
	happened()
	p.Cut()
	must(t, <-done)
}

func lostReply(t *testing.T, p *Fixture) {
	fifo := p.at("started")
	must(t, syscall.Mkfifo(fifo, 0o600))
	spec := process.Spec{Key: "k", Owner: me, Command: "echo started >> count; echo > started; read x; echo end", Stdin: true}
	var info process.Info
	var attached bool
	p.loseAnswer(t, func() (err error) {
		info, attached, err = p.run().Start(t.Context(), spec)
		return err
	}, func() {
		_, err := os.ReadFile(fifo) // returns when the command has written to it
		must(t, err)
	})
	if !attached {
		t.Error("the second start does not say that it found a process")
	}
	p.writeStdin(t, info.ID, "\n")
	if got := p.output(t, info.ID, 0); got != "end\n" {
		t.Errorf("the output is %q", got)
	}
	p.hasContent(t, "count", "started\n")
	if list, err := p.run().List(t.Context(), me); len(list) != 1 || err != nil {
		t.Errorf("there is %+v, %v", list, err)
	}
}

func lostInput(t *testing.T, p *Fixture) {
	fifo := p.at("got")
	must(t, syscall.Mkfifo(fifo, 0o600))
	info := p.start(t, "read x; echo $x > got; cat", withStdin)
	p.loseAnswer(t, func() error {
		return p.run().WriteStdin(t.Context(), me, info.ID, process.Input{Key: "1", Data: []byte("line\n")})
	}, func() {
		got, err := os.ReadFile(fifo)
		if string(got) != "line\n" || err != nil {
			t.Errorf("the process read %q, %v", got, err)
		}
	})
	must(t, p.run().WriteStdin(t.Context(), me, info.ID, process.Input{Data: []byte("rest"), Close: true}))
	if got := p.output(t, info.ID, 0); got != "rest" {
		t.Errorf("then it read %q", got)
	}
}

func cutOutput(t *testing.T, p *Fixture) {
	const parts, lines = 6, 20_000
	info := p.start(t, fmt.Sprintf("for i in 1 2 3 4 5 6; do seq %d; read x; done; exit 9", lines), withStdin)
	want := strings.Repeat(numbers(lines), parts)
	var got strings.Builder
	var end *process.Info
	given := 0
	for frame, err := range p.run().Follow(t.Context(), me, info.ID, 0) {
		must(t, err)
		if frame.Offset != int64(got.Len()) {
			t.Fatalf("a frame at %d after %d bytes", frame.Offset, got.Len())
		}
		got.Write(frame.Data)
		end = frame.End
		if end == nil && p.Cut != nil && got.Len()%3 == 0 {
			p.Cut() // output is being sent at this time
		}
		if got.Len() == (given+1)*len(want)/parts && end == nil {
			if p.Cut != nil {
				p.Cut() // there is no output at this time
			}
			p.writeStdin(t, info.ID, "\n")
			given++
		}
	}
	if got.String() != want {
		t.Errorf("%d bytes came, want %d; or others", got.Len(), len(want))
	}
	if end == nil || end.Exit == nil || end.Exit.Code != 9 {
		t.Errorf("the end is %+v", end)
	}
}

func restart(t *testing.T, p *Fixture) {
	info := p.start(t, "echo one; read x; echo two; read x; echo three; exit 4", withStdin)
	ended := p.start(t, "echo over; exit 3")
	p.wait(t, ended.ID)
	type result struct {
		text string
		end  *process.Info
	}
	followed := make(chan result, 1)
	one := make(chan struct{})
	go func() { // follows the output all the time
		var all strings.Builder
		for {
			text, end, err := p.follow(t.Context(), info.ID, int64(all.Len()), func(s string) bool {
				if all.Len() == 0 && s == "one\n" {
					close(one)
				}
				return false
			})
			all.WriteString(text)
			if end != nil {
				followed <- result{all.String(), end}
				return
			}
			if err != nil && (p.Cut != nil || !errors.Is(err, process.ErrClosed)) { // a client connects again by itself
				t.Errorf("following: %v", err)
				followed <- result{all.String(), nil}
				return
			}
		}
	}()
	<-one
	p.Restart(t)
	p.writeStdin(t, info.ID, "\n")
	p.await(t, info.ID, "two")
	p.Restart(t)
	p.writeStdin(t, info.ID, "\n")
	if got := <-followed; got.text != "one\ntwo\nthree\n" || got.end == nil || got.end.Exit.Code != 4 {
		t.Errorf("the follower saw %q, %+v", got.text, got.end)
	}
	if now, err := p.run().Get(t.Context(), me, ended.ID); err != nil || now.State != process.Exited || now.Exit.Code != 3 {
		t.Errorf("what had ended before is %+v, %v", now, err)
	}
	if got := p.output(t, ended.ID, 0); got != "over\n" {
		t.Errorf("its output is %q", got)
	}
}

func background(t *testing.T, p *Fixture) {
	// A command is started in the background, and found later by its key.
	install := p.start(t, "echo added 42 packages")
	quick := p.start(t, "echo hello; echo oops >&2; exit 1")
	if end := p.wait(t, quick.ID); end.Exit == nil || end.Exit.Code != 1 {
		t.Errorf("the quick one: %+v", end)
	}
	if end := p.wait(t, install.ID); end.Exit == nil || end.Exit.Code != 0 {
		t.Errorf("the one in the background: %+v", end)
	}
	tail, err := p.run().Tail(t.Context(), me, install.ID, 4096, process.Both)
	if string(tail.Data) != "added 42 packages\n" || err != nil {
		t.Errorf("its tail: %q, %v", tail.Data, err)
	}
	// A command continues after its caller has stopped waiting.
	build := p.start(t, "echo building; read x; echo build completed successfully", withStdin)
	p.await(t, build.ID, "building")
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	_, err = p.run().Wait(ctx, me, build.ID)
	fails(t, err, context.DeadlineExceeded, "waiting no longer")
	if now, err := p.run().Get(t.Context(), me, build.ID); err != nil || now.State != process.Running {
		t.Errorf("then it is %s, %v", now.State, err)
	}
	p.writeStdin(t, build.ID, "\n")
	end := p.wait(t, build.ID)
	if got := p.output(t, build.ID, 0); got != "building\nbuild completed successfully\n" || end.Exit == nil || end.Exit.Code != 0 {
		t.Errorf("%q, %+v", got, end)
	}
}

func seen(t *testing.T, p *Fixture) {
	info := p.start(t, "echo kept")
	p.wait(t, info.ID)
	must(t, p.run().MarkSeen(t.Context(), me, info.ID))
	now, err := p.run().Get(t.Context(), me, info.ID)
	if err != nil || !now.Seen || now.Dropped {
		t.Errorf("%+v, %v", now, err)
	}
	if got := p.output(t, info.ID, 0); got != "kept\n" {
		t.Errorf("the output is %q", got)
	}
}

func followers(t *testing.T, p *Fixture) {
	info := p.start(t, "read x; seq 50000; read x", withStdin)
	want := numbers(50_000)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if got, _, err := p.follow(t.Context(), info.ID, 0, nil); got != want || err != nil {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
			}
		})
	}
	p.writeStdin(t, info.ID, "\n\n")
	all.Wait()
}
