package remote

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// A Failure is what a provider says about an error. Most send an object, some
// only a sentence.
type Failure struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    Code   `json:"code"`
}

func (f *Failure) Error() string { return f.Message }

// UnmarshalJSON reads an object or a sentence.
func (f *Failure) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Message)
	}
	type plain Failure
	return json.Unmarshal(data, (*plain)(f))
}

// A Code is a word or a number.
type Code string

// UnmarshalJSON reads a word or a number.
func (c *Code) UnmarshalJSON(data []byte) error {
	if data[0] == '"' || data[0] == 'n' {
		return json.Unmarshal(data, (*string)(c))
	}
	*c = Code(data)
	return nil
}

// status is the HTTP status that fits what a provider calls the error, or 0.
func (f *Failure) status() int {
	switch word := strings.ToLower(f.Type + " " + string(f.Code)); {
	case f.overflow(), f.noQuota():
		return http.StatusBadRequest
	case strings.Contains(word, "rate_limit"), strings.Contains(word, "too_many_requests"):
		return http.StatusTooManyRequests
	case strings.Contains(word, "overloaded"), strings.Contains(word, "server_error"), strings.Contains(word, "unavailable"), strings.Contains(word, "api_error"):
		return http.StatusServiceUnavailable
	case strings.Contains(word, "timeout"):
		return http.StatusRequestTimeout
	case strings.Contains(word, "authentication"), strings.Contains(word, "api_key"):
		return http.StatusUnauthorized
	case strings.Contains(word, "permission"):
		return http.StatusForbidden
	case strings.Contains(word, "not_found"):
		return http.StatusNotFound
	case strings.Contains(word, "too_large"):
		return http.StatusRequestEntityTooLarge
	case strings.Contains(word, "invalid"), strings.Contains(word, "policy"):
		return http.StatusBadRequest
	}
	return 0
}

func (f *Failure) is(word string) bool { return string(f.Code) == word || f.Type == word }

// overflow reports whether the request is too long for the model. There is a
// code for it, but many providers have only words.
func (f *Failure) overflow() bool {
	return f.is("context_length_exceeded") || f.says(
		"context length", "context window", "context size", "context limit", "maximum context",
		"prompt is too long", "input is too long", "exceeds the maximum number of tokens")
}

// noQuota reports whether the request would be right if somebody paid for it.
func (f *Failure) noQuota() bool {
	return f.is("insufficient_quota") || f.is("billing_error") || f.says("credit balance")
}

// rejectsReasoning reports whether the provider does not know its own reasoning
// any more. It may belong to another account by now, or to a conversation that
// was shortened since.
func (f *Failure) rejectsReasoning() bool {
	return f.is("invalid_encrypted_content") || f.says(
		"encrypted content", "encrypted_content", "thinking` block", "thinking block", "redacted_thinking`",
		"of type 'reasoning'", "item with id 'rs_")
}

func (f *Failure) says(any ...string) bool {
	said := strings.ToLower(f.Message)
	return slices.ContainsFunc(any, func(words string) bool { return strings.Contains(said, words) })
}

// readFailure finds what a provider says in the body of a refusal.
func readFailure(body io.Reader) *Failure {
	data, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	f := parseFailure(data)
	if f.Message == "" && !strings.HasPrefix(strings.TrimSpace(string(data)), "<") { // a page for people says nothing
		f.Message = string(data)
	}
	return f
}

func parseFailure(data []byte) *Failure {
	var object struct {
		Error   *Failure `json:"error"`
		Message string   `json:"message"`
		Detail  string   `json:"detail"`
	}
	if data := strings.TrimSpace(string(data)); strings.HasPrefix(data, "[") { // a list of one
		var list []json.RawMessage
		if json.Unmarshal([]byte(data), &list) == nil && len(list) > 0 {
			return parseFailure(list[0])
		}
	}
	_ = json.Unmarshal(data, &object) // what is no JSON is shown as it is
	if object.Error != nil {
		return object.Error
	}
	return &Failure{Message: cmp.Or(object.Message, object.Detail)}
}
