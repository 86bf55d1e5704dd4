package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A write under a key goes on when its client has left, and when the server is about to stop
// for a moment only.
func TestAKeyedWriteOutlivesItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, stop := context.WithCancel(context.Background())
		client, leave := context.WithCancel(WithLeaving(server, server))
		leave()
		r := httptest.NewRequestWithContext(client, http.MethodPost, "/", nil)
		r.Header.Set(keyHeader, "key")
		var s Server
		w := httptest.NewRecorder()
		err := s.once(func(w http.ResponseWriter, r *http.Request) error {
			if err := r.Context().Err(); err != nil {
				t.Errorf("the client has left: %v", err)
			}
			begin := time.Now()
			stop()
			<-r.Context().Done()
			if took := time.Since(begin); took != lastTime {
				t.Errorf("the write could go on for %v, want %v", took, lastTime)
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		})(w, r)
		if err != nil || w.Code != http.StatusNoContent {
			t.Errorf("%d, %v", w.Code, err)
		}
	})
}

// What is kept of answers, to repeat them, has a limit. The latest are kept.
func TestAnswersThatAreKeptHaveALimit(t *testing.T) {
	var rs replays
	const n = 3 * maxKept / maxReplayed
	name := func(i int) string { return strconv.Itoa(i) }
	for i := range n {
		r, first := rs.begin(name(i), [32]byte{})
		if !first {
			t.Fatalf("write %d was done before", i)
		}
		rs.end(r, &recorder{status: http.StatusOK, body: make([]byte, maxReplayed)})
	}
	if rs.size > maxKept+maxReplayed || rs.order.Len()*maxReplayed != rs.size || len(rs.byKey) != rs.order.Len() {
		t.Errorf("%d answers of %d bytes are kept", rs.order.Len(), rs.size)
	}
	if _, first := rs.begin(name(n-1), [32]byte{}); first {
		t.Error("the last answer is not kept")
	}
}
