package rest

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A stream says that it is alive while nothing happens, sends what happens, and ends with its
// reader or its server.
func TestAStreamBeatsUntilItEnds(t *testing.T) {
	for _, ends := range []string{"the reader leaves", "the server stops"} {
		t.Run(ends, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, stop := context.WithCancel(context.Background())
				defer stop()
				reader, leave := context.WithCancel(WithLeaving(context.Background(), server))
				defer leave()
				w, f, over := httptest.NewRecorder(), newFollower(), make(chan struct{})
				go func() {
					defer close(over)
					new(Server).pump(reader, startStream(w), f, nil, one{})
				}()
				time.Sleep(2*heartbeat + time.Second)
				f.Event("s", event.Event{Seq: 7, Bytes: []byte("{}")})
				time.Sleep(heartbeat)
				synctest.Wait()
				const alive = ": still here\n\n"
				if got, want := w.Body.String(), ": here it comes\n\n"+alive+alive+"id: 7\nevent: event\ndata: {}\n\n"+alive; got != want {
					t.Errorf("the stream is %q, want %q", got, want)
				}
				if strings.HasPrefix(ends, "the reader") {
					leave()
				} else {
					stop()
				}
				<-over
			})
		})
	}
}
