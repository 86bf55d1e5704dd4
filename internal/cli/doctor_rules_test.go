package cli

import (
	"fmt"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/config"
)

func TestDoctorNamesRulesAboutUnknownTools(t *testing.T) {
	var got []string
	add := func(what, state, format string, args ...any) { got = append(got, state+" "+fmt.Sprint(args...)) }
	examineRules(config.Permissions{Allow: []string{"bash(ls *)", "read-only"}, Deny: []string{"deploy", "release"}}, []string{"bash", "release"}, add)
	if want := []string{"look deploy"}; !slices.Equal(got, want) {
		t.Errorf("findings are %q, want %q", got, want)
	}
}
