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
		for i, q := range list {
			page := &sheet{paint: paint(a.out), most: width(a.out)}
			if _, err := io.WriteString(w, q.block(page, ids[i], i > 0)); err != nil {
				return err
			}
		}
		return nil
	})
}

// block returns a question as a block of lines. ids are what names it in a command.
func (q listedQuestion) block(b *sheet, ids string, next bool) string {
	if next {
		b.WriteString("\n")
	}
	q.statementOn(b, "", whole)
	q.detailsOn(b, whole)
	q.changeOn(b, whole)
	q.explanationOn(b)
	b.own(faint, "  abide answer "+ids+" "+q.words())
	return b.String()
}

// approves reports whether an answer to the question can allow something.
func (q question) approves() bool { return q.Permission != nil || q.Plan != nil }

// minID is the length of a shortened id: as much of a UUID as says when it was made, to
// the millisecond.
const minID = 13

// shortIDs returns what names each question in a command: the beginning of the id of its
// session, and that of its request if the session has several questions, or if the answer
// may be a yes: by then another question may be open, which nobody has seen.
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
		if len(requests) > 1 || q.approves() {
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

// detailsOn writes what a question is about beyond its statement: the plan, the directory,
// how the command line was understood, and the reason.
func (q question) detailsOn(s *sheet, how amount) {
	if q.Plan != nil && q.Plan.PlanContent != "" {
		if how == whole {
			s.foreign(q.Plan.PlanContent)
		} else {
			s.excerpt(q.Plan.PlanContent)
		}
	}
	if q.Permission == nil {
		return
	}
	if command := q.request().Command; command != "" {
		s.own(faint, "  the command that ran:")
		s.excerpt(command)
	}
	more := q.Permission.Abide
	if more == nil {
		return
	}
	if more.Dir != "" {
		s.own(faint, "  in "+inLine(more.Dir)+inputText(more))
	}
	// The statement shows a single command already, if it has no files.
	if len(more.Commands) > 1 || slices.ContainsFunc(more.Commands, func(c event.CommandReading) bool { return len(c.Files) > 0 }) || q.isLong() {
		q.readingsOn(s, how)
	}
	q.reasonsOn(s)
}

// isLong reports whether the text of the question is too long to be shown whole with it.
func (q question) isLong() bool {
	_, hidden, _ := outerParts(q.statement().text)
	return hidden != ""
}

// readingsOn writes how a command line was understood: its commands, or only their programs
// if it is long.
func (q question) readingsOn(s *sheet, how amount) {
	list := q.Permission.Abide.Commands
	if len(list) == 0 {
		return
	}
	if how != whole && (q.isLong() || len(list) > maxTextLines) {
		var programs []string
		for _, c := range list {
			if len(c.Words) > 0 {
				programs = append(programs, visibleWord(c.Words[0]))
			}
		}
		slices.Sort(programs)
		s.own(faint, "  understood as "+plural(len(list), "command, of the program:", "commands, of the programs:"))
		s.excerpt(strings.Join(slices.Compact(programs), " "))
		return
	}
	s.own(faint, "  understood as "+plural(len(list), "command:", "commands:"))
	for _, c := range list {
		s.line(faint, readingText(c))
	}
}

// reasonsOn writes why a permission is asked for.
func (q question) reasonsOn(s *sheet) {
	for _, line := range q.reasons() {
		s.own(faint, "  "+line)
	}
}

// reasons returns the lines that say why a permission is asked for.
func (q question) reasons() []string {
	if q.Permission == nil || q.Permission.Abide == nil {
		return nil
	}
	var lines []string
	for _, reason := range q.Permission.Abide.Reasons {
		lines = append(lines, "asked because "+inLine(reason))
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

// explanationOn writes what each answer to a permission request would allow.
func (q question) explanationOn(s *sheet) {
	if q.Permission == nil {
		return
	}
	line := func(key, text string) { s.own(plainStyle, fmt.Sprintf("  %-2s %s", key, inLine(text))) }
	if q.request().PutBack {
		line("y", "yes, the change is made again")
		line("n", "no, the file stays as it was before the command; the turn goes on")
		line("", "any sentence: no, and the model is told the sentence")
		return
	}
	for _, o := range q.offers() {
		if o.ID == event.OfferOnce {
			line("y", "yes, "+o.Label)
			continue
		}
		line(offerKeys[o.ID], o.ID+": yes, and "+o.Label+", for the rest of the session")
	}
	line("n", "no; the turn ends")
	line("", "any sentence: no, and the model is told the sentence")
	if slices.ContainsFunc(q.offers(), func(o event.Offer) bool { return len(o.Grants) > 0 }) {
		line("", wordHere+", "+wordAlways+": yes, and the first of these offers for all sessions of this directory, or everywhere;")
		line("", "another offer is named like this: "+wordHere+":OFFER")
	}
}
