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

// runDry drives a victim until its disk is full and it ends by itself. It
// returns what the client was told, if it was waiting for an answer, and the
// victim's last words.
func (r *run) runDry(s stop) (told, said string, err error) {
	p := r.start(s)
	c, err := r.drive(p)
	defer c.close()
	var refusal *jsonrpc.Error
	switch {
	case errors.As(err, &refusal):
		told = refusal.Message
	case err == nil:
		return "", "", r.stuck(p, errors.New("the disk was full, and nobody noticed"))
	case !errors.Is(err, errDied):
		return "", "", r.stuck(p, err)
	}
	if err := r.await(p); err != nil {
		return told, "", r.stuck(p, err)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 1 {
		return told, "", p.ended("it should have failed with 1")
	}
	lines := strings.Split(strings.TrimSpace(p.said()), "\n")
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
	wanted := func(s scenario, world string) bool {
		return world == "scripted" && (s.name == "tools" || s.name == "permission" || s.name == "steered")
	}
	everywhere(t, wanted, func(t *testing.T, s scenario, world string, calm outcome) {
		for _, write := range calm.writes {
			t.Run(strconv.Itoa(write.Write), func(t *testing.T) {
				t.Parallel()
				t.Logf("the write stores %v", write.Events)
				w := worlds[world](t, s)
				r := newRun(t, s.talk(w))
				told, said, err := r.runDry(stop{write.Write, full})
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
				judgeRun(t, w, r.play(), calm.words())
			})
		}
	})
}
