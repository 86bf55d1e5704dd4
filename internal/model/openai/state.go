package openai

import (
	"cmp"
	"slices"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote"
)

const (
	// usualThoughts is the member of a message in which most providers send reasoning.
	usualThoughts = "reasoning_content"
	// contentThoughts is the member in which it comes as parts of a list.
	contentThoughts = "content"
	// reasoningDetails is the member in which OpenRouter repeats the reasoning with all that
	// belongs to it.
	reasoningDetails = "reasoning_details"
)

// keepState puts what the provider wants back into the reply, where it is recorded with
// the answer.
func (b *builder) keepState(r *model.Reply) {
	as := b.query.As()
	s := new(remote.State)
	if as.Echo == profile.EchoAll {
		s.Message = b.own.Members()
		answered := func(c *call) bool { return b.IsAnswer(c.Call) }
		for i, c := range slices.DeleteFunc(slices.Clone(b.calls), answered) {
			if own := c.own.Members(); own != nil {
				if s.Calls == nil {
					s.Calls = make(map[int]remote.Members)
				}
				s.Calls[i] = own
			}
		}
	}
	if s.Thoughts = r.Reasoning != nil && wantsThoughts(as.Thoughts, r, s); s.Thoughts && b.thoughtsIn != usualThoughts {
		s.Member = b.thoughtsIn
	}
	kept := remote.KeepState(b.query, s)
	if kept == "" {
		return
	}
	if r.Reasoning == nil {
		r.Reasoning = new(model.Reasoning)
	}
	r.Reasoning.Opaque = kept
}

// wantsThoughts reports whether the provider wants the reasoning of a reply back. The
// servers that take it as it came use it between calls alone.
func wantsThoughts(how profile.Thoughts, r *model.Reply, s *remote.State) bool {
	_, repeated := s.Message[reasoningDetails]
	switch how {
	case profile.ThoughtsAsTheyCame:
		return len(r.Calls) > 0 && !repeated
	case profile.ThoughtsInContent:
		return true
	}
	return false
}

// state returns what the provider of the request sent with an answer, or nil if another
// one answered.
func (e encoder) state(m *model.Message) *remote.State {
	if m.Reasoning == nil || e.q.Forget {
		return nil
	}
	return remote.ReadState(m.Reasoning.Opaque, e.q)
}

// inContent reports whether the reasoning of an answer stands in its content.
func (e encoder) inContent(s *remote.State) bool {
	return s != nil && s.Thoughts && (s.Member == contentThoughts || e.q.As().Thoughts == profile.ThoughtsInContent)
}

// appendState appends the provider's own members of an answer.
func (e encoder) appendState(b []byte, m *model.Message, s *remote.State) []byte {
	as := e.q.As()
	switch {
	case s != nil && s.Thoughts && !e.inContent(s):
		member := cmp.Or(s.Member, usualThoughts)
		b = append(plainjson.AppendString(append(b, ','), member), ':')
		b = plainjson.AppendString(b, m.Reasoning.Text)
	case as.NeedsThoughts != "" && len(m.Calls) > 0:
		b = append(b, `,"`+as.NeedsThoughts+`":""`...)
	}
	if s != nil {
		b = s.Message.Append(b, ",")
	}
	return b
}

// appendOwn appends the provider's own members of the call at place i. A call that it has
// not signed is marked as such, because it would be refused.
func (e encoder) appendOwn(b []byte, i int, s *remote.State) []byte {
	own := s.Call(i)
	if as := e.q.As(); i == 0 && len(own) == 0 && as.Unsigned != "" {
		return append(append(b, ','), as.Unsigned...)
	}
	return own.Append(b, ",")
}
