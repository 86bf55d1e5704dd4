package cli

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

func (a *app) listCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List sessions, most recently modified first",
		Example: "  abide sessions list --here\n  abide sessions list --json | jq -r '.[0].sessionId'",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	here := c.Flags().Bool("here", false, "list only the sessions of this directory")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		dir := ""
		if *here {
			var err error
			if dir, err = a.here(); err != nil {
				return err
			}
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			all, err := c.List(cmd.Context(), "")
			if err != nil {
				return err
			}
			list := in(dir, all)
			if *asJSON {
				return a.out.json(list)
			}
			return a.printSessions(list, shorten(ids(all)))
		})
	}
	return c
}

// in returns the sessions of a directory; all sessions if dir is empty.
func in(dir string, all []api.SessionInfo) []api.SessionInfo {
	if dir == "" {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s api.SessionInfo) bool { return place(s) != dir })
}

func (a *app) printSessions(list []api.SessionInfo, short map[string]string) error {
	if len(list) == 0 {
		if !a.quiet {
			a.err.printf("there are no sessions yet; start one with: abide run \"…\"\n")
		}
		return nil
	}
	t := &table{head: []string{"ID", "MODIFIED", "EVENTS", "STATE", "ABOUT"}}
	for _, s := range list {
		events := ""
		if s.Abide != nil {
			events = strconv.FormatInt(int64(s.Abide.Events), 10)
		}
		t.add(plain(short[string(s.SessionID)]), age(s.ModifiedTime, time.Now()), events, state(s), about(s))
	}
	return a.print(t)
}

func ids(list []api.SessionInfo) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = string(s.SessionID)
	}
	return all
}

// state returns the state of a session in one word.
func state(s api.SessionInfo) string {
	switch {
	case s.Abide == nil:
		return ""
	case s.Abide.Damage != "":
		return "damaged"
	case s.Abide.Questions > 0:
		return "waiting"
	case s.Abide.Unattended:
		return "unfinished"
	case s.Abide.Active:
		return "active"
	}
	return "idle"
}

// about returns the name of a session, or its first prompt.
func about(s api.SessionInfo) string {
	if s.Name != "" {
		return oneLine(s.Name)
	}
	return oneLine(s.Summary)
}

// age returns how long ago a time was, in words.
func age(stamp string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return stamp
	}
	switch d := now.Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	case d < 60*24*time.Hour:
		return fmt.Sprintf("%d days ago", d/(24*time.Hour))
	}
	return t.Local().Format(time.DateOnly)
}
