package openai

import (
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// A chunk is one event of a stream, or a whole reply. They differ only in the member of a
// choice that contains the message.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   *remote.Failure `json:"error"`
}

type choice struct {
	Index   int    `json:"index"`
	Delta   part   `json:"delta"`   // content in a stream
	Message part   `json:"message"` // content in a whole reply
	Finish  string `json:"finish_reason"`
}

type part struct {
	Content content `json:"content"`
	Refusal string  `json:"refusal"`
	// Providers use different names for reasoning.
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"`
	ReasoningText    string     `json:"reasoning_text"`
	Calls            []callPart `json:"tool_calls"`

	Extra remote.Members `json:"-"` // members that only the provider understands
}

// UnmarshalJSON decodes a message or a piece of one, with all of its members.
func (p *part) UnmarshalJSON(data []byte) (err error) {
	type plain part
	p.Extra, err = decodeWithRest(data, (*plain)(p), messageMembers)
	return err
}

// messageMembers and callMembers are the members that are not the provider's own.
var (
	messageMembers = []string{"role", "content", "refusal", "tool_calls", "function_call", "audio", "reasoning_content", "reasoning", "reasoning_text"}
	callMembers    = []string{"index", "id", "type", "function"}
)

// decodeWithRest decodes an object, and returns the members that are not known.
func decodeWithRest(data []byte, into any, known []string) (remote.Members, error) {
	if err := json.Unmarshal(data, into); err != nil {
		return nil, err
	}
	return remote.OwnMembers(data, known)
}

// thinking returns the piece of reasoning, and the member in which it stands.
func (p *part) thinking() (piece, member string) {
	switch {
	case p.ReasoningContent != "":
		return p.ReasoningContent, usualThoughts
	case p.Reasoning != "":
		return p.Reasoning, "reasoning"
	case p.ReasoningText != "":
		return p.ReasoningText, "reasoning_text"
	}
	return p.Content.Thoughts, contentThoughts
}

type callPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`

	Extra remote.Members `json:"-"` // members that only the provider understands
}

// UnmarshalJSON decodes a call or a piece of one, with all of its members.
func (p *callPart) UnmarshalJSON(data []byte) (err error) {
	type plain callPart
	p.Extra, err = decodeWithRest(data, (*plain)(p), callMembers)
	return err
}

// A content is a text, or a list of parts, some of which have a text and some the reasoning
// before it.
type content struct{ Text, Thoughts string }

// UnmarshalJSON decodes a string or a list.
func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return json.Unmarshal(data, &c.Text)
	}
	var list []struct {
		Text     string `json:"text"`
		Thinking parts  `json:"thinking"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	var text, thoughts strings.Builder
	for _, p := range list {
		text.WriteString(p.Text)
		thoughts.WriteString(string(p.Thinking))
	}
	*c = content{text.String(), thoughts.String()}
	return nil
}

// parts is a text, or the texts of the parts of a list. Any other value is none.
type parts string

// UnmarshalJSON decodes a string or a list.
func (p *parts) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(p))
	case '[':
	default:
		return nil
	}
	var list []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, one := range list {
		*p += parts(one.Text)
	}
	return nil
}

// arguments is a string that contains JSON, or the JSON itself.
type arguments string

func (a *arguments) UnmarshalJSON(data []byte) error {
	if data[0] == '"' || data[0] == 'n' {
		return json.Unmarshal(data, (*string)(a))
	}
	*a = arguments(data)
	return nil
}

type usage struct {
	Prompt        remote.Tokens `json:"prompt_tokens"`
	Completion    remote.Tokens `json:"completion_tokens"`
	PromptDetails struct {
		Cached  remote.Tokens `json:"cached_tokens"`
		Written remote.Tokens `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning remote.Tokens `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// UnmarshalJSON decodes what it can. It has no errors.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	remote.DecodeUsage(data, (*plain)(u))
	return nil
}

func (u *usage) model() model.Usage {
	cached := u.PromptDetails
	return model.Usage{
		Input:      int64(max(0, u.Prompt-cached.Cached-cached.Written)),
		Output:     int64(u.Completion),
		CacheRead:  int64(cached.Cached),
		CacheWrite: int64(cached.Written),
		Reasoning:  int64(u.CompletionDetails.Reasoning),
	}
}

func decodeChunk(data []byte) (*chunk, error) {
	c := new(chunk)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, remote.NotUnderstood(data, err)
	}
	return c, nil
}
