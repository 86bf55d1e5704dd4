package audit

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/audit/stored"
)

// order decides I1 from the events: every one is whole, follows the one before it,
// and every input that was accepted is delivered once.
type order struct {
	parent  string // id of the last event that clients are shown
	unsure  bool   // true if that is not known
	listed  int64  // number of events that clients are shown
	uncount bool   // true if that is not known
	recent  ring
	keys    uses // kinds and idempotency keys of requests
	inputs  uses // ids of inputs that were accepted
	epochs  int
}

func newOrder() *order {
	return &order{keys: newUses(), inputs: newUses()}
}

// A ring remembers the last ids. An id that is used again much later is found by
// the parent that its event names.
type ring struct {
	ids  []string
	next int
	has  map[string]bool
}

// remembered is how many ids a ring holds.
const remembered = 4096

// add remembers an id, and reports whether it was remembered before.
func (r *ring) add(id string) bool {
	if r.has == nil {
		r.has = make(map[string]bool)
	}
	if r.has[id] {
		return true
	}
	r.has[id] = true
	if len(r.ids) < remembered {
		r.ids = append(r.ids, id)
		return false
	}
	delete(r.has, r.ids[r.next])
	r.ids[r.next] = id
	r.next = (r.next + 1) % remembered
	return false
}

// lose tells that events are missing before the next one.
func (o *order) lose() { o.unsure, o.uncount = true, true }

// envelope looks at an event before its body is known.
func (o *order) envelope(s *scene, e *stored.Event) {
	k, known := kinds()[e.Type]
	switch {
	case k.sent:
		s.broken("envelope.never-stored", e.Seq, "event %d is %s, which is only sent and never stored", e.Seq, e.Type)
	case !known:
		s.unknown("envelope.unknown-kind", e.Seq, "event %d is of the kind %s, which this abide does not know", e.Seq, e.Type)
	case e.Ephemeral != k.ephemeral:
		s.broken("envelope.ephemeral", e.Seq, "event %d (%s) is marked ephemeral: %v; the kind says %v", e.Seq, e.Type, e.Ephemeral, k.ephemeral)
	}
	if !isUUID(e.ID) {
		s.broken("envelope.id", e.Seq, "event %d (%s) has the id %q, which is no UUID of version 7", e.Seq, e.Type, e.ID)
	} else if o.recent.add(e.ID) {
		s.broken("envelope.id-twice", e.Seq, "event %d (%s) has the id %s of an earlier event", e.Seq, e.Type, e.ID)
	}
	if e.Agent != "" {
		s.broken("envelope.agent", e.Seq, "event %d (%s) is stored with agentId %q, which only shown events have", e.Seq, e.Type, e.Agent)
	}
	if e.Parent != o.parent && !o.unsure {
		s.broken("envelope.parent", e.Seq, "event %d (%s) names %q as the event before it; that is %q", e.Seq, e.Type, e.Parent, o.parent)
	}
	o.clock(s, e)
	switch {
	case !known || k.sent:
		o.lose()
	case k.listed():
		o.parent, o.unsure = e.ID, false
		o.listed++
	}
}

// earliest is before the first log was ever written.
var earliest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// clock looks for times that no clock of ours can have shown. Clocks are set back,
// so the order of times says nothing.
func (o *order) clock(s *scene, e *stored.Event) {
	if e.Time.Before(earliest) || e.Time.After(s.options.Now.Add(24*time.Hour)) {
		s.broken("envelope.time", e.Seq, "event %d (%s) has the time %s, and it is %s now", e.Seq, e.Type, e.Time.Format(time.RFC3339), s.options.Now.UTC().Format(time.RFC3339))
	}
}

// isUUID reports whether an id is a UUID of version 7.
func isUUID(id string) bool {
	if len(id) != 36 || id[14] != '7' {
		return false
	}
	for i, c := range []byte(id) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// fold looks at the order of what is said.
func (o *order) fold(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "session.start":
		o.start(s, e, b)
	case "session.forked":
		o.fork(s, e, b)
	case "session.resume":
		if before := o.listed - 1; b.Count != before && !o.uncount {
			s.broken("resume.count", e.Seq, "event %d says that clients are shown %d events before it; they are shown %d", e.Seq, b.Count, before)
		}
	case "input.accepted":
		o.accepted(s, e, b)
	case "user.message":
		o.delivered(s, e, b)
	case "queue.changed":
		for _, id := range b.Order {
			if _, waits := s.queue[id]; !waits {
				s.broken("queue.unknown", e.Seq, "event %d keeps the input %s in the queue, which does not wait there", e.Seq, id)
			}
		}
	case "session.idle":
		if s.last == e.Type {
			s.broken("idle.again", e.Seq, "event %d says that nothing is left to do, as the event before it", e.Seq)
		}
		if len(s.queue) > 0 {
			s.broken("idle.queue", e.Seq, "event %d says that nothing is left to do, and %d accepted inputs wait", e.Seq, len(s.queue))
		}
	case "history.hidden":
		if b.From < 1 || b.From > b.To || b.To >= e.Seq {
			s.broken("hidden.range", e.Seq, "event %d hides the events %d to %d", e.Seq, b.From, b.To)
		}
	case "files.restored":
		if s.restores == 0 {
			s.broken("restored.undue", e.Seq, "event %d says that files were restored, and no rewind wanted that", e.Seq)
		}
	}
	o.context(s, e, b)
	o.key(s, e, b)
}

// start looks at how a session begins.
func (o *order) start(s *scene, e *stored.Event, b *body) {
	switch {
	case e.Seq != 1:
		s.broken("start.again", e.Seq, "event %d begins the session once more", e.Seq)
	case b.SessionID != s.session.Name && s.session.Shared == 0:
		s.broken("start.session", e.Seq, "event %d begins the session %q, and the log is that of %q", e.Seq, b.SessionID, s.session.Name)
	}
}

// fork looks at how a fork begins.
func (o *order) fork(s *scene, e *stored.Event, b *body) {
	switch {
	case s.own && e.Seq != s.session.Shared+1, s.own && s.session.Parent == 0:
		s.broken("fork.place", e.Seq, "event %d says that a fork begins here; the index says after event %d", e.Seq, s.session.Shared)
	case s.own && s.parent != "" && b.Parent != s.parent:
		s.broken("fork.parent", e.Seq, "event %d says that the fork is one of the session %q; the index says of %q", e.Seq, b.Parent, s.parent)
	case b.Position != e.Seq-1:
		s.broken("fork.position", e.Seq, "event %d says that the fork shares %d events; it follows event %d", e.Seq, b.Position, e.Seq-1)
	}
}

// accepted looks at an input that is taken.
func (o *order) accepted(s *scene, e *stored.Event, b *body) {
	if at := o.inputs.add(b.InputID, e.Seq); at != 0 {
		s.broken("input.twice", e.Seq, "event %d accepts the input %s, which event %d has accepted", e.Seq, b.InputID, at)
	}
}

// delivered looks at an input that the model is given. Words of hooks and skills
// have no input.
func (o *order) delivered(s *scene, e *stored.Event, b *body) {
	if b.InputID == "" {
		return
	}
	if _, waits := s.queue[b.InputID]; waits {
		o.said(s, e, b)
		return
	}
	at := o.inputs.last(b.InputID)
	switch {
	case at == 0:
		s.broken("input.unknown", e.Seq, "event %d delivers the input %s, which was never accepted", e.Seq, b.InputID)
	case s.aborted: // the queue was stopped: the rules of I8 report it
	default:
		s.broken("input.delivered-twice", e.Seq, "event %d delivers the input %s of event %d, which does not wait any more", e.Seq, b.InputID, at)
	}
}

// said compares what is delivered with what was accepted.
func (o *order) said(s *scene, e *stored.Event, b *body) {
	var text string
	accepted, known := s.words[b.InputID]
	if known && (json.Unmarshal(b.Content, &text) != nil || sha256.Sum256([]byte(text)) != accepted) {
		s.broken("input.other-words", e.Seq, "event %d delivers something else than event %d has accepted, and no hook was asked about it", e.Seq, s.queue[b.InputID])
	}
}

// context looks at compactions and epochs.
func (o *order) context(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "session.compaction_start":
		if s.compaction != "" {
			s.broken("compaction.open", e.Seq, "event %d begins a compaction while %s is open", e.Seq, s.compaction)
		}
	case "session.compaction_complete":
		if s.compaction != b.CompactionID {
			s.broken("compaction.unstarted", e.Seq, "event %d ends the compaction %s, and %q is open", e.Seq, b.CompactionID, s.compaction)
		}
	case "context.epoch":
		if b.Number != o.epochs+1 {
			s.broken("epoch.number", e.Seq, "event %d opens epoch %d after epoch %d", e.Seq, b.Number, o.epochs)
		}
		if b.From > b.Through+1 || b.Through >= e.Seq {
			s.broken("epoch.range", e.Seq, "event %d opens an epoch that shows what follows event %d, of what there was up to event %d", e.Seq, b.From, b.Through)
		}
		o.epochs = max(o.epochs, b.Number)
	case "memory.extracted":
		if b.From > b.To || b.To >= e.Seq {
			s.broken("memory.range", e.Seq, "event %d remembers the events %d to %d", e.Seq, b.From, b.To)
		}
	}
}

// keyed are the kinds of requests that may be made again with the same key.
var keyed = []string{"input.accepted", "session.resume", "elicitation.requested", "command.execute", "queue.changed"}

// key looks for a request that was carried out twice.
func (o *order) key(s *scene, e *stored.Event, b *body) {
	if b.Key == "" || !slices.Contains(keyed, e.Type) {
		return
	}
	switch at := o.keys.add(e.Type+"\x00"+b.Key, e.Seq); {
	case at == 0:
	case e.Type == "input.accepted" && b.Key == s.session.Name && s.config.Agent != nil:
		s.broken("agent.prompt-twice", e.Seq, "event %d gives the agent its prompt again, which event %d gave it", e.Seq, at)
	default:
		s.broken("key.twice", e.Seq, "event %d (%s) carries out a request with the key %s again, which event %d has carried out", e.Seq, e.Type, b.Key, at)
	}
}

// isObject reports whether a value is a JSON object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
