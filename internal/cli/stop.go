package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) stopCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stop SESSION|TASK...",
		Short: "Stop sessions, or commands that agents run",
		Long: `Stop what is named: a session or a command.

Of a session, stop the current turn and the commands that it waits for, as Ctrl-C in
"abide run" does, and with --all also its commands in the background. Queued prompts are
kept, and wait until somebody sends the session a message or resumes it. What a command
in the background reports begins no turn before somebody sends a message. What is noted
for memory of turns that had ended goes on ("abide jobs" lists it).

Stop a command and every process that it started: with SIGTERM first, then with
SIGKILL. Its agent is notified, and its turn goes on.

A command whose workspace cannot be reached is not stopped, and not lost either: it is
watched until the workspace is back. With --give-up, its agent is told now that it is
lost, and whatever it does there goes on.

Return when no process is left.`,
		Example: "  abide ps\n  abide stop dev-server\n  abide stop --all 0198c2f1",
		Args:    arguments(1, 1000, "at least one SESSION or TASK"),
	}
	s := stopping{app: a}
	c.Flags().StringVar(&s.session, "session", "", "`SESSION` of the TASK, if several sessions have one with this name")
	c.Flags().BoolVar(&s.all, "all", false, "stop the background commands of a SESSION and its agents, too")
	c.Flags().BoolVar(&s.giveUp, "give-up", false, "report a TASK as lost if its workspace cannot be reached; it may go on there")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			s.client = c
			var failed error
			for _, name := range args {
				failed = errors.Join(failed, s.stop(cmd.Context(), name))
			}
			return failed
		})
	}
	return c
}

// stopping is one run of abide stop.
type stopping struct {
	app     *app
	client  *client.Client
	session string
	all     bool
	giveUp  bool
}

// stop stops the session or the command that a name means.
func (s *stopping) stop(ctx context.Context, name string) error {
	if s.session != "" {
		return s.stopTask(ctx, name)
	}
	isSession, err := s.isSession(ctx, name)
	switch {
	case err != nil:
		return err
	case isSession:
		return s.stopSession(ctx, name)
	case s.all:
		return usagef("--all is for a session, and %s is a command", name)
	}
	return s.stopTask(ctx, name)
}

// isSession reports whether a name means a session and not a command. A whole name wins
// over the start of another one.
func (s *stopping) isSession(ctx context.Context, name string) (bool, error) {
	tasks, err := s.client.Tasks(ctx, api.TasksParams{All: true})
	if err != nil {
		return false, err
	}
	whole, err := s.client.Metadata(ctx, event.SessionID(name)) // metadata exist for the session of an agent, too, which no list has
	if err != nil {
		return false, err
	}
	var session, task, taskStarts bool
	for info, err := range s.client.Sessions(ctx, api.Filter{IDPrefix: name}) {
		if err != nil {
			return false, err
		}
		session = session || name != "" && strings.HasPrefix(string(info.SessionID), name)
	}
	for _, t := range tasks.Tasks {
		task = task || t.TaskID == name
		taskStarts = taskStarts || name != "" && strings.HasPrefix(t.TaskID, name)
	}
	switch {
	case whole != nil && task, whole == nil && !task && session && taskStarts:
		return false, usagef("%s is ambiguous: it names a session and a command; give more of its name, or name a command with --session", name)
	case whole == nil && !task && !session && !taskStarts:
		return false, usagef("there is no session or task %s (list them with: abide sessions list, abide ps --all)", name)
	}
	return whole != nil || !task && session, nil
}

// stopSession stops the turn of a session and, with --all, its commands in the
// background and those of its agents.
func (s *stopping) stopSession(ctx context.Context, name string) error {
	info, err := find(ctx, s.client, name)
	if err != nil {
		return err
	}
	r, err := abortTurn(ctx, s.client, api.AbortParams{SessionID: info.SessionID, KeepQueue: true})
	if err != nil {
		return err
	}
	if s.all {
		r.Background = 0
	}
	s.app.printStop(info.SessionID, r)
	if !s.app.quiet {
		s.app.err.printf("it stays stopped until you go on: abide run --resume %s \"…\"\n", info.SessionID)
	}
	if !s.all {
		return nil
	}
	running, err := s.client.Tasks(ctx, api.TasksParams{SessionID: info.SessionID, Agents: true})
	if err != nil {
		return err
	}
	var failed error
	for _, t := range running.Tasks {
		failed = errors.Join(failed, s.end(ctx, t))
	}
	return failed
}

// stopTask stops the command with a name.
func (s *stopping) stopTask(ctx context.Context, name string) error {
	t, err := theTask(ctx, s.client, name, s.session)
	if err != nil {
		return err
	}
	return s.end(ctx, t)
}

// end ends a command, and says how it ended.
func (s *stopping) end(ctx context.Context, t api.Task) error {
	t, err := s.client.StopTask(ctx, api.TaskParams{SessionID: t.SessionID, TaskID: t.TaskID, GiveUp: s.giveUp})
	if err != nil {
		return err
	}
	s.app.out.printf("%s %s\n", t.TaskID, ending(t))
	if t.Unkept {
		return fmt.Errorf("the keeper of %s was killed, so that nobody knows all its processes: those that were found were ended, but one that has left its process group and cleared its environment may still run (look for it with: ps -ef)", t.TaskID)
	}
	return nil
}
