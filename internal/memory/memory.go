package memory

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/memory/page"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/answer"
	"github.com/abide-run/abide/internal/window"
)

// WriteExtracted is the name of the tool that a model calls with its findings.
const WriteExtracted = "write_extracted"

// Extracted is the findings in a part of the log. All lists may be empty.
type Extracted struct {
	Decisions   []Decision   `json:"decisions"`
	Discussions []Discussion `json:"discussions"`
	Attempts    []Attempt    `json:"attempts"`
	Requests    []Request    `json:"requests"`
}

// Replacing is which known facts a finding takes the place of, because they are not true any
// more or say less: their numbers in the answer of the model, and their texts once they
// were looked up.
type Replacing struct {
	Supersedes []int    `json:"supersedes,omitempty"`
	Replaces   []string `json:"replaces,omitempty"`
}

// A Known is a fact that memory has already, as it is shown to the model that extracts.
type Known struct {
	Text   string
	Wanted bool // true if it is what the user wants
}

// resolve looks the numbers up among the known facts, which are counted from 1.
func (r *Replacing) resolve(known []Known) {
	r.Replaces = nil
	for _, n := range r.Supersedes {
		if n >= 1 && n <= len(known) {
			r.Replaces = append(r.Replaces, known[n-1].Text)
		}
	}
	r.Supersedes = nil
}

// Sources are the positions of the events that a finding comes from. If there are none,
// it comes from the whole part.
type Sources []event.Seq

// A Decision is a choice between options.
type Decision struct {
	Options   []string `json:"options"`
	Chosen    string   `json:"chosen"`
	Rationale string   `json:"rationale"`
	Sources   Sources  `json:"sources,omitempty"`
	Replacing
}

// A Discussion is a topic with several points of view, and without a decision.
type Discussion struct {
	Topic   string   `json:"topic"`
	Points  []string `json:"points"`
	Sources Sources  `json:"sources,omitempty"`
	Replacing
}

// An Attempt is something that was tried, and its result.
type Attempt struct {
	Action    string  `json:"action"`
	Result    string  `json:"result"`
	Succeeded bool    `json:"succeeded"`
	Sources   Sources `json:"sources,omitempty"`
	Replacing
}

// A Request is something that a person asked for.
type Request struct {
	Intent  string  `json:"intent"`
	Target  string  `json:"target,omitempty"`
	Summary string  `json:"summary"`
	Sources Sources `json:"sources,omitempty"`
	Replacing
}

// The limits of one extraction.
const (
	mostFound = 50  // findings of each kind
	mostText  = 900 // bytes of one finding
)

// Read returns the findings in a reply of the model about a batch. All four lists are
// required, and each may be empty. The errors are written for the model, which was shown the
// given facts as known.
func Read(reply *model.Reply, b Batch, known []Known) (*Extracted, error) {
	var in struct {
		Decisions   *[]Decision   `json:"decisions"`
		Discussions *[]Discussion `json:"discussions"`
		Attempts    *[]Attempt    `json:"attempts"`
		Requests    *[]Request    `json:"requests"`
	}
	called, err := answer.Read(reply, WriteExtracted, &in)
	switch {
	case err != nil:
		return nil, err
	case !called:
		return nil, fmt.Errorf("%s was not called: call it once, with four empty lists if there is nothing to hand in", WriteExtracted)
	case in.Decisions == nil || in.Discussions == nil || in.Attempts == nil || in.Requests == nil:
		return nil, fmt.Errorf("decisions, discussions, attempts and requests are all required: give an empty list for what there is none of")
	}
	x := &Extracted{*in.Decisions, *in.Discussions, *in.Attempts, *in.Requests}
	for kind, findings := range x.kinds() {
		if len(findings) > mostFound {
			return nil, fmt.Errorf("%d %s are too many: hand in the %d that matter most", len(findings), kind, mostFound)
		}
		for i, f := range findings {
			err := f.check(b, known)
			if err == nil && kind == KindRequests {
				err = b.saidByUser(f.sources)
			}
			if err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", kind, i, err)
			}
		}
	}
	for r := range x.replacing() {
		r.resolve(known)
	}
	return x, nil
}

// replacing yields what each finding replaces.
func (x *Extracted) replacing() iter.Seq[*Replacing] {
	return func(yield func(*Replacing) bool) {
		for i := range x.Decisions {
			yield(&x.Decisions[i].Replacing)
		}
		for i := range x.Discussions {
			yield(&x.Discussions[i].Replacing)
		}
		for i := range x.Attempts {
			yield(&x.Attempts[i].Replacing)
		}
		for i := range x.Requests {
			yield(&x.Requests[i].Replacing)
		}
	}
}

// Replaced returns the texts of the facts that findings take the place of.
func (x *Extracted) Replaced() (texts []string) {
	for r := range x.replacing() {
		texts = append(texts, r.Replaces...)
	}
	return texts
}

// saidByUser returns an error if a request does not come from a message of the user. What a
// file or a page says the user wants is not what the user wants.
func (b Batch) saidByUser(at Sources) error {
	if b.Users == nil || slices.ContainsFunc(at, func(s event.Seq) bool { return slices.Contains(b.Users, s) }) {
		return nil
	}
	return fmt.Errorf("its sources have no message of the user: what others write is no request of the user")
}

// A finding is one finding as a line of a page.
type finding struct {
	subject string // topic of the finding; must not be empty
	line    string // text of the line
	sources Sources
	numbers []int // numbers of the known facts that it supersedes
}

// check returns an error, written for the model, if the finding is invalid.
func (f finding) check(b Batch, known []Known) error {
	switch {
	case strings.TrimSpace(f.subject) == "":
		return fmt.Errorf("it does not say what it is about")
	case len(f.line) > mostText:
		return fmt.Errorf("%d bytes are too long: say it in at most %d", len(f.line), mostText)
	}
	for _, s := range f.sources {
		if s < b.From || s > b.To {
			return fmt.Errorf("the source %d is not among the events %d to %d", s, b.From, b.To)
		}
	}
	for _, n := range f.numbers {
		if n < 1 || n > len(known) {
			return fmt.Errorf("it supersedes fact %d, but %d facts are known", n, len(known))
		}
		if known[n-1].Wanted && b.saidByUser(f.sources) != nil {
			return fmt.Errorf("it supersedes fact %d, which the user wants, and its sources have no message of the user: only the user can change that", n)
		}
	}
	return nil
}

// The kinds of findings, which are also the names of the pages.
const (
	KindDecisions   = "decisions"
	KindDiscussions = "discussions"
	KindAttempts    = "attempts"
	KindRequests    = "requests"
)

// Kinds lists the kinds in the order in which they are recalled.
var Kinds = []string{KindRequests, KindDecisions, KindAttempts, KindDiscussions}

// kinds returns all findings by kind.
func (x *Extracted) kinds() map[string][]finding {
	all := make(map[string][]finding, len(Kinds))
	for _, d := range x.Decisions {
		all[KindDecisions] = append(all[KindDecisions], finding{d.Chosen, d.line(), d.Sources, d.Supersedes})
	}
	for _, d := range x.Discussions {
		all[KindDiscussions] = append(all[KindDiscussions], finding{d.Topic, join(d.Topic, strings.Join(d.Points, "; ")), d.Sources, d.Supersedes})
	}
	for _, a := range x.Attempts {
		all[KindAttempts] = append(all[KindAttempts], finding{a.Action, a.line(), a.Sources, a.Supersedes})
	}
	for _, r := range x.Requests {
		all[KindRequests] = append(all[KindRequests], finding{r.Intent, r.line(), r.Sources, r.Supersedes})
	}
	return all
}

func (d Decision) line() string {
	text := d.Chosen
	if len(d.Options) > 0 {
		text += " (of " + strings.Join(d.Options, ", ") + ")"
	}
	return join(text, d.Rationale)
}

func (a Attempt) line() string {
	if a.Succeeded {
		return join(a.Action, a.Result)
	}
	return join("did not work: "+a.Action, a.Result)
}

func (r Request) line() string {
	text := r.Intent
	if r.Target != "" {
		text += " (" + r.Target + ")"
	}
	return join(text, r.Summary)
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

// Facts returns the findings of a session as facts of pages, by kind, each with the
// events that it comes from and the day on which it was said. Secrets are removed.
func (x *Extracted) Facts(session event.SessionID, b Batch, day string) map[string][]page.Fact {
	facts := make(map[string][]page.Fact)
	for kind, findings := range x.kinds() {
		for _, f := range findings {
			facts[kind] = append(facts[kind], page.Fact{Text: window.Head(Redact(f.line), page.MostLine), Day: day, Sources: b.sources(session, f.sources)})
		}
	}
	return facts
}

func (b Batch) sources(session event.SessionID, at Sources) (list []page.Source) {
	for _, s := range at {
		list = append(list, page.Source{Session: string(session), First: int64(s), Last: int64(s)})
	}
	if list == nil {
		list = []page.Source{{Session: string(session), First: int64(b.From), Last: int64(b.To)}}
	}
	return list
}
