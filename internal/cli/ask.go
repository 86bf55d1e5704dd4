package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A prompter sits at the terminal. Lines are read only when something was asked,
// so that nothing typed before is taken for an answer.
type prompter struct {
	tty     *os.File
	out     *printer
	paint   painter
	in      *bufio.Reader
	lines   chan string // what was typed; closed at the end of input
	reading bool
	shown   *question // the question that stands on the terminal
}

// newPrompter returns whoever is at the terminal: somebody must be able to read
// the question and to type the answer.
func (a *app) newPrompter() *prompter {
	tty := terminal(a.in)
	if tty == nil || terminal(a.err) == nil {
		return nil
	}
	return &prompter{tty: tty, out: a.err, paint: paint(a.err), in: bufio.NewReader(tty), lines: make(chan string)}
}

// line gives what the person typed; it is closed when nobody is there any more.
func (p *prompter) line() <-chan string {
	if p == nil {
		return nil
	}
	return p.lines
}

// show puts a question on the terminal and listens.
func (p *prompter) show(q question) {
	p.shown = &q
	if !p.reading {
		_ = forgetTyped(p.tty) // at worst, what was typed is the answer
		p.reading = true
		go p.read() // a read of a terminal cannot be ended: it ends with the process
	}
	p.out.printf("%s", p.text(q))
}

func (p *prompter) read() {
	line, err := p.in.ReadString('\n')
	if err != nil {
		close(p.lines)
		return
	}
	p.lines <- strings.TrimSpace(line)
}

// text is a question as a person reads it.
func (p *prompter) text(q question) string {
	text := p.paint.in(bold, "? "+plain(q.headline())) + "\n"
	if q.Input != nil {
		for i, choice := range q.Input.Choices {
			text += fmt.Sprintf("  %d  %s\n", i+1, oneLine(choice))
		}
	}
	return text + p.diff(q.change()) + p.paint.in(faint, q.keys()) + " "
}

// maxDiff is how many lines of a change are shown with a question.
const maxDiff = 40

// diff shows a change.
func (p *prompter) diff(text string) string {
	if text == "" {
		return ""
	}
	if i := strings.Index(text, "\n@@ "); i >= 0 {
		text = text[i+1:] // the question names the file
	}
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for _, line := range lines[:min(len(lines), maxDiff)] {
		colour := faint
		switch {
		case strings.HasPrefix(line, "+"):
			colour = green
		case strings.HasPrefix(line, "-"):
			colour = red
		}
		b.WriteString("  " + p.paint.in(colour, plain(line)) + "\n")
	}
	if more := len(lines) - maxDiff; more > 0 {
		b.WriteString(p.paint.in(faint, fmt.Sprintf("  … %d more lines", more)) + "\n")
	}
	return b.String()
}

// headline is the question itself.
func (q question) headline() string {
	if q.Input != nil {
		return q.Input.Question
	}
	return q.sentence()
}

// keys says what can be typed.
func (q question) keys() string {
	switch {
	case q.Permission != nil:
		return "[y]es, [a]lways in this session (" + oneLine(q.always()) + "), [n]o, or type what to do instead:"
	case q.Input != nil && len(q.Input.Choices) > 0:
		return "number or answer:"
	}
	return "answer:"
}

// typed is what a line means as an answer; empty if it means nothing.
func (q question) typed(line string) string {
	if q.Permission != nil {
		switch strings.ToLower(line) {
		case "y", "yes":
			return wordApprove
		case "a", "always":
			return wordSession
		case "n", "no":
			return wordReject
		}
	}
	if q.Input != nil {
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Input.Choices) {
			return q.Input.Choices[n-1]
		}
	}
	return line
}

// ask puts the first open question to the person, unless it stands there.
func (r *runner) ask() {
	p, open := r.prompter, r.unanswered()
	if p.shown != nil {
		for _, q := range open {
			if q.RequestID == p.shown.RequestID {
				return
			}
		}
		p.out.printf("\n%s\n", p.paint.in(faint, "(answered elsewhere)"))
		p.shown = nil
	}
	if len(open) > 0 {
		p.show(open[0])
	}
}

// reply takes what the person typed as the answer to the question that stands
// on the terminal.
func (r *runner) reply(ctx context.Context, line string, there bool) error {
	p := r.prompter
	p.reading = false
	if !there { // the end of input: nobody is here any more
		r.prompter = nil
		p.out.printf("\n")
		return nil
	}
	if p.shown == nil {
		return nil // it was answered elsewhere meanwhile
	}
	q := *p.shown
	p.shown = nil
	if line == "" {
		return nil // asked again
	}
	if _, err := q.answer(ctx, r.client, r.id, q.typed(line)); err != nil {
		return err
	}
	r.answered[q.RequestID] = true
	return nil
}
