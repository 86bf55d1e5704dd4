package scripted_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model/scripted"
)

// manual returns what users read.
func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/MODELS.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheExamplesInTheManualAreScenarios(t *testing.T) {
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(manual(t), -1)
	if len(examples) == 0 {
		t.Fatal("the manual has no examples")
	}
	for _, e := range examples {
		if _, err := scripted.Parse("manual.json", []byte(e[1])); err != nil {
			t.Errorf("%v in\n%s", err, e[1])
		}
	}
}

func TestTheManualHasEveryKey(t *testing.T) {
	text := manual(t)
	for _, key := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(tour, -1) {
		if key[1] != "for" && !strings.Contains(text, "`"+key[1]+"`") {
			t.Errorf("the manual does not explain %q", key[1])
		}
	}
}
