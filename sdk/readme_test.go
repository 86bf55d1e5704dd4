package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePrograms: the complete programs of docs/SDK.md print the answer.
func TestThePrograms(t *testing.T) {
	text, err := os.ReadFile("../docs/SDK.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## Complete programs\n")
	part, _, _ = strings.Cut(part, "\n## ")
	programs := make(map[string]string)
	for _, b := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)\n```").FindAllStringSubmatch(part, -1) {
		programs[b[1]] = b[2] + "\n"
	}
	if len(programs) != 3 {
		t.Fatalf("the page has %d programs", len(programs))
	}
	for language, run := range map[string]func(t *testing.T) (dir, file string, command []string){
		"go": func(t *testing.T) (string, string, []string) {
			file := filepath.Join(t.TempDir(), "main.go")
			return ".", file, []string{"go", "run", file} // with the SDK that this module has
		},
		"ts": func(t *testing.T) (string, string, []string) {
			dir := installNode(t)
			return dir, filepath.Join(dir, "program.mjs"), []string{"node", "program.mjs"} // it has no types
		},
		"python": func(t *testing.T) (string, string, []string) {
			if exec.Command("python3", "-c", "import copilot.session").Run() != nil {
				t.Skip("skipped: github-copilot-sdk is not installed for python3")
			}
			file := filepath.Join(t.TempDir(), "program.py")
			return ".", file, []string{"python3", file}
		},
	} {
		t.Run(language, func(t *testing.T) {
			h := newHome(t, worlds["offline"](t))
			dir, file, command := run(t)
			h.must(os.WriteFile(file, []byte(programs[language]), 0o600))
			c := exec.CommandContext(h.ctx, command[0], command[1:]...)
			c.Dir = dir
			c.Env = append(os.Environ(), "COPILOT_CLI_PATH="+abide, "COPILOT_HOME="+h.dir, "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=")
			var said strings.Builder
			c.Stderr = &said
			if out, err := c.Output(); err != nil || string(out) != "HELLO\n" {
				t.Errorf("%v: it prints %q\n%s", err, out, &said)
			}
		})
	}
}
