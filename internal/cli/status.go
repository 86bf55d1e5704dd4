package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show what is running",
		Long: `Show which process is the engine of the data folder, since when and in which version,
how many sessions are active, wait for an answer or are unfinished, and how many
commands of agents are running. The exit code is 1 if the engine does not work because
it was stopped by a signal.`,
		Example: "  abide status\n  abide status --json | jq .engine.pid",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.status(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			err = a.out.json(s)
		} else {
			err = a.printStatus(s)
		}
		if err == nil && s.Engine != nil && s.Engine.Stopped {
			err = &exitError{code: exitFailed}
		}
		return err
	}
	return c
}

// A status is what is running for a data folder, in JSON output.
type status struct {
	Dir         string         `json:"dir"`
	Engine      *engineStatus  `json:"engine"`                // null if none is running
	Sessions    map[string]int `json:"sessions,omitempty"`    // number of sessions by state, without those at rest
	Commands    *int           `json:"commands,omitempty"`    // number of commands that are running
	Unreachable int            `json:"unreachable,omitempty"` // number of commands whose workspaces cannot be reached
}

// An engineStatus is the process that is the engine.
type engineStatus struct {
	PID     int    `json:"pid,omitempty"`
	Since   string `json:"since,omitempty"`
	Version string `json:"version,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
}

// status finds out what is running. It creates no data folder, and does not wait for an
// engine that was stopped.
func (a *app) status(ctx context.Context) (status, error) {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil {
		return status{}, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return status{}, configError(err)
	}
	s := status{Dir: dir}
	if holder, used := folder.InUse(dir); used {
		s.Engine = &engineStatus{PID: holder.PID, Stopped: holder.Stopped}
		if !holder.Since.IsZero() {
			s.Engine.Since = event.FormatTime(holder.Since)
		}
	}
	if s.Engine != nil && s.Engine.Stopped {
		return s, nil
	}
	if _, _, err := a.store(); s.Engine == nil && err != nil {
		if errors.Is(err, errNoLog) {
			return s, nil
		}
		return s, err // somebody who may not read the folder does not see its engine either
	}
	return s, a.withVisitor(ctx, func(c *client.Client) error { return s.ask(ctx, c) })
}

// workingStates are the states of sessions that are not at rest.
var workingStates = []string{api.StateActive, api.StateWaiting, api.StateUnfinished}

// ask asks the engine what it does. If there was none, this process is the engine for the
// moment, and its version says nothing.
func (s *status) ask(ctx context.Context, c *client.Client) error {
	runtime, err := c.RuntimeStatus(ctx)
	if err != nil {
		return err
	}
	if s.Engine != nil {
		s.Engine.Version = runtime.Version
	}
	s.Sessions = make(map[string]int)
	for _, state := range workingStates {
		s.Sessions[state] = 0
		for _, err := range c.Sessions(ctx, api.Filter{State: state}) {
			if err != nil {
				return err
			}
			s.Sessions[state]++
		}
	}
	tasks, err := c.Tasks(ctx, api.TasksParams{})
	if err != nil {
		return err
	}
	running := 0
	for _, t := range tasks.Tasks {
		switch {
		case t.Status == api.TaskUnreachable:
			s.Unreachable++
		case t.Ended == "": // otherwise it has only left something behind
			running++
		}
	}
	s.Commands = &running
	return nil
}

func (a *app) printStatus(s status) error {
	t := &table{head: []string{"WHAT", "STATUS"}, wrap: true}
	t.add("data folder", plain(s.Dir))
	t.add("engine", s.Engine.text(time.Now()))
	if s.Sessions != nil {
		var counts []string
		for _, state := range workingStates {
			counts = append(counts, fmt.Sprintf("%d %s", s.Sessions[state], state))
		}
		t.add("sessions", strings.Join(counts, ", "))
	}
	if s.Commands != nil {
		counts := fmt.Sprintf("%d running", *s.Commands)
		if s.Unreachable > 0 {
			counts += fmt.Sprintf(", %d unreachable", s.Unreachable)
		}
		t.add("commands", counts)
	}
	return a.print(t)
}

// text describes the engine in words.
func (e *engineStatus) text(now time.Time) string {
	if e == nil {
		return "none is running; a command starts one when it needs one, and abide serve is one that stays"
	}
	words := []string{folder.Holder{PID: e.PID}.String()}
	if e.Since != "" {
		words = append(words, fmt.Sprintf("since %s (%s)", e.Since, age(e.Since, now)))
	}
	if e.Version != "" {
		words = append(words, "abide "+plain(e.Version))
	}
	if e.Stopped {
		words = append(words, fmt.Sprintf("stopped by a signal: resume it with kill -CONT %d", e.PID))
	}
	return strings.Join(words, ", ")
}
