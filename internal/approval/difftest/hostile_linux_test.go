package difftest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
)

// TestHostileLinesAreNotAllowed judges the lines of hostile.txt, whose head describes them.
func TestHostileLinesAreNotAllowed(t *testing.T) {
	text, err := os.ReadFile("../testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	j, lines := newJudge(t, scope.Read), 0
	for _, dir := range []string{"/evil", "/outer/deep"} {
		if err := writeFile(j.in.Dir+dir+"/.git/HEAD", "ref: refs/heads/main\n"); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case line[0] == '#':
			continue
		case fields[0] == "rules":
			j.rules = event.PermissionRules{}
			if err := json.Unmarshal([]byte(fields[1]), &j.rules); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			continue
		}
		var command string
		if err := json.Unmarshal([]byte(fields[1]), &command); err != nil || len(fields) != 3 {
			t.Fatalf("%s: it has %d fields: %v", line, len(fields), err)
		}
		lines++
		checkHostile(t, j, command, fields[0], fields[2])
	}
	// A JSON string has no bytes that are not UTF-8.
	for _, command := range []string{"ls \xff", "ls '\xff'", "git\xa0status", "ls \xc3", "ls \"\xed\xa0\x80\"", "\xfels", "ls \xc0\xaf", "ls a\xf8b"} {
		lines++
		checkHostile(t, j, command, "ask", "bytes that are not UTF-8")
	}
	if lines < 170 {
		t.Errorf("there are only %d lines", lines)
	}
}

// checkHostile judges a line, which may be denied where it has to be asked about. A line
// that has to be allowed shows that its neighbours are asked about for the right reason.
func checkHostile(t *testing.T, j *judge, command, want, reason string) {
	t.Helper()
	got := j.decide(command, approval.AskAlways)
	if want == "allow" {
		if got.Verdict != approval.Grant {
			t.Errorf("%.200q gets verdict %d (%s), want allow: %s", command, got.Verdict, got.Reason, reason)
		}
		return
	}
	if got.Verdict == approval.Deny || got.Verdict == approval.Ask && want == "ask" {
		return
	}
	t.Errorf("%.200q gets verdict %d by %q (%s), want %s: %s", command, got.Verdict, got.Rules, got.Reason, want, reason)
}
