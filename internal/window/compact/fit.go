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

// shapes returns the shapes to try: first what was planned, then less and less.
func (j *Job) shapes() []shape {
	least := plan(j.in.Items, 0) // the newest step and the news
	return []shape{
		{cut: j.cut},
		{cut: least},
		{cut: least, shorten: true},
		{cut: least, shorten: true, most: 8192},
		{cut: least, shorten: true, most: 2048},
		{cut: least, shorten: true, most: 512},
		{cut: keptNews(j.in.Items), shorten: true},
		{cut: len(j.in.Items), shorten: true},
	}
}

// finish ends the job with a new epoch of the first shape that fits. If summary is empty, a
// digest replaces it, and err says why.
func (j *Job) finish(summary string, err error) {
	for _, s := range j.shapes() {
		if head, shortened, ok := j.head(s, summary); ok && (s.shorten || !shortened) {
			j.done(s, head, summary, err)
			return
		}
	}
	j.end(&Result{Outcome: Failed, Err: j.noRoom()})
}

// head returns the head for a shape, which has the tokens that the kept items leave. It
// reports whether the summary had to be shortened, and is not ok if no head fits.
func (j *Job) head(s shape, summary string) (h *Head, shortened, ok bool) {
	items := j.in.Items
	unseen := min(s.cut, keptNews(items))
	d := draft{
		before:   j.in.Head,
		replaced: items[:s.cut],
		unseen:   items[unseen:s.cut],
		summary:  shortenTo(summary, mostSummary),
		answered: anyAnswer(items),
		inFull:   !anyAsked(items[s.cut:]) || !anyAnswer(items),
	}
	if summary != "" {
		d.uncovered = items[j.cut:unseen]
	}
	return d.head(j.in.Room - tokens(j.keep(s)))
}

// anyAnswer reports whether the items contain an answer of the model. If they do not, the
// model has not seen the newest request of the present head, either.
func anyAnswer(items []Item) bool {
	return slices.ContainsFunc(items, func(it Item) bool { return it.Role == model.Assistant })
}

func anyAsked(items []Item) bool {
	return slices.ContainsFunc(items, func(it Item) bool { return it.Asked })
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

// done ends the job with a new epoch.
func (j *Job) done(s shape, head *Head, summary string, err error) {
	r := &Result{Outcome: Done, Err: err, Head: head, Cut: s.cut, Most: s.most, Summary: summary, Before: tokens(j.in.Items)}
	if j.in.Head != nil {
		r.Before += window.Of(j.in.Head.Message())
	}
	r.After = window.Of(head.Message()) + tokens(j.keep(s))
	if j.in.Shrink && !j.in.Must && r.After >= r.Before && r.After > littleHistory {
		r = &Result{Outcome: Failed, Err: fmt.Errorf("the summary would make the conversation larger: about %d tokens instead of %d", r.After, r.Before)}
	}
	j.end(r)
}

// littleHistory is the size of a history, in tokens, up to which it does not matter that a
// compaction makes it larger: the words around a summary are longer than so little.
const littleHistory = 1000

// noRoom returns the error for a conversation that does not fit in any shape.
func (j *Job) noRoom() error {
	room := j.in.Room - fixedHead - leastSummary
	if room < 0 {
		return fmt.Errorf("the system prompt, the tools and the answer leave room for %d tokens in the model's window: offer fewer tools, or choose a model with a larger window", max(0, j.in.Room))
	}
	d := draft{before: j.in.Head, replaced: j.in.Items}
	newest := 0
	if all := d.requests(); len(all) > 0 {
		newest = sizeOfNewest(all[len(all)-1], d.newest())
	}
	return fmt.Errorf("the newest message alone has about %d tokens, but the model's window has room for %d: send it in parts or as a file, or choose a model with a larger window", newest, room)
}
