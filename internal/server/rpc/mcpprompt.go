package rpc

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
)

// A serverPrompt is a prompt of an MCP server, which people write as /SERVER:PROMPT.
type serverPrompt struct {
	server string
	*sdk.Prompt
}

// promptWait is how long a list of commands waits for the prompts of a server.
const promptWait = 3 * time.Second

// maxPromptText is the number of bytes of a message that a prompt may become.
const maxPromptText = 512 << 10

// prompts returns the prompts of the servers that are connected. A server that does not
// list them in time has none.
func (c *conn) prompts(ctx context.Context, id event.SessionID) ([]serverPrompt, error) {
	set, err := c.servers(ctx, id)
	if err != nil || set == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, promptWait)
	defer cancel()
	states := set.List()
	found := make([][]serverPrompt, len(states))
	var asking sync.WaitGroup
	for i, s := range states {
		if s.Status != mcp.Connected {
			continue
		}
		asking.Go(func() {
			list, err := set.Prompts(ctx, s.Server.Name)
			if err != nil {
				c.server.log.Debug("an MCP server does not list its prompts", "server", s.Server.Name, "err", err)
			}
			for _, one := range list {
				if one != nil && isWord(one.Name) {
					found[i] = append(found[i], serverPrompt{s.Server.Name, one})
				}
			}
		})
	}
	asking.Wait()
	var all []serverPrompt
	for _, list := range found {
		all = append(all, list...)
	}
	return all, nil
}

// isWord reports whether a name can be written as the name of a command.
func isWord(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

// info describes the prompt as a command.
func (p serverPrompt) info() api.CommandInfo {
	info := api.CommandInfo{Name: p.server + ":" + p.Name, Description: p.Description, Kind: api.CommandPrompt, During: true}
	if len(p.Arguments) == 0 {
		return info
	}
	info.Input = &api.CommandInput{}
	var hints []string
	for _, a := range p.Arguments {
		hint := "[" + a.Name + "]"
		if a.Required {
			hint, info.Input.Required = a.Name, true
		}
		hints = append(hints, hint)
	}
	info.Input.Hint = strings.Join(hints, " ")
	return info
}

// arguments gives each argument of the prompt a word of the input, and the last one what is
// left.
func (p serverPrompt) arguments(input string) (map[string]string, error) {
	values := make(map[string]string)
	rest := strings.TrimSpace(input)
	for i, a := range p.Arguments {
		word := rest
		if at := strings.IndexFunc(rest, unicode.IsSpace); at >= 0 && i < len(p.Arguments)-1 {
			word, rest = rest[:at], strings.TrimSpace(rest[at:])
		} else {
			rest = ""
		}
		if word == "" && a.Required {
			return nil, said("/%s:%s wants: %s", p.server, p.Name, p.info().Input.Hint)
		}
		if word != "" {
			values[a.Name] = word
		}
	}
	if rest != "" {
		return nil, said("/%s:%s takes nothing behind it", p.server, p.Name)
	}
	return values, nil
}

// promptText returns what a prompt of an MCP server becomes with some input. It reports false
// if there is no such prompt.
func (c *conn) promptText(ctx context.Context, id event.SessionID, name, input string) (text string, found bool, err error) {
	server, prompt, isPrompt := strings.Cut(name, ":")
	if !isPrompt {
		return "", false, nil
	}
	set, err := c.servers(ctx, id)
	if err != nil || set == nil {
		return "", false, err
	}
	if _, err := set.Get(server); err != nil {
		return "", false, nil // the name is that of no server
	}
	list, err := set.Prompts(ctx, server)
	if err != nil {
		return "", false, err
	}
	for _, one := range list {
		if one == nil || one.Name != prompt {
			continue
		}
		args, err := serverPrompt{server, one}.arguments(input)
		if err != nil {
			return "", true, err
		}
		got, err := set.Prompt(ctx, server, prompt, args)
		if err != nil {
			return "", true, err
		}
		text, err := messageOf(got)
		return text, true, err
	}
	return "", false, nil
}

// messageOf returns the texts of a prompt as one message.
func messageOf(r *sdk.GetPromptResult) (string, error) {
	var parts []string
	for _, m := range r.Messages {
		text := ""
		switch content := m.Content.(type) {
		case *sdk.TextContent:
			text = content.Text
		case *sdk.EmbeddedResource:
			if content.Resource == nil || content.Resource.Text == "" {
				return "", errNotText
			}
			text = content.Resource.Text
		case *sdk.ResourceLink:
			text = content.URI
		default:
			return "", errNotText
		}
		if m.Role == "assistant" {
			text = "The assistant said:\n" + text
		}
		parts = append(parts, text)
	}
	message := strings.Join(parts, "\n\n")
	switch {
	case strings.TrimSpace(message) == "":
		return "", said("the prompt of the MCP server is empty")
	case len(message) > maxPromptText:
		return "", said("the prompt of the MCP server is too long: %d bytes", len(message))
	}
	return message, nil
}

// errNotText means that a prompt contains something that a message cannot.
var errNotText = said("the prompt of the MCP server contains something other than text")
