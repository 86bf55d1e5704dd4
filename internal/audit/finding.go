package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// A Finding is a broken rule, and where.
type Finding struct {
	Invariant string `json:"invariant"`
	Rule      string `json:"rule"`
	Session   string `json:"session,omitempty"`
	Seq       int64  `json:"position,omitempty"`
	Process   string `json:"process,omitempty"`
	Text      string `json:"text"`
}

// A Doubt is a rule that stored state does not decide, how often, and the first
// place.
type Doubt struct {
	Finding
	Count int `json:"count"`
}

// A Verdict is what became of an invariant.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Broken  Verdict = "broken"
	Unknown Verdict = "unknown" // nothing is broken, and not everything can be decided
)

// Invariants are the promises, in order.
var Invariants = []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"}

// A Report is what an audit came to.
type Report struct {
	Folder     string             `json:"folder"`
	Engine     bool               `json:"engine"` // true if an engine was running
	Sessions   int64              `json:"sessions"`
	Events     int64              `json:"events"`
	Processes  int64              `json:"processes"`
	Unfinished int64              `json:"unfinished"` // sessions that have something left to do
	Verdicts   map[string]Verdict `json:"verdicts"`
	Findings   []Finding          `json:"findings"`
	Unknown    []Doubt            `json:"unknown"`
	Omitted    int                `json:"omitted,omitempty"` // findings beyond those that are listed
}

// Clean reports whether nothing is broken.
func (r *Report) Clean() bool { return len(r.Findings) == 0 }

// maxListed bounds how many findings are listed of one rule: a folder in which
// everything is broken must not fill the memory.
const maxListed = 1000

// findings collects what is found.
type findings struct {
	list    []Finding
	byRule  map[string]int
	omitted int
	doubts  map[string]*Doubt
	half    map[string]bool // folders of processes without a spec whose owner is known
}

func newFindings() *findings {
	return &findings{byRule: make(map[string]int), doubts: make(map[string]*Doubt), half: make(map[string]bool)}
}

func (f *findings) add(found Finding) {
	found.Invariant = invariantOf(found.Rule)
	if f.byRule[found.Rule]++; f.byRule[found.Rule] > maxListed {
		f.omitted++
		return
	}
	f.list = append(f.list, found)
}

func (f *findings) doubt(found Finding) {
	found.Invariant = invariantOf(found.Rule)
	if f.doubts[found.Rule] == nil {
		f.doubts[found.Rule] = &Doubt{Finding: found}
	}
	f.doubts[found.Rule].Count++
}

// invariantOf returns the invariant that a rule belongs to. A rule that is in no
// table is a mistake of this package.
func invariantOf(rule string) string {
	invariant, known := rules[rule]
	if !known {
		panic(fmt.Sprintf("audit: the rule %q is in no table", rule))
	}
	return invariant
}

// report sorts what was found and draws the verdicts.
func (f *findings) report(r *Report) {
	r.Findings, r.Omitted, r.Unknown = append([]Finding{}, f.list...), f.omitted, []Doubt{}
	r.Verdicts = make(map[string]Verdict)
	for _, i := range Invariants {
		r.Verdicts[i] = OK
	}
	for _, d := range f.doubts {
		r.Unknown = append(r.Unknown, *d)
		r.Verdicts[d.Invariant] = Unknown
	}
	for _, found := range r.Findings {
		r.Verdicts[found.Invariant] = Broken
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Rule, b.Rule))
	})
	slices.SortFunc(r.Unknown, func(a, b Doubt) int { return cmp.Compare(a.Rule, b.Rule) })
}
