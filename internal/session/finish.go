package session

import (
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
)

// maxOutput returns the number of tokens that the next answer of the turn may have; zero for
// the default of the model.
func (s *Session) maxOutput() int {
	if s.state.Turn == nil {
		return 0
	}
	return s.state.Turn.Finish.MaxOutput
}

// settleAnswer returns what is recorded of an answer. If the model is asked again, clients
// are told why.
func (tx *txn) settleAnswer(m event.AssistantMessageData, reply *model.Reply, from Endpoint) event.Payload {
	record := turn.Settle(tx.State, m, turn.Reply{Reason: reply.Finish, Words: reply.Declined, Most: from.Longest})
	if d, ok := record.(event.AssistantUnfinishedData); ok {
		tx.send(event.SessionInfoData{InfoType: "answer_unfinished", Message: turn.Notice(d)})
	}
	return record
}

// keepAnswer records what the model has said of an answer that will not be completed.
func (tx *txn) keepAnswer() error {
	return tx.record(turn.Keep(tx.State, event.NewID())...)
}

// repeatSaid sends the earlier parts of the answer as the first piece of its message, so
// that the pieces of each message are the whole answer.
func (d *deltas) repeatSaid() {
	if d.r.said != "" {
		d.s.publish(d.r, event.MessageDeltaData{MessageID: d.r.message, DeltaContent: d.r.said})
	}
}
