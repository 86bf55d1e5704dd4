package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// maxPrompt is the maximum number of bytes that are read from stdin.
const maxPrompt = 16 << 20

// stdinPatience is the time after which a person is told that the program reads stdin.
const stdinPatience = 3 * time.Second

// prompt returns the prompt: the arguments or the value of --prompt, and standard input
// unless that is a terminal. If the prompt is "-", standard input is all of it.
func (a *app) prompt(ctx context.Context, f *runFlags, args []string) (string, error) {
	text := strings.Join(args, " ")
	switch {
	case f.prompt != "" && text != "":
		return "", usagef("there are two prompts, an argument and --prompt: give only one")
	case f.prompt != "":
		text = f.prompt
	}
	if !utf8.ValidString(text) {
		return "", usagef("the prompt is not valid UTF-8: convert it, or put it into a file and give the name of the file in the prompt")
	}
	f.mentions = mentions(text) // what is piped in was not written by the person, and names no files
	if text != "-" && terminal(a.in) != nil {
		return text, nil
	}
	piped, err := a.readStdin(ctx)
	switch {
	case err != nil:
		return "", err
	case text == "-" || strings.TrimSpace(text) == "":
		return piped, nil
	case strings.TrimSpace(piped) == "":
		return text, nil
	}
	return text + "\n\n<stdin>\n" + piped + "\n</stdin>", nil
}

// readStdin returns what is on standard input, without the line breaks at its end. Whoever has
// left a pipe open by mistake is told what the program waits for, and can stop it: the
// goroutine that reads then ends with the process.
func (a *app) readStdin(ctx context.Context) (string, error) {
	type input struct {
		text []byte
		err  error
	}
	read := make(chan input, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(a.in, maxPrompt+1))
		read <- input{text, err}
	}()
	notice := time.NewTimer(stdinPatience)
	defer notice.Stop()
	for {
		select {
		case in := <-read:
			return stdinText(in.text, in.err)
		case <-notice.C:
			if !a.quiet {
				a.err.printf("abide: reading stdin to its end; to run without it, start with < /dev/null\n")
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// stdinText returns the text that was read from standard input.
func stdinText(text []byte, err error) (string, error) {
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read the prompt from stdin: %w", err)
	case len(text) > maxPrompt:
		return "", usagef("what is on stdin is longer than %d MiB: put it into a file and give the name of the file in the prompt", maxPrompt>>20)
	case !utf8.Valid(text):
		return "", usagef("what is on stdin is not valid UTF-8: convert it, or put it into a file and give the name of the file in the prompt")
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
