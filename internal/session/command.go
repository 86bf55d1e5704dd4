package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// splitCommand splits a command that a person wrote, such as "/deploy to production",
// into its name and its arguments.
func splitCommand(text string) (name, args string) {
	name, args, _ = strings.Cut(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(text), "/")), " ")
	return name, strings.TrimSpace(args)
}

// clientCommand returns the command of a name that one of the clients carries out.
func (s *Session) clientCommand(name string) (event.Command, bool) {
	_, commands := s.clients.abilities()
	i := slices.IndexFunc(commands, func(c event.Command) bool { return strings.EqualFold(c.Name, name) })
	if i < 0 {
		return event.Command{}, false
	}
	return commands[i], true
}

// A Builtin is a command that the runtime carries out itself.
type Builtin struct {
	Name, Description string
	During            bool // true if it can be used while a turn is running
	run               func(tx *txn, args string) (string, error)
}

// Builtins are the commands of the runtime.
var Builtins = []Builtin{
	{Name: "model", Description: "Show the model, or change it", During: true, run: (*txn).modelCommand},
	{Name: "rename", Description: "Give the session a name", During: true, run: (*txn).renameCommand},
	{Name: "usage", Description: "Show what the session has used", During: true, run: (*txn).usageCommand},
}

func init() { // help lists itself, which a variable's initializer cannot
	help := Builtin{Name: "help", Description: "List the commands", During: true, run: (*txn).helpCommand}
	Builtins = slices.Insert(Builtins, 0, help)
}

func builtin(name string) *Builtin {
	for i := range Builtins {
		if strings.EqualFold(Builtins[i].Name, name) {
			return &Builtins[i]
		}
	}
	return nil
}

func (tx *txn) helpCommand(string) (string, error) {
	var b strings.Builder
	for _, c := range Builtins {
		fmt.Fprintf(&b, "/%s: %s\n", c.Name, c.Description)
	}
	_, commands := tx.s.clients.abilities()
	for _, c := range commands {
		fmt.Fprintf(&b, "/%s: %s\n", c.Name, cmp.Or(c.Description, "a command of a client"))
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func (tx *txn) modelCommand(name string) (string, error) {
	if name == "" {
		return "The model is " + cmp.Or(tx.State.Setup.Model, "the provider's first") + ".", nil
	}
	return "The next request goes to " + name + ".", tx.setModel(Choice{Model: name, Effort: tx.State.Setup.Config.ReasoningEffort})
}

func (tx *txn) renameCommand(name string) (string, error) {
	if name == "" {
		return "The name is missing: /rename NAME", nil
	}
	return "The session is called " + name + ".", tx.rename(name)
}

func (tx *txn) usageCommand(string) (string, error) {
	t := tx.State.About.Totals
	return fmt.Sprintf("%d turns, %d model requests, %d tokens in, %d tokens out.", t.Turns, t.Steps, t.InputTokens, t.OutputTokens), nil
}

// Commands carries out commands that a person wrote.
type Commands struct{ host *Host }

// Execute asks the client that has a command to carry it out, and waits. It returns
// what the client says went wrong.
func (cs Commands) Execute(ctx context.Context, id event.SessionID, name, args, key string) (fault string, err error) {
	d := event.CommandExecuteData{RequestID: event.NewID(), Args: args, Key: key}
	e, err := cs.host.exchange(ctx, id, func(tx *txn) (string, error) {
		if before := tx.State.Sent(key); before != "" {
			return before, nil
		}
		command, ok := tx.s.clientCommand(strings.TrimLeft(name, "/"))
		if !ok {
			return "", fmt.Errorf("command /%s: %w", strings.TrimLeft(name, "/"), ErrNobody)
		}
		d.CommandName, d.Command = command.Name, strings.TrimSpace("/"+command.Name+" "+args)
		return d.RequestID, tx.record(d)
	}, nil)
	if err != nil {
		return "", err
	}
	done, err := event.As[event.CommandDoneData](e)
	return done.Error, err
}

// Invoke carries out a built-in command and returns its output. It reports false if
// there is no such command.
func (cs Commands) Invoke(ctx context.Context, id event.SessionID, name, args string) (text string, found bool, err error) {
	err = cs.host.changeAny(ctx, id, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		if b := builtin(name); b != nil {
			found = true
			text, err = b.run(tx, strings.TrimSpace(args))
		}
		return err
	})
	return text, found, err
}

// Finish records the outcome of a command that a client was asked to carry out, and
// reports whether this answer was the first.
func (cs Commands) Finish(ctx context.Context, id event.SessionID, requestID, key, fault string) (won bool, err error) {
	err = cs.host.change(ctx, id, func(tx *txn) error {
		record, ok := tx.State.CarryOut(event.CommandExecute, requestID, key, turn.Carried{Error: fault})
		won = ok || tx.State.Won(requestID, key)
		return tx.record(record...)
	})
	return won, err
}

// Queued is the answer of a client that looks after the queue to a queued command.
type Queued struct {
	Handled bool
	Stop    bool // true if the queue is to rest until a new input comes
}

// FinishQueued records the answer to a queued command, and reports whether this
// answer was the first. A command that was not handled is carried out in the ordinary
// way.
func (cs Commands) FinishQueued(ctx context.Context, id event.SessionID, requestID, key string, q Queued) (won bool, err error) {
	err = cs.host.change(ctx, id, func(tx *txn) error {
		was := tx.State.Exchanges.Find(requestID)
		record, ok := tx.State.CarryOut(event.CommandQueued, requestID, key, turn.Carried{Stop: q.Stop})
		won = ok || tx.State.Won(requestID, key)
		if !ok {
			return nil
		}
		command, inputID := was.Command, was.InputID
		if err := tx.record(record...); err != nil || q.Handled {
			return err
		}
		return tx.runCommand(command, inputID)
	})
	return won, err
}

// startCommand begins a command from the queue. Clients that look after the queue are
// asked first.
func (tx *txn) startCommand(step turn.Command) error {
	if tx.s.clients.interested(event.CommandQueued) {
		return tx.record(event.CommandQueuedData{RequestID: event.NewID(), Command: step.Input.Prompt, InputID: step.Input.InputID})
	}
	return tx.runCommand(step.Input.Prompt, step.Input.InputID)
}

// runCommand carries out a command from the queue: by the client that has it, or as a
// built-in command.
func (tx *txn) runCommand(text, inputID string) error {
	name, args := splitCommand(text)
	if c, ok := tx.s.clientCommand(name); ok {
		return tx.record(event.CommandExecuteData{
			RequestID: event.NewID(), Command: text, CommandName: c.Name, Args: args, InputID: inputID,
		})
	}
	if err := tx.record(event.CommandDoneData{RequestID: event.NewID(), InputID: inputID}); err != nil {
		return err
	}
	b := builtin(name)
	if b == nil {
		return tx.record(event.SessionWarningData{WarningType: "unknown_command", Message: fmt.Sprintf("There is no command /%s; /help lists those there are.", name)})
	}
	said, err := b.run(tx, args)
	if err != nil {
		return err
	}
	return tx.record(event.SessionInfoData{InfoType: "command", Message: said})
}

// asCommand turns a message that names a client's command into that command.
func (tx *txn) asCommand(in event.InputAcceptedData) event.InputAcceptedData {
	if !strings.HasPrefix(in.Prompt, "/") || len(in.Attachments) > 0 {
		return in
	}
	if name, _ := splitCommand(in.Prompt); name != "" {
		if _, ok := tx.s.clientCommand(name); ok {
			in.Kind, in.Mode = event.InputCommand, event.ModeQueue
		}
	}
	return in
}

// releaseQueuedCommand carries out a queued command in the ordinary way if the client
// that was asked about it has left.
func (tx *txn) releaseQueuedCommand() error {
	o := tx.State.Exchanges.Queued()
	if o == nil || o.Asked.Type != event.CommandQueued || tx.s.clients.interested(event.CommandQueued) {
		return nil
	}
	command, inputID := o.Command, o.InputID
	if err := tx.record(event.CommandDoneData{RequestID: o.RequestID}); err != nil {
		return err
	}
	return tx.runCommand(command, inputID)
}
