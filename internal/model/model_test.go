package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func TestAMessageIsEncodedOnceForEachFormat(t *testing.T) {
	m := &model.Message{Text: "hi"}
	encoded := 0
	wire := func(format string) string {
		return string(m.Wire(format, nil, func(_, m *model.Message) []byte {
			encoded++
			return []byte(format + " " + m.Text)
		}))
	}
	for i, step := range []struct {
		format  string
		encoded int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"b", 2}, {"a", 3}} {
		if got, want := wire(step.format), step.format+" hi"; got != want {
			t.Errorf("step %d: the form is %q, want %q", i, got, want)
		}
		if encoded != step.encoded {
			t.Errorf("step %d: encoded %d times, want %d", i, encoded, step.encoded)
		}
	}
}

// numbered is a history of so many messages.
func numbered(n int) []*model.Message {
	var messages []*model.Message
	for i := range n {
		messages = append(messages, &model.Message{Text: fmt.Sprintf("<%d>", i)})
	}
	return messages
}

func text(_, m *model.Message) []byte { return []byte(m.Text) }

func TestAHistoryIsKeptInFewPieces(t *testing.T) {
	messages := numbered(2000)
	again := func(before, m *model.Message) []byte {
		t.Errorf("%s was encoded again", m.Text)
		return text(before, m)
	}
	first := model.AppendWire(nil, nil, messages, "a", text)
	second := model.AppendWire(nil, nil, messages, "a", again)
	if len(first) > 100 {
		t.Errorf("%d messages are in %d pieces", len(messages), len(first))
	}
	for i := range first {
		if &first[i][0] != &second[i][0] {
			t.Errorf("piece %d was made again", i)
		}
	}
}

func TestAHistoryThatGrowsIsEncodedOnce(t *testing.T) {
	messages := numbered(300)
	times := make(map[*model.Message]int)
	encode := func(before, m *model.Message) []byte {
		times[m]++
		return text(before, m)
	}
	for n := range len(messages) + 1 {
		model.AppendWire(nil, nil, messages[:n], "a", encode)
	}
	for _, m := range messages {
		if times[m] != 1 {
			t.Errorf("%s was encoded %d times", m.Text, times[m])
		}
	}
}

func TestPiecesOfAHistoryAreItsMessagesWhateverWasJoinedBefore(t *testing.T) {
	messages := numbered(300)
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(messages)).Draw(t, "from")
		view := slices.Clone(messages[from:rapid.IntRange(from, len(messages)).Draw(t, "to")])
		if len(view) > 0 && rapid.Bool().Draw(t, "one was replaced") {
			view[rapid.IntRange(0, len(view)-1).Draw(t, "which")] = &model.Message{Text: "<other>"}
		}
		format := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "format")
		encode := func(before, m *model.Message) []byte {
			if before != nil {
				return []byte(format + before.Text + m.Text)
			}
			return []byte(format + m.Text)
		}
		want, before := "kept", (*model.Message)(nil)
		for _, m := range view {
			want += string(encode(before, m))
			before = m
		}
		cut := rapid.IntRange(0, len(view)).Draw(t, "cut")
		before = nil
		if cut > 0 {
			before = view[cut-1]
		}
		got := model.AppendWire([][]byte{[]byte("kept")}, nil, view[:cut], format, encode)
		got = model.AppendWire(got, before, view[cut:], format, encode)
		if joined := string(bytes.Join(got, nil)); joined != want {
			t.Fatalf("the pieces are %q, want %q", joined, want)
		}
	})
}

func TestManySessionsMayShareAHistory(t *testing.T) {
	messages := numbered(200)
	var sessions sync.WaitGroup
	for i := range 8 {
		sessions.Go(func() {
			format := string(rune('a' + i%2))
			encode := func(_, m *model.Message) []byte { return []byte(format + m.Text) }
			for from := range 50 {
				got := bytes.Join(model.AppendWire(nil, nil, messages[from:], format, encode), nil)
				if n := bytes.Count(got, []byte(format+"<")); n != len(messages)-from {
					t.Errorf("%d messages arrived, want %d", n, len(messages)-from)
				}
			}
		})
	}
	sessions.Wait()
}

func TestToolsAreEncodedOnce(t *testing.T) {
	tools := &model.Tools{List: []model.Tool{{Name: "bash"}}}
	encode := func(t *model.Tools) []byte { return []byte(t.List[0].Name) }
	first := tools.Wire("a", encode)
	second := tools.Wire("a", func(*model.Tools) []byte {
		t.Error("encoded again")
		return nil
	})
	if string(first) != "bash" || &first[0] != &second[0] {
		t.Errorf("the forms are %q and %q, want the same bytes", first, second)
	}
}

func TestFormsOfDifferentFormatsNeverMix(t *testing.T) {
	m := new(model.Message)
	var sessions sync.WaitGroup
	for _, format := range []string{"a", "b", "c"} {
		sessions.Go(func() {
			for range 1000 {
				if got := m.Wire(format, nil, func(_, _ *model.Message) []byte { return []byte(format) }); string(got) != format {
					t.Errorf("format %s was given %q", format, got)
				}
			}
		})
	}
	sessions.Wait()
}

func TestUsageAddsUp(t *testing.T) {
	a := model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}
	b := model.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40, Reasoning: 50}
	want := model.Usage{Input: 11, Output: 22, CacheRead: 33, CacheWrite: 44, Reasoning: 55}
	if got := a.Add(b); got != want {
		t.Errorf("sum is %+v, want %+v", got, want)
	}
}

func TestOnlySomeErrorsAreTemporary(t *testing.T) {
	for kind, want := range map[model.Kind]bool{
		model.KindAuth: false, model.KindNotFound: false, model.KindRequest: false, model.KindOverflow: false, model.KindReasoning: false, model.KindScenario: false,
		model.KindRateLimit: true, model.KindOverloaded: true, model.KindNetwork: true, model.KindStream: true, model.KindTimeout: true,
	} {
		if got := (&model.Error{Kind: kind}).Temporary(); got != want {
			t.Errorf("%s: Temporary = %v, want %v", kind, got, want)
		}
	}
}

func TestAnErrorHasItsMessageAndItsCause(t *testing.T) {
	err := error(&model.Error{Message: "one sentence", Err: io.EOF})
	if err.Error() != "one sentence" || !errors.Is(err, io.EOF) {
		t.Errorf("the error is %q, its cause %v", err, errors.Unwrap(err))
	}
}
