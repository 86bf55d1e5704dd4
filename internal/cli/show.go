package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show SESSION",
		Short: "Print what was said and done, with positions",
		Long: `Prints a session as a person reads it. The numbers are positions: fork and rewind
take them. What was taken back is left out; --all shows every event.`,
		Example: "  abide sessions show 0198c2f1 | less -R",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "show every event, also what was taken back")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.visit(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			s, err := readStory(cmd.Context(), c, info)
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

// A story is a session as it is read.
type story struct {
	info   api.SessionInfo
	events []event.Event
	hidden []event.HistoryHiddenData // what was taken back
}

// readStory reads a session. If it is damaged, the story is what is whole.
func readStory(ctx context.Context, c *client.Client, info api.SessionInfo) (*story, error) {
	s := &story{info: info}
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

func (s *story) takenBack(at event.Seq) bool {
	for _, d := range s.hidden {
		if at >= d.From && at <= d.To {
			return true
		}
	}
	return false
}

// A storyEvent is an event of a story as JSON output has it.
type storyEvent struct {
	Position  event.Seq       `json:"position"`
	TakenBack bool            `json:"takenBack,omitempty"`
	Event     json.RawMessage `json:"event"`
}

func (s *story) forJSON(all bool) any {
	list := []storyEvent{}
	for _, e := range s.events {
		back := s.takenBack(e.Seq)
		if all || !back && !e.Type.Hidden() {
			list = append(list, storyEvent{e.Seq, back, e.Bytes})
		}
	}
	return struct {
		Session api.SessionInfo `json:"session"`
		Events  []storyEvent    `json:"events"`
	}{s.info, list}
}

// write prints the story.
func (s *story) write(w io.Writer, paint painter, all bool) error {
	title := "session " + plain(string(s.info.SessionID))
	if s.info.Name != "" {
		title += "  " + oneLine(s.info.Name)
	}
	if dir := place(s.info); dir != "" {
		title += "  in " + oneLine(dir)
	}
	if _, err := fmt.Fprintf(w, "%s\n", paint.in(bold, title)); err != nil {
		return err
	}
	for _, e := range s.events {
		back := s.takenBack(e.Seq)
		who, text := told(e)
		switch {
		case all && who == "":
			who, text = "·", string(e.Type)
		case who == "" || back && !all:
			continue
		}
		if back {
			who += " (taken back)"
		}
		if err := writeEntry(w, paint, e.Seq, who, text); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry prints who said or did what; further lines are set in.
func writeEntry(w io.Writer, paint painter, at event.Seq, who, text string) error {
	text = strings.ReplaceAll(strings.TrimRight(plain(text), "\n"), "\n", "\n                  ")
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", paint.in(faint, fmt.Sprintf("%5d", at)), paint.in(bold, fmt.Sprintf("%-9s", who)), text)
	return err
}

// told says who said or did what; nobody if a reader need not know. What does
// not decode is shown as it is.
func told(e event.Event) (who, text string) {
	say := func(w, t string) { who, text = w, t }
	err := tell(e, say)
	if err != nil {
		return string(e.Type), string(e.Bytes)
	}
	return who, text
}

func tell(e event.Event, say func(who, text string)) error {
	if q, ok, err := questionOf(e); ok || err != nil {
		if ok {
			say("question", q.sentence()+"  ["+q.RequestID+"]")
		}
		return err
	}
	switch e.Type {
	case event.UserMessage:
		return on(e, func(d event.UserMessageData) { say("user", d.Content) })
	case event.AssistantMessage:
		return on(e, func(d event.AssistantMessageData) { say("assistant", spoken(d)) })
	case event.ToolComplete:
		return on(e, func(d event.ToolCompleteData) { say(toolResult(d)) })
	case event.PermissionDone:
		return on(e, func(d event.PermissionDoneData) {
			say("answer", strings.TrimSpace(d.Result.Kind+" "+d.Result.Feedback))
		})
	case event.UserInputDone:
		return on(e, func(d event.UserInputDoneData) { say("answer", d.Reply) })
	case event.SessionError:
		return on(e, func(d event.SessionErrorData) { say("error", d.Message) })
	case event.SessionWarning:
		return on(e, func(d event.SessionWarningData) { say("warning", d.Message) })
	case event.SessionInfo:
		return on(e, func(d event.SessionInfoData) { say("note", d.Message) })
	case event.SessionModelChange:
		return on(e, func(d event.SessionModelChangeData) { say("model", d.NewModel) })
	case event.Abort:
		return on(e, func(d event.AbortData) { say("stopped", d.Reason) })
	case event.SessionForked:
		return on(e, func(d event.SessionForkedData) { say("forked", fmt.Sprintf("from %s at %d", d.Parent, d.At)) })
	case event.HistoryHidden:
		return on(e, func(d event.HistoryHiddenData) { say("rewound", fmt.Sprintf("%d to %d", d.From, d.To)) })
	case event.CompactionComplete:
		return on(e, func(d event.CompactionCompleteData) { say("note", compactedTo(d)) })
	case event.ContextEpoch:
		return on(e, func(d event.ContextEpochData) {
			if d.Kind == event.EpochUndo {
				say("note", "the last compaction was undone")
			}
		})
	}
	return nil
}

// spoken is what the model said, and which calls it wants made.
func spoken(d event.AssistantMessageData) string {
	var lines []string
	if d.Content != "" {
		lines = append(lines, d.Content)
	}
	for _, r := range d.ToolRequests {
		lines = append(lines, "▸ "+r.Name+" "+brief(r.Arguments))
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
