package event

// The kinds of events about what a session is, and what becomes of it.
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
	Kind{Type: SessionStart, body: body[SessionStartData], Lasting: true},
	Kind{Type: SessionResume, body: body[SessionResumeData], Keyed: true},
	Kind{Type: SessionModelChange, body: body[SessionModelChangeData], Lasting: true},
	Kind{Type: SessionNamed, body: body[SessionNamedData], Hidden: true, Lasting: true},
	Kind{Type: SessionForked, body: body[SessionForkedData], Hidden: true, Lasting: true},
	Kind{Type: SessionSuspended, body: body[SessionSuspendedData], Hidden: true},
	Kind{Type: SessionShutdown, body: body[ShutdownData]},
	Kind{Type: SessionIdle, body: body[SessionIdleData], Ephemeral: true},
	Kind{Type: SessionInfo, body: body[SessionInfoData]},
	Kind{Type: SessionWarning, body: body[SessionWarningData]},
	Kind{Type: SessionError, body: body[SessionErrorData]},
	Kind{Type: ContextChanged, body: body[ContextChangedData]},
	Kind{Type: TitleChanged, body: body[TitleChangedData], Sent: true},
)

// Place says where a session works.
type Place struct {
	Cwd        string `json:"cwd"`
	GitRoot    string `json:"gitRoot,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Repository string `json:"repository,omitempty"`
}

// SessionStartData is the first event of a session that is not a fork.
type SessionStartData struct {
	SessionID SessionID `json:"sessionId"`
	Version   int       `json:"version"` // of the event vocabulary
	Producer  string    `json:"producer"`
	// CopilotVersion is what typed clients require: the version of the runtime.
	CopilotVersion string `json:"copilotVersion"`
	StartTime      string `json:"startTime"`
	SelectedModel  string `json:"selectedModel,omitempty"`
	// ReasoningEffort is what the client asked for.
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	Context         *Place `json:"context,omitempty"`
}

// SessionResumeData tells that a client came back to a session.
type SessionResumeData struct {
	ResumeTime          string `json:"resumeTime"`
	EventCount          Seq    `json:"eventCount"`
	SelectedModel       string `json:"selectedModel,omitempty"`
	Context             *Place `json:"context,omitempty"`
	ContinuePendingWork *bool  `json:"continuePendingWork,omitempty"`
	SessionWasActive    bool   `json:"sessionWasActive"`
	Key                 string `json:"key,omitempty"` // ours: the idempotency key of the request
}

// SessionModelChangeData names the model that the next request goes to.
type SessionModelChangeData struct {
	NewModel        string `json:"newModel"`
	PreviousModel   string `json:"previousModel,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
}

// SessionInfoData is a remark for people.
type SessionInfoData struct {
	InfoType string `json:"infoType"`
	Message  string `json:"message"`
	URL      string `json:"url,omitempty"`
}

// SessionWarningData is a remark that something is not as it should be.
type SessionWarningData struct {
	WarningType string `json:"warningType"`
	Message     string `json:"message"`
	URL         string `json:"url,omitempty"`
}

// SessionErrorData tells what went wrong.
type SessionErrorData struct {
	ErrorType  string `json:"errorType"`
	Message    string `json:"message"`
	StatusCode int    `json:"statusCode,omitempty"`
	ErrorCode  string `json:"errorCode,omitempty"`
	EndsTurn   bool   `json:"endsTurn,omitempty"` // the turn could not go on
}

// SessionIdleData tells that nothing is left to do. It carries the session's
// totals, so that loading need not add them up.
type SessionIdleData struct {
	Aborted bool   `json:"aborted,omitempty"`
	Totals  Totals `json:"totals"`
}

// Totals is what a session has used so far.
type Totals struct {
	Turns            int   `json:"turns"` // inputs that were worked on
	Steps            int   `json:"steps"` // model requests that were answered
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	DurationMs       int64 `json:"durationMs"` // waiting for the model
}

// Add counts one more answered request.
func (t *Totals) Add(u AssistantUsageData) {
	t.Steps++
	t.InputTokens += u.InputTokens
	t.OutputTokens += u.OutputTokens
	t.CacheReadTokens += u.CacheReadTokens
	t.CacheWriteTokens += u.CacheWriteTokens
	t.DurationMs += u.Duration
}

// SessionNamedData gives a session a name.
type SessionNamedData struct {
	Name string `json:"name"`
	Auto bool   `json:"auto,omitempty"` // somebody may give it a better one
}

// SessionForkedData is the first event of a fork's own: what came before is
// shared with the parent.
type SessionForkedData struct {
	Parent SessionID `json:"parentSessionId"`
	At     Seq       `json:"position"`
	Hash   string    `json:"hash"` // of the parent's chain at that position
}

// TitleChangedData tells a session's new title.
type TitleChangedData struct {
	Title string `json:"title"`
}

// SessionSuspendedData tells that a session rests, in the middle of whatever it
// does, or goes on.
type SessionSuspendedData struct {
	Suspended bool `json:"suspended"`
}

// ContextChangedData is what a client knows of the place where a session works.
type ContextChangedData struct {
	Cwd            string `json:"cwd"`
	GitRoot        string `json:"gitRoot,omitempty"`
	Branch         string `json:"branch,omitempty"`
	Repository     string `json:"repository,omitempty"`
	RepositoryHost string `json:"repositoryHost,omitempty"`
	HostType       string `json:"hostType,omitempty"`
	BaseCommit     string `json:"baseCommit,omitempty"`
	HeadCommit     string `json:"headCommit,omitempty"`
}

// ShutdownData tells that the use of a session was ended for everybody.
type ShutdownData struct {
	Kind        string              `json:"shutdownType"` // "routine" or "error"
	Reason      string              `json:"errorReason,omitempty"`
	Started     int64               `json:"sessionStartTime"` // milliseconds
	APIDuration int64               `json:"totalApiDurationMs"`
	Changes     CodeChanges         `json:"codeChanges"`
	Metrics     map[string]struct{} `json:"modelMetrics"`
	Model       string              `json:"currentModel,omitempty"`
}

// CodeChanges counts what was changed.
type CodeChanges struct {
	Added   int      `json:"linesAdded"`
	Removed int      `json:"linesRemoved"`
	Files   []string `json:"filesModified"`
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

// Request is known by the position of the event.
func (d SessionResumeData) Request() Request { return Request{Key: d.Key} }
