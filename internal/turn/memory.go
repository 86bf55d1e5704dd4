package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Memory is how far a session was remembered.
type Memory struct {
	Pointer event.Seq // up to here the log was extracted
	Hash    string    // of the chain after it
	Size    int64     // bytes of what was said since
	Through event.Seq // up to here what was extracted is in the pages of memory
	Waiting event.Seq // the newest event with findings that are not; zero if there are none
	Hidden  event.Seq // the newest event that has taken something back
	Aside   []Part    // what nobody could read

	Recalled string // what the session was told of memory when it began
}

// Clone returns a copy that does not change when the session goes on.
func (m Memory) Clone() Memory {
	m.Aside = slices.Clone(m.Aside)
	return m
}

// A Part is a range of the log.
type Part struct{ From, To event.Seq }

// envelope is about what an event has around what was said.
const envelope = 200

// Weight is how much an event adds to what is to be extracted: the bytes of what
// somebody said or a tool gave. It is known without reading the event.
func Weight(e event.Event) int64 {
	if e.Kind().Said {
		return int64(max(0, len(e.Bytes)-envelope))
	}
	return 0
}

// Tokens is about how many tokens were said since the last extraction.
func (m *Memory) Tokens() int { return int(m.Size / 4) }

// count takes in what can be told from the kind of an event and its size.
func (m *Memory) count(e event.Event) { m.Size += Weight(e) }

func (m *Memory) fold(e event.Event, body event.Payload) {
	switch d := body.(type) {
	case event.MemoryExtractedData:
		m.addExtraction(e.Seq, d)
	case event.MemoryConsolidatedData:
		m.addConsolidation(d)
	case event.MemoryRecalledData:
		m.Recalled = d.Text
	}
}

func (m *Memory) addExtraction(at event.Seq, d event.MemoryExtractedData) {
	part := Part{d.From, d.To}
	m.Aside = slices.DeleteFunc(slices.Clone(m.Aside), func(p Part) bool { return p == part })
	if d.To > m.Pointer {
		m.Pointer, m.Hash = d.To, d.Hash
		m.Size -= d.Bytes
	}
	if d.Quarantined {
		m.Aside = append(m.Aside, part)
	}
	if d.Found > 0 {
		m.Waiting = at
	}
}

func (m *Memory) addConsolidation(d event.MemoryConsolidatedData) {
	m.Through = max(m.Through, d.Through)
	if m.Waiting <= m.Through {
		m.Waiting = 0
	}
	if d.Forgotten && d.Through > m.Pointer {
		m.Pointer, m.Hash, m.Size, m.Aside = d.Through, d.Hash, 0, nil
	}
}
