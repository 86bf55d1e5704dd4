package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The stories of docs/HTTP.md do what the page says. Only the port is another one.
func TestHTTPStoriesAreAsPrinted(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	text, err := os.ReadFile("../../docs/HTTP.md")
	must(t, err)
	stories := regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(stories) < 5 || strings.Count(string(text), "```sh") != len(stories) {
		t.Fatalf("the page has %d stories with their output", len(stories))
	}
	script := "set -euo pipefail\ntrap 'kill %1; wait' EXIT\n"
	const ready = "do sleep 0.05; done\n"
	for i, s := range stories {
		s[1] = strings.Replace(s[1], "--http 127.0.0.1:7480", "--http 127.0.0.1:0", 1) // any free port
		if i == 0 {
			s[1] = strings.Replace(s[1], ready, ready+"PORT=$(sed -n 's/^HTTP on .*://p' served)\n", 1)
		}
		s[1], s[2] = strings.ReplaceAll(s[1], "7480", "$PORT"), strings.ReplaceAll(s[2], "7480", "…")
		script += s[1] + "echo '----'\n"
	}
	dir := t.TempDir()
	dropIgnoredSignals()
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "ABIDE_HOME="+filepath.Join(dir, "home"), "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=", "ABIDE_TOKEN=", "no_proxy=*", "GORACE="+noRaceSleep)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	printed := strings.Split(string(out), "----\n")
	for i, s := range stories {
		parts := strings.Split(s[2], "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		if !regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(printed[i]) {
			t.Errorf("%sprints\n%swant\n%s", s[1], printed[i], s[2])
		}
	}
}
