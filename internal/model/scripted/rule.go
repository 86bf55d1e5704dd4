package scripted

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
)

// A rule is a reply, with the conditions under which it is given.
type rule struct {
	name  string // name for error messages: its number, and its name in the file
	at    int    // offset in the file
	when  []condition
	reply reply
}

// A condition is one condition on the request.
type condition struct {
	says  string // the condition as it is written in the file, for error messages
	holds func(*asked) bool
}

// asked is a request, prepared for conditions and placeholders.
type asked struct {
	req  *model.Request
	turn local.Turn
}

func (r *rule) holds(a *asked) bool {
	for _, c := range r.when {
		if !c.holds(a) {
			return false
		}
	}
	return true
}

func (r *rule) String() string {
	says := make([]string, len(r.when))
	for i, c := range r.when {
		says[i] = c.says
	}
	return fmt.Sprintf("%s (%s)", r.name, strings.Join(says, ", "))
}

// conditions returns the keys of "when".
func (r *rule) conditions() fields {
	return fields{
		"user":           when(r, func(a *asked, want string) bool { return a.turn.Instruction == want }),
		"userContains":   when(r, func(a *asked, want string) bool { return strings.Contains(a.turn.Instruction, want) }),
		"userMatches":    when(r, func(a *asked, want *regexp.Regexp) bool { return want.MatchString(a.turn.Instruction) }),
		"userMessages":   when(r, func(a *asked, want count) bool { return local.Instructions(a.req.Messages) == int(want) }),
		"step":           when(r, func(a *asked, want ordinal) bool { return a.turn.Step == int(want) }),
		"results":        when(r, func(a *asked, want count) bool { return a.turn.Results == int(want) }),
		"resultContains": when(r, func(a *asked, want string) bool { return strings.Contains(a.result(), want) }),
		"noticeContains": when(r, func(a *asked, want string) bool { return strings.Contains(a.turn.Notice, want) }),
		"model":          when(r, func(a *asked, want string) bool { return a.req.Model == want }),
		"tool":           when(r, func(a *asked, want string) bool { return a.offers(want) }),
	}
}

// when returns a field that adds a condition on one value of the request.
func when[T any](r *rule, test func(a *asked, want T) bool) field {
	return func(in *reader, key string) error {
		want, raw, err := decode[T](in, key)
		if err != nil {
			return err
		}
		r.when = append(r.when, condition{
			says:  fmt.Sprintf("%s %s", key, excerpt(raw)),
			holds: func(a *asked) bool { return test(a, want) },
		})
		return nil
	}
}

func (a *asked) offers(tool string) bool {
	if a.req.Tools == nil {
		return false
	}
	for _, t := range a.req.Tools.List {
		if t.Name == tool {
			return true
		}
	}
	return false
}

// result returns the text of the last result in this turn.
func (a *asked) result() string {
	for i := len(a.turn.Outcomes) - 1; i >= 0; i-- {
		if m := a.turn.Outcomes[i].Result; m != nil {
			return m.Text
		}
	}
	return ""
}

// results returns the texts of all results in this turn, in the order of the calls.
func (a *asked) results() string {
	var texts []string
	for _, o := range a.turn.Outcomes {
		if o.Result != nil {
			texts = append(texts, o.Result.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (a *asked) String() string {
	s := fmt.Sprintf("step %d of %s (user messages: %d, results: %d, model %q",
		a.turn.Step, excerpt(fmt.Sprintf("%q", a.turn.Instruction)), local.Instructions(a.req.Messages), a.turn.Results, a.req.Model)
	if a.turn.Results > 0 {
		s += ", last result " + excerpt(fmt.Sprintf("%q", a.result()))
	}
	return s + ")"
}

// excerpt shortens a text for an error message.
func excerpt(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
