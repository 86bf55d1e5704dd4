package search

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// Entries of the table that are not states.
const (
	unknown int32 = -1 // the next state is not computed yet
	matched int32 = -2 // the line matches
)

// maxStates is the maximum number of states. A full table is emptied.
const maxStates = 4000

// An automaton (a lazy DFA) reads bytes and finds lines that match. Its states are
// created when they are first reached.
//
// It does not tell characters beyond ASCII apart: an instruction that accepts one of
// them accepts any number of bytes beyond ASCII. So it may report a match where there is
// none, but it misses none.
type automaton struct {
	*program
	states []state
	index  map[string]int32
	table  []int32 // next state, times the number of classes, by state and class
	start  int32
	idle   [256]bool // bytes that lead from the start state to itself
	set    sparse
	flags  syntax.EmptyOp // conditions that hold at the position that is computed
}

// A state is a set of instructions: those that accept a character, and conditions that
// depend on the next one.
type state struct {
	insts []uint32
	position
}

// position has the facts about a position that conditions depend on, apart from the next
// character.
type position struct {
	lineStart bool
	afterWord bool
}

func newAutomaton(p *program) *automaton {
	a := &automaton{program: p, set: newSparse(len(p.Inst))}
	a.reset()
	return a
}

// reset removes all states.
func (a *automaton) reset() {
	a.states, a.index, a.table = a.states[:0], make(map[string]int32), a.table[:0]
	a.idle = [256]bool{}
	a.set.clear()
	a.flags = 0
	a.add(uint32(a.Start))
	a.start = a.state(position{lineStart: a.starts})
}

// find returns a position in the first line that matches, or -1. The line break at the
// end of a line belongs to the line.
func (a *automaton) find(b []byte) int {
	at, table, class := a.start, a.table, &a.class
	for i := 0; i < len(b); i++ {
		if at == a.start {
			if i = a.skipIdle(b, i); i == len(b) {
				break
			}
		}
		next := table[at+int32(class[b[i]])]
		if next == unknown {
			next = a.next(at, class[b[i]])
			table = a.table
		}
		if next == matched {
			return i
		}
		at = next
	}
	if len(b) > 0 && b[len(b)-1] != '\n' && a.next(at, class['\n']) == matched {
		return len(b)
	}
	return -1
}

// skipIdle skips bytes that lead from the start state to itself, which is where the
// automaton is most of the time.
func (a *automaton) skipIdle(b []byte, i int) int {
	for i < len(b) && a.idle[b[i]] {
		i++
	}
	return i
}

// next computes the state after a byte of a class.
func (a *automaton) next(at int32, class uint8) int32 {
	from := a.states[at/int32(len(a.sample))]
	c := a.sample[class]
	a.expand(from, c)
	next := unknown
	switch {
	case a.matches():
		next = matched
	case c == '\n':
		next = a.start
	default:
		next = a.step(c)
	}
	if len(a.states) > maxStates {
		return a.restart(next)
	}
	a.table[at+int32(class)] = next
	if at == a.start && next == a.start {
		for b := range a.idle {
			a.idle[b] = a.idle[b] || a.class[b] == class
		}
	}
	return next
}

// restart empties the table and adds the present state again.
func (a *automaton) restart(at int32) int32 {
	if at < 0 {
		a.reset()
		return at
	}
	s := a.states[at/int32(len(a.sample))]
	s.insts = slices.Clone(s.insts)
	a.reset()
	a.set.clear()
	for _, i := range s.insts {
		a.set.add(i)
	}
	return a.state(s.position)
}

// expand sets the instructions that are reached from a state before the character c.
func (a *automaton) expand(from state, c byte) {
	a.flags = 0
	if from.lineStart {
		a.flags |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if c == '\n' {
		a.flags |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if from.afterWord != isWord(c) {
		a.flags |= syntax.EmptyWordBoundary
	} else {
		a.flags |= syntax.EmptyNoWordBoundary
	}
	a.set.clear()
	for _, i := range from.insts {
		a.add(i)
	}
}

// add adds an instruction and those that are reached from it without a character.
// Conditions that do not hold are kept, because they may hold at the next position.
func (a *automaton) add(i uint32) {
	if !a.set.add(i) {
		return
	}
	switch in := &a.Inst[i]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		a.add(in.Out)
		a.add(in.Arg)
	case syntax.InstCapture, syntax.InstNop:
		a.add(in.Out)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(in.Arg)&^a.flags == 0 {
			a.add(in.Out)
		}
	}
}

func (a *automaton) matches() bool {
	for _, i := range a.set.dense {
		if a.Inst[i].Op == syntax.InstMatch {
			return true
		}
	}
	return false
}

// step reads a character. A match can begin after it, too.
func (a *automaton) step(c byte) int32 {
	before := slices.Clone(a.set.dense)
	a.set.clear()
	a.flags = 0
	for _, i := range before {
		if !a.accepts[i].has(c) {
			continue
		}
		a.add(a.Inst[i].Out)
		if c >= 0x80 {
			a.add(i) // the character may have more bytes
		}
	}
	a.add(uint32(a.Start))
	return a.state(position{afterWord: a.words && isWord(c)})
}

// state returns the state of the instructions that are set.
func (a *automaton) state(at position) int32 {
	insts := a.set.dense
	slices.Sort(insts)
	insts = slices.DeleteFunc(insts, a.isTransit)
	key := make([]byte, 0, 4*len(insts)+1)
	for _, i := range insts {
		key = binary.LittleEndian.AppendUint32(key, i)
	}
	switch {
	case at.lineStart:
		key = append(key, 1)
	case at.afterWord:
		key = append(key, 2)
	}
	if s, known := a.index[string(key)]; known {
		return s
	}
	s := int32(len(a.table))
	a.states = append(a.states, state{slices.Clone(insts), at})
	a.index[string(key)] = s
	for range a.sample {
		a.table = append(a.table, unknown)
	}
	return s
}

// isTransit reports whether an instruction is not part of a state, because it only leads to
// others.
func (a *automaton) isTransit(i uint32) bool {
	switch a.Inst[i].Op {
	case syntax.InstAlt, syntax.InstAltMatch, syntax.InstCapture, syntax.InstNop, syntax.InstFail:
		return true
	}
	return false
}

// A sparse is a set of small numbers that is emptied in constant time.
type sparse struct {
	dense []uint32
	place []uint32
}

func newSparse(n int) sparse { return sparse{make([]uint32, 0, n), make([]uint32, n)} }

func (s *sparse) clear() { s.dense = s.dense[:0] }

// add reports whether the number was not in the set.
func (s *sparse) add(i uint32) bool {
	if p := s.place[i]; p < uint32(len(s.dense)) && s.dense[p] == i {
		return false
	}
	s.place[i] = uint32(len(s.dense))
	s.dense = append(s.dense, i)
	return true
}
