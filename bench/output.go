package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/floor"
	"github.com/abide-run/abide/bench/instant"
	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/keeper"
)

// A bigOutput is a command that prints a lot. Its output has a first and a last line that
// are looked for in what the model gets.
type bigOutput struct {
	name    string
	command string
	quota   int64 // bytes of output that the daemon keeps; its default if zero
}

const (
	gigabyte = 1 << 30
	first    = "this is the first line"
	last     = "this is the last line"
)

// bigOutputPairs is the number of pairs of blocks. It is larger than usual, because the
// time of a single block varies a lot.
const bigOutputPairs = 15

// printBetween returns a command that prints the output of another between two lines.
func printBetween(source string) string {
	return fmt.Sprintf("echo %s; %s; echo; echo %s", first, source, last)
}

var bigOutputs = []bigOutput{
	{"command: 1 GB in one line, all of it kept", printBetween(fmt.Sprintf("head -c %d /dev/zero", gigabyte)), gigabyte * 5 / 4},
	{"command: 1 GB in lines, all of it kept", printBetween(fmt.Sprintf("yes | head -c %d", gigabyte)), gigabyte * 5 / 4},
	{"command: 1 GB in one line, 64 MiB kept", printBetween(fmt.Sprintf("head -c %d /dev/zero", gigabyte)), 0},
}

// measureBigOutputs compares turns of the built program in which a command prints a
// gigabyte with the same command writing to a file through a pipe. Both commands have the
// same priority, which is lower than that of their readers. What the model gets is
// checked each time. The stored output and the memory are checked once, in a program
// that has run one small command before.
func measureBigOutputs(at place, only, abide string, pairs int) (err error) {
	defer stopping(&err)
	wanted := slices.DeleteFunc(slices.Clone(bigOutputs), func(f bigOutput) bool { return !strings.Contains(f.name, only) })
	if abide == "" || len(wanted) == 0 {
		return nil
	}
	fmt.Printf("\nturns of the built program with a command that prints, and the same command through one pipe to a file; the best; the middle one of %d\n", max(pairs, bigOutputPairs))
	t := compare.NewTable(os.Stdout, "command", "abide ms", "pipe ms", "ratio (1.3)", "daemon and keepers grow by (8 MiB)", "keeper, with what it shares", "kept")
	for _, f := range wanted {
		t.Row(f.measure(at, abide, pairs)...)
	}
	t.Print()
	return nil
}

func (f bigOutput) measure(at place, abide string, pairs int) []any {
	d := f.start(at, abide)
	defer d.stop()
	small := d.open()
	d.run(small, "echo hello")
	d.remove(small)
	weight := d.weigh(f)
	r := compare.Alternate(max(pairs, bigOutputPairs), d.side(f), f.pipe(at.dir))
	return []any{f.name, milliseconds(r.A.Wall()), milliseconds(r.B.Wall()), r.Wall(), mebibytes(weight.daemon + weight.private), mebibytes(weight.keeper), mebibytes(weight.kept)}
}

func milliseconds(s compare.Spread) string {
	return fmt.Sprintf("%.0f; %.0f", s.Min.Seconds()*1e3, s.Median.Seconds()*1e3)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// A testDaemon is the built program with a client.
type testDaemon struct {
	*child
	*caller
	home  string
	url   string // URL of the model
	turns int
}

// start starts the built program with the quota of the measurement.
func (f bigOutput) start(at place, abide string) *testDaemon {
	b := binary{abide, got(os.MkdirTemp(at.dir, "output-"))}
	home := filepath.Join(b.dir, "home")
	must(os.Mkdir(home, 0o700))
	if f.quota > 0 {
		must(os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "[commands]\noutput_bytes = %d\n", f.quota), 0o600))
	}
	p := got(b.start("home"))
	return &testDaemon{child: p, caller: got(dial(p.port)), home: home, url: at.url}
}

func (d *testDaemon) stop() {
	_ = d.caller.Close()
	d.child.stop()
}

// open creates a session that may run every command.
func (d *testDaemon) open() event.SessionID {
	d.turns++
	id := event.SessionID(fmt.Sprintf("output-%d", d.turns))
	must(d.Call(context.Background(), api.SessionCreate, api.OpenParams{
		SessionID: id, Model: "instant", Streaming: true, WorkingDirectory: d.home,
		Provider: &api.Provider{BaseURL: d.url, APIKey: "bench"}, Abide: &api.OpenAbide{Approve: approval.All},
	}, nil))
	return id
}

// remove deletes a session with the output of its commands.
func (d *testDaemon) remove(id event.SessionID) {
	must(d.Call(context.Background(), api.SessionDelete, api.SessionParams{SessionID: id}, nil))
}

// run lets the model run a command, and returns the result that the model got.
func (d *testDaemon) run(id event.SessionID, run instant.Run) string {
	must(d.Call(context.Background(), api.SessionSend, api.SendParams{SessionID: id, Prompt: run.String()}, nil))
	<-d.idle
	select {
	case done := <-d.done:
		if !done.Success {
			must(fmt.Errorf("%s: %+v", run, done.Error))
		}
		return done.Result.Content
	default:
		must(fmt.Errorf("the model called nothing when it was to run %s", run))
		return ""
	}
}

// side returns the side that runs a turn with the command.
func (d *testDaemon) side(f bigOutput) compare.Side {
	var id event.SessionID
	return compare.Side{
		Before: func() { id = d.open() },
		Block: func() int {
			must(checkEnds(d.run(id, instant.Run(f.command))))
			return 1
		},
		After: func() { d.remove(id) },
	}
}

// checkEnds returns an error unless the text contains the first and the last line, and
// little else.
func checkEnds(text string) error {
	const most = process.MaxHeadBytes + process.MaxTailBytes + 1024
	if !strings.HasPrefix(text, first+"\n") || !strings.Contains(text, "\n"+last+"\n") || !strings.Contains(text, "[omitted ") || len(text) > most {
		return fmt.Errorf("the model got %d bytes: %.100q … %q", len(text), text, text[max(0, len(text)-200):])
	}
	return nil
}

// pipe returns the side that writes the output of the command to a file through a pipe.
func (f bigOutput) pipe(dir string) compare.Side {
	file := filepath.Join(dir, "piped")
	return compare.Side{
		Block: func() int { must(f.pipeTo(file)); return 1 },
		After: func() { must(os.Remove(file)) },
	}
}

func (f bigOutput) pipeTo(file string) error {
	return exec.Command(shell(), "-c", fmt.Sprintf("nice -n %d %s -c '%s' | cat >%s", floor.Nice, shell(), f.command, file)).Run()
}

// A weight is the memory and disk space that the command takes, in bytes.
type weight struct {
	daemon  int64 // largest growth of the daemon's resident memory
	keeper  int64 // largest resident memory of the keeper, including what it shares with the daemon
	private int64 // largest private memory of all keepers, including the one for the next command
	kept    int64 // output that is stored
}

// weigh runs the command and measures memory and stored output.
func (d *testDaemon) weigh(f bigOutput) (w weight) {
	id := d.open()
	defer d.remove(id)
	daemon := d.pid()
	must(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", daemon), []byte("5"), 0)) // resets the peak
	before := got(memory(daemon, "status", "VmRSS"))
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { w.keeper, w.private = watchKeepers(daemon, over) })
	text := d.run(id, instant.Run(f.command))
	close(over)
	watching.Wait()
	must(checkEnds(text))
	w.daemon = got(memory(daemon, "status", "VmHWM")) - before
	w.kept = got(d.checkLog(f))
	return w
}

// watchKeepers polls the memory of the keepers of a daemon until over is closed. It
// returns the largest resident memory of one keeper, and the largest private memory of
// all.
func watchKeepers(daemon int, over chan struct{}) (resident, private int64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var sum int64
		for _, child := range children(daemon) {
			if !isKeeper(child) {
				continue
			}
			// A process that has just ended has none.
			r, _ := memory(child, "status", "VmHWM")
			p, _ := memory(child, "smaps_rollup", "Private_Clean", "Private_Dirty")
			resident, sum = max(resident, r), sum+p
		}
		private = max(private, sum)
		select {
		case <-tick.C:
		case <-over:
			return resident, private
		}
	}
}

// isKeeper reports whether a child of the daemon runs the keeper already. Between fork and
// exec it still has the memory of the daemon.
func isKeeper(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.HasPrefix(string(line), keeper.Name)
}

// checkLog checks that the stored output of the only process is what it printed, and
// returns its size.
func (d *testDaemon) checkLog(f bigOutput) (kept int64, err error) {
	files, err := filepath.Glob(filepath.Join(d.home, "processes", "*", "out.*"))
	if err != nil {
		return 0, err
	}
	printed := filepath.Join(d.home, "printed")
	if err := f.pipeTo(printed); err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(printed) }()
	for _, file := range files {
		var offset int64
		if _, err := fmt.Sscanf(filepath.Base(file), "out.%x", &offset); err != nil {
			return 0, err
		}
		n, err := isPart(file, printed, offset)
		if err != nil {
			return 0, err
		}
		kept += n
	}
	info, err := os.Stat(printed)
	if err != nil {
		return 0, err
	}
	if whole := info.Size(); f.quota > 0 && kept != whole || f.quota == 0 && kept > 64<<20 {
		return 0, fmt.Errorf("%d bytes of %d were kept", kept, whole)
	}
	return kept, nil
}

// isPart checks that the content of a file is the same as that of another from an offset
// on, and returns its size.
func isPart(file, of string, offset int64) (size int64, err error) {
	a, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := os.Open(of)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if _, err := b.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	var x, y [256 << 10]byte
	for {
		n, err := io.ReadFull(a, x[:])
		if n > 0 {
			if _, err := io.ReadFull(b, y[:n]); err != nil || !bytes.Equal(x[:n], y[:n]) {
				return 0, fmt.Errorf("%s differs from what was printed after %d bytes, err = %v", file, size, err)
			}
			size += int64(n)
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return size, nil
		default:
			return 0, err
		}
	}
}
