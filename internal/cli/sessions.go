package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

const sessionsExamples = `  abide sessions list
  abide sessions show 0198c2f1
  abide sessions fork 0198c2f1 --at 12
  abide sessions verify`

func (a *app) sessionsCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:     "sessions",
		Aliases: []string{"session"},
		Short:   "List, read, search, fork, rewind, export, check and delete sessions",
		Long:    "Inspect and manage sessions. Wherever a SESSION is expected, the start of its id is enough.",
		Example: sessionsExamples,
	})
	c.AddCommand(a.listCommand(), a.showCommand(), a.searchCommand(), a.forkCommand(), a.rewindCommand(),
		a.exportCommand(), a.verifyCommand(), a.deleteCommand(), a.pruneCommand())
	return c
}

// find finds a session by its id, or by the start of it. The start of an id means a session
// that is listed, if there is one: a fork of the very beginning has no message yet.
func find(ctx context.Context, c *client.Client, name string) (api.SessionInfo, error) {
	info, err := c.Metadata(ctx, event.SessionID(name))
	if err != nil {
		return api.SessionInfo{}, err
	}
	if info != nil {
		return *info, nil
	}
	found, err := startingWith(ctx, c, api.Filter{IDPrefix: name})
	if err == nil && len(found) == 0 {
		found, err = startingWith(ctx, c, api.Filter{IDPrefix: name, Unlisted: true})
	}
	if err != nil {
		return api.SessionInfo{}, err
	}
	switch len(found) {
	case 0:
		return api.SessionInfo{}, usagef("there is no session %q (list the sessions with: abide sessions list)", name)
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for i, s := range found {
		ids[i] = string(s.SessionID)
	}
	return api.SessionInfo{}, usagef("session id %q is ambiguous: %d sessions start with it:\n  %s", name, len(ids), strings.Join(ids, "\n  "))
}

// startingWith returns the sessions of a filter by the start of ids, which may not be empty.
func startingWith(ctx context.Context, c *client.Client, f api.Filter) ([]api.SessionInfo, error) {
	var found []api.SessionInfo
	for s, err := range c.Sessions(ctx, f) {
		if err != nil {
			return nil, err
		}
		if f.IDPrefix != "" && strings.HasPrefix(string(s.SessionID), f.IDPrefix) {
			found = append(found, s)
		}
	}
	return found, nil
}

// jsonFlag adds the --json flag to a command.
func jsonFlag(c *cobra.Command) *bool { return c.Flags().Bool("json", false, "print JSON") }

// shorten cuts ids to the shortest length at which they differ, at least eight
// characters.
func shorten(ids []string) map[string]string {
	n := 8
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	for i := 1; i < len(sorted); i++ { // ids with the longest common prefix are neighbours
		n = max(n, common(sorted[i-1], sorted[i])+1)
	}
	short := make(map[string]string, len(sorted))
	for _, id := range sorted {
		short[id] = id[:min(n, len(id))]
	}
	return short
}

// common returns the length of the common prefix of two texts.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
