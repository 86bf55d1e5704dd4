package event

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A Type is the name of a kind of events, such as "session.start". It is stored and
// sent, so it never changes.
type Type string

// A Kind is a row of the table of kinds: the properties that all events of one type
// share. Each row stands in the file that declares the body of its events. Code that
// depends on a property looks it up in the table, with [Type.Kind], [Event.Kind] or
// one of the methods of [Type], instead of listing types itself.
//
// A type that the table does not contain was written by a newer version of the
// program. Its events are stored and shown like any other, unless their envelopes say
// that they are ephemeral, and this version does nothing else with them.
type Kind struct {
	Type Type

	// How events of the kind are stored and shown.
	Sent      bool // sent to clients but never stored; implies Ephemeral
	Hidden    bool // stored, and not shown to ordinary clients
	Ephemeral bool // not part of the history that clients read back, even if it is stored
	Silent    bool // shown to clients, and nothing that a person reads: no view of this program prints it

	// How a stored log is read.
	Lasting bool   // still needed after the session was idle: loading a session reads all events of the kind, of other kinds only those since the last session.idle
	Inert   bool   // changes no part of the session's state except the keys of requests, so that no fold of package turn has a case for it
	Keyed   bool   // may contain the idempotency key of a request: the body is a [Requester]
	Shapes  bool   // changes the conversation that the model sees
	Said    bool   // part of that conversation: a message, an answer or a result; implies Shapes
	Piece   bool   // part of a streamed answer, which is sent as a whole later; implies Sent
	Grows   string // last field of a piece's body, a text that the next piece continues; empty if the piece has none

	// How questions are followed up.
	Question bool // a question to clients, which is sent again to a client that resumes the session
	Answer   Type // type of the event that ends what this event begins; empty if it begins nothing

	body func(Event) (Payload, error) // decodes the body
}

// kinds is the table of kinds. It is complete when the variables of the package are
// initialised, and never changes afterwards.
var kinds = make(map[Type]*Kind)

// list adds rows to the table. Each file that declares bodies calls it once.
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

// body decodes the body of an event as T. It is the body function of most kinds. An
// event that was made in this process returns the body that it was made from.
func body[T Payload](e Event) (Payload, error) {
	if e.made != nil {
		if _, ok := e.made.body.(T); ok {
			return e.made.body, nil
		}
	}
	return As[T](e)
}

// empty is the body function of kinds whose events have no fields.
func empty(e Event) (Payload, error) { return Empty(e.Type), nil }

// Kinds returns all rows of the table, sorted by type.
func Kinds() []Kind {
	rows := make([]Kind, 0, len(kinds))
	for _, t := range slices.SortedFunc(maps.Keys(kinds), cmp.Compare) {
		rows = append(rows, *kinds[t])
	}
	return rows
}

// unknown is the row of every type that the table does not contain. An event of such a
// type has the row unknownEphemeral if its envelope says that it is ephemeral.
var unknown, unknownEphemeral Kind

func init() { unknownEphemeral.Ephemeral = true }

// unknownRow returns the row of an event with the given head whose type the table does
// not contain.
func unknownRow(head Head) *Kind {
	if head.Ephemeral {
		return &unknownEphemeral
	}
	return &unknown
}

// row returns the row of the type, or &unknown.
func (t Type) row() *Kind {
	if k := kinds[t]; k != nil {
		return k
	}
	return &unknown
}

// Kind returns the row of the type, and false if the table does not contain it.
func (t Type) Kind() (Kind, bool) {
	k := t.row()
	return *k, k != &unknown
}

// Kind returns the row of the event's type, which must not be changed. An event of a
// type that the table does not contain has a row without a type, whose only property is
// whether the envelope says that the event is ephemeral. Kind does not look the row up
// again, so use it where all events of a long log are read.
func (e Event) Kind() *Kind {
	if e.kind != nil {
		return e.kind
	}
	return e.Type.row()
}

// Listed reports whether stored events of the kind are part of the history that
// clients read back.
func (k *Kind) Listed() bool { return !k.Hidden && !k.Ephemeral }

// Hidden reports whether events of this type are not shown to ordinary clients.
func (t Type) Hidden() bool { return t.row().Hidden }

// Ephemeral reports whether clients expect never to see an event of this type again.
// Some of these events are stored all the same. Of an event, ask [Event.Kind]: a newer
// version may have made it.
func (t Type) Ephemeral() bool { return t.row().Ephemeral }

// Piece reports whether events of this type are parts of a streamed answer, which is
// sent as a whole later.
func (t Type) Piece() bool { return t.row().Piece }

// Question reports whether events of this type are questions to clients.
func (t Type) Question() bool { return t.row().Question }

// closing returns the set of types that are the Answer of another kind.
var closing = sync.OnceValue(func() map[Type]bool {
	ends := make(map[Type]bool)
	for _, k := range kinds {
		ends[k.Answer] = true
	}
	return ends
})

// Closes reports whether events of this type end what events of another type begin:
// whether the type is the Answer of some kind.
func (t Type) Closes() bool { return closing()[t] }

// Body decodes the body of the event. It fails if the table does not contain the
// event's type.
func (e Event) Body() (Payload, error) {
	k := e.Kind()
	if k.body == nil {
		return nil, fmt.Errorf("event %d: this version does not know the kind %s", e.Seq, e.Type)
	}
	return k.body(e)
}

// A Requester is the body of an event that records a request of a client.
type Requester interface{ Request() Request }

// A Request identifies a request of a client, so that a client that repeats the
// request gets the first result again.
type Request struct {
	Key string // idempotency key of the request; empty if it had none
	ID  string // id of what the request created, or of the question that it answered; if empty, the event's position identifies the result
}

// answerTo returns the request that answered the question requestID.
func answerTo(requestID string, a *Answered) Request {
	if a == nil {
		return Request{}
	}
	return Request{Key: a.Key, ID: requestID}
}

// EmptyData is the body of all kinds whose events have no fields.
type EmptyData struct{ kind Type }

// Empty returns the body of an event that has no fields.
func Empty(kind Type) EmptyData { return EmptyData{kind} }

func (e EmptyData) Type() Type { return e.kind }
