package anthropictest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// wireRequest is the body of a request.
type wireRequest struct {
	Model     string      `json:"model"`
	MaxTokens int         `json:"max_tokens"`
	System    []wireBlock `json:"system"`
	Messages  []struct {
		Role    string      `json:"role"`
		Content wireContent `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		Cache       json.RawMessage `json:"cache_control"`
	} `json:"tools"`
	Output struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
	Stream bool `json:"stream"`
}

type wireBlock struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   wireContent     `json:"content"`
	IsError   bool            `json:"is_error"`
	Cache     json.RawMessage `json:"cache_control"`
}

// wireContent is a list of blocks, or a text.
type wireContent []wireBlock

func (c *wireContent) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*[]wireBlock)(c))
	}
	*c = wireContent{{Type: "text"}}
	return json.Unmarshal(data, &(*c)[0].Text)
}

// A reader turns what is on the wire into a request, and refuses what the
// provider would refuse.
type reader struct {
	req     *model.Request
	markers int
	open    []string // calls of the last answer that have no result yet
}

func decodeRequest(body []byte) (*model.Request, bool, error) {
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, false, fmt.Errorf("the body is no request for a message: %w", err)
	}
	r := &reader{req: &model.Request{Model: wire.Model, MaxOutput: wire.MaxTokens, ReasoningEffort: wire.Output.Effort}}
	if err := r.read(&wire); err != nil {
		return nil, false, err
	}
	return r.req, wire.Stream, nil
}

func (r *reader) read(wire *wireRequest) error {
	if wire.MaxTokens < 1 {
		return errors.New("max_tokens: it must be at least 1")
	}
	for i, b := range wire.System {
		if err := r.check(b); err != nil {
			return fmt.Errorf("system.%d: %w", i, err)
		}
		r.req.System += b.Text
	}
	if len(wire.Tools) > 0 {
		r.req.Tools = new(model.Tools)
	}
	for _, t := range wire.Tools {
		r.mark(t.Cache)
		r.req.Tools.List = append(r.req.Tools.List, model.Tool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema})
	}
	if len(wire.Messages) == 0 {
		return errors.New("messages: at least one message is required")
	}
	for i, m := range wire.Messages {
		if want := [...]string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: the role is %q, and must be %q", i, m.Role, want)
		}
		if err := r.message(m.Role, m.Content); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if r.markers > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", r.markers)
	}
	return nil
}

func (r *reader) mark(cache json.RawMessage) {
	if len(cache) > 0 {
		r.markers++
	}
}

var validID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check refuses a block that makes no sense anywhere.
func (r *reader) check(b wireBlock) error {
	r.mark(b.Cache)
	switch {
	case b.Type == "text" && strings.TrimSpace(b.Text) == "":
		return errors.New("text content blocks must be non-empty")
	case strings.HasSuffix(b.Type, "thinking") && len(b.Cache) > 0:
		return errors.New("thinking blocks cannot have cache_control")
	case b.Type == "tool_use" && (!validID.MatchString(b.ID) || !validID.MatchString(b.Name)):
		return fmt.Errorf("the call %q of %q should match pattern '%s'", b.ID, b.Name, validID)
	case b.Type == "tool_use" && !strings.HasPrefix(string(b.Input), "{"):
		return errors.New("the input of a call must be an object")
	}
	return nil
}

func (r *reader) message(role string, blocks []wireBlock) error {
	if len(blocks) == 0 {
		return errors.New("all messages must have non-empty content")
	}
	add := r.userBlock
	if role == "assistant" {
		add = r.assistantBlock
		r.req.Messages = append(r.req.Messages, &model.Message{Role: model.Assistant})
	}
	for i, b := range blocks {
		err := r.check(b)
		if err == nil {
			err = add(i, b)
		}
		if err != nil {
			return fmt.Errorf("content.%d: %w", i, err)
		}
	}
	if role == "user" && len(r.open) > 0 {
		return fmt.Errorf("tool_use ids were found without tool_result blocks: %q", r.open)
	}
	return nil
}

func (r *reader) last() *model.Message { return r.req.Messages[len(r.req.Messages)-1] }

// userBlock adds a block of the user's turn. Each text begins a message, to
// which the pictures and the volatile tail after it belong.
func (r *reader) userBlock(i int, b wireBlock) error {
	if len(r.open) > 0 && b.Type != "tool_result" {
		return fmt.Errorf("tool_use ids were found without tool_result blocks: %q", r.open)
	}
	switch b.Type {
	case "tool_result":
		return r.result(b)
	case "text":
		if goesOn := i > 0 && r.last().Role == model.User; goesOn && strings.HasPrefix(b.Text, "<system_reminder>") {
			r.last().Text += "\n\n" + b.Text
			return nil
		}
		r.req.Messages = append(r.req.Messages, &model.Message{Role: model.User, Text: b.Text})
		return nil
	case "image":
		if i == 0 || r.last().Role != model.User {
			r.req.Messages = append(r.req.Messages, &model.Message{Role: model.User})
		}
		return addImage(r.last(), b)
	}
	return fmt.Errorf("a user has no blocks of type %q", b.Type)
}

func addImage(m *model.Message, b wireBlock) error {
	data, err := base64.StdEncoding.DecodeString(b.Source.Data)
	m.Images = append(m.Images, model.Image{MediaType: b.Source.MediaType, Data: data})
	return err
}

func (r *reader) result(b wireBlock) error {
	if len(r.open) == 0 || r.open[0] != b.ToolUseID {
		return fmt.Errorf("unexpected tool_use_id %q; expected are %q, in this order", b.ToolUseID, r.open)
	}
	r.open = r.open[1:]
	m := &model.Message{Role: model.ToolRole, CallID: b.ToolUseID, Failed: b.IsError}
	for _, c := range b.Content {
		err := r.check(c)
		if err == nil && c.Type == "image" {
			err = addImage(m, c)
		}
		if err != nil {
			return err
		}
		m.Text += c.Text
	}
	r.req.Messages = append(r.req.Messages, m)
	return nil
}

func (r *reader) assistantBlock(_ int, b wireBlock) error {
	m := r.last()
	switch b.Type {
	case "text":
		m.Text += b.Text
	case "thinking":
		m.Reasoning = &model.Reasoning{Text: b.Thinking, Opaque: b.Signature}
	case "redacted_thinking":
	case "tool_use":
		m.Calls = append(m.Calls, model.Call{ID: b.ID, Name: b.Name, Arguments: b.Input})
		r.open = append(r.open, b.ID)
	default:
		return fmt.Errorf("an assistant has no blocks of type %q", b.Type)
	}
	return nil
}
