package remote

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
)

// An outline is the order of the parts of a reply, and the content of the parts that
// only the provider understands. It is stored with the message, so that the provider
// gets the message back as it was. Text and calls are in the message itself; the outline
// only has their lengths and order.
//
// Its JSON begins with the host and the model, because only they can use it.
type outline struct {
	Parts []Part `json:"parts"`
}

// A Part is a part of a reply. Exactly one of Raw, Text and Call is set.
type Part struct {
	Raw  json.RawMessage `json:"raw"`  // JSON that the provider gets back byte for byte
	Text int             `json:"text"` // number of bytes of the message's text
	Call bool            `json:"call"` // true if the part is the next call of the message

	Gap   int    `json:"gap"`   // number of bytes before the text that we inserted
	ID    string `json:"id"`    // the provider's id of the part
	Phase string `json:"phase"` // the provider's phase of a text
	// Own is the members of a text or a call that only the provider understands.
	Own Members `json:"own"`

	text  bool // true if the part is a text, even if it is still empty
	apart bool // true if a blank line separates the text from the one before

	hidden bool // true if the part is a call that the reply does not have
}

// Cut splits the text of a message after this part, and returns the part's own text
// and the rest.
func (p *Part) Cut(text string) (own, rest string) {
	return text[p.Gap : p.Gap+p.Text], text[p.Gap+p.Text:]
}

type partKind int

const (
	partRaw partKind = iota
	partText
	partCall
)

func (p *Part) kind() partKind {
	switch {
	case p.Text > 0, p.text:
		return partText
	case p.Call:
		return partCall
	}
	return partRaw
}

// Add appends a part and returns it. A part that stays empty is ignored.
func (d *Draft) Add(p Part) *Part {
	d.parts = append(d.parts, &p)
	return &p
}

// empty reports whether a part has no content: it was announced and never arrived, its
// JSON is not an object, or the reply does not have it.
func (p *Part) empty() bool {
	if p.hidden {
		return true
	}
	switch p.kind() {
	case partRaw:
		return !bytes.HasPrefix(p.Raw, []byte("{")) // only objects are parts
	case partText:
		return p.Text == 0
	}
	return false
}

// Outline returns the outline of the reply as JSON, or "" if text and calls are
// everything that has to be stored.
func (d *Draft) Outline() string {
	kept := false
	for _, p := range d.parts {
		kept = kept || !d.dropped && !p.empty() && (p.kind() == partRaw || p.Phase != "" || len(p.Own) > 0)
	}
	if !kept {
		return ""
	}
	b := append(origin(d.query.Host, d.query.Model), `,"parts":[`...)
	first := true
	for _, p := range d.parts {
		if p.empty() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = p.append(b)
	}
	if len(b) > stateLimit {
		return "" // the message is then sent back by its text and calls alone
	}
	return string(append(b, "]}"...))
}

// stateLimit is the most that is stored of what only the provider understands, in bytes.
// It is in every later request of the session.
const stateLimit = 4 << 20

// append appends the part as JSON. It does not use encoding/json, which would change
// the bytes of Raw.
func (p *Part) append(b []byte) []byte {
	switch p.kind() {
	case partRaw:
		b = append(append(b, `{"raw":`...), p.Raw...)
	case partText:
		b = strconv.AppendInt(append(b, `{"text":`...), int64(p.Text), 10)
	case partCall:
		b = append(b, `{"call":true`...)
	}
	if p.Gap > 0 {
		b = strconv.AppendInt(append(b, `,"gap":`...), int64(p.Gap), 10)
	}
	if p.ID != "" {
		b = plainjson.AppendString(append(b, `,"id":`...), p.ID)
	}
	if p.Phase != "" {
		b = plainjson.AppendString(append(b, `,"phase":`...), p.Phase)
	}
	if len(p.Own) > 0 {
		b = append(p.Own.Append(append(b, `,"own":{`...), ""), '}')
	}
	return append(b, '}')
}

// Parts returns the parts of a stored outline, for sending the message to host and the
// model name. It returns nil if the reply did not come from there, because other
// providers cannot use the parts, or if the message was changed since.
func Parts(kept, host, name string, m *model.Message) []Part {
	var o outline
	if !cameFrom(kept, host, name) || json.Unmarshal([]byte(kept), &o) != nil || !o.fits(m) {
		return nil
	}
	return o.Parts
}

// cameFrom reports whether a stored outline is that of a reply of this host and model.
func cameFrom(kept, host, name string) bool {
	return strings.HasPrefix(kept, string(append(origin(host, name), `,"parts":`...)))
}

// origin returns the beginning of the outlines of a host and model.
func origin(host, name string) []byte {
	b := plainjson.AppendString([]byte(`{"host":`), host)
	return plainjson.AppendString(append(b, `,"model":`...), name)
}

// fits reports whether the parts match the text and the calls of the message.
func (o *outline) fits(m *model.Message) bool {
	text, calls := 0, 0
	for i := range o.Parts {
		p := &o.Parts[i]
		if p.Text < 0 || p.Gap < 0 || p.Text > len(m.Text) || p.Gap > len(m.Text) || p.empty() {
			return false
		}
		text += p.Text + p.Gap
		if p.Call {
			calls++
		}
	}
	return text == len(m.Text) && calls == len(m.Calls)
}
