package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// Files that are attached are those of the workspace of the session, and local: names one of the
// machine at which the person sits.
func TestAttachedFilesAreThoseOfTheWorkspace(t *testing.T) {
	e := newElsewhere(t)
	src := filepath.Join(e.there, "src")
	must(t, os.WriteFile(filepath.Join(src, "notes.txt"), []byte("written there"), 0o600))
	must(t, os.WriteFile(filepath.Join(e.dir, "notes.txt"), []byte("written here"), 0o600))
	must(t, os.WriteFile(filepath.Join(src, "zeros"), []byte{0, 1}, 0o600))
	must(t, os.Symlink("loop", filepath.Join(src, "loop")))
	must(t, os.Mkdir(filepath.Join(src, "folder"), 0o700))
	large, err := os.Create(filepath.Join(src, "large"))
	must(t, err)
	must(t, large.Truncate(5<<30))
	must(t, large.Close())
	if out := e.answer("--workspace", "box", "--attach", "notes.txt", "--attach", "local:notes.txt", "Reply with exactly: IT IS"); !strings.Contains(out, "written there") || !strings.Contains(out, "written here") {
		t.Errorf("the model was given %q", out)
	}
	id := string(e.last())
	if out := e.answer("--resume", id, "--attach", filepath.Join(src, "notes.txt"), "Reply with exactly: AGAIN"); !strings.Contains(out, "written there") {
		t.Errorf("the model was given %q", out)
	}
	for name, why := range map[string]string{
		"none":   "none: there is no such file in the workspace of the session",
		"zeros":  "zeros: it is neither an image",
		"loop":   "loop: ",
		"folder": "folder: it is a folder",
		"large":  "large: it has more than 16 MiB",
	} {
		if out, stderr, code := e.run("--resume", id, "--attach", name, "Reply with exactly: NO"); code != 2 || !strings.Contains(stderr, "abide: "+why) || out != "" {
			t.Errorf("%s: exit code %d, %s, %s", name, code, out, stderr)
		}
	}
	c := e.engine()
	defer c.stop()
	list, err := c.client.List(t.Context(), "")
	must(t, err)
	accepted := 0
	for ev, err := range c.client.Events(t.Context(), list[0].SessionID, 0) {
		must(t, err)
		if ev.Type != event.InputAccepted {
			continue
		}
		accepted++
		d, err := event.As[event.InputAcceptedData](ev)
		must(t, err)
		for _, raw := range d.Attachments {
			if !strings.Contains(string(raw), `"type":"blob"`) {
				t.Errorf("stored is %s", raw)
			}
		}
	}
	if accepted != 2 || len(list) != 1 || list[0].Abide.Workspace == nil {
		t.Errorf("%d messages in %+v", accepted, list)
	}
}
