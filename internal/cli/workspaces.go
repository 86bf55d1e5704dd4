package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// placesOf returns the workspaces of a configuration.
func placesOf(c config.Config) map[string]workspaces.Place {
	all := make(map[string]workspaces.Place, len(c.Workspaces))
	for name, p := range c.Workspaces {
		all[name] = workspaces.Place{
			Address: p.Address, CA: p.CA, ServerName: p.ServerName, TokenFile: p.TokenFile, TokenEnv: p.TokenEnv, Dir: p.Dir,
		}
	}
	return all
}

// workspaceOptions returns the workspaces of this process. An engine that runs for long
// reads the configuration again when it needs a workspace that it does not know or cannot
// reach.
func (a *app) workspaceOptions(c config.Config) workspaces.Options {
	o := workspaces.Options{Named: placesOf(c), Read: func() (map[string]workspaces.Place, error) {
		again := &app{home: a.home, opts: a.opts, quiet: true, out: &printer{}, err: &printer{}}
		loaded, err := again.settings()
		if err != nil {
			return nil, err
		}
		return placesOf(loaded.Config), nil
	}}
	o.Patience = c.Workspace.Patience.Value()
	return o
}

// chosenWorkspace returns the workspace that a flag names. A relative path of a socket is
// relative to the working directory of this program.
func chosenWorkspace(choice string) (string, error) {
	socket, unix := strings.CutPrefix(choice, "unix:")
	if !unix || socket == "" {
		return choice, nil
	}
	path, err := filepath.Abs(socket)
	return "unix:" + path, err
}

// checkChoice refuses a workspace that cannot be one: a name that the engine does not know, or
// what is not an address.
func (r *runner) checkChoice(ctx context.Context, choice string) error {
	if strings.Contains(choice, ":") {
		if _, _, err := bridge.ParseAddress(choice); err != nil {
			return usagef("--workspace: %w", err)
		}
		return nil
	}
	known, err := r.client.Workspaces(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(known.Workspaces))
	for i, w := range known.Workspaces {
		names[i] = w.Name
	}
	if slices.Contains(names, choice) {
		return nil
	}
	return usagef("--workspace: there is no workspace %s in the configuration, only %s: name one of these, add [workspaces.%s] with its address, or use unix:PATH or tcp:HOST:PORT", plain(choice), plain(strings.Join(names, ", ")), plain(choice))
}

func (a *app) workspaceList() *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the workspaces of the configuration",
		Long: `List the workspaces that sessions can work in: the machine of the engine, and those
of [workspaces] in the configuration. A star marks the one of new sessions.`,
		Example: "  abide workspace list",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		loaded, err := a.settings()
		if err != nil {
			return err
		}
		list, err := workspaces.New(a.workspaceOptions(loaded.Config)).List()
		if err != nil {
			return err
		}
		usual := loaded.Config.Workspace.Default
		for i := range list {
			list[i].Default = list[i].Name == usual
		}
		if *asJSON {
			return a.out.json(list)
		}
		t := &table{head: []string{"WORKSPACE", "ADDRESS", "DIRECTORY"}}
		star := func(name string, usual bool) string {
			if usual {
				return name + " *"
			}
			return name
		}
		t.add(star(event.LocalWorkspace, usual == "" || usual == event.LocalWorkspace), "-", "-")
		for _, w := range list {
			t.add(plain(star(w.Name, w.Default)), oneLine(w.Address), oneLine(w.Dir))
		}
		if strings.Contains(usual, ":") {
			t.add(plain(star(usual, true)), oneLine(usual), "-")
		}
		return a.print(t)
	}
	return c
}

func (a *app) workspaceCheck() *cobra.Command {
	c := &cobra.Command{
		Use:   "check [NAME|ADDRESS...]",
		Short: "Connect to workspaces and show what they are",
		Long: `Connect to workspaces, those of the configuration if none is named, and show the
identity that sessions are bound to, the version, the folder, the shortest time of a
request, how far its clock is ahead of this one, and the free space of its disk. The
machine of the engine is called local, and has no identity. The exit code is 1 if one of
them cannot be used. STATE is "ok", "bad", or "look" if its disk is nearly full or its
clock is off.`,
		Example: "  abide workspace check\n  abide workspace check box\n  abide workspace check tcp:127.0.0.1:7481",
		Args:    arguments(0, -1, "any number of workspaces"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error { return a.checkWorkspaces(cmd.Context(), args, *asJSON) }
	return c
}

// A checkedWorkspace is the result of abide workspace check in JSON output.
type checkedWorkspace struct {
	Name      string  `json:"name"`
	Address   string  `json:"address,omitempty"`
	Usable    bool    `json:"usable"`
	Problem   string  `json:"problem,omitempty"`
	Identity  string  `json:"identity,omitempty"`
	Version   string  `json:"version,omitempty"`
	Dir       string  `json:"cwd,omitempty"`
	RoundTrip float64 `json:"roundTripMs,omitempty"`
	Clock     float64 `json:"clockAheadMs,omitempty"`
	DiskFree  *int64  `json:"diskFree,omitempty"` // nil if nobody knows
	DiskSize  int64   `json:"diskSize,omitempty"`
}

// doubt says what may cause problems in a workspace that can be used; empty if nothing does.
func (c checkedWorkspace) doubt() string {
	off := time.Duration(c.Clock * float64(time.Millisecond)).Abs()
	switch {
	case c.DiskFree != nil && *c.DiskFree < 64<<20:
		return fmt.Sprintf("only %s are free on its disk: when it is full, no file can be written and no command started there", size(*c.DiskFree))
	case off > time.Minute:
		return fmt.Sprintf("its clock is %s: the times of its files and commands are not those of the log", clockText(c.Clock))
	}
	return ""
}

// checkTime is the longest time of one check.
const checkTime = 10 * time.Second

// checkWorkspaces runs abide workspace check.
func (a *app) checkWorkspaces(ctx context.Context, names []string, asJSON bool) error {
	loaded, err := a.settings()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names = slices.Sorted(maps.Keys(loaded.Config.Workspaces)); len(names) == 0 {
			return usagef("the configuration has no workspace: name one by its address, or add [workspaces.NAME]")
		}
	}
	if slices.Contains(names, "") {
		return usagef("the name of a workspace is empty: give a name of the configuration, %s, or an address", event.LocalWorkspace)
	}
	registry := workspaces.New(a.workspaceOptions(loaded.Config))
	var list []checkedWorkspace
	var failed error
	for _, name := range names {
		check := func() (checkedWorkspace, error) { return checkWorkspace(ctx, registry, name) }
		if name == event.LocalWorkspace {
			check = a.checkLocal
		}
		checked, err := check()
		list, failed = append(list, checked), errors.Join(failed, err)
	}
	if asJSON {
		if err := a.out.json(list); err != nil || failed == nil {
			return err
		}
		return &exitError{code: exitFailed}
	}
	if err := a.printChecked(list); err != nil {
		return err
	}
	return failed
}

// checkWorkspace checks one workspace.
func checkWorkspace(ctx context.Context, registry *workspaces.Registry, name string) (checkedWorkspace, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	choice, err := chosenWorkspace(name)
	if err != nil {
		return checkedWorkspace{Name: name, Problem: err.Error()}, err
	}
	r, err := registry.Check(ctx, choice)
	c := checkedWorkspace{Name: r.Workspace.Label(), Address: r.Workspace.Address}
	if err != nil {
		c.Problem = err.Error()
		return c, err
	}
	c.Usable, c.Identity, c.Version, c.Dir, c.DiskSize = true, r.About.Identity, r.About.Version, r.Dir, r.About.DiskSize
	if r.About.DiskFree >= 0 {
		c.DiskFree = &r.About.DiskFree
	}
	c.RoundTrip, c.Clock = r.RoundTrip.Seconds()*1000, r.Clock.Seconds()*1000
	return c, nil
}

// checkLocal describes the machine of the engine, which is this one: a data folder has its
// engine where it is. It has no identity, because sessions there are bound to the data folder.
func (a *app) checkLocal() (checkedWorkspace, error) {
	c := checkedWorkspace{Name: event.LocalWorkspace, Version: a.opts.Version}
	dir, err := a.here()
	if err != nil {
		c.Problem = err.Error()
		return c, err
	}
	c.Usable, c.Dir = true, dir
	if free, size, ok := diskOf(dir); ok {
		c.DiskFree, c.DiskSize = &free, size
	}
	return c, nil
}

func (a *app) printChecked(list []checkedWorkspace) error {
	t := &table{head: []string{"WORKSPACE", "STATE", "VERSION", "ROUND TRIP", "CLOCK", "DISK FREE", "IDENTITY", "DIRECTORY"}}
	var doubts []string
	for _, c := range list {
		if !c.Usable {
			t.add(plain(c.Name), bad, "-", "-", "-", "-", "-", "-")
			continue
		}
		state := good
		if text := c.doubt(); text != "" {
			state = doubt
			doubts = append(doubts, fmt.Sprintf("abide: workspace %s: %s\n", plain(c.Name), text))
		}
		t.add(plain(c.Name), state, oneLine(c.Version), fmt.Sprintf("%.1f ms", c.RoundTrip), clockText(c.Clock), diskText(c.DiskFree), cmp.Or(oneLine(c.Identity), "-"), oneLine(c.Dir))
	}
	if err := a.print(t); err != nil {
		return err
	}
	for _, text := range doubts {
		a.err.printf("%s", text)
	}
	return nil
}

// diskText returns a number of free bytes in words; it is nil if nobody knows.
func diskText(free *int64) string {
	if free == nil {
		return "-"
	}
	return size(*free)
}

// clockText returns how far a clock is ahead, in milliseconds, in words.
func clockText(ahead float64) string {
	off := time.Duration(ahead * float64(time.Millisecond))
	switch {
	case off.Abs() < time.Second:
		return "same"
	case off > 0:
		return off.Round(time.Second).String() + " ahead"
	}
	return (-off).Round(time.Second).String() + " behind"
}

// examineWorkspaces checks the workspaces of the configuration.
func (a *app) examineWorkspaces(ctx context.Context, c config.Config, add note) {
	registry := workspaces.New(a.workspaceOptions(c))
	names := slices.Sorted(maps.Keys(c.Workspaces))
	if strings.Contains(c.Workspace.Default, ":") {
		names = append(names, c.Workspace.Default)
	}
	for _, name := range names {
		checked, err := checkWorkspace(ctx, registry, name)
		switch {
		case err != nil:
			add("workspace "+name, bad, "%v", err)
		case checked.doubt() != "":
			add("workspace "+name, doubt, "%s; %s", checked.Dir, checked.doubt())
		default:
			add("workspace "+name, good, "%s, abide %s, %.1f ms away", checked.Dir, checked.Version, checked.RoundTrip)
		}
	}
	if usual := c.Workspace.Default; usual != "" && usual != event.LocalWorkspace && !strings.Contains(usual, ":") {
		if _, err := registry.Resolve(usual); err != nil {
			add("workspace", bad, "workspace.default: %v", err)
		}
	}
}
