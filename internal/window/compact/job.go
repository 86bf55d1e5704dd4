package compact

import (
	"errors"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// Input is the input of a compaction.
type Input struct {
	Head   *Head  // head of the present epoch; nil if there is none
	Items  []Item // messages after it, oldest first
	Room   int    // tokens that the messages may have afterwards; see window.Meter.Room
	Retain int    // tokens of the newest items that are kept as they are
	// Must means that the next request does not fit without the compaction: if no
	// model writes a summary, a digest replaces it.
	Must         bool
	Instructions string // wishes of a person or a hook for the summary
	// Shrink means that a result which is not smaller than what it replaces is a failure,
	// unless Must is set, too. Nobody would be served by it, and it would be made again.
	Shrink bool

	// Ride is the session's next request if the session's own model summarises; it is
	// nil if another model does. Left is the number of tokens that its window has
	// left beside that request.
	Ride *model.Request
	Left int

	// Ask contains what all requests with parts of the record have in common: model,
	// session and headers. AskRoom is the number of tokens that each of them may have.
	Ask     model.Request
	AskRoom int
}

// An Outcome is how a compaction ended.
type Outcome string

// The outcomes of a compaction.
const (
	Done    Outcome = "done"    // there is a new epoch
	Failed  Outcome = "failed"  // the old epoch stays
	Skipped Outcome = "skipped" // there was nothing to compact, or a hook prevented it
)

// A Result is the result of a compaction.
type Result struct {
	Outcome Outcome
	Err     error // reason of a failure, of skipping, or of a digest instead of a summary

	// These fields are set if the outcome is Done.
	Head    *Head  // head of the new epoch
	Cut     int    // index of the first item that is kept
	Most    int    // bytes that are kept of each result among the kept items; zero for all
	Summary string // summary as the model wrote it; empty if there is a digest instead
	Before  int    // tokens of the messages before
	After   int    // tokens of the messages after

	Asked int         // number of requests to the model
	Usage model.Usage // their usage; estimated if the provider does not count
}

// ErrNothing is the reason for skipping a compaction that has nothing to summarise.
var ErrNothing = errors.New("there is nothing to summarise")

// The limits of a compaction.
const (
	MostAsks  = 64   // requests of one job
	tries     = 2    // attempts for each part
	mostParts = 24   // parts of the record
	halvings  = 3    // times that parts are halved after the provider refused one as too large
	leastPart = 1000 // tokens of the smallest part
)

// A Job is one compaction. It does no I/O: the caller sends the requests that Next
// returns and gives the replies to Take, until there is a result. It never makes more
// than MostAsks requests.
type Job struct {
	in     Input
	cut    int     // index of the first item that is not summarised
	result *Result // nil until there is one

	riding   bool           // true while the summary is asked for at the end of Input.Ride
	tried    int            // number of attempts at the current part that failed
	feedback string         // the fault of the last attempt
	called   bool           // true if the last attempt was a call of another tool
	allowing bool           // true if the provider refuses requests that forbid calls
	asking   *model.Request // request that Next returned last
	asked    int            // number of requests so far
	usage    model.Usage    // their usage

	chunks []string // parts of the record
	next   int      // index of the part to read next
	part   int      // tokens of a part
	halved int      // number of halvings so far
	sofar  string   // summary of the parts that were read
}

// New returns the job of a compaction. It may have a result at once.
func New(in Input) *Job {
	j := &Job{in: in, cut: plan(in.Items, in.Retain)}
	if !worthSummarising(in.Items[:j.cut]) && in.Must {
		j.cut = plan(in.Items, 0)
	}
	switch {
	case worthSummarising(in.Items[:j.cut]):
		j.begin()
	case in.Must:
		j.finish("", ErrNothing)
	default:
		j.result = &Result{Outcome: Skipped, Err: ErrNothing}
	}
	return j
}

// begin decides how the summary is asked for: at the end of the session's own request if
// that fits, else from a record.
func (j *Job) begin() {
	if j.riding = j.in.Ride != nil; j.riding && window.Tokens(j.prompt())+perPrompt+feedbackRoom <= j.in.Left {
		return
	}
	j.record()
}

// perPrompt is the size of a message without text, in tokens.
var perPrompt = window.Of(&model.Message{})

// record writes the conversation as a record, which is read in parts.
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

// bounds are the limits of texts in the record. The first ones with which there are few
// enough parts are used.
var bounds = []render.Bounds{
	{Arguments: 4000, Result: 4000},
	{Said: 16_000, Arguments: 500, Result: 1000},
	{Said: 2000, Arguments: 200, Result: 200},
	{Said: 300, Arguments: 80, Result: 80},
}

// overhead returns the largest size of a request without its part of the record, in
// tokens.
func (j *Job) overhead() int {
	const words = 400 // tokens of the text around the part
	return perPrompt + window.Tokens(summariser) + window.Tokens(string(tools.List[0].Parameters)) + words +
		window.Tokens(j.prompt()) + feedbackRoom + j.mostSoFar()
}

// feedbackRoom is the number of tokens that are reserved for feedback on an attempt.
const feedbackRoom = 200

// mostSoFar returns the size limit of the summary so far, in tokens.
func (j *Job) mostSoFar() int { return min(mostSummary, j.in.AskRoom/4) }

// recordQuote changes tags in a record, so that it cannot end the element that contains
// it. The length stays the same.
var recordQuote = strings.NewReplacer("</record>", "<-record>").Replace

// Next returns the next request, or nil if there is a result.
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

// Take is given the reply to the last request, or its error.
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
	case errors.As(err, &failure) && failure.Kind == model.KindRequest && j.asking.Calling != model.MayCall:
		j.allowing = true
		return
	case err != nil:
		j.fail(err)
		return
	}
	j.usage = j.usage.Add(counted(j.asking, reply))
	summary, err := Summary(reply)
	switch {
	case err == nil:
		j.addSummary(summary)
	case j.tried+1 < tries:
		j.tried++
		j.called = len(reply.Calls) > 0
		j.feedback = render.Cut(err.Error(), window.Bytes(feedbackRoom/2))
	case j.riding: // it goes on with its work instead: from a record it can only summarise
		j.record()
	default:
		j.fail(err)
	}
}

// counted returns the usage of a request. It is estimated if the provider does not count.
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

// overflowed continues with smaller requests after the provider refused one as too
// large.
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

// addSummary continues with the next part, or ends the job if there is none.
func (j *Job) addSummary(summary string) {
	if j.tried, j.feedback = 0, ""; !j.riding {
		if j.next++; j.next < len(j.chunks) {
			j.sofar = shortenTo(summary, j.mostSoFar())
			return
		}
	}
	j.finish(summary, nil)
}

// fail ends the job without a summary.
func (j *Job) fail(err error) {
	if j.in.Must {
		j.finish("", err)
		return
	}
	j.end(&Result{Outcome: Failed, Err: err})
}

func (j *Job) end(r *Result) {
	r.Asked, r.Usage = j.asked, j.usage
	j.result, j.asking = r, nil
}

// Result returns the result, or nil as long as there are requests to make.
func (j *Job) Result() *Result { return j.result }

// Abort ends a job that was stopped. The outcome is Failed, even if a digest could be
// made: a compaction that was stopped changes nothing.
func (j *Job) Abort(err error) {
	if j.result == nil {
		j.end(&Result{Outcome: Failed, Err: err})
	}
}

// Skip ends a job that a hook has prevented.
func (j *Job) Skip(why error) {
	if j.result == nil {
		j.end(&Result{Outcome: Skipped, Err: why})
	}
}
