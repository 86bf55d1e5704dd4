package cli

import (
	"context"
	"encoding/json"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEventThatWasReadFromTheLogIsNotTakenAgain(t *testing.T) {
	ours, theirs := net.Pipe()
	runtime := jsonrpc.New(theirs, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(
		func(context.Context, *jsonrpc.Request) (any, error) { return api.PingResult{}, nil })})
	ended := make(chan struct{})
	go func() { defer close(ended); runtime.Run(context.Background()) }()
	c := client.New(ours, client.Options{})
	defer func() { c.Close(); runtime.Close(); <-ended }()

	f := &attachedFeed{stream: c.Watch("s")}
	old, resumed, twice := stored(t, says("old")), stored(t, event.SessionResumeData{}), stored(t, says("twice"))
	fresh := stored(t, says("fresh"))
	for _, e := range []event.Event{old, resumed, twice} {
		if err := f.markStored(e); err != nil {
			t.Fatal(err)
		}
	}
	if f.known[headID(t, old)] {
		t.Error("an event is remembered that cannot come again")
	}
	for _, e := range []event.Event{resumed, twice, fresh} {
		if err := runtime.Notify(api.SessionEvent, api.EventParams{SessionID: "s", Event: json.RawMessage(e.Bytes)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Ping(t.Context(), ""); err != nil { // all have arrived
		t.Fatal(err)
	}
	var got []string
	for e, err := range f.take(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, headID(t, e))
	}
	if len(got) != 1 || got[0] != headID(t, fresh) {
		t.Errorf("%d events are taken, want only the fresh one", len(got))
	}
}

func headID(t *testing.T, e event.Event) string {
	t.Helper()
	head, err := e.Head()
	if err != nil {
		t.Fatal(err)
	}
	return head.ID
}
