package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "config",
		Short: "Show the configuration and where it comes from",
		Long: `The user's own file is config.toml in $ABIDE_HOME, or in $XDG_CONFIG_HOME/abide.
A project's file is ` + projectFile + ` in the working directory or above it, up to the root
of the repository; until its folder is trusted, only what it restricts is taken.`,
		Example: "  abide config show\n  abide config keys\n  abide config schema > abide.schema.json\n  abide trust",
	})
	c.AddCommand(a.configShow(), a.configKeys(), a.configSchema())
	return c
}

func (a *app) configShow() *cobra.Command {
	c := &cobra.Command{Use: "show", Short: "Show every value that is set, and its source", Args: arguments(0, 0, "no argument")}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		loaded, err := a.settings()
		if err != nil {
			return err
		}
		values, err := settled(loaded)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.out.json(values)
		}
		if len(values) == 0 {
			if !a.quiet {
				a.err.printf("nothing is configured; abide config keys lists what can be\n")
			}
			return nil
		}
		t := &table{head: []string{"KEY", "VALUE", "FROM"}}
		for _, v := range values {
			t.add(v.Key, plain(fmt.Sprint(v.Value)), plain(v.From))
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

// settled lists what is set, by key.
func settled(l *config.Loaded) ([]setting, error) {
	text, err := toml.Marshal(l.Config)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	list := []setting{}
	for _, key := range slices.Sorted(maps.Keys(l.Origins)) {
		var value any = tree
		for _, part := range strings.Split(key, ".") {
			table, _ := value.(map[string]any)
			value = table[part]
		}
		list = append(list, setting{key, value, l.Origins[key]})
	}
	return list, nil
}

func (a *app) configKeys() *cobra.Command {
	return &cobra.Command{Use: "keys", Short: "List every key that there is", Args: arguments(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			for _, key := range config.Keys() {
				a.out.printf("%s\n", key)
			}
			return nil
		}}
}

func (a *app) configSchema() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print a JSON schema for editors", Args: arguments(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err == nil {
				a.out.printf("%s\n", schema)
			}
			return err
		}}
}

func (a *app) trustCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a folder's own configuration count in full",
		Long: `A project's ` + projectFile + ` can set endpoints and widen what agents may touch. It does
so only after you said that you trust its folder. Read the file first.`,
		Example: "  abide trust\n  abide trust --remove ../elsewhere",
		Args:    arguments(0, 1, "at most one DIR"),
	}
	remove := c.Flags().Bool("remove", false, "trust it no longer")
	c.RunE = func(_ *cobra.Command, args []string) error {
		dir := "."
		if len(args) > 0 {
			dir = args[0]
		}
		return a.trust(dir, *remove)
	}
	return c
}

func (a *app) trust(dir string, remove bool) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return configError(err)
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return usagef("%s is not a folder", absolute)
	}
	absolute = real(absolute)
	list, err := a.trusted()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(d string) bool { return d == absolute })
	if !remove {
		list = append(list, absolute)
	}
	path, err := a.trustFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return configError(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(list, "\n")+"\n"), 0o600); err != nil {
		return configError(fmt.Errorf("the list of trusted folders cannot be written: %w", err))
	}
	word := "trusted"
	if remove {
		word = "no longer trusted"
	}
	a.out.printf("%s is %s\n", plain(absolute), word)
	return nil
}
