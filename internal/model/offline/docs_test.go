package offline_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheManualsInstructionsAreUnderstood(t *testing.T) {
	text, err := os.ReadFile("../../../docs/MODELS.md")
	if err != nil {
		t.Fatal(err)
	}
	understood := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`+)(.+?)(`+) \\|").FindAllStringSubmatch(string(text), -1) {
		if row[1] != row[3] || !strings.Contains(row[2], " ") {
			continue // no instruction: the name of something
		}
		understood++
		if reply := ask(t, user(row[2])); strings.Contains(reply.Text, "offline model") {
			t.Errorf("the manual's %q is not understood", row[2])
		}
	}
	if understood != 7 {
		t.Errorf("the manual has %d instructions, want 7", understood)
	}
}
