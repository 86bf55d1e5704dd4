package compact

import (
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
)

// A shape says how much is kept of the items and of the summary.
type shape struct {
	cut     int  // index of the first item that is kept
	most    int  // bytes that are kept of each result of a tool; zero for all
	shorten bool // true if the summary may be shortened
}

// shapes returns the shapes to try, from the largest to one that keeps no items. The
// summary is shortened before messages that the model has not seen are.
func (j *Job) shapes() []shape {
	last, words, all := plan(j.in.Items, 0), unseenWords(j.in.Items), len(j.in.Items)
	return []shape{
		{j.cut, 0, false}, {last, 0, false}, {last, 0, true}, {last, 8192, true}, {last, 2048, true}, {last, 512, true},
		{words, 0, true}, {all, 0, true},
	}
}

// finish ends the job with a new epoch that fits. If summary is empty, a digest replaces
// it, and err says why.
func (j *Job) finish(summary string, err error) {
	for _, s := range j.shapes() {
		if head, shortened, ok := j.head(s, summary); ok && (s.shorten || !shortened) {
			j.done(s, head, summary, err)
			return
		}
	}
	j.end(&Result{Outcome: Failed, Err: j.noRoom()})
}

// head returns the head for a shape.
func (j *Job) head(s shape, summary string) (h *Head, shortened, ok bool) {
	items, told := j.in.Items, min(s.cut, unseenWords(j.in.Items))
	d := draft{
		before: j.in.Head, items: items[:s.cut], unseen: items[told:s.cut], summary: shortenTo(summary, mostSummary),
		newest: !anyAsked(items[s.cut:]) || !anyAnswer(items),
	}
	if summary != "" {
		d.since = items[j.cut:told]
	}
	return d.head(j.in.Room - tokens(j.keep(s)))
}

// anyAnswer reports whether the items contain an answer of the model. If they do not, the
// model has not seen the newest request of the present head, either.
func anyAnswer(items []Item) bool {
	return slices.ContainsFunc(items, func(it Item) bool { return it.Role == model.Assistant })
}

func anyAsked(items []Item) bool {
	for _, it := range items {
		if it.Asked {
			return true
		}
	}
	return false
}

// keep returns the items that a shape keeps, with their results shortened.
func (j *Job) keep(s shape) []Item {
	kept := make([]Item, 0, len(j.in.Items)-s.cut)
	for _, it := range j.in.Items[s.cut:] {
		it.Message = Reduce(it.Message, s.most)
		kept = append(kept, it)
	}
	return kept
}

func (j *Job) done(s shape, head *Head, summary string, err error) {
	r := &Result{Outcome: Done, Err: err, Head: head, Cut: s.cut, Most: s.most, Summary: summary, Before: tokens(j.in.Items)}
	if j.in.Head != nil {
		r.Before += window.Of(j.in.Head.Message())
	}
	r.After = window.Of(head.Message()) + tokens(j.keep(s))
	j.end(r)
}

// noRoom returns the error for a conversation that does not fit at all.
func (j *Job) noRoom() error {
	newest := 0
	for _, it := range j.in.Items {
		if it.Asked {
			newest = window.Of(it.Message)
		}
	}
	if least := fixedHead + leastSummary; j.in.Room < least {
		return fmt.Errorf("the system prompt, the tools and the answer leave room for %d tokens in the model's window: offer fewer tools, or choose a model with a larger window", max(0, j.in.Room))
	}
	return fmt.Errorf("the newest message alone has about %d tokens, but the model's window has room for %d: send it in parts or as a file, or choose a model with a larger window", newest, j.in.Room-fixedHead-leastSummary)
}
