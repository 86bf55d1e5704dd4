package turn

import (
	"crypto/sha256"
	"fmt"

	"github.com/abide-run/abide/internal/tool"
)

// maxCycle is the number of steps of the longest cycle that is found.
const maxCycle = 4

// Repeats tells how often the last steps of a turn were repeated: steps with the same
// calls and the same results. Ids that the runtime makes, times and durations make no
// difference, because they differ in every result.
type Repeats struct {
	last [maxCycle]stepDigest // the last steps, the newest first
	// same counts, for each length of a cycle less one, the steps in a row that were
	// the same as the step that many steps before.
	same [maxCycle]int
}

// A stepDigest identifies what a step did and found.
type stepDigest struct {
	calls   string // its calls, and the results whose tools gave a digest
	results string // the other results; empty if they were not looked at
}

// count takes in the calls of a step that has ended. Results are only looked at when
// the calls were made before in the last steps.
func (r *Repeats) count(calls []*Call) {
	step := stepDigest{calls: digestCalls(calls)}
	for i := range r.last {
		if r.last[i].calls == step.calls {
			step.results = digestResults(calls)
			break
		}
	}
	for i := range r.last {
		if r.last[i].sameAs(step) {
			r.same[i]++
		} else {
			r.same[i] = 0
		}
	}
	copy(r.last[1:], r.last[:])
	r.last[0] = step
}

// sameAs reports whether a later step did and found the same. Results that were not
// looked at may have been the same.
func (d stepDigest) sameAs(later stepDigest) bool {
	return d.calls != "" && d.calls == later.calls && (d.results == "" || d.results == later.results)
}

// Times returns how often the shortest cycle of steps at the end was made in a row, and
// its number of steps.
func (r *Repeats) Times() (times, steps int) {
	for i, n := range r.same {
		if made := 1 + n/(i+1); made > times {
			times, steps = made, i+1
		}
	}
	return times, steps
}

// describe says that the model repeats itself.
func (r *Repeats) describe() string {
	times, steps := r.Times()
	what := "the same calls with the same results"
	if steps > 1 {
		what = fmt.Sprintf("the same %d steps with the same results", steps)
	}
	return fmt.Sprintf("The model made %s %d times in a row, so the turn was stopped. Send another message to go on in another way.", what, times)
}

// digestCalls tells calls apart that mean something else.
func digestCalls(calls []*Call) string {
	h := sha256.New()
	for _, c := range calls {
		parts := []string{c.Request.Name, c.digest}
		if c.digest == "" {
			parts = append(parts, tool.Meaning(c.Request.Arguments), c.Request.Malformed)
		}
		for _, part := range parts {
			fmt.Fprintf(h, "%d %s", len(part), part)
		}
	}
	return string(h.Sum(nil))
}

func digestResults(calls []*Call) string {
	var parts []string
	for _, c := range calls {
		if c.digest == "" {
			parts = append(parts, c.text)
		}
	}
	return tool.Digest(parts...)
}
