package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

const recalledHelp = `Show what a session was told from memory, turn by turn, and why: what every new session
is told of the pages, and what the model has searched for.`

func (a *app) memoryRecalledCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "recalled SESSION",
		Short:   "Show what a session was told from memory, and why",
		Long:    recalledHelp,
		Example: "  abide memory recalled 0198c2f1",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			list, err := readRecalled(cmd.Context(), c, info.SessionID)
			if *asJSON {
				return first(a.out.json(list), err)
			}
			return first(a.out.buffered(func(w io.Writer) error { return writeRecalled(w, list) }), err)
		})
	}
	return c
}

// A recalledText is what a session was told from memory at one time.
type recalledText struct {
	Turn  int                `json:"turn"`            // number of the turn, from 1
	Event event.Seq          `json:"event"`           // position in the log
	Query string             `json:"query,omitempty"` // what the model has searched for; empty for what a new session is told
	Parts []event.MemoryPart `json:"parts,omitempty"` // what was told of each page
	Text  string             `json:"text"`            // text that the model has read
}

// readRecalled reads a session. Of a damaged one it returns what is before the damage.
func readRecalled(ctx context.Context, c *client.Client, id event.SessionID) ([]recalledText, error) {
	list := []recalledText{}
	reader := recalledReader{queries: make(map[string]string)}
	for e, err := range c.Events(ctx, id, 0) {
		if err != nil {
			return list, explainDamage(id, err)
		}
		if r, ok, err := reader.read(e); err != nil {
			return list, err
		} else if ok {
			list = append(list, r)
		}
	}
	return list, nil
}

// A recalledReader finds what was recalled in the events of a session.
type recalledReader struct {
	turn    int
	queries map[string]string // queries by the ids of their calls
}

// read takes the next event, and returns what was recalled with it if something was.
func (r *recalledReader) read(e event.Event) (told recalledText, ok bool, err error) {
	switch e.Type {
	case event.UserMessage:
		d, err := event.As[event.UserMessageData](e)
		if err == nil && d.Source == "" {
			r.turn++
		}
		return told, false, err
	case event.MemoryRecalled:
		d, err := event.As[event.MemoryRecalledData](e)
		return recalledText{Turn: r.turn + 1, Event: e.Seq, Parts: d.Parts, Text: d.Text}, err == nil, err
	case event.AssistantMessage:
		d, err := event.As[event.AssistantMessageData](e)
		for _, call := range d.ToolRequests {
			var in struct{ Query string }
			if call.Name == "memory_search" && json.Unmarshal(call.Arguments, &in) == nil && in.Query != "" {
				r.queries[call.ToolCallID] = in.Query
			}
		}
		return told, false, err
	case event.ToolComplete:
		d, err := event.As[event.ToolCompleteData](e)
		query, asked := r.queries[d.ToolCallID]
		if err != nil || !asked || d.Result == nil {
			return told, false, err
		}
		return recalledText{Turn: max(1, r.turn), Event: e.Seq, Query: query, Text: d.Result.Content}, true, nil
	}
	return told, false, nil
}

// writeRecalled prints what was recalled.
func writeRecalled(w io.Writer, list []recalledText) error {
	if len(list) == 0 {
		_, err := io.WriteString(w, "Nothing was recalled in this session.\n")
		return err
	}
	for i, r := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if r.Query != "" {
			fmt.Fprintf(w, "Turn %d: the model has searched for %q (event %d)\n", r.Turn, plain(r.Query), r.Event)
		} else {
			fmt.Fprintf(w, "Turn %d: told at the beginning, as every new session is (event %d)\n", r.Turn, r.Event)
		}
		for _, p := range r.Parts {
			fmt.Fprintf(w, "  %s: %s\n", plain(p.Path), whyRecalled(p))
		}
		for line := range strings.Lines(r.Text) {
			if _, err := fmt.Fprintf(w, "  | %s\n", plain(strings.TrimRight(line, "\n"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// whyRecalled says what was told of a page, and why not more.
func whyRecalled(p event.MemoryPart) string {
	var parts []string
	if p.Own > 0 {
		parts = append(parts, fmt.Sprintf("%s that people wrote, which always come first", plural(p.Own, "line", "lines")))
	}
	switch {
	case p.Facts == p.Of && p.Of > 0:
		parts = append(parts, "all of its "+plural(p.Of, "fact", "facts"))
	case p.Facts > 0:
		parts = append(parts, fmt.Sprintf("the newest %d of its %s, which have room", p.Facts, plural(p.Of, "fact", "facts")))
	case p.Of > 0:
		parts = append(parts, fmt.Sprintf("none of its %s: there is no room", plural(p.Of, "fact", "facts")))
	}
	return strings.Join(parts, "; ")
}
