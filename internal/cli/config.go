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
)

func (a *app) configCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "config",
		Short: "Show the configuration and where each value comes from",
		Long: `The user's configuration is config.toml in $ABIDE_HOME, or in $XDG_CONFIG_HOME/abide.
A project's configuration is ` + projectFile + ` in the working directory or a directory above
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
		Long: `A project's ` + projectFile + ` can set model endpoints and extend what agents may access.
These settings apply only after you trust its directory. Read the file first.`,
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
		return a.trust(cmp.Or(strings.Join(args, ""), "."), *remove)
	}
	return c
}

func (a *app) listTrusted() error {
	list, err := a.trusted()
	for _, dir := range list {
		a.out.printf("%s\n", plain(dir))
	}
	if len(list) == 0 && err == nil && !a.quiet {
		a.err.printf("no directory is trusted; add one with: abide trust DIR\n")
	}
	return err
}

func (a *app) trust(dir string, remove bool) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return configError(err)
	}
	if info, err := os.Stat(absolute); !remove && (err != nil || !info.IsDir()) {
		return usagef("%s is not a directory", absolute)
	}
	absolute = real(absolute)
	list, err := a.trusted()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(d string) bool { return d == absolute })
	word := "no longer trusted"
	if !remove {
		list = append(list, absolute)
		word = "trusted"
	}
	if err := a.writeTrusted(list); err != nil {
		return configError(fmt.Errorf("cannot write the list of trusted directories: %w", err))
	}
	a.out.printf("%s is %s\n", plain(absolute), word)
	if !remove && !a.quiet {
		return a.printTrusted(filepath.Join(absolute, projectFile))
	}
	return nil
}

// writeTrusted replaces the list of trusted directories as a whole.
func (a *app) writeTrusted(list []string) error {
	path, err := a.trustFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var text strings.Builder
	for _, dir := range list {
		text.WriteString(dir + "\n")
	}
	if err := os.WriteFile(path+".new", []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// printTrusted prints the keys of a project's configuration that apply now that its
// directory is trusted.
func (a *app) printTrusted(file string) error {
	layer, err := config.File(file)
	if err != nil {
		return configError(err)
	}
	layer.Project = true
	loaded, err := config.Load(layer)
	if err != nil {
		return configError(err)
	}
	for _, ignored := range loaded.Ignored {
		a.err.printf("%s now applies\n", plain(ignored.Key))
	}
	return nil
}
