package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) questionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "questions [SESSION]",
		Short: "List the open questions",
		Long: `List the open questions of all sessions, or of one: permission requests, questions of
the model, plans, forms, and calls of tools that a client must make. For each, the list
has what is asked, why, the diff of an edit, and what each answer would allow. A question
stays open until it is answered; there is no deadline.`,
		Example: "  abide questions\n  abide answer 0198c2f1-77aa yes",
		Args:    arguments(0, 1, "at most one SESSION"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			var id event.SessionID
			if len(args) > 0 {
				info, err := find(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				id = info.SessionID
			}
			open, err := c.Questions(cmd.Context(), id)
			if err != nil {
				return err
			}
			list, err := asked(open)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(forJSON(list))
			}
			return a.printQuestions(list)
		})
	}
	return c
}

// A listedQuestion is an open question and the session in which it is answered.
type listedQuestion struct {
	question
	session event.SessionID
}

// asked returns the questions of a list.
func asked(open []api.Question) ([]listedQuestion, error) {
	var list []listedQuestion
	for _, o := range open {
		qs, err := questionsOf([]json.RawMessage{o.Event})
		if err != nil {
			return nil, err
		}
		for _, q := range qs {
			list = append(list, listedQuestion{q, o.SessionID})
		}
	}
	return list, nil
}

func forJSON(list []listedQuestion) []questionJSON {
	items := make([]questionJSON, len(list))
	for i, q := range list {
		items[i] = q.forJSON()
		items[i].SessionID = q.session
	}
	return items
}

// printQuestions prints each question with all that is needed to answer it, and the
// command that does.
func (a *app) printQuestions(list []listedQuestion) error {
	if len(list) == 0 {
		if !a.quiet {
			a.err.printf("there are no open questions\n")
		}
		return nil
	}
	ids := shortIDs(list)
	return a.out.buffered(func(w io.Writer) error {
		colours := paint(a.out)
		for i, q := range list {
			if _, err := io.WriteString(w, reveal(q.block(colours, ids[i], i > 0))); err != nil {
				return err
			}
		}
		return nil
	})
}

// block returns a question as a block of lines. ids are what names it in a command.
func (q listedQuestion) block(colours painter, ids string, next bool) string {
	var b strings.Builder
	if next {
		b.WriteString("\n")
	}
	b.WriteString(colours.in(bold, oneLine(reveal(q.sentence()))) + "\n")
	for _, line := range q.details() {
		b.WriteString("  " + line + "\n")
	}
	b.WriteString(diffText(colours, q.change(), 0))
	b.WriteString(q.explanation())
	b.WriteString(colours.in(faint, "  abide answer "+ids+" "+q.words()) + "\n")
	return b.String()
}

// minID is the length of a shortened id: as much of a UUID as says when it was made, to
// the millisecond.
const minID = 13

// shortIDs returns what names each question in a command: the beginning of the id of its
// session, and that of its request if the session has several questions.
func shortIDs(list []listedQuestion) []string {
	ids := make([]string, len(list))
	for i, q := range list {
		var sessions, requests []string
		for _, other := range list {
			sessions = append(sessions, string(other.session))
			if other.session == q.session {
				requests = append(requests, other.RequestID)
			}
		}
		ids[i] = plain(shortID(string(q.session), sessions))
		if len(requests) > 1 {
			ids[i] += " " + plain(shortID(q.RequestID, requests))
		}
	}
	return ids
}

// shortID returns the beginning of an id that none of the other ids begins with.
func shortID(id string, all []string) string {
	for n := minID; n < len(id); n++ {
		if !slices.ContainsFunc(all, func(other string) bool { return other != id && strings.HasPrefix(other, id[:n]) }) {
			return id[:n]
		}
	}
	return id
}

// details returns the lines that say what a question is about beyond its sentence: the
// reason, the directory, and how the command line was understood.
func (q question) details() []string {
	var lines []string
	switch {
	case q.Plan != nil && q.Plan.PlanContent != "":
		return strings.Split(strings.TrimRight(plain(q.Plan.PlanContent), "\n"), "\n")
	case q.Permission == nil || q.Permission.Abide == nil:
		return nil
	}
	more := q.Permission.Abide
	if more.Dir != "" {
		lines = append(lines, "in "+oneLine(more.Dir)+inputText(more))
	}
	if len(more.Commands) > 1 || slices.ContainsFunc(more.Commands, func(c event.CommandReading) bool { return len(c.Files) > 0 }) {
		for _, c := range more.Commands {
			lines = append(lines, readingText(c))
		}
	}
	return append(lines, q.reasons()...)
}

// reasons returns the lines that say why a permission is asked for.
func (q question) reasons() []string {
	if q.Permission == nil || q.Permission.Abide == nil {
		return nil
	}
	var lines []string
	for _, reason := range q.Permission.Abide.Reasons {
		lines = append(lines, "asked because "+oneLine(reason))
	}
	return lines
}

// inputText says how a command gets input.
func inputText(more *event.PermissionMore) string {
	switch {
	case more.Terminal:
		return ", with a terminal"
	case more.Input:
		return ", with its input open"
	}
	return ""
}

// readingText returns a command as it was understood, each word in brackets where it is
// not obvious where it ends.
func readingText(c event.CommandReading) string {
	words := make([]string, 0, len(c.Words)+len(c.Files))
	for _, w := range c.Words {
		words = append(words, visibleWord(w))
	}
	for _, f := range c.Files {
		words = append(words, f.Operator+" "+visibleWord(f.Target))
	}
	return fmt.Sprintf("%2s  %s", c.Join, strings.Join(words, " "))
}

// visibleWord returns a word of a command, quoted if it is empty or has a character that
// could be mistaken for something else.
func visibleWord(w string) string {
	if w == "" || strings.ContainsFunc(w, func(r rune) bool {
		return !unicode.IsGraphic(r) || strings.ContainsRune(" \t\n'\"\\`$*?[]{}()<>|&;#~!", r)
	}) {
		return strconv.Quote(w)
	}
	return w
}

// explanation says what each answer to a permission request would allow.
func (q question) explanation() string {
	if q.Permission == nil {
		return ""
	}
	var b strings.Builder
	line := func(key, text string) { fmt.Fprintf(&b, "  %-2s %s\n", key, oneLine(text)) }
	for _, o := range q.offers() {
		if o.ID == event.OfferOnce {
			line("y", "yes, "+o.Label)
			continue
		}
		line(offerKeys[o.ID], o.ID+": yes, and "+o.Label+", for the rest of the session")
	}
	line("n", "no; the turn ends")
	line("", "any sentence: no, and the model is told the sentence")
	return b.String()
}
