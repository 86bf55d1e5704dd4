package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// These methods are about commands that people write with a slash.
var _ = register(map[string]method{
	api.CommandsList:    on((*conn).commands),
	api.CommandsInvoke:  on((*conn).invoke),
	api.CommandsExecute: on((*conn).execute),
	api.CommandsEnqueue: on((*conn).enqueue),
	api.CommandsRespond: on((*conn).respond),
	api.AnswerCommand:   on((*conn).answerCommand),
})

func (c *conn) commands(ctx context.Context, p api.CommandsParams) (api.CommandsResult, error) {
	result := api.CommandsResult{Commands: []api.CommandInfo{}}
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return result, noSession(p.SessionID, err)
	}
	if p.Builtins == nil || *p.Builtins {
		for _, b := range session.Builtins {
			result.Commands = append(result.Commands, api.CommandInfo{Name: b.Name, Description: b.Description, Kind: api.CommandBuiltin, During: b.During})
		}
	}
	if p.Clients == nil || *p.Clients {
		_, commands := c.server.host.Clients.Abilities(p.SessionID)
		for _, d := range commands {
			result.Commands = append(result.Commands, api.CommandInfo{Name: d.Name, Description: d.Description, Kind: api.CommandClient, During: true})
		}
	}
	if p.Skills == nil || *p.Skills {
		list, _, err := c.find(ctx, p.SessionID)
		if err != nil {
			return result, err
		}
		for _, k := range list {
			if k.Enabled && k.UserInvocable && isWord(k.Name) {
				result.Commands = append(result.Commands, api.CommandInfo{Name: k.Name, Description: k.Description, Kind: api.CommandSkill, During: true})
			}
		}
		prompts, err := c.server.host.MCP.PromptCommands(ctx, p.SessionID)
		if err != nil { // the other commands can be used
			c.server.log.Warn("the prompts of MCP servers cannot be listed", "session", p.SessionID, "err", err)
		}
		for _, d := range prompts {
			if !isWord(d.Name) {
				continue
			}
			info := api.CommandInfo{Name: d.Name, Description: d.Description, Kind: api.CommandSkill, During: true}
			if d.Hint != "" {
				info.Input = &api.CommandInput{Hint: d.Hint, Required: d.Needed}
			}
			result.Commands = append(result.Commands, info)
		}
	}
	return result, nil
}

// invoke carries out a command of the runtime, or lets the client that has it. A skill or a
// prompt becomes a message, which whoever invokes it sends.
func (c *conn) invoke(ctx context.Context, p api.InvokeParams) (api.InvokeResult, error) {
	name := strings.TrimLeft(p.Name, "/")
	if name == "" {
		return api.InvokeResult{}, errBadParams{errors.New("name: it is empty")}
	}
	text, found, err := c.server.host.Commands.Invoke(ctx, p.SessionID, name, p.Input)
	if err != nil || found {
		return api.InvokeResult{Kind: api.InvokedText, Text: text}, noSession(p.SessionID, err)
	}
	if r, found, err := c.asMessage(ctx, p.SessionID, name, p.Input); err != nil || found {
		return r, noSession(p.SessionID, err)
	}
	fault, err := c.carry(ctx, p.SessionID, name, p.Input, p.Key)
	if err == nil && fault != "" {
		err = said("command /%s: %s", name, fault)
	}
	return api.InvokeResult{Kind: api.InvokedDone}, err
}

// asMessage returns the message that a skill or a prompt of an MCP server stands for. It
// reports false if there is neither, or a client has a command of that name.
func (c *conn) asMessage(ctx context.Context, id event.SessionID, name, input string) (api.InvokeResult, bool, error) {
	none := api.InvokeResult{}
	if _, commands := c.server.host.Clients.Abilities(id); slices.ContainsFunc(commands, func(d event.Command) bool { return strings.EqualFold(d.Name, name) }) {
		return none, false, nil
	}
	r := api.InvokeResult{Kind: api.InvokedPrompt, Display: strings.TrimSpace("/" + name + " " + input)}
	list, _, err := c.find(ctx, id)
	if err != nil {
		return none, false, err
	}
	if at := slices.IndexFunc(list, func(k event.SkillState) bool { return k.Enabled && k.Name == name }); at >= 0 {
		r.Prompt = strings.TrimSpace(fmt.Sprintf("Use the skill %q. %s", name, input))
		return r, true, c.server.host.Skills.Invoke(ctx, id, list[at].Skill)
	}
	prompt, found, err := c.server.host.MCP.ExpandPrompt(ctx, id, name, input)
	r.Prompt = prompt
	return r, found, err
}

// isWord reports whether a name can be written as the name of a command.
func isWord(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

// execute lets the client that has a command carry it out.
func (c *conn) execute(ctx context.Context, p api.ExecuteParams) (api.ExecuteResult, error) {
	if strings.TrimLeft(p.Name, "/") == "" {
		return api.ExecuteResult{}, errBadParams{errors.New("commandName: it is empty")}
	}
	fault, err := c.carry(ctx, p.SessionID, p.Name, p.Args, p.Key)
	return api.ExecuteResult{Error: fault}, err
}

func (c *conn) carry(ctx context.Context, id event.SessionID, name, args, key string) (fault string, err error) {
	fault, err = c.server.host.Commands.Execute(ctx, id, name, args, key)
	if errors.Is(err, session.ErrNobody) {
		return fmt.Sprintf("Unknown command: /%s", strings.TrimLeft(name, "/")), nil
	}
	return fault, noSession(id, err)
}

// enqueue puts a command behind what the session has to do. It is stored when
// the answer goes out.
func (c *conn) enqueue(ctx context.Context, p api.EnqueueParams) (api.EnqueueResult, error) {
	if strings.TrimLeft(strings.TrimSpace(p.Command), "/") == "" {
		return api.EnqueueResult{}, errBadParams{errors.New("command: it is empty")}
	}
	_, err := c.server.host.Send(ctx, p.SessionID, event.InputAcceptedData{
		Kind: event.InputCommand, Prompt: p.Command, DisplayPrompt: p.Display, Key: p.Key,
	})
	return api.EnqueueResult{Queued: err == nil}, noSession(p.SessionID, err)
}

func (c *conn) respond(ctx context.Context, p api.RespondParams) (api.Success, error) {
	won, err := c.server.host.Commands.FinishQueued(ctx, p.SessionID, p.RequestID, p.Key, session.Queued{Handled: p.Result.Handled, Stop: p.Result.Stop})
	return api.Success{Success: won}, noSession(p.SessionID, err)
}

// answerCommand records that a client has carried out a command. As the protocol has it, an
// answer to an unknown command is no error, because nothing waits for it. If another client
// has answered before, the result says so.
func (c *conn) answerCommand(ctx context.Context, p api.AnswerCommandParams) (api.Success, error) {
	if p.RequestID == "" {
		return api.Success{}, missing("requestId")
	}
	won, err := c.server.host.Commands.Finish(ctx, p.SessionID, p.RequestID, p.Key, p.Error)
	if err != nil || won {
		return api.Success{Success: won}, noSession(p.SessionID, err)
	}
	late, err := c.server.host.Questions.Answered(ctx, p.SessionID, p.RequestID)
	return api.Success{Success: !late}, noSession(p.SessionID, err)
}
