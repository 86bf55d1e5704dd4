package killtest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// runUntilDiskFull drives a victim until its disk is full and it ends by itself. It
// returns the error that the client got, if it was waiting for an answer, and the
// last line of the victim's standard error.
func (r *run) runUntilDiskFull(s stop) (told, said string, err error) {
	p := r.start(s)
	c, err := r.drive(p)
	defer c.close()
	var refusal *jsonrpc.Error
	switch {
	case errors.As(err, &refusal):
		told = refusal.Message
	case err == nil:
		return "", "", r.describe(p, errors.New("the disk was full, and nobody noticed"))
	case !errors.Is(err, errDied):
		return "", "", r.describe(p, err)
	}
	if err := r.await(p); err != nil {
		return told, "", r.describe(p, err)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 1 {
		return told, "", p.endError("it should have failed with 1")
	}
	lines := strings.Split(strings.TrimSpace(p.stderrText()), "\n")
	return told, lines[len(lines)-1], nil
}

// isAwaited reports whether a client waits until a write is stored.
func (r report) isAwaited() bool {
	return len(r.Events) == 0 || slices.ContainsFunc(r.Events, func(kind event.Type) bool {
		return kind == event.SessionStart || kind == event.InputAccepted || kind == event.PermissionDone || kind == event.ExternalDone
	})
}

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	t.Log("no file can grow (RLIMIT_FSIZE) stands for a full disk: to fill one takes a file system of its own")
	wanted := func(s scenario, source string) bool {
		return source == "scripted" && (s.name == "tools" || s.name == "permission" || s.name == "steered")
	}
	forEachSource(t, wanted, func(t *testing.T, s scenario, source string, calm outcome) {
		for _, write := range calm.writes {
			t.Run(strconv.Itoa(write.Write), func(t *testing.T) {
				t.Parallel()
				t.Logf("the write stores %v", write.Events)
				w := modelSources[source](t, s)
				r := newRun(t, s.conversation(w))
				told, said, err := r.runUntilDiskFull(stop{write.Write, full})
				if err != nil {
					t.Fatal(err)
				}
				const sentence = "the disk reports an error: check the disk and its quota"
				if (told != "" || write.isAwaited()) && !strings.Contains(told, sentence) {
					t.Errorf("the client was told %q, want %q in it", told, sentence)
				}
				if !strings.HasPrefix(said, "abide: ") || !strings.Contains(said, sentence) {
					t.Errorf("the victim's last words were %q, want %q in them", said, sentence)
				}
				judgeRun(t, w, r.play(), calm.expected())
			})
		}
	})
}
