package compact

import (
	"errors"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// Input is all that a compaction is made of.
type Input struct {
	Head   *Head  // of the present epoch; nil for none
	Items  []Item // that came after it, oldest first
	Room   int    // tokens that messages may have; see window.Meter.Room
	Retain int    // tokens of the newest items that are kept as they are
	// Must means that the next request does not fit: if no summary can be had, a
	// digest takes its place.
	Must         bool
	Instructions string // of whoever asked for it

	// Ride is the session's next request if its own model is to summarise, and
	// Left how much room its window has beside it. It is nil if another model is.
	Ride *model.Request
	Left int

	// Ask is what requests to read the record have in common: model, session,
	// headers. AskRoom is how many tokens one of them may have.
	Ask     model.Request
	AskRoom int
}

// An Outcome is how a compaction ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // there is a new epoch
	Failed  Outcome = "failed"  // the old one stays
	Skipped Outcome = "skipped" // there was nothing to do
)

// A Result is what came of a compaction.
type Result struct {
	Outcome Outcome
	Err     error // why it failed or was skipped; why there is a digest instead of a summary

	// Of one that is done:
	Head    *Head
	Cut     int    // the first item that is kept
	Most    int    // bytes that are kept of what calls gave, of the items that are kept; zero for all
	Summary string // as the model wrote it; empty if there is a digest instead
	Before  int    // tokens of the messages
	After   int

	Asked int         // how often a model was asked
	Usage model.Usage // of that; estimated where nobody counted
}

// ErrNothing is why a compaction was skipped.
var ErrNothing = errors.New("there is nothing to summarise")

// Bounds of the work.
const (
	MostAsks  = 64 // requests of one job
	tries     = 2  // for each part
	mostParts = 24
	halvings  = 3
	leastPart = 1000 // tokens
)

// A Job is one compaction. It does nothing by itself: it says what to ask a model,
// and is told the answer, until there is a result. It never asks more than
// MostAsks times.
type Job struct {
	in     Input
	cut    int
	result *Result // nil until there is one

	riding   bool
	tried    int
	feedback string
	asking   *model.Request
	asked    int
	usage    model.Usage

	chunks []string // of the record
	next   int
	part   int // tokens of a chunk
	halved int
	sofar  string
}

// New plans a compaction.
func New(in Input) *Job {
	j := &Job{in: in, cut: plan(in.Items, in.Retain)}
	if !worth(in.Items[:j.cut]) && in.Must {
		j.cut = plan(in.Items, 0)
	}
	switch {
	case worth(in.Items[:j.cut]):
		j.begin()
	case in.Must:
		j.settle("", ErrNothing)
	default:
		j.result = &Result{Outcome: Skipped, Err: ErrNothing}
	}
	return j
}

// begin chooses how to ask.
func (j *Job) begin() {
	if j.riding = j.in.Ride != nil; j.riding && window.Tokens(j.prompt())+perPrompt+feedbackRoom <= j.in.Left {
		return
	}
	j.record()
}

// perPrompt is what a message takes beside its text.
var perPrompt = window.Of(&model.Message{})

// record writes the conversation down, to be read in parts.
func (j *Job) record() {
	j.riding, j.tried, j.feedback = false, 0, ""
	j.part = j.in.AskRoom - j.overhead()
	if j.part < leastPart {
		j.fail(fmt.Errorf("the window of the model that summarises has room for %d tokens only: choose another one, or a shorter answer", j.in.AskRoom))
		return
	}
	var list []*model.Message
	if j.in.Head != nil {
		list = append(list, j.in.Head.Message())
	}
	for _, it := range j.in.Items[:j.cut] {
		list = append(list, it.Message)
	}
	for _, b := range bounds {
		if j.chunks = render.Chunks(render.Blocks(list, nil, b), j.part); len(j.chunks) <= mostParts {
			return
		}
	}
	gone := len(j.chunks) - mostParts + 1
	j.chunks = append([]string{fmt.Sprintf("(%d earlier parts of the record are left out: there are too many)\n", gone)}, j.chunks[gone:]...)
}

// bounds are how much of each thing is written down: at first nearly all, then
// less, until there are few enough parts.
var bounds = []render.Bounds{
	{Arguments: 4000, Result: 4000},
	{Said: 16_000, Arguments: 500, Result: 1000},
	{Said: 2000, Arguments: 200, Result: 200},
	{Said: 300, Arguments: 80, Result: 80},
}

// overhead is what a request to read takes at most, without the part to be read.
func (j *Job) overhead() int {
	const words = 400 // what stands around the parts
	return perPrompt + window.Tokens(summariser) + window.Tokens(string(tools.List[0].Parameters)) + words +
		window.Tokens(j.prompt()) + feedbackRoom + j.mostSoFar()
}

// feedbackRoom is for what the summariser is told about its last attempt.
const feedbackRoom = 200

// mostSoFar is how long the summary may be that is carried from part to part.
func (j *Job) mostSoFar() int { return min(mostSummary, j.in.AskRoom/4) }

// recordQuote keeps a record from ending the element that it stands in, without
// making it longer.
var recordQuote = strings.NewReplacer("</record>", "<-record>").Replace

// Next returns what to ask next, or nil if there is a result.
func (j *Job) Next() *model.Request {
	switch {
	case j.result != nil:
		return nil
	case j.asked == MostAsks:
		j.fail(fmt.Errorf("no summary after %d requests", MostAsks))
		return nil
	case j.riding:
		j.asking = j.ride()
	default:
		j.asking = j.read()
	}
	return j.asking
}

// Take takes in what came of the last request.
func (j *Job) Take(reply *model.Reply, err error) {
	if j.result != nil || j.asking == nil {
		return
	}
	j.asked++
	var failure *model.Error
	switch {
	case errors.As(err, &failure) && failure.Kind == model.KindOverflow:
		j.overflowed(err)
		return
	case err != nil:
		j.fail(err)
		return
	}
	j.usage = j.usage.Add(counted(j.asking, reply))
	summary, err := Summary(reply)
	switch {
	case err == nil:
		j.got(summary)
	case j.tried+1 < tries:
		j.tried++
		j.feedback = render.Cut(err.Error(), window.Bytes(feedbackRoom/2))
	default:
		j.fail(err)
	}
}

// counted is what a request cost. Where nobody counts, it is estimated.
func counted(req *model.Request, reply *model.Reply) model.Usage {
	u := reply.Usage
	if u.Input+u.CacheRead+u.CacheWrite == 0 {
		var m window.Meter
		u.Input = int64(m.Read(req).Tokens)
	}
	if u.Output == 0 {
		u.Output = int64(window.Of(&model.Message{Text: reply.Text, Calls: reply.Calls}))
	}
	return u
}

// overflowed tries again with less.
func (j *Job) overflowed(err error) {
	switch {
	case j.riding:
		j.record()
	case j.halved == halvings || j.part/2 < leastPart:
		j.fail(err)
	default:
		j.halved++
		j.part /= 2
		j.chunks, j.next = render.Chunks(j.chunks[j.next:], j.part), 0
	}
}

// got goes on with the next part, or ends.
func (j *Job) got(summary string) {
	if j.tried, j.feedback = 0, ""; !j.riding {
		if j.next++; j.next < len(j.chunks) {
			j.sofar = within(summary, j.mostSoFar())
			return
		}
	}
	j.settle(summary, nil)
}

// fail ends the job without a summary.
func (j *Job) fail(err error) {
	if j.in.Must {
		j.settle("", err)
		return
	}
	j.end(&Result{Outcome: Failed, Err: err})
}

func (j *Job) end(r *Result) {
	r.Asked, r.Usage = j.asked, j.usage
	j.result, j.asking = r, nil
}

// Result returns what came of it, or nil as long as there is something to ask.
func (j *Job) Result() *Result { return j.result }

// Abort ends a job whose request was given up. There is no digest: what was
// stopped is to leave no trace but that it was.
func (j *Job) Abort(err error) {
	if j.result == nil {
		j.end(&Result{Outcome: Failed, Err: err})
	}
}

// Skip ends a job that somebody does not want.
func (j *Job) Skip(why error) {
	if j.result == nil {
		j.end(&Result{Outcome: Skipped, Err: why})
	}
}
