package config_test

import (
	"testing"
	"time"

	"github.com/abide-run/abide/internal/config"
)

func TestAges(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]time.Duration{"36h": 36 * time.Hour, "90d": 90 * day, "2w": 14 * day, "0s": 0, "65535w": 36498 * day} {
		if got, err := config.ParseAge(text); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "90", "-1d", "-5h", "1.5d", "90 d", "99999999999999999999d", "forever"} {
		if got, err := config.ParseAge(text); err == nil {
			t.Errorf("%q = %v, want an error", text, got)
		}
	}
	for text, good := range map[string]bool{"90d": true, "1ms": true, "0d": false, "0s": false, "-1d": false, "x": false} {
		_, err := config.Load(config.Layer{Name: "f", Path: "/f", Data: []byte("retention.sessions = '" + text + "'")})
		if (err == nil) != good {
			t.Errorf("retention.sessions = %s: %v", text, err)
		}
	}
}

// TestNoProjectDecidesWhatIsKept: a project's file must not make sessions of other
// projects be deleted, even if it is trusted.
func TestNoProjectDecidesWhatIsKept(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		l := config.Layer{Name: "f", Path: "/p/f", Data: []byte("[retention]\nsessions = '1h'\n"), Project: true, Trusted: trusted}
		loaded, err := config.Load(l)
		if err != nil || loaded.Config.Retention.Sessions != "" || len(loaded.Ignored) != 1 || !loaded.Ignored[0].UserOnly {
			t.Errorf("trusted %v: %+v, ignored %v, %v", trusted, loaded.Config.Retention, loaded.Ignored, err)
		}
	}
}
