package skill

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/event"
)

// The list is in every request, so that it must not fill the window, however many skills a
// project has and whatever they say of themselves.
func TestTheListOfSkillsIsLimited(t *testing.T) {
	for name, test := range map[string]struct {
		skills    int
		named     string // format of the names
		described int    // bytes of a description
		listed    int    // number of skills that are in the list
	}{
		"few":                      {20, "s%d", 500, 20},
		"one long description":     {1, "s%d", 300_000, 1},
		"as many as there can be":  {500, "skill-%03d", 2000, 500},
		"long names":               {500, strings.Repeat("x", 100) + "%03d", 2000, 231},
		"a name without an end":    {1, strings.Repeat("x", 100_000) + "%d", 10, 0},
		"no descriptions, 10,000":  {10_000, "skill-%05d", 0, 1755},
		"descriptions of one word": {3, "s%d", 4, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var list []event.Skill
			for i := range test.skills {
				list = append(list, event.Skill{Name: fmt.Sprintf(test.named, i), Description: strings.Repeat("ä", test.described/2)})
			}
			s := spec(list)
			if got := strings.Count(s.Description, "\n- "); got != test.listed {
				t.Errorf("%d skills are listed, want %d", got, test.listed)
			}
			if len(s.Description) > mostList+1000 || len(s.Parameters) > mostList+1000 || !utf8.ValidString(s.Description) {
				t.Errorf("the description has %d bytes, the parameters %d", len(s.Description), len(s.Parameters))
			}
			left := test.skills - test.listed
			if told := strings.Contains(s.Description, fmt.Sprintf("(%d more skills", left)); told != (left > 0) {
				t.Errorf("that %d are left out is said: %v", left, told)
			}
			if names := strings.Contains(string(s.Parameters), `"enum"`); names != (left == 0) {
				t.Errorf("only names of the list can be asked for: %v", names)
			}
		})
	}
}
