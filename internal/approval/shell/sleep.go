package shell

import (
	"math"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// A Pause is the time that a script sleeps in the foreground. A sleep of unknown length,
// such as sleep $N, counts as zero.
type Pause struct {
	Longest time.Duration // the longest sleep
	Total   time.Duration // sum of the consecutive sleeps; a loop counts as one round, an if as its longest branch
	Text    string        // text of the longest sleep
}

// Pause returns how long the script sleeps in the foreground. Sleeps in the background
// count only if the script waits for them.
func (s *Script) Pause() Pause {
	t := timer{script: s, functions: map[string]Pause{}}
	return t.list(s.stmts)
}

// then returns the sum of two consecutive pauses.
func (p Pause) then(q Pause) Pause {
	longer := p.or(q)
	longer.Total = p.Total + q.Total
	if longer.Total < p.Total {
		longer.Total = math.MaxInt64
	}
	return longer
}

// or returns the longer of two alternative or concurrent pauses.
func (p Pause) or(q Pause) Pause {
	longer := p
	if q.Longest > p.Longest {
		longer = q
	}
	longer.Total = max(p.Total, q.Total)
	return longer
}

// atMost returns the pause, limited to d.
func (p Pause) atMost(d time.Duration) Pause {
	p.Longest, p.Total = min(p.Longest, d), min(p.Total, d)
	return p
}

// A timer adds up the pauses of a script.
type timer struct {
	script     *Script
	functions  map[string]Pause
	background Pause // longest pause in the background so far
}

func (t *timer) list(stmts []*syntax.Stmt) Pause {
	var sum Pause
	for _, s := range stmts {
		sum = sum.then(t.stmt(s))
	}
	return sum
}

func (t *timer) stmt(s *syntax.Stmt) Pause {
	p := t.redirects(s.Redirs).then(t.command(s))
	if s.Background || s.Coprocess {
		t.background = t.background.or(p)
		return Pause{}
	}
	return p
}

func (t *timer) redirects(list []*syntax.Redirect) Pause {
	var sum Pause
	for _, r := range list {
		sum = sum.then(t.inside(r))
	}
	return sum
}

func (t *timer) command(s *syntax.Stmt) Pause {
	switch c := s.Cmd.(type) {
	case nil:
		return Pause{}
	case *syntax.CallExpr:
		return t.inside(c).then(t.call(stripPrefixes(t.script.words(c.Args)), s))
	case *syntax.BinaryCmd:
		x, y := t.stmt(c.X), t.stmt(c.Y)
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			return x.then(y)
		}
		return x.or(y)
	case *syntax.Subshell:
		return t.list(c.Stmts)
	case *syntax.Block:
		return t.list(c.Stmts)
	case *syntax.IfClause:
		return t.branches(c)
	case *syntax.WhileClause:
		return t.list(c.Cond).then(t.list(c.Do))
	case *syntax.ForClause:
		return t.inside(c.Loop).then(t.list(c.Do))
	case *syntax.CaseClause:
		return t.cases(c)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return Pause{}
		}
		return t.stmt(c.Stmt)
	case *syntax.FuncDecl:
		t.declare(c)
		return Pause{}
	case *syntax.CoprocClause:
		t.background = t.background.or(t.stmt(c.Stmt))
		return Pause{}
	}
	return t.inside(s.Cmd)
}

func (t *timer) branches(c *syntax.IfClause) Pause {
	p := t.list(c.Then)
	if c.Else != nil {
		p = p.or(t.branches(c.Else))
	}
	return t.list(c.Cond).then(p)
}

func (t *timer) cases(c *syntax.CaseClause) Pause {
	var longest Pause
	for _, item := range c.Items {
		longest = longest.or(t.list(item.Stmts))
	}
	return t.inside(c.Word).then(longest)
}

// declare stores how long a function sleeps, for its calls.
func (t *timer) declare(f *syntax.FuncDecl) {
	if f.Name != nil && f.Body != nil {
		t.functions[f.Name.Value] = t.stmt(f.Body)
	}
}

// inside returns the sleeps in command substitutions: $(…).
func (t *timer) inside(n syntax.Node) Pause {
	var sum Pause
	if n == nil {
		return sum
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			sum = sum.then(t.list(n.Stmts))
			return false
		case *syntax.ProcSubst: // runs concurrently with the script
			return false
		}
		return true
	})
	return sum
}

// call returns how long a command sleeps.
func (t *timer) call(c call, s *syntax.Stmt) Pause {
	p := t.plain(c, s)
	if c.limit > 0 {
		p = p.atMost(c.limit)
	}
	if c.detached {
		return Pause{}
	}
	return p
}

func (t *timer) plain(c call, s *syntax.Stmt) Pause {
	name, ok := c.name()
	if !ok || c.query {
		return Pause{}
	}
	if p, ok := t.functions[name]; ok {
		return p
	}
	switch name {
	case "sleep":
		d, _ := seconds(c.words[1:])
		return Pause{d, d, showWords(c.words)}
	case "wait":
		p := t.background
		t.background = Pause{}
		return p
	}
	text, from := c.script()
	if from == scriptInput {
		text, _ = hereText(s.Redirs)
	}
	if from == scriptWord || from == scriptInput {
		return parse(text.text, t.script.depth+1).Pause()
	}
	return Pause{}
}

// seconds returns the sum of the operands of sleep, without unknown ones. It reports
// false if sleep would refuse them.
func seconds(operands []word) (time.Duration, bool) {
	sum := 0.0
	for i, w := range operands {
		if !w.known || i == 0 && w.text == "--" {
			continue
		}
		s, ok := interval(w.text)
		if !ok {
			return 0, false
		}
		sum += s
	}
	if sum >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64, true
	}
	return time.Duration(sum * float64(time.Second)), true
}

var units = map[byte]float64{'s': 1, 'm': 60, 'h': 60 * 60, 'd': 24 * 60 * 60}

// interval parses a number of seconds as sleep does: 2, 1.5m, .5h, 1e3, infinity.
func interval(text string) (float64, bool) {
	unit := 1.0
	if text == "" || strings.Contains(text, "_") {
		return 0, false
	}
	hex := strings.HasPrefix(strings.ToLower(text), "0x")
	if u, ok := units[text[len(text)-1]]; ok && !(hex && text[len(text)-1] == 'd') {
		unit, text = u, text[:len(text)-1]
	}
	if hex && !strings.ContainsAny(text, "pP") {
		text += "p0"
	}
	n, err := strconv.ParseFloat(text, 64)
	if math.IsInf(n, 1) {
		return n, true
	}
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	return n * unit, true
}
