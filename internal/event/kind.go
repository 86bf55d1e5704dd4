package event

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A Type is the name of a kind of events, as it is stored and sent.
type Type string

// A Kind is what is true of all events of one type. The rows of the table of kinds
// stand in the files of this package, each beside the body of its events; whoever
// needs to know a property of a kind asks the table, with [Type.Kind]. A kind that
// the table does not have was written by a newer version: it has no properties, is
// kept and shown like any other, and means nothing to this one.
type Kind struct {
	Type Type

	Sent      bool // it is only sent, never stored; clients expect never to see it again
	Hidden    bool // ordinary clients are not shown it
	Ephemeral bool // it is stored, but clients expect never to see it again

	Lasting bool // it still matters when the session was idle since: loading a log reads all of them
	Keyed   bool // it can carry the idempotency key of a request: its body is a [Requester]
	Shapes  bool // it changes the conversation that the model sees
	Said    bool // it is a part of that conversation: a message, an answer, a result
	Piece   bool // it is a part of an answer that will follow as a whole

	Question bool // it is a question to clients, and put to them again when they come back
	Answer   Type // the kind that ends what it begins, if it begins something

	body func(Event) (Payload, error)
}

// kinds is the table. It is complete before anything else of the program runs.
var kinds = make(map[Type]*Kind)

// list adds rows to the table. It is called where the bodies are declared.
func list(rows ...Kind) struct{} {
	for _, k := range rows {
		if kinds[k.Type] != nil {
			panic(fmt.Sprintf("the table of event kinds has %s twice", k.Type))
		}
		k.Ephemeral = k.Ephemeral || k.Sent
		kinds[k.Type] = &k
	}
	return struct{}{}
}

// body decodes the body of an event as T. What the event was made from, if that is
// known, is returned as it is: it need not be copied.
func body[T Payload](e Event) (Payload, error) {
	if e.made != nil {
		if _, ok := e.made.body.(T); ok {
			return e.made.body, nil
		}
	}
	return As[T](e)
}

// empty is the body of events that say all with their name.
func empty(e Event) (Payload, error) { return Empty(e.Type), nil }

// Kinds returns all rows of the table, by type.
func Kinds() []Kind {
	rows := make([]Kind, 0, len(kinds))
	for _, t := range slices.SortedFunc(maps.Keys(kinds), cmp.Compare) {
		rows = append(rows, *kinds[t])
	}
	return rows
}

// unknown is the row of every kind that the table does not have.
var unknown Kind

// row returns what the table says of a type.
func (t Type) row() *Kind {
	if k := kinds[t]; k != nil {
		return k
	}
	return &unknown
}

// Kind returns what the table says of a type, and false if it says nothing.
func (t Type) Kind() (Kind, bool) {
	k := t.row()
	return *k, k != &unknown
}

// Kind returns what the table says of the event, which must not be changed: nothing,
// if this version does not know it. It is there to be asked for every event of a
// long log; elsewhere, the methods of [Type] say the same.
func (e Event) Kind() *Kind {
	if e.kind != nil {
		return e.kind
	}
	return e.Type.row()
}

// Listed reports whether stored events of the kind are part of the history that
// clients read back.
func (k *Kind) Listed() bool { return !k.Hidden && !k.Ephemeral }

// Hidden reports whether ordinary clients are not shown events of this kind.
func (t Type) Hidden() bool { return t.row().Hidden }

// Ephemeral reports whether clients expect never to see an event of this kind
// again. Some are stored even so.
func (t Type) Ephemeral() bool { return t.row().Ephemeral }

// Listed reports whether stored events of this kind are part of the history
// that clients read back.
func (t Type) Listed() bool { return t.row().Listed() }

// Piece reports whether it is a part of an answer that will follow as a whole.
func (t Type) Piece() bool { return t.row().Piece }

// Question reports whether events of this kind put questions to clients.
func (t Type) Question() bool { return t.row().Question }

// closing are the kinds that end what another kind begins.
var closing = sync.OnceValue(func() map[Type]bool {
	ends := make(map[Type]bool)
	for _, k := range kinds {
		ends[k.Answer] = true
	}
	return ends
})

// Closes reports whether events of this kind end what those of another begin: they
// are answers.
func (t Type) Closes() bool { return closing()[t] }

// Body decodes the body of an event of a kind that the table has.
func (e Event) Body() (Payload, error) {
	k := e.Kind()
	if k.body == nil {
		return nil, fmt.Errorf("event %d: this version does not know the kind %s", e.Seq, e.Type)
	}
	return k.body(e)
}

// A Requester is the body of an event that records a client's request.
type Requester interface{ Request() Request }

// A Request is what a client has asked for, so that it can be told when it asks
// again.
type Request struct {
	Key string // the idempotency key; empty if it came with none
	ID  string // of what it made, or of the question it closed; empty: the event's position says which it is
}

// answerTo is the request that closed a question.
func answerTo(requestID string, a *Answered) Request {
	if a == nil {
		return Request{}
	}
	return Request{Key: a.Key, ID: requestID}
}

// EmptyData is the body of events that say all with their name.
type EmptyData struct{ kind Type }

// Empty makes a payload without fields.
func Empty(kind Type) EmptyData { return EmptyData{kind} }

func (e EmptyData) Type() Type { return e.kind }
