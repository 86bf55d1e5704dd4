package shell_test

import (
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval/shell"
)

func TestAHereDocumentIsReadAsItsDelimiterSays(t *testing.T) {
	for script, want := range map[string]time.Duration{
		"bash <<'E'\nbash -c 'bash -c '\\''sleep 3'\\'''\nE\n": 3 * time.Second,
		"bash <<\\E\nbash -c 'bash -c '\\''sleep 3'\\'''\nE\n": 3 * time.Second,
		"bash <<E\nbash -c 'bash -c '\\''sleep 3'\\'''\nE\n":   3 * time.Second,
		"bash <<E\nbash -c \"bash -c \\\"sleep 3\\\"\"\nE\n":   3 * time.Second,
		"bash <<'E'\nsleep \\\n3\nE\n":                         3 * time.Second,
		"bash <<E\nsleep \\\n3\nE\n":                           3 * time.Second,
		"bash <<'E'\ns\\\\leep 3\nE\n":                         0,
		"bash <<E\ns\\\\leep 3\nE\n":                           3 * time.Second,
		"cat <<'E'\nsleep 3\nE\n":                              0,
	} {
		if got := shell.Parse(script).Pause().Longest; got != want {
			t.Errorf("%s: %v, want %v", script, got, want)
		}
	}
}
