// Package config reads what users have written down: one TOML file of their own,
// one in the project, and what flags and the environment say.
//
//   - A later source wins over an earlier one: defaults, user, project,
//     environment, flags. Scope rules and permission rules of all sources count.
//   - A key that is not known is an error that names the nearest one that is.
//   - A project's file cannot widen anything before its folder is trusted: only
//     what restricts is taken, and the rest is reported.
//   - Where each value came from can be shown.
//
// There are no secrets in these files: a key is named by its variable.
package config

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/approval"
)

// Config is all that can be written down. Its zero value runs.
type Config struct {
	Pod          Pod                 `toml:"pod" doc:"The session that is started here."`
	Model        Model               `toml:"model" doc:"The model that sessions use unless they name another."`
	Providers    map[string]Provider `toml:"providers" doc:"Model endpoints, by name."`
	Models       map[string]Limits   `toml:"models" doc:"What is known of a model, by name."`
	Worker       Worker              `toml:"worker" doc:"Bounds of the work."`
	Compaction   Compaction          `toml:"compaction" doc:"When and how context is compacted."`
	Memory       Memory              `toml:"memory" doc:"What is remembered between sessions."`
	Scope        Scope               `toml:"scope" doc:"Which files may be read and written."`
	Permissions  Permissions         `toml:"permissions" doc:"What is allowed, asked and denied; deny wins, then ask."`
	Commands     Commands            `toml:"commands" doc:"The commands that agents run."`
	Instructions Instructions        `toml:"instructions" doc:"Files that tell the model about the project."`
	Store        Store               `toml:"store" doc:"How the log is kept."`
}

// Pod names a session and where it works.
type Pod struct {
	Name string `toml:"name" doc:"Name of the session."`
	Pwd  string `toml:"pwd" doc:"Working directory, relative to this file."`
}

// Model names a model and, if it is not one of a provider below, its endpoint.
type Model struct {
	Scheme          string `toml:"scheme" doc:"Wire: openai (Chat Completions), responses, anthropic, azure, offline or scripted." enum:"openai,responses,anthropic,azure,offline,scripted"`
	ModelID         string `toml:"model_id" doc:"Name of the model, as the provider calls it; NAME/MODEL for one of a provider below."`
	BaseURL         string `toml:"base_url" doc:"Base URL of the endpoint; the vendor's own if empty."`
	APIKeyEnv       string `toml:"api_key_env" doc:"Variable that holds the key; the vendor's usual one if empty."`
	ReasoningEffort string `toml:"reasoning_effort" doc:"How much a reasoning model thinks." enum:"none,minimal,low,medium,high,xhigh,max"`
}

// Provider is a model endpoint.
type Provider struct {
	Scheme     string            `toml:"scheme" doc:"Wire: openai (Chat Completions), responses, anthropic or azure." enum:"openai,responses,anthropic,azure"`
	BaseURL    string            `toml:"base_url" doc:"Base URL of the endpoint; the vendor's own if empty."`
	APIKeyEnv  string            `toml:"api_key_env" doc:"Variable that holds the key; the vendor's usual one if empty."`
	APIVersion string            `toml:"api_version" doc:"Azure: version of the deployment route."`
	Headers    map[string]string `toml:"headers" doc:"Further headers of every request; no secrets."`
}

// Limits is what is known of a model. What is zero is taken from what is built
// in, or from safe defaults.
type Limits struct {
	Window     int      `toml:"window" doc:"Context window, in tokens."`
	MaxOutput  int      `toml:"max_output" doc:"Longest answer, in tokens."`
	Vision     *bool    `toml:"vision" doc:"Whether it takes pictures."`
	Reasoning  *bool    `toml:"reasoning" doc:"Whether it reasons."`
	Input      *float64 `toml:"input_price" doc:"Price of a million input tokens, in US dollars."`
	Output     *float64 `toml:"output_price" doc:"Price of a million output tokens, in US dollars."`
	CacheRead  *float64 `toml:"cache_read_price" doc:"Price of a million tokens read from the cache, in US dollars; that of input tokens if left out."`
	CacheWrite *float64 `toml:"cache_write_price" doc:"Price of a million tokens written to the cache, in US dollars; that of input tokens if left out."`
}

// Worker bounds a turn.
type Worker struct {
	MaxTokens int      `toml:"max_tokens" doc:"Longest answer asked for, in tokens; the model's limit if 0."`
	MaxSteps  int      `toml:"max_steps" doc:"Model requests in one turn; 200 if 0."`
	Tools     []string `toml:"tools" doc:"Tools that are only offered if they are named, like exec."`
	MaxQueue  int      `toml:"max_queue" doc:"Messages that can wait while a turn runs; 20 if 0."`
}

// Compaction says when context is compacted. Zero switches a threshold off.
type Compaction struct {
	Threshold        *int   `toml:"compact_threshold" doc:"Tokens above which context is compacted before a turn."`
	RequestThreshold *int   `toml:"compact_request_threshold" doc:"Tokens above which context is compacted between two requests of a turn."`
	RetainedTokens   *int   `toml:"compact_retained_tokens" doc:"Tokens of the newest history that are kept as they are."`
	Model            string `toml:"model" doc:"Model that writes the summary; the session's own if empty."`
	Timeout          string `toml:"timeout" doc:"How long one request for a summary may take, like 5m."`
	KeepOutput       bool   `toml:"keep_output" doc:"Old output of tools stays in requests until context is compacted, even if leaving it out would save much."`
}

// Memory says what is remembered of sessions, and when. Zero switches it off.
type Memory struct {
	ExtractThreshold *int   `toml:"extract_threshold" doc:"Tokens of new history after which memory is extracted; 0 switches it off."`
	Model            string `toml:"model" doc:"Model that extracts memory; the session's own if empty."`
	Idle             string `toml:"idle" doc:"How long a session is left alone before what was extracted is folded into memory, like 15m; 0s switches it off. 15m if memory is extracted."`
	Timeout          string `toml:"timeout" doc:"How long one attempt to extract may take, like 5m."`
	Recall           *int   `toml:"recall_tokens" doc:"Tokens of memory that a new session is told at most; 2000 if left out, 0 switches it off."`
	Where            string `toml:"where" doc:"Where memory is kept: workspace (.abide/memory of the project) or user; by where a session works if empty." enum:"workspace,user"`
}

// Scope is which files may be read and written. Deny wins.
type Scope struct {
	Allow []Rule `toml:"allow" doc:"What may be used."`
	Deny  []Rule `toml:"deny" doc:"What may not, whatever else is said."`
}

// A Rule is about a file or a folder with all that is below it.
type Rule struct {
	Target     string `toml:"target" doc:"File or folder, relative to this file; ~ is the home directory."`
	Permission string `toml:"permission" doc:"read, or write, which includes reading. In a deny rule: write denies writing alone, read denies both." enum:"read,write"`
}

// Permissions are rules like "bash", "bash(git *)" or "edit(docs/**)".
type Permissions struct {
	Allow []string `toml:"allow" doc:"Done without asking."`
	Ask   []string `toml:"ask" doc:"Asked, even if allowed elsewhere."`
	Deny  []string `toml:"deny" doc:"Never done."`
}

// Commands are the commands that agents run.
type Commands struct {
	Wait        string   `toml:"wait" doc:"How long a call waits for its command before that goes on in the background, like 10s, unless the call says it."`
	TimeLimit   string   `toml:"time_limit" doc:"How long a command may run at most, like 2h; without limit if empty."`
	MaxMemory   int64    `toml:"max_memory" doc:"Most memory of a command with all that it started, in bytes; without limit if 0."`
	MaxRunning  int      `toml:"max_running" doc:"Most commands of one session at a time; 64 if 0."`
	OutputBytes int64    `toml:"output_bytes" doc:"Most output of a command that is kept on disk; 67108864 if 0. Beyond that the middle is dropped and counted."`
	Keep        string   `toml:"keep" doc:"How long output is kept after the agent was told of the end, like 168h."`
	PassEnv     []string `toml:"pass_env" doc:"Variables that commands get although they hold keys of models."`
}

// Instructions are files that are read into the system prompt.
type Instructions struct {
	Files    []string `toml:"files" doc:"Names looked for in the working directory and above it; [\"AGENTS.md\"] if empty."`
	MaxBytes int      `toml:"max_bytes" doc:"Most that is read of all of them; 32768 if 0."`
}

// Store says how the log is kept.
type Store struct {
	URL  string `toml:"url" doc:"Where the log is: sqlite:PATH, a relative path being meant from the data folder. A file in the data folder if empty."`
	Sync string `toml:"sync" doc:"full: what was acknowledged survives a power cut. normal: it survives a crash of the program; a power cut may take the last moments back." enum:"full,normal"`
	Rest string `toml:"rest" doc:"How long an idle session stays in memory, like 30s."`
}

// check finds values that make no sense by themselves.
func (c *Config) check() []mistake {
	list := checkEnums(reflect.ValueOf(c).Elem(), nil)
	list = notNegative(list, path{"worker", "max_tokens"}, c.Worker.MaxTokens)
	list = notNegative(list, path{"worker", "max_steps"}, c.Worker.MaxSteps)
	list = notNegative(list, path{"worker", "max_queue"}, c.Worker.MaxQueue)
	list = notNegative(list, path{"instructions", "max_bytes"}, c.Instructions.MaxBytes)
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		list = append(list, c.Models[name].check(path{"models", name})...)
	}
	list = notNegative(list, path{"commands", "max_running"}, c.Commands.MaxRunning)
	list = notNegative(list, path{"commands", "max_memory"}, int(c.Commands.MaxMemory))
	list = notNegative(list, path{"commands", "output_bytes"}, int(c.Commands.OutputBytes))
	list = duration(list, path{"commands", "wait"}, c.Commands.Wait)
	list = duration(list, path{"commands", "time_limit"}, c.Commands.TimeLimit)
	list = duration(list, path{"commands", "keep"}, c.Commands.Keep)
	list = duration(list, path{"store", "rest"}, c.Store.Rest)
	list = duration(list, path{"compaction", "timeout"}, c.Compaction.Timeout)
	list = duration(list, path{"memory", "timeout"}, c.Memory.Timeout)
	list = orZero(list, path{"memory", "idle"}, c.Memory.Idle)
	list = given(list, path{"memory", "extract_threshold"}, c.Memory.ExtractThreshold)
	list = given(list, path{"memory", "recall_tokens"}, c.Memory.Recall)
	list = checkRules(list, path{"permissions", "allow"}, c.Permissions.Allow)
	list = checkRules(list, path{"permissions", "ask"}, c.Permissions.Ask)
	list = checkRules(list, path{"permissions", "deny"}, c.Permissions.Deny)
	list = checkTargets(list, path{"scope", "allow"}, c.Scope.Allow)
	return checkTargets(list, path{"scope", "deny"}, c.Scope.Deny)
}

func checkRules(list []mistake, at path, rules []string) []mistake {
	for i, r := range rules {
		if err := approval.Check(r); err != nil {
			list = append(list, wrong(at.item(i), "%v", err))
		}
	}
	return list
}

func (l Limits) check(at path) (list []mistake) {
	list = notNegative(list, at.with("window"), l.Window)
	list = notNegative(list, at.with("max_output"), l.MaxOutput)
	if l.Window > 0 && l.MaxOutput > l.Window {
		list = append(list, wrong(at.with("max_output"), "%d is more than the window of %d", l.MaxOutput, l.Window))
	}
	prices := []struct {
		key   string
		price *float64
	}{{"input_price", l.Input}, {"output_price", l.Output}, {"cache_read_price", l.CacheRead}, {"cache_write_price", l.CacheWrite}}
	for _, p := range prices {
		if p.price != nil && !(*p.price >= 0 && *p.price < math.MaxFloat32) {
			list = append(list, wrong(at.with(p.key), "%v is not a price", *p.price))
		}
	}
	return list
}

func duration(list []mistake, key path, value string) []mistake {
	if d, err := time.ParseDuration(value); value == "" || err == nil && d > 0 {
		return list
	}
	return append(list, wrong(key, "%q is not a duration like 30s or 5m", value))
}

// orZero is duration for what can be switched off.
func orZero(list []mistake, key path, value string) []mistake {
	if d, err := time.ParseDuration(value); err == nil && d == 0 {
		return list
	}
	return duration(list, key, value)
}

// given is notNegative for what need not be said.
func given(list []mistake, key path, value *int) []mistake {
	if value == nil {
		return list
	}
	return notNegative(list, key, *value)
}

func notNegative(list []mistake, key path, value int) []mistake {
	if value >= 0 {
		return list
	}
	return append(list, wrong(key, "%d is negative", value))
}

func checkTargets(list []mistake, at path, rules []Rule) []mistake {
	for i, r := range rules {
		if r.Target == "" {
			list = append(list, wrong(at.item(i).with("target"), "it is empty"))
		}
	}
	return list
}
