package bash

import (
	"context"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/process"
)

// prompts matches a last line with which programs ask for input. An angle bracket or
// a hash at the end is not enough: it is as often ordinary output.
var prompts = lazyregexp.New(`(?i)` +
	`\b(password|passphrase|passcode|pin|token|otp|username|user name|login|verification code)\b[^\n]{0,80}: ?$` +
	`|[\[(]\s*y(es)?\s*[/|]\s*n(o)?\b[^\n\])]{0,20}[\])]\s*[:?]?\s*$` +
	`|\b(are you sure|continue|proceed|overwrite|replace|confirm|really)\b[^\n]{0,80}\?\s*$` +
	`|\b(press|hit)\b[^\n]{0,40}\b(key|enter|return)\b[^\n]{0,40}$` +
	`|\b(enter|type|choose|select|input|which)\b[^\n]{0,80}[:?] ?$` +
	`|\?\s$` +
	`|^>>> $`)

// findPrompt returns the question at the end of an output. It is only a guess from the
// text; a complete line is never a question.
func findPrompt(output string) (string, bool) {
	line := output[strings.LastIndexByte(output, '\n')+1:]
	if strings.TrimSpace(line) == "" || len(line) > process.MaxLineLength || !prompts.MatchString(line) {
		return "", false
	}
	return strings.TrimSpace(line), true
}

// questionIn returns the question that a process seems to ask. A process that reads its
// terminal asks for input whatever it has printed; otherwise the output decides.
func questionIn(p process.Info, output string) string {
	if hasNoInput(p) {
		return ""
	}
	if p.Reading {
		return lastLine(output)
	}
	text, _ := findPrompt(output)
	return text
}

// hasNoInput reports whether a process cannot read input.
func hasNoInput(p process.Info) bool { return p.State.Ended() || !p.Stdin && !p.TTY }

// lastLine returns the last line that is not empty.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	if output == "" {
		return "It waits for input and does not say what for."
	}
	return oneLine(output[strings.LastIndexByte(output, '\n')+1:], process.MaxLineLength)
}

const (
	promptQuiet = 2 * time.Second  // time without output after which the last line may be a prompt
	promptTail  = 4 << 10          // number of bytes at the end of the output that are checked
	firstLook   = time.Second      // first pause between checks of a quiet terminal; each pause is twice as long as the last
	lastLook    = 10 * time.Second // longest pause between checks
)

// waitPrompt waits until a process seems to wait for input. It returns the question,
// and the length of the output at that time: more output means that the process
// continues. The error is process.ErrEnded if the process ends without a question.
func waitPrompt(ctx context.Context, in Processes, p process.Info) (text string, at int64, err error) {
	for {
		if _, err = waitQuiet(ctx, in, p, promptQuiet); err != nil {
			return "", 0, err
		}
		more := false
		for pause := firstLook; !more; pause = min(2*pause, lastLook) {
			if text, at, err = question(ctx, in, p); text != "" || err != nil {
				return text, at, err
			}
			if more, err = waitOutput(ctx, in, p, at, pause); err != nil {
				return "", 0, err
			}
		}
	}
}

// question returns the question that a process asks now, if any, and the length of its
// output.
func question(ctx context.Context, in Processes, p process.Info) (text string, at int64, err error) {
	if p, err = in.Get(ctx, p.Owner, p.ID); err != nil {
		return "", 0, err
	}
	text, err = questionOf(ctx, in, p)
	return text, p.Output.Bytes, err
}

// questionOf is question for a process whose info is up to date.
func questionOf(ctx context.Context, in Processes, p process.Info) (string, error) {
	at := p.Output.Bytes
	if at == 0 || hasNoInput(p) {
		return questionIn(p, ""), nil
	}
	chunk, err := in.Read(ctx, p.Owner, p.ID, process.ReadRequest{Offset: max(0, at-promptTail), Until: at})
	return questionIn(p, clean(chunk.Data)), err
}

// waitOutput waits until a process prints something after an offset, and reports whether it
// did. It waits only for a limited time if the process has a terminal, because such a
// process may begin to read without printing anything.
func waitOutput(ctx context.Context, in Processes, p process.Info, at int64, most time.Duration) (bool, error) {
	soon, cancel := ctx, context.CancelFunc(func() {})
	if p.TTY {
		soon, cancel = context.WithTimeout(ctx, most)
	}
	defer cancel()
	_, err := waitMore(soon, in, p, at)
	if overdue(ctx, soon, err) {
		return false, nil
	}
	return true, err
}

// waitAnswered waits until a process asks no question, or continues after one.
func waitAnswered(ctx context.Context, in Processes, p process.Info) error {
	text, at, err := question(ctx, in, p)
	if err == nil && text != "" {
		_, err = waitMore(ctx, in, p, at)
	}
	return err
}

// waitQuiet waits until a process has printed nothing for a while, and returns the
// length of its output. The error is process.ErrEnded if the output is complete.
func waitQuiet(ctx context.Context, in Processes, p process.Info, quiet time.Duration) (int64, error) {
	length, seen := int64(-1), time.Time{} // the length of the output, and when it was seen first
	for {
		last, at, err := lastOutput(ctx, in, p)
		if err != nil {
			return 0, err
		}
		if at != length {
			length, seen = at, time.Now()
		}
		if seen.Before(last) {
			last = seen
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
		if err := sleep(ctx, min(quiet/4, minPause)); err != nil {
			return 0, err
		}
	}
}

// minPause is the shortest pause between two checks of a process that prints all the time.
const minPause = 50 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastOutput returns the time until which the last output of a process may have come, or
// the time of its start if it has printed nothing, and the length of its output. The log
// knows the time of the first byte of a run.
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
	return chunk.Runs[len(chunk.Runs)-1].Time.Add(process.MaxRun), at, nil
}

// waitMore waits until a process has printed something after an offset, and returns it.
// The error is process.ErrEnded if the output is complete.
func waitMore(ctx context.Context, in Processes, p process.Info, at int64) (process.Chunk, error) {
	chunk, err := in.Read(ctx, p.Owner, p.ID, process.ReadRequest{Offset: at, Wait: true})
	if err == nil && chunk.Next <= at {
		err = process.ErrEnded
	}
	return chunk, err
}
