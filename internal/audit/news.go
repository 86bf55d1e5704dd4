package audit

import (
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/audit/stored"
)

// news decides I5: the end of every background task is told to the model exactly
// once, before the first request after it, and stays in what the model sees until
// it has seen it.
type news struct {
	ended  map[string]int64 // keys of tasks that have ended: where that was reported
	told   map[int64]int64  // reports that were told: where
	unseen map[int64]string // notifications that no answer has followed yet: their texts
}

func newNews() *news {
	return &news{make(map[string]int64), make(map[int64]int64), make(map[int64]string)}
}

func (n *news) fold(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "task.reported":
		n.reported(s, e, b)
	case "system.notification":
		n.notified(s, e, b)
	case "assistant.turn_start":
		for at, r := range s.reports {
			s.broken("news.late", e.Seq, "event %d asks the model before it was told what event %d reports of the task %s", e.Seq, at, r.key)
		}
	case "session.idle":
		n.rest(s, e, b)
	case "assistant.message", "assistant.unfinished":
		clear(n.unseen)
	case "context.epoch":
		n.epoch(s, e, b)
	case "history.hidden":
		for at := range n.unseen { // a person has taken them back
			if at >= b.From && at <= b.To {
				delete(n.unseen, at)
			}
		}
	case "session.forked":
		clear(n.ended)
		clear(n.told)
	}
}

func (n *news) reported(s *scene, e *stored.Event, b *body) {
	t, at := s.tasks[b.Key], n.ended[b.Key]
	switch {
	case t == nil && at != 0:
		s.broken("news.after-end", e.Seq, "event %d reports the task %s as %s after event %d has reported its end", e.Seq, b.Key, b.Status, at)
	case t == nil:
		s.broken("news.unknown-task", e.Seq, "event %d reports the task %s as %s, which was never started", e.Seq, b.Key, b.Status)
	case t.last == b.Status && !b.Ended:
		s.broken("news.again", e.Seq, "event %d reports the task %s as %s, as the report before it", e.Seq, b.Key, b.Status)
	case b.Ended && b.Status != "none" && b.Text == "":
		s.broken("news.silent", e.Seq, "event %d reports the end of the task %s (%s), and says nothing that the model could be told", e.Seq, b.Key, b.Status)
	}
	if b.Ended {
		n.ended[b.Key] = e.Seq
	}
}

func (n *news) notified(s *scene, e *stored.Event, b *body) {
	if b.Report == 0 {
		return
	}
	r, before := s.reports[b.Report], n.told[b.Report]
	var text string
	_ = json.Unmarshal(b.Content, &text) // content that is no text is ignored
	switch {
	case r == nil && before != 0:
		s.broken("told.twice", e.Seq, "event %d tells the model of event %d, which event %d has told", e.Seq, b.Report, before)
	case r == nil:
		s.broken("told.unknown", e.Seq, "event %d tells the model of event %d, which reports no task", e.Seq, b.Report)
	case !strings.Contains(text, r.text):
		s.broken("told.otherwise", e.Seq, "event %d tells the model something else than event %d reports", e.Seq, b.Report)
	}
	n.told[b.Report] = e.Seq
	n.unseen[e.Seq] = text
}

// rest looks for news that nobody was told. After an abort they wait until somebody
// speaks.
func (n *news) rest(s *scene, e *stored.Event, b *body) {
	if b.Aborted {
		return
	}
	for at, r := range s.reports {
		s.broken("news.untold", e.Seq, "event %d says that nothing is left to do, and the model was not told what event %d reports of the task %s", e.Seq, at, r.key)
	}
}

// epoch looks for notifications that are left out of what the model sees before it
// has seen them. They may stand in the head that the epoch begins with.
func (n *news) epoch(s *scene, e *stored.Event, b *body) {
	for at, text := range n.unseen {
		if at < b.From && !strings.Contains(texts(b.Head), strings.TrimSpace(text)) {
			s.broken("told.hidden", e.Seq, "event %d compacts away the notification of event %d before the model has seen it", e.Seq, at)
		}
	}
}

// texts are all texts in a JSON value, one after the other.
func texts(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	var b strings.Builder
	gather(&b, value)
	return b.String()
}

func gather(b *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
	case []any:
		for _, item := range v {
			gather(b, item)
		}
	case map[string]any:
		for _, item := range v {
			gather(b, item)
		}
	}
}
