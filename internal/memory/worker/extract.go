package worker

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jobs"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window/render"
)

// The limits of one attempt at an extraction.
const (
	usualTime    = 5 * time.Minute // time limit, if none is configured
	usualRoom    = 12_000          // tokens of one request, if the model's window is not known
	mostRoom     = 24_000          // tokens of one request at most
	mostOutput   = 4096            // tokens of one answer at most
	mostRequests = 60              // requests to the model
	mostRead     = 4 << 20         // bytes of the log after which reading stops at the end of a turn
	mostBack     = 10_000          // events in which findings are looked for that are on no page yet
	perKnown     = 40              // bytes of a known fact beside its text, at most
)

// extract does a job of the kind JobExtract.
func (w *Worker) extract(ctx context.Context, j eventlog.Job) error {
	looked, err := w.host.Memory.Remembered(ctx, j.Session)
	if err != nil {
		return err
	}
	if !isAside(looked, j) && j.To <= looked.Pointer {
		return jobs.ErrMoot
	}
	return w.extractNext(ctx, j, looked)
}

// extractNext extracts the next part of the log that a job is about.
func (w *Worker) extractNext(ctx context.Context, j eventlog.Job, looked session.Remembered) error {
	p, err := w.passage(ctx, j, looked)
	if err != nil {
		return err
	}
	d, err := w.find(ctx, j, looked, p)
	if err != nil {
		return err
	}
	return w.host.Memory.RecordExtraction(ctx, j, looked, d)
}

// isAside reports whether a job extracts a part again that was passed over before.
func isAside(looked session.Remembered, j eventlog.Job) bool {
	return slices.Contains(looked.Aside, turn.Part{From: j.From, To: j.To})
}

// A passage is a part of the log that was read.
type passage struct {
	after   event.Seq // position before the first event
	entries []memory.Entry
	ends    []eventlog.End // end of the log before the first event, and after each event
	weights []int64        // weight of each event
	weight  int64          // sum of the weights
	times   []time.Time    // time of each event

	history transcript.History
	results map[string]event.Seq // position of each result, by the id of the call
}

// passage reads the part of the log that a job is about: from the end of the last
// extraction to the end of the job, or a part that was passed over. Epochs are ignored.
// Hidden events are not included.
func (w *Worker) passage(ctx context.Context, j eventlog.Job, looked session.Remembered) (*passage, error) {
	p := &passage{after: looked.Pointer, results: make(map[string]event.Seq)}
	upTo := j.To
	for e, err := range w.read(ctx, j, looked, p) {
		if err != nil {
			return nil, err
		}
		if p.weight > mostRead && e.Type == event.UserMessage && e.Seq <= upTo {
			upTo = e.Seq - 1 // the next job reads the rest
		}
		if e.Seq <= upTo {
			p.countEvent(e)
		}
		if err := p.addEvent(e, upTo); err != nil {
			return nil, err
		}
		if e.Seq >= max(upTo, looked.Hidden) {
			break
		}
	}
	return p, p.makeEntries()
}

// read reads the log from where the passage begins.
func (w *Worker) read(ctx context.Context, j eventlog.Job, looked session.Remembered, p *passage) iter.Seq2[event.Event, error] {
	if isAside(looked, j) {
		p.after = j.From - 1
		return w.store.Read(ctx, j.Session, p.after)
	}
	end, err := looked.End()
	if err != nil {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, err) }
	}
	p.ends = []eventlog.End{end}
	return w.store.ReadFrom(ctx, j.Session, end)
}

// countEvent counts an event of the passage.
func (p *passage) countEvent(e event.Event) {
	p.weights = append(p.weights, turn.Weight(e))
	p.weight += turn.Weight(e)
	head, _ := e.Head() // what cannot be read is reported where it matters
	p.times = append(p.times, head.Time)
	if n := len(p.ends); n > 0 { // otherwise the ends are not needed
		p.ends = append(p.ends, p.ends[n-1].Next(e.Bytes))
	}
}

// addEvent adds an event to the history of the passage. Events after upTo are only needed
// if they hide earlier ones.
func (p *passage) addEvent(e event.Event, upTo event.Seq) error {
	if e.Type == event.ContextEpoch || e.Seq > upTo && e.Type != event.HistoryHidden {
		return nil
	}
	p.history.Add(e)
	if e.Type != event.ToolComplete {
		return nil
	}
	d, err := event.As[event.ToolCompleteData](e)
	p.results[d.ToolCallID] = e.Seq
	return err
}

// makeEntries makes entries of the history. The entry of a result has the position of the
// result, not of its call.
func (p *passage) makeEntries() error {
	_, items, err := p.history.Items()
	for _, item := range items {
		p.entries = append(p.entries, memory.Entry{At: max(item.At, p.results[item.CallID]), Asked: item.Asked, Message: item.Message})
	}
	return err
}

// next returns the next batch of the passage. The last batch extends to the end of the
// passage.
func (p *passage) next(room int) memory.Batch {
	last := p.after + event.Seq(len(p.weights))
	batch, some := memory.Next(p.after, p.entries, room)
	if !some {
		return memory.Batch{From: p.after + 1, To: last}
	}
	if !slices.ContainsFunc(p.entries, func(e memory.Entry) bool { return e.At > batch.To }) {
		batch.To = last
	}
	return batch
}

// data returns the event for a batch, without findings.
func (p *passage) data(j eventlog.Job, b memory.Batch) event.MemoryExtractedData {
	empty := json.RawMessage("[]")
	d := event.MemoryExtractedData{
		JobID: j.ID, From: b.From, To: b.To, EpochID: j.Epoch,
		Decisions: empty, Discussions: empty, Attempts: empty, Requests: empty,
	}
	n := int(b.To - p.after)
	for _, w := range p.weights[:n] {
		d.Bytes += w
	}
	if n < len(p.ends) {
		d.Hash = hex.EncodeToString(p.ends[n].Hash[:])
	}
	return d
}

// find has a model extract the findings of the next batch of a passage, and returns the
// event. If the passage contains no messages, no model is asked.
func (w *Worker) find(ctx context.Context, j eventlog.Job, looked session.Remembered, p *passage) (event.MemoryExtractedData, error) {
	if len(p.entries) == 0 {
		return p.data(j, p.next(usualRoom)), nil
	}
	rules := looked.Config.Memory
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(time.Duration(rules.TimeoutMs)*time.Millisecond, usualTime), errors.New("the model has not answered in time"))
	defer cancel()
	to, err := w.host.Settings.Endpoint(ctx, j.Session, looked.Config, cmp.Or(rules.Model, looked.Model))
	if err != nil {
		return event.MemoryExtractedData{}, err
	}
	room, output, err := limitsOf(to)
	if err != nil {
		return event.MemoryExtractedData{}, err
	}
	known, err := w.known(ctx, j.Session, looked, memory.KnownBytes(room))
	if err != nil {
		return event.MemoryExtractedData{}, err
	}
	batch := p.next(room - memory.KnownBytes(room)/2)
	d := p.data(j, batch)
	d.Model, d.Day = to.Name, p.day(batch)
	x := memory.NewExtraction(batch, known, model.Request{Session: string(j.Session), Model: to.Name, MaxOutput: output})
	if err := w.ask(ctx, j.Session, looked.Config, to, x, &d.Usage); err != nil {
		return d, err
	}
	found, err := x.Result()
	if err != nil {
		return d, err
	}
	return d, addFindings(&d, found)
}

// known returns the facts that the findings of a session can supersede: those of pages, and
// before them what was found in the session itself and is on no page yet.
func (w *Worker) known(ctx context.Context, id event.SessionID, looked session.Remembered, bytes int) (list []memory.Known, err error) {
	waiting, err := w.collectFacts(ctx, id, looked, mostBack)
	if err != nil {
		return nil, err
	}
	for _, kind := range memory.Kinds {
		for _, f := range slices.Backward(waiting.facts[kind]) {
			if bytes -= len(f.Text) + perKnown; bytes < 0 {
				return list, nil
			}
			list = append(list, memory.Known{Text: f.Text, Wanted: kind == memory.KindRequests})
		}
	}
	for _, f := range w.books.Known(looked.Config.LocalDirectory(), looked.Config.Memory.Where, bytes) {
		list = append(list, memory.Known{Text: f.Text, Wanted: f.Wanted})
	}
	return list, nil
}

// day returns the day of the last event of a batch.
func (p *passage) day(b memory.Batch) string {
	if n := int(b.To - p.after - 1); n >= 0 && n < len(p.times) && !p.times[n].IsZero() {
		return p.times[n].Format(time.DateOnly)
	}
	return ""
}

// limitsOf returns the number of tokens that a text and its answer may have for a model.
func limitsOf(to session.Endpoint) (room, output int, err error) {
	limit := usualRoom
	output = mostOutput
	if to.Window > 0 {
		output = min(mostOutput, to.Window/4)
		limit = min(mostRoom, to.Window-output)
	}
	if room = memory.Room(limit); room < render.LeastChunk {
		return 0, 0, fmt.Errorf("the window of the model %s, %d tokens, is too small to extract memory with: name another in memory.model", to.Name, to.Window)
	}
	return room, output, nil
}

// ask makes the requests of an extraction, up to mostRequests. What each has cost is recorded
// at once: the extraction may fail, or be made again after a crash.
func (w *Worker) ask(ctx context.Context, id event.SessionID, config event.SessionConfiguredData, to session.Endpoint, x *memory.Extraction, cost *event.MemoryUsage) error {
	for req := x.Next(); req != nil; req = x.Next() {
		if cost.Requests++; cost.Requests > mostRequests {
			return fmt.Errorf("the part is too long: it was not read after %d requests", mostRequests)
		}
		release, err := w.host.Ledger.Admit(ctx, id, config, to, req)
		if err != nil {
			return err
		}
		reply, err := to.Model.Ask(ctx, req, nil)
		failed := w.host.Ledger.Record(ctx, id, event.PurposeMemory, to, reply, err)
		if release(); failed != nil {
			return failed
		}
		cost.Counted = true
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if reply != nil {
			cost.Input += reply.Usage.Input + reply.Usage.CacheRead + reply.Usage.CacheWrite
			cost.Output += reply.Usage.Output
		}
		x.Take(reply, err)
	}
	return nil
}

// addFindings adds findings to the event.
func addFindings(d *event.MemoryExtractedData, found *memory.Extracted) error {
	d.Found = len(found.Decisions) + len(found.Discussions) + len(found.Attempts) + len(found.Requests)
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, d) // the lists have the same names
}

// decodeFindings returns the findings in an event, and the batch that they come from.
func decodeFindings(d event.MemoryExtractedData) (*memory.Extracted, memory.Batch, error) {
	found := new(memory.Extracted)
	err := errors.Join(
		json.Unmarshal(d.Decisions, &found.Decisions), json.Unmarshal(d.Discussions, &found.Discussions),
		json.Unmarshal(d.Attempts, &found.Attempts), json.Unmarshal(d.Requests, &found.Requests),
	)
	return found, memory.Batch{From: d.From, To: d.To}, err
}
