package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// An unclear error is the error of a text that is no answer to a question: nothing is
// answered, and the question stays open.
type unclear struct{ text string }

func (e *unclear) Error() string { return e.text }

func unclearf(format string, args ...any) error { return &unclear{fmt.Sprintf(format, args...)} }

// wordExplain asks what each answer to a question would allow.
const wordExplain = "?"

// wordDiff asks to see the whole change that a question is about.
const wordDiff = "d"

// The words of an answer to a permission request that holds for longer than the call.
// Each may be followed by ":" and the id of an offer.
const (
	wordSession = "approve-session"
	wordHere    = "approve-here"
	wordAlways  = "approve-always"
)

// yesWords and noWords mean yes and no, in any case and with or without a full stop.
var (
	yesWords = []string{"y", "yes", "ok", "okay", "approve", event.OfferOnce}
	noWords  = []string{"n", "no", "reject"}
)

// offerKeys are the letters by which offers are chosen.
var offerKeys = map[string]string{
	event.OfferOnce: "y", event.OfferCommand: "c", event.OfferPrefix: "p", event.OfferFile: "s", event.OfferFolder: "f", event.OfferTool: "t", event.OfferInput: "i",
}

// normalised returns a typed word in the form in which words are compared.
func normalised(word string) string { return strings.ToLower(strings.Trim(word, ".,!:;")) }

// feedback reports whether a text is clearly a sentence for the model and neither a yes
// nor a slip of the finger: it has several words, and neither is the first a yes nor do
// all of them say yes.
func feedback(text string) bool {
	words := strings.Fields(text)
	return len(words) > 1 && !slices.Contains(yesWords, normalised(words[0])) && !agrees(text)
}

// agreeing are the words of which people make a yes, such as "go ahead". A text of these
// words alone tells the model nothing that it could do instead.
var agreeing = strings.Fields(`y yes ok okay yep yeah yup aye sure surely thing lgtm please
	do it that this that's thats it's its is looks look seems sounds good great nice fine perfect right alright all correct
	go ahead for on then now just proceed continue carry with by me to of course means absolutely definitely certainly
	i i'm im you may can approve approved agree agreed allow allowed accept accepted granted be my guest`)

// friendly are phrases that say yes with a word that says no.
var friendly = []string{"no problem", "no worries", "no objections", "no objection", "why not"}

// agrees reports whether a text says yes in other words than the ones that count as yes.
func agrees(text string) bool {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = strings.ToLower(strings.Trim(w, ".,!:;?"))
	}
	joined := " " + strings.ReplaceAll(strings.Join(words, " "), "’", "'") + " "
	for _, phrase := range friendly {
		joined = strings.ReplaceAll(joined, " "+phrase+" ", " yes ")
	}
	words = strings.Fields(joined)
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(agreeing, w) })
}

// offers returns the ways to approve a permission request. A request of an older version
// has none, and can be approved once.
func (q question) offers() []event.Offer {
	if q.Permission.Abide == nil || len(q.Permission.Abide.Offers) == 0 {
		return []event.Offer{{ID: event.OfferOnce, Label: "this call only"}}
	}
	return q.Permission.Abide.Offers
}

// offer returns the offer that an id or a letter names.
func (q question) offer(name string) (event.Offer, bool) {
	for _, o := range q.offers() {
		if name == o.ID || name == offerKeys[o.ID] {
			return o, true
		}
	}
	return event.Offer{}, false
}

// lasting are the kinds of the decisions that hold for longer than a call, by their words.
var lasting = map[string]string{
	wordSession: turn.ApproveForSession, wordHere: turn.ApproveForLocation, wordAlways: turn.ApprovePermanently,
}

// decide returns the decision that a text stands for.
func (q question) decide(text string) (turn.Decision, error) {
	word := normalised(text)
	name, which, named := strings.Cut(word, ":")
	switch kind := lasting[name]; {
	case slices.Contains(yesWords, word):
		return turn.Decision{Kind: turn.ApproveOnce}, nil
	case slices.Contains(noWords, word):
		return turn.Decision{Kind: turn.Reject}, nil
	case kind != "":
		return q.decideLasting(kind, name, which, named)
	case feedback(text):
		return turn.Decision{Kind: turn.Reject, Feedback: text}, nil
	}
	if o, ok := q.offer(word); ok {
		return turn.Decision{Kind: turn.ApproveForSession, Offer: o.ID}, nil
	}
	if agrees(text) {
		return turn.Decision{}, unclearf("%q is no answer: a yes is yes, or y; answer %s", text, q.words())
	}
	return turn.Decision{}, unclearf("%q is no answer: answer %s; a reason to refuse it is a sentence of at least two words, which does not begin with yes", text, q.words())
}

// decideLasting returns the decision of an approval that holds for longer than the call.
func (q question) decideLasting(kind, word, which string, named bool) (turn.Decision, error) {
	wider := slices.DeleteFunc(slices.Clone(q.offers()), func(o event.Offer) bool { return len(o.Grants) == 0 })
	if len(wider) == 0 {
		return turn.Decision{}, unclearf("%s is not possible: what this call does cannot be approved in advance, so it is asked each time; answer %s", word, q.words())
	}
	if !named {
		which = wider[0].ID
	}
	o, ok := q.offer(which)
	if !ok || len(o.Grants) == 0 {
		return turn.Decision{}, unclearf("%q names none of the offers of this question: answer %s", which, q.words())
	}
	return turn.Decision{Kind: kind, Offer: o.ID}, nil
}

// granted says what an answer allows beyond this call, and how that ends; empty if it allows
// nothing.
func (q question) granted(text string) string {
	if q.Permission == nil {
		return ""
	}
	d, err := q.decide(text)
	o, ok := q.offer(d.Offer)
	if err != nil || !ok {
		return ""
	}
	const revocable = "; abide rules lists it, and abide rules revoke takes it back"
	until := ", for the rest of the session"
	switch d.Kind {
	case turn.ApproveForLocation:
		until = ", in all sessions of this directory" + revocable
	case turn.ApprovePermanently:
		until = ", in all sessions" + revocable
	}
	return "(allowed from now on: " + inLine(o.Label) + until + ")"
}

// words returns the possible answers to a question, for a usage line.
func (q question) words() string {
	switch {
	case q.Permission != nil:
		words := []string{"yes", "no"}
		for _, o := range q.offers() {
			if o.ID != event.OfferOnce {
				words = append(words, o.ID)
			}
		}
		return strings.Join(append(words, "'WHY NOT'"), "|")
	case q.Plan != nil:
		return strings.Join(append([]string{"yes", "no"}, append(slices.Clone(q.Plan.Actions), "'WHY NOT'")...), "|")
	case q.asksBudget():
		return "yes|no"
	case q.asksSampling():
		return "yes|always|no"
	case q.Form != nil:
		return "JSON|no|cancel"
	}
	return "TEXT"
}

// judgePlan returns what a text says of a plan.
func (q question) judgePlan(text string) (api.ExitPlanReply, error) {
	yes, no := true, false
	word := normalised(text)
	switch {
	case slices.Contains(yesWords, word):
		return api.ExitPlanReply{Approved: &yes, SelectedAction: cmp.Or(q.Plan.Recommended, event.PlanInteractive)}, nil
	case slices.Contains(q.Plan.Actions, word):
		return api.ExitPlanReply{Approved: &yes, SelectedAction: word}, nil
	case slices.Contains(noWords, word):
		return api.ExitPlanReply{Approved: &no}, nil
	case feedback(text):
		return api.ExitPlanReply{Approved: &no, Feedback: text}, nil
	}
	return api.ExitPlanReply{}, unclearf("%q is no answer to a plan, and a yes is yes, or y: answer %s", text, q.words())
}

// fillIn returns the form that a text fills in: a JSON object, or a refusal.
func (q question) fillIn(text string) (api.ElicitationResult, error) {
	word := normalised(text)
	switch {
	case slices.Contains(noWords, word), word == turn.Dismiss:
		return api.ElicitationResult{Action: turn.Dismiss}, nil
	case word == turn.Cancel:
		return api.ElicitationResult{Action: turn.Cancel}, nil
	case (q.asksBudget() || q.asksSampling()) && slices.Contains(yesWords, word):
		return api.ElicitationResult{Action: turn.Accept, Content: json.RawMessage("{}")}, nil
	case q.asksBudget():
		return api.ElicitationResult{}, unclearf("answer yes to go on, or no to end the turn")
	}
	if q.asksSampling() {
		if word == samplingAlways {
			text = `{"always":true}`
		} else if !strings.HasPrefix(text, "{") {
			return api.ElicitationResult{}, unclearf("answer yes for this request, always for all of this server in the rest of the session, or no")
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return api.ElicitationResult{}, unclearf("the answer to a form is a JSON object that follows its schema (see: abide questions --json), or no, or cancel")
	}
	return api.ElicitationResult{Action: turn.Accept, Content: json.RawMessage(text)}, nil
}
