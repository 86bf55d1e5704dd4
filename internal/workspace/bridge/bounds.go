package bridge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// A workspace may run whatever it wants, and the engine has the log and the keys. So an
// answer is checked before anybody uses it: it must not fill the memory of the engine, the log
// or the request to a model.

// errMoreThanAsked means that a workspace does not keep to the limits of a request.
var errMoreThanAsked = &answer{text: "the workspace has answered with more than it was asked for"}

// The limits of every answer.
const (
	maxParts  = 500_000  // maximum number of messages, texts and names in an answer; honest answers have far fewer
	fewParts  = 64 << 10 // size of an answer that cannot have too many
	maxReason = 4 << 10  // maximum bytes of the text of an error
	maxPath   = 64 << 10 // maximum bytes of a path
)

// answerCodec decodes answers. A part of a message can take two bytes on the wire and hundreds
// in memory, so the parts are counted first.
type answerCodec struct{}

func (answerCodec) Name() string { return "proto" }

func (answerCodec) Marshal(m any) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }

func (answerCodec) MarshalAppend(to []byte, m any) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(to, m.(proto.Message))
}

func (answerCodec) Unmarshal(data []byte, m any) error { return decode(data, m.(proto.Message)) }

// decode decodes an answer that has not too many parts.
func decode(data []byte, m proto.Message) error {
	left := maxParts
	if len(data) > fewParts && !countParts(m.ProtoReflect().Descriptor(), data, &left) {
		return errMoreThanAsked
	}
	return proto.Unmarshal(data, m)
}

// countParts subtracts the number of parts of a message, and reports whether something is left.
// What is no message is not counted to its end: decoding it fails.
func countParts(d protoreflect.MessageDescriptor, data []byte, left *int) bool {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return true
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return true
		}
		if kind == protowire.BytesType {
			if *left--; *left < 0 {
				return false
			}
			part, _ := protowire.ConsumeBytes(data)
			if f := d.Fields().ByNumber(number); f != nil && f.Message() != nil && !countParts(f.Message(), part, left) {
				return false
			}
		}
		data = data[n:]
	}
	return true
}

// brief returns the beginning of a text of the workspace that people and models read.
func brief(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + fmt.Sprintf(" … (%d bytes more)", len(text)-maxReason)
}

// checkJudgement refuses a judgement of which a part is too long.
func checkJudgement(j workspace.Judgement, q workspace.Question) error {
	if int64(len(j.Content)) > max(q.Most, 0) || len(j.Path) > maxPath || len(j.Rule) > maxPath || len(j.Protected) > maxPath {
		return errMoreThanAsked
	}
	return nil
}

// checkFound refuses results about roots that were not searched.
func checkFound(f workspace.Found, roots []workspace.SearchRoot) error {
	given := func(name string) bool {
		return slices.ContainsFunc(roots, func(r workspace.SearchRoot) bool { return r.Given == name })
	}
	if len(f.Missing) > len(roots) || len(f.Folders) > len(roots) || slices.ContainsFunc(f.Missing, func(name string) bool { return !given(name) }) {
		return errMoreThanAsked
	}
	return nil
}

// checkCollected refuses a file of which too much was sent.
func checkCollected(c workspace.Collected, s workspace.Selection) error {
	if len(c.Content) > max(s.Most, 0) || len(c.Path) > maxPath {
		return errMoreThanAsked
	}
	return nil
}

// usualChunk is the maximum size of output that is returned to whoever names no maximum.
const usualChunk = 64 << 10

// checkChunk refuses output that is not in the range that was asked for: whoever reads a range
// in parts would never have read enough.
func checkChunk(c process.Chunk, r process.ReadRequest) error {
	until := cmp.Or(r.Until, math.MaxInt64)
	if c.Next < r.Offset || c.Next > until || int64(len(c.Data)) > c.Next-r.Offset || len(c.Data) > cmp.Or(r.Limit, usualChunk) {
		return errMoreThanAsked
	}
	return nil
}

// maxView is the maximum size of output as a model sees it. Bytes that are not UTF-8 take more
// room as text.
const maxView = 4 * (process.MaxHeadBytes + process.MaxTailBytes)
