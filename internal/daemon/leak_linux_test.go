package daemon_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// descriptors are the files that this process has open, without those of the
// store, which opens a few more if it is read side by side.
func descriptors(t *testing.T) (list []string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range open {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.Contains(to, "/abide.db") { // the descriptor of the listing is closed by now
			list = append(list, to)
		}
	}
	return list
}

// children are the processes that this one has not waited for.
func children(t *testing.T) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lists {
		b, _ := os.ReadFile(path) // a thread may have ended
		for _, word := range bytes.Fields(b) {
			var pid int
			fmt.Sscan(string(word), &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// names counts the files of a folder by their names, without those that are
// folders.
func names(t *testing.T, dir string) map[string]int {
	t.Helper()
	found := make(map[string]int)
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found[e.Name()]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// standing is what a process has at a moment.
type standing struct {
	goroutines int
	files      []string
	names      map[string]int // names of files in the data folder
}

func look(t *testing.T, s *testDaemon) standing {
	t.Helper()
	return standing{runtime.NumGoroutine(), descriptors(t), names(t, s.config.Dir)}
}

const (
	turns, each = 5, 40 // commands one after the other
	side        = 50    // commands side by side
	slack       = 10    // allowance for parts that end a moment later, and for the reserve
)

func echo(turn, n int) rule {
	return call("bash", rule{"command": fmt.Sprintf("echo %d.%d", turn, n), "description": "Echo", "initial_wait": 60})
}

// manyCommands are the rules for all of them, and for a first one.
func manyCommands() []rule {
	rules := does("First", "Done.", one("bash", rule{"command": "echo first", "description": "Echo", "initial_wait": 60}))
	for turn := range turns {
		var steps [][]rule
		for n := range each {
			steps = append(steps, []rule{echo(turn, n)})
		}
		rules = append(rules, does(fmt.Sprint("Turn ", turn), "Done.", steps...)...)
	}
	var together []rule
	for n := range side {
		together = append(together, echo(turns, n))
	}
	return append(rules, does("Together", "Done.", together)...)
}

// manyResults checks what the model was told of all of them.
func manyResults(t *testing.T, req *model.Request) {
	t.Helper()
	at := 2 // the results follow that of the first call
	check := func(turn, n int) {
		if got, want := result(t, req, at), fmt.Sprintf("%d.%d\n<exited with exit code 0>", turn, n); got != want {
			t.Errorf("a call came to %q, want %q", got, want)
		}
		at++
	}
	for n := range turns * each {
		check(n/each, n%each)
	}
	for n := range side {
		check(turns, n)
	}
}

// While the daemon runs there is at most what ends in a moment; when it is
// closed there is nothing.
func TestManyCommandsLeaveNothingBehind(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	idle, others := descriptors(t), children(t) // earlier tests may have closed a daemon before its commands ended
	t.Run("while it runs", func(t *testing.T) {
		s := newTestDaemon(t)
		a := s.newSession("s", manyCommands()...).create()
		a.ask("First") // whatever is made once is made now
		a.must(api.Search, map[string]any{"text": "First"}, nil)
		before := look(t, s)
		for turn := range turns {
			a.ask(fmt.Sprint("Turn ", turn))
		}
		a.ask("Together")
		after := look(t, s)
		manyResults(t, a.model.requests()[len(a.model.requests())-1])
		if after.goroutines > before.goroutines+side+slack {
			t.Errorf("there are %d goroutines, before there were %d", after.goroutines, before.goroutines)
		}
		if len(after.files) > len(before.files)+side+slack {
			t.Errorf("%d files are open, before there were %d: %s", len(after.files), len(before.files), strings.Join(after.files, "\n"))
		}
		for name := range after.names {
			if before.names[name] == 0 {
				t.Errorf("commands leave files %s", name)
			}
		}
		if tasks := a.tasks(); len(tasks) != turns*each+side+1 {
			t.Errorf("there are %d commands, want %d", len(tasks), turns*each+side+1)
		}
		if n := a.count(event.SystemNotification); n > 0 {
			t.Errorf("the model was notified %d times of what it has read", n)
		}
	})
	left := slices.DeleteFunc(children(t), func(pid int) bool { return slices.Contains(others, pid) })
	if len(left) > 0 {
		t.Errorf("the processes %v were not waited for", left)
	}
	if now := descriptors(t); len(now) > len(idle) {
		t.Errorf("%d files are open, before there were %d: %s", len(now), len(idle), strings.Join(now, "\n"))
	}
	if left := names(t, temporary); len(left) > 0 {
		t.Errorf("there are temporary files: %v", left)
	}
}
