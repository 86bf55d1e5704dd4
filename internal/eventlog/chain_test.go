package eventlog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// The chain is written down in files that outlive us: these values never change.
func TestTheHashesOfTheChainNeverChange(t *testing.T) {
	var end eventlog.End
	for i, c := range []struct{ text, hash string }{
		{`{"type":"a"}`, "c417448b14cb0ac8df770de529e2bc517024a2a308a25b13a392ffb7a8a1c6d8"},
		{`{"type":"b"}`, "b68e7a4629a7e4be9da94d726d82d1e56b3529e746fe82c2036631667d4bb492"},
		{``, "c5f68d57c3712a5bb710ac64fb2e45867df7062de79efb7b7016b4a4aa586c71"},
	} {
		end = end.Next([]byte(c.text))
		if got := hex.EncodeToString(end.Hash[:]); got != c.hash || end.Seq != event.Seq(i+1) {
			t.Errorf("link %d is %s at %d, want %s", i+1, got, end.Seq, c.hash)
		}
	}
}

func TestAHashCoversThePreviousHashThePositionAndTheDigest(t *testing.T) {
	base := eventlog.End{Seq: 7, Hash: eventlog.Hash{1}}
	digest := sha256.Sum256([]byte("text"))
	formula := append(append(append([]byte{}, base.Hash[:]...), 0, 0, 0, 0, 0, 0, 0, 8), digest[:]...)
	if want := eventlog.Hash(sha256.Sum256(formula)); base.Next([]byte("text")).Hash != want {
		t.Errorf("link = %x, want %x", base.Next([]byte("text")).Hash, want)
	}
}

func TestABatchIsCheckedBeforeItIsStored(t *testing.T) {
	good := event.Event{Type: "a", Bytes: []byte(`{"type":"a","data":{}}`)}
	after := eventlog.End{Seq: 3, Hash: eventlog.Hash{1}}
	for name, c := range map[string]struct {
		events []event.Event
		ok     bool
	}{
		"one":          {[]event.Event{good}, true},
		"two":          {[]event.Event{good, good}, true},
		"none":         {nil, false},
		"another type": {[]event.Event{good, {Type: "b", Bytes: good.Bytes}}, false},
		"no envelope":  {[]event.Event{good, {Type: "a", Bytes: []byte(`[]`)}}, false},
		"a line break": {[]event.Event{{Type: "a", Bytes: []byte("{\"type\":\"a\",\n\"data\":{}}")}}, false},
	} {
		end, err := eventlog.Batch{After: after, Events: c.events}.End()
		if (err == nil) != c.ok {
			t.Errorf("%s: err = %v", name, err)
		}
		want := eventlog.End{}
		if c.ok {
			want = after
			for _, e := range c.events {
				want = want.Next(e.Bytes)
			}
		}
		if end != want {
			t.Errorf("%s: end = %v, want %v", name, end, want)
		}
	}
	if _, err := (eventlog.Batch{}).End(); !errors.Is(err, eventlog.ErrEmpty) {
		t.Errorf("err = %v, want ErrEmpty", err)
	}
}
