package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// A prompter asks the person at the terminal. It reads lines only after it has asked,
// so that text that was typed before is not taken for an answer.
type prompter struct {
	tty     *os.File
	out     *printer
	paint   painter
	in      *bufio.Reader
	lines   chan string // lines that were typed; closed at the end of input
	reading bool
	shown   *question // the question that is shown; nil if there is none
}

// newPrompter returns a prompter, or nil unless both stdin and stderr are terminals: a
// person must be able to read the question and to type the answer.
func (a *app) newPrompter() *prompter {
	tty := terminal(a.in)
	if tty == nil || terminal(a.err) == nil {
		return nil
	}
	return &prompter{tty: tty, out: a.err, paint: paint(a.err), in: bufio.NewReader(tty), lines: make(chan string)}
}

// line returns the channel of typed lines, which is closed at the end of input. It is
// nil without a prompter.
func (p *prompter) line() <-chan string {
	if p == nil {
		return nil
	}
	return p.lines
}

// show prints a question and starts to read the answer.
func (p *prompter) show(q question) {
	p.shown = &q
	if !p.reading {
		_ = forgetTyped(p.tty) // if it fails, text that was typed before counts as the answer
		p.reading = true
		go p.read() // a read from a terminal cannot be cancelled: it ends with the process
	}
	p.out.printf("%s", reveal(p.text(q)))
}

func (p *prompter) read() {
	line, err := p.in.ReadString('\n')
	if err != nil {
		close(p.lines)
		return
	}
	p.lines <- strings.TrimSpace(line)
}

// text returns a question as it is printed.
func (p *prompter) text(q question) string {
	text := p.paint.in(bold, "? "+plain(q.headline())) + "\n"
	if q.Input != nil {
		for i, choice := range q.Input.Choices {
			text += fmt.Sprintf("  %d  %s\n", i+1, oneLine(choice))
		}
	}
	for _, line := range q.details() {
		text += p.paint.in(faint, "  "+line) + "\n"
	}
	return text + diffText(p.paint, q.change(), maxDiff) + p.paint.in(faint, q.keys()) + " "
}

// maxDiff is the maximum number of lines of a diff that are shown with a question at a
// terminal. A person who wants to see the rest types wordDiff.
const maxDiff = 200

// diffText returns a diff as it is printed, and at most a number of its lines; 0 for all.
func diffText(paint painter, text string, most int) string {
	lines := readableDiff(text)
	more := 0
	if most > 0 && len(lines) > most {
		lines, more = lines[:most], len(lines)-most
	}
	var b strings.Builder
	for _, line := range lines {
		colour := faint
		switch {
		case strings.HasPrefix(line, "+"):
			colour = green
		case strings.HasPrefix(line, "-"):
			colour = red
		}
		b.WriteString("  " + paint.in(colour, plain(line)) + "\n")
	}
	if more > 0 {
		b.WriteString(paint.in(bold, fmt.Sprintf("  … %s: type %s to see the whole change, or run: abide questions", plural(more, "more line is not shown", "more lines are not shown"), wordDiff)) + "\n")
	}
	return b.String()
}

// readableDiff returns the lines of a diff without those that say nothing: the ids of
// git, which are not known, and the name of the file if there is only one, because the
// question has it. Lines of a file begin with a blank, a plus or a minus, so none of them
// is taken for a line of the head.
func readableDiff(text string) []string {
	several := strings.Count("\n"+text, "\ndiff --git ") > 1
	if i := strings.Index(text, "\n@@ "); i >= 0 && !several {
		text = text[i+1:]
	}
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "create file mode ") || strings.HasPrefix(line, "index ")
	})
}

// headline returns the text of the question.
func (q question) headline() string {
	if q.Input != nil {
		return q.Input.Question
	}
	return q.sentence()
}

// keys returns the line that says what can be typed.
func (q question) keys() string {
	switch {
	case q.Permission != nil:
		keys := []string{"[y]es, once"}
		for _, o := range q.offers() {
			if o.ID != event.OfferOnce {
				keys = append(keys, "["+offerKeys[o.ID]+"] yes, and "+oneLine(o.Label))
			}
		}
		return strings.Join(append(keys, "[n]o", "[?] explain, or say what to do instead:"), "; ")
	case q.Plan != nil:
		return "[y]es (" + oneLine(q.Plan.Recommended) + "), " + oneLine(strings.Join(q.Plan.Actions, ", ")) + ", [n]o, or say what to change:"
	case q.Input != nil && len(q.Input.Choices) > 0:
		return "number or answer:"
	}
	return "answer:"
}

// typed returns the answer that a typed line stands for: a choice can be typed as its
// number.
func (q question) typed(line string) string {
	if q.Input != nil {
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Input.Choices) {
			return q.Input.Choices[n-1]
		}
	}
	return line
}

// ask shows the first open question, unless a question is shown that is still open.
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

// reply answers the shown question with a typed line. there is false at the end of
// input.
func (r *runner) reply(ctx context.Context, line string, there bool) error {
	p := r.prompter
	p.reading = false
	if !there {
		r.prompter = nil
		p.out.printf("\n")
		return nil
	}
	if p.shown == nil {
		return nil // another client has answered it
	}
	q := *p.shown
	p.shown = nil
	switch {
	case line == "":
		return nil // ask shows the question again
	case line == wordExplain && q.Permission != nil:
		p.out.printf("%s", reveal(q.explanation()))
		return nil
	case line == wordDiff && q.change() != "":
		p.out.printf("%s", reveal(diffText(p.paint, q.change(), 0)))
		return nil
	}
	_, err := q.answer(ctx, r.client, r.id, q.typed(line))
	if again, ok := errors.AsType[*unclear](err); ok {
		p.out.printf("%s\n", p.paint.in(faint, oneLine(again.text)))
		return nil
	}
	if err != nil {
		return err
	}
	if feedback(line) && (q.Permission != nil || q.Plan != nil) {
		p.out.printf("%s\n", p.paint.in(faint, "(refused; the model is told why)"))
	}
	r.answered[q.RequestID] = true
	return nil
}
