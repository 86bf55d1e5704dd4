package offline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func user(text string) *model.Message { return &model.Message{Role: model.User, Text: text} }

func ask(t testing.TB, messages ...*model.Message) *model.Reply {
	t.Helper()
	reply, err := offline.Model{}.Ask(t.Context(), &model.Request{Messages: messages}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// saidBy is the message that a reply becomes in the history.
func saidBy(reply *model.Reply) *model.Message {
	return &model.Message{Role: model.Assistant, Text: reply.Text, Calls: reply.Calls}
}

// answered continues a conversation with a reply and one result for each call.
func answered(messages []*model.Message, reply *model.Reply, results ...string) []*model.Message {
	messages = append(messages, saidBy(reply))
	for i, c := range reply.Calls {
		text, failed := strings.CutPrefix(results[i], "failed:")
		messages = append(messages, &model.Message{Role: model.ToolRole, CallID: c.ID, Text: text, Failed: failed})
	}
	return messages
}

// made lists calls without their ids.
func made(reply *model.Reply) []string {
	var list []string
	for _, c := range reply.Calls {
		list = append(list, c.Name+" "+string(c.Arguments))
	}
	return list
}

func TestSaysWhatItIsTold(t *testing.T) {
	for in, want := range map[string]string{
		"Reply with exactly: HELLO":               "HELLO",
		"reply WITH exactly:HELLO.":               "HELLO.",
		"Reply with exactly :  one\ntwo\n\nthree": "one\ntwo\n\nthree",
		"Reply with exactly: Run `date`":          "Run `date`",
		"<current_datetime>now</current_datetime>\n\nReply with exactly: X\n\n<system_reminder>y</system_reminder>": "X",
	} {
		reply := ask(t, user(in))
		if reply.Text != want || len(reply.Calls) != 0 || reply.Finish != "stop" {
			t.Errorf("%q: %+v, want %q", in, reply, want)
		}
	}
}

func TestMakesTheCallsItIsTold(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"Use lookup with value 'beta', then reply with the result", []string{`lookup {"value":"beta"}`}},
		{"Use lookup with value 'beta', then reply with the result.", []string{`lookup {"value":"beta"}`}},
		{"use lookup with VALUE \"it's\" and reply with the result!", []string{`lookup {"value":"it's"}`}},
		{"Use `my-server/look.up` with value ''.", []string{`my-server/look.up {"value":""}`}},
		{`Use lookup with value 'a \'b\' "c" \\ \n <d>', then reply with the result`, []string{`lookup {"value":"a 'b' \"c\" \\ \\n <d>"}`}},
		{"Use lookup with value 'two\nlines', then reply with the result", []string{`lookup {"value":"two\nlines"}`}},
		{
			"Call a with value 'x' and b with value 'y', then reply with both results.",
			[]string{`a {"value":"x"}`, `b {"value":"y"}`},
		},
		{
			"Call a with value 'x', a with value 'x', and c with value ', and', then reply with all the results",
			[]string{`a {"value":"x"}`, `a {"value":"x"}`, `c {"value":", and"}`},
		},
		{"Run `date`", []string{`bash {"command":"date","description":"Run date"}`}},
		{"run `date`, then reply with the output.", []string{`bash {"command":"date","description":"Run date"}`}},
		{"Run `sleep 5 && echo 'x'` in the background.", []string{`bash {"command":"sleep 5 && echo 'x'","description":"Run sleep 5 && echo 'x'","mode":"async"}`}},
		{"Run `` echo `date` `` IN the Background, then reply with the result", []string{"bash {\"command\":\"echo `date`\",\"description\":\"Run echo `date`\",\"mode\":\"async\"}"}},
		{"Run ```\necho 1\necho 2\n```", []string{`bash {"command":"echo 1\necho 2","description":"Run echo 1"}`}},
		{
			"Run `" + strings.Repeat("ü", 100) + "`",
			[]string{fmt.Sprintf(`bash {"command":"%s","description":"Run %s…"}`, strings.Repeat("ü", 100), strings.Repeat("ü", 59))},
		},
		{"Ask me: red or blue?", []string{`ask_user {"question":"red or blue?"}`}},
		{"ask me:\nred\nor blue?", []string{`ask_user {"question":"red\nor blue?"}`}},
	} {
		reply := ask(t, user(tt.in))
		if diff := cmp.Diff(tt.want, made(reply)); diff != "" || reply.Text != "" || reply.Finish != "tool_calls" {
			t.Errorf("%q: text %q, finish %q, calls -want +got\n%s", tt.in, reply.Text, reply.Finish, diff)
		}
	}
}

func TestIntroducesItselfToWhatItDoesNotUnderstand(t *testing.T) {
	for _, in := range []string{
		"", "Hello!", "Reply with exactly:", "Reply with something", "Ask me: ", "Run date", "Run ``", "Run `date", "Run `a` and `b`",
		"Use lookup", "Use lookup with value beta", "Use lookup with value 'beta", "Use lookup with value 'it's', then reply with the result",
		"Use a with value 'x'b with value 'y'", "Use a with value 'x' and", "Use a with value 'x' in the background", "Used a with value 'x'",
		"Please use a with value 'x'", "Use a with value 'x\\'",
	} {
		reply := ask(t, user(in))
		if !strings.Contains(reply.Text, "offline model") || !strings.Contains(reply.Text, "Reply with exactly:") || len(reply.Calls) != 0 {
			t.Errorf("%q: %+v, want the introduction", in, reply)
		}
	}
	if reply := ask(t); !strings.Contains(reply.Text, "offline model") {
		t.Errorf("no messages: %+v, want the introduction", reply)
	}
}

func TestUnderstandsWhatItOffers(t *testing.T) {
	offer := ask(t, user("Hello!")).Text
	forms := 0
	for line := range strings.Lines(offer) {
		if form, ok := strings.CutPrefix(line, "  "); ok {
			forms++
			if reply := ask(t, user(form)); reply.Text == offer {
				t.Errorf("%q is not understood", form)
			}
		}
	}
	if forms != 7 {
		t.Errorf("it offers %d forms, want 7", forms)
	}
}

func TestRepliesWithTheResults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		in      string
		results []string
		want    string
	}{
		{"one", "Use a with value 'x', then reply with the result", []string{"BETA"}, "BETA"},
		{"two in the order of the calls", "Call a with value 'x' and b with value 'y', then reply with both results", []string{"A\n", "B"}, "A\n\nB"},
		{"a failure is told", "Use a with value 'x'", []string{"failed:no such tool"}, "a failed: no such tool"},
		{"a failure among others", "Call a with value 'x' and b with value 'y'", []string{"failed:rejected by the user", "B"}, "a failed: rejected by the user\nB"},
		{"an empty result", "Run `true`", []string{""}, "bash gave no result."},
		{"an answer", "Ask me: why?", []string{"User responded: because"}, "User responded: because"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conversation := []*model.Message{user(tt.in)}
			conversation = answered(conversation, ask(t, conversation...), tt.results...)
			if reply := ask(t, conversation...); reply.Text != tt.want || len(reply.Calls) != 0 {
				t.Errorf("reply = %+v, want %q", reply, tt.want)
			}
		})
	}
}

func TestRepliesInTheOrderOfTheCallsWhateverTheOrderOfTheResults(t *testing.T) {
	instruction := user("Call a with value 'x' and b with value 'y', then reply with both results")
	calls := ask(t, instruction)
	reply := ask(t, instruction, saidBy(calls),
		&model.Message{Role: model.ToolRole, CallID: calls.Calls[1].ID, Text: "B"},
		&model.Message{Role: model.ToolRole, CallID: calls.Calls[0].ID, Text: "A"})
	if reply.Text != "A\nB" {
		t.Errorf("reply = %q, want A and B", reply.Text)
	}
}

func TestTheNewestInstructionDecides(t *testing.T) {
	first := []*model.Message{user("Use a with value 'x', then reply with the result")}
	first = answered(first, ask(t, first...), "A")
	t.Run("steering replaces the instruction", func(t *testing.T) {
		steered := append(first, user("Reply with exactly: STEERED"))
		if reply := ask(t, steered...); reply.Text != "STEERED" {
			t.Errorf("reply = %q, want STEERED", reply.Text)
		}
	})
	t.Run("the same instruction again makes the call again", func(t *testing.T) {
		again := append(first, saidBy(ask(t, first...)), first[0])
		reply := ask(t, again...)
		if len(reply.Calls) != 1 || reply.Calls[0].ID == first[1].Calls[0].ID {
			t.Errorf("calls = %+v, want one with an id of its own", reply.Calls)
		}
	})
	t.Run("a reminder is no instruction", func(t *testing.T) {
		reminded := append(first, user("<system_reminder>tasks are running</system_reminder>"))
		if reply := ask(t, reminded...); reply.Text != "A" {
			t.Errorf("reply = %q, want the result", reply.Text)
		}
	})
	notified := user("<system_notification>\nit ended\n</system_notification>")
	t.Run("a notification before the reply does not replace it", func(t *testing.T) {
		if reply := ask(t, append(first, notified)...); reply.Text != "A" {
			t.Errorf("reply = %q, want the result", reply.Text)
		}
	})
	t.Run("a notification after the reply is told", func(t *testing.T) {
		if reply := ask(t, append(first, saidBy(ask(t, first...)), notified)...); reply.Text != "it ended" {
			t.Errorf("reply = %q, want the notification", reply.Text)
		}
	})
	t.Run("a notification alone is told", func(t *testing.T) {
		if reply := ask(t, notified); reply.Text != "it ended" {
			t.Errorf("reply = %q, want the notification", reply.Text)
		}
	})
}

func TestStreamsTheReplyAsItIs(t *testing.T) {
	for _, in := range []string{
		"Reply with exactly: one two  three\nfour",
		"Call a with value 'x' and b with value 'y'",
	} {
		var deltas []model.Delta
		req := &model.Request{Messages: []*model.Message{user(in)}}
		reply, err := offline.Model{}.Ask(t.Context(), req, func(d model.Delta) { deltas = append(deltas, d) })
		if err != nil {
			t.Fatal(err)
		}
		streamed := &model.Reply{}
		for _, d := range deltas {
			streamed.Text += d.Text
			if d.Arguments != "" {
				streamed.Calls = append(streamed.Calls, model.Call{ID: d.CallID, Name: d.CallName, Arguments: []byte(d.Arguments)})
			}
		}
		if streamed.Text != reply.Text || !cmp.Equal(streamed.Calls, reply.Calls) || len(deltas) < 2 {
			t.Errorf("%q: streamed %+v in %d deltas, replied %+v", in, streamed, len(deltas), reply)
		}
	}
}

func TestACancelledRequestGetsNoReply(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	req := &model.Request{Messages: []*model.Message{user("Reply with exactly: one two three")}}
	n := 0
	_, err := offline.Model{}.Ask(ctx, req, func(model.Delta) { n++; cancel() })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("err = %v after %d deltas, want context.Canceled after 1", err, n)
	}
	if _, err := (offline.Model{}).Ask(ctx, req, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}

// roundTrip returns the conversation as it comes back from a store.
func roundTrip(t interface{ Fatal(...any) }, messages []*model.Message) []*model.Message {
	data, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	var back []*model.Message
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestRepliesDependOnTheRequestAloneAndCallIDsAreUnique(t *testing.T) {
	instructions := rapid.SampledFrom([]string{
		"Reply with exactly: X", "Use a with value 'x'", "Call a with value 'x' and a with value 'x', then reply with both results",
		"Run `date`", "Ask me: why?", "hello", "<system_notification>ended</system_notification>", "<system_reminder>x</system_reminder>",
	})
	results := rapid.SampledFrom([]string{"", "A", "B", "failed:no"})
	rapid.Check(t, func(rt *rapid.T) {
		var conversation []*model.Message
		seen := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			if n := len(conversation); n == 0 || conversation[n-1].Role == model.Assistant || rapid.Bool().Draw(rt, "steer") {
				conversation = append(conversation, user(instructions.Draw(rt, "instruction")))
			}
			reply := ask(t, conversation...)
			if again := ask(t, roundTrip(rt, conversation)...); !cmp.Equal(reply, again) {
				rt.Fatalf("the same request got %+v and %+v", reply, again)
			}
			var got []string
			for _, c := range reply.Calls {
				if seen[c.ID] {
					rt.Fatalf("call id %s was used before", c.ID)
				}
				seen[c.ID] = true
				got = append(got, results.Draw(rt, "result"))
			}
			conversation = answered(conversation, reply, got...)
		}
	})
}

func FuzzAsk(f *testing.F) {
	for _, seed := range []string{
		"Reply with exactly: X", `Use a with value 'it\'s', then reply with the result.`, "Call a with value 'x' and b with value \"y\", then reply with both results",
		"Run `a` in the background", "Run `` a`b ``", "Ask me: Q", "Use a with value '\\", "<system_reminder>x</system_reminder>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		reply := ask(t, user(text))
		if again := ask(t, user(text)); !cmp.Equal(reply, again) {
			t.Errorf("%q got %+v and %+v", text, reply, again)
		}
		if reply.Usage.Input < 1 || reply.Usage.Output < 1 {
			t.Errorf("%q: usage %+v", text, reply.Usage)
		}
		for _, c := range reply.Calls {
			var args map[string]string
			if err := json.Unmarshal(c.Arguments, &args); err != nil || c.Name == "" {
				t.Errorf("%q: call %+v: %v", text, c, err)
			}
		}
	})
}
