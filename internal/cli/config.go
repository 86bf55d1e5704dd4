package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/lazyregexp"
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
		list = append(list, setting{key, shownValue(key, l.Values[key]), l.Origins[key]})
	}
	return list
}

// shownValue returns a value as it is shown to people. What may be a secret is hidden: the value of
// a header, of a variable or of a secret of a client, unless it names a variable, and the password
// and the query of a URL.
func shownValue(key string, value any) any {
	text, isText := value.(string)
	switch {
	case mayBeSecret(key) && !strings.Contains(text, "${"):
		return "(hidden)"
	case isText:
		text = urlPassword.ReplaceAllString(text, "$1:(hidden)@")
		if strings.HasSuffix(key, "url") || key == "notify.webhook" {
			text = urlQuery.ReplaceAllString(text, "$1(hidden)")
		}
		return text
	}
	return value
}

// urlPassword matches the password of a URL, with what stands before it. One with a / in it is no
// port, so that it is no number up to there.
var urlPassword = lazyregexp.New(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):(?:[^\s/@]+|[^\s/@]*[^\s/@0-9][^\s@]*)@`)

// urlQuery matches the value of a member of a query, or all of a query without members.
var urlQuery = lazyregexp.New(`([?&](?:[^=&#]*=)?)[^&#]+`)

// mayBeSecret reports whether the value of a key is one that people keep secret.
func mayBeSecret(key string) bool {
	table, rest, _ := strings.Cut(key, ".")
	switch table {
	case "model":
		return strings.HasPrefix(rest, "headers.")
	case "providers":
		return strings.Contains(rest, ".headers.")
	case "mcp":
		return strings.Contains(rest, ".headers.") || strings.Contains(rest, ".env.") || strings.HasSuffix(rest, ".oauth.client_secret")
	}
	return false
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
These settings apply only after you trust its directory, and so do the MCP servers of a
` + serversFile + ` there. Each file is shown, and trust
is for what it holds now: when it changes, only its restrictions apply until you run
this again, which shows the change. You are asked for a yes; without a terminal, --yes
must say it. A file with a mistake is not trusted.`,
		Example: "  abide trust\n  abide trust --yes ../project\n  abide trust --list\n  abide trust --remove ../elsewhere",
		Args:    arguments(0, 1, "at most one DIR"),
	}
	remove := c.Flags().Bool("remove", false, "stop trusting the directory")
	list := c.Flags().Bool("list", false, "list the trusted directories")
	yes := c.Flags().BoolP("yes", "y", false, "trust without asking: you have read the file")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *list && (*remove || *yes || len(args) > 0):
			return usagef("--list cannot be used with a DIR, --yes or --remove")
		case *remove && *yes:
			return usagef("--remove and --yes cannot be used together: --yes is for trusting, and removing asks nothing")
		case *list:
			return a.listTrusted()
		}
		dir, err := filepath.Abs(cmp.Or(strings.Join(args, ""), "."))
		if err != nil {
			return configError(err)
		}
		if *remove {
			return a.removeTrust(dir)
		}
		return a.addTrust(cmd.Context(), dir, *yes)
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

// removeTrust stops trusting a directory.
func (a *app) removeTrust(dir string) error {
	store, err := a.trust()
	if err != nil {
		return err
	}
	if _, err := store.Remove(filepath.Join(dir, serversFile)); err != nil {
		return configError(err)
	}
	if dir, err = store.Remove(dir); err != nil {
		return configError(err)
	}
	a.out.printf("%s is no longer trusted\n", plain(dir))
	return nil
}

// addTrust shows the configuration of a directory, and trusts what was shown.
func (a *app) addTrust(ctx context.Context, dir string, yes bool) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usagef("%s is not a directory", dir)
	}
	store, err := a.trust()
	if err != nil {
		return err
	}
	content, err := trust.Read(dir)
	if err != nil {
		return configError(err)
	}
	layer := config.Layer{Name: filepath.Join(dir, trust.File), Path: filepath.Join(dir, trust.File), Data: content, Project: true, Trusted: true}
	if _, err := config.Load(layer); err != nil {
		return configError(fmt.Errorf("%s is not trusted, because of a mistake in it, with which no command would work here: %w", plain(layer.Path), err))
	}
	record, known, err := store.Find(dir)
	if err != nil {
		return configError(err)
	}
	shown := store.Shown(record)
	gone := len(content) == 0 && len(shown) > 0 // a file that was trusted is gone, with its restrictions
	if !known || gone || !record.Covers(content) {
		if err := a.confirmTrust(ctx, layer.Path, shown, content, yes); err != nil {
			return err
		}
	}
	if dir, err = store.Trust(dir, content); err != nil {
		return configError(err)
	}
	a.out.printf("%s is trusted\n", plain(dir))
	if err := a.trustServers(ctx, dir, yes); err != nil {
		return err
	}
	if a.quiet {
		return nil
	}
	return a.printTrusted(config.Layer{Name: trust.File, Path: filepath.Join(dir, trust.File), Data: content, Project: true})
}

// confirmTrust shows a configuration, or its change, and asks the person at the terminal,
// unless the command line has said yes. What a person is asked about is shown also if
// the output is to be short.
func (a *app) confirmTrust(ctx context.Context, path string, shown, content []byte, yes bool) error {
	p := a.newPrompter()
	if p == nil && !yes {
		return usagef("%s is not trusted: there is no terminal to ask at; read the file, and then say yes with: abide trust --yes", plain(filepath.Dir(path)))
	}
	change, omitted := a.changeText(path, shown, content)
	if omitted != "" && !yes {
		return usagef("%s is not trusted: it is too long to be shown (%s); read the file, and then say yes with: abide trust --yes", plain(path), omitted)
	}
	if len(content)+len(shown) > 0 && !(yes && a.quiet) {
		a.err.printf("%s:\n%s", plain(path), change)
	}
	if yes {
		return nil
	}
	text := "trust this configuration? (y/n)"
	if len(content) == 0 {
		text = "trust this directory, which has no " + trust.File + "? (y/n)"
	}
	agreed, err := p.confirm(ctx, text)
	switch {
	case err != nil:
		return fmt.Errorf("%w; %s is not trusted", err, plain(path))
	case !agreed:
		return fmt.Errorf("%s is not trusted: you did not say yes", plain(path))
	}
	return nil
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
