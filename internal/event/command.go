package event

// The kinds of events about commands that clients carry out.
const (
	CommandExecute  Type = "command.execute"
	CommandQueued   Type = "command.queued"
	CommandDone     Type = "command.completed"
	CommandsChanged Type = "commands.changed"
)

var _ = list(
	Kind{Type: CommandExecute, body: body[CommandExecuteData], Ephemeral: true, Lasting: true, Keyed: true, Answer: CommandDone},
	Kind{Type: CommandQueued, body: body[CommandQueuedData], Ephemeral: true, Lasting: true, Answer: CommandDone},
	Kind{Type: CommandDone, body: body[CommandDoneData], Ephemeral: true, Lasting: true, Keyed: true},
	Kind{Type: CommandsChanged, body: body[CommandsChangedData], Sent: true},
)

// A Command is one that a client carries out.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// CommandExecuteData asks the client that has a command to carry it out.
type CommandExecuteData struct {
	RequestID   string `json:"requestId"`
	Command     string `json:"command"` // as a person would write it
	CommandName string `json:"commandName"`
	Args        string `json:"args"`
	InputID     string `json:"inputId,omitempty"` // ours: the queued input that it is
	Key         string `json:"key,omitempty"`     // ours: the idempotency key of the request
}

// CommandQueuedData asks those who look after the queue to carry a command out.
type CommandQueuedData struct {
	RequestID string `json:"requestId"`
	Command   string `json:"command"`
	InputID   string `json:"inputId"` // ours: the queued input that it is
}

// CommandDoneData tells that a command is done with.
type CommandDoneData struct {
	RequestID string    `json:"requestId"`
	Error     string    `json:"error,omitempty"`
	InputID   string    `json:"inputId,omitempty"` // of a queued command that nobody was asked about
	Stop      bool      `json:"stop,omitempty"`    // the queue rests until something new comes
	Answer    *Answered `json:"winner,omitempty"`
}

// CommandsChangedData lists the commands of all clients.
type CommandsChangedData struct {
	Commands []Command `json:"commands"`
}

func (CommandExecuteData) Type() Type  { return CommandExecute }
func (CommandQueuedData) Type() Type   { return CommandQueued }
func (CommandDoneData) Type() Type     { return CommandDone }
func (CommandsChangedData) Type() Type { return CommandsChanged }

func (d CommandExecuteData) Request() Request { return Request{Key: d.Key, ID: d.RequestID} }
func (d CommandDoneData) Request() Request    { return answerTo(d.RequestID, d.Answer) }
