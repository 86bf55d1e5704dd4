package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// A prompter asks the person at the terminal. A line that was typed is the answer to the
// question that was on the screen when the person began to type it, and to no other: what
// is in the terminal when a question is shown is discarded.
type prompter struct {
	tty   *os.File
	out   *printer
	paint painter
	lines chan typedLine // lines that were typed; closed at the end of input

	seen    string // id of the question that was shown whole last
	mu      sync.Mutex
	shown   *question // the question that is shown; nil if there is none
	reading bool      // true while a goroutine waits for a line
	partial string    // beginning of a line that Ctrl-D has sent before its end
}

// A typedLine is a line that a person typed, and the question that it is for.
type typedLine struct {
	text string
	to   question
}

// newPrompter returns a prompter, or nil unless both stdin and stderr are terminals: a
// person must be able to read the question and to type the answer.
func (a *app) newPrompter() *prompter {
	tty := terminal(a.in)
	if tty == nil || terminal(a.err) == nil {
		return nil
	}
	return &prompter{tty: tty, out: a.err, paint: paint(a.err), lines: make(chan typedLine)}
}

// line returns the channel of typed lines, which is closed at the end of input. It is
// nil without a prompter.
func (p *prompter) line() <-chan typedLine {
	if p == nil {
		return nil
	}
	return p.lines
}

// show prints a question and starts to read the answer. A question that is asked again is
// printed without its details, which the person has seen. The line that asks for the
// answer is printed when what was typed before is discarded.
func (p *prompter) show(q question) {
	text := p.text(q)
	if p.seen == q.RequestID {
		text = p.again(q)
	}
	p.seen = q.RequestID
	p.out.printf("%s", text)
	p.expect(&q)
	s := p.sheet()
	s.own(faint, q.keys())
	p.out.printf("%s ", strings.TrimSuffix(s.String(), "\n"))
}

// sheet returns an empty sheet for the terminal.
func (p *prompter) sheet() *sheet { return &sheet{paint: p.paint, most: width(p.out)} }

// expect makes what is typed from now on the answer to a question; nil for none.
func (p *prompter) expect(q *question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown, p.partial = q, ""
	if q == nil {
		return
	}
	_ = forgetTyped(p.tty) // if it fails, text that was typed before counts as the answer
	if !p.reading {
		p.reading = true
		go p.read() // waiting for a terminal cannot be cancelled: it ends with the process
	}
}

// read waits for a line and sends it. It reads nothing while no question is shown: what
// is typed then is for the shell.
func (p *prompter) read() {
	for {
		awaitInput(p.tty)
		line, more := p.take()
		if !more {
			return
		}
		if line != nil {
			p.lines <- *line
			return
		}
	}
}

// take reads what was typed, if a question is shown. A line that is complete is returned;
// more is false if nothing is to be read any more. Nobody shows a question meanwhile, so
// that the line is for the question that is shown.
func (p *prompter) take() (line *typedLine, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown == nil {
		p.reading = false
		return nil, false
	}
	if !hasInput(p.tty) {
		return nil, true // a question was shown meanwhile, and what was typed before is discarded
	}
	buf := make([]byte, maxLine)
	n, err := p.tty.Read(buf)
	if err != nil || n == 0 {
		p.reading = false
		close(p.lines)
		return nil, false
	}
	p.partial += string(buf[:n])
	text, _, whole := strings.Cut(p.partial, "\n") // further lines were typed before the next question
	if !whole {
		return nil, true
	}
	p.partial, p.reading = "", false
	return &typedLine{strings.TrimSpace(text), *p.shown}, true
}

// maxLine is the maximum number of bytes that are read from a terminal at once. A
// terminal has no longer line.
const maxLine = 4096

// confirm asks a question of the program itself, and reports whether the person said yes.
// The end of input is no yes.
func (p *prompter) confirm(ctx context.Context, text string) (bool, error) {
	p.expect(new(question))
	p.out.printf("%s ", p.paint.in(bold, "? "+text))
	select {
	case line, there := <-p.lines:
		if !there {
			p.out.printf("\n")
		}
		return slices.Contains(yesWords, normalised(line.text)), nil
	case <-ctx.Done():
		p.out.printf("\n")
		return false, context.Cause(ctx)
	}
}

// text returns a question as it is printed, without the line that asks for the answer.
func (p *prompter) text(q question) string {
	s := p.sheet()
	q.on(s, excerpts)
	return s.String()
}

// on writes a question without the line that asks for the answer.
func (q question) on(s *sheet, how amount) {
	q.statementOn(s, "? ", how)
	if q.Input != nil && how == excerpts {
		for i, choice := range q.Input.Choices {
			s.own(plainStyle, fmt.Sprintf("  %d  %s", i+1, inLine(choice)))
		}
	}
	q.detailsOn(s, how)
	q.changeOn(s, how)
}

// again returns a question that the person has seen: what is longer than a line is not
// repeated.
func (p *prompter) again(q question) string {
	s := p.sheet()
	st := q.spoken()
	if line := "? " + st.line(); s.fits(line, st) {
		s.own(bold, line)
	} else {
		s.own(bold, "? "+inLine(st.words)+": the same as above; "+wordDiff+" shows it again")
	}
	return s.String()
}

// all returns everything that the question carries.
func (p *prompter) all(q question) string {
	s := p.sheet()
	q.on(s, whole)
	return s.String()
}

// An amount says how much of the text of others is written.
type amount int

const (
	excerpts amount = iota // of long ones the beginning and the end
	whole                  // all that the question carries
)

// line returns a statement on one line.
func (st statement) line() string {
	text := inLine(st.words) + st.joint + inLine(st.text)
	if st.reading != "" {
		text += "? " + inLine(st.reading)
	}
	return text
}

// fits reports whether a statement is a line that can be shown without margins: it begins
// with words of the program, or is one line that does. Words of the program alone always can.
func (s *sheet) fits(line string, st statement) bool {
	if st.text == "" && st.reading == "" {
		return true
	}
	if !st.isName && strings.ContainsAny(strings.TrimRight(st.text, "\n"), "\n\r") {
		return false
	}
	return len(line) <= maxText && len(wrap(line, s.most, 0, true)) == 1
}

// spoken returns the statement as it is said at a terminal, where choices stand below it.
func (q question) spoken() statement {
	if q.Input != nil {
		return statement{words: "the model asks", joint: ": ", text: q.Input.Question}
	}
	return q.statement()
}

// statementOn writes the statement of a question: on one line if it fits, else the text of
// others below the words of the program.
func (q question) statementOn(s *sheet, mark string, how amount) {
	st := q.spoken()
	if mark == "" {
		st = q.statement()
	}
	if line := mark + st.line(); s.fits(line, st) {
		s.own(bold, line)
		return
	}
	s.own(bold, mark+inLine(st.words)+":")
	switch {
	case st.isName:
		s.foreign(inLine(st.text))
	case how == whole:
		s.foreign(st.text)
	default:
		s.excerpt(st.text)
	}
	if st.reading != "" {
		s.own(bold, "  "+inLine(st.reading))
	}
}

// help returns what is printed if the person asks for an explanation: how the request was
// understood, what each answer would allow, and which keys leave the question.
func (p *prompter) help(q question) string {
	s := p.sheet()
	q.meaningOn(s)
	line := func(key, text string) { s.own(plainStyle, fmt.Sprintf("  %-6s  %s", key, text)) }
	line(wordDiff, "show everything that the question carries")
	line("Ctrl-C", "stop the turn")
	line("Ctrl-D", "leave; the question stays open, and the session waits")
	return s.String()
}

// meaningOn writes how a permission request was understood, and what each answer allows.
func (q question) meaningOn(s *sheet) {
	if q.Permission.Abide != nil {
		q.readingsOn(s, excerpts)
		q.reasonsOn(s)
	}
	q.explanationOn(s)
}

// maxDiff is the maximum number of lines of a diff that are shown with a question at a
// terminal. A person who wants to see the rest types wordDiff.
const maxDiff = 200

// changeOn writes the change of files that a question is about, if it is about one.
func (q question) changeOn(s *sheet, how amount) {
	r := q.request()
	lines := readableDiff(r.Diff)
	switch {
	case r.Diff == "":
		return
	case len(lines) == 0 && strings.Contains(r.Diff, "\ncreate file mode "):
		s.own(bold, "  the file is new and empty")
		return
	case len(lines) == 0:
		s.own(bold, "  the file has this content already: the call changes nothing")
		return
	}
	most := maxDiff
	if how == whole {
		most = 0
	}
	cut := s.diff(r.Diff, most)
	switch {
	case !cut || r.Contents == nil:
	case how == whole:
		s.own(bold, "  this is the whole content that the file gets:")
		s.foreign(*r.Contents)
	default:
		s.own(bold, "  type "+wordDiff+" to see the whole content that the file gets")
	}
}

// diff writes a diff and at most a number of its lines; 0 for all. It reports whether parts
// of the change are missing in the diff.
func (s *sheet) diff(text string, most int) (cut bool) {
	lines := readableDiff(text)
	more := 0
	if most > 0 && len(lines) > most {
		lines, more = lines[:most], len(lines)-most
	}
	for len(lines) > 0 {
		line, n := lines[0], 1
		if strings.Trim(line, "+- \t\r") == "" { // a change can have very many lines of which each is like the next
			n = alike(lines)
		}
		lines = lines[1:]
		if missing := missingPart(line); missing != "" {
			s.own(bold, "  the change is larger than can be shown: "+missing)
			cut = true
			continue
		}
		s.diffLine(line, most > 0)
		if n > maxEmpty {
			s.own(faint, "  … "+plural(n-1, "more line like it", "more lines like it")+" …")
			lines = lines[n-1:]
		}
	}
	if more > 0 {
		s.own(bold, fmt.Sprintf("  … %s: type %s to see the rest, or run: abide questions", plural(more, "more line is not shown", "more lines are not shown"), wordDiff))
	}
	return cut
}

// diffLine writes a line of a diff; of a long one the beginning and the end, if it is to be
// short.
func (s *sheet) diffLine(line string, short bool) {
	colour := faint
	switch {
	case strings.HasPrefix(line, "+"):
		colour = green
	case strings.HasPrefix(line, "-"):
		colour = red
	}
	if !short || len(line) <= maxDiffLine {
		s.line(colour, line)
		return
	}
	head, tail := validStart(line, maxDiffLine/2), validEnd(line, maxDiffLine/4)
	s.line(colour, head)
	s.own(bold, fmt.Sprintf("  … %s bytes of this line are not shown: type %s to see the rest, or run: abide questions …", grouped(len(line)-len(head)-len(tail)), wordDiff))
	s.line(colour, tail)
}

// maxDiffLine is the maximum number of bytes of a line of a diff that is shown whole with a
// question at a terminal.
const maxDiffLine = 1000

// linesLeftOut is the line by which a diff says what it leaves out. A line of a file never
// begins with a bracket in a diff. Questions that are older have another form of it.
var linesLeftOut = lazyregexp.New(`^\[(?:(\d+) more lines|(\d+) lines with (\d+) bytes are not shown)\]$`)

// missingPart returns what a line of a diff says that is left out; empty if it says nothing
// of the kind.
func missingPart(line string) string {
	switch m := linesLeftOut.FindStringSubmatch(line); {
	case m == nil:
		return ""
	case m[1] != "":
		return m[1] + " lines are not shown"
	default:
		return m[2] + " lines with " + m[3] + " bytes are not shown"
	}
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

// keys returns the line that says what can be typed.
func (q question) keys() string {
	switch {
	case q.request().PutBack:
		return "[y]es, make the change again; [n]o, leave it put back; [?] explain, or say what to do instead:"
	case q.Permission != nil:
		keys := []string{"[y]es, once"}
		for _, o := range q.offers() {
			if o.ID != event.OfferOnce {
				keys = append(keys, "["+offerKeys[o.ID]+"] yes, and "+inLine(o.Label))
			}
		}
		return strings.Join(append(keys, "[n]o", "[?] explain, or say what to do instead:"), "; ")
	case q.Plan != nil:
		return "[y]es (" + inLine(q.Plan.Recommended) + "), " + inLine(strings.Join(q.Plan.Actions, ", ")) + ", [n]o, or say what to change:"
	case q.asksBudget():
		return "[y]es, go on; [n]o, end the turn:"
	case q.asksSampling():
		return "[y]es, once; [a]lways, for the rest of the session; [n]o:"
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

// ask shows the first open question, unless one is shown.
func (r *runner) ask() {
	open := r.unanswered()
	if r.prompter.shown == nil && len(open) > 0 {
		r.prompter.show(open[0])
	}
}

// dropAnswered takes the shown question back if another client has answered it, with what
// was typed for it.
func (r *runner) dropAnswered() {
	p := r.prompter
	if p == nil || p.shown == nil || isOpen(r.unanswered(), *p.shown) {
		return
	}
	p.takeBack()
	text := answeredElsewhere
	if r.seen.unanswered {
		text = stoppedElsewhere
	}
	p.out.printf("%s\n", p.paint.in(faint, text))
}

// takeBack ends the line of the shown question, if there is one, and discards what was
// typed for it.
func (p *prompter) takeBack() {
	if p == nil || p.shown == nil {
		return
	}
	p.expect(nil)
	_ = forgetTyped(p.tty) // if it fails, the shell gets what was typed
	p.out.printf("\n")
}

// What became of a question that is not open any more, and of what was typed for it.
const (
	answeredElsewhere = "(answered elsewhere; what you typed for it is not used)"
	stoppedElsewhere  = "(stopped elsewhere, so it is no longer asked; what you typed for it is not used)"
)

// questionChanged says that an answer was not given.
const questionChanged = "(the question has changed since it was shown: nothing was answered)"

// reread takes over the open questions as they are now.
func (r *runner) reread(ctx context.Context) error {
	now, err := r.openQuestions(ctx)
	for i, q := range r.seen.open {
		if at := slices.IndexFunc(now, func(o question) bool { return o.RequestID == q.RequestID }); at >= 0 {
			r.seen.open[i] = now[at]
		}
	}
	return err
}

// isOpen reports whether a question is among the open ones.
func isOpen(open []question, q question) bool {
	return slices.ContainsFunc(open, func(o question) bool { return o.RequestID == q.RequestID })
}

// reply answers a question with the line that was typed for it. there is false at the end
// of input.
func (r *runner) reply(ctx context.Context, line typedLine, there bool) error {
	p := r.prompter
	if !there {
		r.prompter, r.left = nil, true
		p.out.printf("\n")
		return nil
	}
	if p.shown == nil || p.shown.RequestID != line.to.RequestID {
		return nil // its question is gone, and that was said
	}
	p.expect(nil)
	if v, ok := r.view.(*liveView); ok {
		v.typed()
	}
	q, text := line.to, line.text
	switch {
	case text == "":
		return nil // ask shows the question again
	case text == wordExplain && q.Permission != nil:
		p.out.printf("%s", p.help(q))
		return nil
	case text == wordDiff && (q.approves() || q.isLong()):
		p.out.printf("%s", p.all(q))
		return nil
	}
	won, err := q.answer(ctx, r.client, r.id, q.typed(text))
	if again, ok := errors.AsType[*unclear](err); ok {
		p.out.printf("%s\n", p.paint.in(faint, inLine(again.text)+q.furtherKeys()))
		return nil
	}
	if hasChanged(err) {
		p.out.printf("%s\n", p.paint.in(faint, questionChanged))
		return r.reread(ctx)
	}
	if err != nil {
		return err
	}
	r.answered[q.RequestID] = true
	if text := q.outcome(text, won); text != "" {
		s := p.sheet()
		s.own(faint, text)
		p.out.printf("%s", s.String())
	}
	return nil
}

// outcome says what came of an answer, if that is more than what was typed.
func (q question) outcome(text string, won bool) string {
	switch {
	case !won:
		return answeredElsewhere
	case feedback(text) && (q.Permission != nil || q.Plan != nil):
		return "(refused; the model is told why)"
	}
	return q.granted(text)
}

// furtherKeys says what can be typed that is no answer; empty if there is nothing.
func (q question) furtherKeys() string {
	switch {
	case q.Permission != nil:
		return "; " + wordExplain + " explains the answers, " + wordDiff + " shows the whole question"
	case q.approves():
		return "; " + wordDiff + " shows the whole question"
	}
	return ""
}
