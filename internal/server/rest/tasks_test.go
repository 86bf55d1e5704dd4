package rest

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// A client does not wait for long for a command that reads no input.
func TestAClientWaitsForRoomForInputOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Server{opts: Options{Input: func(ctx context.Context, _ event.SessionID, _ string, _ Input) error {
			<-ctx.Done()
			return ctx.Err()
		}}}
		begin := time.Now()
		err := s.giveInput(t.Context(), api.TaskParams{}, Input{})
		if p := toProblem(err); p.Status != http.StatusConflict || p.Code != "not_read" || time.Since(begin) != inputTime {
			t.Errorf("%+v after %v", p, time.Since(begin))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := s.giveInput(gone, api.TaskParams{}, Input{}); err != context.Canceled {
			t.Errorf("the client has left: %v", err)
		}
	})
}
