package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Endpoint returns the endpoint that [model] sets itself.
func (m Model) Endpoint() Provider {
	return Provider{
		Scheme: m.Scheme, BaseURL: m.BaseURL, APIKeyEnv: m.APIKeyEnv, APIKeyCommand: m.APIKeyCommand,
		Profile: m.Profile, ExtraBody: m.ExtraBody, CacheTTL: m.CacheTTL, Headers: m.Headers,
	}
}

// check adds the values of an endpoint that are invalid by themselves.
func (p Provider) check(list []mistake, at path) []mistake {
	list = jsonObject(list, at.with("extra_body"), p.ExtraBody)
	if p.APIKeyCommand != "" && strings.TrimSpace(p.APIKeyCommand) == "" || strings.ContainsRune(p.APIKeyCommand, 0) {
		list = append(list, wrong(at.with("api_key_command"), "%q is not a command", p.APIKeyCommand))
	}
	if p.APIKeyCommand != "" && p.APIKeyEnv != "" {
		list = append(list, wrong(at.with("api_key_command"), "there is api_key_env as well; use one of them"))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		if why := wrongHeader(name, p.Headers[name]); why != "" {
			list = append(list, wrong(at.with("headers").with(name), "%s", why))
		}
	}
	return list
}

// transportHeaders are headers that are not for users to set: they say how a request is sent.
var transportHeaders = []string{"host", "content-length", "content-type", "transfer-encoding", "connection"}

// wrongHeader returns what is wrong with a header; empty if it can be sent. It never repeats the
// value, which may be a secret.
func wrongHeader(name, value string) string {
	switch _, err := Expand(value, func(string) string { return "x" }); {
	case !isToken(name):
		return "it is not the name of a header"
	case slices.Contains(transportHeaders, strings.ToLower(name)):
		return "abide sets this header itself"
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "its value has control characters"
	case err != nil:
		return err.Error()
	}
	return ""
}

// isToken reports whether a text can be the name of a header.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// Expand replaces each ${NAME} in a value. An empty value of a variable is an error, because
// nobody means to send a header without its key.
func Expand(value string, lookup func(name string) string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !isVariable(name) {
			return "", fmt.Errorf("after ${ there is no name of a variable with a } behind it")
		}
		text := lookup(name)
		if text == "" {
			return "", fmt.Errorf("the variable %s is not set: set it", name)
		}
		b.WriteString(text)
		value = after
	}
}

// Variables returns the names of the variables that the headers of an endpoint use.
func (p Provider) Variables() (names []string) {
	for _, value := range p.Headers {
		_, _ = Expand(value, func(name string) string {
			names = append(names, name)
			return "x"
		})
	}
	return names
}

func isVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_')
	}) && (name[0] < '0' || name[0] > '9')
}
