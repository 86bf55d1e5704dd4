package rpc

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/session"
)

// named finds the methods that a table of docs/SDK.md names, under a heading.
func named(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/SDK.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/SDK.md has no %q", heading)
	}
	part, _, _ = strings.Cut(part, "\n#")
	var names []string
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`([\\w.]+)`").FindAllStringSubmatch(cells[2], -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

func TestTheTableOfMethodsIsTrue(t *testing.T) {
	works := map[string]bool{api.Connect: true}
	for name := range methods {
		if _, none := truths[name]; !none {
			works[name] = true
		}
	}
	for heading, want := range map[string][]string{
		"### What works":       slices.Sorted(maps.Keys(works)),
		"### What is not here": slices.Sorted(maps.Keys(truths)),
	} {
		got := named(t, heading)
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("docs/SDK.md, %q: %s is missing: add it to a row of the table", heading, name)
			}
		}
		for i, name := range got {
			switch {
			case i > 0 && got[i-1] == name:
				t.Errorf("docs/SDK.md, %q: it has %s twice", heading, name)
			case !slices.Contains(want, name):
				t.Errorf("docs/SDK.md, %q: no file of internal/server/rpc registers %s: add it to the register of its file", heading, name)
			}
		}
	}
}

// Whatever is asked about a session, the answer says that it was not named.
func TestASessionThatIsNotNamedIsMissing(t *testing.T) {
	host := session.New(eventlog.NewMemory(), session.Options{})
	defer host.Close()
	srv := New(host, Options{Workspace: nil})
	for name, m := range methods {
		if !strings.HasPrefix(name, "session.") || !scoped(name) {
			continue
		}
		for _, params := range []string{`{}`, `{"sessionId":""}`, `{"sessionId":7}`} {
			c := &conn{server: srv, serving: t.Context()}
			c.rpc, _ = jsonrpc.Pair(jsonrpc.Options{}, jsonrpc.Options{})
			_, err := m(c, context.Background(), &jsonrpc.Request{Method: name, Params: []byte(params)})
			if err == nil {
				t.Errorf("%s %s is no error", name, params)
				continue
			}
			if text := c.wireError(name, err).Error(); !strings.Contains(text, ": it is") && !strings.Contains(text, ": want") {
				t.Errorf("%s %s: %s", name, params, text)
			}
		}
	}
}
