package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Memory is how far the log was read to be remembered.
type Memory struct {
	Pointer event.Seq // position up to which the log was extracted
	Hash    string    // hash of the chain at that position
	Size    int64     // bytes of what was said since
	Through event.Seq // position up to which the findings are in the pages of memory
	Waiting event.Seq // position of the newest findings that are not in the pages; zero if all are
	Hidden  event.Seq // position of the newest event that has taken something back
	Aside   []Part    // parts of the log that no model could extract

	Recalled string // memory that the model was told when the session began
}

// Clone returns a copy that does not change when the session goes on.
func (m Memory) Clone() Memory {
	m.Aside = slices.Clone(m.Aside)
	return m
}

// A Part is a range of the log.
type Part struct{ From, To event.Seq }

// envelope is about how many bytes an event has in addition to what was said.
const envelope = 200

// Weight returns about how many bytes an event adds to what is to be extracted: the
// bytes of a message or of a tool's result. It does not decode the event.
func Weight(e event.Event) int64 {
	if e.Kind().Said {
		return int64(max(0, len(e.Bytes)-envelope))
	}
	return 0
}

// Tokens returns about how many tokens were said since the last extraction.
func (m *Memory) Tokens() int { return int(m.Size / 4) }

// count adds the weight of an event.
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

// addExtraction takes in that a part of the log was extracted, or set aside.
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

// addConsolidation takes in that findings were written to the pages of memory, or that
// the session was forgotten.
func (m *Memory) addConsolidation(d event.MemoryConsolidatedData) {
	m.Through = max(m.Through, d.Through)
	if m.Waiting <= m.Through {
		m.Waiting = 0
	}
	if d.Forgotten && d.Through > m.Pointer {
		m.Pointer, m.Hash, m.Size, m.Aside = d.Through, d.Hash, 0, nil
	}
}
