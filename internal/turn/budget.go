package turn

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// Budget is what the log says of limits that were reached: whether somebody is asked to
// raise them, and to what they were raised.
type Budget struct {
	Open    *BudgetQuestion // the question whether to go on; nil if it is not open
	Refused bool            // the answer was no: the turn ends before its next request

	raised   event.BudgetRules // limits that people have agreed to
	day      string            // day for which those of a day hold
	unpriced map[string]bool   // models that may be asked although their prices are not known
	rules    event.BudgetRules // limits of the configuration when they were last raised
}

// A BudgetQuestion is an open question whether to go on.
type BudgetQuestion struct {
	RequestID string
	event.BudgetReached
}

// ErrorBudget is the type of the session.error of a turn that may not cost more.
const ErrorBudget = "budget"

const textRefused = "The turn was stopped because it reached its budget and the answer was not to go on. Send a message to be asked again, or raise the limits of [budget] in the configuration."

func (b *Budget) fold(body event.Payload) {
	switch d := body.(type) {
	case event.ElicitationAskedData:
		if d.Budget != nil {
			b.Open, b.Refused = &BudgetQuestion{d.RequestID, *d.Budget}, false
		}
	case event.ElicitationDoneData:
		if b.Open != nil && b.Open.RequestID == d.RequestID {
			b.Open, b.Refused = nil, d.Action != Accept
		}
	case event.BudgetRaisedData:
		b.raise(d)
	case event.SessionConfiguredData:
		if rules := d.Budget.With(d.Limit); !sameRules(rules, b.rules) { // somebody has set other limits since
			b.raised, b.rules = event.BudgetRules{}, rules
		}
	}
}

func (b *Budget) raise(d event.BudgetRaisedData) {
	if d.Day != b.day {
		b.raised.DayUSD, b.raised.DayTokens, b.day = nil, nil, d.Day
	}
	b.raised = b.raised.With(d.Limits)
	if d.Unpriced != "" {
		models := maps.Clone(b.unpriced)
		if models == nil {
			models = make(map[string]bool)
		}
		models[d.Unpriced] = true
		b.unpriced = models
	}
}

func sameRules(a, b event.BudgetRules) bool {
	return samePtr(a.SessionUSD, b.SessionUSD) && samePtr(a.SessionTokens, b.SessionTokens) && samePtr(a.DayUSD, b.DayUSD) && samePtr(a.DayTokens, b.DayTokens)
}

func samePtr[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// holds reports whether the budget does not let the next request be made.
func (b *Budget) holds(now Now) bool { return b.Refused || b.Open != nil || now.Held }

// hold returns what is done instead of the next request: the turn ends if the answer was no,
// and waits for the answer otherwise.
func (b *Budget) hold(refused Step) Step {
	if b.Refused {
		return refused
	}
	return Wait{}
}

// Limits are the limits of a session at one moment, in tokens and in billionths of a US
// dollar.
type Limits struct {
	configured, now amounts
	unpriced        map[string]bool
	day             string
	Refused         bool // somebody has answered that the session does not go on
}

// amounts are amounts of each kind. One that is negative does not exist.
type amounts [4]int64

// The kinds of amounts.
const (
	sessionMoney = iota
	sessionTokens
	dayMoney
	dayTokens
)

// limitNames are the names of the limits in the configuration.
var limitNames = [4]string{"session_cost", "session_tokens", "day_cost", "day_tokens"}

// isMoney reports whether amounts of a kind are money.
func isMoney(kind int) bool { return kind == sessionMoney || kind == dayMoney }

// Limits returns the limits of the session on a day.
func (s *State) Limits(day string) Limits {
	b, c := &s.Budget, s.Setup.Config
	l := Limits{configured: amountsOf(c.Budget.With(c.Limit)), unpriced: b.unpriced, day: day, Refused: b.Refused}
	raised := b.raised
	if b.day != day {
		raised.DayUSD, raised.DayTokens = nil, nil
	}
	l.now = amountsOf(raised)
	for i, limit := range l.configured {
		if limit < 0 {
			l.now[i] = limit // there is no such limit any more
		}
		l.now[i] = max(l.now[i], limit)
	}
	return l
}

// OfDay reports whether there is a limit for all sessions of a day.
func (l Limits) OfDay() bool { return l.configured[dayMoney] >= 0 || l.configured[dayTokens] >= 0 }

// Spending is what sessions have spent, or are about to spend.
type Spending struct{ NanoUSD, Tokens int64 }

// Plus returns the sum of two amounts.
func (a Spending) Plus(b Spending) Spending {
	return Spending{add(a.NanoUSD, b.NanoUSD), add(a.Tokens, b.Tokens)}
}

// Times returns an amount several times.
func (a Spending) Times(n int64) Spending {
	return Spending{multiply(a.NanoUSD, n), multiply(a.Tokens, n)}
}

// A Purchase is a model request that is to be made.
type Purchase struct {
	Session, Day Spending // what was spent before
	Next         Spending // what the request takes at least
	Model        string
	Unpriced     bool // the price of the model is not known
}

// Exceeds returns the limits that a request would exceed, and nil if it may be made.
func (l Limits) Exceeds(p Purchase) *event.BudgetReached {
	spent := amounts{p.Session.NanoUSD, p.Session.Tokens, p.Day.NanoUSD, p.Day.Tokens}
	limits, raised, over := none, none, false
	for i, limit := range l.now {
		next := p.Next.Tokens
		if isMoney(i) {
			next = p.Next.NanoUSD
		}
		if limit < 0 || add(spent[i], next) <= limit {
			spent[i] = -1
			continue
		}
		over = true
		limits[i], raised[i] = limit, raise(limit, l.configured[i], spent[i], next)
	}
	d := &event.BudgetReached{Limits: limits.rules(), Spent: spent.rules(), Raised: raised.rules()}
	if limits[dayMoney] >= 0 || limits[dayTokens] >= 0 {
		d.Day = l.day
	}
	if p.Unpriced && !l.unpriced[p.Model] && (l.configured[sessionMoney] >= 0 || l.configured[dayMoney] >= 0) {
		d.Unpriced, over = p.Model, true
	}
	if !over {
		return nil
	}
	return d
}

// none has no amount.
var none = amounts{-1, -1, -1, -1}

// raise returns the limit that people are asked for: raised by the configured one as often as
// the next request needs it. A limit of zero is raised by what the next request needs, and a
// little more because that is an estimate.
func raise(limit, configured, spent, next int64) int64 {
	needed := add(spent, next)
	if configured <= 0 {
		return add(needed, next/8+16)
	}
	times := max(1, (needed-limit-1)/configured+1)
	if times > math.MaxInt64/configured {
		return math.MaxInt64
	}
	return add(limit, times*configured)
}

// add adds numbers that are not negative. A sum that is too large is the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// multiply multiplies numbers that are not negative. A product that is too large is the
// largest number.
func multiply(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

const nanos = 1e9 // billionths of a dollar in a dollar

// NanoUSD returns an amount of money in billionths of a US dollar. One that is too large is
// the largest number.
func NanoUSD(usd float64) int64 {
	if n := math.Round(usd * nanos); n < math.MaxInt64 {
		return int64(n)
	}
	return math.MaxInt64
}

func amountsOf(r event.BudgetRules) amounts {
	a := none
	for i, usd := range map[int]*float64{sessionMoney: r.SessionUSD, dayMoney: r.DayUSD} {
		if usd != nil {
			a[i] = NanoUSD(*usd)
		}
	}
	for i, tokens := range map[int]*int64{sessionTokens: r.SessionTokens, dayTokens: r.DayTokens} {
		if tokens != nil {
			a[i] = *tokens
		}
	}
	return a
}

func (a amounts) rules() (r event.BudgetRules) {
	money := func(n int64) *float64 {
		if n < 0 {
			return nil
		}
		return new(float64(n) / nanos)
	}
	tokens := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return event.BudgetRules{
		SessionUSD: money(a[sessionMoney]), SessionTokens: tokens(a[sessionTokens]), DayUSD: money(a[dayMoney]), DayTokens: tokens(a[dayTokens]),
	}
}

// AskBudget returns the form that asks whether to go on.
func AskBudget(id string, d event.BudgetReached) event.ElicitationAskedData {
	return event.ElicitationAskedData{
		RequestID: id, Message: describeBudget(d), Schema: json.RawMessage(`{"type":"object","properties":{}}`), Mode: "form", Budget: &d,
	}
}

// describeBudget asks a person whether to go on.
func describeBudget(d event.BudgetReached) string {
	var reasons, after []string
	limits, spent, raised := amountsOf(d.Limits), amountsOf(d.Spent), amountsOf(d.Raised)
	for i, limit := range limits {
		if limit < 0 {
			continue
		}
		who := "this session and its agents have"
		if i == dayMoney || i == dayTokens {
			who = "all sessions have today"
		}
		reasons = append(reasons, fmt.Sprintf("%s used %s of %s (%s)", who, strings.TrimSuffix(describeAmount(i, spent[i]), unitTokens), describeAmount(i, limit), limitNames[i]))
		after = append(after, fmt.Sprintf("%s to %s", limitNames[i], describeAmount(i, raised[i])))
	}
	var text []string
	if len(reasons) > 0 {
		text = append(text, "The next model request would exceed the budget: "+strings.Join(reasons, "; ")+".")
	}
	if d.Unpriced != "" {
		text = append(text, fmt.Sprintf("The price of the model %s is not known, so the budget in money cannot be held for it (set input_price and output_price in [models.%q]).", d.Unpriced, d.Unpriced))
	}
	question := "Go on?"
	switch {
	case len(after) > 0 && d.Unpriced != "":
		question = fmt.Sprintf("Go on? That raises %s, and asks the model without counting its price.", strings.Join(after, " and "))
	case len(after) > 0:
		question = fmt.Sprintf("Go on? That raises %s.", strings.Join(after, " and "))
	case d.Unpriced != "":
		question = "Go on? The session then asks the model without counting its price."
	}
	return strings.Join(append(text, question), " ")
}

// describeAmount returns an amount for people.
func describeAmount(kind int, n int64) string {
	if isMoney(kind) {
		return "$" + strconv.FormatFloat(float64(n)/nanos, 'f', decimals(n), 64)
	}
	return strconv.FormatInt(n, 10) + unitTokens
}

const unitTokens = " tokens"

// decimals returns with how many decimals an amount of money is shown: small ones with more.
func decimals(nano int64) int {
	if nano != 0 && nano < nanos {
		return 4
	}
	return 2
}

// answerBudget returns what is to be recorded with a yes to the open question.
func (s *State) answerBudget(requestID, action string) []event.Payload {
	q := s.Budget.Open
	if q == nil || q.RequestID != requestID || action != Accept {
		return nil
	}
	return []event.Payload{event.BudgetRaisedData{RequestID: requestID, Limits: q.Raised, Day: q.Day, Unpriced: q.Unpriced}}
}

// closeBudget returns what is to be recorded when nobody waits for the answer any more.
func (s *State) closeBudget() []event.Payload {
	if s.Budget.Open == nil {
		return nil
	}
	return []event.Payload{event.ElicitationDoneData{RequestID: s.Budget.Open.RequestID, Action: Cancel}}
}
