package window_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
)

// aStep draws an answer with a call and its result, or something that is said.
func aStep(t *rapid.T) []*model.Message {
	if rapid.IntRange(0, 3).Draw(t, "said") == 0 {
		return []*model.Message{said("go on")}
	}
	result := &model.Message{Role: model.ToolRole, CallID: "c", Text: strings.Repeat("output\n", rapid.IntRange(0, 2000).Draw(t, "lines")), Failed: rapid.Bool().Draw(t, "failed")}
	step := []*model.Message{{Role: model.Assistant, Calls: []model.Call{{ID: "c", Name: "bash"}}}, result}
	if rapid.IntRange(0, 5).Draw(t, "picture") == 0 {
		step = append(step, &model.Message{Role: model.User, CallID: "c", Text: "a picture", Images: make([]model.Image, 1)})
	}
	return step
}

func size(list []*model.Message) (n int) {
	for _, m := range list {
		n += window.Of(m)
	}
	return n
}

func TestPruningIsOnlyOfOldOutputAndTheBeginningStaysUntilItIsWorthIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		how := window.Pruning{Above: rapid.IntRange(0, 20_000).Draw(t, "above"), Protect: rapid.IntRange(0, 6000).Draw(t, "protect"), Every: rapid.IntRange(1, 6000).Draw(t, "every")}
		var p window.Pruner
		var list, before []*model.Message
		savedBefore := 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			list = append(list, aStep(t)...)
			kept := slices.Clone(list)
			pruned, saved := p.Prune(list, how)
			if !slices.Equal(list, kept) {
				t.Fatal("the history was changed")
			}
			var fresh window.Pruner
			if _, anew := fresh.Prune(list, how); anew != saved {
				t.Fatalf("a pruner that has seen nothing saves %d, this one %d", anew, saved)
			}
			if size(list)-size(pruned) != saved {
				t.Fatalf("%d tokens became %d, but %d are said to be saved", size(list), size(pruned), saved)
			}
			checkPruned(t, list, pruned, how)
			if changed := !slices.Equal(pruned[:len(before)], before); changed && saved-savedBefore < how.Every {
				t.Fatalf("the beginning changed to save %d tokens, want at least %d", saved-savedBefore, how.Every)
			} else if !changed && saved != savedBefore {
				t.Fatal("something was saved although nothing changed")
			}
			before, savedBefore = pruned, saved
		}
	})
}

func checkPruned(t *rapid.T, list, pruned []*model.Message, how window.Pruning) {
	if len(list) != len(pruned) {
		t.Fatalf("%d messages became %d", len(list), len(pruned))
	}
	if size(list) <= how.Above && !slices.Equal(list, pruned) {
		t.Fatalf("%d tokens were shortened, although %d are no pressure", size(list), how.Above)
	}
	for i, m := range list {
		stub := pruned[i]
		switch {
		case m == stub:
		case m.CallID == "":
			t.Fatalf("message %d, which is no output of a tool, was changed", i)
		case stub.Role != m.Role || stub.CallID != m.CallID || stub.Failed != m.Failed:
			t.Fatalf("message %d is not the result of its call any more: %+v", i, stub)
		case size(list[i:]) <= how.Protect:
			t.Fatalf("message %d is new and was changed", i)
		case !slices.ContainsFunc(list[i:], func(m *model.Message) bool { return m.Role == model.Assistant }):
			t.Fatalf("message %d was changed before any answer to it", i)
		}
	}
}

func TestOneLongTurnIsPrunedToo(t *testing.T) {
	list := []*model.Message{said("do it")}
	for range 50 {
		list = append(list, &model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "c", Name: "bash"}}},
			&model.Message{Role: model.ToolRole, CallID: "c", Text: "first line\n" + strings.Repeat("x", 8000)})
	}
	var p window.Pruner
	pruned, saved := p.Prune(list, window.PruningFor(50_000))
	if left := size(list) - saved; left > 30_000 || left < 20_000 {
		t.Errorf("saved %d tokens of %d", saved, size(list))
	}
	if text := pruned[2].Text; !strings.HasPrefix(text, "first line\n") || !strings.Contains(text, "7811 bytes") {
		t.Errorf("what is left of a result: %q", text)
	}
	if pruned[100] != list[100] {
		t.Error("the newest result was pruned")
	}
}

func TestLittleIsNotPruned(t *testing.T) {
	list := []*model.Message{{Role: model.Assistant, Calls: []model.Call{{ID: "c"}}}, {Role: model.ToolRole, CallID: "c", Text: strings.Repeat("x", 20_000)}, said("and?"), {Role: model.Assistant, Text: "so"}}
	for name, how := range map[string]window.Pruning{"too little": {Every: 10_000}, "off": {}, "protected": {Protect: 10_000, Every: 1}, "no pressure": {Above: 10_000, Every: 1}} {
		var p window.Pruner
		if pruned, saved := p.Prune(list, how); saved != 0 || !slices.Equal(pruned, list) {
			t.Errorf("%s: saved %d", name, saved)
		}
	}
}

// A window of 128k is used: with little of the history protected, requests would else never
// have more than a third of it.
func TestNothingIsPrunedWhileThereIsRoom(t *testing.T) {
	const limit = 128_000
	for name, letter := range map[string]string{"Latin": "x", "Cyrillic": "ж"} {
		var p window.Pruner
		list := []*model.Message{said("do it")}
		for bytes := 0; bytes < 4*limit/2; bytes += 8000 { // half of the window, at four bytes for a token
			list = append(list, &model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "c", Name: "bash"}}},
				&model.Message{Role: model.ToolRole, CallID: "c", Text: strings.Repeat(letter, 8000/len(letter))})
		}
		if _, saved := p.Prune(list, window.PruningFor(limit)); saved != 0 {
			t.Errorf("%s: %d tokens of %d were saved, with a limit of %d", name, saved, size(list), limit)
		}
		for range 60 {
			list = append(list, &model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "c", Name: "bash"}}},
				&model.Message{Role: model.ToolRole, CallID: "c", Text: strings.Repeat("x", 8000)})
		}
		pruned, saved := p.Prune(list, window.PruningFor(limit))
		if saved == 0 || name == "Latin" && (size(pruned) > limit*7/10 || size(pruned) < limit/2) {
			t.Errorf("%s: %d tokens became %d, with a limit of %d", name, size(list), size(pruned), limit)
		}
	}
}
