package approval_test

import (
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

func TestJudge(t *testing.T) {
	read := func(path string) approval.Request { return approval.Request{Kind: approval.Read, Path: path} }
	grants := []event.Grant{{Kind: approval.Shell, Subject: "git"}, {Kind: approval.URL}}
	for _, test := range []struct {
		name    string
		rules   string
		request approval.Request
		want    approval.Verdict
	}{
		{"nothing is allowed by itself", approval.AskAlways, read("/w/a"), approval.Ask},
		{"inside", approval.Workspace, read("/w/a/b"), approval.Allow},
		{"the folder itself", approval.Workspace, read("/w"), approval.Allow},
		{"write inside", approval.Workspace, approval.Request{Kind: approval.Write, Path: "/w/a"}, approval.Allow},
		{"outside", approval.Workspace, read("/etc/passwd"), approval.Ask},
		{"out by dots", approval.Workspace, read("/w/../etc/passwd"), approval.Ask},
		{"a name that only begins alike", approval.Workspace, read("/work"), approval.Ask},
		{"a name that begins with dots", approval.Workspace, read("/w/..x"), approval.Allow},
		{"relative", approval.Workspace, read("a"), approval.Ask},
		{"no path", approval.Workspace, read(""), approval.Ask},
		{"a command", approval.Workspace, approval.Request{Kind: approval.Shell, Subject: "rm"}, approval.Ask},
		{"a granted command", approval.Workspace, approval.Request{Kind: approval.Shell, Subject: "git"}, approval.Allow},
		{"a granted kind", approval.AskAlways, approval.Request{Kind: approval.URL, Subject: "any"}, approval.Allow},
		{"everything", approval.All, approval.Request{Kind: approval.Shell, Subject: "rm"}, approval.Allow},
	} {
		if got := approval.Judge(test.rules, "/w", grants, &test.request); got != test.want {
			t.Errorf("%s: verdict = %v, want %v", test.name, got, test.want)
		}
	}
}
