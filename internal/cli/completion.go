package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/scripted"
)

const completionHelp = `Print a script that makes the shell complete commands, flags, sessions and models.

bash, for the current shell, or for every shell if bash-completion is installed:

  source <(abide completion bash)
  abide completion bash > ~/.local/share/bash-completion/completions/abide

zsh, with a directory that is in your fpath before compinit runs:

  abide completion zsh > ~/.zfunc/_abide

fish:

  abide completion fish > ~/.config/fish/completions/abide.fish`

// bashWords defines the function that the script needs from bash-completion, in case
// that package is not installed.
const bashWords = `declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    cur=${COMP_WORDS[COMP_CWORD]} prev=
    (( COMP_CWORD > 0 )) && prev=${COMP_WORDS[COMP_CWORD-1]}
}

`

func (a *app) completionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print a shell completion script",
		Long:      completionHelp,
		Example:   "  source <(abide completion bash)",
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      arguments(1, 1, "one of bash, zsh and fish"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		switch args[0] {
		case "bash":
			a.out.printf("%s", bashWords)
			return root.GenBashCompletionV2(a.out, true)
		case "zsh":
			return root.GenZshCompletion(a.out)
		case "fish":
			return root.GenFishCompletion(a.out, true)
		}
		return usagef("there is no completion for %q; use bash, zsh or fish", args[0])
	}
	return c
}

// registerCompletions registers the completions of arguments and flags of a command and
// its subcommands.
func (a *app) registerCompletions(c *cobra.Command) {
	switch _, first, _ := strings.Cut(strings.ReplaceAll(c.Use, "[", ""), " "); {
	case len(c.ValidArgs) > 0:
	case strings.HasPrefix(first, "SESSION"):
		c.ValidArgsFunction = a.completeSession
	case strings.HasPrefix(first, "DIR"):
		c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	default:
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"resume":           a.completeResume,
		"model":            a.completeModel,
		"home":             cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"dir":              cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"output-format":    words(formatText, formatJSON, formatStream),
		"log-level":        words(slices.Sorted(maps.Keys(levels))...),
		"reasoning-effort": words("low", "medium", "high"),
	} {
		if f := c.NonInheritedFlags().Lookup(flag); f != nil {
			_ = c.RegisterFlagCompletionFunc(flag, complete) // fails only for an unknown flag
		}
	}
	for _, sub := range c.Commands() {
		a.registerCompletions(sub)
	}
}

func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completeSession completes the first argument of a command with session ids.
func (a *app) completeSession(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeResume(cmd, args, start)
}

// completionTimeout bounds the time that a completion may take.
const completionTimeout = 2 * time.Second

// maxCompletions is the number of sessions that are offered.
const maxCompletions = 500

// completeResume completes session ids, each with the name or the beginning of the
// session.
func (a *app) completeResume(cmd *cobra.Command, _ []string, start string) (found []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	a.quiet = true
	_ = a.withVisitor(ctx, func(c *client.Client) error { // without an engine there are no completions
		var list []api.SessionInfo
		for s, err := range atMost(maxCompletions, c.Sessions(ctx, api.Filter{IDPrefix: start})) {
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		short := shorten(ids(list))
		for _, s := range list {
			id := short[string(s.SessionID)]
			if len(start) > len(id) {
				id = string(s.SessionID)
			}
			if strings.HasPrefix(id, start) {
				found = append(found, id+"\t"+about(s))
			}
		}
		return nil
	})
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeModel completes the names of models that are known without asking a provider.
func (a *app) completeModel(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	list := []string{offline.Name, scripted.Name + ":"}
	a.quiet = true
	if loaded, err := a.settings(); err == nil {
		if usual, err := defaultChoice(loaded); err == nil {
			list = append(list, usual.knownModel())
		}
		list = slices.AppendSeq(list, maps.Keys(loaded.Config.Models))
		for name := range loaded.Config.Providers {
			list = append(list, name+"/")
		}
	}
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" || !strings.HasPrefix(s, start) })
	slices.Sort(list)
	return slices.Compact(list), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
