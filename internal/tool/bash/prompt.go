package bash

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/process"
)

// prompts are the ends of an output with which programs ask for something. An
// angle bracket or a hash at the end is as often ordinary output.
var prompts = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\b(password|passphrase|passcode|pin|token|otp|username|user name|login|verification code)\b[^\n]{0,80}: ?$`,
	`[\[(]\s*y(es)?\s*[/|]\s*n(o)?\b[^\n\])]{0,20}[\])]\s*[:?]?\s*$`,
	`\b(are you sure|continue|proceed|overwrite|replace|confirm|really)\b[^\n]{0,80}\?\s*$`,
	`\b(press|hit)\b[^\n]{0,40}\b(key|enter|return)\b[^\n]{0,40}$`,
	`\b(enter|type|choose|select|input|which)\b[^\n]{0,80}[:?] ?$`,
	`\?\s$`,
	`^>>> $`,
}, `|`))

// Prompt returns what the end of an output asks for. It is a hint: it goes by the
// text alone, and a line that is complete asks for nothing.
func Prompt(output string) (string, bool) {
	line := output[strings.LastIndexByte(output, '\n')+1:]
	if strings.TrimSpace(line) == "" || len(line) > process.MaxLineLength || !prompts.MatchString(line) {
		return "", false
	}
	return strings.TrimSpace(line), true
}

// asks returns what a process seems to ask for. One without input asks nobody.
func asks(p process.Info, output string) string {
	if p.State.Ended() || !p.Stdin && !p.TTY {
		return ""
	}
	text, _ := Prompt(output)
	return text
}

const (
	promptQuiet = 2 * time.Second // so long nothing comes after a prompt
	promptTail  = 4 << 10         // bytes that are looked at
)

// WaitPrompt waits until a process seems to wait for input, and returns what it
// asks for and where its output was then: more output means that it goes on. It
// returns process.ErrEnded if it asked for nothing until its end.
func WaitPrompt(ctx context.Context, in Processes, p process.Info) (text string, at int64, err error) {
	for {
		if at, err = waitQuiet(ctx, in, p, promptQuiet); err != nil {
			return "", 0, err
		}
		chunk, err := in.Read(ctx, p.Owner, p.ID, process.ReadRequest{Offset: max(0, at-promptTail), Until: at})
		if err != nil {
			return "", 0, err
		}
		if text := asks(p, clean(chunk.Data)); at > 0 && text != "" {
			return text, at, nil
		}
		if _, err := waitMore(ctx, in, p, at); err != nil {
			return "", 0, err
		}
	}
}

// waitAnswered waits until a process does not ask for anything, or does no more.
func waitAnswered(ctx context.Context, in Processes, p process.Info) error {
	_, at, err := lastOutput(ctx, in, p)
	if err != nil {
		return err
	}
	chunk, err := in.Read(ctx, p.Owner, p.ID, process.ReadRequest{Offset: max(0, at-promptTail), Until: at})
	if err != nil || asks(p, clean(chunk.Data)) == "" {
		return err
	}
	_, err = waitMore(ctx, in, p, at)
	return err
}

// waitQuiet waits until a process has printed nothing for a while, and returns
// where its output is then. If there is no more to come, it is process.ErrEnded.
func waitQuiet(ctx context.Context, in Processes, p process.Info, quiet time.Duration) (int64, error) {
	for {
		last, at, err := lastOutput(ctx, in, p)
		if err != nil {
			return 0, err
		}
		rest := time.Until(last.Add(quiet))
		if rest <= 0 {
			return at, nil
		}
		soon, cancel := context.WithTimeout(ctx, rest)
		_, err = waitMore(soon, in, p, at)
		late := overdue(ctx, soon, err)
		cancel()
		if err != nil && !late {
			return 0, err
		}
		if err := pause(ctx, min(quiet/4, pace)); err != nil {
			return 0, err
		}
	}
}

// pace is how long is waited at least between two looks at a process that prints
// all the time.
const pace = 50 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastOutput returns when a process printed something last, or when it was
// started if it never did, and where its output is.
func lastOutput(ctx context.Context, in Processes, p process.Info) (time.Time, int64, error) {
	info, err := in.Get(ctx, p.Owner, p.ID)
	if err != nil {
		return time.Time{}, 0, err
	}
	at := info.Output.Bytes
	if at == 0 {
		return info.Started, 0, nil
	}
	chunk, err := in.Read(ctx, p.Owner, p.ID, process.ReadRequest{Offset: at - 1, Until: at})
	if err != nil || len(chunk.Runs) == 0 {
		return time.Now(), at, err
	}
	return chunk.Runs[len(chunk.Runs)-1].Time, at, nil
}

// waitMore waits until a process has printed something after an offset. If
// nothing comes any more, it is process.ErrEnded.
func waitMore(ctx context.Context, in Processes, p process.Info, at int64) (process.Chunk, error) {
	chunk, err := in.Read(ctx, p.Owner, p.ID, process.ReadRequest{Offset: at, Wait: true})
	if err == nil && chunk.Next <= at {
		err = process.ErrEnded
	}
	return chunk, err
}
