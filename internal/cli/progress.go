package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/text"
)

// A progress prints the progress of a turn on stderr.
type progress struct {
	err   *printer
	paint painter
	quiet bool
	names map[string]string // names of the tools of running calls, by call id
	cause string            // why the turn waits for its model, as it was said last

	blocks  *block.Conversation // what comes of calls, as the chat shows it; nil if stderr is not a terminal
	thinks  string              // thoughts of the model that were not printed yet
	thought bool                // true if thoughts of the message that arrives were printed
}

func (a *app) newProgress() *progress {
	p := &progress{err: a.err, paint: paint(a.err), quiet: a.quiet, names: make(map[string]string)}
	if terminal(a.err) != nil && !dumb() && !a.quiet {
		p.blocks = block.New(block.Options{Describe: describeEvent, Asked: askedAbout})
	}
	return p
}

func (p *progress) say(s style, text string) {
	if !p.quiet {
		p.err.printf("%s\n", p.paint.in(s, oneLine(text)))
	}
}

func (p *progress) begin(o opening) { p.say(faint, "session "+string(o.SessionID)) }

// end prints the cost, if it is known.
func (p *progress) end(r result) {
	if r.Cost != nil {
		p.say(faint, dollars(*r.Cost))
	}
}

// dollars formats an amount of US dollars. Small amounts keep two significant digits.
func dollars(amount float64) string {
	digits := 2
	for small := amount; small > 0 && small < 0.1 && digits < 6; small *= 10 {
		digits++
	}
	return fmt.Sprintf("$%.*f", digits, amount)
}

// event prints an event if people may want to know about it. An event that does not
// decode is skipped: the runner reports it.
func (p *progress) event(e event.Event) {
	show(progressEvents, p, e)
	if p.blocks == nil {
		return
	}
	lines := p.blocks.Add(e, width(p.err))
	if e.Type == event.ToolComplete && len(lines) > 1 {
		_ = decodeFor(e, func(d event.ToolCompleteData) { // the runner reports what does not decode
			if d.Error == nil {
				p.print(lines[1:]) // the first line names the call, which was printed when it began
			}
		})
	}
}

// print prints the lines of a block.
func (p *progress) print(lines []text.Line) {
	encoder := text.Encoder{NoColour: !p.paint.colours, NoStyle: !p.paint.colours, ASCII: !knowsUTF8()}
	for _, l := range lines {
		p.err.printf("%s\n", encoder.Encode(l))
	}
}

// thoughts collects the thoughts of the model, and prints them in one line before what
// follows them. Only people at a terminal see them.
func (p *progress) thoughts(e event.Event) {
	if p.blocks != nil {
		show(thoughtEvents, p, e)
	}
}

// thoughtEvents are the types of events that carry or end thoughts.
var thoughtEvents = eventHandlers[*progress]{
	event.ReasoningDelta: handles(func(p *progress, d event.ReasoningDeltaData) { p.thinks += d.DeltaContent }),
	event.MessageDelta:   handles(func(p *progress, _ event.MessageDeltaData) { p.printThoughts() }),
	event.AssistantMessage: handles(func(p *progress, d event.AssistantMessageData) {
		if p.thinks != "" || !p.thought {
			p.thinks = d.ReasoningText
		}
		p.printThoughts()
		p.thought = false
	}),
}

// printThoughts prints the thoughts that were collected.
func (p *progress) printThoughts() {
	thoughts := strings.TrimSpace(p.thinks)
	p.thinks = ""
	if thoughts == "" {
		return
	}
	p.thought = true
	first, _, _ := strings.Cut(thoughts, "\n")
	line := "∴ " + clip(oneLine(first), max(20, width(p.err)-16))
	if more := strings.Count(thoughts, "\n"); more > 0 {
		line += fmt.Sprintf(" (+%d lines)", more)
	}
	p.say(faint, line)
}

// progressEvents are the types of events that are printed while a turn runs.
var progressEvents = eventHandlers[*progress]{
	event.ToolStart:    handles((*progress).toolStart),
	event.ToolComplete: handles((*progress).toolComplete),
	event.SessionInfo:  handles((*progress).info),
	event.SessionWarning: handles(func(p *progress, d event.SessionWarningData) {
		p.say(plainStyle, "warning: "+d.Message)
	}),
	event.SessionError:       handles((*progress).remark),
	event.CompactionStart:    handles(func(p *progress, d event.CompactionStartData) { p.say(faint, compacting(d)) }),
	event.CompactionComplete: handles(func(p *progress, d event.CompactionCompleteData) { p.say(faint, compactedTo(d)) }),
}

// eventHandlers are the functions by which a view shows events, by type.
type eventHandlers[V any] map[event.Type]func(V, event.Event) error

// handles makes an entry of eventHandlers from a function on the decoded data of an event.
func handles[V, T any](f func(V, T)) func(V, event.Event) error {
	return func(view V, e event.Event) error { return decodeFor(e, func(d T) { f(view, d) }) }
}

// show calls the handler of a view for an event, if there is one.
func show[V any](kinds eventHandlers[V], view V, e event.Event) {
	if f := kinds[e.Type]; f != nil {
		_ = f(view, e) // the runner reports events that do not decode
	}
}

// info prints a message of the session. Why a model is waited for is said once, and not again
// with each attempt.
func (p *progress) info(d event.SessionInfoData) {
	const again = "Trying again in "
	said := d.Message
	if cause, rest, retries := strings.Cut(said, ". "+again); retries {
		if cause == p.cause {
			said = again + rest
		}
		p.cause = cause
	}
	p.say(faint, said)
}

func (p *progress) toolStart(d event.ToolStartData) {
	p.names[d.ToolCallID] = d.ToolName
	about := shortArguments(d.Arguments)
	if p.blocks != nil {
		about = clip(block.About(d.ToolName, d.Arguments), 2*max(40, width(p.err)))
	}
	p.say(faint, "▸ "+d.ToolName+" "+about)
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

// remark prints an error that does not end the turn. An error that does is printed at
// the end.
func (p *progress) remark(d event.SessionErrorData) {
	if !d.EndsTurn {
		p.say(plainStyle, "error: "+d.Message)
	}
}

// compacting returns the message that a compaction has begun.
func compacting(d event.CompactionStartData) string {
	return fmt.Sprintf("compacting the conversation: %s of %s tokens", grouped(d.CurrentTokens), grouped(d.TokenLimit))
}

// compactedTo returns the message that a compaction has ended.
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

// while shows a message until the returned function is called. On a terminal the line
// also has the elapsed time, and is removed at the end.
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

// shortArguments returns the arguments of a call in short form: the value of a single
// argument, or the JSON of several, cut to a readable length.
func shortArguments(arguments json.RawMessage) string {
	const most = 100
	var fields map[string]any
	if json.Unmarshal(arguments, &fields) == nil && len(fields) == 1 {
		for _, v := range fields {
			if text, ok := v.(string); ok {
				return clip(inLine(text), most)
			}
		}
	}
	return clip(oneLine(string(arguments)), most)
}
