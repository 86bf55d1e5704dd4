package compact_test

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window/compact"
)

func noticed(text string) compact.Item {
	return compact.Item{Message: &model.Message{Role: model.User, Text: text}}
}

// TestWhatTheModelHasNotSeenIsKeptAsItWas compacts conversations whose end no
// request has carried yet.
func TestWhatTheModelHasNotSeenIsKeptAsItWas(t *testing.T) {
	old := []compact.Item{asked("begin"), answered(strings.Repeat("work ", 500))}
	pictured := asked("what is this?")
	pictured.Images = []model.Image{{MediaType: "image/png", Data: []byte("p")}}
	documented := asked("what does this say?")
	documented.Documents = []model.Document{{Name: "a.pdf", MediaType: model.PDF, Data: []byte("p")}}
	for name, fresh := range map[string][]compact.Item{
		"a notice":                   {noticed("task 1 has ended")},
		"several notices":            {noticed("task 1 has ended"), noticed("task 2 has ended")},
		"a request after a notice":   {noticed("task 1 has ended"), asked("go on")},
		"a notice after a request":   {asked("go on"), noticed("task 1 has ended")},
		"several requests":           {asked("do this"), asked("no, do that"), asked("and this as well")},
		"requests around a notice":   {asked("do this"), noticed("task 1 has ended"), asked("and that")},
		"a picture among requests":   {pictured, asked("answer in one word")},
		"a picture":                  {pictured},
		"a document":                 {documented},
		"calls":                      called("task 1 has begun", "failed"),
		"calls, and then a notice":   append(called("task 1 has begun"), noticed("task 1 has ended")),
		"calls, and then a request":  append(called("task 1 has begun"), asked("stop")),
		"words of a hook, and calls": append(called("it was done"), noticed("the hook says no"), noticed("task 1 has ended")),
	} {
		for _, in := range []compact.Input{{}, {Must: true}, {Retain: 10}, {Retain: 50, Must: true}} {
			in.Items, in.Room, in.AskRoom = append(old[:2:2], fresh...), 100_000, 20_000
			checkUnseen(t, name+", summarised", in, fresh, summary("Work was done."), nil)
			if in.Must {
				checkUnseen(t, name+", digested", in, fresh, nil, errNoKey)
			}
		}
	}
}

var errNoKey = &model.Error{Kind: model.KindAuth, Message: "no key"}

// checkUnseen fails if a compaction loses or changes what the model has not seen.
func checkUnseen(t *testing.T, name string, in compact.Input, fresh []compact.Item, reply *model.Reply, err error) {
	t.Helper()
	r, requests := run(compact.New(in), reply, err)
	if r.Outcome != compact.Done {
		t.Errorf("%s: %+v", name, r)
		return
	}
	list := view(in.Items, r)
	for _, it := range fresh {
		if it.Asked && len(list) > 0 && r.Head.Asked[len(r.Head.Asked)-1] == it.Text && len(r.Head.Images) == len(it.Images) && len(r.Head.Message().Documents) == len(it.Documents) {
			continue // the head has it, in full
		}
		if n := count(list, it.Message); n != 1 {
			t.Errorf("%s, retain %d: %q is there %d times", name, in.Retain, it.Text, n)
		}
	}
	for _, req := range requests {
		for _, it := range fresh {
			if !it.Asked && it.Text != "" && strings.Contains(req.Messages[0].Text, it.Text) {
				t.Errorf("%s: %q is to be summarised", name, it.Text)
			}
		}
	}
}

// count returns how often a message is in a list.
func count(list []*model.Message, wanted *model.Message) (n int) {
	for _, m := range list {
		if m == wanted {
			n++
		}
	}
	return n
}

func TestASummaryIsShortenedBeforeWhatTheModelHasNotSeen(t *testing.T) {
	items := append([]compact.Item{asked("look"), answered("I look.")}, called(strings.Repeat("line\n", 2000))...)
	items = append(items, noticed("task 1 has ended"))
	r, _ := run(compact.New(compact.Input{Items: items, Room: 4000, Must: true, AskRoom: 20_000}), summary(strings.Repeat("old news ", 2000)), nil)
	if r.Outcome != compact.Done || r.Cut != 2 || r.Most != 0 {
		t.Errorf("%+v, want the step kept as it was", r)
	}
}

// TestANoticeIsKeptIfAStepDoesNotFit gives up calls that are too large, and
// then even the requests, but not what only a notice says.
func TestANoticeIsKeptIfAStepDoesNotFit(t *testing.T) {
	huge := make([]string, 60)
	for i := range huge {
		huge[i] = strings.Repeat("line\n", 200)
	}
	items := append([]compact.Item{asked("look"), answered("I look.")}, called(huge...)...)
	items = append(items, noticed("task 1 has ended"), noticed("task 2 has ended"))
	for _, reply := range []*model.Reply{summary("It was looked at."), {}} {
		r, _ := run(compact.New(compact.Input{Items: items, Room: 1500, Must: true, AskRoom: 20_000}), reply, nil)
		if r.Outcome != compact.Done || r.Cut != len(items)-2 {
			t.Errorf("%+v, want both notices kept", r)
		}
	}
	items = append(items, asked(strings.Repeat("x", 10_000)), asked("never mind"))
	for _, reply := range []*model.Reply{summary("It was looked at."), {}} {
		r, _ := run(compact.New(compact.Input{Items: items, Room: 1500, Must: true, AskRoom: 20_000}), reply, nil)
		text := r.Head.Message().Text
		if r.Outcome != compact.Done || r.Cut != len(items) {
			t.Fatalf("%+v, want nothing kept", r)
		}
		for want, times := range map[string]int{"task 1 has ended": 1, "task 2 has ended": 1, "never mind": 2} { // the newest request is told again
			if strings.Count(text, want) != times {
				t.Errorf("%q is there %d times in %q", want, strings.Count(text, want), text)
			}
		}
	}
}

func TestARequestThatNobodyHasAnsweredStaysInFullOverTwoCompactions(t *testing.T) {
	long := strings.Repeat("please ", 1000)
	head := &compact.Head{Asked: []string{"long ago", long}, Summary: "Work was done."}
	in := compact.Input{Head: head, Items: []compact.Item{asked("and quickly")}, Room: 5000, Must: true, AskRoom: 20_000}
	r, _ := run(compact.New(in), summary("Work was done."), nil)
	if text := view(in.Items, r); r.Outcome != compact.Done || !strings.Contains(text[0].Text, long) {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
}

// What a head has to tell stays in it until a request was answered, however often it is
// compacted before.
func TestANoticeInAHeadThatNobodyHasReadStaysInTheNext(t *testing.T) {
	head := &compact.Head{Asked: []string{"look"}, Current: true, Summary: "Work was done.", Unread: "task 1 has ended"}
	for name, test := range map[string]struct {
		items []compact.Item
		want  int
	}{
		"nobody has read it": {[]compact.Item{noticed("task 2 has ended"), asked(strings.Repeat("x", 9000)), asked("never mind")}, 1},
		"it was answered":    {[]compact.Item{answered("I see."), asked("and now?")}, 0},
	} {
		r, _ := run(compact.New(compact.Input{Head: head, Items: test.items, Room: 1500, Must: true, AskRoom: 20_000}), summary("Work was done."), nil)
		if r.Outcome != compact.Done {
			t.Fatalf("%s: %+v", name, r)
		}
		if got := strings.Count(r.Head.Message().Text, "task 1 has ended"); got != test.want {
			t.Errorf("%s: the notice is there %d times in %q", name, got, r.Head.Message().Text)
		}
	}
}
