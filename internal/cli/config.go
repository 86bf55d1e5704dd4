package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/project/trust"
)

func (a *app) configCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "config",
		Short: "Show the configuration and where each value comes from",
		Long: `The user's configuration is config.toml in $ABIDE_HOME, or in $XDG_CONFIG_HOME/abide.
A project's configuration is ` + trust.File + ` in the working directory or a directory above
it, up to the root of the repository; until its directory is trusted (abide trust),
only its restrictions apply. Environment variables such as ABIDE_MODEL_MODEL_ID
override both files, and flags override everything.`,
		Example: "  abide config show\n  abide config keys\n  abide config schema > abide.schema.json\n  abide trust",
	})
	c.AddCommand(a.configShow(), a.configKeys(), a.configSchema())
	return c
}

func (a *app) configShow() *cobra.Command {
	c := &cobra.Command{
		Use:     "show",
		Short:   "Show every value that is set and its source",
		Example: "  abide config show\n  abide config show --json | jq -r '.[].from'",
		Args:    arguments(0, 0, "no argument"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		loaded, err := a.settings()
		if err != nil {
			return err
		}
		values := listSettings(loaded)
		if *asJSON {
			return a.out.json(values)
		}
		if len(values) == 0 && !a.quiet {
			a.err.printf("nothing is configured; list the available keys with: abide config keys\n")
		}
		if len(values) == 0 {
			return nil
		}
		t := &table{head: []string{"KEY", "VALUE", "FROM"}}
		for _, v := range values {
			t.add(v.Key, plain(v.text()), plain(v.From))
		}
		return a.print(t)
	}
	return c
}

// A setting is a value with its source.
type setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"`
}

// text returns a string value unchanged, and any other value as JSON.
func (s setting) text() string {
	if text, ok := s.Value.(string); ok {
		return text
	}
	text, err := json.Marshal(s.Value)
	if err != nil {
		return fmt.Sprint(s.Value)
	}
	return string(text)
}

// listSettings returns the values that are set, sorted by key.
func listSettings(l *config.Loaded) []setting {
	list := []setting{}
	for _, key := range slices.Sorted(maps.Keys(l.Values)) {
		list = append(list, setting{key, l.Values[key], l.Origins[key]})
	}
	return list
}

func (a *app) configKeys() *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "List every configuration key",
		Long: `List every configuration key. A * stands for a name that you choose, as in
[models."gpt-4.1"]. Keys with a single value can also be set by an environment
variable, which overrides the files: ABIDE_WORKER_MAX_TOKENS for worker.max_tokens.`,
		Example: "  abide config keys --long",
		Args:    arguments(0, 0, "no argument"),
	}
	long := c.Flags().BoolP("long", "l", false, "describe each key")
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return a.out.json(config.Entries())
		}
		if !*long {
			for _, key := range config.Keys() {
				a.out.printf("%s\n", key)
			}
			return nil
		}
		t := &table{head: []string{"KEY", "TYPE", "ABOUT"}, wrap: true}
		for _, e := range config.Entries() {
			t.add(e.Key, e.Type, e.About)
		}
		return a.print(t)
	}
	return c
}

func (a *app) configSchema() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON schema of the configuration, for editors",
		Example: "  abide config schema > abide.schema.json",
		Args:    arguments(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err == nil {
				a.out.printf("%s\n", schema)
			}
			return err
		},
	}
}

func (a *app) trustCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust the configuration of a directory",
		Long: `A project's ` + trust.File + ` can set model endpoints and extend what agents may access.
These settings apply only after you trust its directory. The file is shown, and trust
is for what it holds now: when it changes, only its restrictions apply until you run
this again, which shows the change. At a terminal you are asked for a yes; without one,
the command itself is the yes.`,
		Example: "  abide trust\n  abide trust --list\n  abide trust --remove ../elsewhere",
		Args:    arguments(0, 1, "at most one DIR"),
	}
	remove := c.Flags().Bool("remove", false, "stop trusting the directory")
	list := c.Flags().Bool("list", false, "list the trusted directories")
	c.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case *list && (*remove || len(args) > 0):
			return usagef("--list cannot be used with a DIR or --remove")
		case *list:
			return a.listTrusted()
		}
		return a.changeTrust(cmp.Or(strings.Join(args, ""), "."), *remove)
	}
	return c
}

func (a *app) listTrusted() error {
	store, err := a.trust()
	if err != nil {
		return err
	}
	list, err := store.List()
	for _, r := range list {
		a.out.printf("%s\n", plain(r.Dir))
	}
	if len(list) == 0 && err == nil && !a.quiet {
		a.err.printf("no directory is trusted; add one with: abide trust DIR\n")
	}
	return configError(err)
}

// changeTrust trusts a directory, or stops trusting it.
func (a *app) changeTrust(dir string, remove bool) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return configError(err)
	}
	store, err := a.trust()
	if err != nil {
		return err
	}
	if remove {
		if absolute, err = store.Remove(absolute); err != nil {
			return configError(err)
		}
		a.out.printf("%s is no longer trusted\n", plain(absolute))
		return nil
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return usagef("%s is not a directory", absolute)
	}
	return a.addTrust(store, absolute)
}

// addTrust shows the configuration of a directory, and trusts what was shown.
func (a *app) addTrust(store trust.Store, dir string) error {
	content, err := trust.Read(dir)
	if err != nil {
		return configError(err)
	}
	record, known, err := store.Find(dir)
	if err != nil {
		return configError(err)
	}
	if !known || !record.Covers(content) {
		if err := a.confirmTrust(filepath.Join(dir, trust.File), store.Shown(record), content); err != nil {
			return err
		}
	}
	if dir, err = store.Trust(dir, content); err != nil {
		return configError(err)
	}
	a.out.printf("%s is trusted\n", plain(dir))
	if a.quiet {
		return nil
	}
	return a.printTrusted(config.Layer{Name: trust.File, Path: filepath.Join(dir, trust.File), Data: content, Project: true})
}

// confirmTrust shows a configuration, or its change, and asks the person at the terminal.
// Without a terminal the command itself is the yes.
func (a *app) confirmTrust(path string, shown, content []byte) error {
	if len(content) == 0 {
		return nil
	}
	if !a.quiet {
		a.err.printf("%s:\n%s", plain(path), a.changeText(path, shown, content))
	}
	p := a.newPrompter()
	if p == nil {
		return nil
	}
	a.err.printf("%s ", p.paint.in(bold, "? trust this configuration? (y/n)"))
	line, _ := p.in.ReadString('\n') // the end of input is no yes
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", "ok":
		return nil
	}
	return fmt.Errorf("%s is not trusted: you did not say yes", path)
}

// printTrusted prints the keys of a project's configuration that apply now that its
// directory is trusted.
func (a *app) printTrusted(layer config.Layer) error {
	loaded, err := config.Load(layer)
	if err != nil {
		return configError(err)
	}
	for _, ignored := range loaded.Ignored {
		if ignored.UserOnly {
			a.err.printf("abide: ignored %s\n", plain(ignored.String()))
			continue
		}
		a.err.printf("%s now applies\n", plain(ignored.Key))
	}
	return nil
}
