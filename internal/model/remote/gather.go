package remote

import (
	"encoding/json"
	"slices"

	"github.com/abide-run/abide/internal/model/plainjson"
)

// A Gather puts members together that arrive in pieces of a stream: texts and lists grow,
// objects are merged, and so are elements of lists with the same index and type. What
// arrives in one piece stays byte for byte.
type Gather struct {
	values map[string]*value
	size   int
}

// Add adds the members of the next piece. After too much it adds nothing.
func (g *Gather) Add(next Members) {
	for name, raw := range next {
		if g.size += len(raw); g.size > stateLimit || string(raw) == "null" {
			continue
		}
		if g.values == nil {
			g.values = make(map[string]*value)
		}
		addMember(g.values, name, &value{raw: slices.Clone(raw)})
	}
}

// Members returns what has arrived; nil if it is nothing, or too much to be stored.
func (g *Gather) Members() Members {
	if len(g.values) == 0 || g.size > stateLimit {
		return nil
	}
	m := make(Members, len(g.values))
	for name, v := range g.values {
		m[name] = v.append(nil)
	}
	return m
}

// whole are members whose value every piece repeats. Other texts arrive in pieces.
var whole = []string{"type", "format", "id", "index", "role", "name", "object"}

func addMember(to map[string]*value, name string, next *value) {
	if before := to[name]; before != nil && !slices.Contains(whole, name) {
		before.add(next)
		return
	}
	to[name] = next
}

// A value is a JSON value that may grow. It is raw until something is added to it.
type value struct {
	raw    json.RawMessage
	text   []byte // a text without the quote at its end
	object map[string]*value
	list   []*value
}

// open makes it possible to add to the value. It reports false if the value cannot grow.
func (v *value) open() bool {
	raw := v.raw
	if raw == nil {
		return true
	}
	switch raw[0] {
	case '"':
		v.text = raw[:len(raw)-1]
	case '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return false
		}
		v.object = make(map[string]*value, len(members))
		for name, member := range members {
			v.object[name] = &value{raw: member}
		}
	case '[':
		var elements []json.RawMessage
		if json.Unmarshal(raw, &elements) != nil {
			return false
		}
		v.list = make([]*value, len(elements))
		for i, element := range elements {
			v.list[i] = &value{raw: element}
		}
	default:
		return false
	}
	v.raw = nil
	return true
}

// add adds the next piece of the value. A piece of another kind replaces it.
func (v *value) add(next *value) {
	if !v.open() || !next.open() {
		*v = *next
		return
	}
	switch {
	case v.text != nil && next.text != nil:
		v.text = append(v.text, next.text[1:]...)
	case v.object != nil && next.object != nil:
		for name, member := range next.object {
			addMember(v.object, name, member)
		}
	case v.list != nil && next.list != nil:
		for _, element := range next.list {
			if n := len(v.list); n > 0 && v.list[n-1].continues(element) {
				v.list[n-1].add(element)
			} else {
				v.list = append(v.list, element)
			}
		}
	default:
		*v = *next
	}
}

// continues reports whether an element of a list is the next piece of this one: both say
// the same index and type.
func (v *value) continues(next *value) bool {
	if !v.open() || !next.open() || v.object == nil || next.object == nil || v.object["index"] == nil {
		return false
	}
	same := func(name string) bool {
		a, b := v.object[name], next.object[name]
		return (a == nil) == (b == nil) && (a == nil || string(a.append(nil)) == string(b.append(nil)))
	}
	return same("index") && same("type")
}

// append appends the value as JSON.
func (v *value) append(b []byte) []byte {
	switch {
	case v.raw != nil:
		return append(b, v.raw...)
	case v.text != nil:
		return append(append(b, v.text...), '"')
	case v.object != nil:
		names := make([]string, 0, len(v.object))
		for name := range v.object {
			names = append(names, name)
		}
		slices.Sort(names)
		b = append(b, '{')
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.object[name].append(append(plainjson.AppendString(b, name), ':'))
		}
		return append(b, '}')
	}
	b = append(b, '[')
	for i, element := range v.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = element.append(b)
	}
	return append(b, ']')
}
