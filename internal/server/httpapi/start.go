package httpapi

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// start starts a process.
func (a *api) start(w http.ResponseWriter, r *http.Request, owner process.Owner) error {
	req, err := decodeStart(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	spec, err := a.spec(r.Context(), req, owner)
	if err != nil {
		return err
	}
	info, attached, err := a.processes.Start(r.Context(), spec)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, struct {
		ID       process.ID `json:"id"`
		Started  bool       `json:"started"`
		Attached bool       `json:"attached"`
	}{info.ID, true, attached})
	return nil
}

func (a *api) spec(ctx context.Context, r startRequest, owner process.Owner) (process.Spec, error) {
	s := process.Spec{Key: r.Key, Owner: owner, Command: r.Command, Dir: r.Workdir, Title: r.Title, Class: process.OneShot}
	if s.Key == "" {
		s.Key = rand.Text() // nobody can ask for it again
	}
	if r.Background {
		s.Class = process.Service
	}
	env, err := a.env(ctx, owner)
	if err != nil {
		return s, err
	}
	s.Env = slices.Clip(env)
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		s.Env = append(s.Env, name+"="+r.Env[name])
	}
	return s, nil
}

// env returns the environment of the processes of an owner.
func (a *api) env(ctx context.Context, owner process.Owner) (env []string, err error) {
	if a.opts.Env != nil {
		env, err = a.opts.Env(ctx, owner)
	}
	if env == nil {
		env = process.PlainEnv()
	}
	return env, err
}

// A listed is a process in a list.
type listed struct {
	ID         process.ID    `json:"id"`
	Command    string        `json:"command"`
	Workdir    string        `json:"workdir"`
	Title      string        `json:"title,omitempty"`
	Background bool          `json:"background"`
	State      process.State `json:"state"`
	Reason     string        `json:"reason,omitempty"`
	Running    bool          `json:"running"`
	ExitCode   *int          `json:"exit_code"`
	Signal     string        `json:"signal,omitempty"`
	StartedAt  int64         `json:"started_at_unix"`
	ExitedAt   *int64        `json:"exited_at_unix"`
}

func listedOf(i process.Info) listed {
	l := listed{
		ID: i.ID, Command: i.Command, Workdir: i.Dir, Title: i.Title, Background: i.Class == process.Service,
		State: i.State, Reason: i.Reason, Running: !i.State.Ended(), StartedAt: began(i).Unix(),
	}
	l.ExitCode, l.Signal = exit(i)
	if !i.Ended.IsZero() {
		at := i.Ended.Unix()
		l.ExitedAt = &at
	}
	return l
}

// began is when a process started, or should have.
func began(i process.Info) time.Time {
	if i.Started.IsZero() {
		return i.Created
	}
	return i.Started
}

// exit is the exit code, if there is one, and the signal that it stands for.
func exit(i process.Info) (*int, string) {
	if i.Exit == nil {
		return nil, ""
	}
	return &i.Exit.Code, i.Exit.Signal
}

// list lists the session's processes: those that run first, then the latest first.
func (a *api) list(w http.ResponseWriter, r *http.Request, owner process.Owner) error {
	limit, err := number(r, "limit", 1, 1_000_000, 1_000_000)
	if err != nil {
		return err
	}
	all, err := a.processes.List(r.Context(), owner)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(x, y process.Info) int {
		if x.State.Ended() != y.State.Ended() {
			if y.State.Ended() {
				return -1
			}
			return 1
		}
		return began(y).Compare(began(x))
	})
	list := make([]listed, 0, len(all))
	for _, info := range all[:min(len(all), int(limit))] {
		list = append(list, listedOf(info))
	}
	reply(w, http.StatusOK, struct {
		Processes []listed `json:"processes"`
		Total     int      `json:"total"`
	}{list, len(all)})
	return nil
}

// number reads a parameter of the query.
func number(r *http.Request, name string, least, most, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid("%s is %q: give a number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// aliases are words for signals that are not their names.
var aliases = map[string]string{"kill": "SIGKILL", "terminate": "SIGTERM", "interrupt": "SIGINT"}

// signal sends a signal.
func (a *api) signal(w http.ResponseWriter, r *http.Request, owner process.Owner) error {
	name, err := decodeSignal(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	if full, ok := aliases[name]; ok {
		name = full
	}
	sig, err := workspace.ParseSignal(name)
	if err != nil {
		return err
	}
	if err := a.processes.Signal(r.Context(), owner, process.ID(r.PathValue("id")), sig); err != nil {
		return err
	}
	reply(w, http.StatusOK, map[string]string{"message": workspace.SignalName(sig) + " was sent to the process"})
	return nil
}
