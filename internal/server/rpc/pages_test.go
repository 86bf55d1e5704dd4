package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// A readStore counts the events that are read of it.
type readStore struct {
	eventlog.Store
	read atomic.Int64
}

func (s *readStore) counted(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			s.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *readStore) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	return s.counted(s.Store.Read(ctx, id, after))
}

func (s *readStore) ReadFrom(ctx context.Context, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	return s.counted(s.Store.ReadFrom(ctx, id, after))
}

// longTestServer is a testServer with a session of so many events, made of what the test says.
func longTestServer(t *testing.T, n int, make func(i int) event.Payload) (*readStore, *peer) {
	s := &readStore{Store: eventlog.NewMemory()}
	host := session.New(s, session.Options{Version: "test", Resolve: sessiontest.Always(session.Endpoint{Model: offline.Model{}, Name: offline.Name})})
	t.Cleanup(host.Close)
	r := &testServer{t: t, host: host, srv: rpc.New(host, rpc.Options{Version: "test"})}
	p := r.connect(rpc.Door{})
	p.must(api.SessionCreate, object{"sessionId": "s"}, nil)
	p.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
	host.Unload("s")
	is, err := s.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	end := is.End
	for i := range n {
		e, err := event.Encode(event.Head{ID: event.NewID()}, make(int(end.Seq)+1))
		if err != nil {
			t.Fatal(err)
		}
		if end, err = s.Append(t.Context(), "s", eventlog.Batch{After: end, Events: []event.Event{e}}); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	p.must(api.SessionResume, object{"sessionId": "s"}, nil) // it is in memory from now on
	s.read.Store(0)
	return s, p
}

func remark(i int) event.Payload { return event.SessionInfoData{Message: fmt.Sprint(i)} }

// To read a session page by page costs as much as to read it: events are counted,
// not time.
func TestPagesReadEachEventOnce(t *testing.T) {
	const n, most = 3000, 50
	for name, test := range map[string]struct {
		times int64 // number of times that an event may be read
		next  func(p *peer, cursor string) (events int, next string, more bool)
	}{
		"stored": {1, func(p *peer, cursor string) (int, string, bool) {
			var r api.ReadResult
			after, hash, _ := strings.Cut(cursor, " ")
			p.must(api.Events, object{"sessionId": "s", "max": most, "after": position(after), "hash": hash}, &r)
			return len(r.Events), fmt.Sprint(r.Next, " ", r.Hash), r.More
		}},
		"stored, by position": {1, func(p *peer, cursor string) (int, string, bool) {
			var r api.ReadResult
			p.must(api.Events, object{"sessionId": "s", "max": most, "after": position(cursor)}, &r)
			return len(r.Events), fmt.Sprint(r.Next), r.More
		}},
		"forward": {1, func(p *peer, cursor string) (int, string, bool) {
			var r api.LogReadResult
			p.must(api.EventLogRead, object{"sessionId": "s", "max": most, "cursor": cursor}, &r)
			return len(r.Events), r.Cursor, r.HasMore
		}},
		"forward, by position": {1, func(p *peer, cursor string) (int, string, bool) {
			var r api.LogReadResult
			p.must(api.EventLogRead, object{"sessionId": "s", "max": most, "cursor": cursor}, &r)
			unlinked, _, _ := strings.Cut(r.Cursor, ".")
			return len(r.Events), unlinked, r.HasMore
		}},
		"backward": {2, func(p *peer, cursor string) (int, string, bool) {
			var r api.LogReadResult
			p.must(api.EventLogRead, object{"sessionId": "s", "max": most, "direction": "backward", "cursor": cursor}, &r)
			return len(r.Events), r.Cursor, r.HasMore
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := longTestServer(t, n, remark)
			events, pages := 0, int64(0)
			for cursor, more := "", true; more; pages++ {
				var got int
				got, cursor, more = test.next(p, cursor)
				events += got
			}
			if events < n {
				t.Errorf("%d pages have %d events of %d", pages, events, n)
			}
			if read := s.read.Load(); read > test.times*(n+10)+2*pages {
				t.Errorf("%d events were read for %d pages of %d", read, pages, n)
			}
		})
	}
}

func position(text string) int {
	n, _ := strconv.Atoi(text) // the first page has none
	return n
}

// What was taken back, wherever in the log that stands, is in no page.
func TestPagesLeaveOutWhatWasTakenBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	_, p := longTestServer(t, 400, func(i int) event.Payload {
		if i > 20 && random.IntN(25) == 0 {
			from := 3 + random.IntN(i-4)
			return event.HistoryHiddenData{From: event.Seq(from), To: event.Seq(min(i-1, from+random.IntN(30)))}
		}
		return remark(i)
	})
	var shown api.EventsResult
	p.must(api.SessionGetMessages, object{"sessionId": "s"}, &shown)
	want := asText(shown.Events)
	for _, most := range []int{1, 7, 1000} {
		var on, back []string
		for cursor, more := "", true; more; {
			var r api.LogReadResult
			p.must(api.EventLogRead, object{"sessionId": "s", "max": most, "cursor": cursor, "includeEphemeral": false}, &r)
			on, cursor, more = append(on, asText(r.Events)...), r.Cursor, r.HasMore
		}
		for cursor, more := "", true; more; {
			var r api.LogReadResult
			p.must(api.EventLogRead, object{"sessionId": "s", "max": most, "cursor": cursor, "direction": "backward"}, &r)
			back, cursor, more = append(asText(r.Events), back...), r.Cursor, r.HasMore
		}
		if !slices.Equal(on, want) || !slices.Equal(back, want) {
			t.Errorf("pages of %d have %d events forward and %d backward, want %d", most, len(on), len(back), len(want))
		}
	}
}

func asText(list []json.RawMessage) []string {
	var all []string
	for _, b := range list {
		all = append(all, string(b))
	}
	return all
}

// A page that follows another must be of the same log.
func TestAPageOfAnotherLogIsRefused(t *testing.T) {
	_, p := longTestServer(t, 10, remark)
	var first api.ReadResult
	p.must(api.Events, object{"sessionId": "s", "max": 5}, &first)
	p.must(api.SessionCreate, object{"sessionId": "t"}, nil)
	for range 10 {
		p.must(api.SessionLog, object{"sessionId": "t", "message": "x"}, nil)
	}
	for _, hash := range []string{first.Hash, "zz", first.Hash + "00"} {
		p.refused(api.Events, object{"sessionId": "t", "after": first.Next, "hash": hash})
	}
	var beyond api.ReadResult
	p.must(api.Events, object{"sessionId": "s", "after": 1000}, &beyond)
	if len(beyond.Events) != 0 || beyond.Next != 1000 || beyond.More {
		t.Errorf("beyond the end there is %+v", beyond)
	}
}
