package local_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
)

func user(text string) *model.Message { return &model.Message{Role: model.User, Text: text} }

func says(text string) *model.Message { return &model.Message{Role: model.Assistant, Text: text} }

func calls(ids ...string) *model.Message {
	m := &model.Message{Role: model.Assistant}
	for _, id := range ids {
		m.Calls = append(m.Calls, model.Call{ID: id, Name: "tool_" + id})
	}
	return m
}

func result(id, text string) *model.Message {
	return &model.Message{Role: model.ToolRole, CallID: id, Text: text}
}

func TestWordsAreWhatThePersonWrote(t *testing.T) {
	for in, want := range map[string]string{
		"  hello \n": "hello",
		"<current_datetime>2026</current_datetime>\n\nhello":                                          "hello",
		"hello\n\n<system_reminder>one\ntwo</system_reminder>":                                        "hello",
		"<reminder>a</reminder><ide_selection>b</ide_selection> hello <tagged_files>c</tagged_files>": "hello",
		"hello <system_reminder>a</system_reminder> <system_reminder>b</system_reminder>":             "hello",
		"<system_notification>\ndone\n</system_notification>":                                         "",
		"<system_reminder>never closed":                                                               "<system_reminder>never closed",
		"never opened</system_reminder>":                                                              "never opened</system_reminder>",
		"keep <system_reminder>this</system_reminder> in the middle":                                  "keep <system_reminder>this</system_reminder> in the middle",
		"<b>bold</b>": "<b>bold</b>",
		"<current_datetime>1</current_datetime>a<system_reminder>b</system_reminder>\n<reminder></reminder>": "a",
	} {
		if got := local.Words(in); got != want {
			t.Errorf("Words(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReadFindsTheNewestInstructionAndWhatFollowed(t *testing.T) {
	notified := user("<system_notification>\nit ended\n</system_notification>")
	reminded := user("<system_reminder>be kind</system_reminder>")
	failed := &model.Message{Role: model.ToolRole, CallID: "1", Text: "no", Failed: true}
	outcome := func(id string, m *model.Message) local.Outcome {
		return local.Outcome{Call: model.Call{ID: id, Name: "tool_" + id}, Result: m}
	}
	for _, tt := range []struct {
		name     string
		messages []*model.Message
		want     local.Turn
	}{
		{"nothing", nil, local.Turn{Step: 1}},
		{"the first request", []*model.Message{user("a")}, local.Turn{Instruction: "a", Step: 1}},
		{"an answered turn", []*model.Message{user("a"), says("b")}, local.Turn{Instruction: "a", Step: 2, Answered: true}},
		{
			"a second turn forgets the calls of the first",
			[]*model.Message{user("a"), calls("1"), result("1", "x"), says("x"), user("b")},
			local.Turn{Instruction: "b", Step: 1},
		},
		{
			"results in the order of the calls",
			[]*model.Message{user("a"), calls("1", "2"), result("2", "y"), failed},
			local.Turn{Instruction: "a", Step: 2, Results: 2, Outcomes: []local.Outcome{outcome("1", failed), outcome("2", result("2", "y"))}},
		},
		{
			"a call without a result",
			[]*model.Message{user("a"), calls("1")},
			local.Turn{Instruction: "a", Step: 2, Outcomes: []local.Outcome{outcome("1", nil)}},
		},
		{
			"steering during a call: its result belongs to the past",
			[]*model.Message{user("a"), calls("1"), user("b"), result("1", "x")},
			local.Turn{Instruction: "b", Step: 1},
		},
		{
			"reminders and notifications are no instructions",
			[]*model.Message{user("a"), calls("1"), result("1", "x"), notified, reminded},
			local.Turn{Instruction: "a", Step: 2, Results: 1, Notice: "it ended", Outcomes: []local.Outcome{outcome("1", result("1", "x"))}},
		},
		{
			"two notifications wake an answered turn",
			[]*model.Message{user("a"), says("b"), notified, notified},
			local.Turn{Instruction: "a", Step: 2, Answered: true, Notice: "it ended\nit ended"},
		},
		{
			"a notification that was replied to is over",
			[]*model.Message{user("a"), says("b"), notified, says("c")},
			local.Turn{Instruction: "a", Step: 3, Answered: true},
		},
		{
			"a picture without words is an instruction",
			[]*model.Message{user("a"), says("b"), {Role: model.User, Images: []model.Image{{MediaType: "image/png"}}}},
			local.Turn{Step: 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := local.Read(tt.messages)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(model.Message{})); diff != "" {
				t.Errorf("Read: -want +got\n%s", diff)
			}
		})
	}
}

func TestInstructionsAreCountedWithoutReminders(t *testing.T) {
	messages := []*model.Message{user("a"), says("b"), user("<reminder>x</reminder>"), user("c"), result("1", "d")}
	if got := local.Instructions(messages); got != 2 {
		t.Errorf("Instructions = %d, want 2", got)
	}
}

func TestDigestTellsConversationsApart(t *testing.T) {
	different := [][]*model.Message{
		nil,
		{user("ab")},
		{user("a"), user("b")},
		{says("ab")},
		{user("a"), says("b")},
		{result("a", "b")},
		{result("", "ab")},
		{result("b", "a")},
		{calls("1")},
		{calls("1"), calls("2")},
		{calls("1", "2")},
	}
	seen := map[string]int{}
	for i, messages := range different {
		d := local.Digest(messages)
		if j, ok := seen[d]; ok {
			t.Errorf("conversations %d and %d have the same digest %s", j, i, d)
		}
		seen[d] = i
	}
}

func TestDigestIgnoresTheTimeOfDay(t *testing.T) {
	morning := []*model.Message{user("<current_datetime>08:00</current_datetime>\n\nhello")}
	evening := []*model.Message{user("<current_datetime>20:00</current_datetime>\n\nhello")}
	if local.Digest(morning) != local.Digest(evening) {
		t.Error("the same words at another time have another digest")
	}
}

func TestPiecesAreTheTextAndFew(t *testing.T) {
	for text, want := range map[string]int{
		"":                           0,
		"word":                       1,
		"two words":                  2,
		" a  b\nc ":                  5,
		strings.Repeat("word ", 1e4): 64,
		strings.Repeat("x", 1e4):     1,
		"grüße an  alle 🌍🌍 hier":     6,
	} {
		pieces := local.Pieces(text)
		if got := strings.Join(pieces, ""); got != text {
			t.Errorf("Pieces(%.20q) joined = %.20q", text, got)
		}
		if len(pieces) != want {
			t.Errorf("Pieces(%.20q): %d pieces, want %d", text, len(pieces), want)
		}
	}
}

func TestEstimateCountsEverythingSentAndIsNeverZero(t *testing.T) {
	empty := local.Estimate(&model.Request{}, &model.Reply{})
	if want := (model.Usage{Input: 1, Output: 1}); empty != want {
		t.Errorf("empty request: %+v, want %+v", empty, want)
	}
	req := &model.Request{
		System:   "12345678",
		Tail:     "1234",
		Tools:    &model.Tools{List: []model.Tool{{Name: "tool", Description: "does", Parameters: []byte(`{  }`)}}},
		Messages: []*model.Message{user("12345678"), {Role: model.Assistant, Calls: []model.Call{{Name: "tool", Arguments: []byte(`{  }`)}}}},
	}
	reply := &model.Reply{Text: "12345678", Calls: []model.Call{{Name: "tool", Arguments: []byte(`{  }`)}}}
	if got, want := local.Estimate(req, reply), (model.Usage{Input: 10, Output: 4}); got != want {
		t.Errorf("Estimate = %+v, want %+v", got, want)
	}
}

func FuzzWords(f *testing.F) {
	f.Add("<current_datetime>x</current_datetime> hello <system_reminder>y</system_reminder>")
	f.Add("<system_reminder><system_reminder></system_reminder>")
	f.Fuzz(func(t *testing.T, text string) {
		words := local.Words(text)
		if !strings.Contains(text, words) {
			t.Errorf("Words(%q) = %q, which is not in it", text, words)
		}
		if again := local.Words(words); again != words {
			t.Errorf("Words(%q) = %q, and of that %q", text, words, again)
		}
	})
}
