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

	"github.com/abide-run/abide/internal/approval/disk"
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
	maxName   = 1 << 10  // maximum bytes of a name or a version
	maxEnv    = 4 << 20  // maximum bytes of an environment; no system takes a larger one
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
		f := d.Fields().ByNumber(number)
		switch {
		case kind == protowire.BytesType:
			part, _ := protowire.ConsumeBytes(data)
			*left -= partsOf(f, len(part))
			if *left >= 0 && f != nil && f.Message() != nil && !countParts(f.Message(), part, left) {
				return false
			}
		case f != nil && f.IsList():
			*left--
		}
		if *left < 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

// partsOf returns how many parts a field of a length stands for, at most: one, or one for each
// byte if it is a list of numbers.
func partsOf(f protoreflect.FieldDescriptor, length int) int {
	if f != nil && f.IsPacked() {
		return length
	}
	return 1
}

// brief returns the beginning of a text of the workspace that people and models read.
func brief(text string) string { return beginningOf(text, maxReason) }

// briefPath is brief for a path, which is whole if it can be that of a file.
func briefPath(path string) string { return beginningOf(path, maxPath) }

func beginningOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf(" … (%d bytes more)", len(text)-most)
}

// checkDescription refuses what a workspace says of itself if it can be nothing of the kind.
// The identity is stored with sessions and sent as a header of requests.
func checkDescription(d workspace.Description) error {
	isSign := func(c rune) bool { return c > ' ' && c <= '~' }
	if strings.ContainsFunc(d.Identity, func(c rune) bool { return !isSign(c) }) {
		return otherProtocol("its identity has characters that none has")
	}
	size := 0
	for _, variable := range d.Env {
		size += len(variable)
	}
	if len(d.Identity) > maxName || len(d.Version) > maxName || len(d.Dir) > maxPath || size > maxEnv {
		return errMoreThanAsked
	}
	return nil
}

// checkLooked refuses an answer of which a part is too long. The remotes of a repository are
// a list.
func checkLooked(a disk.Answer, q disk.Question) error {
	most := maxPath
	if q.Kind == disk.Remotes {
		most = workspace.MaxText
	}
	if len(a.Text) > most || len(a.More) > most {
		return errMoreThanAsked
	}
	return nil
}

// checkShown refuses a file or a folder of which more was sent than was asked for, or a type
// that no image has: it becomes a part of what a model is sent.
func checkShown(s workspace.Shown, r workspace.ShowRequest) error {
	_, isImage := strings.CutPrefix(s.Image, "image/")
	if len(s.Names) > max(r.MaxNames, 0) || int64(len(s.Content)) > mostShown(r) || s.Image != "" && !isImage || len(s.Image) > maxName {
		return errMoreThanAsked
	}
	if slices.ContainsFunc(s.Names, func(name string) bool { return len(name) > maxPath }) {
		return errMoreThanAsked
	}
	return nil
}

// checkSurvey refuses protected files whose names are too long: people are asked about them.
func checkSurvey(s workspace.Survey) error {
	tooLong := func(path string) bool { return len(path) > maxPath }
	isLong := func(t workspace.SurveyTarget) bool { return tooLong(t.Path) || tooLong(t.Folder) }
	if slices.ContainsFunc(s.Folders, tooLong) || slices.ContainsFunc(s.Targets, isLong) {
		return errMoreThanAsked
	}
	return nil
}

// checkProcess refuses a process that cannot be one: its name is always that of its owner and
// its key, and goes into the log.
func checkProcess(i process.Info) (process.Info, error) {
	tooLong := len(i.Owner) > maxPath || len(i.Key) > maxPath || len(i.Dir) > maxPath || len(i.Files.Dir) > maxPath || len(i.Files.Output) > maxPath
	if i.Exit != nil {
		tooLong = tooLong || len(i.Exit.Signal) > maxName
	}
	if tooLong || i.ID != process.IDOf(i.Owner, i.Key) || i.State != process.Stopping && i.State != process.Running && i.State != process.Starting && !i.State.Ended() {
		return process.Info{}, errMoreThanAsked
	}
	return i, nil
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
