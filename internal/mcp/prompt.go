package mcp

import (
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Shown returns what a server says of something in a line for people, cut: its title, or else
// its description.
func Shown(title, description string) string {
	for _, text := range []string{title, description} {
		if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
			return strings.Trim(quote(line, maxServerName), `"`)
		}
	}
	return ""
}

// PromptArguments reads the arguments of a prompt as a person writes them behind its command:
// NAME=VALUE, or values in the order of the arguments, of which the last one takes the rest.
// A value with spaces is in quotes.
func PromptArguments(p *sdk.Prompt, input string) (map[string]string, error) {
	var open []string // arguments that have no value
	for _, a := range p.Arguments {
		open = append(open, a.Name)
	}
	args := make(map[string]string)
	give := func(name, value string) {
		args[name] = value
		open = slices.DeleteFunc(open, func(n string) bool { return n == name })
	}
	rest := strings.TrimSpace(input)
	for rest != "" {
		word, after := firstWord(rest)
		name, value, named := strings.Cut(word, "=")
		switch {
		case named && slices.Contains(open, name):
			give(name, unquoted(value))
		case len(open) == 0:
			return nil, fmt.Errorf("it takes %d arguments, and %q is one more", len(p.Arguments), word)
		case len(open) == 1:
			give(open[0], unquoted(rest))
			after = ""
		default:
			give(open[0], unquoted(word))
		}
		rest = after
	}
	for _, a := range p.Arguments {
		if _, ok := args[a.Name]; a.Required && !ok {
			return nil, fmt.Errorf("the argument %s is missing: write %s=VALUE", a.Name, a.Name)
		}
	}
	return args, nil
}

// firstWord cuts the first word off a text. Spaces in quotes belong to it.
func firstWord(text string) (word, rest string) {
	quoted := false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\n'):
			return text[:i], strings.TrimLeft(text[i:], " \t\n")
		}
	}
	return text, ""
}

// unquoted returns a value without the quotes around it.
func unquoted(value string) string {
	if len(value) >= 2 && value[0] == '"' && strings.IndexByte(value[1:], '"') == len(value)-2 {
		return value[1 : len(value)-1]
	}
	return value
}

// PromptText returns the messages of a prompt as one message of a person.
func PromptText(r *sdk.GetPromptResult) string {
	var texts []string
	for _, m := range r.Messages {
		if m == nil {
			continue
		}
		var parts Result
		text := parts.add(m.Content)
		for _, image := range parts.Images {
			text = fmt.Sprintf("(an image of the type %s with %d bytes)", image.MIMEType, len(image.Data))
		}
		if m.Role == "assistant" && text != "" {
			text = "You have said: " + text
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return strings.ToValidUTF8(strings.Join(texts, "\n\n"), "\uFFFD")
}
