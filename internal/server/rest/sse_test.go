package rest

import (
	"context"
	"net/http/httptest"
	"slices"
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
					new(Server).pump(reader, startStream(w, httptest.NewRequest("GET", "/", nil)), f, nil, one{})
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

// deadlines is a writer that notes the deadlines that it is given.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// The reader of a long answer has time for each part of it.
func TestAReaderHasTimeForEachPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		w := Patient(d)
		var want []time.Time
		for range 3 {
			time.Sleep(stall / 2)
			want = append(want, time.Now().Add(stall))
			if _, err := w.Write([]byte("part")); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(d.set, want) {
			t.Errorf("the deadlines are %v, want %v", d.set, want)
		}
	})
}
