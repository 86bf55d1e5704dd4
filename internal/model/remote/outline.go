package remote

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
)

// An outline is the order of the parts of a reply, with those in it that only
// the provider understands. It is kept with the message, so that the message
// can be given back as it came: text and calls are in the message already, and
// are only counted here.
//
// As JSON it begins with host and model: only they can use it.
type outline struct {
	Parts []Part `json:"parts"`
}

// A Part is a part of a reply: one of Raw, Text and Call is set.
type Part struct {
	Raw  json.RawMessage `json:"raw"`  // what is given back byte for byte
	Text int             `json:"text"` // so many bytes of the message's text
	Call bool            `json:"call"` // the message's next call

	Gap   int    `json:"gap"`   // bytes before the text that are not the model's
	ID    string `json:"id"`    // the provider's name for the part
	Phase string `json:"phase"` // what it says about a text

	text  bool // it is one, though empty so far
	apart bool // from the text before
}

// Cut takes the part's text from the beginning of a message's text, and returns
// both.
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

// Add adds a part at the end. Until it is filled, it counts for nothing.
func (d *Draft) Add(p Part) *Part {
	d.parts = append(d.parts, &p)
	return &p
}

// empty reports whether a part was announced and never came, or is none.
func (p *Part) empty() bool {
	switch p.kind() {
	case partRaw:
		return !bytes.HasPrefix(p.Raw, []byte("{")) // only objects are parts
	case partText:
		return p.Text == 0
	}
	return false
}

// Outline returns what has to be kept of the reply beside its text and calls,
// or "" if there is nothing.
func (d *Draft) Outline() string {
	kept := false
	for _, p := range d.parts {
		kept = kept || !d.dropped && !p.empty() && (p.kind() == partRaw || p.Phase != "")
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
	return string(append(b, "]}"...))
}

// append writes a part. Encoding it with encoding/json would change what has to
// stay as it is.
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
	return append(b, '}')
}

// Parts reads what Outline returned, for a message that goes to host and name.
// It returns nil if the message was not made there, or was changed since: what
// only a provider understands is of no use to others.
func Parts(kept, host, name string, m *model.Message) []Part {
	var o outline
	if !CameFrom(kept, host, name) || json.Unmarshal([]byte(kept), &o) != nil || !o.fits(m) {
		return nil
	}
	return o.Parts
}

// CameFrom reports whether Outline returned this for a reply of host and name.
func CameFrom(kept, host, name string) bool {
	return strings.HasPrefix(kept, string(origin(host, name)))
}

// origin is how an outline begins.
func origin(host, name string) []byte {
	b := plainjson.AppendString([]byte(`{"host":`), host)
	return plainjson.AppendString(append(b, `,"model":`...), name)
}

// fits reports whether the parts are those of the message.
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
