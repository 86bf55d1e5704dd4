package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/text"
)

// A Question is an open question of a session.
type Question interface {
	// ID returns the id of the request.
	ID() string
	// Lines returns the question for some columns; all that it carries if whole is true.
	Lines(columns int, whole bool) []text.Line
	// Explain returns what each answer allows.
	Explain(columns int) []text.Line
	// Keys returns what can be pressed, in words.
	Keys() string
	// Answer returns the answer that a key stands for; false if it stands for none.
	Answer(key string) (string, bool)
	// WantsText reports whether any text is an answer. Otherwise a text refuses, and tells
	// the model what to do instead.
	WantsText() bool
	// Send answers the question. It returns what came of it in words, and false if nothing
	// was answered because the text is no answer. The error is ErrChanged if the open question
	// is not the one that was shown.
	Send(ctx context.Context, session event.SessionID, answer string) (notice string, done bool, err error)
}

// ErrChanged is the error of an answer to a question that has changed since it was shown.
var ErrChanged = errors.New("the question has changed since it was shown")

// calm is the time without keys before a question takes them: whoever is typing does not
// answer by accident what has just appeared.
const calm = 500 * time.Millisecond

// ends are the kinds of events that close questions.
var ends = []event.Type{event.PermissionDone, event.UserInputDone, event.ExternalDone, event.ExitPlanDone, event.ElicitationDone}

// questions are the open questions of a session, and where keys go.
type questions struct {
	open    []Question
	own     map[string]bool // ids of questions that this chat has answered
	sending string          // id of the question whose answer is being sent; "" if there is none
	shown   time.Time       // when the first open question was shown
	focused bool            // true if keys go to the question
	typing  bool            // true if what is typed is the answer to the question
	help    bool            // true if the answers are explained
	pressed string          // letter that is an answer if no other key follows; "" if there is none

	pressedAt time.Time
}

// first returns the question that is shown; nil if there is none.
func (q *questions) first() Question {
	if len(q.open) == 0 {
		return nil
	}
	return q.open[0]
}

// add adds a question that is asked.
func (q *questions) add(asked Question, now time.Time) {
	if q.own[asked.ID()] || slices.ContainsFunc(q.open, func(o Question) bool { return o.ID() == asked.ID() }) {
		return
	}
	if len(q.open) == 0 {
		q.begin(now)
	}
	q.open = append(q.open, asked)
}

// begin shows the next question. Keys do not go to it yet.
func (q *questions) begin(now time.Time) {
	q.shown, q.focused, q.typing, q.help, q.pressed = now, false, false, false, ""
}

// close removes a question that is not open any more. It reports whether somebody else
// has ended it.
func (q *questions) close(id string, now time.Time) (elsewhere bool) {
	at := slices.IndexFunc(q.open, func(o Question) bool { return o.ID() == id })
	if at < 0 {
		return false
	}
	q.open = slices.Delete(q.open, at, at+1)
	if at == 0 {
		q.begin(now)
	}
	return !q.own[id] && q.sending != id // the end of the question may be shown before its answer is acknowledged
}

// mayFocus returns when keys may go to the question: nobody has typed for a moment, and
// it was there to be seen for as long. It reports false while the editor holds text.
func (c *chat) mayFocus() (time.Time, bool) {
	q := &c.questions
	if q.first() == nil || q.focused || q.typing || !c.editor.Empty() || c.overlay != nil || c.search != nil {
		return time.Time{}, false
	}
	last := q.shown
	if c.lastKey.After(last) {
		last = c.lastKey
	}
	return last.Add(calm), true
}

// focusMsg asks whether a question may have the keys now.
type focusMsg struct{}

// awaitCalm gives the keys to a question when nobody types.
func (c *chat) awaitCalm() tea.Cmd {
	at, ok := c.mayFocus()
	if !ok || c.waitsForCalm {
		return nil
	}
	c.waitsForCalm = true
	return tea.Tick(max(time.Until(at), time.Millisecond), func(time.Time) tea.Msg { return focusMsg{} })
}

// focus gives the keys to a question if that is possible by now.
func (c *chat) focus() tea.Cmd {
	c.waitsForCalm = false
	at, ok := c.mayFocus()
	if !ok {
		return nil
	}
	if c.now().Before(at) {
		return c.awaitCalm()
	}
	c.questions.focused = true
	c.questions.typing = c.questions.first().WantsText()
	return nil
}

// alone is the time for which a letter has to be the only key before it counts as an answer.
// Somebody who types a message while a question has the keys answers nothing.
const alone = 250 * time.Millisecond

// aloneMsg says that no key may have followed one that was pressed at a moment.
type aloneMsg struct{ at time.Time }

// questionKey handles a key that goes to the question. A letter that means something there
// waits for a moment; if another key follows, both are the beginning of a message.
func (c *chat) questionKey(key string) tea.Cmd {
	before := c.questions.pressed
	c.questions.pressed = ""
	switch {
	case before != "" && key == "enter":
		return c.questionLetter(before)
	case before != "" && isTyped(key):
		return c.typeInstead(before + key)
	case key == "esc" || key == "tab":
		c.questions.focused = false
		c.questions.shown = c.now().Add(calmAfterLeaving)
		return nil
	case key == "enter" || key == "space" || key == " ":
		c.notify("press a letter: Enter and Space answer nothing")
		return nil
	case !isTyped(key):
		c.notify("that key answers nothing")
		return nil
	}
	if _, ok := c.questions.first().Answer(key); !ok && !strings.Contains("?dr", key) {
		return c.typeInstead(key)
	}
	at := c.now()
	c.questions.pressed, c.questions.pressedAt = key, at
	return tea.Tick(alone, func(time.Time) tea.Msg { return aloneMsg{at} })
}

// isTyped reports whether a key is a character, and not the name of a key.
func isTyped(key string) bool { return key != "space" && utf8.RuneCountInString(key) == 1 }

// typeInstead takes what went to the question for the beginning of a message. The question
// has the keys again when the message is sent.
func (c *chat) typeInstead(typed string) tea.Cmd {
	c.questions.focused = false
	c.editor.Insert(typed)
	return c.completions()
}

// pressedAlone does what a letter stands for that no other key has followed.
func (c *chat) pressedAlone(m aloneMsg) tea.Cmd {
	key := c.questions.pressed
	if key == "" || !c.questions.pressedAt.Equal(m.at) || !c.questions.focused || c.questions.first() == nil || c.overlay != nil {
		return nil
	}
	c.questions.pressed = ""
	return tea.Batch(c.questionLetter(key), c.tick(), c.awaitCalm())
}

// questionLetter does what a letter stands for.
func (c *chat) questionLetter(key string) tea.Cmd {
	q := c.questions.first()
	switch key {
	case "?":
		c.questions.help = !c.questions.help
		return nil
	case "d":
		return c.page(newPager("question", q.Lines(c.columns-1, true)))
	case "r":
		if !q.WantsText() {
			c.questions.typing = true
		}
		return nil
	}
	answer, ok := q.Answer(key)
	if !ok {
		return nil
	}
	return c.answer(q, answer)
}

// calmAfterLeaving is how long a question that a person has left does not take the keys
// again by itself.
const calmAfterLeaving = time.Hour

// answeredMsg is what came of an answer.
type answeredMsg struct {
	id     string
	answer string
	typed  bool // true if the answer was typed into the editor
	notice string
	done   bool
	err    error
}

// answer sends an answer.
func (c *chat) answer(q Question, answer string) tea.Cmd {
	session, typed := c.session.ID, c.questions.typing
	c.questions.typing, c.questions.sending = false, q.ID()
	return func() tea.Msg {
		notice, done, err := q.Send(c.ctx, session, answer)
		return answeredMsg{q.ID(), answer, typed, notice, done, err}
	}
}

// answered takes in what came of an answer.
func (c *chat) answered(m answeredMsg) tea.Cmd {
	if c.questions.sending == m.id {
		c.questions.sending = ""
	}
	switch {
	case errors.Is(m.err, ErrChanged):
		c.notify(m.notice)
		return tea.Batch(c.tick(), c.askAgain())
	case m.err != nil:
		c.fail(m.err)
	case m.done:
		c.questions.own[m.id] = true
		c.questions.close(m.id, c.now())
		c.notify(m.notice)
	default:
		c.notify(m.notice)
	}
	if !m.done && m.typed && c.editor.Empty() && c.questions.first() != nil && c.questions.first().ID() == m.id {
		c.questions.focused, c.questions.typing = true, true
		c.editor.Set(m.answer) // nothing that was typed is lost
	}
	return tea.Batch(c.tick(), c.awaitCalm())
}

// askAgain reads the open questions again, and shows those that have changed.
func (c *chat) askAgain() tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		st, err := c.opts.Client.Status(ctx, id)
		return func() tea.Cmd {
			for _, raw := range st.Questions {
				if e, err := event.Parse(0, raw); err == nil && id == c.session.ID {
					if q, ok := c.opts.Question(e); ok {
						c.questions.replace(q, c.now())
					}
				}
			}
			return tea.Batch(c.tick(), c.awaitCalm())
		}, err
	})
}

// replace takes over what a question asks now. Keys do not go to it yet.
func (q *questions) replace(asked Question, now time.Time) {
	at := slices.IndexFunc(q.open, func(o Question) bool { return o.ID() == asked.ID() })
	if at < 0 {
		return
	}
	q.open[at] = asked
	if at == 0 {
		q.begin(now)
	}
}

// questionLines returns the question as it is shown above the editor, in at most some
// rows.
func (c *chat) questionLines(rows int) []text.Line {
	q := c.questions.first()
	if q == nil || rows <= 0 {
		return nil
	}
	keys := c.questionHint(q)
	var body []text.Line
	if c.questions.help {
		body = q.Explain(c.columns)
	} else {
		body = q.Lines(c.columns, false)
	}
	if more := len(c.questions.open) - 1; more > 0 {
		body = append(body, text.Styled(plural(more, "more question waits", "more questions wait"), text.Style{Faint: true}))
	}
	var lines []text.Line
	for _, l := range body {
		lines = append(lines, l.Break(c.columns)...)
	}
	if len(keys) > 1 && rows-len(keys) < min(len(lines), rows/2) { // what is asked comes before what each key means
		keys = []text.Line{text.Styled(shortKeys(q), text.Style{Bold: true, Colour: text.Yellow}).Cut(c.columns)}
	}
	if room := max(rows-len(keys), 1); len(lines) > room {
		hidden := len(lines) - room + 1
		lines = append(lines[:room-1:room-1], text.Styled(plural(hidden, "more line: d shows all", "more lines: d shows all"), text.Style{Bold: true}))
	}
	lines = append(lines, keys...)
	return lines[max(0, len(lines)-rows):]
}

// questionHint says what can be pressed, or how to answer.
func (c *chat) questionHint(q Question) []text.Line {
	faint := text.Style{Faint: true}
	switch {
	case c.questions.typing && q.WantsText():
		return text.Styled(q.Keys(), text.Style{Bold: true}).Wrap(c.columns, nil)
	case c.questions.typing:
		return []text.Line{text.Styled("refuse, and say what to do instead; Esc goes back", text.Style{Bold: true})}
	case c.questions.focused:
		return pack(strings.Split(q.Keys(), "; "), "; ", c.columns, text.Style{Bold: true, Colour: text.Yellow})
	}
	return []text.Line{text.Styled("a question waits: Tab answers it", faint)}
}

// shortKeys are the keys of a question for a terminal with little room.
func shortKeys(q Question) string {
	if q.WantsText() {
		return "type the answer"
	}
	return "[y]es [n]o [d] all [?] help"
}

// pack returns entries on as few lines as they need. None is broken that fits on a line.
func pack(entries []string, separator string, columns int, style text.Style) []text.Line {
	var lines []text.Line
	row := ""
	for _, entry := range entries {
		if row != "" && text.Width(row+separator+entry) > columns {
			lines = append(lines, text.Styled(row, style).Wrap(columns, nil)...)
			row = ""
		}
		if row != "" {
			row += separator
		}
		row += entry
	}
	return append(lines, text.Styled(row, style).Wrap(columns, nil)...)
}
