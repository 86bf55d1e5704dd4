package event

// The types of events about slash commands, which clients carry out.
const (
	CommandExecute  Type = "command.execute"
	CommandQueued   Type = "command.queued"
	CommandDone     Type = "command.completed"
	CommandsChanged Type = "commands.changed"
)

var _ = list(
	Kind{Type: CommandExecute, body: body[CommandExecuteData], Ephemeral: true, Lasting: true, Keyed: true, Answer: CommandDone, Silent: true},
	Kind{Type: CommandQueued, body: body[CommandQueuedData], Ephemeral: true, Lasting: true, Answer: CommandDone, Silent: true},
	Kind{Type: CommandDone, body: body[CommandDoneData], Ephemeral: true, Lasting: true, Keyed: true, Silent: true},
	Kind{Type: CommandsChanged, body: body[CommandsChangedData], Sent: true, Silent: true},
)

// A Command is a slash command that a client offers and carries out.
type Command struct {
	Name        string `json:"name"` // name without the slash
	Description string `json:"description,omitempty"`
}

// CommandExecuteData is the body of command.execute: the client that offers the
// command is asked to carry it out.
type CommandExecuteData struct {
	RequestID   string `json:"requestId"`
	Command     string `json:"command"`           // whole text of the command, such as "/deploy staging"
	CommandName string `json:"commandName"`       // name of the command, such as "deploy"
	Args        string `json:"args"`              // text after the name, such as "staging"
	InputID     string `json:"inputId,omitempty"` // ours: queued input that contained the command, if it was queued
	Key         string `json:"key,omitempty"`     // ours: idempotency key of the request
}

// CommandQueuedData is the body of command.queued: the clients that said that they
// handle queued commands are asked to carry one out, before the client that offers it.
type CommandQueuedData struct {
	RequestID string `json:"requestId"`
	Command   string `json:"command"` // whole text of the command
	InputID   string `json:"inputId"` // ours: queued input that contained the command
}

// CommandDoneData is the body of command.completed: a command was carried out, failed
// or was given up.
type CommandDoneData struct {
	RequestID string    `json:"requestId"`
	Error     string    `json:"error,omitempty"`   // reason of a failure
	InputID   string    `json:"inputId,omitempty"` // ours: queued input that contained the command, if no client was asked to carry it out
	Stop      bool      `json:"stop,omitempty"`    // ours: true if the queue waits for a new input before it goes on
	Answer    *Answered `json:"winner,omitempty"`  // ours: answer of the client that counted
}

// CommandsChangedData is the body of commands.changed: the commands that the clients of
// the session offer.
type CommandsChangedData struct {
	Commands []Command `json:"commands"`
}

func (CommandExecuteData) Type() Type  { return CommandExecute }
func (CommandQueuedData) Type() Type   { return CommandQueued }
func (CommandDoneData) Type() Type     { return CommandDone }
func (CommandsChangedData) Type() Type { return CommandsChanged }

func (d CommandExecuteData) Request() Request { return Request{Key: d.Key, ID: d.RequestID} }
func (d CommandDoneData) Request() Request    { return answerTo(d.RequestID, d.Answer) }
