package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// victimVariable names the store of a process that is killed by a test.
const victimVariable = "SQLITE_TEST_VICTIM"

// runVictim deletes every second session, which makes the file smaller in the background,
// and then compacts it again and again. It prints a line for each step.
func runVictim(path string) {
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < victimSessions; i += 2 {
		if err := s.Delete(context.Background(), sessionName(i)); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(sessionName(i))
	}
	for {
		fmt.Println("compact")
		if err := s.Compact(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
	}
}

const victimSessions = 200

func TestAProcessThatIsKilledWhileItMakesTheFileSmallerLosesNothing(t *testing.T) {
	for _, lines := range []int{1, 99, 100, 102} {
		t.Run(fmt.Sprint("after ", lines, " lines"), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "abide.db")
			s := openUnsynced(t, path)
			addSessions(t, s, victimSessions)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			deleted := killAfter(t, path, lines)
			s = open(t, path)
			for i := range victimSessions {
				id := sessionName(i)
				_, err := read(t, s, id)
				switch {
				case slices.Contains(deleted, id) && !errors.Is(err, eventlog.ErrNotFound):
					t.Errorf("session %s was deleted, and reading it: %v", id, err)
				case !slices.Contains(deleted, id) && err != nil && (i%2 != 0 || !errors.Is(err, eventlog.ErrNotFound)):
					t.Errorf("session %s: %v", id, err)
				}
			}
			checkPages(t, path)
		})
	}
}

// killAfter runs a victim, kills it after it has printed some lines, and returns the
// sessions that it has deleted until then.
func killAfter(t *testing.T, path string, lines int) (deleted []event.SessionID) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), victimVariable+"="+path)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewScanner(out)
	for range lines {
		if !printed.Scan() {
			t.Fatal("the process ended by itself")
		}
		if id, is := strings.CutPrefix(printed.Text(), "s"); is {
			deleted = append(deleted, event.SessionID("s"+id))
		} else if printed.Text() != "compact" {
			t.Fatal(printed.Text())
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait() // it was killed
	return deleted
}
