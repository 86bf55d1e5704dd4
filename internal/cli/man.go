package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/cli/man"
)

func (a *app) manCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "man [COMMAND]...",
		Short: "Print the manual pages",
		Long: `Print the manual page of a command in the format of man(1). With --dir, write all
pages to a directory; man(1) finds them there if it is in the MANPATH.`,
		Example: "  abide man | man -l -\n  abide man sessions fork | man -l -\n  abide man --dir ~/.local/share/man/man1",
		Args:    cobra.ArbitraryArgs,
	}
	dir := c.Flags().String("dir", "", "write all pages to `DIR`, which is created if needed")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *dir != "" && len(args) > 0 {
			return usagef("--dir writes the pages of all commands: omit %q", args[0])
		}
		root := cmd.Root()
		root.InitDefaultHelpFlag()
		if *dir != "" {
			return a.writeManual(root, *dir)
		}
		about, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return usagef("unknown command %q (list all commands with: abide --help)", append(rest, args...)[0])
		}
		return a.manual().Page(a.out, about)
	}
	return c
}

// manual returns the parts that all pages have in common.
func (a *app) manual() man.Book {
	return man.Book{Source: "abide " + a.opts.Version, Chapters: []man.Chapter{
		{Title: "EXIT STATUS", Text: exitHelp},
		{Title: "ENVIRONMENT", Text: environmentHelp},
		{Title: "FILES", Text: filesHelp},
	}}
}

func (a *app) writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write the manual: %w", err)
	}
	pages := man.Commands(root)
	for _, c := range pages {
		if err := a.writePage(c, filepath.Join(dir, man.Name(c)+".1")); err != nil {
			return fmt.Errorf("cannot write the manual: %w", err)
		}
	}
	if !a.quiet {
		a.err.printf("wrote %d pages to %s\n", len(pages), plain(dir))
	}
	return nil
}

func (a *app) writePage(c *cobra.Command, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(a.manual().Page(w, c), w.Flush(), f.Close())
}

const exitHelp = `0 success, 1 the agent or the request failed, 2 usage error, 3 API key or
configuration error, 4 the model provider did not answer, 5 a question needs an
answer, 6 a limit was reached, 130 interrupted, 143 terminated.`

const environmentHelp = `ABIDE_HOME is the directory for data and configuration. Without it, data is in
$XDG_DATA_HOME/abide and the configuration in $XDG_CONFIG_HOME/abide.

OPENAI_API_KEY and OPENAI_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN and
ANTHROPIC_BASE_URL, AZURE_OPENAI_API_KEY and AZURE_OPENAI_API_ENDPOINT name model
endpoints and their API keys. Commands that agents run do not get the keys.

HTTPS_PROXY, HTTP_PROXY, NO_PROXY and SSL_CERT_FILE apply to all endpoints.

NO_COLOR turns colours off; COLUMNS sets the width of tables. ABIDE_TOKEN is the
token that TCP clients of abide serve must present.`

const filesHelp = `config.toml is the user's configuration, and abide.toml the configuration of a project.
"abide config keys" lists the available keys, "abide config show" the values in effect.

abide.db in the data folder holds all sessions.`
