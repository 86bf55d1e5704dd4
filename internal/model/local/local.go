// Package local contains what the models that are part of the program share: reading a
// request, naming calls, cutting a reply into pieces and estimating its usage.
//
// All functions are pure: they use no clock, no counter and no random numbers. So a
// request that is repeated, by a retry or after a crash, gets the same reply, byte for
// byte.
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

// A Turn is the part of a conversation from its newest instruction on. An instruction
// is a user message that contains words of a person; text that the runtime adds to
// messages does not count.
type Turn struct {
	Instruction string    // words of the person; empty if there are none
	Step        int       // number of this request in the turn: 1, 2, …
	Outcomes    []Outcome // calls since the instruction, in order, with their results
	Results     int       // number of results since the instruction
	Answered    bool      // true if the last reply since the instruction made no calls
	Notice      string    // text of the notifications since the last reply
}

// An Outcome is a call and its result.
type Outcome struct {
	Call   model.Call
	Result *model.Message // nil if there is none
}

// Read returns the current turn of a conversation.
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

// addResult sets the result of the newest call with its id. Results of calls from before
// the instruction are ignored.
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

// Instructions returns the number of instructions in a conversation.
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

// notification is the name of the element that contains a system notification.
const notification = "system_notification"

// added are the names of the elements that runtimes add before and after the words of a
// person.
var added = []string{
	"current_datetime", "system_reminder", "reminder", notification,
	"agent_instructions", "tagged_files", "ide_selection", "github_references", "tools_changed_notice",
}

// Words returns the words of a person in a user message: the text without the elements
// that a runtime added before and after it. Elements in the middle belong to the person.
func Words(text string) string {
	return trimAll(trimAll(text, cutFirst), cutLast)
}

// trimAll applies cut for every added element until none is left. Each cut reads only
// the part that it removes, so the total time is linear.
func trimAll(text string, cut func(text, name string) (string, bool)) string {
	text = strings.TrimSpace(text)
	for i := 0; i < len(added); i++ {
		if rest, ok := cut(text, added[i]); ok {
			text, i = strings.TrimSpace(rest), -1
		}
	}
	return text
}

// cutFirst removes an element at the start of a text.
func cutFirst(text, name string) (string, bool) {
	inner, ok := strings.CutPrefix(text, "<"+name+">")
	if !ok {
		return text, false
	}
	_, rest, ok := strings.Cut(inner, "</"+name+">")
	return rest, ok
}

// cutLast removes an element at the end of a text.
func cutLast(text, name string) (string, bool) {
	inner, ok := strings.CutSuffix(text, "</"+name+">")
	if !ok {
		return text, false
	}
	i := strings.LastIndex(inner, "<"+name+">")
	return text[:max(i, 0)], i >= 0
}

// notice returns the texts of the notifications in a message, one per line.
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

// Identify sets the ids of the calls in a reply to messages. An id is derived from the
// conversation before the call, so that it is the same when the request is repeated, and
// different everywhere else.
func Identify(messages []*model.Message, calls []model.Call) {
	if len(calls) == 0 {
		return
	}
	digest := Digest(messages)
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%s_%d", digest, i+1)
	}
}

// Digest returns a short hash of a conversation. It ignores the text that a runtime adds
// to the words of a person, because the time of day would change it at every run.
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

// writeField writes a field with its length, so that no two conversations have the same
// bytes.
func writeField(h hash.Hash, s string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(s)))
	h.Write(size[:])
	io.WriteString(h, s)
}

// maxPieces is the largest number of pieces that a text is cut into.
const maxPieces = 64

// Pieces cuts a text after words, for streaming it. The pieces joined are the text.
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

// wordEnd returns the end of the word at from, including the white space after it.
func wordEnd(text string, from int) int {
	if i := strings.IndexAny(text[from:], " \n\t"); i >= 0 {
		return from + i + 1
	}
	return len(text)
}

// Estimate returns the usage of a request and its reply: one token for four bytes, and at
// least one for each. Images are not counted, because these models do not look at them.
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
