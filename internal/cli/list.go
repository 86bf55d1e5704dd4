package cli

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/lazyregexp"
)

const listLong = `List sessions, the last modified first. With several filters, list those that match all
of them. Sessions of agents, and those without a message, are not listed.

A session is idle, active (a turn is running), waiting (for an answer), unfinished (its
turn goes on when the session is used, or under abide serve) or damaged. TIME is a date,
a time like 2026-01-31T12:00:00Z, or how long ago it was, like 36h or 7d.`

func (a *app) listCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List sessions, most recently modified first",
		Long:    listLong,
		Example: "  abide sessions list --here\n  abide sessions list --state unfinished --since 7d\n  abide sessions list --json | jq -r '.[0].sessionId'",
		Args:    arguments(0, 0, "no arguments"),
	}
	l := &listing{app: a}
	asJSON := jsonFlag(c)
	flags := c.Flags()
	flags.BoolVar(&l.here, "here", false, "list only the sessions of this directory")
	flags.StringVar(&l.filter.Cwd, "dir", "", "list only the sessions of the `DIRECTORY`")
	flags.StringVar(&l.filter.Repository, "repo", "", "list only the sessions whose directory is in the repository `OWNER/NAME`")
	flags.StringVar(&l.filter.Branch, "branch", "", "list only the sessions whose directory has this `BRANCH` now")
	flags.StringVar(&l.filter.State, "state", "", "list only the sessions in this `STATE`: "+strings.Join(api.States, ", "))
	flags.StringVar(&l.filter.Text, "name", "", "list only the sessions whose name, or first message, contains the `TEXT`")
	flags.StringVar(&l.since, "since", "", "list only the sessions modified at or after the `TIME`")
	flags.StringVar(&l.before, "before", "", "list only the sessions modified before the `TIME`")
	flags.IntVarP(&l.limit, "limit", "n", 0, "list at most `N` sessions; all if 0")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(api.States, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := l.check(time.Now()); err != nil {
			return err
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			found := atMost(l.limit, c.Sessions(cmd.Context(), l.filter))
			if *asJSON {
				return a.out.jsonList(withState(found))
			}
			return l.print(found)
		})
	}
	return c
}

// A listing is a list of sessions as the flags want it.
type listing struct {
	app           *app
	filter        api.Filter
	here          bool
	since, before string
	limit         int
}

// check checks the flags, and completes the filter.
func (l *listing) check(now time.Time) (err error) {
	f := &l.filter
	switch {
	case l.here && f.Cwd != "":
		return usagef("--here and --dir exclude each other")
	case f.State != "" && !slices.Contains(api.States, f.State):
		return usagef("--state %s: use one of %s", f.State, strings.Join(api.States, ", "))
	case l.limit < 0:
		return usagef("--limit %d is negative", l.limit)
	case l.here:
		f.Cwd, err = l.app.here()
	case f.Cwd != "":
		f.Cwd, err = filepath.Abs(f.Cwd)
	}
	if err == nil {
		f.ModifiedSince, err = timeFlag("since", l.since, now)
	}
	if err == nil {
		f.ModifiedBefore, err = timeFlag("before", l.before, now)
	}
	return err
}

// timeFlag returns the value of a flag that is a time, as the protocol has times.
func timeFlag(name, text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	if d, err := config.ParseAge(text); err == nil {
		return event.FormatTime(now.Add(-d)), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return event.FormatTime(t), nil
	}
	t, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		return "", usagef("--%s %s: use a date like 2026-01-31, a time like 2026-01-31T12:00:00Z, or an age like 36h or 7d", name, text)
	}
	return event.FormatTime(t), nil
}

// atMost yields at most n sessions; all if n is zero.
func atMost(n int, all iter.Seq2[api.SessionInfo, error]) iter.Seq2[api.SessionInfo, error] {
	return func(yield func(api.SessionInfo, error) bool) {
		left := n
		for s, err := range all {
			if !yield(s, err) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// A listedSession is a session in JSON, with its state in one word as the table has it.
type listedSession struct {
	api.SessionInfo
	State string `json:"state,omitempty"`
}

// withState yields sessions as they are printed in JSON.
func withState(all iter.Seq2[api.SessionInfo, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for s, err := range all {
			if !yield(listedSession{s, s.State()}, err) {
				return
			}
		}
	}
}

// The number of sessions that are printed together: few at first, so that they are there
// at once.
const (
	firstPart = 50
	laterPart = 500
)

// print prints sessions as they come.
func (l *listing) print(found iter.Seq2[api.SessionInfo, error]) error {
	t := &table{head: []string{"ID", "MODIFIED", "EVENTS", "STATE", "ABOUT"}}
	var part []api.SessionInfo
	most := firstPart
	for s, err := range found {
		if err != nil {
			return err
		}
		if len(part) == most {
			if err := l.printPart(t, part, true); err != nil {
				return err
			}
			part, most = part[:0], laterPart
		}
		part = append(part, s)
	}
	if len(part) == 0 && t.printed == nil {
		l.printNone()
		return nil
	}
	return l.printPart(t, part, t.printed != nil || l.limit > 0 || l.filter != (api.Filter{}))
}

func (l *listing) printNone() {
	switch {
	case l.app.quiet:
	case l.filter != (api.Filter{}):
		l.app.err.printf("no session matches these flags; list all with: abide sessions list\n")
	default:
		l.app.err.printf("there are no sessions yet; start one with: abide run \"…\"\n")
	}
}

// printPart prints some of the sessions. If they are not all, their ids are cut to the
// part that hardly another id has.
func (l *listing) printPart(t *table, part []api.SessionInfo, more bool) error {
	short := shorten(ids(part))
	for _, s := range part {
		id, events := string(s.SessionID), ""
		if s.Abide != nil {
			events = strconv.FormatInt(int64(s.Abide.Events), 10)
		}
		if !more {
			id = short[id]
		} else {
			id = startOf(id)
		}
		t.add(plain(id), age(s.ModifiedTime, time.Now()), events, s.State(), about(s))
	}
	return l.app.printPart(t)
}

// startOf returns the start of an id that hardly another id has.
func startOf(id string) string {
	if uuid.MatchString(id) {
		return id[:uniqueStart]
	}
	return id
}

// uniqueStart is the length of the start of an id of ours that has its time in
// milliseconds and twelve random bits.
const uniqueStart = len("0198c2f1-a9d6-7c31")

var uuid = lazyregexp.New("^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$")

func ids(list []api.SessionInfo) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = string(s.SessionID)
	}
	return all
}

// about returns the name of a session, or its first prompt, and its workspace if that is
// not the machine of the engine.
func about(s api.SessionInfo) string {
	if s.Abide != nil && s.Abide.Workspace != nil {
		place := s.Abide.Workspace
		s.Abide = nil
		return "[" + oneLine(place.Label()) + "] " + about(s)
	}
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
