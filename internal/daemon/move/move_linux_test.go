package move

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

func TestSessionsAreMovedAsTheyAre(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 20)
	want := before(t, m)
	r, err := m.Run(t.Context())
	must(t, err)
	if r.Sessions != len(want.Sessions) || r.Sent != r.Sessions+1 || r.Before {
		t.Errorf("moved %+v, of %d sessions", r, len(want.Sessions))
	}
	checkMoved(t, m, want)
	again, err := m.Run(t.Context())
	if err != nil || !again.Before || again.Sent != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	checkMoved(t, m, want)
	m.To = c.URL()
	if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not have them") {
		t.Errorf("to another place: %v", err)
	}
}
