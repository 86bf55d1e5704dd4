package bash_test

import (
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
)

// A session whose client sent no environment must not get that of the engine, which
// may have been started by another person.
func TestASessionWithoutAnEnvironmentGetsNothingFromTheEngine(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "leaked")
	t.Setenv("LC_ALL", "C")
	env, err := bash.New(bash.Options{}).Environment(t.Context(), tool.Call{})
	if err != nil || slices.Contains(env, "OPENAI_API_KEY=leaked") || !slices.Contains(env, "LC_ALL=C") {
		t.Errorf("commands get %q", env)
	}
}
