package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/event"
)

const answerHelp = `Answer an open question of a session, follow the turn to its end and print the
model's answer, like "abide run".

Answer a permission request with one of:

  yes              allow it once (also y, ok, approve)
  no               refuse it (also n, reject)
  command, prefix, file, folder, tool, input
                   allow it, and what this offer of the question says for the rest of
                   the session; "abide questions" lists the offers, by letter too
  approve-session  the same with the first of these offers
  approve-here     the same for all sessions of this directory
  approve-always   the same everywhere
  ?                only say what each answer would allow

approve-here and approve-always take the name of an offer: approve-here:prefix. Any
sentence of at least two words refuses the request and is passed on to the model as the
reason; any other word is an error. "abide rules" lists and revokes what was approved
beyond a session.

Answer a plan with yes, no, one of its actions, or a sentence that says what to change;
a form with a JSON object, no or cancel; the question whether to go on although a budget
is reached with yes or no; and the question whether an MCP server may ask the model with
yes, always (for the rest of the session) or no.

Answer a question of the model, or a call of a client's tool, with any text.
REQUEST can be omitted if only one question is open. A yes should name it: the question
that you have seen may be answered by now, and another one open.

A no ends the turn, which has no answer then: the exit code is 0, because the command did
what it was told. Where "abide run" asks, and is told no, it exits with 1.`

const answerExamples = `  abide questions
  abide answer 0198c2f1-77aa 0198c2f2-77aa yes
  abide answer 0198c2f1-77aa 0198c2f2-77aa "use port 8080 instead"`

func (a *app) answerCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:     "answer SESSION [REQUEST] ANSWER",
		Short:   "Answer an open question and continue the turn",
		Long:    answerHelp,
		Example: answerExamples,
		Args:    arguments(2, 3, "SESSION [REQUEST] yes|no|TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkFormat(); err != nil {
				return err
			}
			return a.answer(cmd.Context(), f, args)
		},
	}
	f.registerFormat(c.Flags())
	return c
}

// answer runs abide answer. It does not attach to the session: it answers and reads
// the log, so the clients of the session are not affected.
func (a *app) answer(ctx context.Context, f *runFlags, args []string) error {
	r := a.newRunner(f)
	r.offlineReported = true
	// A notification that the session continues may be lost when an engine ends, so
	// the log is also read every few seconds.
	r.poll = time.Tick(5 * time.Second)
	explained := false
	err := a.withRunner(ctx, r, func() error {
		answered, err := r.answerOne(ctx, args)
		if err != nil || !answered {
			explained = err == nil
			return err
		}
		return r.follow(ctx)
	})
	if explained {
		return nil
	}
	return r.end(ctx, err)
}

// answerOne finds the question that the arguments name and answers it, or only explains
// it. It reports whether it was answered.
func (r *runner) answerOne(ctx context.Context, args []string) (bool, error) {
	info, err := find(ctx, r.client, args[0])
	if err != nil {
		return false, err
	}
	r.id = info.SessionID
	r.events = newLogFeed(r.client, r.id)
	open, err := r.openQuestions(ctx)
	if err != nil {
		return false, err
	}
	q, err := pick(r.id, open, args[1:len(args)-1])
	if err != nil {
		return false, err
	}
	text := args[len(args)-1]
	if text == wordExplain && q.Permission != nil {
		s := &sheet{paint: paint(r.app.out), most: width(r.app.out)}
		q.explanationOn(s)
		r.app.out.printf("%s", s.String())
		return false, nil
	}
	for e, err := range r.events.take(ctx) { // events before the answer
		if err == nil {
			err = r.seen.apply(e)
		}
		if err != nil {
			return false, err
		}
	}
	r.view.begin(opening{
		Type: "system", Subtype: "init", SessionID: r.id, Cwd: place(info), Resumed: true, Version: r.app.opts.Version,
	})
	r.takeInterrupt()
	return true, r.answerQuestion(ctx, q, text)
}

// openQuestions asks the engine for the session's open questions.
func (r *runner) openQuestions(ctx context.Context) ([]question, error) {
	st, err := r.client.Status(ctx, r.id)
	if err != nil {
		return nil, err
	}
	return questionsOf(st.Questions)
}

// pick returns the question with the given request id, or the only one if no id is
// given.
func pick(id event.SessionID, open []question, named []string) (question, error) {
	if len(open) == 0 {
		return question{}, usagef("session %s has no open question: it was already answered, or never asked (list all open questions with: abide questions)", id)
	}
	if len(named) == 0 {
		if len(open) > 1 {
			return question{}, usagef("session %s has several open questions; name one of them:\n%s", id, listed(open))
		}
		return open[0], nil
	}
	var found []question
	for _, q := range open {
		if q.RequestID == named[0] {
			return q, nil
		}
		if strings.HasPrefix(q.RequestID, named[0]) {
			found = append(found, q)
		}
	}
	switch len(found) {
	case 0:
		return question{}, usagef("session %s has no open question %s: it was already answered, or never asked; its open questions are:\n%s", id, named[0], listed(open))
	case 1:
		return found[0], nil
	}
	return question{}, usagef("request id %s is ambiguous: several open questions of session %s start with it:\n%s", named[0], id, listed(found))
}

func listed(questions []question) string {
	var b strings.Builder
	for _, q := range questions {
		b.WriteString("  " + q.RequestID + "  " + q.inLine() + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// answerQuestion answers a question. It is an error if another client answered first:
// the caller wanted this answer.
func (r *runner) answerQuestion(ctx context.Context, q question, text string) error {
	won, err := q.answer(ctx, r.client, r.id, text)
	if again, ok := errors.AsType[*unclear](err); ok {
		return &exitError{exitUsage, again}
	}
	if err != nil {
		return err
	}
	if !won {
		return usagef("question %s of session %s was answered by another client in the meantime", q.RequestID, r.id)
	}
	r.answered[q.RequestID] = true
	r.refuses = r.refuses || q.Permission != nil && slices.Contains(noWords, normalised(text))
	return nil
}

// answerGiven answers questions with the --answer flags.
func (r *runner) answerGiven(ctx context.Context) error {
	for _, answer := range r.flags.answers {
		request, text, _ := strings.Cut(answer, "=")
		q, err := pick(r.id, r.unanswered(), []string{request})
		if err != nil {
			return err
		}
		if err := r.answerQuestion(ctx, q, text); err != nil {
			return err
		}
	}
	return nil
}
