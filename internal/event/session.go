package event

import (
	"encoding/json"
	"fmt"
)

// The types of events about a session as a whole.
const (
	SessionStart       Type = "session.start"
	SessionResume      Type = "session.resume"
	SessionModelChange Type = "session.model_change"
	SessionNamed       Type = "session.named"
	SessionForked      Type = "session.forked"
	SessionSuspended   Type = "session.suspended"
	SessionShutdown    Type = "session.shutdown"
	SessionIdle        Type = "session.idle"
	SessionInfo        Type = "session.info"
	SessionWarning     Type = "session.warning"
	SessionError       Type = "session.error"
	ContextChanged     Type = "session.context_changed"
	TitleChanged       Type = "session.title_changed"
)

var _ = list(
	Kind{Type: SessionStart, body: body[SessionStartData], Lasting: true, Silent: true},
	Kind{Type: SessionResume, body: body[SessionResumeData], Keyed: true, Silent: true},
	Kind{Type: SessionModelChange, body: body[SessionModelChangeData], Lasting: true},
	Kind{Type: SessionNamed, body: body[SessionNamedData], Hidden: true, Lasting: true},
	Kind{Type: SessionForked, body: body[SessionForkedData], Hidden: true, Lasting: true},
	Kind{Type: SessionSuspended, body: body[SessionSuspendedData], Hidden: true},
	Kind{Type: SessionShutdown, body: body[ShutdownData], Silent: true, Inert: true},
	Kind{Type: SessionIdle, body: body[SessionIdleData], Ephemeral: true, Silent: true},
	Kind{Type: SessionInfo, body: body[SessionInfoData], Inert: true},
	Kind{Type: SessionWarning, body: body[SessionWarningData], Inert: true},
	Kind{Type: SessionError, body: body[SessionErrorData]},
	Kind{Type: ContextChanged, body: body[ContextChangedData], Silent: true, Inert: true},
	Kind{Type: TitleChanged, body: body[TitleChangedData], Sent: true, Silent: true},
)

// Place is the folder in which a session works, and its Git repository.
type Place struct {
	Cwd        string `json:"cwd"` // working directory
	GitRoot    string `json:"gitRoot,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Repository string `json:"repository,omitempty"`
}

// FormatVersion is the version of the event format that this program writes, and the
// highest one that it can read.
const FormatVersion = 1

// A NewerError means that a log is in a version of the event format that this program
// does not know. Nothing may be appended to such a log: its events may mean something else.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("its log has version %d of the event format, and this abide knows only versions up to %d; nothing was changed: use a newer abide", e.Version, FormatVersion)
}

// CheckFormat returns a [NewerError] if e is the session.start of a log in a newer version
// of the event format. It reads nothing else of the body, because a newer version may have
// changed the rest.
func CheckFormat(e Event) error {
	if e.Type != SessionStart {
		return nil
	}
	body, err := e.Data()
	if err != nil {
		return err
	}
	var start struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(body, &start); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	if start.Version > FormatVersion {
		return &NewerError{start.Version}
	}
	return nil
}

// SessionStartData is the body of session.start, which is the first event of every
// session that is not a fork.
type SessionStartData struct {
	SessionID       SessionID `json:"sessionId"`
	Version         int       `json:"version"`                   // version of the event format: FormatVersion
	Producer        string    `json:"producer"`                  // always "abide"
	CopilotVersion  string    `json:"copilotVersion"`            // version of this program; typed clients require the name
	StartTime       string    `json:"startTime"`                 // time in the form of FormatTime
	SelectedModel   string    `json:"selectedModel,omitempty"`   // model that the client asked for
	ReasoningEffort string    `json:"reasoningEffort,omitempty"` // reasoning effort that the client asked for
	Context         *Place    `json:"context,omitempty"`
}

// SessionResumeData is the body of session.resume: a client resumed the session.
type SessionResumeData struct {
	ResumeTime          string `json:"resumeTime"` // time in the form of FormatTime
	EventCount          Seq    `json:"eventCount"` // number of stored events that clients are shown
	SelectedModel       string `json:"selectedModel,omitempty"`
	Context             *Place `json:"context,omitempty"`
	ContinuePendingWork *bool  `json:"continuePendingWork,omitempty"` // true if the client asked that an unfinished turn goes on; false if a turn was running anyway
	SessionWasActive    bool   `json:"sessionWasActive"`              // true if another client was attached and a turn was running
	Key                 string `json:"key,omitempty"`                 // ours: idempotency key of the request
}

// SessionModelChangeData is the body of session.model_change: the next request goes to
// another model.
type SessionModelChangeData struct {
	NewModel        string `json:"newModel"`
	PreviousModel   string `json:"previousModel,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
}

// SessionInfoData is the body of session.info: a remark for people.
type SessionInfoData struct {
	InfoType string `json:"infoType"` // subject of the remark, such as "model_retry"
	Message  string `json:"message"`
	URL      string `json:"url,omitempty"` // page with more information
}

// SessionWarningData is the body of session.warning: a remark for people that something
// is not as it should be.
type SessionWarningData struct {
	WarningType string `json:"warningType"` // subject of the warning, such as "compaction"
	Message     string `json:"message"`
	URL         string `json:"url,omitempty"` // page with more information
}

// SessionErrorData is the body of session.error: something failed.
type SessionErrorData struct {
	ErrorType  string `json:"errorType"` // kind of the error; docs/EVENTS.md lists them
	Message    string `json:"message"`
	StatusCode int    `json:"statusCode,omitempty"` // HTTP status of the provider's answer, if there was one
	ErrorCode  string `json:"errorCode,omitempty"`  // the provider's code for the error
	EndsTurn   bool   `json:"endsTurn,omitempty"`   // ours: true if the turn ends with the error
}

// SessionIdleData is the body of session.idle: the turn has ended and nothing is left to
// do. It contains the totals, so that loading a session does not have to read all events
// to add them up.
type SessionIdleData struct {
	Aborted bool   `json:"aborted,omitempty"` // true if the turn was stopped from outside
	Totals  Totals `json:"totals"`            // ours
}

// Totals is what a session has used so far.
type Totals struct {
	Turns            int   `json:"turns"` // number of turns
	Steps            int   `json:"steps"` // number of model requests that were answered
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	DurationMs       int64 `json:"durationMs"` // time spent waiting for the model
}

// Add adds one answered request to the totals.
func (t *Totals) Add(u AssistantUsageData) {
	t.Steps++
	t.InputTokens += u.InputTokens
	t.OutputTokens += u.OutputTokens
	t.CacheReadTokens += u.CacheReadTokens
	t.CacheWriteTokens += u.CacheWriteTokens
	t.DurationMs += u.Duration
}

// SessionNamedData is the body of session.named: the session has a new name.
type SessionNamedData struct {
	Name string `json:"name"`
	Auto bool   `json:"auto,omitempty"` // true if the name was generated, and not chosen by a person or a client
}

// SessionForkedData is the body of session.forked, which is the first event that a fork
// does not share with its parent.
type SessionForkedData struct {
	Parent SessionID `json:"parentSessionId"`
	At     Seq       `json:"position"` // position of the last event that is shared
	Hash   string    `json:"hash"`     // hash of the parent's chain at that position, in hexadecimal
}

// TitleChangedData is the body of session.title_changed: the session has a new title.
type TitleChangedData struct {
	Title string `json:"title"`
}

// SessionSuspendedData is the body of session.suspended: the session was suspended, even
// in the middle of a turn, or continued.
type SessionSuspendedData struct {
	Suspended bool `json:"suspended"` // false if the session goes on
}

// ContextChangedData is the body of session.context_changed: what a client says about the
// folder in which the session works.
type ContextChangedData struct {
	Cwd            string `json:"cwd"` // working directory
	GitRoot        string `json:"gitRoot,omitempty"`
	Branch         string `json:"branch,omitempty"`
	Repository     string `json:"repository,omitempty"`
	RepositoryHost string `json:"repositoryHost,omitempty"`
	HostType       string `json:"hostType,omitempty"`
	BaseCommit     string `json:"baseCommit,omitempty"`
	HeadCommit     string `json:"headCommit,omitempty"`
}

// ShutdownData is the body of session.shutdown: a client shut the session down for all
// clients. The session can be resumed.
type ShutdownData struct {
	Kind        string              `json:"shutdownType"`           // "routine" or "error"
	Reason      string              `json:"errorReason,omitempty"`  // reason of an "error"
	Started     int64               `json:"sessionStartTime"`       // Unix time in milliseconds
	APIDuration int64               `json:"totalApiDurationMs"`     // time spent waiting for the model
	Changes     CodeChanges         `json:"codeChanges"`            // part of the protocol; always empty
	Metrics     map[string]struct{} `json:"modelMetrics"`           // part of the protocol; always empty
	Model       string              `json:"currentModel,omitempty"` // current model
}

// CodeChanges counts the changes to files. Typed clients require it.
type CodeChanges struct {
	Added   int      `json:"linesAdded"`
	Removed int      `json:"linesRemoved"`
	Files   []string `json:"filesModified"` // paths of the files
	Count   int      `json:"filesModifiedCount"`
}

func (SessionStartData) Type() Type       { return SessionStart }
func (SessionResumeData) Type() Type      { return SessionResume }
func (SessionModelChangeData) Type() Type { return SessionModelChange }
func (SessionNamedData) Type() Type       { return SessionNamed }
func (SessionForkedData) Type() Type      { return SessionForked }
func (SessionSuspendedData) Type() Type   { return SessionSuspended }
func (ShutdownData) Type() Type           { return SessionShutdown }
func (SessionIdleData) Type() Type        { return SessionIdle }
func (SessionInfoData) Type() Type        { return SessionInfo }
func (SessionWarningData) Type() Type     { return SessionWarning }
func (SessionErrorData) Type() Type       { return SessionError }
func (ContextChangedData) Type() Type     { return ContextChanged }
func (TitleChangedData) Type() Type       { return TitleChanged }

// Request returns a request without an id: the position of the event identifies it.
func (d SessionResumeData) Request() Request { return Request{Key: d.Key} }
