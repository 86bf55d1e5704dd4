package session

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
)

// A request that fails for a passing reason is made again later. The wait is an event
// (turn.parked), and the turn costs nothing while it waits but an entry in outages: no
// goroutine, and no state if no client is attached. An engine that starts finds the entry
// in the index.
//
// The turns that wait for the same endpoint take turns. As long as it does not answer, one
// of them at a time asks; as soon as it does, more and more of the others follow.

const (
	// defaultPatience is how long a turn waits for a model, by default.
	defaultPatience = time.Hour
	// heldTime is how much longer than its patience a turn waits that was not let to its
	// endpoint: the attempt of another turn may be under way that opens the way for it. It
	// is also what an engine grants a turn whose patience was over before it started: the
	// network may come up after the engine, and the clock may be wrong.
	heldTime = 30 * time.Second
	// maxGarbled is how many attempts a turn makes before an answer that is none ends the
	// waiting: it is more likely to be the wrong server than an outage, and may be billed.
	maxGarbled = 4
	// maxRoom is how many parked turns ask one endpoint at the same time.
	maxRoom = 64
)

// handleFailure decides what follows from a request that failed: the turn waits for its
// model, goes on with another one, or ends.
func (tx *txn) handleFailure(r *request, to Endpoint, took time.Duration, err error) error {
	failure, _ := errors.AsType[*model.Error](err)
	if failure == nil {
		return tx.handleModelError(err)
	}
	if failure.Temporary() {
		d, waits := tx.nextWait(r, failure, took)
		if waits {
			d.Model, d.Endpoint = cmp.Or(to.Name, tx.State.AskedModel()), to.place()
			return tx.recordParked(r, d)
		}
	}
	return tx.giveUpModel(failure, tx.patience())
}

// nextWait returns how long the turn waits after a failure. It reports false if the turn
// gives the model up.
func (tx *txn) nextWait(r *request, failure *model.Error, took time.Duration) (event.TurnParkedData, bool) {
	d := event.TurnParkedData{TurnID: r.turnID, Told: failure.RetryAfter > 0, ErrorType: string(failure.Kind), Message: failure.Message, StatusCode: failure.Status}
	left := tx.patience()
	if before := tx.State.Parked(); before != nil {
		d.Attempts, left = before.Attempts, before.Left()-r.waited-took
	}
	if left <= 0 || failure.Garbled && d.Attempts >= maxGarbled {
		return d, false
	}
	wait := jitter(tx.s.host.longestPause(d.Attempts))
	d.Attempts++
	if d.Told {
		wait = min(wait+min(failure.RetryAfter, turn.Longest), turn.Longest)
	} else {
		wait = min(wait, left)
	}
	if _, other := tx.State.NextFallback(); other && failure.RetryAfter > left {
		return d, false // the patience would be over before the provider wants to be asked
	}
	d.WaitMs, d.LeftMs = wait.Milliseconds(), max(left, wait).Milliseconds()
	d.Until = event.FormatTime(tx.now.Add(wait))
	return d, true
}

// patience returns how long a turn of the session waits for one model.
func (tx *txn) patience() time.Duration {
	if ms := tx.State.Setup.Config.Outage.PatienceMs; ms != nil {
		return turn.Milliseconds(*ms)
	}
	return min(tx.s.host.opts.Patience, turn.Longest)
}

// longestPause returns the longest pause after a number of attempts that failed before the
// last one.
func (h *Host) longestPause(attempts int) time.Duration {
	if len(h.opts.Retries) == 0 {
		return 0
	}
	return h.opts.Retries[min(attempts, len(h.opts.Retries)-1)]
}

// jitter returns a random part of a duration, so that those who failed together do not try
// again together.
func jitter(most time.Duration) time.Duration { return rand.N(most + 1) }

// place returns the name of what is out of reach if the model does not answer.
func (to Endpoint) place() string {
	if to.provider == nil {
		return to.Name
	}
	return strings.TrimSpace(to.provider.Endpoint() + " " + to.Name)
}

// recordParked records that the turn waits, and tells people until when and why.
func (tx *txn) recordParked(r *request, d event.TurnParkedData) error {
	for _, p := range failureEvents(r.turnID, d.Model, &model.Error{Kind: model.Kind(d.ErrorType), Status: d.StatusCode, Message: d.Message}) {
		tx.send(p)
	}
	if err := tx.record(d); err != nil {
		return err
	}
	tx.sendParked()
	tx.unload = d.WaitMs >= time.Second.Milliseconds() && !tx.s.clients.any()
	return nil
}

// sendParked tells clients until when the turn waits, and why; nothing if it does not
// wait.
func (tx *txn) sendParked() {
	if d := tx.waiting(); d != nil {
		tx.send(d)
	}
}

// tellParked tells a client that has just attached.
func (tx *txn) tellParked(v *View) {
	d := tx.waiting()
	if d == nil || v == nil {
		return
	}
	head := tx.head()
	head.Ephemeral = true
	if e, err := event.Encode(head, d); err == nil {
		v.tell(e)
	}
}

// waiting returns what clients are told of a turn that waits; nil if it does not.
func (tx *txn) waiting() event.Payload {
	p := tx.State.Parked()
	if p == nil || tx.s.asking.busy() {
		return nil
	}
	return event.SessionInfoData{InfoType: "model_retry", Message: describeParked(*p, tx.now)}
}

// describeParked tells people until when a turn waits, and why.
func describeParked(p turn.Parked, now time.Time) string {
	wait, spent := stillToWait(p.Wait(), p.Left(), now.Sub(p.At))
	text := fmt.Sprintf("%s. Trying again in %s", strings.TrimSuffix(p.Message, "."), wait.Round(time.Millisecond))
	if p.Wait() >= time.Second {
		text += fmt.Sprintf(", at %s", tellTime(now.Add(wait), now))
	}
	if p.Told && p.Left() <= p.Wait() { // the provider wants more time than there is patience for
		return text + ", for the last time."
	}
	return text + fmt.Sprintf("; giving up at %s.", tellTime(now.Add(p.Left()-spent), now))
}

// tellTime returns a time as the clock of the engine shows it, with the zone, because who
// reads it may be elsewhere, and with the date if it is another day.
func tellTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly + " MST")
	}
	return t.Format(time.DateTime + " MST")
}

// giveUpModel goes on with the next fallback, or ends the turn if there is none.
func (tx *txn) giveUpModel(failure *model.Error, patience time.Duration) error {
	if next, ok := tx.State.NextFallback(); ok && failure.Kind != model.KindOverflow && failure.Kind != model.KindScenario {
		return tx.recordFallback(next, failure)
	}
	if failure.Temporary() && !failure.Garbled && tx.State.Parked() != nil {
		told := *failure
		told.Message = fmt.Sprintf("%s. The turn has waited %s for it (model.patience); send a message to try again.", strings.TrimSuffix(failure.Message, "."), patience)
		failure = &told
	}
	return tx.handleModelError(failure)
}

// recordFallback records that the rest of the turn is asked of another model.
func (tx *txn) recordFallback(next string, failure *model.Error) error {
	from := tx.State.AskedModel()
	d := event.TurnFallbackData{
		TurnID: strconv.Itoa(tx.State.Turn.Step), Model: next, From: from,
		ErrorType: string(failure.Kind), Message: failure.Message, StatusCode: failure.Status,
	}
	if err := tx.record(d); err != nil {
		return err
	}
	tx.send(event.SessionWarningData{WarningType: "model_fallback", Message: fmt.Sprintf(
		"%s. The rest of this turn is asked of %s (model.fallback).", strings.TrimSuffix(failure.Message, "."), next)})
	return nil
}

// park lets the session wait as soon as the transaction is stored.
func (s *Session) park(tx *txn, p turn.Parked) {
	tx.afterCommit = append(tx.afterCommit, func() {
		s.host.outages.park(parkedTurn{id: s.id, at: p.At.UnixMilli(), told: p.Told}, p.Endpoint, p.Wait(), p.Left(), tx.now.Sub(p.At))
	})
}

// unpark forgets the session among those that wait for their models, if it does not wait any
// more, or waits for something else first: a person who has suspended it, or the answer to a
// question. It is parked again when that is over.
func (s *Session) unpark() {
	if s.host.outages.count.Load() > 0 && (s.asking.busy() || s.held || !s.state.OnlyParked()) {
		s.host.outages.drop(s.id)
	}
}

// parkedInfo returns what the index keeps of a turn that waits.
func parkedInfo(p *turn.Parked) *eventlog.Parked {
	return &eventlog.Parked{At: p.At.UnixMilli(), WaitMs: p.WaitMs, LeftMs: p.LeftMs, Told: p.Told, Endpoint: p.Endpoint}
}

// keepsParked reports whether turns wait with which no engine would go on if this one
// ended.
func (h *Host) keepsParked() bool {
	if h.outages.count.Load() == 0 {
		return false
	}
	return !h.attended.hasAll()
}

// outages are the turns that wait for their models. It is safe for concurrent use.
type outages struct {
	host  *Host
	count atomic.Int64 // number of turns that wait, and of those that were let through

	mu     sync.Mutex
	closed bool
	turns  map[event.SessionID]*parkedTurn
	ways   map[string]*way
}

// A parkedTurn is a turn that waits.
type parkedTurn struct {
	id    event.SessionID
	at    int64 // time of its event in milliseconds: another wait of the same turn has another one
	told  bool  // true if the provider said how long to wait
	way   *way
	until time.Time     // time before which it is not let through
	began time.Time     // time at which it was added
	spent time.Duration // how long it had waited before
	timer *time.Timer   // gives the model up
	index int           // place in the heap of its way
}

// A way leads to an endpoint. It exists while turns wait for the endpoint or were let
// through.
type way struct {
	name   string
	turns  turnHeap
	asking int       // number of turns that were let through and have no answer
	room   int       // number of turns that may be let through at the same time
	open   bool      // true if the last answer was one
	fails  int       // number of attempts that failed in a row
	next   time.Time // time before which no further attempt is made
	timer  *time.Timer
}

// A permit lets one parked turn ask its model.
type permit struct {
	outages *outages
	turn    *parkedTurn
	waited  time.Duration // how long the turn has waited
	taken   atomic.Bool   // true if a request gives it back
	once    sync.Once
}

// restore adds a turn that an earlier engine has parked.
func (o *outages) restore(id event.SessionID, p eventlog.Parked) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turns[id] != nil { // the session has parked its turn itself since the index was read, maybe again
		return
	}
	o.add(parkedTurn{id: id, at: p.At, told: p.Told}, p.Endpoint, turn.Milliseconds(p.WaitMs), turn.Milliseconds(p.LeftMs), time.Since(time.UnixMilli(p.At)))
}

// stillToWait returns how long a turn waits from now on, and how much of its patience is
// spent. The time since it was parked is what the clock says, which may have been set
// meanwhile: the turn never waits longer than it did at first, and is left heldTime of
// its patience, or all of a shorter one.
func stillToWait(wait, left, since time.Duration) (further, spent time.Duration) {
	since = min(max(since, -turn.Longest), turn.Longest)
	return min(max(0, wait-since), wait), min(max(0, since), max(0, left-heldTime))
}

// park adds a turn that waits, unless it is there already. since is how long it has waited
// by the clock.
func (o *outages) park(t parkedTurn, endpoint string, wait, left, since time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if before := o.turns[t.id]; before != nil {
		if before.at == t.at {
			return
		}
		o.remove(before)
	}
	o.add(t, endpoint, wait, left, since)
}

// add adds a turn that is not there. The mutex is held.
func (o *outages) add(t parkedTurn, endpoint string, wait, left, since time.Duration) {
	if o.closed {
		return
	}
	if o.turns == nil {
		o.turns, o.ways = make(map[event.SessionID]*parkedTurn), make(map[string]*way)
	}
	w := o.ways[endpoint]
	if w == nil {
		w = &way{name: endpoint, room: 1}
		o.ways[endpoint] = w
	}
	t.way, t.began = w, time.Now()
	wait, t.spent = stillToWait(wait, left, since)
	t.until = t.began.Add(wait)
	added := &t
	added.timer = time.AfterFunc(left-t.spent+heldTime, func() { o.expire(added) })
	o.turns[t.id] = added
	heap.Push(&w.turns, added)
	o.count.Add(1)
	o.letThrough(w)
}

// remove removes a turn that waits. The mutex is held.
func (o *outages) remove(t *parkedTurn) {
	t.timer.Stop()
	delete(o.turns, t.id)
	heap.Remove(&t.way.turns, t.index)
	o.count.Add(-1)
}

// drop forgets a turn that does not wait any more.
func (o *outages) drop(id event.SessionID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.turns[id]; t != nil {
		o.remove(t)
		o.letThrough(t.way)
	}
}

// letThrough lets as many turns ask an endpoint as it has room for. The mutex is held.
func (o *outages) letThrough(w *way) {
	if w.timer != nil {
		w.timer.Stop()
	}
	for len(w.turns) > 0 && w.asking < w.room && !o.closed {
		first := w.turns[0]
		due := first.until
		if !w.open && w.next.After(due) {
			due = w.next
		}
		if wait := time.Until(due); wait > 0 {
			w.timer = time.AfterFunc(wait, func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.letThrough(w)
			})
			return
		}
		o.remove(first)
		o.count.Add(1)
		w.asking++
		p := &permit{outages: o, turn: first, waited: first.spent + time.Since(first.began)}
		if !o.host.spawn(func() { o.host.tryAgain(p) }) {
			return // the engine ends, and the next one goes on
		}
	}
	if len(w.turns) == 0 && w.asking == 0 && o.ways[w.name] == w {
		delete(o.ways, w.name)
	}
}

// succeeded takes in that an endpoint has answered.
func (o *outages) succeeded(to Endpoint) {
	if o.count.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.ways[to.place()]
	if w == nil {
		return
	}
	if w.fails = 0; !w.open {
		w.open = true
		now := time.Now()
		for _, t := range w.turns {
			if !t.told {
				t.until = now
			}
		}
		heap.Init(&w.turns)
	}
	w.room = min(2*w.room, maxRoom)
	o.letThrough(w)
}

// failed takes in that an endpoint has not answered a turn that was let through.
func (p *permit) failed() {
	if p == nil {
		return
	}
	o, w := p.outages, p.turn.way
	o.mu.Lock()
	defer o.mu.Unlock()
	w.open, w.room = false, 1
	w.next = time.Now().Add(jitter(o.host.longestPause(w.fails)))
	w.fails++
}

// takePermit gives the permit of a transaction to its request, which gives it back.
func (tx *txn) takePermit(r *request) {
	p := tx.permit
	if p == nil {
		return
	}
	p.taken.Store(true)
	tx.permit, r.permit, r.waited = nil, p, p.waited
	tx.onFailure = append(tx.onFailure, p.giveBack)
}

// giveBack ends the permit: the next turn may be let through.
func (p *permit) giveBack() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		o := p.outages
		o.mu.Lock()
		defer o.mu.Unlock()
		p.turn.way.asking--
		o.count.Add(-1)
		o.letThrough(p.turn.way)
	})
}

// expire gives the model of a turn up that was not let through in time.
func (o *outages) expire(t *parkedTurn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turns[t.id] != t {
		return
	}
	o.remove(t)
	o.letThrough(t.way)
	o.host.spawn(func() { o.host.giveUpParked(t) })
}

// close ends all waiting in this process.
func (o *outages) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, t := range o.turns {
		t.timer.Stop()
	}
	for _, w := range o.ways {
		if w.timer != nil {
			w.timer.Stop()
		}
	}
}

// tryAgain lets a parked turn ask its model.
func (h *Host) tryAgain(p *permit) {
	h.wakeParked(p.turn, func(tx *txn) error {
		tx.permit = p
		return nil
	})
	if !p.taken.Load() {
		p.giveBack()
	}
}

// giveUpParked gives the model of a parked turn up.
func (h *Host) giveUpParked(t *parkedTurn) {
	h.wakeParked(t, func(tx *txn) error {
		d := tx.State.Parked()
		failure := &model.Error{Kind: model.Kind(d.ErrorType), Status: d.StatusCode, Message: d.Message}
		return tx.giveUpModel(failure, tx.patience())
	})
}

// wakeParked carries out f in the session of a parked turn, if the turn still waits. The
// session is read if it is not in memory, a few at a time.
func (h *Host) wakeParked(t *parkedTurn, f func(*txn) error) {
	leave, ok := h.enterWaking()
	if !ok {
		return
	}
	defer leave()
	err := h.maintain(h.ctx, t.id, func(tx *txn) error {
		if p := tx.State.Parked(); p == nil || p.At.UnixMilli() != t.at || tx.s.asking.busy() {
			return nil
		}
		return f(tx)
	})
	var damage *eventlog.Damage // reading has logged damage already
	if err != nil && h.ctx.Err() == nil && !errors.As(err, &damage) {
		h.log.Error("a turn that waited for its model could not go on; it is tried again when the session is next used", "session", t.id, "err", err)
	}
}

// turnHeap has the turns of one way, the first to be let through first.
type turnHeap []*parkedTurn

func (h turnHeap) Len() int           { return len(h) }
func (h turnHeap) Less(i, j int) bool { return h[i].until.Before(h[j].until) }
func (h turnHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *turnHeap) Push(x any) {
	t := x.(*parkedTurn)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
