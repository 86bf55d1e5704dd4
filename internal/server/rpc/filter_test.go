package rpc_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/server/rpc"
)

// cloned makes a folder that git knows, with a branch and an origin.
func cloned(t *testing.T, branch, origin string) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", branch}, {"remote", "add", "origin", origin}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

func TestSessionsAreFoundByRepositoryAndBranch(t *testing.T) {
	p := newWired(t).connect(rpc.Door{})
	said(t, p, map[string]string{
		"https": cloned(t, "main", "https://user@github.com/Acme/tool.git"),
		"ssh":   cloned(t, "next", "git@github.com:acme/tool.git"),
		"url":   cloned(t, "next", "ssh://git@host:22/acme/other/"),
		"local": cloned(t, "main", "/srv/acme/tool"),
		"none":  t.TempDir(),
	})
	for _, test := range []struct {
		filter object
		want   string
	}{
		{object{"repository": "acme/tool"}, "https ssh"},
		{object{"repository": "acme/other"}, "url"},
		{object{"branch": "next"}, "ssh url"},
		{object{"repository": "acme/tool", "branch": "next"}, "ssh"},
		{object{"repository": "acme/tool", "branch": "gone"}, ""},
		{object{"repository": "/srv/acme/tool"}, ""},
	} {
		for _, method := range []string{api.SessionList, api.SessionsList} {
			var r api.ListResult
			p.must(method, object{"filter": test.filter}, &r)
			var list []string
			for _, s := range r.Sessions {
				list = append(list, string(s.SessionID))
			}
			slices.Sort(list)
			if got := strings.Join(list, " "); got != test.want {
				t.Errorf("%s with %v: %q, want %q", method, test.filter, got, test.want)
			}
		}
	}
}

func TestAForkThatCannotBeSaysWhyInTheWordsThatClientsLookFor(t *testing.T) {
	p := newWired(t).connect(rpc.Door{})
	said(t, p, map[string]string{"s": t.TempDir()})
	for _, test := range []struct {
		params object
		want   string
	}{
		{object{"sessionId": "nope"}, "Session nope not found or has no persisted events"},
		{object{"sessionId": "nope", "toEventId": "x"}, "Session nope not found or has no persisted events"},
		{object{"sessionId": "s", "toEventId": "x"}, "Event x not found"},
	} {
		if fault := p.refused(api.SessionsFork, test.params); !strings.Contains(fault.Message, test.want) {
			t.Errorf("%v: %q, want %q", test.params, fault.Message, test.want)
		}
	}
}
