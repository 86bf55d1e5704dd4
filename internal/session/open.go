package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/turn"
)

// A Spec describes a session. Empty fields leave the session as it is.
type Spec struct {
	Config event.SessionConfiguredData
	Env    []string       // the environment of commands; kept beside the log
	Keys   *provider.Keys // the keys of the providers; kept beside the log
	Name   string
	// MCP are the secrets of MCP servers, by name; kept beside the log. OwnMCP is true if the
	// client names the servers of the session itself.
	MCP    map[string]mcp.Secret
	OwnMCP bool
	// SpareEnv is the environment of commands of a session that is resumed, if the store
	// cannot open the one that it has.
	SpareEnv []string
	// Wanted is the workspace that the client wants, by its name or its address; empty if
	// it takes any. A session that exists refuses a client that wants another one.
	Wanted string
}

// ErrWorkspace means that a client wants a session to work in another workspace than it
// does.
var ErrWorkspace = errors.New("a session keeps its workspace for life")

// refuseOtherWorkspace refuses a client that wants another workspace.
func (tx *txn) refuseOtherWorkspace(wanted string) error {
	is := tx.State.Setup.Config.Workspace
	if wanted == "" || is.Is(wanted) {
		return nil
	}
	return fmt.Errorf("%w: session %s works in %s, not in %s; resume it without a workspace, or begin a new session", ErrWorkspace, tx.s.id, is.Label(), wanted)
}

// Create makes a session and attaches the client, which may be nil. If the session
// exists, the client is attached to it and is shown all of it.
func (h *Host) Create(ctx context.Context, id event.SessionID, spec Spec, c *Client) (*View, error) {
	var view *View
	var agents []event.SessionID
	err := h.attachClient(ctx, id, c, func(tx *txn) (err error) {
		is := tx.State.Seq > 0
		agents = h.opts.Tools.Working(tx.State)
		if is {
			if err = tx.refuseOtherWorkspace(spec.Wanted); err != nil {
				return err
			}
			if tx.State.Setup.Config.Workspace != nil {
				spec.Env = nil // its commands have the environment of the workspace
			}
		} else {
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
		tx.openMCP()
		if is {
			return errors.Join(tx.restrict(spec.Config.Managed), tx.renewSecrets(spec))
		}
		return nil
	})
	if err == nil {
		err = h.Permissions.restrictAgents(ctx, agents, spec.Config.Managed)
	}
	return view, err
}

func (tx *txn) create(spec Spec) error {
	if err := tx.keepSecrets(spec); err != nil {
		return err
	}
	place := &event.Place{Cwd: spec.Config.WorkingDirectory}
	return tx.record(
		event.SessionStartData{
			SessionID: tx.s.id, Version: event.FormatVersion, Producer: "abide", CopilotVersion: tx.s.host.opts.Version,
			StartTime: event.FormatTime(tx.now), SelectedModel: spec.Config.Model, ReasoningEffort: spec.Config.ReasoningEffort, Context: place,
		},
		spec.Config,
	)
}

// A Resume says how a client comes back to a session.
type Resume struct {
	Spec     Spec
	Continue *bool      // true if open questions stay open although nobody was attached; nil is false
	Quiet    bool       // true if no session.resume is to be recorded
	Keep     bool       // true if fields that are empty in the configuration stay as they are
	Key      string     // the same for a request that is made again because its reply was lost
	After    *event.Seq // the last position that the client saw; what exists now if nil
	Shown    []Reminder // open questions that the caller sends to the client as soon as it is attached
}

// Resume attaches a client to a session that exists. If somebody is attached, or was
// a moment ago and is not this client under another name, open questions stay as they
// are. Otherwise open permission questions
// and external calls are kept or ended, as the client says.
func (h *Host) Resume(ctx context.Context, id event.SessionID, r Resume, c *Client) (*View, error) {
	var view *View
	var agents []event.SessionID
	err := h.attachClient(ctx, id, c, func(tx *txn) (err error) {
		agents = h.opts.Tools.Working(tx.State)
		view, err = tx.resume(r, c)
		return err
	})
	if err == nil {
		err = h.Permissions.restrictAgents(ctx, agents, r.Spec.Config.Managed)
	}
	return view, err
}

// resume is Resume in a transaction.
func (tx *txn) resume(r Resume, c *Client) (view *View, err error) {
	if err = tx.exists(); err != nil {
		return nil, err
	}
	if err = tx.refuseOtherWorkspace(r.Spec.Wanted); err != nil {
		return nil, err
	}
	if tx.State.Setup.Config.Workspace != nil {
		r.Spec.Env, r.Spec.SpareEnv, r.Spec.Config.Scope.Allow = nil, nil, tx.State.Setup.Config.Scope.Allow
	}
	at, before := tx.resumePosition(r)
	warm, active := tx.s.clients.attached() && !tx.s.clients.succeeds(c), tx.State.Active()
	if err = tx.stopForResume(r.Spec.Config); err != nil {
		return nil, err
	}
	if view, err = tx.attachResuming(r, c, at); err != nil {
		return view, err
	}
	if before { // only the reply was lost
		return view, nil
	}
	if err = tx.takeResumed(r); err != nil {
		return view, err
	}
	declined, err := tx.declineForResume(r, warm)
	if err != nil {
		return view, err
	}
	if err = tx.unsuspend(); err != nil {
		return view, err
	}
	if declined && r.After == nil {
		if err = tx.endDeclined(view); err != nil {
			return view, err
		}
	}
	return view, tx.recordResume(r, warm && active)
}

// resumePosition returns the position from which the client is shown events, and whether
// the session was resumed by the same request before.
func (tx *txn) resumePosition(r Resume) (at event.Seq, before bool) {
	first := tx.State.Resumed(r.Key)
	switch {
	case r.After != nil:
		at = *r.After
	case first > 0:
		at = first - 1 // the lost reply was followed by what comes after
	default:
		at = tx.State.Seq
	}
	return at, first > 0
}

// attachResuming attaches the client, which may be nil.
func (tx *txn) attachResuming(r Resume, c *Client, at event.Seq) (*View, error) {
	if c == nil {
		return nil, nil
	}
	view, err := tx.attach(c, at)
	if err != nil {
		return view, err
	}
	tx.s.clients.change(c, func(a *attachment) {
		a.show(r.Shown)
		a.undecided = r.Continue != nil && *r.Continue
	})
	return view, nil
}

// takeResumed stores the secrets and the configuration that a resuming client brings.
func (tx *txn) takeResumed(r Resume) error {
	if !tx.takesProvider(r.Spec.Config.Provider) {
		r.Spec.Config.Provider, r.Spec.Keys = nil, r.Spec.Keys.OfListed()
	}
	if err := tx.replaceLostEnv(&r.Spec); err != nil {
		return err
	}
	if err := tx.mergeMCP(&r.Spec); err != nil {
		return err
	}
	if err := tx.keepSecrets(r.Spec); err != nil {
		return err
	}
	if err := tx.reconfigure(r.Spec.Config, r.Keep); err != nil {
		return err
	}
	tx.openMCP()
	return nil
}

// declineForResume ends the open permission questions and external calls, unless somebody
// was attached or the client wants to go on with them. It reports whether there were some.
func (tx *txn) declineForResume(r Resume, warm bool) (declined bool, err error) {
	if warm || r.Continue != nil && *r.Continue {
		return false, nil
	}
	record := append(turn.Decline(tx.State), tx.State.DropCommand("The session was resumed without its pending work")...)
	return len(record) > 0, tx.record(record...)
}

// endDeclined records that the session is idle if all that its turn waited for was declined, and
// shows the client only what comes after that: a client that sends a message as soon as it has
// resumed the session takes the first end of a turn that it is shown for the end of its own.
func (tx *txn) endDeclined(view *View) error {
	if _, over := turn.Next(tx.State, tx.s.now()).(turn.Rest); !over {
		return nil
	}
	if err := tx.recordIdle(); err != nil {
		return err
	}
	view.skipTo(tx.State.Seq)
	return nil
}

// recordResume records that the session was resumed. If a turn was running under the eyes
// of a client, its pending work was not touched, whatever the resuming client says.
func (tx *txn) recordResume(r Resume, running bool) error {
	if r.Quiet {
		return nil
	}
	applied := r.Continue
	if running {
		applied = new(bool)
	}
	return tx.record(event.SessionResumeData{
		ResumeTime: event.FormatTime(tx.now), EventCount: tx.State.Shown, SelectedModel: tx.State.Setup.Model,
		Context: &event.Place{Cwd: tx.State.Setup.Config.WorkingDirectory}, ContinuePendingWork: applied, SessionWasActive: running, Key: r.Key,
	})
}

// takesProvider reports whether the provider of a resuming client replaces the
// session's. A provider that is only the default of the client's process does not
// replace one that somebody named.
func (tx *txn) takesProvider(offered json.RawMessage) bool {
	return !byDefault(offered) || tx.State.Setup.Config.Provider == nil || byDefault(tx.State.Setup.Config.Provider)
}

func byDefault(raw json.RawMessage) bool {
	p := provider.Stored(raw)
	return p != nil && p.Default
}

// restrict adds restrictions to a session that exists.
func (tx *txn) restrict(more *event.ManagedRules) error {
	to := tx.State.Setup.Config
	if to.Managed = to.Managed.With(more); more == nil || reflect.DeepEqual(to, tx.State.Setup.Config) {
		return nil
	}
	return tx.record(to)
}

// reconfigure records what a resuming client configures differently.
func (tx *txn) reconfigure(to event.SessionConfiguredData, keep bool) error {
	is := tx.State.Setup.Config
	if keep {
		to = mergeConfig(is, to)
	}
	to.Managed = is.Managed.With(to.Managed) // nobody loosens what was restricted
	to.Workspace, to.Sealed = is.Workspace, is.Sealed
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
		if err := tx.record(event.SessionModelChangeData{NewModel: to.Model, PreviousModel: tx.State.Setup.Model}); err != nil {
			return err
		}
	}
	if to.Model == "" {
		to.Model = is.Model
	}
	if reflect.DeepEqual(is, to) {
		return nil
	}
	return tx.record(to)
}

// mergeConfig returns a configuration with the fields that are set in the second one,
// and the others from the first.
func mergeConfig(is, to event.SessionConfiguredData) event.SessionConfiguredData {
	from := reflect.ValueOf(to)
	into := reflect.ValueOf(&is).Elem()
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return is
}
