package cli

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/model/scripted"
)

const runHelp = `Gives an agent a prompt, follows the turn to its end and prints the answer.

The prompt is the argument or --prompt. It is read from stdin if it is "-", or if
there is none and stdin is not a terminal.

Reading and writing below the working directory is allowed; anything else is
asked. At a terminal the questions are asked there: y allows once, a allows it
for the session, n refuses, any other text refuses and tells the model why.
Elsewhere the program tells what is needed and exits with code 5; the session
waits, and "abide answer" goes on with it.

Without a prompt, --resume and --continue go on with what is unfinished and print
its answer, or the last answer if nothing is.

Exit codes: 0 ok, 1 the agent failed, 2 usage, 3 key or configuration,
4 provider, 5 needs input, 6 a limit was reached, 130 interrupted, 143 terminated.`

const runExamples = `  abide run "Reply with exactly: HELLO"
  abide run - < task.md                             # the prompt is stdin
  abide run --output-format json "What is new?" | jq -r .result
  abide run --continue "And now in French"
  abide run --resume 0198c2f1                       # after kill -9: go on
  abide run --scenario weather.json "What is the weather in Paris?"`

// runFlags are what a run can be told.
type runFlags struct {
	prompt   string
	format   string
	json     bool
	partial  bool
	model    string
	effort   string
	scenario string
	resume   string
	last     bool
	yolo     bool
	maxSteps int
	name     string
	answers  []string
}

func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVarP(&f.prompt, "prompt", "p", "", "the prompt as `TEXT`; - reads it from stdin")
	flags.StringVar(&f.model, "model", "", "the `MODEL`: offline, scripted:FILE, or one that abide models lists")
	flags.StringVar(&f.effort, "reasoning-effort", "", "`HOW` much a reasoning model thinks: low, medium, high, or what else it knows")
	flags.StringVar(&f.scenario, "scenario", "", "scenario `FILE` of the scripted model")
	flags.StringVarP(&f.resume, "resume", "r", "", "go on with this `SESSION`; the start of its id is enough")
	flags.BoolVarP(&f.last, "continue", "c", false, "go on with the last session of this directory")
	flags.StringArrayVar(&f.answers, "answer", nil, "with --resume: answer an open question, as `REQUEST=ANSWER`; approve, reject or text")
	flags.BoolVar(&f.yolo, "yolo", false, "allow everything without asking")
	flags.IntVar(&f.maxSteps, "max-steps", 0, "stop the turn after `N` model requests (default 200)")
	flags.StringVar(&f.name, "name", "", "`NAME` of the session")
	f.registerFormat(flags)
}

func (f *runFlags) registerFormat(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "output-format", formatText, "`FORMAT` of stdout: text, json (one object) or stream-json (one object a line)")
	flags.BoolVar(&f.json, "json", false, "the same as --output-format json")
	flags.BoolVar(&f.partial, "include-partial-messages", false, "with stream-json: show answers in pieces, too")
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:     "run [PROMPT]",
		Short:   "Give an agent a prompt and print its answer",
		Long:    runHelp,
		Example: runExamples,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), f, args) },
	}
	f.register(c.Flags())
	return c
}

// check finds what does not fit together.
func (f *runFlags) check() error {
	if err := f.checkFormat(); err != nil {
		return err
	}
	switch {
	case f.resume != "" && f.last:
		return usagef("--resume and --continue exclude each other: --resume names the session, --continue takes the last one")
	case len(f.answers) > 0 && !f.resumes():
		return usagef("--answer needs a session that waits: name it with --resume")
	case f.maxSteps < 0:
		return usagef("--max-steps: %d is less than 1", f.maxSteps)
	case f.scenario != "" && f.model != "" && f.model != "scripted":
		return usagef("--scenario is played by the model scripted, not by %s: leave --model out", f.model)
	}
	for _, answer := range f.answers {
		if request, _, ok := strings.Cut(answer, "="); !ok || request == "" {
			return usagef("--answer: %q is not REQUEST=TEXT; abide questions lists the requests", answer)
		}
	}
	return nil
}

func (f *runFlags) checkFormat() error {
	if f.json && f.format == formatText {
		f.format = formatJSON
	}
	switch f.format {
	case formatText, formatJSON, formatStream:
		return nil
	}
	return usagef("--output-format: %q is unknown; use text, json or stream-json", f.format)
}

func (f *runFlags) resumes() bool { return f.resume != "" || f.last }

// rules is the rule set that the session gets.
func (f *runFlags) rules() string {
	if f.yolo {
		return approval.All
	}
	return approval.Workspace
}

// answerer is the model that was named, and its provider if that is not the one
// that is used anyway. Both are empty if none was.
func (f *runFlags) answerer(a *app) (string, *api.Provider, error) {
	scenario, named := strings.CutPrefix(f.model, scripted.Name+":")
	if scenario = cmp.Or(f.scenario, scenario); f.scenario != "" || named {
		path, err := filepath.Abs(scenario) // the engine may be elsewhere
		return scripted.Name + ":" + path, nil, err
	}
	if f.model == "" {
		return "", nil, nil
	}
	loaded, err := a.settings()
	if err != nil {
		return "", nil, err
	}
	usual, err := chosen(loaded)
	if err != nil {
		return "", nil, err
	}
	if found, ok, err := elsewhere(loaded.Config, usual, f.model); ok || err != nil {
		return found.model, found.provider, err
	}
	return f.model, nil, nil
}

// run carries out abide run.
func (a *app) run(ctx context.Context, f *runFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	prompt, err := a.prompt(f, args)
	if err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" && !f.resumes() {
		return usagef(`there is no prompt: abide run "…", or abide run --help`)
	}
	r := a.newRunner(f)
	err = a.withClient(ctx, func(c *client.Client) error {
		r.client = c
		return r.run(ctx, prompt)
	})
	return r.end(ctx, err)
}
