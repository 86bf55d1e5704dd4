package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
)

func (a *app) showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show SESSION",
		Short: "Print the conversation of a session",
		Long: `Print the conversation of a session. The numbers are positions, which "abide sessions
fork" and "abide sessions rewind" take. Events that were undone are left out; --all
shows every event.`,
		Example: "  abide sessions show 0198c2f1 | less -R",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "show every event, including those that were undone")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			s, err := readSession(cmd.Context(), c, info)
			if *asJSON {
				return first(a.out.json(s.forJSON(*all)), err)
			}
			return first(a.out.buffered(func(w io.Writer) error { return s.write(w, paint(a.out), *all) }), err)
		})
	}
	return c
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A sessionText is a session as abide sessions show prints it.
type sessionText struct {
	info   api.SessionInfo
	events []event.Event
	hidden []event.HistoryHiddenData // ranges of events that were undone
}

// readSession reads a session. Of a damaged session it returns the events before the
// damage, and an error.
func readSession(ctx context.Context, c *client.Client, info api.SessionInfo) (*sessionText, error) {
	s := &sessionText{info: info}
	for e, err := range c.Events(ctx, info.SessionID, 0) {
		if err != nil {
			return s, explainDamage(info.SessionID, err)
		}
		s.events = append(s.events, e)
		if e.Type == event.HistoryHidden {
			d, err := event.As[event.HistoryHiddenData](e)
			if err != nil {
				return s, err
			}
			s.hidden = append(s.hidden, d)
		}
	}
	return s, nil
}

func (s *sessionText) takenBack(at event.Seq) bool {
	for _, d := range s.hidden {
		if at >= d.From && at <= d.To {
			return true
		}
	}
	return false
}

// A shownEventJSON is an event in JSON output.
type shownEventJSON struct {
	Position  event.Seq       `json:"position"`
	TakenBack bool            `json:"takenBack,omitempty"`
	Event     json.RawMessage `json:"event"`
}

func (s *sessionText) forJSON(all bool) any {
	list := []shownEventJSON{}
	for _, e := range s.events {
		back := s.takenBack(e.Seq)
		if all || !back && !e.Type.Hidden() {
			list = append(list, shownEventJSON{e.Seq, back, e.Bytes})
		}
	}
	return struct {
		Session api.SessionInfo  `json:"session"`
		Events  []shownEventJSON `json:"events"`
	}{s.info, list}
}

// write prints the session.
func (s *sessionText) write(w io.Writer, paint painter, all bool) error {
	title := "session " + plain(string(s.info.SessionID))
	if s.info.Name != "" {
		title += "  " + oneLine(s.info.Name)
	}
	if dir := place(s.info); dir != "" {
		title += "  in " + oneLine(dir)
	}
	if s.info.Abide != nil && s.info.Abide.Workspace != nil {
		title += "  of the workspace " + oneLine(s.info.Abide.Workspace.Label())
	}
	if _, err := fmt.Fprintf(w, "%s\n", paint.in(bold, title)); err != nil {
		return err
	}
	for _, e := range s.events {
		back := s.takenBack(e.Seq)
		who, text := describeEvent(e)
		switch {
		case all && who == "":
			who, text = "·", string(e.Type)
		case who == "" || back && !all:
			continue
		}
		if back {
			who += " (undone)"
		}
		if err := writeEntry(w, paint, e.Seq, who, text); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry prints one entry; further lines of its text are indented.
func writeEntry(w io.Writer, paint painter, at event.Seq, who, text string) error {
	text = strings.ReplaceAll(strings.TrimRight(plain(text), "\n"), "\n", "\n                  ")
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", paint.in(faint, fmt.Sprintf("%5d", at)), paint.in(bold, fmt.Sprintf("%-9s", who)), text)
	return err
}

// describeEvent returns who said or did what in an event; who is empty if the event is not
// shown. An event that does not decode is returned as its JSON, and an event of an
// unknown type as its type, unless it is ephemeral.
func describeEvent(e event.Event) (who, text string) {
	if _, known := e.Type.Kind(); !known {
		if e.Kind().Ephemeral {
			return "", ""
		}
		return "unknown", string(e.Type)
	}
	who, text, err := decodeAndDescribe(e)
	if err != nil {
		return string(e.Type), string(e.Bytes)
	}
	return who, text
}

func decodeAndDescribe(e event.Event) (who, text string, err error) {
	switch q, ok, err := questionOf(e); {
	case err != nil:
		return "", "", err
	case ok:
		return "question", q.sentence() + "  [" + q.RequestID + "]", nil
	}
	if teller := eventDescribers[e.Type]; teller != nil {
		return teller(e)
	}
	return "", "", nil
}

// An eventDescriber returns who said or did what in an event.
type eventDescriber func(event.Event) (who, text string, err error)

// eventDescribers are the describers of events, by type; questions are described by
// questionOf. Each type that clients are shown is here, in another view, or silent in
// the table of kinds.
var eventDescribers = make(map[event.Type]eventDescriber)

// describe adds the describer of the events that have a body of type T. The file of a
// feature can add its own.
func describe[T event.Payload](say func(T) (who, text string)) struct{} {
	var body T
	eventDescribers[body.Type()] = func(e event.Event) (who, text string, err error) {
		err = decodeFor(e, func(d T) { who, text = say(d) })
		return who, text, err
	}
	return struct{}{}
}

var (
	_ = describe(func(d event.UserMessageData) (who, text string) { return "user", d.Content })
	_ = describe(func(d event.AssistantMessageData) (who, text string) { return "assistant", messageText(d) })
	_ = describe(toolResult)
	_ = describe(func(d event.PermissionDoneData) (who, text string) {
		text = block.Decision(d.Result.Kind)
		if d.Result.Feedback != "" {
			text += ": " + d.Result.Feedback
		}
		return "answer", text
	})
	_ = describe(func(d event.UserInputDoneData) (who, text string) { return "answer", d.Reply })
	_ = describe(func(d event.SessionErrorData) (who, text string) { return "error", d.Message })
	_ = describe(func(d event.SessionWarningData) (who, text string) { return "warning", d.Message })
	_ = describe(func(d event.SessionInfoData) (who, text string) { return "note", d.Message })
	_ = describe(func(d event.SessionModelChangeData) (who, text string) { return "model", d.NewModel })
	_ = describe(func(d event.AbortData) (who, text string) { return "stopped", cmp.Or(d.Detail, d.Reason) })
	_ = describe(func(d event.SessionForkedData) (who, text string) {
		return "forked", fmt.Sprintf("from %s at %d", d.Parent, d.At)
	})
	_ = describe(func(d event.HistoryHiddenData) (who, text string) {
		return "rewound", fmt.Sprintf("positions %d to %d", d.From, d.To)
	})
	_ = describe(func(d event.CompactionCompleteData) (who, text string) { return "note", compactedTo(d) })
	_ = describe(func(d event.ContextEpochData) (who, text string) {
		if d.Kind == event.EpochUndo {
			return "note", "the last compaction was undone"
		}
		return "", ""
	})
)

// messageText returns the text of the model and the calls that it requests.
func messageText(d event.AssistantMessageData) string {
	var lines []string
	if d.Content != "" {
		lines = append(lines, d.Content)
	}
	for _, r := range d.ToolRequests {
		lines = append(lines, "▸ "+r.Name+" "+shortArguments(r.Arguments))
	}
	return strings.Join(lines, "\n")
}

func toolResult(d event.ToolCompleteData) (who, text string) {
	switch {
	case d.Error != nil:
		return "tool failed", d.Error.Message
	case d.Result != nil:
		return "tool", d.Result.Content
	}
	return "tool", ""
}
