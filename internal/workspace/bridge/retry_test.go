package bridge

import (
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/workspace"
)

// A workspace that restarts is away for a moment after an answer was lost. The client tries
// again until it is back, and forgets the lost answer only then.
func TestARequestIsRepeatedUntilTheWorkspaceIsBack(t *testing.T) {
	lost := connect.NewError(connect.CodeUnavailable, errors.New("it is being stopped"))
	gone := &away{err: errors.New("connection refused")}
	for what, c := range map[string]struct {
		answers []error
		want    error
	}{
		"it comes back":      {[]error{lost, gone, gone, nil}, nil},
		"it stays away":      {[]error{lost, gone, gone, gone}, workspace.ErrLost},
		"nothing was asked":  {[]error{gone, gone, gone, gone}, workspace.ErrAway},
		"patience is at end": {[]error{lost, &away{err: gone.err, final: true}}, workspace.ErrLost},
	} {
		t.Run(what, func(t *testing.T) {
			asked := 0
			err := retry(t.Context(), make([]time.Duration, 3), func() error { asked++; return c.answers[asked-1] })
			if err = fromWire(t.Context(), err); !errors.Is(err, c.want) || asked != len(c.answers) {
				t.Errorf("asked %d times: %v, want %v after %d", asked, err, c.want, len(c.answers))
			}
		})
	}
}
