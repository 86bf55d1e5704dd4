package relay

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A queuedMessage is a request or a notification on its way to the engine. A request
// is kept until it is answered.
type queuedMessage struct {
	n      int64  // number, by which messages are ordered
	id     string // id as the client wrote it; empty for a notification
	key    string // key of a request of the client
	method string
	params json.RawMessage // params as the client wrote them
	head   []byte          // message up to the place of abideAfter
	rest   []byte          // rest of the params
	own    bool            // true for a request of the relay, which the client does not know
	cancel []byte          // cancellation by the client; nil if there is none
	sends  int             // number of engines that it was sent to
}

// newQueuedMessage makes a queuedMessage of a client's message; a request gets the key.
func newQueuedMessage(m jsonrpc.Message, key string) *queuedMessage {
	p := &queuedMessage{id: string(m.ID), key: key, method: m.Method, params: m.Params}
	if m.ID == nil {
		p.head, p.rest = appendHead(nil, nil, m.Method), orEmpty(m.Params)
		return p
	}
	opening, rest := openObject(orEmpty(m.Params), "abideKey", key)
	p.head, p.rest = append(appendHead(nil, m.ID, m.Method), opening...), rest
	return p
}

// appendHead appends a message up to its params.
func appendHead(b, id []byte, method string) []byte {
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id != nil {
		b = append(append(append(b, `"id":`...), id...), ',')
	}
	b = append(append(b, `"method":`...), quote(method)...)
	return append(b, `,"params":`...)
}

// openObject adds a first member to an object without copying the other members: the
// new object is opening followed by rest.
func openObject(object []byte, name, value string) (opening, rest []byte) {
	opening = append(append(opening, '{'), quote(name)...)
	opening = append(append(opening, ':'), quote(value)...)
	rest = bytes.TrimLeft(object[1:], " \t\r\n")
	if rest[0] != '}' {
		opening = append(opening, ',')
	}
	return opening, rest
}

func orEmpty(params json.RawMessage) json.RawMessage {
	if params == nil {
		return json.RawMessage(`{}`)
	}
	return params
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string cannot fail
	return b
}

// body returns the parts of the message. If after is not zero, the message has the
// position of the last event that the client has seen; such a request always has
// other params as well.
func (p *queuedMessage) body(after int64) [][]byte {
	var seen []byte
	if after > 0 {
		seen = append(strconv.AppendInt([]byte(`"abideAfter":`), after, 10), ',')
	}
	return [][]byte{p.head, seen, p.rest, closing}
}

var closing = []byte{'}'}

func (p *queuedMessage) size() int { return len(p.head) + len(p.rest) }

// member returns a member of an object, or nil.
func member(object json.RawMessage, name string) json.RawMessage {
	for key, value := range jsonrpc.Members(object) {
		if string(key) == name {
			return value
		}
	}
	return nil
}

// textMember returns a member that is a string; empty if there is none.
func textMember(object json.RawMessage, name string) string {
	return jsonrpc.Text(member(object, name))
}
