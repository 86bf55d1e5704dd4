package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) psCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ps [SESSION]",
		Short: "List the commands that agents run",
		Long: `List the commands that the agents of all sessions, or of one, are running. Commands
keep running when abide exits, and are found again when it starts. A command that has
ended is listed with "leftovers" as long as processes run that it has started; "abide
stop" ends them.

Commands that have ended in another workspace are listed with --all if SESSION is named,
or while the engine that has used the session runs.`,
		Example: "  abide ps\n  abide ps --all 0198c2f1\n  abide logs -f TASK\n  abide stop TASK",
		Args:    arguments(0, 1, "at most one SESSION"),
	}
	asJSON := jsonFlag(c)
	all := c.Flags().BoolP("all", "a", false, "include commands that have ended")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			p := api.TasksParams{All: *all}
			if len(args) == 1 {
				info, err := find(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				p.SessionID, p.Agents = info.SessionID, true
			}
			list, err := c.Tasks(cmd.Context(), p)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(list.Tasks)
			}
			sessions, err := c.List(cmd.Context(), "")
			if err != nil {
				return err
			}
			return a.printTasks(list.Tasks, ids(sessions), *all)
		})
	}
	return c
}

func (a *app) printTasks(list []api.Task, ids []string, all bool) error {
	if len(list) == 0 {
		if !a.quiet && all {
			a.err.printf("no command is known; those that have ended in another workspace are listed with: abide ps --all SESSION\n")
		} else if !a.quiet {
			a.err.printf("no command is running; --all includes those that have ended\n")
		}
		return nil
	}
	for _, t := range list {
		ids = append(ids, string(t.SessionID))
	}
	short := shorten(ids)
	t := &table{head: []string{"TASK", "SESSION", "STARTED", "STATUS", "OUTPUT", "COMMAND"}}
	for _, task := range list {
		t.add(plain(task.TaskID), plain(short[string(task.SessionID)]), age(task.Started, time.Now()), ending(task), size(task.Bytes), inLine(task.Command))
	}
	return a.print(t)
}

// hasEnded reports whether a command and all that it started have ended.
func hasEnded(t api.Task) bool {
	return t.Status != event.TaskRunning && t.Status != api.TaskUnreachable && !t.Lingering
}

// ending returns the status of a task, with its exit code or signal, and whether processes
// run that it has left behind.
func ending(t api.Task) string {
	var more []string
	switch {
	case t.Signal != "":
		more = append(more, t.Signal)
	case t.ExitCode != nil && *t.ExitCode != 0:
		more = append(more, fmt.Sprint(*t.ExitCode))
	}
	if t.Lingering {
		more = append(more, "leftovers")
	}
	if len(more) == 0 {
		return t.Status
	}
	return t.Status + " (" + strings.Join(more, ", ") + ")"
}

// size formats a number of bytes, as in 1.5 MiB.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/unit, "KMGT"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}

// findTask finds a task by its name or the start of it. If a session has used a name
// again, the newest task is meant; if several sessions have a task with this name and one
// of them has not ended, that one.
func findTask(ctx context.Context, c *client.Client, name string) (api.Task, error) {
	all, err := c.Tasks(ctx, api.TasksParams{All: true})
	if err != nil {
		return api.Task{}, err
	}
	match := func(fits func(id string) bool) []api.Task {
		seen := make(map[event.SessionID]string)
		var list []api.Task
		for _, t := range slices.Backward(all.Tasks) {
			if fits(t.TaskID) && seen[t.SessionID] != t.TaskID {
				seen[t.SessionID] = t.TaskID
				list = append(list, t)
			}
		}
		return list
	}
	found := match(func(id string) bool { return id == name })
	if going := slices.DeleteFunc(slices.Clone(found), hasEnded); len(going) == 1 {
		found = going
	}
	if len(found) == 0 {
		found = match(func(id string) bool { return name != "" && strings.HasPrefix(id, name) })
	}
	switch len(found) {
	case 0:
		return api.Task{}, usagef("there is no task %s (list the tasks with: abide ps --all; if it has ended in another workspace, with abide ps --all SESSION, and name the session with --session)", name)
	case 1:
		return found[0], nil
	}
	text := ""
	for _, t := range found {
		text += fmt.Sprintf("\n  %s  of session %s  %s", t.TaskID, t.SessionID, inLine(t.Command))
	}
	return api.Task{}, usagef("task %s is ambiguous; give more of its name, or the session with --session:%s", name, text)
}
