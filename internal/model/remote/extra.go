package remote

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/model"
)

// contents are members that every wire builds from the session alone.
var contents = []string{"model", "messages", "input", "system", "instructions", "tools", "stream", "stream_options"}

// withExtra adds the configured members to a body. A member that the body has already is
// an error: which of two the provider takes is not known. It is the configuration that is wrong, and not
// the request.
func (c *Client) withExtra(parts [][]byte, q *Query) ([][]byte, error) {
	if c.ExtraBody == "" {
		return parts, nil
	}
	var extra Members
	if err := json.Unmarshal([]byte(c.ExtraBody), &extra); err != nil {
		return nil, &model.Error{Kind: model.KindNotFound, Message: "extra_body is not a JSON object; correct it in the provider's settings"}
	}
	sent := c.members(q)
	for name := range extra {
		if sent[name] != nil || slices.Contains(contents, name) {
			return nil, &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("extra_body has %q, which is in every request already; remove it there, and use a setting for it", name)}
		}
	}
	last := parts[len(parts)-1]
	end := extra.Append(slices.Clone(last[:len(last)-1]), ",")
	return append(slices.Clone(parts[:len(parts)-1]), append(end, '}')), nil
}

// members returns the members of a request like q, without what it tells the model.
func (c *Client) members(q *Query) (sent Members) {
	bare, like := *q.Request, *q
	bare.Messages, bare.Tools, bare.System, bare.Tail = nil, nil, "", ""
	like.Request = &bare
	_ = json.Unmarshal(slices.Concat(c.wire.Body(&like)...), &sent) // wires write JSON
	return sent
}
