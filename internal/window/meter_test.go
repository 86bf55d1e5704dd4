package window_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/window"
)

func said(text string) *model.Message { return &model.Message{Role: model.User, Text: text} }

// aMessage draws a message of any kind.
func aMessage(t *rapid.T) *model.Message {
	m := &model.Message{Role: model.User, Text: strings.Repeat(rapid.SampledFrom([]string{"a", "é", "漢", "word "}).Draw(t, "of"), rapid.IntRange(0, 3000).Draw(t, "length"))}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		m.Images = []model.Image{{MediaType: "image/png", Data: []byte("x")}}
	case 1:
		m.Role, m.Calls = model.Assistant, []model.Call{{ID: "c", Name: "bash", Arguments: json.RawMessage(`{"command":"` + m.Text + `"}`)}}
	case 2:
		m.Role, m.Reasoning = model.Assistant, &model.Reasoning{Text: m.Text, Opaque: strings.Repeat("s", 800)}
	}
	return m
}

// naive is what a meter without memory says of a request.
func naive(req *model.Request) int {
	n := window.Tokens(req.System) + window.Tokens(req.Tail)
	for _, m := range req.Messages {
		n += window.Of(m)
	}
	if req.Tools != nil {
		for _, t := range req.Tools.List {
			n += 12 + window.Tokens(t.Name) + window.Tokens(t.Description) + window.Tokens(string(t.Parameters))
		}
	}
	return n
}

func TestAMeterAgreesWithOneThatCountsEverythingAnew(t *testing.T) {
	tools := &model.Tools{List: []model.Tool{{Name: "bash", Description: "runs a command", Parameters: json.RawMessage(`{"type":"object"}`)}}}
	rapid.Check(t, func(t *rapid.T) {
		var m window.Meter
		req := &model.Request{System: "Be kind."}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "change") {
			case 0: // a compaction or a rewind
				req.Messages = append([]*model.Message{said("summary")}, req.Messages[len(req.Messages)/2:]...)
			case 1:
				req.Tools = tools
			case 2:
				req.Tail = rapid.StringN(0, 50, -1).Draw(t, "tail")
			default:
				req.Messages = append(req.Messages, aMessage(t))
			}
			r := m.Read(req)
			if want := naive(req); r.Tokens != want || r.Source != window.FromEstimate {
				t.Fatalf("tokens = %d from %s, want %d from the estimate", r.Tokens, r.Source, want)
			}
			if sum := r.System + r.Tools + r.Messages + r.Tail; sum != r.Tokens {
				t.Fatalf("the parts are %d, the whole is %d", sum, r.Tokens)
			}
		}
	})
}

func TestWhatWasCountedIsBelievedAndEveryMessageAddsToIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m window.Meter
		req := &model.Request{System: "Be kind.", Messages: []*model.Message{said("hello")}}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "learn") {
				counted := rapid.IntRange(0, 3*naive(req)).Draw(t, "counted")
				m.Learn(req, model.Usage{Input: int64(counted / 2), CacheRead: int64(counted - counted/2)})
				if got := m.Read(req); 5*counted >= naive(req) && got.Tokens != counted {
					t.Fatalf("a request that was counted as %d is read as %d", counted, got.Tokens)
				}
			}
			before := m.Read(req).Tokens
			req.Messages = append(req.Messages, aMessage(t))
			if after := m.Read(req).Tokens; after <= before {
				t.Fatalf("with one more message %d tokens became %d", before, after)
			}
		}
	})
}

// tokenizer counts as a provider does: so many bytes of each script for a token.
func tokenizer(req *model.Request) int64 {
	n := 25 * len(req.System)
	for _, m := range req.Messages {
		for _, r := range m.Text {
			switch {
			case r < 0x80:
				n += 25
			case r < 0x500: // Cyrillic: five tokens for twelve letters
				n += 42
			default: // Han: seven tokens for ten letters
				n += 70
			}
		}
	}
	return int64(n / 100)
}

// The figures are those of texts that are estimated at more than twice of what a provider
// counts: after a few counts they are within a tenth, also after a compaction, when no
// request was counted yet that begins with the same messages.
func TestEachScriptIsLearnedFromCounts(t *testing.T) {
	for name, text := range map[string]string{
		"English": "We keep the log in SQLite, because it needs no server. ",
		"German":  "Wir führen das Protokoll in SQLite, weil das keinen Server braucht. ",
		"Russian": "Мы храним журнал в SQLite, потому что серверу там делать нечего. ",
		"Chinese": "我们把日志保存在 SQLite 里，因为它不需要服务器。",
	} {
		t.Run(name, func(t *testing.T) {
			var m window.Meter
			req := &model.Request{System: strings.Repeat("Be kind. ", 1000)}
			for range 5 {
				req.Messages = append(req.Messages, said(strings.Repeat(text, 100)))
				m.Learn(req, model.Usage{Input: tokenizer(req)})
			}
			near := func(what string, req *model.Request) {
				t.Helper()
				if got, want := float64(m.Read(req).Tokens), float64(tokenizer(req)); got < 0.9*want || got > 1.15*want {
					t.Errorf("%s: read as %.0f, the provider counts %.0f", what, got, want)
				}
			}
			req.Messages = append(req.Messages, said(strings.Repeat(text, 200)))
			near("what was added", req)
			near("another history", &model.Request{System: req.System, Messages: []*model.Message{said(strings.Repeat(text, 300))}})
			m.Forget()
			if got := m.Read(req); got.Tokens != naive(req) || got.Source != window.FromEstimate {
				t.Errorf("another model is measured with what was learned: %+v", got)
			}
		})
	}
}

func TestTheCurrentRunCounts(t *testing.T) {
	var m window.Meter
	req := &model.Request{Messages: []*model.Message{said("first")}}
	m.Learn(req, model.Usage{Input: 1000, Output: 1})
	req.Messages = append(req.Messages, said(strings.Repeat("x", 400)))
	if r := m.Read(req); r.Tokens != 1000+104 || r.Source != window.FromUsage {
		t.Errorf("reading = %+v, want what was counted and the growth", r)
	}
}

func TestWhatWasCountedOfAnotherHistoryDoesNotCount(t *testing.T) {
	var m window.Meter
	old := &model.Request{Messages: []*model.Message{said("first"), said("second")}}
	m.Learn(old, model.Usage{Input: 1000})
	compacted := &model.Request{Messages: []*model.Message{said("summary"), said("third"), said("fourth")}}
	if r := m.Read(compacted); r.Tokens != naive(compacted) || r.Source != window.FromEstimate {
		t.Errorf("reading = %+v, want the estimate %d", r, naive(compacted))
	}
}

func TestNothingIsLearnedFromAProviderThatDoesNotCount(t *testing.T) {
	var m window.Meter
	req := &model.Request{Messages: []*model.Message{said("first")}}
	if a := m.Learn(req, model.Usage{}); a != (window.Anchor{}) {
		t.Errorf("learned %+v from nothing", a)
	}
	if a := m.Learn(&model.Request{Messages: []*model.Message{said(strings.Repeat("x", 40_000))}}, model.Usage{Input: 20}); a != (window.Anchor{}) {
		t.Errorf("learned %+v from a server that counts what it has not cached", a)
	}
	if r := m.Read(req); r.Source != window.FromEstimate {
		t.Errorf("source = %s", r.Source)
	}
}

func TestAnEstimateIsCorrectedByWhatWasLearnedOfLongRequests(t *testing.T) {
	var m window.Meter
	long := &model.Request{Messages: []*model.Message{said(strings.Repeat("x", 40_000))}}
	m.Learn(long, model.Usage{Input: 15_006}) // half as much again as estimated
	other := &model.Request{Messages: []*model.Message{said(strings.Repeat("y", 4000))}}
	if r := m.Read(other); r.Tokens != 1504 {
		t.Errorf("tokens = %d, want 1504", r.Tokens)
	}
	var short window.Meter
	short.Learn(&model.Request{Messages: []*model.Message{said("a")}}, model.Usage{Input: 1000})
	if r := short.Read(other); r.Tokens != 1004 {
		t.Errorf("tokens = %d, want the plain estimate: a short request says little", r.Tokens)
	}
}

// A provider that counts more than is estimated, of everything alike, teaches no more than that,
// whatever the texts and calls were that it has counted: otherwise a long message that fits
// would be refused before the provider is asked.
func TestNoMoreIsLearnedThanWasCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m window.Meter
		more := rapid.SampledFrom([]float64{1, 1.2, 1.4, 1.9}).Draw(t, "more")
		count := func(list []*model.Message) int64 {
			var plain window.Meter
			return int64(more * float64(plain.Read(&model.Request{Messages: list}).Tokens))
		}
		list := []*model.Message{said(strings.Repeat("word ", rapid.IntRange(1, 4000).Draw(t, "first")))}
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			m.Learn(&model.Request{Messages: list}, model.Usage{Input: count(list)})
			for range rapid.IntRange(1, 3).Draw(t, "messages") {
				text := strings.Repeat("word ", rapid.IntRange(0, 200).Draw(t, "words")) + strings.Repeat("größer ", rapid.IntRange(0, 200).Draw(t, "wide"))
				list = append(list, &model.Message{Role: model.Assistant, Text: text, Calls: make([]model.Call, rapid.IntRange(0, 3).Draw(t, "calls"))})
			}
		}
		list = append(list, said(strings.Repeat("Mind the gap. ", 5000)))
		if got, want := m.Read(&model.Request{Messages: list}).Tokens, count(list); float64(got) > 1.01*float64(want) {
			t.Errorf("%d tokens, and the provider counts %d", got, want)
		}
	})
}

func TestAMeterGoesOnAfterARestart(t *testing.T) {
	list := []*model.Message{said("one"), said(strings.Repeat("x", 40_000))}
	var before window.Meter
	stored, err := json.Marshal(before.Learn(&model.Request{Messages: list}, model.Usage{Input: 12_000}))
	if err != nil {
		t.Fatal(err)
	}
	var a window.Anchor
	if err := json.Unmarshal(stored, &a); err != nil {
		t.Fatal(err)
	}
	var after window.Meter
	again := []*model.Message{said("one"), said(strings.Repeat("x", 40_000)), said("new")}
	after.Restore(again, a)
	if got, want := after.Read(&model.Request{Messages: again}), before.Read(&model.Request{Messages: append(list, said("new"))}); got != want {
		t.Errorf("after the restart %+v, before it %+v", got, want)
	}
	var other window.Meter
	other.Restore(nil, a)
	if r := other.Read(&model.Request{Messages: again}); r.Source != window.FromEstimate || r.Tokens <= naive(&model.Request{Messages: again}) {
		t.Errorf("reading = %+v, want an estimate that is corrected", r)
	}
}

func TestARefusedRequestIsBeyondTheLimit(t *testing.T) {
	var m window.Meter
	req := &model.Request{Messages: []*model.Message{said(strings.Repeat("x", 4000))}}
	m.Learn(req, model.Usage{Input: 900})
	m.Refused(req, 2000)
	if r := m.Read(req); r.Tokens <= 2000 {
		t.Errorf("tokens = %d, want more than the limit of 2000", r.Tokens)
	}
}

func TestEachRefusalLeavesClearlyLessRoom(t *testing.T) {
	var m window.Meter
	const limit = 10_000
	for range 3 {
		room := m.Room(window.Reading{}, limit)
		m.Refused(&model.Request{Messages: []*model.Message{said(strings.Repeat("x", 4*room))}}, limit)
		if now := m.Room(window.Reading{}, limit); now > room*9/10 {
			t.Errorf("there is room for %d tokens after a refusal, and was for %d before", now, room)
		}
	}
}

func TestMessagesThatHaveRoomMakeARequestThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m window.Meter
		big := &model.Request{Messages: []*model.Message{said(strings.Repeat("x", 40_000))}}
		m.Learn(big, model.Usage{Input: int64(rapid.IntRange(1, 30_000).Draw(t, "counted"))})
		req := &model.Request{System: rapid.StringN(0, 500, -1).Draw(t, "system"), Tail: "tail"}
		limit := rapid.IntRange(0, 5000).Draw(t, "limit")
		room := m.Room(m.Read(req), limit)
		for used := 0; ; {
			next := said(rapid.StringN(0, 300, -1).Draw(t, "text"))
			if used += window.Of(next); used > room {
				break
			}
			req.Messages = append(req.Messages, next)
		}
		if got := m.Read(req).Tokens; room > 0 && got > limit {
			t.Fatalf("%d tokens, the limit is %d", got, limit)
		}
	})
}

func TestTwoTextsHaveAtLeastAsManyTokensAsBothJoined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if window.Tokens(a)+window.Tokens(b) < window.Tokens(a+b) {
			t.Fatal("they have fewer")
		}
		n := rapid.IntRange(-1, 20).Draw(t, "tokens")
		if len(a) <= window.Bytes(n) && window.Tokens(a) > max(n, 0) {
			t.Fatalf("%d bytes have %d tokens, want at most %d", len(a), window.Tokens(a), n)
		}
	})
}

// A provider that counts the same share of everything is never expected to count less,
// whatever it has counted before: a request that is too large would be sent.
func TestNoCountTeachesToExpectTooLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0.25, 1).Draw(t, "share")
		counts := func(req *model.Request) int {
			var plain window.Meter
			return int(share * float64(plain.Read(req).Tokens))
		}
		var m window.Meter
		req := &model.Request{System: strings.Repeat("You are an agent. ", rapid.IntRange(0, 300).Draw(t, "system"))}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			word := rapid.SampledFrom([]string{"output ", "größer ", "журнал ", "日志保存", "x"}).Draw(t, "word")
			text := strings.Repeat(word, rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 8000)).Draw(t, "words"))
			msg := &model.Message{Role: model.User, Text: text}
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				msg.Calls = append(msg.Calls, model.Call{ID: "c", Name: "act", Arguments: []byte(`{}`)})
			}
			if req.Messages = append(req.Messages, msg); rapid.IntRange(0, 5).Draw(t, "compacted") == 0 {
				req.Messages = []*model.Message{msg} // nothing of it was counted
			}
			if got, want := m.Read(req).Tokens, counts(req); got < want {
				t.Fatalf("%d tokens are expected, and %d are counted", got, want)
			}
			if rapid.Bool().Draw(t, "answers") {
				m.Learn(req, model.Usage{Input: int64(counts(req))})
			}
		}
	})
}
