package search

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A program is an expression compiled for the automaton. It does not change.
type program struct {
	*syntax.Prog
	accepts []charset  // accepted characters by instruction
	class   [256]uint8 // class of each byte; bytes of one class have the same effect
	sample  []byte     // one byte of each class
	starts  bool       // true if a condition depends on the start of a line
	words   bool       // true if a condition depends on the boundary of a word
	unsure  bool       // true if the automaton is exact only for ASCII
}

// A charset is the set of ASCII characters that an instruction accepts, and whether it
// accepts any others.
type charset struct {
	ascii [2]uint64
	other bool
}

func (c *charset) has(b byte) bool {
	if b >= utf8.RuneSelf {
		return c.other
	}
	return c.ascii[b>>6]>>(b&63)&1 != 0
}

func newProgram(tree *syntax.Regexp) (*program, error) {
	prog, err := syntax.Compile(tree)
	if err != nil {
		return nil, err
	}
	p := &program{Prog: prog, accepts: make([]charset, len(prog.Inst))}
	for i := range prog.Inst {
		in := &prog.Inst[i]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			p.accepts[i] = charsetOf(in)
			p.unsure = p.unsure || p.accepts[i].other
		case syntax.InstEmptyWidth:
			p.starts = p.starts || syntax.EmptyOp(in.Arg)&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0
			if syntax.EmptyOp(in.Arg)&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
				p.words, p.unsure = true, true // between the bytes of a character neither condition holds
			}
		}
	}
	p.classify()
	return p, nil
}

func charsetOf(in *syntax.Inst) charset {
	var c charset
	for r := rune(0); r < utf8.RuneSelf; r++ {
		if in.MatchRune(r) {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	c.other = takesOther(in)
	return c
}

// takesOther reports whether an instruction accepts a character beyond ASCII.
func takesOther(in *syntax.Inst) bool {
	switch {
	case in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL:
		return true
	case len(in.Rune) == 0:
		return false
	case len(in.Rune) > 1:
		return in.Rune[len(in.Rune)-1] >= utf8.RuneSelf
	case in.Rune[0] >= utf8.RuneSelf:
		return true
	case syntax.Flags(in.Arg)&syntax.FoldCase == 0:
		return false
	}
	for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
		if r >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// classify groups bytes that have the same effect into classes. The line break is a
// class by itself, and the bytes beyond ASCII are one class.
func (p *program) classify() {
	classes := map[string]uint8{}
	for b := range 256 {
		var key strings.Builder
		for i := range p.accepts {
			if p.accepts[i].has(byte(b)) {
				key.WriteByte(byte(i))
				key.WriteByte(byte(i >> 8))
			}
		}
		switch {
		case b == '\n':
			key.WriteString("end")
		case b >= utf8.RuneSelf:
			key.WriteString("other")
		case p.words && isWord(byte(b)):
			key.WriteString("word")
		}
		class, known := classes[key.String()]
		if !known {
			class = uint8(len(p.sample))
			classes[key.String()] = class
			p.sample = append(p.sample, byte(b))
		}
		p.class[b] = class
	}
}

func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
