package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// The names of what is kept beside the log.
const (
	secretEnv      = "env"      // the session's environment, as JSON
	secretProvider = "provider" // keys of the session's own provider, as JSON
)

// A Spec is what a session is to be like. Fields that are empty leave what is.
type Spec struct {
	Config   event.SessionConfiguredData
	Env      []string // of commands; kept beside the log
	Provider []byte   // the provider's secrets; kept beside the log
	Name     string
}

// Create makes a session and attaches the client, which may be nil. A session
// that exists already is attached to, and all of it is shown.
func (h *Host) Create(ctx context.Context, id event.SessionID, spec Spec, c *Client) (*View, error) {
	var view *View
	err := h.join(ctx, id, c, func(tx *txn) (err error) {
		is := tx.State.Seq > 0
		if !is {
			if err = tx.create(spec); err != nil {
				return err
			}
		}
		if err = tx.rename(spec.Name); err != nil {
			return err
		}
		if c != nil {
			if view, err = tx.attach(c, 0); err != nil {
				return err
			}
		}
		if is {
			return tx.renewSecrets(spec)
		}
		return nil
	})
	return view, err
}

// join hands over an intent that attaches a client, if there is one. A client that
// is told that it failed is not attached; so one that has left meanwhile must be
// waited for.
func (h *Host) join(ctx context.Context, id event.SessionID, c *Client, f func(*txn) error) error {
	err := h.do(context.WithoutCancel(ctx), id, f)
	if err != nil && c != nil {
		h.Detach(id, c, false)
	}
	return err
}

func (tx *txn) create(spec Spec) error {
	if err := tx.keepSecrets(spec); err != nil {
		return err
	}
	place := &event.Place{Cwd: spec.Config.WorkingDirectory}
	return tx.Record(
		event.SessionStartData{
			SessionID: tx.s.id, Version: 1, Producer: "abide", CopilotVersion: tx.s.host.opts.Version,
			StartTime: event.FormatTime(tx.now), SelectedModel: spec.Config.Model, ReasoningEffort: spec.Config.ReasoningEffort, Context: place,
		},
		spec.Config,
	)
}

func (tx *txn) rename(name string) error {
	if name == "" || (name == tx.State.About.Name && !tx.State.About.AutoNamed) {
		return nil
	}
	tx.Tell(event.TitleChangedData{Title: name})
	return tx.Record(event.SessionNamedData{Name: name})
}

// A Resume says how a client comes back to a session.
type Resume struct {
	Spec     Spec
	Continue *bool      // what becomes of open questions if nobody was attached; false if nil
	Quiet    bool       // record no session.resume
	Keep     bool       // what is empty in the configuration stays as it is
	Key      string     // the same for a request that is made again because its reply was lost
	After    *event.Seq // the last position that the client saw; what exists now if nil
}

// Resume attaches a client to a session that exists. With somebody attached, or
// gone for only a moment, it touches nothing. Else open permissions and external
// calls are kept or ended, as the client says.
func (h *Host) Resume(ctx context.Context, id event.SessionID, r Resume, c *Client) (*View, error) {
	var view *View
	err := h.join(ctx, id, c, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		at, before := tx.State.Seq, tx.State.Resumed(r.Key)
		switch {
		case r.After != nil:
			at = *r.After
		case before > 0:
			at = before - 1 // what the lost reply would have been followed by
		}
		warm, active := tx.s.clients.attached(), tx.State.Active()
		if err = tx.leaveProviders(r.Spec.Config); err != nil {
			return err
		}
		if c != nil {
			if view, err = tx.attach(c, at); err != nil {
				return err
			}
		}
		if before > 0 {
			return nil // it was done before; only the reply was lost
		}
		if !tx.takesProvider(r.Spec.Config.Provider) {
			r.Spec.Config.Provider, r.Spec.Provider = nil, nil
		}
		if err = tx.keepSecrets(r.Spec); err != nil {
			return err
		}
		if err = tx.reconfigure(r.Spec.Config, r.Keep); err != nil {
			return err
		}
		applied := r.Continue
		switch {
		case warm && active:
			applied = new(bool)
		case !warm && (r.Continue == nil || !*r.Continue):
			record := append(turn.Decline(tx.State), tx.State.DropCommand("The session was resumed without its pending work")...)
			if err = tx.Record(record...); err != nil {
				return err
			}
		}
		if err = tx.unsuspend(); err != nil {
			return err
		}
		if r.Quiet {
			return nil
		}
		return tx.Record(event.SessionResumeData{
			ResumeTime: event.FormatTime(tx.now), EventCount: tx.State.Shown, SelectedModel: tx.State.Setup.Model,
			Context: &event.Place{Cwd: tx.State.Setup.Config.WorkingDirectory}, ContinuePendingWork: applied, SessionWasActive: warm && active, Key: r.Key,
		})
	})
	return view, err
}

// takesProvider reports whether the endpoint that a resuming client comes with
// replaces that of the session: one that is only the default of the client's
// process does not replace one that somebody named.
func (tx *txn) takesProvider(offered json.RawMessage) bool {
	return !byDefault(offered) || tx.State.Setup.Config.Provider == nil || byDefault(tx.State.Setup.Config.Provider)
}

func byDefault(provider json.RawMessage) bool {
	var p struct{ Default bool }
	return json.Unmarshal(provider, &p) == nil && p.Default
}

// reconfigure takes over what a resuming client says differently.
func (tx *txn) reconfigure(to event.SessionConfiguredData, keep bool) error {
	is := tx.State.Setup.Config
	if keep {
		to = kept(is, to)
	}
	if to.WorkingDirectory == "" {
		to.WorkingDirectory = is.WorkingDirectory
	}
	if to.Provider == nil {
		to.Provider = is.Provider
	}
	if to.Providers == nil {
		to.Providers, to.Models = is.Providers, is.Models
	}
	if to.Instructions == "" {
		to.Instructions = is.Instructions
	}
	if to.Agents == nil {
		to.Agents, to.Selected, to.Before = is.Agents, is.Selected, is.Before
	}
	if to.Model != "" && to.Model != tx.State.Setup.Model {
		if err := tx.Record(event.SessionModelChangeData{NewModel: to.Model, PreviousModel: tx.State.Setup.Model}); err != nil {
			return err
		}
	}
	if to.Model == "" {
		to.Model = is.Model
	}
	if reflect.DeepEqual(is, to) {
		return nil
	}
	return tx.Record(to)
}

// kept is a configuration in which only what is said replaces what is.
func kept(is, to event.SessionConfiguredData) event.SessionConfiguredData {
	from := reflect.ValueOf(to)
	into := reflect.ValueOf(&is).Elem()
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return is
}

// Attach makes a client part of a session without anything being recorded but
// what it can answer: it goes on watching after the given position.
func (h *Host) Attach(ctx context.Context, id event.SessionID, c *Client, at event.Seq) (*View, error) {
	var view *View
	err := h.join(ctx, id, c, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		view, err = tx.attach(c, at)
		return err
	})
	return view, err
}

// Send gives a session an input. It is stored when Send returns; the work goes
// on without the caller. An input that came before with the same key is not
// taken again: its id is returned.
func (h *Host) Send(ctx context.Context, id event.SessionID, in event.InputAcceptedData) (string, error) {
	return h.SendWith(ctx, id, in, nil)
}

// SendWith is Send for an input that comes with headers for the model requests of
// its turn.
func (h *Host) SendWith(ctx context.Context, id event.SessionID, in event.InputAcceptedData, headers map[string]string) (string, error) {
	if in.InputID == "" {
		in.InputID = event.NewID()
	}
	if in.Mode == "" {
		in.Mode = event.ModeQueue
	}
	err := h.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		if before := tx.State.Sent(in.Key); before != "" {
			in.InputID = before
			return nil
		}
		in.Headers = len(headers) > 0
		if err := tx.accept(in); err != nil || !in.Headers {
			return err
		}
		tx.err = tx.keepHeaders(in.InputID, headers) // the input is not stored without them
		return tx.err
	})
	return in.InputID, err
}

var errQueueFull = errors.New("the queue is full")

func (tx *txn) accept(in event.InputAcceptedData) error {
	switch in.Mode {
	case event.ModeQueue, event.ModeSteer, event.ModeInterrupt:
	default:
		return fmt.Errorf("mode: %q is unknown; use %s, %s or %s", in.Mode, event.ModeQueue, event.ModeSteer, event.ModeInterrupt)
	}
	if err := tx.unsuspend(); err != nil {
		return err
	}
	in = tx.asCommand(in)
	if waiting := len(tx.State.Queue.Inputs); in.Mode != event.ModeInterrupt && waiting >= tx.s.host.opts.MaxQueue {
		return fmt.Errorf("%w: %d messages wait already; send it when one of them was taken, or with mode %s", errQueueFull, waiting, event.ModeInterrupt)
	}
	tx.Tell(event.Empty(event.PendingMessagesModified))
	if in.Mode == event.ModeInterrupt && tx.State.Turn != nil {
		if err := tx.abort("interrupted by a new message", true); err != nil {
			return err
		}
	}
	return tx.Record(in)
}

// Abort stops the turn and clears the queue. Nothing running is not an error.
func (h *Host) Abort(ctx context.Context, id event.SessionID, reason string) error {
	return h.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil || !tx.State.Active() {
			return err
		}
		return tx.abort(reason, false)
	})
}

func (tx *txn) abort(reason string, keepQueue bool) error {
	if err := tx.abortWork(keepQueue); err != nil {
		return err
	}
	about := func(h event.HookStartData) bool { return h.InputID == "" || !keepQueue }
	record := turn.Interrupt(tx.State, "Session aborted", func(*turn.Call) bool { return true })
	record = append(record, turn.CloseHooks(tx.State, "Session aborted", func(h event.HookStartData) bool { return len(h.Calls) == 0 && about(h) })...)
	record = append(record, tx.State.DropCommand("Session aborted")...)
	abort := event.AbortFor(reason)
	abort.KeepQueue = keepQueue
	return tx.Record(append(record, abort)...)
}

var errAborted = errors.New("the turn was aborted")

// Answer answers an open question. It reports whether the answer won: false
// means that there is no such question, or that somebody was faster. The same
// answer given again with its key has won, too.
func (h *Host) Answer(ctx context.Context, id event.SessionID, a turn.Answer) (won bool, err error) {
	var working []event.SessionID
	if won, working, err = h.answer(ctx, id, a); won || err != nil {
		return won, err
	}
	for _, agent := range working {
		if won, _, err = h.answer(ctx, agent, a); won || (err != nil && !errors.Is(err, ErrNotFound)) {
			return won, err
		}
	}
	return false, nil
}

// answer answers a question of one session, and returns the agents that work for
// it.
func (h *Host) answer(ctx context.Context, id event.SessionID, a turn.Answer) (won bool, working []event.SessionID, err error) {
	taken := false
	if a.External != nil {
		saved, err := h.shorten(a.External)
		if err != nil {
			return false, nil, err
		}
		defer func() {
			if saved != "" && !taken {
				os.Remove(saved) // nobody will read it
			}
		}()
	}
	err = h.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		record, ok, err := a.Give(tx.State)
		if err != nil {
			return err
		}
		taken, won, working = ok, ok || tx.State.Won(a.RequestID, a.Key), h.opts.Tools.Working(tx.State)
		return tx.settle(record...)
	})
	return won, working, err
}

// A Choice is a model, and what is known of it better than by its name.
type Choice struct {
	Model, Effort string
	Vision        *bool // whether it sees images
	Window        int   // how many tokens fit into a request and its reply
}

// SetModel changes the model from the next request on.
func (h *Host) SetModel(ctx context.Context, id event.SessionID, to Choice) error {
	return h.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return tx.setModel(to)
	})
}

func (tx *txn) setModel(m Choice) error {
	to := tx.State.Setup.Config
	to.Model, to.ReasoningEffort, to.Vision, to.Window = m.Model, m.Effort, m.Vision, m.Window
	return tx.Record(event.SessionModelChangeData{NewModel: m.Model, PreviousModel: tx.State.Setup.Model, ReasoningEffort: m.Effort}, to)
}

// Rename gives a session a name.
func (h *Host) Rename(ctx context.Context, id event.SessionID, name string) error {
	return h.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return tx.rename(name)
	})
}

// Note records a remark of a client; an ephemeral one is only sent. It returns
// the event's id.
func (l Log) Note(ctx context.Context, id event.SessionID, p event.Payload, ephemeral bool) (string, error) {
	var noted string
	err := l.host.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		if ephemeral {
			tx.Tell(p)
		} else if err := tx.Record(p); err != nil {
			return err
		}
		head, err := tx.told[len(tx.told)-1].Head()
		noted = head.ID
		return err
	})
	return noted, err
}

// A Status is a glance at a session.
type Status struct {
	ID        event.SessionID
	End       eventlog.End
	Active    bool
	Name      string
	AutoNamed bool // nobody gave it the name
	Summary   string
	Started   time.Time
	Model     string
	Config    event.SessionConfiguredData
	Totals    event.Totals
	Queue     []event.InputAcceptedData
	Questions []event.Event             // the open ones, as they were asked
	own       int                       // how many of them are the session's own; those of agents follow
	hidden    []event.HistoryHiddenData // what was taken back
	Rules     event.ClientRules
	AllowsAll bool
	Paused    bool
	Mode      string
}

// Hides reports whether the event at a position was taken back.
func (s Status) Hides(n event.Seq) bool {
	return slices.ContainsFunc(s.hidden, func(d event.HistoryHiddenData) bool { return n >= d.From && n <= d.To })
}

// Status tells how a session stands.
func (h *Host) Status(ctx context.Context, id event.SessionID) (Status, error) {
	var st Status
	var working []event.SessionID
	err := h.look(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		s := tx.State
		st = Status{
			ID: s.ID, End: tx.s.log.end, Active: s.Active(),
			Name: s.About.Name, AutoNamed: s.About.AutoNamed, Summary: s.About.Summary, Started: s.About.Started, Model: s.Setup.Model, Config: s.Setup.Config, Totals: s.About.Totals,
			Queue: append([]event.InputAcceptedData{}, s.Queue.Inputs...), hidden: s.Rewind.Hidden, Rules: s.Permission.Rules, AllowsAll: s.AllowsAll(), Paused: s.Queue.Paused, Mode: s.Mode(),
		}
		for _, form := range s.Exchanges.Forms() {
			st.Questions = append(st.Questions, form.Asked)
		}
		for _, c := range s.Questions() {
			st.Questions = append(st.Questions, c.Asked)
		}
		st.own, working = len(st.Questions), h.opts.Tools.Working(s)
		return nil
	})
	for _, agent := range working {
		if its, err := h.Status(ctx, agent); err == nil {
			st.Questions = append(st.Questions, its.Questions...)
		}
	}
	return st, err
}
