package compact_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/compact"
)

// A life is a session that only measures, prunes and compacts, as the package
// says, with a provider that counts more tokens than we do.
type life struct {
	t      *testing.T
	meter  window.Meter
	pruner window.Pruner
	policy window.Policy
	gate   window.Gate
	head   *compact.Head
	first  *model.Message // first message of the epoch
	items  []compact.Item

	compactions, refused, said, longest int
}

const countedMore = 1.4

func counts(req *model.Request) int {
	var m window.Meter
	return int(countedMore * float64(m.Read(req).Tokens))
}

func (l *life) request() *model.Request {
	var list []*model.Message
	if l.head != nil {
		list = append(list, l.first)
	}
	list = append(list, messages(l.items)...)
	list, _ = l.pruner.Prune(list, window.PruningFor(l.policy.Limit))
	return &model.Request{System: "Be kind.", Messages: list, Tail: "Mode: interactive"}
}

// ask makes a request, and whatever has to come before it.
func (l *life) ask(at window.Point) {
	for range 6 {
		req := l.request()
		switch v := l.policy.Decide(at, l.meter.Read(req), l.gate, time.Time{}); {
		case v.Action >= window.Compact:
			l.compact(req, v)
		case counts(req) > l.policy.Limit:
			l.refused++
			l.meter.Refused(req, l.policy.Limit)
		default:
			l.meter.Learn(req, model.Usage{Input: int64(counts(req))})
			l.longest = max(l.longest, len(req.Messages))
			return
		}
	}
	l.t.Fatal("no request could be made: it goes in a circle")
}

func (l *life) compact(req *model.Request, v window.Verdict) {
	l.compactions++
	r := l.meter.Read(req)
	j := compact.New(compact.Input{
		Head: l.head, Items: l.items, Room: l.meter.Room(r, l.policy.Limit), Retain: l.policy.Retain(v.Threshold),
		Must: v.Action == window.Must, Ride: req, Left: l.policy.Limit - r.Tokens, AskRoom: l.policy.Limit,
	})
	for req := j.Next(); req != nil; req = j.Next() {
		if l.compactions%5 == 0 {
			j.Take(nil, &model.Error{Kind: model.KindOverloaded, Message: "down"})
			continue
		}
		j.Take(&model.Reply{Text: fmt.Sprintf("Summary %d. %s", l.compactions, strings.Repeat("It went on. ", 50))}, nil)
	}
	switch result := j.Result(); result.Outcome {
	case compact.Done:
		l.items = append([]compact.Item(nil), l.items[result.Cut:]...)
		for i := range l.items {
			l.items[i].Message = compact.Reduce(l.items[i].Message, result.Most)
		}
		l.head, l.first = result.Head, result.Head.Message()
		l.gate.Settled(l.meter.Read(l.request()).Tokens)
	case compact.Skipped:
		l.gate.Settled(r.Tokens)
	default:
		if v.Action == window.Must {
			l.t.Fatalf("turn lost: %v", result.Err)
		}
		l.gate.Failed(r.Tokens, time.Time{})
	}
}

func (l *life) add(items ...compact.Item) {
	l.items = append(l.items, items...)
	for _, it := range items {
		l.said += window.Of(it.Message)
	}
}

func TestHundredsOfTurnsInASmallWindow(t *testing.T) {
	policy, _ := window.Settings{}.Policy(window.Limits{Window: 10_000, Output: 2000})
	l := &life{t: t, policy: policy}
	random := rand.New(rand.NewPCG(1, 2))
	const turns = 300
	for turn := range turns {
		l.gate.Reset()
		l.add(asked(fmt.Sprintf("Request %d.", turn)))
		l.ask(window.BeforeRun)
		for range random.IntN(4) {
			var results []string
			for range 1 + random.IntN(3) {
				results = append(results, strings.Repeat("out ", random.IntN(1+random.IntN(5000))))
			}
			l.add(called(results...)...)
			l.ask(window.BetweenRequests)
		}
		l.add(answered("Done."))
	}
	t.Logf("%d tokens, %d compactions, %d refused, at most %d messages", l.said, l.compactions, l.refused, l.longest)
	// Between two compactions by a threshold a quarter of what was there has
	// come, or of what was left; those that must are for what does not fit.
	if most := 8 * l.said / policy.Limit; l.compactions > most {
		t.Errorf("%d compactions for %d tokens, want at most %d", l.compactions, l.said, most)
	}
	if l.refused > 3 {
		t.Errorf("%d requests were refused: the meter does not learn", l.refused)
	}
	known := len(l.head.Asked) + l.head.Omitted
	for _, it := range l.items {
		if it.Asked {
			known++
		}
	}
	if known != turns {
		t.Errorf("%d requests are known, want %d", known, turns)
	}
}
