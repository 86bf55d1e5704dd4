package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace/local"
)

// measureCommands runs the measurements of commands.
func measureCommands(at place, only, abide string, pairs int) error {
	return errors.Join(measureStarts(at, only, pairs), measureSandbox(at, only, pairs), measureManyCommands(at, only), measureBigOutputs(at, only, abide, pairs))
}

// shell returns the shell that all contenders use: the same as the daemon.
func shell() string {
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// commandsOf returns our tools for commands with a manager of processes.
func commandsOf(m *process.Manager, dir string) *bash.Commands {
	return commandsIn(local.New(dir, m).Processes, dir)
}

// commandsIn returns our tools for commands in a workspace. The folder is for their notes.
func commandsIn(in bash.Processes, dir string) *bash.Commands {
	return bash.New(bash.Options{
		Processes: in,
		Notes: func(id event.SessionID) (string, error) {
			notes := filepath.Join(dir, "notes", string(id))
			return notes, os.MkdirAll(notes, 0o700)
		},
	})
}

// owner is the owner of all processes that do not belong to a session.
const owner = process.Owner("bench")

// A starter starts commands that do nothing, each with a new key.
type starter struct {
	dir     string
	manager *process.Manager // nil until it is opened
	last    process.ID
	n       int
	sandbox *sandbox.Sandbox // nil if its commands are not confined
	dirOf   string           // folder of its commands; "/" if empty
	shell   string           // shell of its commands; that of the manager if empty
}

func (s *starter) open() {
	if s.manager == nil {
		s.manager = got(process.Open(s.dir, process.Options{Sandbox: s.sandbox, Shell: s.shell}))
	}
}

func (s *starter) close() {
	if s.manager != nil {
		must(s.manager.Close())
		s.manager = nil
	}
}

func (s *starter) start(command string) process.Info {
	s.n++
	info, _, err := s.manager.Start(context.Background(), process.Spec{Key: fmt.Sprint(time.Now(), s.n), Owner: owner, Command: command, Dir: cmp.Or(s.dirOf, "/")})
	must(err)
	s.last = info.ID
	return info
}

func (s *starter) end() process.Info {
	return got(s.manager.WaitGone(context.Background(), owner, s.last))
}

// startRows are the rows of the table of starts: which start, and until when it is
// measured. The first start of a daemon finds no prepared keeper.
var startRows = []struct {
	name string
	side func(*starter) compare.Side
}{
	{"command: a start, until it runs", func(s *starter) compare.Side {
		return compare.Side{Before: s.open, Block: func() int { s.start("true"); return 1 }, After: func() { s.end() }}
	}},
	{"command: a start, until nothing is left", func(s *starter) compare.Side {
		return compare.Side{Before: s.open, Block: func() int { s.start("true"); s.end(); return 1 }}
	}},
	{"command: the first start of a daemon, until it runs", func(s *starter) compare.Side {
		return compare.Side{
			Before: func() { s.close(); s.open() }, Block: func() int { s.start("true"); return 1 }, After: func() { s.end() },
		}
	}},
}

// measureStarts compares a command that does nothing with a shell that does nothing.
func measureStarts(at place, only string, pairs int) (err error) {
	defer stopping(&err)
	t := compare.NewTable(os.Stdout, "command", "ours µs", "sh -c true µs", "ratio (5)")
	rows := 0
	for _, row := range startRows {
		if !strings.Contains(row.name, only) {
			continue
		}
		rows++
		s := &starter{dir: filepath.Join(at.dir, fmt.Sprint("starts-", rows))}
		bare := compare.Side{Block: func() int { must(exec.Command("/bin/sh", "-c", "true").Run()); return 1 }}
		r := compare.Alternate(max(pairs, 100), row.side(s), bare)
		s.close()
		t.Row(row.name, r.A.Wall(), r.B.Wall(), r.Wall())
	}
	if rows > 0 {
		fmt.Println("\nstarts through the process manager and fork, exec and wait; the best start; the middle one of", max(pairs, 100))
		t.Print()
	}
	if strings.Contains(keeperRow, only) {
		weighKeeper(at)
	}
	return nil
}

const (
	sandboxRow = "command: bash -c true in the sandbox"
	buildRow   = "command: a build of this project in the sandbox"
)

// measureSandbox compares confined commands with ones that are not confined: one that does
// nothing, and a build of this project after a change.
func measureSandbox(at place, only string, pairs int) (err error) {
	defer stopping(&err)
	if !strings.Contains(sandboxRow, only) && !strings.Contains(buildRow, only) {
		return nil
	}
	if sandbox.Kernel() == 0 {
		fmt.Println("commands in the sandbox: not measured, because this kernel has no Landlock")
		return nil
	}
	t := compare.NewTable(os.Stdout, "command", "confined µs", "free µs", "ratio (1.2, of a build 1.1)")
	if strings.Contains(sandboxRow, only) {
		r := compareConfined(at.below("nothing"), "true", nil, func(int) {}, max(pairs, 100))
		t.Row(sandboxRow, r.A.Wall(), r.B.Wall(), r.Wall())
	}
	if strings.Contains(buildRow, only) {
		if r, err := compareBuilds(at.below("build"), pairs); err != nil {
			fmt.Println(buildRow+": not measured, because", err)
		} else {
			t.Row(buildRow, r.A.Wall(), r.B.Wall(), r.Wall())
		}
	}
	t.Print()
	return nil
}

// compareConfined compares a command in the sandbox with the same one without it. The function
// before prepares the command with the given number in the folder of both.
func compareConfined(at place, command string, writable []string, before func(int), pairs int) compare.Result {
	work := filepath.Join(at.dir, "work")
	must(os.MkdirAll(work, 0o700))
	home, _ := os.UserHomeDir()
	confined := sandbox.Open(sandbox.Options{
		Hidden: []string{filepath.Join(home, ".local/share/abide")}, Cache: filepath.Join(at.dir, "caches"), Home: home, Writable: writable,
	})
	defer confined.Close()
	n := 0
	run := func(s *starter) compare.Side {
		return compare.Side{
			Before: func() { s.open(); n++; before(n) },
			Block: func() int {
				s.start(command)
				if info := s.end(); info.Exit == nil || info.Exit.Code != 0 {
					must(fmt.Errorf("%s: it ended with %+v", command, info.Exit))
				}
				return 1
			},
		}
	}
	ours := &starter{dir: filepath.Join(at.dir, "confined"), sandbox: confined, dirOf: work, shell: shell()}
	free := &starter{dir: filepath.Join(at.dir, "free"), dirOf: work, shell: shell()}
	defer ours.close()
	defer free.close()
	return compare.Alternate(pairs, run(ours), run(free))
}

// compareBuilds compares builds of a copy of this project, of which a package near the top has
// changed: it and those that use it are compiled, and the program is linked. Both sides have
// the compiled packages of the user, so that neither compiles the rest.
func compareBuilds(at place, pairs int) (compare.Result, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/abide-run/abide").Output()
	if err != nil {
		return compare.Result{}, fmt.Errorf("the sources are not here: %w", err)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return compare.Result{}, err
	}
	from, work, built := strings.TrimSpace(string(out)), filepath.Join(at.dir, "work"), strings.TrimSpace(string(cache))
	for _, dir := range []string{"cmd", "docs", "internal"} {
		must(os.CopyFS(filepath.Join(work, dir), os.DirFS(filepath.Join(from, dir))))
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		must(os.WriteFile(filepath.Join(work, name), got(os.ReadFile(filepath.Join(from, name))), 0o600))
	}
	change := func(n int) {
		text := fmt.Sprintf("package cli\n\nconst Change = \"%v %d\"\n", time.Now(), n)
		must(os.WriteFile(filepath.Join(work, "internal/cli/change.go"), []byte(text), 0o600))
	}
	return compareConfined(at, "GOCACHE='"+built+"' go build -o abide ./cmd/abide", []string{built}, change, pairs), nil
}

const keeperRow = "command: memory of a keeper"

// weighKeeper prints the private memory of a keeper.
func weighKeeper(at place) {
	s := &starter{dir: filepath.Join(at.dir, "weighed")}
	s.open()
	defer s.close()
	info := s.start("sleep 100")
	private := got(memory(got(parent(info.PID)), "smaps_rollup", "Private_Clean", "Private_Dirty"))
	fmt.Printf("%s: %.2f MB are private (2 MB)\n", keeperRow, float64(private)/1e6)
	got(s.manager.Stop(context.Background(), owner, info.ID))
}

// measureManyCommands measures many commands with the bash tool.
func measureManyCommands(at place, only string) (err error) {
	defer stopping(&err)
	for _, row := range []struct {
		name     string
		n        int
		together bool
	}{{"command: 1000 one after the other", 1000, false}, {"command: 200 at once", 200, true}} {
		if strings.Contains(row.name, only) {
			took := runMany(at.below(strings.ReplaceAll(row.name, " ", "-")), row.n, row.together)
			fmt.Printf("%s: %.2f s, %.2f ms each; no descriptor, goroutine, process or temporary file is left\n", row.name, took.Seconds(), took.Seconds()*1e3/float64(row.n))
		}
	}
	return nil
}

// runMany runs commands and checks that nothing is left of them, neither while their
// manager is open nor after it was closed.
func runMany(at place, n int, together bool) time.Duration {
	before := count()
	m := got(process.Open(filepath.Join(at.dir, "processes"), process.Options{Shell: shell(), MaxRunning: n, MaxDisk: 1 << 40}))
	run := commandsOf(m, at.dir).Tools()[0]
	must(echo(run, 0))
	open := prepared()
	start := time.Now()
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = echo(run, i+1) })
		if !together {
			all.Wait()
		}
	}
	all.Wait()
	took := time.Since(start)
	must(errors.Join(errs...))
	must(open.again())
	must(temporary(filepath.Join(at.dir, "processes"), n+1, process.SpareDirs))
	must(m.Abandon(context.Background(), owner))
	must(temporary(filepath.Join(at.dir, "processes"), 0, process.SpareDirs))
	must(m.Close())
	must(temporary(filepath.Join(at.dir, "processes"), 0, 0))
	must(before.again())
	return took
}

// echo runs a command with the bash tool.
func echo(run tool.Tool, n int) error {
	words := fmt.Sprintf("hello %d", n)
	arguments := got(json.Marshal(map[string]any{"command": "echo " + words, "description": "bench", "initial_wait": 600}))
	r, err := run.Run(context.Background(), tool.Call{Session: event.SessionID(owner), Key: fmt.Sprint(n), Arguments: arguments, Dir: "/"})
	if err == nil && (r.Failed || !strings.HasPrefix(r.Text, words+"\n")) {
		err = fmt.Errorf("echo %s gave %q", words, r.Text)
	}
	return err
}

// A leftovers counts the resources that commands could leave behind.
type leftovers struct{ descriptors, goroutines, children int }

func count() leftovers {
	open := got(os.ReadDir("/proc/self/fd"))
	return leftovers{len(open), runtime.NumGoroutine(), len(children(os.Getpid()))}
}

// openFiles names the files that this process has open.
func openFiles() (names []string) {
	for _, fd := range got(os.ReadDir("/proc/self/fd")) {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// prepared counts the resources that exist after the first command: a prepared keeper and
// prepared folders, which may not be complete yet.
func prepared() leftovers {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if now := count(); now.children == 1 || time.Now().After(deadline) {
			now.goroutines++                         // the goroutine that prepares them may still run
			now.descriptors += 3 * process.SpareDirs // those of the folders, if they do not exist yet
			return now
		}
	}
}

// again checks that there are no more resources than counted before. It waits for those
// that are about to be released, also on a disk that takes its time.
func (t leftovers) again() error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		now := count()
		if now.descriptors <= t.descriptors && now.goroutines <= t.goroutines && now.children <= t.children {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("something is left of the commands: %+v, and before it was %+v; open are %q", now, t, openFiles())
		}
	}
}

// temporary checks that a folder contains n processes, each with the files of a process and
// nothing else, and at most reserve prepared folders.
func temporary(dir string, n, reserve int) error {
	processes, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	processes = slices.DeleteFunc(processes, func(p os.DirEntry) bool { return p.Name() == "lock" })
	all := len(processes)
	processes = slices.DeleteFunc(processes, func(p os.DirEntry) bool { return strings.HasPrefix(p.Name(), "new.") })
	if len(processes) != n || all-n > reserve {
		return fmt.Errorf("%s has %d processes, not %d, and %d folders in reserve", dir, len(processes), n, all-len(processes))
	}
	for _, p := range processes {
		files, err := os.ReadDir(filepath.Join(dir, p.Name()))
		if err != nil {
			return err
		}
		for _, f := range files {
			switch name, _, _ := strings.Cut(f.Name(), "."); {
			case f.Name() == "spec", f.Name() == "claim", f.Name() == "state", name == "out", name == "idx":
			default:
				return fmt.Errorf("%s is left of process %s", f.Name(), p.Name())
			}
		}
	}
	return nil
}
