package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/abide-run/abide/internal/spelling"
)

const rootHelp = `abide runs agent sessions and loses nothing: every input, answer and tool call is
stored in a log on disk before it takes effect. You can kill it at any time and
resume the session.

At a terminal, abide without a command starts a chat: a new session, or with --resume
or --continue an old one. It takes the flags of abide run; /help in it lists keys and
commands. With --plain, or on a terminal that cannot be drawn on, nothing is drawn
twice, for screen readers and logs. Leaving it stops nothing.

Without a configured provider, abide uses a built-in offline model that needs no API
key. To use another model, set OPENAI_API_KEY or ANTHROPIC_API_KEY, or
OPENAI_BASE_URL for any server that is compatible with OpenAI's API. "abide models"
lists the available models, and "abide doctor" helps when something does not work.`

const rootExamples = `  abide demo                                see in half a minute what it is for
  abide                                     talk to an agent
  abide --resume 0198c2f1                   go on with a session
  abide run "Reply with exactly: HELLO"     send a prompt and print the answer
  abide run --continue "And now?"           continue the last session here
  abide sessions list                       list the sessions
  abide questions                           list the open questions
  abide answer 0198c2f1 approve             answer one and follow the turn`

// rootCommand returns the tree of commands.
func (a *app) rootCommand() *cobra.Command {
	f := &runFlags{}
	plain, version := false, false
	root := &cobra.Command{
		Use:           "abide",
		Short:         "An agent runtime that loses nothing",
		Long:          rootHelp,
		Example:       rootExamples,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case version:
				a.out.printf("%s\n", a.build())
				return nil
			case cmd.Flags().Changed("prompt"):
				return a.run(cmd.Context(), f, args)
			case a.chats() && (plain || dumb()):
				return a.plainChat(cmd.Context(), f)
			case a.chats():
				return a.chat(cmd.Context(), f)
			}
			return cmd.Help()
		},
	}
	f.register(root.Flags())
	root.Flags().BoolVar(&plain, "plain", false, "draw nothing twice in the chat, for screen readers and logs")
	hideAllBut(root.Flags(), "prompt", "plain", "resume", "continue", "model", "yolo", "sealed")
	// A version with a template, as cobra has it, would link text/template, which calls methods
	// by name: the linker could drop no exported method, and the program would be twice as large.
	root.Flags().BoolVarP(&version, "version", "v", false, "print the version")
	root.PersistentFlags().StringVar(&a.home, "home", "", "data folder `DIR` (default $ABIDE_HOME, or $XDG_DATA_HOME/abide)")
	root.PersistentFlags().StringSliceVar(&a.servers, "server", nil, "use the servers at `HOST:PORT,...` instead of a data folder (their token is in ABIDE_TOKEN)")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print only errors and questions on stderr")
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", "error", "log messages of `LEVEL` and above on stderr: none, error, warning, info, debug or all")
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return refuseEmpty(cmd.Flags()) }
	root.AddCommand(a.runCommand(), a.answerCommand(), a.questionsCommand(), a.rulesCommand(), a.abortCommand(), a.sessionsCommand(), a.compactCommand(), a.contextCommand(), a.costCommand(), a.psCommand(), a.logsCommand(), a.attachCommand(), a.stopCommand(),
		a.demoCommand(), a.memoryCommand(), a.mcpCommand(), a.jobsCommand(), a.modelsCommand(), a.serveCommand(), a.serversCommand(), a.openCommand(), a.workspaceCommand(), a.configCommand(), a.trustCommand(), a.statusCommand(), a.doctorCommand(), a.auditCommand(), a.backupCommand(), a.restoreCommand(), a.vacuumCommand(), a.moveCommand(), a.completionCommand(), a.manCommand(), a.versionCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	a.registerCompletions(root)
	return root
}

// hideAllBut hides all flags but some from the help, because another command explains
// them.
func hideAllBut(flags *pflag.FlagSet, shown ...string) {
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
}

// refuseEmpty refuses a flag that was given without a text. In a script that is a variable
// that is not set, and what happens without the flag is something else: a new session instead
// of a resumed one, or commands on this machine instead of in a container.
func refuseEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && f.Name != "prompt" && err == nil {
			err = usagef("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// group makes a command that only has subcommands.
func group(c *cobra.Command) *cobra.Command {
	c.Args = noSuchCommand
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return c
}

// noSuchCommand refuses arguments where a subcommand is expected.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("unknown command %q%s (list the commands with: %s --help)", args[0], hint, cmd.CommandPath())
}

// flagError adds a hint to the error of an unknown flag or an invalid value.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := nearest(unknown.GetSpecifiedName(), cmd.Flags()); near != "" {
			hint = "; did you mean --" + near + "?"
		}
	}
	return usagef("%w%s (list the flags with: %s --help)", err, hint, cmd.CommandPath())
}

// nearest returns the flag whose name is most similar to the given one; empty if none
// is similar.
func nearest(name string, flags *pflag.FlagSet) string {
	best, least := "", 3
	flags.VisitAll(func(f *pflag.Flag) {
		if d := spelling.Distance(name, f.Name); d < least && d < len(name) {
			best, least = f.Name, d
		}
	})
	return best
}

// arguments checks the number of arguments; names describes them in the error.
func arguments(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return usagef("%s takes %s, but %s (see the examples in: %s --help)", cmd.CommandPath(), names, given(len(args)), cmd.CommandPath())
	}
}

func given(n int) string {
	switch n {
	case 0:
		return "no argument was given"
	case 1:
		return "1 argument was given"
	}
	return fmt.Sprintf("%d arguments were given", n)
}
