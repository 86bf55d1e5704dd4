package relay

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A parcel is a request or a notification on its way to the engine. A request
// is kept until it is answered.
type parcel struct {
	n      int64  // its place in the order
	id     string // as the client wrote it; empty for a notification
	key    string // of a request of the client's
	method string
	params json.RawMessage // as the client wrote them
	head   []byte          // the body up to where abideAfter has its place
	rest   []byte          // the remaining params
	own    bool            // the relay's own: the client does not know of it
	cancel []byte          // the client's cancellation, if it has sent one
	sends  int             // how many engines it was sent to
}

// newParcel makes a parcel of a client's message; a request gets the key.
func newParcel(m jsonrpc.Message, key string) *parcel {
	p := &parcel{id: string(m.ID), key: key, method: m.Method, params: m.Params}
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

// openObject gives an object a new first member, without copying the others:
// joined, opening and rest are the object.
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

// body returns the parts of the message. A request that attaches and is sent
// again says which events the client has seen; it has other params as well.
func (p *parcel) body(after int64) [][]byte {
	var seen []byte
	if after > 0 {
		seen = append(strconv.AppendInt([]byte(`"abideAfter":`), after, 10), ',')
	}
	return [][]byte{p.head, seen, p.rest, closing}
}

var closing = []byte{'}'}

func (p *parcel) size() int { return len(p.head) + len(p.rest) }

// member returns a member of an object, or nil.
func member(object json.RawMessage, name string) json.RawMessage {
	for key, value := range jsonrpc.Members(object) {
		if string(key) == name {
			return value
		}
	}
	return nil
}

// textMember returns a member that is a string, or the empty one.
func textMember(object json.RawMessage, name string) string {
	return jsonrpc.Text(member(object, name))
}
