package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/scripted"
)

const runHelp = `Send a prompt to an agent, follow the turn to its end and print the answer.

The prompt is the argument or --prompt. What is on stdin is added to it, unless stdin
is a terminal, and is the whole prompt if there is no other or if that is "-".

The agent may read and write below the working directory; anything else needs your
permission. At a terminal you are asked: y allows once, the letters that the question
offers allow more for the session, n refuses, ? explains, and a sentence that says what
to do instead refuses and is passed on to the model. Without a terminal, abide prints
the open questions and exits with code 5, or with 6 if a budget is reached; the session
waits, and "abide answer" continues it. Ctrl-D at a question does the same.

A no without a reason ends the turn, and the exit code is 1: the work was not done, so
that a script does not go on as if it were. What you type before a question is shown, or
for a question that is answered elsewhere meanwhile, answers nothing.

--attach sends files with the prompt. What a file is, its content decides. If the
session works in another workspace, the file is there, and local:FILE is one of this
machine. A text of this machine that the prompt names as @FILE goes with it, too; what
is piped in names none.

Without a prompt, --resume and --continue finish the unfinished turn and print its
answer, or print the last answer if no turn is unfinished.

Ctrl-C stops the turn and the commands that it waits for; commands in the background
and queued prompts stay. A second Ctrl-C leaves at once. To leave without stopping
anything, start with --detach: the turn goes on by itself. If you press Ctrl-\ or close
the terminal, the turn goes on if another abide process is the engine ("abide serve"),
and otherwise waits until you continue it with --resume.

Exit codes: 0 success, 1 the agent failed or was refused a permission, 2 usage error,
3 API key or configuration error, 4 provider error, 5 a question needs an answer,
6 a limit was reached, 7 the answer does not match --output-schema (it is printed all
the same), 130 stopped with Ctrl-C, 131 left with Ctrl-\, 129 the terminal was closed,
143 terminated.`

const runExamples = `  abide run "Reply with exactly: HELLO"
  abide run - < task.md                             # read the prompt from stdin
  git diff | abide run "Review this change"         # send both
  abide run "Explain @main.go"                      # send the text with it
  abide run --attach chart.png --attach paper.pdf "Does the chart show what the paper says?"
  abide run --output-format json "What is new?" | jq -r .result
  abide run --continue "And now in French"
  abide run --resume 0198c2f1                       # continue after kill -9
  abide run --scenario weather.json "What is the weather in Paris?"`

// runFlags are the flags of abide run.
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
	sealed   bool
	maxSteps int
	detach   bool
	name     string
	answers  []string
	schema   string
	attach   []string
	mentions []string // words of the prompt that begin with @, which may name files
	system   string   // file with the system prompt
	more     string   // text at the end of the system prompt

	maxCost   string // US dollars
	maxTokens string
	workspace string
}

func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVarP(&f.prompt, "prompt", "p", "", "the prompt as `TEXT`; - reads it from stdin")
	flags.StringVar(&f.model, "model", "", "the `MODEL`: offline, scripted:FILE, or one that abide models lists")
	flags.StringVar(&f.effort, "reasoning-effort", "", "reasoning `EFFORT` of the model: low, medium, high, or another value that it accepts")
	flags.StringVar(&f.scenario, "scenario", "", "scenario `FILE` of the scripted model")
	flags.StringVarP(&f.resume, "resume", "r", "", "continue this `SESSION`; the start of its id is enough")
	flags.BoolVarP(&f.last, "continue", "c", false, "continue the last session of this directory")
	flags.StringArrayVar(&f.answers, "answer", nil, "with --resume: answer an open question, as `REQUEST=ANSWER`; approve, reject or text")
	flags.BoolVar(&f.yolo, "yolo", false, "allow everything that no rule denies; protected files are asked about all the same")
	flags.BoolVar(&f.sealed, "sealed", false, "for code that you do not trust: commands change nothing but the working directory, have no network, and run unasked")
	flags.IntVar(&f.maxSteps, "max-steps", 0, "stop the turn after `N` model requests (default 200)")
	flags.StringVar(&f.maxCost, "max-cost", "", "ask before the session costs more than `USD` dollars, with its agents; exit code 6 without a terminal")
	flags.StringVar(&f.maxTokens, "max-tokens-total", "", "ask before the session uses more than `N` tokens, sent and received, with its agents")
	flags.StringVar(&f.name, "name", "", "`NAME` of the session")
	flags.StringVar(&f.workspace, "workspace", "", "`WORKSPACE` of a new session: a name of the configuration, unix:PATH, tcp:HOST:PORT, or local for the machine of the engine")
	flags.StringArrayVar(&f.attach, "attach", nil, "send this `FILE` with the prompt: an image, a PDF or a text, or @SERVER:URI of an MCP server; can be repeated")
	flags.StringVar(&f.schema, "output-schema", "", "JSON schema `FILE` that the answer must match; --json has the value in structured_output")
	flags.StringVar(&f.system, "system", "", "use the text of this `FILE` as the system prompt, in place of abide's own")
	flags.StringVar(&f.more, "append-system", "", "add this `TEXT` to the end of the system prompt")
	flags.BoolVarP(&f.detach, "detach", "d", false, "send the prompt, print the session id and leave")
	f.registerFormat(flags)
}

func (f *runFlags) registerFormat(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "output-format", formatText, "`FORMAT` of stdout: text, json (one object) or stream-json (one object per line)")
	flags.BoolVar(&f.json, "json", false, "the same as --output-format json")
	flags.BoolVar(&f.partial, "include-partial-messages", false, "with stream-json: include partial answers as they arrive")
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:     "run [PROMPT]",
		Short:   "Send a prompt to an agent and print the answer",
		Long:    runHelp,
		Example: runExamples,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), f, args) },
	}
	f.register(c.Flags())
	return c
}

// check returns an error if flags contradict each other.
func (f *runFlags) check() error {
	if err := f.checkFormat(); err != nil {
		return err
	}
	switch {
	case f.resume != "" && f.last:
		return usagef("--resume and --continue cannot be used together: --resume names the session, --continue takes the last one")
	case len(f.answers) > 0 && !f.resumes():
		return usagef("--answer needs a waiting session: name it with --resume")
	case f.detach && len(f.answers) > 0:
		return usagef("--detach and --answer cannot be used together: answer with abide answer, and send the prompt afterwards")
	case f.sealed && f.resumes():
		return usagef("--sealed is for a new session: one that was begun with it stays sealed, and another one cannot be sealed later")
	case f.sealed && f.workspace != "" && f.workspace != event.LocalWorkspace:
		return usagef("--sealed and --workspace cannot be used together: only commands on this machine can be sealed")
	case f.maxSteps < 0:
		return usagef("--max-steps: %d is negative; give the number of model requests, or 0 for the default", f.maxSteps)
	case f.scenario != "" && f.model != "" && f.model != "scripted":
		return usagef("--scenario is for the model scripted, not for %s: omit --model", f.model)
	}
	for _, name := range f.attach {
		if name == "-" || name == "" {
			return usagef("--attach: %q is not a file; what is piped to abide run joins the prompt", name)
		}
	}
	if _, err := f.limit(); err != nil {
		return err
	}
	for _, answer := range f.answers {
		if request, _, ok := strings.Cut(answer, "="); !ok || request == "" {
			return usagef("--answer: %q is not REQUEST=ANSWER; list the requests with: abide questions", answer)
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

// rules returns the rule set of the session.
func (f *runFlags) rules() string {
	if f.yolo {
		return approval.All
	}
	return approval.Workspace
}

// answerer returns the model that the flags name, and its provider unless that is the
// default one. Both are empty if no model is named.
func (f *runFlags) answerer(a *app) (string, *api.Provider, error) {
	scenario, named := strings.CutPrefix(f.model, scripted.Name+":")
	if scenario = cmp.Or(f.scenario, scenario); f.scenario != "" || named {
		path, err := filepath.Abs(scenario) // the engine may have another working directory
		return scripted.Name + ":" + path, nil, err
	}
	if f.model == "" {
		return "", nil, nil
	}
	loaded, err := a.settings()
	if err != nil {
		return "", nil, err
	}
	usual, err := defaultChoice(loaded)
	if err != nil {
		return "", nil, err
	}
	if found, ok, err := findProvider(loaded.Config, usual, f.model); ok || err != nil {
		return found.model, found.provider, err
	}
	return f.model, nil, nil
}

// run runs abide run.
func (a *app) run(ctx context.Context, f *runFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	prompt, err := a.prompt(ctx, f, args)
	if err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" && !f.resumes() {
		return usagef(`there is no prompt: give one with abide run "…", or see abide run --help`)
	}
	if f.detach && strings.TrimSpace(prompt) == "" {
		return usagef("--detach needs a prompt to send")
	}
	if f.schema != "" && strings.TrimSpace(prompt) == "" {
		return usagef("--output-schema needs a prompt to send: it is about the answer to that")
	}
	if len(f.attach) > 0 && strings.TrimSpace(prompt) == "" {
		return usagef("--attach needs a prompt to send the file with")
	}
	r := a.newRunner(f)
	if r.schema, err = f.outputSchema(); err != nil {
		return err
	}
	err = a.withRunner(ctx, r, func() error { return r.run(ctx, prompt) })
	if err == nil && f.detach {
		return r.detached()
	}
	return r.end(ctx, err)
}

// withRunner calls f with a runner that is connected to the engine, and stops the turn
// if a person presses Ctrl-C meanwhile. Other signals only end the run: whoever closes
// the terminal or ends the process from outside does not stop the work.
func (a *app) withRunner(ctx context.Context, r *runner, f func() error) error {
	a.opts.signals.catch(syscall.SIGQUIT)
	a.detached = r.flags.detach
	return a.withClient(ctx, func(c *client.Client) error {
		r.client = c
		err := f()
		if errors.Is(err, errInterrupted) {
			err = r.stop(ctx)
		}
		r.settle(ctx)
		_, stopped := errors.AsType[*turnStopped](err)
		a.elsewhere = r.seen.aborted && !stopped
		a.turnOver = stopped || r.seen.done || r.waiting()
		return err
	})
}

// detached says where the turn goes on that the run does not follow.
func (r *runner) detached() error {
	r.showNothing()
	switch r.flags.format {
	case formatText:
		r.app.out.printf("%s\n", r.id)
	default:
		nothing := outcome{model: r.seen.model} // r.seen is of earlier turns, so only its model is used
		result := newResult(r.id, &nothing, time.Since(r.started), nil)
		result.Subtype = subtypeDetached
		r.view.end(result)
	}
	if r.app.stays && r.queues {
		r.note(fmt.Sprintf("a turn is under way, and the prompt waits for its end; to follow it: abide run --resume %s (to stop it: abide stop %s)", r.id, r.id))
	} else if r.app.stays {
		r.note(fmt.Sprintf("the turn goes on; to follow it: abide run --resume %s (to stop it: abide stop %s)", r.id, r.id))
	} else {
		r.note(fmt.Sprintf("no engine is running, so the turn waits; to continue: abide run --resume %s, or start one with: abide serve", r.id))
	}
	return r.app.out.err
}
