package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/provider"
)

const modelsHelp = `List the models of every provider that is configured or whose API key is set. The
names are the ones to give to "abide run --model". The model with a * is the default.

WINDOW is the number of tokens that a request and its answer can have together, and
OUTPUT the number that the answer alone can have; ~ marks a conservative guess for an
unknown model. PRICE is the price of a million input and output tokens. To correct
these values, set them in the configuration:

  [models."my-model"]
  window = 32768
  vision = true
  input_price = 0.5
  output_price = 1.5

A provider that does not answer within 5 seconds is reported on stderr, and the
others are listed. The exit code is 4 if no provider answered.`

func (a *app) modelsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "models [TEXT]",
		Short:   "List the available models and the default",
		Long:    modelsHelp,
		Example: "  abide models\n  abide models claude\n  abide models --json | jq -r '.models[].id'\n  abide run --model local/qwen3 \"Hello\"",
		Args:    arguments(0, 1, "at most one TEXT"),
	}
	format := formatFlags(c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		asJSON, err := format()
		if err != nil {
			return err
		}
		return a.models(cmd.Context(), strings.Join(args, ""), asJSON)
	}
	return c
}

// formatFlags adds the flags --output-format and --json to a command. The function that
// it returns evaluates them.
func formatFlags(flags *pflag.FlagSet) func() (asJSON bool, err error) {
	format := flags.String("output-format", formatText, "`FORMAT` of stdout: text or json")
	short := flags.Bool("json", false, "the same as --output-format json")
	return func() (bool, error) {
		switch *format {
		case formatText, formatJSON:
			return *short || *format == formatJSON, nil
		}
		return false, usagef("--output-format: %q is unknown; use text or json", *format)
	}
}

// modelList is the JSON output of abide models.
type modelList struct {
	Models    []modelInfo    `json:"models"`
	Providers []providerInfo `json:"providers"`
	Default   *defaultInfo   `json:"default,omitempty"`
}

type modelInfo struct {
	ID        string       `json:"id"` // name for --model
	Provider  string       `json:"provider,omitempty"`
	Window    int          `json:"window,omitempty"`
	MaxOutput int          `json:"maxOutput,omitempty"`
	Vision    bool         `json:"vision"`
	Reasoning bool         `json:"reasoning"`
	Price     *model.Price `json:"price,omitempty"`
	Known     bool         `json:"known"` // false if the other values are guesses
	Default   bool         `json:"default,omitempty"`
}

type providerInfo struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Wire    string `json:"wire,omitempty"`
	BaseURL string `json:"baseUrl"`
	Error   string `json:"error,omitempty"`
}

type defaultInfo struct {
	ID  string `json:"id,omitempty"` // empty if none is named, and the provider did not answer or there is no reason for any of its models
	Why string `json:"why"`
}

// models runs abide models.
func (a *app) models(ctx context.Context, text string, asJSON bool) error {
	loaded, err := a.settings()
	if err != nil {
		return err
	}
	usual, err := defaultChoice(loaded)
	if err != nil {
		return err
	}
	list, failed := a.survey(ctx, usual, sources(loaded.Config, usual), environment(loaded.Config))
	list.Models = slices.DeleteFunc(list.Models, func(m modelInfo) bool {
		return !strings.Contains(strings.ToLower(m.ID), strings.ToLower(text))
	})
	if asJSON {
		err = a.out.json(list)
	} else {
		err = a.printModels(list, text)
	}
	if err == nil && failed > 0 && failed == len(list.Providers) {
		return &exitError{code: exitProvider}
	}
	return err
}

// sources returns the providers that can be asked, the default one first.
func sources(c config.Config, usual choice) []choice {
	var list []choice
	add := func(s choice) {
		same := func(t choice) bool {
			return t.provider.BaseURL == s.provider.BaseURL && t.provider.Type == s.provider.Type
		}
		if s.provider != nil && !slices.ContainsFunc(list, same) {
			list = append(list, s)
		}
	}
	add(usual)
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if p, err := endpoint(c.Providers[name], settingOf(name)); err == nil {
			add(choice{name: name, provider: withModelSettings(p, c, name)})
		}
	}
	for _, scheme := range slices.Sorted(maps.Keys(vendors)) {
		if p, err := endpoint(config.Provider{Scheme: scheme}, settingOf(scheme)); err == nil && usual.usesVendor(scheme) {
			add(choice{name: scheme, provider: withModelSettings(p, c, scheme)})
		}
	}
	return list
}

// survey asks all providers in parallel for their models.
func (a *app) survey(ctx context.Context, usual choice, from []choice, env []string) (list modelList, failed int) {
	answers := make([]daemon.Survey, len(from))
	errs := make([]error, len(from))
	var asking sync.WaitGroup
	for i, s := range from {
		asking.Go(func() { answers[i], errs[i] = daemon.Ask(ctx, *s.provider, a.opts.Version, env) })
	}
	asking.Wait()
	list.Default = &defaultInfo{usual.knownModel(), usual.why}
	list.Providers = []providerInfo{}
	for i, s := range from {
		info := providerInfo{Name: s.name, Type: s.provider.Type, Wire: s.provider.WireAPI, BaseURL: s.provider.Address()}
		if errs[i] != nil {
			info.Error = errs[i].Error()
			failed++
		}
		list.Providers = append(list.Providers, info)
		names := answers[i].Models
		if i == 0 && usual.provider != nil {
			if a := answers[i]; usual.model == "" && len(names) > 0 {
				list.Default = &defaultInfo{a.Default, usual.why + "; no model is named: " + a.Why}
			}
			names = append(names, usual.model)
		}
		list.Models = append(list.Models, s.describe(names, usual, list.Default.ID)...)
	}
	list.Models = append(list.Models, modelInfo{ID: offline.Name, Known: true, Default: usual.knownModel() == offline.Name})
	return list, failed
}

// describe returns what is known about the models of a provider, sorted by name.
func (s choice) describe(names []string, usual choice, first string) (list []modelInfo) {
	for limited := range s.provider.Abide.Models {
		if own, ok := strings.CutPrefix(limited, s.name+"/"); ok {
			names = append(names, own)
		}
	}
	own := s.provider == usual.provider
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if name == "" {
			continue
		}
		can := daemon.Capabilities(*s.provider, name)
		info := modelInfo{
			ID: name, Provider: s.name, Window: can.Window, MaxOutput: can.MaxOutput, Vision: can.Vision, Reasoning: can.Reasoning,
			Price: can.Price, Known: can.Known || written(s.provider, name), Default: own && name == first,
		}
		if !own {
			info.ID = s.name + "/" + name
		}
		list = append(list, info)
	}
	return list
}

// written reports whether the configuration has the window of a model.
func written(p *provider.Provider, name string) bool { return p.Abide.Models[name].Window > 0 }

func (a *app) printModels(list modelList, text string) error {
	t := &table{head: []string{"", "MODEL", "PROVIDER", "WINDOW", "OUTPUT", "PICTURES", "REASONING", "PRICE"}}
	for _, m := range list.Models {
		mark := ""
		if m.Default {
			mark = "*"
		}
		t.add(mark, plain(m.ID), plain(cmp.Or(m.Provider, "built in")), m.tokens(m.Window), m.tokens(m.MaxOutput), m.word(m.Vision), m.word(m.Reasoning), m.price())
	}
	if len(t.rows) > 0 {
		if err := a.print(t); err != nil {
			return err
		}
	}
	for _, p := range list.Providers {
		if p.Error != "" {
			a.err.printf("abide: %s\n", plain(p.Name+": "+p.Error))
		}
	}
	switch {
	case a.quiet:
	case len(t.rows) == 0:
		a.err.printf("no model name contains %q; list all with: abide models\n", text)
	default:
		a.err.printf("%s\n", plain(list.Default.sentence()))
	}
	return nil
}

// sentence returns the default model and the reason in words.
func (d *defaultInfo) sentence() string {
	return fmt.Sprintf("default model: %s (%s)", cmp.Or(d.ID, "none yet"), d.Why)
}

// tokens returns a number of tokens in short form, such as 128k.
func (m modelInfo) tokens(n int) string {
	text := strconv.Itoa(n)
	switch {
	case n == 0:
		return ""
	case n >= 1_000_000:
		text = strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", float64(n)/1e6), "0"), ".") + "M"
	case n >= 1000:
		text = strconv.Itoa(n/1000) + "k"
	}
	if !m.Known {
		return "~" + text
	}
	return text
}

func (m modelInfo) word(can bool) string {
	switch {
	case can:
		return "yes"
	case m.Known:
		return "no"
	}
	return "?"
}

func (m modelInfo) price() string {
	switch {
	case m.Price != nil && m.Price.Long != nil:
		return fmt.Sprintf("%s / %s, more above %dk", dollars(m.Price.Input), dollars(m.Price.Output), m.Price.LongFrom/1000)
	case m.Price != nil:
		return dollars(m.Price.Input) + " / " + dollars(m.Price.Output)
	case m.Provider == "":
		return "needs no key"
	}
	return ""
}
