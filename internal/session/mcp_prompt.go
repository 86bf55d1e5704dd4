package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/attach"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
)

// A PromptCommand is a prompt of an MCP server, as a command that people write with a slash.
type PromptCommand struct {
	Name        string // SERVER:PROMPT
	Description string
	Hint        string // what can be written behind it; empty if nothing
	Needed      bool   // true if something has to be
}

// PromptCommands returns the prompts of the MCP servers of a session as far as they are known.
func (m MCP) PromptCommands(ctx context.Context, id event.SessionID) ([]PromptCommand, error) {
	set, err := m.Set(ctx, id)
	if err != nil || set == nil {
		return nil, err
	}
	var list []PromptCommand
	for _, s := range set.List() {
		if s.Status == mcp.Disabled || s.Status == mcp.Stopped {
			continue
		}
		for _, p := range s.Prompts {
			c := PromptCommand{Name: s.Server.Name + ":" + p.Name, Description: mcp.Shown(p.Title, p.Description)}
			for _, a := range p.Arguments {
				if c.Needed = c.Needed || a.Required; a.Required {
					c.Hint += " <" + a.Name + ">"
				} else {
					c.Hint += " [" + a.Name + "]"
				}
			}
			c.Hint = strings.TrimPrefix(c.Hint, " ")
			list = append(list, c)
		}
	}
	return list, nil
}

// maxPromptText is the number of bytes that a message may have which a prompt becomes.
const maxPromptText = 512 << 10

// ExpandPrompt returns the message that a person sends with the command of a prompt of an MCP
// server. It reports false if no server has the prompt.
func (m MCP) ExpandPrompt(ctx context.Context, id event.SessionID, name, input string) (text string, found bool, err error) {
	if !strings.Contains(name, ":") {
		return "", false, nil
	}
	set, err := m.Set(ctx, id)
	if err != nil || set == nil {
		return "", false, err
	}
	for _, s := range set.List() {
		for _, p := range s.Prompts {
			if s.Server.Name+":"+p.Name != name {
				continue
			}
			args, err := mcp.PromptArguments(p, input)
			if err != nil {
				return "", true, fmt.Errorf("command /%s: %w", name, err)
			}
			got, err := set.Prompt(ctx, s.Server.Name, p.Name, args)
			if err != nil {
				return "", true, fmt.Errorf("command /%s: %w", name, err)
			}
			if text = mcp.PromptText(got); text == "" {
				return "", true, fmt.Errorf("command /%s: the prompt of the MCP server is empty", name)
			}
			if len(text) > maxPromptText {
				return "", true, fmt.Errorf("command /%s: the prompt of the MCP server has %d bytes, more than %d KiB", name, len(text), maxPromptText>>10)
			}
			return text, true, nil
		}
	}
	return "", false, nil
}

// resourceName cuts the name of a resource, @SERVER:URI, in two. It reports false if it is none.
func resourceName(name string) (server, uri string, ok bool) {
	rest, ok := strings.CutPrefix(name, "@")
	if !ok {
		return "", "", false
	}
	server, uri, ok = strings.Cut(rest, ":")
	return server, uri, ok && server != "" && uri != "" && !strings.Contains(server, "/")
}

// readResource returns a resource of an MCP server of a session as an attachment.
func (a Attachments) readResource(ctx context.Context, id event.SessionID, server, uri string) (blob attach.Blob, err error) {
	set, err := a.host.MCP.set(ctx, id)
	if err != nil {
		return blob, err
	}
	got, err := set.ReadResource(ctx, server, uri)
	if err != nil {
		return blob, err
	}
	var texts [][]byte
	for _, part := range got.Contents {
		if part == nil {
			continue
		}
		content := part.Blob
		if part.Text != "" || len(content) == 0 {
			content = []byte(strings.ToValidUTF8(part.Text, "\uFFFD"))
		}
		if len(content) > attach.MaxFile {
			return blob, fmt.Errorf("it has more than %d MiB", attach.MaxFile>>20)
		}
		texts = append(texts, content)
	}
	for _, text := range texts {
		if one, err := attach.New("", text); len(texts) > 1 && (err != nil || one.MIMEType != attach.Text) {
			return blob, errors.New("it has several parts that are not all text")
		}
	}
	blob, err = attach.New("", bytes.Join(texts, []byte("\n")))
	blob.Name = "@" + server + ":" + uri
	return blob, err
}
