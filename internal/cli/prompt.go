package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxPrompt is the maximum number of bytes of a prompt on stdin.
const maxPrompt = 16 << 20

// prompt returns the prompt: the arguments, the value of --prompt, or standard input.
// Standard input is read only if the prompt is "-", or if there is no other prompt and
// it is not a terminal.
func (a *app) prompt(f *runFlags, args []string) (string, error) {
	text := strings.Join(args, " ")
	switch {
	case f.prompt != "" && text != "":
		return "", usagef("there are two prompts, an argument and --prompt: give only one")
	case f.prompt != "":
		text = f.prompt
	}
	if text == "-" || text == "" && terminal(a.in) == nil {
		var err error
		if text, err = a.readPrompt(); err != nil {
			return "", err
		}
	}
	if !utf8.ValidString(text) {
		return "", usagef("the prompt is not valid UTF-8: convert it, or put it into a file and give the name of the file in the prompt")
	}
	return text, nil
}

func (a *app) readPrompt() (string, error) {
	text, err := io.ReadAll(io.LimitReader(a.in, maxPrompt+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the prompt from stdin: %w", err)
	}
	if len(text) > maxPrompt {
		return "", usagef("the prompt on stdin is longer than %d MiB: put it into a file and give the name of the file in the prompt", maxPrompt>>20)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
