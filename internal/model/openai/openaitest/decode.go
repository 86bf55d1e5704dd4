package openaitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// wireRequest is the body of a request.
type wireRequest struct {
	Model    string        `json:"model"`
	Messages []wireMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Stream          bool   `json:"stream"`
	ReasoningEffort string `json:"reasoning_effort"`
	MaxOutput       int    `json:"max_completion_tokens"`
}

type wireMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// decodeRequest reads a request, and whether its reply is to be streamed.
func decodeRequest(body []byte) (*model.Request, bool, error) {
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, false, fmt.Errorf("the body is no chat request: %w", err)
	}
	req := &model.Request{Model: wire.Model, ReasoningEffort: wire.ReasoningEffort, MaxOutput: wire.MaxOutput}
	for i, m := range wire.Messages {
		if err := addMessage(req, m); err != nil {
			return nil, false, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	if len(wire.Tools) > 0 {
		req.Tools = new(model.Tools)
	}
	for _, t := range wire.Tools {
		f := t.Function
		req.Tools.List = append(req.Tools.List, model.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	return req, wire.Stream, nil
}

func addMessage(req *model.Request, w wireMessage) error {
	text, images, err := decodeContent(w.Content)
	if err != nil {
		return err
	}
	switch w.Role {
	case "system":
		if req.System != "" || len(req.Messages) > 0 {
			return fmt.Errorf("a system message must be the first and the only one")
		}
		req.System = text
		return nil
	case "user", "assistant", "tool":
	default:
		return fmt.Errorf("there is no role %q", w.Role)
	}
	m := &model.Message{Role: model.Role(w.Role), Text: text, Images: images, CallID: w.CallID}
	for _, c := range w.ToolCalls {
		m.Calls = append(m.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Arguments: json.RawMessage(c.Function.Arguments)})
	}
	req.Messages = append(req.Messages, m)
	return nil
}

// decodeContent reads a string, null, or a list of texts and pictures.
func decodeContent(raw json.RawMessage) (text string, images []model.Image, err error) {
	if len(raw) == 0 {
		return "", nil, nil
	}
	if raw[0] != '[' {
		err = json.Unmarshal(raw, &text)
		return text, nil, err
	}
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", nil, err
	}
	for _, p := range parts {
		if p.Type != "image_url" {
			text += p.Text
			continue
		}
		image, err := decodeImage(p.Image.URL)
		if err != nil {
			return "", nil, err
		}
		images = append(images, image)
	}
	return text, images, nil
}

func decodeImage(dataURL string) (model.Image, error) {
	head, data, ok := strings.Cut(dataURL, ";base64,")
	mediaType, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData {
		return model.Image{}, fmt.Errorf("a picture must be a data URL in base64")
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	return model.Image{MediaType: mediaType, Data: decoded}, err
}
