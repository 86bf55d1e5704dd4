package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A progress tells on stderr what is going on.
type progress struct {
	err   *printer
	paint painter
	quiet bool
	names map[string]string // of the tools that are called, by call
}

func (a *app) newProgress() *progress {
	return &progress{err: a.err, paint: paint(a.err), quiet: a.quiet, names: make(map[string]string)}
}

func (p *progress) say(s style, text string) {
	if !p.quiet {
		p.err.printf("%s\n", p.paint.in(s, oneLine(text)))
	}
}

func (p *progress) begin(o opening) { p.say(faint, "session "+string(o.SessionID)) }

// end says what it cost, if that is known.
func (p *progress) end(r result) {
	if r.Cost != nil {
		p.say(faint, dollars(*r.Cost))
	}
}

// dollars is an amount as people write it. Small ones keep two digits that say
// something.
func dollars(amount float64) string {
	digits := 2
	for small := amount; small > 0 && small < 0.1 && digits < 6; small *= 10 {
		digits++
	}
	return fmt.Sprintf("$%.*f", digits, amount)
}

// event shows what a person may want to know. Events that do not decode are the
// run's matter.
func (p *progress) event(e event.Event) { show(progressEvents, p, e) }

// progressEvents are the kinds that are shown while a run goes on.
var progressEvents = eventHandlers[*progress]{
	event.ToolStart:    handles((*progress).toolStart),
	event.ToolComplete: handles((*progress).toolComplete),
	event.SessionInfo:  handles(func(p *progress, d event.SessionInfoData) { p.say(faint, d.Message) }),
	event.SessionWarning: handles(func(p *progress, d event.SessionWarningData) {
		p.say(plainStyle, "warning: "+d.Message)
	}),
	event.SessionError:       handles((*progress).remark),
	event.CompactionStart:    handles(func(p *progress, d event.CompactionStartData) { p.say(faint, compacting(d)) }),
	event.CompactionComplete: handles(func(p *progress, d event.CompactionCompleteData) { p.say(faint, compactedTo(d)) }),
}

// eventHandlers is what a view does with the kinds that it shows.
type eventHandlers[V any] map[event.Type]func(V, event.Event) error

// handles makes an entry of a function that is given the event's body.
func handles[V, T any](f func(V, T)) func(V, event.Event) error {
	return func(view V, e event.Event) error { return decodeFor(e, func(d T) { f(view, d) }) }
}

// show lets a view show an event, if it shows events of this kind.
func show[V any](kinds eventHandlers[V], view V, e event.Event) {
	if f := kinds[e.Type]; f != nil {
		_ = f(view, e) // whoever runs the session tells of what does not decode
	}
}

func (p *progress) toolStart(d event.ToolStartData) {
	p.names[d.ToolCallID] = d.ToolName
	p.say(faint, "▸ "+d.ToolName+" "+shortArguments(d.Arguments))
}

func (p *progress) toolComplete(d event.ToolCompleteData) {
	name := p.names[d.ToolCallID]
	if name == "" {
		name = "an earlier call"
	}
	if d.Error != nil {
		p.say(faint, "✗ "+name+": "+d.Error.Message)
	}
	delete(p.names, d.ToolCallID)
}

// remark shows errors that do not end the turn; one that does is told in the
// end.
func (p *progress) remark(d event.SessionErrorData) {
	if !d.EndsTurn {
		p.say(plainStyle, "error: "+d.Message)
	}
}

// compacting says that the older part of a session is being summarised.
func compacting(d event.CompactionStartData) string {
	return fmt.Sprintf("compacting the conversation: %s of %s tokens", grouped(d.CurrentTokens), grouped(d.TokenLimit))
}

// compactedTo says what came of that.
func compactedTo(d event.CompactionCompleteData) string {
	switch {
	case d.Outcome == event.OutcomeSkipped, d.Cause != "":
		return "the conversation was not compacted: " + d.Error
	case d.Outcome != event.OutcomeDone:
		return "the conversation could not be compacted: " + d.Error
	}
	text := fmt.Sprintf("compacted from %s to %s tokens", grouped(d.PreTokens), grouped(d.PostTokens))
	if d.Digest {
		text += ", without a model: " + d.Error
	}
	return text
}

// while says what goes on until the function that it returns is called. A terminal
// shows for how long, in a line that is taken back.
func (p *progress) while(text string) (done func()) {
	if p.quiet || terminal(p.err) == nil || os.Getenv("TERM") == "dumb" {
		p.say(faint, text)
		return func() {}
	}
	began, over := time.Now(), make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			p.err.printf("\r%s", p.paint.in(faint, clip(fmt.Sprintf("%s, %s", oneLine(text), time.Since(began).Round(time.Second)), width(p.err)-1)))
			select {
			case <-tick.C:
			case <-over:
				p.err.printf("\r\x1b[K")
				return
			}
		}
	})
	return func() { close(over); showing.Wait() }
}

// shortArguments shows the arguments of a call: the only one by its value, several as
// they are, cut to a readable length.
func shortArguments(arguments json.RawMessage) string {
	const most = 100
	var fields map[string]any
	if json.Unmarshal(arguments, &fields) == nil && len(fields) == 1 {
		for _, v := range fields {
			if text, ok := v.(string); ok {
				return clip(oneLine(text), most)
			}
		}
	}
	return clip(oneLine(string(arguments)), most)
}
