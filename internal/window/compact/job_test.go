package compact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/compact"
)

// run drives a job with the same reply to everything.
func run(j *compact.Job, reply *model.Reply, err error) (*compact.Result, []*model.Request) {
	var requests []*model.Request
	for req := j.Next(); req != nil; req = j.Next() {
		requests = append(requests, req)
		j.Take(reply, err)
	}
	return j.Result(), requests
}

func summary(text string) *model.Reply {
	arguments, _ := json.Marshal(map[string]string{"text": text})
	return &model.Reply{Calls: []model.Call{{ID: "1", Name: compact.WriteSummary, Arguments: arguments}}}
}

func TestWhateverTheSummariserDoesTheResultIsLegalAndFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := compact.Input{
			Items: aConversation(t), Room: rapid.IntRange(0, 20_000).Draw(t, "room"), Retain: rapid.IntRange(0, 5000).Draw(t, "retain"),
			Must: rapid.Bool().Draw(t, "must"), AskRoom: rapid.IntRange(0, 20_000).Draw(t, "ask room"),
		}
		if rapid.Bool().Draw(t, "epoch") {
			in.Head = &compact.Head{Asked: []string{"long ago"}, Omitted: 2, Summary: strings.Repeat("known ", 500)}
		}
		if rapid.Bool().Draw(t, "ride") {
			in.Ride, in.Left = &model.Request{Messages: messages(in.Items)}, rapid.IntRange(0, 3000).Draw(t, "left")
		}
		kept := slices.Clone(in.Items)
		j := compact.New(in)
		asks := 0
		for req := j.Next(); req != nil; req = j.Next() {
			if asks++; asks > compact.MostAsks {
				t.Fatalf("asked %d times", asks)
			}
			checkRequest(t, in, req)
			j.Take(aReply(t))
		}
		r := j.Result()
		if r == nil || r.Asked != asks {
			t.Fatalf("after %d requests: %+v", asks, r)
		}
		if !slices.Equal(in.Items, kept) {
			t.Fatal("the items were changed")
		}
		checkResult(t, in, r)
	})
}

// checkRequest fails if a request to the summariser is larger than it may be.
func checkRequest(t *rapid.T, in compact.Input, req *model.Request) {
	var m window.Meter
	total := m.Read(req).Tokens
	if req.System == "" { // it rides on the conversation
		if grown := total - size(in.Ride.Messages); grown > in.Left {
			t.Fatalf("the prompt has %d tokens, there is room for %d", grown, in.Left)
		}
		return
	}
	if total > in.AskRoom {
		t.Fatalf("a request of %d tokens, there is room for %d", total, in.AskRoom)
	}
}

func checkResult(t *rapid.T, in compact.Input, r *compact.Result) {
	switch {
	case r.Outcome == compact.Done:
		checkDone(t, in, r)
	case r.Err == nil || r.Head != nil:
		t.Fatalf("%s without a reason, or with a head: %+v", r.Outcome, r)
	case r.Outcome == compact.Skipped && (in.Must || r.Asked > 0):
		t.Fatalf("skipped after %d requests although it must: %+v", r.Asked, r)
	case r.Outcome == compact.Failed && in.Must:
		newest := 0
		for _, it := range in.Items {
			if it.Asked {
				newest = 2*window.Of(it.Message) + 100 // the newest input is quoted
			}
		}
		if in.Room > newest+600 {
			t.Fatalf("there is room for %d tokens, and the newest request has at most %d: %v", in.Room, newest, r.Err)
		}
	}
}

func checkDone(t *rapid.T, in compact.Input, r *compact.Result) {
	list := view(in.Items, r)
	checkPairing(t, list)
	if got := size(list); got != r.After || got > in.Room {
		t.Fatalf("%d tokens, said to be %d, room for %d", got, r.After, in.Room)
	}
	for i, it := range in.Items[r.Cut:] {
		m := list[1+i]
		if m != it.Message && (r.Most == 0 || it.CallID == "") {
			t.Fatalf("item %d is kept, but not as it was", r.Cut+i)
		}
	}
	if r.Most == 0 && r.Cut < len(in.Items) && size(list[1:]) > max(in.Retain, size(messages(in.Items[naiveCut(in.Items, 0):]))) {
		t.Fatalf("%d tokens are kept, want at most %d or the newest step", size(list[1:]), in.Retain)
	}
	all, newest := 0, ""
	for _, it := range in.Items {
		if it.Asked {
			all, newest = all+1, it.Text
		}
	}
	shown := len(r.Head.Asked) + r.Head.Omitted
	for _, it := range in.Items[r.Cut:] {
		if it.Asked {
			shown++
		}
	}
	if in.Head != nil {
		all += 3
	}
	if shown != all {
		t.Fatalf("%d requests are shown or counted, there were %d", shown, all)
	}
	if inTail := slices.ContainsFunc(in.Items[r.Cut:], func(it compact.Item) bool { return it.Asked }); !inTail && r.Head.Asked[len(r.Head.Asked)-1] != newest {
		t.Fatalf("the newest request is not there in full: %q", r.Head.Asked)
	}
}

func lastAnswer(items []compact.Item) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Role == model.Assistant {
			return i
		}
	}
	return len(items)
}

// naiveCut tries every place.
func naiveCut(items []compact.Item, retain int) int {
	last := lastAnswer(items)
	if last == len(items) {
		return 0 // the model has not seen anything
	}
	if len(items[last].Calls) == 0 {
		last++
	}
	cut := last
	for i := last; i >= 0; i-- {
		if legal := i == len(items) || items[i].CallID == ""; legal && size(messages(items[i:])) <= retain {
			cut = i
		}
	}
	for cut < last && items[cut].Role == model.User {
		cut++
	}
	requests := 0
	for _, it := range items[last:] {
		if it.Asked {
			requests++
		}
	}
	if cut == last && requests == 1 && items[cut].Asked {
		cut++ // the head has it
	}
	return cut
}

func TestTheCutIsTheFirstLegalOneThatRetainsNoMoreThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := aConversation(t)
		retain := rapid.IntRange(0, size(messages(items))+10).Draw(t, "retain")
		want := naiveCut(items, retain)
		r, _ := run(compact.New(compact.Input{Items: items, Room: 1 << 30, Retain: retain, AskRoom: 50_000}), summary("Short."), nil)
		nothing := !slices.ContainsFunc(items[:want], func(it compact.Item) bool { return !it.Asked })
		if nothing && r.Outcome != compact.Skipped || !nothing && (r.Outcome != compact.Done || r.Cut != want) {
			t.Fatalf("%s with the cut at %d, want %d (nothing to do: %v)", r.Outcome, r.Cut, want, nothing)
		}
	})
}

func TestManyEpochsStayWithinTheWindowAndForgetNoRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(2000, 20_000).Draw(t, "room")
		var head *compact.Head
		var items []compact.Item
		requests := 0
		for range 25 {
			for _, it := range aStep(t) {
				if it.Asked {
					it.Message = &model.Message{Role: model.User, Text: window.Head(it.Text, 1000)}
					requests++
				}
				items = append(items, it)
			}
			list := epochView(head, messages(items), 0, 0)
			if size(list) <= room {
				continue
			}
			j := compact.New(compact.Input{Head: head, Items: items, Room: room, Retain: room / 16, Must: true, AskRoom: room})
			for req := j.Next(); req != nil; req = j.Next() {
				j.Take(aReply(t))
			}
			r := j.Result()
			if r.Outcome != compact.Done || r.After > room {
				t.Fatalf("%s with %d tokens, room for %d: %v", r.Outcome, r.After, room, r.Err)
			}
			head, items = r.Head, slices.Clone(items[r.Cut:])
			for i := range items {
				items[i].Message = compact.Reduce(items[i].Message, r.Most)
			}
		}
		known := 0
		if head != nil {
			known = len(head.Asked) + head.Omitted
		}
		for _, it := range items {
			if it.Asked {
				known++
			}
		}
		if known != requests {
			t.Fatalf("%d requests are known, %d were made", known, requests)
		}
	})
}

func TestOneHugeTurnIsCutToo(t *testing.T) {
	items := []compact.Item{asked("build it")}
	for range 30 {
		items = append(items, called(strings.Repeat("out ", 500), "more")...)
	}
	r, _ := run(compact.New(compact.Input{Items: items, Room: 8000, Retain: 2000, Must: true, AskRoom: 30_000}), summary("It builds."), nil)
	if r.Outcome != compact.Done || r.Cut != len(items)-9 || r.Most != 0 {
		t.Fatalf("%+v, want three steps kept", r)
	}
	if text := r.Head.Message().Text; !strings.Contains(text, "build it") || !strings.Contains(text, "It builds.") {
		t.Errorf("the head is %q", text)
	}
}

func TestNothingToSummariseIsSkippedWithoutAsking(t *testing.T) {
	for name, in := range map[string]compact.Input{
		"nothing at all":              {},
		"only a request":              {Items: []compact.Item{asked("hello")}},
		"all of it is to be retained": {Items: []compact.Item{asked("hello"), answered("hi")}, Retain: 10_000},
		"only what was not seen yet":  {Items: append([]compact.Item{asked("go")}, called("done")...)},
	} {
		in.Room, in.AskRoom = 100_000, 100_000
		r, requests := run(compact.New(in), summary("x"), nil)
		if r.Outcome != compact.Skipped || !errors.Is(r.Err, compact.ErrNothing) || len(requests) > 0 {
			t.Errorf("%s: %+v after %d requests", name, r, len(requests))
		}
	}
}

func TestAFailingSummariserFailsUnlessItMust(t *testing.T) {
	items := []compact.Item{asked("first"), answered(strings.Repeat("long ", 3000)), asked("second")}
	exhausted := &model.Error{Kind: model.KindScenario, Message: "no reply is left"}
	for name, test := range map[string]struct {
		reply *model.Reply
		err   error
		asks  int
	}{
		"an error":            {nil, exhausted, 1},
		"nothing":             {&model.Reply{}, nil, 2},
		"only blanks":         {&model.Reply{Text: " \n"}, nil, 2},
		"that there is none":  {&model.Reply{Text: "<overview>None.</overview>\n<history>(nothing)</history>"}, nil, 2},
		"another tool":        {&model.Reply{Calls: []model.Call{{Name: "bash"}}}, nil, 2},
		"half of a summary":   {&model.Reply{Text: "The user", Finish: "length"}, nil, 2},
		"arguments of no use": {&model.Reply{Calls: []model.Call{{Name: compact.WriteSummary, Arguments: json.RawMessage(`{"text":`)}}}, nil, 2},
	} {
		in := compact.Input{Items: items, Room: 2000, AskRoom: 20_000}
		r, requests := run(compact.New(in), test.reply, test.err)
		if r.Outcome != compact.Failed || r.Err == nil || len(requests) != test.asks {
			t.Errorf("%s: %+v after %d requests, want a failure after %d", name, r, len(requests), test.asks)
		}
		if test.asks == 2 && !strings.Contains(requests[1].Messages[0].Text, r.Err.Error()) {
			t.Errorf("%s: the model is not told what was wrong", name)
		}
		in.Must = true
		r, _ = run(compact.New(in), test.reply, test.err)
		if r.Outcome != compact.Done || r.Summary != "" || r.Err == nil || !strings.Contains(r.Head.Summary, "- answered: long long") {
			t.Errorf("%s, and it must: %+v", name, r)
		}
		if r.Usage.Input == 0 && test.err == nil {
			t.Errorf("%s: what it cost is not told", name)
		}
	}
}

func TestASummaryThatIsStillTooLargeEscalatesToAClearError(t *testing.T) {
	huge := asked(strings.Repeat("x", 100_000))
	items := append([]compact.Item{asked("first"), answered("ok"), huge}, called("a")...)
	in := compact.Input{Items: items, Room: 10_000, Must: true, AskRoom: 20_000}
	r, requests := run(compact.New(in), summary("Short."), nil)
	if r.Outcome != compact.Failed || !strings.Contains(r.Err.Error(), "the newest message alone has about 25012 tokens") || len(requests) > compact.MostAsks {
		t.Errorf("%+v after %d requests", r, len(requests))
	}
	in.Items = append(slices.Clone(items), answered("too long"), asked("sorry, here is less"))
	if r, _ = run(compact.New(in), summary("Short."), nil); r.Outcome != compact.Done || r.After > 10_000 {
		t.Errorf("the session is not usable afterwards: %+v", r)
	}
	in.Room = 100
	if r, _ = run(compact.New(in), summary("Short."), nil); r.Outcome != compact.Failed || !strings.Contains(r.Err.Error(), "the system prompt, the tools and the answer leave room for 100 tokens") {
		t.Errorf("without room for anything: %+v", r)
	}
}

// What else is in a head gives way to the newest request, also its repetition at the end. A
// request that is refused does not fit, and the error says so.
func TestARequestThatFitsIsNotRefusedBecauseOfTheRest(t *testing.T) {
	const room, least = 10_000, 260 // least is the size of a head that has a request and hardly anything else
	marked := make(map[bool]int)
	for size := 4 * (room - 1000); size <= 4*room; size += 50 {
		text := "begin " + strings.Repeat("x", size)
		in := compact.Input{Items: []compact.Item{asked("first"), answered(strings.Repeat("long ", 1000)), asked(text)}, Room: room, Must: true, AskRoom: 20_000}
		r, _ := run(compact.New(in), summary(strings.Repeat("It was so. ", 500)), nil)
		if r.Outcome == compact.Done {
			head := r.Head.Message().Text
			if r.After > room || !strings.Contains(head, text) {
				t.Errorf("of a request of %d bytes, %d tokens are in a head of %d", size, window.Tokens(text), r.After)
			}
			marked[strings.Contains(head, "The newest message of the user is this one.") && strings.Count(head, "begin ") == 2]++
			continue
		}
		var has, fits int
		if _, err := fmt.Sscanf(r.Err.Error(), "the newest message alone has about %d tokens, but the model's window has room for %d:", &has, &fits); err != nil || has <= fits {
			t.Errorf("a request of %d bytes: %v", size, r.Err)
		}
		if window.Tokens(text) <= room-least {
			t.Errorf("a request of %d tokens is refused, although a head with it has %d at most: %v", window.Tokens(text), window.Tokens(text)+least, r.Err)
		}
	}
	if marked[true] < 10 || marked[false] == 0 {
		t.Errorf("%v requests are marked as the newest", marked)
	}
}

func TestAHugeResultIsReducedBeforeTheStepIsGivenUp(t *testing.T) {
	items := append([]compact.Item{asked("look"), answered("I look.")}, called(strings.Repeat("line\n", 20_000))...)
	r, _ := run(compact.New(compact.Input{Items: items, Room: 5000, Must: true, AskRoom: 20_000}), summary("Short."), nil)
	if r.Outcome != compact.Done || r.Cut != 2 || r.Most != 8192 {
		t.Fatalf("%+v, want the step kept with a shorter result", r)
	}
	if result := view(items, r)[2]; !strings.Contains(result.Text, "bytes left out") || result.CallID != "call-0" {
		t.Errorf("the result is %.80q", result.Text)
	}
}

func TestALongRecordIsReadInPartsThatAreCarriedOn(t *testing.T) {
	items := []compact.Item{asked("go")}
	for range 20 {
		items = append(items, answered(strings.Repeat("word ", 1000)))
	}
	j := compact.New(compact.Input{Items: items, Room: 100_000, AskRoom: 6000, Ask: model.Request{Model: "small"}})
	parts := 0
	for req := j.Next(); req != nil; req = j.Next() {
		text := req.Messages[0].Text
		if req.Model != "small" || len(req.Tools.List) != 1 || req.Tools.List[0].Name != compact.WriteSummary {
			t.Fatalf("request %+v", req)
		}
		if parts > 0 && !strings.Contains(text, "as of part "+string(rune('A'+parts-1))) {
			t.Fatalf("part %d does not carry on what is known", parts)
		}
		j.Take(summary("as of part "+string(rune('A'+parts))), nil)
		parts++
	}
	if r := j.Result(); parts < 5 || r.Outcome != compact.Done || r.Summary != "as of part "+string(rune('A'+parts-1)) {
		t.Errorf("%+v after %d parts", r, parts)
	}
}

func TestAJobEndsHoweverManyPartsThereAre(t *testing.T) {
	items := []compact.Item{asked("go")}
	for range 60 {
		items = append(items, answered(strings.Repeat("word ", 1000)))
	}
	for _, must := range []bool{false, true} {
		j := compact.New(compact.Input{Items: items, Room: 100_000, AskRoom: 8000, Must: must})
		asks := 0
		for req := j.Next(); req != nil; req = j.Next() {
			if asks++; asks == 1 { // twice as many parts
				j.Take(nil, &model.Error{Kind: model.KindOverflow, Message: "too long"})
			} else if asks%2 == 0 {
				j.Take(&model.Reply{}, nil) // each at the second try
			} else {
				j.Take(summary("so far"), nil)
			}
		}
		if r := j.Result(); asks != compact.MostAsks || !strings.Contains(r.Err.Error(), "no summary after 64 requests") || (r.Outcome == compact.Done) != must {
			t.Errorf("after %d requests: %+v", asks, r)
		}
	}
}

func TestTheSummaryIsAskedForInTheCachedConversationIfItFits(t *testing.T) {
	items := []compact.Item{asked("first"), answered("one"), asked("second")}
	ride := &model.Request{Model: "main", System: "S", Tools: &model.Tools{}, Messages: messages(items), Tail: "running: nothing"}
	in := compact.Input{Items: items, Room: 10_000, Ride: ride, Left: 10_000, AskRoom: 10_000, Instructions: "Keep the names."}
	r, requests := run(compact.New(in), &model.Reply{Text: "<overview>Two things.</overview>"}, nil)
	if r.Outcome != compact.Done || r.Summary != "<overview>Two things.</overview>" || len(requests) != 1 {
		t.Fatalf("%+v after %d requests", r, len(requests))
	}
	req := requests[0]
	if req.System != "S" || req.Tools != ride.Tools || !slices.Equal(req.Messages[:3], ride.Messages) || len(req.Messages) != 4 || req.Tail != "" {
		t.Errorf("it does not ride: %+v", req)
	}
	prompt := req.Messages[3].Text
	if !strings.HasPrefix(prompt, "Please create a detailed summary of the conversation so far. The history is being compacted") || !strings.Contains(prompt, "Keep the names.") {
		t.Errorf("prompt: %q", prompt)
	}
	in.Left = 100
	if _, requests = run(compact.New(in), summary("x y"), nil); len(requests) != 1 || requests[0].System == "S" {
		t.Error("it rides although there is no room")
	}
	in.Left = 10_000
	j := compact.New(in)
	j.Next()
	j.Take(nil, &model.Error{Kind: model.KindOverflow, Message: "too long"})
	if req := j.Next(); req == nil || req.System == "S" {
		t.Error("a conversation that was refused is not read in parts")
	}
}

func TestAnAbortedJobLeavesTheEpochAsItIs(t *testing.T) {
	stopped := errors.New("stopped")
	j := compact.New(compact.Input{Items: []compact.Item{asked("a"), answered("b")}, Room: 1000, Must: true, AskRoom: 10_000})
	j.Next()
	j.Abort(stopped)
	if r := j.Result(); r.Outcome != compact.Failed || !errors.Is(r.Err, stopped) || r.Head != nil || j.Next() != nil {
		t.Errorf("%+v", r)
	}
}

func TestThereIsRoomToTellASummariserWhatWasWrong(t *testing.T) {
	rode := false
	for left := range 1000 {
		in := compact.Input{Items: append([]compact.Item{asked("begin")}, answered("well")), Room: 10_000, AskRoom: 10_000, Left: left}
		in.Ride = &model.Request{Messages: messages(in.Items)}
		j := compact.New(in)
		for try := range 2 {
			req := j.Next()
			if req == nil || len(req.Messages) != len(in.Items)+1 {
				break // it reads the record instead
			}
			rode = true
			if n := window.Of(req.Messages[len(req.Messages)-1]); n > left {
				t.Fatalf("attempt %d has %d tokens, there is room for %d", try+1, n, left)
			}
			j.Take(&model.Reply{}, nil)
		}
	}
	if !rode {
		t.Error("it never asked at the end of the conversation")
	}
}

func TestASummaryThatIsLargerThanWhatItReplacesIsAFailure(t *testing.T) {
	items := []compact.Item{asked("hi"), answered("Hello."), asked("and?")}
	long := summary("It was said: " + strings.Repeat("hello ", 2000))
	in := compact.Input{Items: items, Room: 10_000, AskRoom: 10_000, Shrink: true}
	if r, _ := run(compact.New(in), long, nil); r.Outcome != compact.Failed || !strings.Contains(r.Err.Error(), "larger") || r.Usage == (model.Usage{}) {
		t.Errorf("%+v", r)
	}
	in.Shrink = false // a person has asked for it
	if r, _ := run(compact.New(in), long, nil); r.Outcome != compact.Done {
		t.Errorf("by hand: %+v", r)
	}
	in.Shrink, in.Items = true, append([]compact.Item{asked("begin"), answered(strings.Repeat("work ", 20_000))}, items...)
	if r, _ := run(compact.New(in), long, nil); r.Outcome != compact.Done || r.After >= r.Before {
		t.Errorf("a summary of much: %+v", r)
	}
}

// A summariser that goes on with its work is told not to call tools: first where that is free,
// then in any case, and then it is given a record and no tools.
func TestASummariserThatCallsToolsIsMadeToSummarise(t *testing.T) {
	items := []compact.Item{asked("first"), answered("one"), asked("second")}
	ride := &model.Request{Model: "main", System: "S", Tools: &model.Tools{}, Messages: messages(items), Schema: &model.Schema{}}
	in := compact.Input{Items: items, Room: 10_000, Ride: ride, Left: 10_000, AskRoom: 10_000}
	working := &model.Reply{Calls: []model.Call{{Name: "bash", Arguments: json.RawMessage(`{}`)}}}
	j := compact.New(in)
	for i, want := range []model.Calling{model.ShouldNotCall, model.MustNotCall} {
		req := j.Next()
		if req.System != "S" || req.Calling != want || req.Schema != nil {
			t.Fatalf("request %d: %+v", i, req)
		}
		j.Take(working, nil)
	}
	if req := j.Next(); req == nil || req.System == "S" || req.Calling != model.MayCall || len(req.Tools.List) != 1 {
		t.Fatalf("it is not given a record: %+v", req)
	}
	j.Take(summary("All is well."), nil)
	if r := j.Result(); r == nil || r.Outcome != compact.Done || r.Asked != 3 {
		t.Errorf("%+v", r)
	}
	j = compact.New(in)
	j.Next()
	j.Take(nil, &model.Error{Kind: model.KindRequest, Message: "tool_choice is not known here"})
	if req := j.Next(); req == nil || req.System != "S" || req.Calling != model.MayCall {
		t.Fatalf("a provider that does not know the field is asked %+v", req)
	}
	j.Take(nil, &model.Error{Kind: model.KindRequest, Message: "no"})
	if r := j.Result(); r == nil || r.Outcome != compact.Failed {
		t.Errorf("a request that is refused all the same: %+v", r)
	}
}
