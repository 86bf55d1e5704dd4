package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/event"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 7_000_000, time.UTC)

func encode(t testing.TB, head event.Head, p event.Payload) event.Event {
	t.Helper()
	e, err := event.Encode(head, p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Stored bytes outlive us: this is what they look like.
func TestAnEnvelopeIsWrittenInAFixedOrder(t *testing.T) {
	for want, e := range map[string]event.Event{
		`{"type":"assistant.turn_end","id":"i","timestamp":"2026-11-15T12:00:00.007Z","parentId":null,"data":{"turnId":"t"}}`:                             encode(t, event.Head{ID: "i", Time: noon}, event.AssistantTurnEndData{TurnID: "t"}),
		`{"type":"assistant.turn_end","id":"i","timestamp":"2026-11-15T12:00:00.007Z","parentId":"p","data":{"turnId":"t"}}`:                              encode(t, event.Head{ID: "i", Time: noon.In(time.FixedZone("", 3600)), Parent: "p"}, event.AssistantTurnEndData{TurnID: "t"}),
		`{"type":"assistant.turn_end","id":"i","timestamp":"2026-11-15T12:00:00.007Z","parentId":null,"ephemeral":true,"data":{"turnId":"<a> & \u2028"}}`: encode(t, event.Head{ID: "i", Time: noon, Ephemeral: true}, event.AssistantTurnEndData{TurnID: "<a> & \u2028"}),
		`{"type":"session.idle","id":"i","timestamp":"2026-11-15T12:00:00.007Z","parentId":null,"ephemeral":true,"data":{}}`:                              encode(t, event.Head{ID: "i", Time: noon}, raw{event.SessionIdle, []byte(`{}`)}),
	} {
		if string(e.Bytes) != want {
			t.Errorf("encoded\n%s, want\n%s", e.Bytes, want)
		}
	}
}

func TestTimesHaveMillisecondsInUTC(t *testing.T) {
	for _, at := range []time.Time{
		{}, noon, noon.In(time.FixedZone("", -5400)), noon.Add(-7 * time.Millisecond), noon.Add(992*time.Millisecond + 999_999),
		time.Unix(0, -1), time.Unix(0, 10_000_000), time.Unix(0, 120_000_000), time.Date(99, 1, 2, 3, 4, 5, 67_000_000, time.UTC), time.Date(12026, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		if got, want := event.FormatTime(at), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%v is written as %s, want %s", at, got, want)
		}
	}
}

func TestWhatIsEncodedIsReadBack(t *testing.T) {
	for name, c := range map[string]struct {
		head    event.Head
		payload event.Payload
	}{
		"plain":           {event.Head{ID: event.NewID(), Time: noon}, event.SessionInfoData{InfoType: "x", Message: "hello"}},
		"with a parent":   {event.Head{ID: event.NewID(), Time: noon, Parent: event.NewID()}, event.SessionInfoData{Message: "hello"}},
		"ephemeral":       {event.Head{ID: event.NewID(), Time: noon, Ephemeral: true}, event.SessionInfoData{Message: "hello"}},
		"lines":           {event.Head{ID: event.NewID(), Time: noon}, event.SessionInfoData{Message: "a\nb\r\n\u2028c"}},
		"looks like one":  {event.Head{ID: event.NewID(), Time: noon}, event.SessionInfoData{Message: `,"data":{"x":"}}`}},
		"big":             {event.Head{ID: event.NewID(), Time: noon}, event.SessionInfoData{Message: strings.Repeat("0123456789", 1<<20)}},
		"not valid UTF-8": {event.Head{ID: event.NewID(), Time: noon}, event.SessionInfoData{Message: "a\xffb"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := encode(t, c.head, c.payload)
			if !json.Valid(e.Bytes) || bytes.IndexByte(e.Bytes, '\n') >= 0 {
				t.Fatalf("encoded %.200q: want one line of JSON", e.Bytes)
			}
			back, err := event.Parse(7, e.Bytes)
			if err != nil || back.Seq != 7 || back.Type != e.Type {
				t.Fatalf("parsed %d, %s, %v; want 7, %s", back.Seq, back.Type, err, e.Type)
			}
			head, err := back.Head()
			if err != nil || head != c.head {
				t.Errorf("head = %+v, %v; want %+v", head, err, c.head)
			}
			info, err := event.As[event.SessionInfoData](back)
			want := c.payload.(event.SessionInfoData)
			want.Message = strings.ToValidUTF8(want.Message, "\ufffd")
			if err != nil || info != want {
				t.Errorf("body = %.200q, %v; want %.200q", info, err, want)
			}
		})
	}
}

// TestInvalidTextIsReadAlikeByAll: the process that encodes an event reads the same body
// as one that finds the event in a log, and what is stored is valid UTF-8.
func TestInvalidTextIsReadAlikeByAll(t *testing.T) {
	for name, p := range map[string]event.ToolStartData{
		"in a string":       {ToolCallID: "a\xffb", Arguments: json.RawMessage(`{}`)},
		"in JSON":           {ToolCallID: "c", Arguments: json.RawMessage("{\"a\xff\":\"b\xff\"}")},
		"an escape in JSON": {ToolCallID: "c", Arguments: json.RawMessage(`{"a":"\ufffd"}`)},
	} {
		e := encode(t, event.Head{ID: "i", Time: noon}, p)
		if !utf8.Valid(e.Bytes) || !json.Valid(e.Bytes) {
			t.Errorf("%s: stored %q, want JSON that is valid UTF-8", name, e.Bytes)
		}
		stored, err := event.Parse(1, e.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		here, err := e.Body()
		if err != nil {
			t.Fatal(err)
		}
		if later, err := stored.Body(); err != nil || !reflect.DeepEqual(here, later) {
			t.Errorf("%s: a reader of the log gets %+v, %v; this process %+v", name, later, err, here)
		}
	}
}

func TestEventsDoNotShareBytes(t *testing.T) {
	one := encode(t, event.Head{ID: "1", Time: noon}, event.SessionInfoData{Message: "one"})
	kept := bytes.Clone(one.Bytes)
	encode(t, event.Head{ID: "2", Time: noon}, event.SessionInfoData{Message: "two"})
	if !bytes.Equal(one.Bytes, kept) {
		t.Errorf("the first event became %s", one.Bytes)
	}
}

func TestAnInvalidPayloadIsRefused(t *testing.T) {
	_, err := event.Encode(event.Head{ID: "1", Time: noon}, event.ToolStartData{Arguments: json.RawMessage(`{`)})
	if err == nil || !strings.Contains(err.Error(), string(event.ToolStart)) {
		t.Errorf("err = %v, want one that names the kind", err)
	}
}

func TestInvalidEnvelopesAreRefused(t *testing.T) {
	for _, b := range []string{
		``, `{`, `{}`, `[]`, `null`, `{"type":}`, `{"type":""}`, `{"type":"a"`, `{"type":"a`, `{"type":"a\"b"}`,
		`{ "type":"a"}`, `{"id":"i","type":"a"}`, `"type":"a"}`,
	} {
		if e, err := event.Parse(3, []byte(b)); !errors.Is(err, event.ErrEnvelope) {
			t.Errorf("%s: parsed as %q, %v", b, e.Type, err)
		}
	}
}

// A type alone is enough to be stored; the rest is refused by who reads it.
func TestAnEnvelopeWithABadHeadIsRefusedWithTheField(t *testing.T) {
	for b, field := range map[string]string{
		`{"type":"a"}`:          "id",
		`{"type":"a","id":1}`:   "id",
		`{"type":"a","id":"i"}`: "timestamp",
		`{"type":"a","id":"i","timestamp":"noon","parentId":null,"data":{}}`:                                  "timestamp",
		`{"type":"a","id":"i","timestamp":"2026-11-15T12:00:00Z","data":{}}`:                                  "parentId",
		`{"type":"a","id":"i","timestamp":"2026-11-15T12:00:00Z","parentId":1,"data":{}}`:                     "parentId",
		`{"type":"a","id":"i","timestamp":"2026-11-15T12:00:00Z","parentId":null}`:                            "data",
		`{"type":"a","id":"i","timestamp":"2026-11-15T12:00:00Z","parentId":null,"ephemeral":false,"data":1}`: "data",
	} {
		e, err := event.Parse(3, []byte(b))
		if err != nil {
			t.Errorf("%s: %v", b, err)
			continue
		}
		if _, err := e.Head(); !errors.Is(err, event.ErrEnvelope) || !strings.HasSuffix(err.Error(), field) {
			t.Errorf("%s: err = %v, want one about %s", b, err, field)
		}
		if _, err := event.As[event.SessionInfoData](e); err == nil {
			t.Errorf("%s: has a body", b)
		}
	}
}

func TestLaterIDsSortAfterEarlierOnes(t *testing.T) {
	var ids []string
	for range 1000 {
		ids = append(ids, event.NewID())
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 1000 {
		t.Error("they are not sorted, or some are the same")
	}
}

// FuzzParse takes any stored bytes as an event. Whatever comes out is the bytes
// that went in, and an event that can be read wholly is written the same again.
func FuzzParse(f *testing.F) {
	for _, p := range []event.Payload{
		event.SessionInfoData{Message: "hello"},
		raw{event.SessionIdle, []byte(`{}`)},
		event.ToolStartData{ToolCallID: "1", Arguments: json.RawMessage(`{"a":[1,2]}`)},
	} {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: noon, Parent: "p"}, p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Bytes)
		f.Add(e.Bytes[:len(e.Bytes)/2])
	}
	f.Add([]byte(`{"type":"a","id":"","timestamp":"2026-11-15T12:00:00Z","parentId":"","ephemeral":true,"data":0}`))
	f.Add([]byte("{\"type\":\"a\",\"id\":\"\xad\",\"timestamp\":\"2026-11-15T12:00:00.007Z\",\"parentId\":\"p\",\"ephemeral\":true,\"data\":{}}")) // an older version wrote such bytes
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := event.Parse(1, b)
		if err != nil {
			if !errors.Is(err, event.ErrEnvelope) {
				t.Errorf("err = %v, want ErrEnvelope", err)
			}
			return
		}
		if !bytes.Equal(e.Bytes, b) || e.Type == "" {
			t.Errorf("parsed %q as %q", b, e.Type)
		}
		head, err := e.Head()
		if err != nil {
			return
		}
		body, err := e.Data()
		if err != nil || !bytes.HasSuffix(b, append(bytes.Clone(body), '}')) {
			t.Fatalf("body = %q, %v of %q", body, err, b)
		}
		again, err := event.Encode(head, raw{e.Type, body})
		if err == nil && canonical(e, head, body) && !bytes.Equal(again.Bytes, b) {
			t.Errorf("written again as\n%q, was\n%q", again.Bytes, b)
		}
	})
}

// canonical reports whether an event is written as we write it.
func canonical(e event.Event, head event.Head, body []byte) bool {
	var out bytes.Buffer
	return utf8.Valid(e.Bytes) && json.Valid(e.Bytes) && json.Compact(&out, body) == nil && bytes.Equal(out.Bytes(), body) &&
		bytes.Contains(e.Bytes, []byte(`,"timestamp":"`+event.FormatTime(head.Time)+`"`)) &&
		!bytes.Contains(e.Bytes, []byte(`,"parentId":"",`)) &&
		head.Ephemeral == (head.Ephemeral || e.Type.Ephemeral())
}

// raw is a payload that is encoded already.
type raw struct {
	kind event.Type
	body []byte
}

func (r raw) Type() event.Type             { return r.kind }
func (r raw) MarshalJSON() ([]byte, error) { return r.body, nil }

// TestAnEncodedEventHasTheTimeThatAReaderGets: a state that was folded
// from it must be the one that is loaded later.
func TestAnEncodedEventHasTheTimeThatAReaderGets(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 987654321, time.FixedZone("east", 3600))
	e, err := event.Encode(event.Head{ID: "i", Time: at}, event.AbortData{})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := event.Parse(1, e.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	made, _ := e.Head()
	read, err := parsed.Head()
	if err != nil || made != read {
		t.Errorf("made %v, read back %v, %v", made.Time, read.Time, err)
	}
}
