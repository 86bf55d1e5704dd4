// Package local is what the models that ship in the binary share: how they
// read a request, name their calls, cut a reply into pieces and price it.
//
// Everything here is a pure function of its arguments, without a clock, a
// counter or chance. So a request that is made again, by a retry or after a
// crash, gets the same reply, byte for byte.
package local

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// A Turn is where a conversation stands, seen from its newest instruction: the
// newest user message that holds words of a person. What a runtime adds to a
// person's words, and messages of nothing else, are no instructions.
type Turn struct {
	Instruction string    // the person's words; empty if there are none
	Step        int       // which request of the turn this is: 1, 2, …
	Outcomes    []Outcome // of the calls made since, in the order of the calls
	Results     int       // how many results came since
	Answered    bool      // the last reply since made no calls
	Notice      string    // what notifications said since the last reply
}

// An Outcome is a call and what came of it.
type Outcome struct {
	Call   model.Call
	Result *model.Message // nil if there is none
}

// Read finds where a conversation stands.
func Read(messages []*model.Message) Turn {
	start := len(messages) - 1
	for start >= 0 && !isInstruction(messages[start]) {
		start--
	}
	turn := Turn{Step: 1}
	if start >= 0 {
		turn.Instruction = Words(messages[start].Text)
	}
	for _, m := range messages[start+1:] {
		turn.add(m)
	}
	return turn
}

func (t *Turn) add(m *model.Message) {
	switch m.Role {
	case model.Assistant:
		t.Step++
		t.Answered = len(m.Calls) == 0
		t.Notice = ""
		for _, c := range m.Calls {
			t.Outcomes = append(t.Outcomes, Outcome{Call: c})
		}
	case model.ToolRole:
		t.addResult(m)
	case model.User:
		t.Notice = strings.TrimSpace(t.Notice + "\n" + notice(m.Text))
	}
}

// addResult gives a result to the newest call of its id. A result of a call
// from before the instruction belongs to nobody here.
func (t *Turn) addResult(m *model.Message) {
	for i := len(t.Outcomes) - 1; i >= 0; i-- {
		if o := &t.Outcomes[i]; o.Call.ID == m.CallID {
			if o.Result == nil {
				t.Results++
			}
			o.Result = m
			return
		}
	}
}

// Instructions counts the instructions of a conversation.
func Instructions(messages []*model.Message) int {
	n := 0
	for _, m := range messages {
		if isInstruction(m) {
			n++
		}
	}
	return n
}

func isInstruction(m *model.Message) bool {
	return m.Role == model.User && m.CallID == "" && (len(m.Images) > 0 || Words(m.Text) != "")
}

// notification is the element that tells of something that happened outside.
const notification = "system_notification"

// added are the elements that runtimes put before and after a person's words.
var added = []string{
	"current_datetime", "system_reminder", "reminder", notification,
	"agent_instructions", "tagged_files", "ide_selection", "github_references", "tools_changed_notice",
}

// Words returns the words of a person in a user message: what is left without
// the elements that a runtime put before and after them. An element in the
// middle is the person's own.
func Words(text string) string {
	return trimAll(trimAll(text, cutFirst), cutLast)
}

// trimAll applies cut for every added element until none is left. Each cut
// reads only what it removes, so that the whole takes one pass.
func trimAll(text string, cut func(text, name string) (string, bool)) string {
	text = strings.TrimSpace(text)
	for i := 0; i < len(added); i++ {
		if rest, ok := cut(text, added[i]); ok {
			text, i = strings.TrimSpace(rest), -1
		}
	}
	return text
}

func cutFirst(text, name string) (string, bool) {
	inner, ok := strings.CutPrefix(text, "<"+name+">")
	if !ok {
		return text, false
	}
	_, rest, ok := strings.Cut(inner, "</"+name+">")
	return rest, ok
}

func cutLast(text, name string) (string, bool) {
	inner, ok := strings.CutSuffix(text, "</"+name+">")
	if !ok {
		return text, false
	}
	i := strings.LastIndex(inner, "<"+name+">")
	return text[:max(i, 0)], i >= 0
}

// notice returns what the notifications in a message say, a line each.
func notice(text string) string {
	var said []string
	for {
		_, inner, ok := strings.Cut(text, "<"+notification+">")
		if !ok {
			return strings.Join(said, "\n")
		}
		inner, text, ok = strings.Cut(inner, "</"+notification+">")
		if ok {
			said = append(said, strings.TrimSpace(inner))
		}
	}
}

// Identify gives each call of a reply to messages its id. An id is derived from
// the conversation up to the call, so that it is the same when the request is
// made again and another in every other place.
func Identify(messages []*model.Message, calls []model.Call) {
	if len(calls) == 0 {
		return
	}
	digest := Digest(messages)
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%s_%d", digest, i+1)
	}
}

// Digest is a short name for a conversation. What a runtime adds to a person's
// words has no part in it: the time of day would make every run another one.
func Digest(messages []*model.Message) string {
	h := sha256.New()
	for _, m := range messages {
		text := m.Text
		if m.Role == model.User {
			text = Words(text)
		}
		writeField(h, string(m.Role))
		writeField(h, text)
		writeField(h, m.CallID)
		writeField(h, strconv.Itoa(len(m.Calls)))
		for _, c := range m.Calls {
			writeField(h, c.ID)
			writeField(h, c.Name)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// writeField marks where a field ends, so that no two conversations read alike.
func writeField(h hash.Hash, s string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(s)))
	h.Write(size[:])
	io.WriteString(h, s)
}

// maxPieces bounds the pieces of a long text.
const maxPieces = 64

// Pieces cuts a text after its words, as a stream brings it. Joined, the pieces
// are the text.
func Pieces(text string) []string {
	var pieces []string
	atLeast := len(text)/maxPieces + 1
	for start := 0; start < len(text); {
		end := wordEnd(text, min(start+atLeast-1, len(text)))
		pieces = append(pieces, text[start:end])
		start = end
	}
	return pieces
}

// wordEnd returns the first place after from that follows a blank.
func wordEnd(text string, from int) int {
	if i := strings.IndexAny(text[from:], " \n\t"); i >= 0 {
		return from + i + 1
	}
	return len(text)
}

// Estimate prices a reply: a token for four bytes, and at least one each way.
// Pictures are free, because nobody here looks at them.
func Estimate(req *model.Request, reply *model.Reply) model.Usage {
	in := len(req.System) + len(req.Tail)
	if req.Tools != nil {
		for _, t := range req.Tools.List {
			in += len(t.Name) + len(t.Description) + len(t.Parameters)
		}
	}
	for _, m := range req.Messages {
		in += len(m.Text) + callBytes(m.Calls)
	}
	return model.Usage{Input: tokens(in), Output: tokens(len(reply.Text) + callBytes(reply.Calls))}
}

func callBytes(calls []model.Call) int {
	n := 0
	for _, c := range calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

func tokens(bytes int) int64 { return max(1, int64(bytes/4)) }
