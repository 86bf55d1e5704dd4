package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// mostSystem is the size limit of a system prompt that a person gives.
const mostSystem = 256 << 10

// systemMessage returns the change to the system prompt that the flags ask for, in the form of
// the protocol; nil if they ask for none.
func (f *runFlags) systemMessage() (json.RawMessage, error) {
	change := struct {
		Mode    string `json:"mode"`
		Content string `json:"content"`
	}{"append", strings.TrimSpace(f.more)}
	if f.system != "" {
		text, err := readFile(f.system, mostSystem)
		switch {
		case err == nil && !utf8.Valid(text):
			err = errors.New("it is not UTF-8 text")
		case err == nil && strings.TrimSpace(string(text)) == "":
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, usagef("--system %s: %w", f.system, err)
		}
		change.Mode, change.Content = "replace", strings.TrimSpace(strings.TrimSpace(string(text))+"\n\n"+change.Content)
	}
	if change.Content == "" {
		return nil, nil
	}
	return json.Marshal(change)
}
