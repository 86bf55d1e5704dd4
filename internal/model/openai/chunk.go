package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// A chunk is one event of a stream, or a whole reply: these differ only in
// where a choice keeps its part of the message.
type chunk struct {
	ID      string   `json:"id"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	Error   *failure `json:"error"`
}

type choice struct {
	Index   int    `json:"index"`
	Delta   part   `json:"delta"`   // in a stream
	Message part   `json:"message"` // in a whole reply
	Finish  string `json:"finish_reason"`
}

type part struct {
	Content text   `json:"content"`
	Refusal string `json:"refusal"`
	// Providers do not agree on the name of what a model thinks.
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"`
	ReasoningText    string     `json:"reasoning_text"`
	Calls            []callPart `json:"tool_calls"`
}

func (p *part) thinking() string {
	switch {
	case p.ReasoningContent != "":
		return p.ReasoningContent
	case p.Reasoning != "":
		return p.Reasoning
	}
	return p.ReasoningText
}

type callPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

// text is a string, or a list of parts of which some have a text.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return json.Unmarshal(data, (*string)(t))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	*t = text(all.String())
	return nil
}

// arguments is a string that holds JSON, or that JSON itself.
type arguments string

func (a *arguments) UnmarshalJSON(data []byte) error {
	if data[0] == '"' || data[0] == 'n' {
		return json.Unmarshal(data, (*string)(a))
	}
	*a = arguments(data)
	return nil
}

type usage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *usage) model() model.Usage {
	return model.Usage{
		Input:     max(0, u.Prompt-u.PromptDetails.Cached),
		Output:    u.Completion,
		CacheRead: u.PromptDetails.Cached,
		Reasoning: u.CompletionDetails.Reasoning,
	}
}

// A failure is what a provider says about an error. Most send an object, some
// only a sentence.
type failure struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    code   `json:"code"`
}

func (f *failure) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Message)
	}
	type plain failure
	return json.Unmarshal(data, (*plain)(f))
}

// code is a word or a number.
type code string

func (c *code) UnmarshalJSON(data []byte) error {
	if data[0] == '"' || data[0] == 'n' {
		return json.Unmarshal(data, (*string)(c))
	}
	*c = code(data)
	return nil
}

// badReply is a reply that is not what the wire promises.
type badReply struct{ what string }

func (e badReply) Error() string { return e.what }

func decodeChunk(data []byte) (*chunk, error) {
	c := new(chunk)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, badReply{fmt.Sprintf("it is no JSON of a chat completion (%v, in %s)", err, excerpt(data))}
	}
	return c, nil
}

// excerpt is more of some bytes than will be quoted of them.
func excerpt(data []byte) string {
	const enough = 2 << 10
	data = bytes.TrimSpace(data)
	if len(data) <= enough {
		return string(data)
	}
	return string(data[:enough]) + "…"
}
