package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Failure is an error as a provider reports it. Most providers send an object, some
// only a string.
type Failure struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    Code   `json:"code"`

	Details Details `json:"details"` // what Google adds to its errors
}

// Details are the details of an error, if they are a list of objects as those of Google:
// https://cloud.google.com/apis/design/errors.
type Details []struct {
	Type  string `json:"@type"`
	Delay string `json:"retryDelay"` // of a RetryInfo: a number of seconds with an s
}

// UnmarshalJSON decodes a list. What other providers call details is ignored.
func (d *Details) UnmarshalJSON(data []byte) error {
	type plain Details
	if json.Unmarshal(data, (*plain)(d)) != nil {
		*d = nil
	}
	return nil
}

// wait returns how long the provider wants us to wait, as it says beside the message; zero
// if it does not.
func (f *Failure) wait() time.Duration {
	for _, d := range f.Details {
		if seconds, ok := strings.CutSuffix(d.Delay, "s"); ok && strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			asked, _ := wait(seconds, time.Second)
			return asked
		}
	}
	return 0
}

func (f *Failure) Error() string { return f.Message }

// UnmarshalJSON decodes an object or a string.
func (f *Failure) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Message)
	}
	type plain Failure
	return json.Unmarshal(data, (*plain)(f))
}

// A Code is the code of a failure, which is a string or a number on the wire.
type Code string

// UnmarshalJSON decodes a string or a number.
func (c *Code) UnmarshalJSON(data []byte) error {
	if data[0] == '"' || data[0] == 'n' {
		return json.Unmarshal(data, (*string)(c))
	}
	*c = Code(data)
	return nil
}

// status returns the HTTP status that matches the type and code of the failure, or 0.
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

// overflow reports whether the request is too long for the model. There is a code for
// it, but many providers only say so in the message.
func (f *Failure) overflow() bool {
	return f.is("context_length_exceeded") || f.says(
		"context length", "context window", "context size", "context limit", "maximum context",
		"prompt is too long", "input is too long", "exceeds the maximum number of tokens")
}

// noQuota reports whether the account has no quota or credit left.
func (f *Failure) noQuota() bool {
	return f.is("insufficient_quota") || f.is("billing_error") || f.says("credit balance")
}

// rejectsReasoning reports whether the provider rejects reasoning that it sent earlier:
// because the account has changed, or because the conversation was shortened.
func (f *Failure) rejectsReasoning() bool {
	return f.is("invalid_encrypted_content") || f.says(
		"encrypted content", "encrypted_content", "thinking` block", "thinking block", "redacted_thinking`",
		"of type 'reasoning'", "property 'reasoning", "reasoning_content", "item with id 'rs_", "thought signature", "thought_signature", "extra_content", "reasoning_details")
}

// wantsResponses reports whether the model calls tools only on the Responses API.
func (f *Failure) wantsResponses() bool {
	return f.says("function tools with reasoning_effort are not supported", "only supported in v1/responses", "use /v1/responses")
}

func (f *Failure) says(any ...string) bool {
	said := strings.ToLower(f.Message)
	return slices.ContainsFunc(any, func(words string) bool { return strings.Contains(said, words) })
}

// readFailure reads the failure from the body of a response.
func readFailure(body io.Reader) *Failure {
	data, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	f := parseFailure(data)
	if f.Message == "" && isText(data) && !strings.HasPrefix(strings.TrimSpace(string(data)), "<") { // an HTML page does not help
		f.Message = string(data)
	}
	return f
}

// isText reports whether data begins like a text. Compressed data, for example, does not.
func isText(data []byte) bool {
	start := data[:min(len(data), 512)]
	for range utf8.UTFMax - 1 { // the last character may be cut
		if len(start) > 0 && !utf8.Valid(start) {
			start = start[:len(start)-1]
		}
	}
	return utf8.Valid(start) && !bytes.ContainsFunc(start, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

func parseFailure(data []byte) *Failure {
	var object struct {
		Error   *Failure `json:"error"`
		Message string   `json:"message"`
		Detail  string   `json:"detail"`
	}
	if data := strings.TrimSpace(string(data)); strings.HasPrefix(data, "[") { // some providers send a list with one element
		var list []json.RawMessage
		if json.Unmarshal([]byte(data), &list) == nil && len(list) > 0 {
			return parseFailure(list[0])
		}
	}
	_ = json.Unmarshal(data, &object) // the caller uses the text if it is not JSON
	if object.Error != nil {
		return object.Error
	}
	return &Failure{Message: cmp.Or(object.Message, object.Detail)}
}
