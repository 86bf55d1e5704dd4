package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) questionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "questions [SESSION]",
		Short: "List the open questions",
		Long: `List the open questions of all sessions, or of one: permission requests, questions of
the model, and calls of tools that a client must make. A question stays open until it
is answered; there is no deadline.`,
		Example: "  abide questions\n  abide answer 0198c2f1 approve",
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
			list := []questionJSON{}
			for _, o := range open {
				qs, err := questionsOf([]json.RawMessage{o.Event})
				if err != nil {
					return err
				}
				for _, q := range qs {
					item := q.forJSON()
					item.SessionID = o.SessionID
					list = append(list, item)
				}
			}
			if *asJSON {
				return a.out.json(list)
			}
			return a.printQuestions(list)
		})
	}
	return c
}

func (a *app) printQuestions(list []questionJSON) error {
	if len(list) == 0 {
		if !a.quiet {
			a.err.printf("there are no open questions\n")
		}
		return nil
	}
	t := &table{head: []string{"SESSION", "REQUEST", "KIND", "QUESTION"}}
	for _, q := range list {
		t.add(plain(string(q.SessionID)), plain(q.RequestID), q.Kind, oneLine(q.Question))
	}
	return a.print(t)
}
