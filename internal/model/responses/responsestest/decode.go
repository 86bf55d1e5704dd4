package responsestest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// wireRequest is the body of a request.
type wireRequest struct {
	Model        string     `json:"model"`
	Instructions string     `json:"instructions"`
	Input        []wireItem `json:"input"`
	Tools        []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"tools"`
	Store     *bool `json:"store"`
	Stream    bool  `json:"stream"`
	Reasoning struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	MaxOutput int    `json:"max_output_tokens"`
	Session   string `json:"prompt_cache_key"`
}

type wireItem struct {
	Type      string      `json:"type"`
	Role      string      `json:"role"`
	Content   wireContent `json:"content"`
	CallID    string      `json:"call_id"`
	Name      string      `json:"name"`
	Arguments string      `json:"arguments"`
	Output    wireContent `json:"output"`
	Summary   wireContent `json:"summary"`
	Encrypted string      `json:"encrypted_content"`
}

type wirePart struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image string `json:"image_url"`
}

// wireContent is a list of parts, or a text.
type wireContent []wirePart

func (c *wireContent) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*[]wirePart)(c))
	}
	*c = wireContent{{}}
	return json.Unmarshal(data, &(*c)[0].Text)
}

// A reader turns what is on the wire into a request, and refuses what the
// provider would refuse.
type reader struct {
	req  *model.Request
	open map[string]bool // calls without a result
	next bool            // the item goes on with the last answer
}

func decodeRequest(body []byte) (*model.Request, bool, error) {
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, false, fmt.Errorf("the body is no request for a response: %w", err)
	}
	if wire.Store == nil || *wire.Store {
		return nil, false, errors.New("store: nothing is stored here, so it must be false")
	}
	r := &reader{open: make(map[string]bool), req: &model.Request{
		Session: wire.Session, Model: wire.Model, System: wire.Instructions, MaxOutput: wire.MaxOutput, ReasoningEffort: wire.Reasoning.Effort,
	}}
	if len(wire.Tools) > 0 {
		r.req.Tools = new(model.Tools)
	}
	for _, t := range wire.Tools {
		r.req.Tools.List = append(r.req.Tools.List, model.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	for i, item := range wire.Input {
		if err := r.item(item); err != nil {
			return nil, false, fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	for id := range r.open {
		return nil, false, fmt.Errorf("no tool output found for function call %s", id)
	}
	return r.req, wire.Stream, nil
}

func (r *reader) item(i wireItem) error {
	if i.Type == "" { // a message needs no name
		i.Type = "message"
	}
	switch {
	case i.Type == "message" && i.Role == "user":
		return r.add(&model.Message{Role: model.User}, i.Content)
	case i.Type == "message" && i.Role == "assistant":
		m := r.answer()
		for _, p := range i.Content {
			m.Text += p.Text
		}
	case i.Type == "reasoning":
		return r.thought(i)
	case i.Type == "function_call":
		m := r.answer()
		m.Calls = append(m.Calls, model.Call{ID: i.CallID, Name: i.Name, Arguments: json.RawMessage(i.Arguments)})
		r.open[i.CallID] = true
	case i.Type == "function_call_output":
		if !r.open[i.CallID] {
			return fmt.Errorf("no tool call found for function call output with call_id %s", i.CallID)
		}
		delete(r.open, i.CallID)
		return r.add(&model.Message{Role: model.ToolRole, CallID: i.CallID}, i.Output)
	default:
		return fmt.Errorf("there are no items of type %q and role %q", i.Type, i.Role)
	}
	return nil
}

func (r *reader) thought(i wireItem) error {
	if i.Encrypted == "" {
		return errors.New("item of type 'reasoning' not found; items are not persisted when `store` is set to false")
	}
	text := ""
	for _, p := range i.Summary {
		text += p.Text
	}
	r.answer().Reasoning = &model.Reasoning{Text: text, Encrypted: i.Encrypted}
	return nil
}

// answer is the message to which an item of the model belongs.
func (r *reader) answer() *model.Message {
	if !r.next {
		r.next = true
		r.req.Messages = append(r.req.Messages, &model.Message{Role: model.Assistant})
	}
	return r.req.Messages[len(r.req.Messages)-1]
}

// add adds a message with what is in it.
func (r *reader) add(m *model.Message, content []wirePart) error {
	r.next = false
	r.req.Messages = append(r.req.Messages, m)
	for _, p := range content {
		if p.Type != "input_image" {
			m.Text += p.Text
			continue
		}
		image, err := decodeImage(p.Image)
		if err != nil {
			return err
		}
		m.Images = append(m.Images, image)
	}
	return nil
}

func decodeImage(dataURL string) (model.Image, error) {
	head, data, ok := strings.Cut(dataURL, ";base64,")
	mediaType, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData {
		return model.Image{}, errors.New("a picture must be a data URL in base64")
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	return model.Image{MediaType: mediaType, Data: decoded}, err
}
