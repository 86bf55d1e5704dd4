package event

// BudgetRaised is the type of the event that raises a budget.
const BudgetRaised Type = "budget.raised"

var _ = list(
	Kind{Type: BudgetRaised, body: body[BudgetRaisedData], Hidden: true, Lasting: true},
)

// BudgetRules are limits of what model requests may cost, or amounts that are compared with
// such limits. A limit that is nil does not exist. A limit of zero lets no request pass
// without an answer of a person.
type BudgetRules struct {
	SessionUSD    *float64 `json:"sessionCostUsd,omitempty"` // US dollars of a session and its agents
	SessionTokens *int64   `json:"sessionTokens,omitempty"`  // tokens of a session and its agents
	DayUSD        *float64 `json:"dayCostUsd,omitempty"`     // US dollars of all sessions on one day
	DayTokens     *int64   `json:"dayTokens,omitempty"`      // tokens of all sessions on one day
}

// With returns the rules with the limits that are set in others instead of their own.
func (r BudgetRules) With(others BudgetRules) BudgetRules {
	if others.SessionUSD != nil {
		r.SessionUSD = others.SessionUSD
	}
	if others.SessionTokens != nil {
		r.SessionTokens = others.SessionTokens
	}
	if others.DayUSD != nil {
		r.DayUSD = others.DayUSD
	}
	if others.DayTokens != nil {
		r.DayTokens = others.DayTokens
	}
	return r
}

// BudgetReached says why a form asks whether to go on: the next model request would exceed
// limits, or its price is not known although there is a limit in money.
type BudgetReached struct {
	Limits   BudgetRules `json:"limits"`                  // limits that the request would exceed
	Spent    BudgetRules `json:"spent"`                   // what was spent of each of them
	Raised   BudgetRules `json:"raised"`                  // the limits after a yes
	Day      string      `json:"day,omitempty"`           // day of the limits of a day: a local date of the engine, such as "2026-02-28"
	Unpriced string      `json:"unpricedModel,omitempty"` // model whose price is not known
}

// BudgetRaisedData is the body of budget.raised: somebody has answered that the session goes
// on. It is stored together with the answer.
type BudgetRaisedData struct {
	RequestID string      `json:"requestId"`               // id of the form
	Limits    BudgetRules `json:"limits"`                  // the limits from here on, as the form has shown them
	Day       string      `json:"day,omitempty"`           // day for which the limits of a day hold
	Unpriced  string      `json:"unpricedModel,omitempty"` // model that may be asked although its price is not known
}

func (BudgetRaisedData) Type() Type { return BudgetRaised }
