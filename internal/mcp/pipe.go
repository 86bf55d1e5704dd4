package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/process"
)

// A pipe is a connection to a program. What the program prints and is no message is logged
// and skipped: many programs greet before they serve.
type pipe struct {
	*program
	id       process.ID
	key      string // key of the process
	adopted  bool   // true if an earlier engine has started the process
	keepsAll bool   // true if nothing of the standard output is dropped
	number   int64  // number of the connection to the process; the first is 1
	ctx      context.Context
	cancel   context.CancelFunc
	messages chan jsonrpc.Message
	over     chan struct{} // closed when no message comes any more
	err      error         // reason for that

	writing sync.Mutex
	closing sync.Once
	settled chan struct{} // holds a token if no call is open any more, perhaps

	mu        sync.Mutex
	unheard   map[jsonrpc.ID]*time.Timer   // requests that are given up if nobody answers in time
	givenUp   map[jsonrpc.ID]bool          // by their ids in the process, like those in unheard
	ids       map[jsonrpc.ID]jsonrpc.ID    // requests that are not answered: from their ids in the process to those of the client
	wires     map[jsonrpc.ID]jsonrpc.ID    // the same the other way round
	greets    map[jsonrpc.ID]string        // methods of the requests of the handshake
	greetings []greeting                   // answers to the handshake that an earlier engine got
	rounds    map[string]int               // number of requests of each call
	answers   map[string]*jsonrpc.Response // answers to calls that are not settled
	questions map[string]string            // keys of the requests of the process that are questions to a person or to the model, by their ids
	marks     marks

	// These belong to the goroutine that reads.
	rest     []byte // beginning of a line that is not complete
	begun    int64  // offset of that line
	skipped  int    // number of lines that were no messages
	skipping bool   // true while the rest of a line that is too long is skipped
	trimmed  int64  // offset before which the output was said to be of no use any more
}

func (c *pipe) SessionID() string { return "" }

// trimEvery is how many bytes are carried out before the keeper is told that it may remove
// them.
const trimEvery = 256 << 10

// follow reads what the program prints until it ends.
func (c *pipe) follow() {
	err := errors.New("the program ended")
	for frame, failed := range c.processes.Follow(c.ctx, c.owner, c.id, c.marks.at) {
		switch {
		case failed != nil:
			err = failed
		case frame.End != nil:
			err = ended(*frame.End)
		case frame.Omitted > 0 && !c.keepsAll:
			err = errors.New("the program prints faster than its messages can be read")
			c.cancel()
		case frame.Stream == process.Stderr:
			c.log.write(c.owner, frame.Data)
			if end := frame.Offset + int64(len(frame.Data)); len(c.rest) == 0 || end-c.begun > maxBehind {
				c.mark(end, 0)
			}
		default:
			c.take(frame.Offset, frame.Data)
		}
		c.trim()
	}
	c.err = err
	close(c.over)
}

// trim tells the keeper what it may remove.
func (c *pipe) trim() {
	c.mu.Lock()
	at := c.marks.at
	c.mu.Unlock()
	if at-c.trimmed >= trimEvery {
		c.trimmed = at
		_ = c.processes.Consume(c.ctx, c.owner, c.id, at) // it may have ended; otherwise it is told again later
	}
}

// ended says how a program ended.
func ended(info process.Info) error {
	switch {
	case info.State == process.FailedToStart:
		return fmt.Errorf("the program could not be started: %s", info.Reason)
	case info.Exit != nil && info.Exit.Signal != "":
		return fmt.Errorf("the program was ended by %s", info.Exit.Signal)
	case info.Exit != nil:
		return fmt.Errorf("the program ended with exit code %d", info.Exit.Code)
	}
	return errors.New("the program ended")
}

// take cuts output into lines. The data begins at an offset of the output.
func (c *pipe) take(offset int64, data []byte) {
	for len(data) > 0 {
		line, more, whole := bytes.Cut(data, []byte{'\n'})
		offset += int64(len(data) - len(more))
		switch {
		case c.skipping:
			c.skipping = !whole
			c.mark(offset, 0)
		case len(c.rest)+len(line) > maxLine:
			c.log.note(c.owner, "a line of more than %d bytes was skipped", maxLine)
			c.rest, c.skipping = nil, !whole
			c.mark(offset, 0)
		case !whole:
			if len(c.rest) == 0 {
				c.begun = offset - int64(len(line))
			}
			c.rest = append(c.rest, line...)
		default:
			c.takeLine(append(c.rest, line...), offset)
			c.rest = nil
		}
		data = more
	}
}

// takeLine takes in a line, which is a message, several messages, or something else. It ends
// at an offset of the output.
func (c *pipe) takeLine(line []byte, end int64) {
	line = bytes.TrimSpace(line)
	if len(line) > 0 && line[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(line, &batch) == nil {
			m := c.mark(end, len(batch))
			for i, one := range batch {
				c.takeMessage(one, m, fmt.Sprintf("%d.%d", end, i))
			}
			return
		}
	}
	if len(line) == 0 {
		c.mark(end, 0)
		return
	}
	c.takeMessage(line, c.mark(end, 1), strconv.FormatInt(end, 10))
}

// takeMessage takes in a message, and notes in its mark when it is carried out. Its place in
// the output is the same in each engine, and another one for each message.
func (c *pipe) takeMessage(text []byte, m *mark, place string) {
	message, err := jsonrpc.DecodeMessage(bytes.Clone(text))
	if err != nil {
		c.noteSkipped(text)
		c.done(m)
		return
	}
	switch v := message.(type) {
	case *jsonrpc.Response:
		c.takeAnswer(v, m)
		return
	case *jsonrpc.Request:
		if v.IsCall() {
			c.await(askName(v.ID), m)
			if v.Method == elicitMethod || v.Method == sampleMethod {
				c.mu.Lock()
				c.questions[idText(v.ID)] = askName(v.ID) + " at " + place // a server may use an id twice
				c.mu.Unlock()
				v.Params = withQuestionKey(v.Params, c.key+"#"+idText(v.ID)+" at "+place)
			}
			c.deliver(v)
			return
		}
	}
	c.deliver(message)
	c.done(m)
}

// maxSkipped is how many lines that are no messages are noted of a connection: a server that
// prints nothing else must not keep us and the disk busy.
const maxSkipped = 1000

// noteSkipped notes a line that is no message.
func (c *pipe) noteSkipped(text []byte) {
	if c.skipped++; c.skipped <= maxSkipped {
		c.log.note(c.owner, "skipped, because it is no message: %s", text[:min(len(text), 1000)])
	}
	if c.skipped == maxSkipped {
		c.log.note(c.owner, "further lines that are no messages are skipped without a note")
	}
}

// takeAnswer takes in the answer to a request. That to a call is needed until the call is
// settled: if the engine is killed before, the next one reads it again.
func (c *pipe) takeAnswer(v *jsonrpc.Response, m *mark) {
	if !c.hear(v.ID) {
		c.done(m)
		return
	}
	name, isCall := v.ID.Raw().(string)
	if isCall {
		at, _ := c.journal.where(name)
		isCall = at == here
	}
	if isCall {
		v.Result = withQuestionKeys(v.Result, c.key+"#"+name)
		c.await(answerName(name), m)
	}
	c.mu.Lock()
	id, waits := c.ids[v.ID]
	delete(c.ids, v.ID)
	delete(c.wires, id)
	method := c.greets[v.ID]
	delete(c.greets, v.ID)
	if isCall {
		c.answers[name] = v
	}
	c.mu.Unlock()
	if !isCall {
		c.done(m)
	}
	if waits {
		c.deliverAnswer(v, id, method)
	}
}

// deliverAnswer delivers an answer to a request of the client. One to the handshake is noted.
func (c *pipe) deliverAnswer(v *jsonrpc.Response, id jsonrpc.ID, method string) {
	out := *v
	out.ID = id
	if method != "" {
		if text, err := jsonrpc.EncodeMessage(&out); err == nil {
			_ = c.journal.greeted(method, string(text)) // without it, the next engine starts the program anew
		}
	}
	c.deliver(&out)
}

func (c *pipe) deliver(message jsonrpc.Message) {
	select {
	case c.messages <- message:
	case <-c.ctx.Done():
	}
}

// hear notes an answer. It reports false if the request was given up.
func (c *pipe) hear(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.unheard[id]; timer != nil {
		timer.Stop()
		delete(c.unheard, id)
	}
	return !c.givenUp[id]
}

// giveUp answers a request in the place of a server that ignores it.
func (c *pipe) giveUp(wire jsonrpc.ID) {
	c.mu.Lock()
	waits := c.unheard[wire] != nil
	id := c.ids[wire]
	if waits {
		delete(c.unheard, wire)
		if c.givenUp == nil {
			c.givenUp = make(map[jsonrpc.ID]bool)
		}
		c.givenUp[wire] = true
		delete(c.ids, wire)
		delete(c.wires, id)
	}
	c.mu.Unlock()
	if waits {
		c.deliverAnswer(&jsonrpc.Response{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server did not answer"}}, id, discoverMethod)
	}
}

// Read returns the next message. Messages that came before the end are returned first.
func (c *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.messages:
		return m, nil
	default:
	}
	select {
	case m := <-c.messages:
		return m, nil
	case <-c.over:
		select {
		case m := <-c.messages:
			return m, nil
		default:
		}
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// isOver reports whether the connection is lost, as far as it and an error of a request tell.
func (c *pipe) isOver(err error) bool {
	select {
	case <-c.over:
		return true
	default:
		return errors.Is(err, process.ErrEnded) || errors.Is(err, process.ErrNotFound) || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, errDetached)
	}
}

// errDetached means that the process is left to the next engine.
var errDetached = errors.New("the engine ends, and the next one goes on with the server")

// Write sends a message. It has the ids of the client, which begin with 1 in each connection;
// the process gets ids that are never used twice.
func (c *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	key, call := "", ""
	switch v := m.(type) {
	case *jsonrpc.Request:
		out, send, err := c.outgoing(v)
		if err != nil || !send {
			return err
		}
		m = out
		call, _ = out.ID.Raw().(string)
		key = call
	case *jsonrpc.Response:
		if key = c.questionOf(v.ID); key != "" {
			if err := c.journal.count(); err != nil {
				return err
			}
		}
	}
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	long := len(text) >= process.MaxInput
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.leaving.Load() {
		return errDetached
	}
	err = c.processes.WriteStdin(ctx, c.owner, c.id, process.Input{Key: key, Data: append(text, '\n')})
	switch {
	case long && err != nil: // a part of it may be there, and the rest of the message is missing
		c.cancel()
	case long && call != "":
		err = c.journal.wrote(call)
	}
	if v, ok := m.(*jsonrpc.Response); ok && err == nil {
		c.mu.Lock()
		delete(c.questions, idText(v.ID))
		c.mu.Unlock()
		c.settleMark(askName(v.ID))
		c.lookAtRest() // the call may be over already
	}
	return err
}

// The methods that the transport looks at.
const (
	discoverMethod    = "server/discover"
	initializeMethod  = "initialize"
	initializedMethod = "notifications/initialized"
	listenMethod      = "subscriptions/listen"
	cancelledMethod   = "notifications/cancelled"
	callMethod        = "tools/call"
	elicitMethod      = "elicitation/create"
)

// idSpace is how many requests one connection can make. The ids stay numbers that every
// server can read.
const idSpace = 1 << 24

// outgoing returns a request of the client as the process gets it. It reports false if the
// process is not to get it.
func (c *pipe) outgoing(v *jsonrpc.Request) (out *jsonrpc.Request, send bool, err error) {
	made := *v
	switch {
	case v.Method == cancelledMethod:
		made.Params, send = c.cancellation(v.Params)
		return &made, send, nil
	case c.adopted && (v.Method == initializedMethod || v.Method == listenMethod):
		return nil, false, nil // an earlier engine has sent it
	case !v.IsCall():
		return v, true, nil
	case c.adopted && (v.Method == discoverMethod || v.Method == initializeMethod):
		return nil, false, c.greet(v)
	case v.Method == callMethod:
		return c.outgoingCall(v)
	}
	if made.ID, err = jsonrpc.MakeID(float64((c.number-1)*idSpace + idNumber(v.ID))); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expectLocked(made.ID, v.ID)
	if v.Method == discoverMethod || v.Method == initializeMethod {
		c.greets[made.ID] = v.Method
	}
	if v.Method == discoverMethod { // a server that does not answer it is an older one
		if c.unheard == nil {
			c.unheard = make(map[jsonrpc.ID]*time.Timer)
		}
		c.unheard[made.ID] = time.AfterFunc(discover, func() { c.giveUp(made.ID) })
	}
	return &made, true, nil
}

// expectLocked notes that a request waits for its answer.
func (c *pipe) expectLocked(wire, id jsonrpc.ID) { c.ids[wire], c.wires[id] = id, wire }

// idNumber returns the id of a request of the client.
func idNumber(id jsonrpc.ID) int64 {
	n, _ := id.Raw().(int64) // the client numbers its requests
	return n
}

// greet answers a request of the handshake with what the process has answered to an earlier
// engine.
func (c *pipe) greet(v *jsonrpc.Request) error {
	c.mu.Lock()
	var text string
	for i, g := range c.greetings {
		if g.method == v.Method {
			text, c.greetings = g.text, c.greetings[i+1:]
			break
		}
	}
	c.mu.Unlock()
	m, err := jsonrpc.DecodeMessage([]byte(text))
	answer, ok := m.(*jsonrpc.Response)
	if err != nil || !ok {
		return errors.New("what the server has answered to the handshake was not kept")
	}
	answer.ID = v.ID
	c.deliver(answer)
	return nil
}

// outgoingCall returns the request of a call. Its id is the token of its progress, which is
// made from the key of the call and so the same in each engine; a further round has its own.
// A call that was answered before gets that answer.
func (c *pipe) outgoingCall(v *jsonrpc.Request) (*jsonrpc.Request, bool, error) {
	var p struct {
		Meta struct {
			Token string `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(v.Params, &p); err != nil {
		return nil, false, err
	}
	name := p.Meta.Token
	c.mu.Lock()
	if c.rounds[name]++; c.rounds[name] > 1 {
		name = fmt.Sprintf("%s/%d", name, c.rounds[name])
	}
	made := *v
	var err error
	if made.ID, err = jsonrpc.MakeID(name); err != nil {
		c.mu.Unlock()
		return nil, false, err
	}
	before := c.answers[name]
	if before == nil {
		c.expectLocked(made.ID, v.ID)
	}
	c.mu.Unlock()
	if before != nil {
		c.deliverAnswer(before, v.ID, "")
		return nil, false, nil
	}
	at, since := c.journal.where(name)
	if at == here {
		return &made, since < rememberedInputs, nil
	}
	return &made, true, c.journal.send(name, (len(v.Params)+callHead)/process.MaxInput+1)
}

// callHead is more than the bytes of a call beside its parameters.
const callHead = 1024

// questionOf returns the key of a request of the process that is a question to a person or to
// the model; empty if it is none.
func (c *pipe) questionOf(id jsonrpc.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.questions[idText(id)]
}

// rememberedInputs is how many inputs later a keeper certainly remembers an input by its key.
// One that was noted longer ago was certainly written: it was noted just before.
const rememberedInputs = 400

// cancellation translates the id in a cancellation. It reports false if the process does not
// know the request.
func (c *pipe) cancellation(params json.RawMessage) (json.RawMessage, bool) {
	var p map[string]any
	if json.Unmarshal(params, &p) != nil {
		return nil, false
	}
	id, err := jsonrpc.MakeID(p["requestId"])
	if err != nil {
		return nil, false
	}
	c.mu.Lock()
	wire, ok := c.wires[id]
	delete(c.wires, id)
	delete(c.ids, wire)
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	p["requestId"] = wire.Raw()
	text, err := json.Marshal(p)
	return text, err == nil
}

// begin prepares for a call. With again, an earlier engine may have made it.
func (c *pipe) begin(key string, again bool) error {
	c.mu.Lock()
	delete(c.rounds, key)
	c.mu.Unlock()
	if !again {
		return nil
	}
	switch at, _ := c.journal.where(key); {
	case at == elsewhere:
		return ErrUnknown
	case at == nowhere && !c.adopted: // the next engine, which may go on with the process, has to know it too
		return errors.Join(ErrUnknown, c.journal.lose(key))
	}
	return nil
}

// ErrUnknown means that an earlier engine has begun a call, and nobody knows what became of it.
var ErrUnknown = errors.New("the outcome of the call is unknown: it may have happened")

// watchRest tells the keeper whenever no call is open any more, until the connection ends.
func (c *pipe) watchRest() {
	for {
		select {
		case <-c.settled:
			c.tellRest(c.ctx)
		case <-c.ctx.Done():
			return
		}
	}
}

// lookAtRest has the keeper told if no call is open any more.
func (c *pipe) lookAtRest() {
	select {
	case c.settled <- struct{}{}:
	default:
	}
}

// tellRest tells the keeper that the program has nothing to do, unless a call is open: if this
// engine is killed and none follows, the program ends as if nobody used it. A call is noted
// before it is written, so that the keeper hears of it last.
func (c *pipe) tellRest(ctx context.Context) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.leaving.Load() && !c.journal.unfinished() {
		_ = c.processes.Rest(ctx, c.owner, c.id, c.kept) // it may have ended, and keepers of older versions do not know it
	}
}

// settle notes that nobody asks for the result of a call any more.
func (c *pipe) settle(key string) {
	c.journal.settle(key)
	c.lookAtRest()
	c.mu.Lock()
	var names []string
	for name := range c.answers {
		if belongs(name, key) {
			names = append(names, name)
			delete(c.answers, name)
		}
	}
	delete(c.rounds, key)
	c.mu.Unlock()
	for _, name := range names {
		c.settleMark(answerName(name))
	}
}

// A mark is a place in the output behind messages.
type mark struct {
	end  int64
	open int // number of messages before it that are not carried out
}

// marks are how far the output was carried out: the next engine reads what comes after.
type marks struct {
	at      int64            // offset before which everything was carried out
	list    []*mark          // the marks after it, in order
	waiting map[string]*mark // marks of messages that are carried out later, by their names
}

// maxBehind is how many bytes of output the oldest message that is not carried out, or not
// complete, may be behind: what is kept is bounded, and a server must not be stopped by one call
// or one line. A message that is further behind is lost if the engine is killed.
const maxBehind = 16 << 20

// mark adds a mark behind some messages.
func (c *pipe) mark(end int64, messages int) *mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &mark{end, messages}
	if n := len(c.marks.list); n > 0 && c.marks.list[n-1].open == 0 { // of a flood of lines, one mark is kept
		m = c.marks.list[n-1]
		m.end, m.open = end, messages
	} else {
		c.marks.list = append(c.marks.list, m)
	}
	c.advanceLocked()
	return m
}

// done notes that a message before a mark was carried out.
func (c *pipe) done(m *mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.open--
	c.advanceLocked()
}

// await names a message that is carried out later.
func (c *pipe) await(name string, m *mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.marks.waiting[name]; before != nil { // a server that uses an id twice
		before.open--
	}
	c.marks.waiting[name] = m
}

// settleMark notes that a message with a name was carried out.
func (c *pipe) settleMark(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.marks.waiting[name]; m != nil {
		delete(c.marks.waiting, name)
		m.open--
		c.advanceLocked()
	}
}

func (c *pipe) advanceLocked() {
	from := c.marks.at
	for list := c.marks.list; len(list) > 0; list = list[1:] {
		if list[0].open > 0 {
			if list[len(list)-1].end-list[0].end < maxBehind {
				break
			}
			c.dropLocked(list[0])
		}
		c.marks.at, c.marks.list = list[0].end, list[1:]
	}
	if c.marks.at != from {
		_ = c.journal.add(consumedRecord(c.marks.at)) // otherwise the next engine reads more again
	}
}

// dropLocked gives up the messages before a mark.
func (c *pipe) dropLocked(m *mark) {
	maps.DeleteFunc(c.marks.waiting, func(name string, other *mark) bool {
		if other == m {
			delete(c.answers, strings.TrimPrefix(name, answerName("")))
		}
		return other == m
	})
}

func askName(id jsonrpc.ID) string { return "asked " + idText(id) }

func answerName(id string) string { return "answer " + id }

func idText(id jsonrpc.ID) string { return fmt.Sprintf("%T %v", id.Raw(), id.Raw()) }

// Close ends the program with all its children: it is told that nobody writes any more, and
// has a moment to leave. A program is left to the next engine if this one ends and it was sent
// a call whose result is not stored yet.
func (c *pipe) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		for _, t := range c.unheard {
			t.Stop()
		}
		c.mu.Unlock()
		c.work.Go(c.end)
	})
	return nil
}

func (c *pipe) end() {
	defer c.cancel()
	if c.leaving.Load() && c.journal.path != "" && c.journal.unfinished() {
		c.journal.close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	soon, done := context.WithTimeout(ctx, leaveTime)
	defer done()
	_ = c.processes.WriteStdin(soon, c.owner, c.id, process.Input{Close: true}) // it may have ended
	select {
	case <-c.over:
	case <-soon.Done():
	}
	c.stop(ctx, c.id)
	c.journal.close()
}

// questionKey is the field of a question of a server, in its metadata, with a key that is the
// same each time the question is read.
const questionKey = "abide.run/key"

// withQuestionKey adds a key to a question.
func withQuestionKey(params json.RawMessage, key string) json.RawMessage {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil || p == nil {
		return params
	}
	var meta map[string]any
	if json.Unmarshal(p["_meta"], &meta) != nil || meta == nil {
		meta = make(map[string]any)
	}
	meta[questionKey] = key
	var err error
	if p["_meta"], err = json.Marshal(meta); err != nil {
		return params
	}
	text, err := json.Marshal(p)
	if err != nil {
		return params
	}
	return text
}

// withQuestionKeys adds keys to the questions in the result of a call.
func withQuestionKeys(result json.RawMessage, key string) json.RawMessage {
	const field = "inputRequests"
	if !bytes.Contains(result, []byte(`"`+field+`"`)) {
		return result
	}
	var all map[string]json.RawMessage
	var asked map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}
	if json.Unmarshal(result, &all) != nil || json.Unmarshal(all[field], &asked) != nil {
		return result
	}
	for name, q := range asked {
		if q.Method == elicitMethod || q.Method == sampleMethod {
			q.Params = withQuestionKey(q.Params, key+"/"+name)
			asked[name] = q
		}
	}
	var err error
	if all[field], err = json.Marshal(asked); err != nil {
		return result
	}
	text, err := json.Marshal(all)
	if err != nil {
		return result
	}
	return text
}
