// Package config reads the configuration: the user's TOML file, the project's TOML
// file, environment variables and flags.
//
//   - A later source wins over an earlier one: defaults, user, project,
//     environment, flags. Scope rules and permission rules of all sources apply.
//   - An unknown key is an error that names the nearest known one.
//   - A project's file cannot extend permissions before its directory is trusted:
//     only its restrictions apply, and the other keys are reported.
//   - The source of each value is recorded.
//
// These files hold no secrets: an API key is named by its environment variable, or by the
// command that prints it, and a header by its variable.
package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
)

// Config is the whole configuration. Its zero value is usable.
type Config struct {
	Pod          Pod                 `toml:"pod" doc:"The session that abide run starts."`
	Model        Model               `toml:"model" doc:"The default model of sessions."`
	Providers    map[string]Provider `toml:"providers" doc:"Model endpoints, by name."`
	Models       map[string]Limits   `toml:"models" doc:"Limits, capabilities and prices of models, by name."`
	Worker       Worker              `toml:"worker" doc:"Limits of a turn."`
	Compaction   Compaction          `toml:"compaction" doc:"When and how context is compacted."`
	Memory       Memory              `toml:"memory" doc:"Memory across sessions."`
	Budget       Budget              `toml:"budget" doc:"Limits of what model requests may cost; a request that would exceed one is asked about first."`
	Scope        Scope               `toml:"scope" doc:"Which files may be read and written."`
	Permissions  Permissions         `toml:"permissions" doc:"Which tool calls are allowed, need an answer, or are denied; deny wins, then ask."`
	Commands     Commands            `toml:"commands" doc:"The commands that agents run."`
	Workspace    Workspace           `toml:"workspace" doc:"Where the files and commands of sessions are."`
	Workspaces   map[string]Place    `toml:"workspaces" doc:"Workspaces on other machines or in containers, by name."`
	MCP          MCP                 `toml:"mcp" doc:"MCP servers, which bring tools."`
	Instructions Instructions        `toml:"instructions" doc:"Files with instructions for the model."`
	Store        Store               `toml:"store" doc:"How the log is stored."`
	Notify       Notify              `toml:"notify" doc:"Who is told when a session waits for a person, or has ended its turn; abide serve does that."`
	Retention    Retention           `toml:"retention" doc:"How long things are kept; everything is kept if nothing is set."`
}

// Pod is the name and the working directory of the session that abide run starts.
type Pod struct {
	Name string `toml:"name" doc:"Name of the session."`
	Pwd  string `toml:"pwd" doc:"Working directory, relative to this file."`
}

// Model is the default model and, unless it belongs to a provider of Config.Providers,
// its endpoint.
type Model struct {
	Scheme          string `toml:"scheme" doc:"API of the endpoint: openai (Chat Completions), responses, anthropic or azure, openai if not set and responses at api.openai.com; or a built-in model: offline or scripted." enum:"openai,responses,anthropic,azure,offline,scripted"`
	ModelID         string `toml:"model_id" doc:"Name of the model at the provider; PROVIDER/MODEL for a provider of [providers]."`
	BaseURL         string `toml:"base_url" doc:"Base URL of the endpoint; the vendor's default if empty."`
	APIKeyEnv       string `toml:"api_key_env" doc:"Environment variable that holds the API key; the vendor's default if empty."`
	Profile         string `toml:"profile" doc:"What is special about the endpoint; if empty, its host decides." enum:"openai,azure,anthropic,gemini,deepseek,mistral,openrouter,ollama,vllm,lmstudio,github,other"`
	ExtraBody       string `toml:"extra_body" doc:"Further members of every request, as a JSON object like {\"temperature\":0.2}; do not put secrets here."`
	CacheTTL        string `toml:"cache_ttl" doc:"How long the cache of Claude lasts, at Anthropic and over OpenRouter: writing to one of an hour costs more; 5m if empty." enum:"5m,1h"`
	ReasoningEffort string `toml:"reasoning_effort" doc:"Reasoning effort of reasoning models." enum:"none,minimal,low,medium,high,xhigh,max"`

	APIKeyCommand string            `toml:"api_key_command" doc:"Command line for sh that prints the API key, instead of a variable; run when the key is needed, and again when the provider refuses it."`
	Headers       map[string]string `toml:"headers" doc:"Additional headers of every request; ${NAME} is the value of an environment variable."`

	Patience Duration `toml:"patience" doc:"Time that a turn waits for a model that cannot be reached, like 1h; 0s turns waiting off. By default 1h, and 10m for a session that abide run starts at a terminal."`
	Fallback []string `toml:"fallback" doc:"Models that the rest of a turn is asked of, in this order, when its model was given up; PROVIDER/MODEL for a provider of [providers]."`
	Silence  Duration `toml:"silence" doc:"Longest time without any data of an answer, like 5m, after which the request counts as failed; 5m if empty."`
}

// Provider is a model endpoint.
type Provider struct {
	Scheme     string            `toml:"scheme" doc:"API of the endpoint: openai (Chat Completions), responses, anthropic or azure; openai if not set, and responses at api.openai.com." enum:"openai,responses,anthropic,azure"`
	BaseURL    string            `toml:"base_url" doc:"Base URL of the endpoint; the vendor's default if empty."`
	APIKeyEnv  string            `toml:"api_key_env" doc:"Environment variable that holds the API key; the vendor's default if empty."`
	APIVersion string            `toml:"api_version" doc:"Azure only: version of the API."`
	Profile    string            `toml:"profile" doc:"What is special about the endpoint; if empty, its host decides." enum:"openai,azure,anthropic,gemini,deepseek,mistral,openrouter,ollama,vllm,lmstudio,github,other"`
	ExtraBody  string            `toml:"extra_body" doc:"Further members of every request, as a JSON object like {\"temperature\":0.2}; do not put secrets here."`
	CacheTTL   string            `toml:"cache_ttl" doc:"How long the cache of Claude lasts, at Anthropic and over OpenRouter: writing to one of an hour costs more; 5m if empty." enum:"5m,1h"`
	Headers    map[string]string `toml:"headers" doc:"Additional headers of every request; ${NAME} is the value of an environment variable."`

	APIKeyCommand string `toml:"api_key_command" doc:"Command line for sh that prints the API key, instead of a variable; run when the key is needed, and again when the provider refuses it."`
}

// Limits are the limits, capabilities and prices of a model. A zero field is taken from
// the built-in catalog, or from safe defaults.
type Limits struct {
	Window     int      `toml:"window" doc:"Context window, in tokens."`
	MaxOutput  int      `toml:"max_output" doc:"Longest answer, in tokens."`
	Vision     *bool    `toml:"vision" doc:"Whether the model accepts images."`
	Reasoning  *bool    `toml:"reasoning" doc:"Whether the model is a reasoning model."`
	Input      *float64 `toml:"input_price" doc:"Price of a million input tokens, in US dollars."`
	Output     *float64 `toml:"output_price" doc:"Price of a million output tokens, in US dollars."`
	CacheRead  *float64 `toml:"cache_read_price" doc:"Price of a million tokens read from the cache, in US dollars; the price of input tokens if not set."`
	CacheWrite *float64 `toml:"cache_write_price" doc:"Price of a million tokens written to the cache, in US dollars; the price of input tokens if not set."`

	Temperature *float64 `toml:"temperature" doc:"Temperature of requests; the provider's default if not set."`
	TopP        *float64 `toml:"top_p" doc:"Nucleus sampling of requests; the provider's default if not set."`
}

// Worker holds the limits of a turn.
type Worker struct {
	MaxTokens int      `toml:"max_tokens" doc:"Maximum length of an answer, in tokens; the model's limit if 0."`
	MaxSteps  int      `toml:"max_steps" doc:"Maximum number of model requests in one turn; 200 if 0."`
	Tools     []string `toml:"tools" doc:"Optional tools to enable, like exec."`
	MaxQueue  int      `toml:"max_queue" doc:"Maximum number of messages that wait while a turn runs; 20 if 0."`
}

// Compaction sets when context is compacted. A threshold of zero is off.
type Compaction struct {
	Threshold        *int     `toml:"compact_threshold" doc:"Tokens above which context is compacted before a turn."`
	RequestThreshold *int     `toml:"compact_request_threshold" doc:"Tokens above which context is compacted between two requests of a turn."`
	RetainedTokens   *int     `toml:"compact_retained_tokens" doc:"Tokens of the newest history that are kept unchanged."`
	Model            string   `toml:"model" doc:"Model that writes the summary; the model of the session if empty."`
	Timeout          Duration `toml:"timeout" doc:"Maximum duration of one summary request, like 5m."`
	KeepOutput       bool     `toml:"keep_output" doc:"Keep old tool output in requests until context is compacted, instead of leaving it out to save tokens."`
}

// Memory sets what is remembered of sessions, and when. Zero values switch it off.
type Memory struct {
	ExtractThreshold *int     `toml:"extract_threshold" doc:"Tokens of new history after which memory is extracted; 0 turns it off."`
	Model            string   `toml:"model" doc:"Model that extracts memory; the model of the session if empty."`
	Idle             Duration `toml:"idle" doc:"Idle time of a session after which extracted facts are written to memory, like 15m; 0s turns it off. 15m by default if memory is extracted."`
	Timeout          Duration `toml:"timeout" doc:"Maximum duration of one extraction, like 5m."`
	Recall           *int     `toml:"recall_tokens" doc:"Maximum number of tokens of memory that a new session gets; 2000 if not set, 0 turns it off."`
	Where            string   `toml:"where" doc:"Where memory is stored: workspace (.abide/memory of the project) or user; if empty, it depends on where the session works." enum:"workspace,user"`
}

// Scope sets which files may be read and written. Deny wins.
type Scope struct {
	Allow []Rule `toml:"allow" doc:"Files and directories that may be used."`
	Deny  []Rule `toml:"deny" doc:"Files and directories that may not be used, whatever else allows them."`
}

// A Rule is about a file, or a directory with everything below it.
type Rule struct {
	Target     string `toml:"target" doc:"File or directory, and no pattern. It is absolute or begins with ~/, and in the file of a project it may be relative to that."`
	Permission string `toml:"permission" doc:"read, or write, which includes reading. In a deny rule, write denies only writing, and read denies both." enum:"read,write"`
}

// Permissions are rules like "bash", "bash(git *)" or "edit(docs/**)".
type Permissions struct {
	Allow []string `toml:"allow" doc:"Calls that need no answer."`
	Ask   []string `toml:"ask" doc:"Calls that need an answer, even if another rule allows them."`
	Deny  []string `toml:"deny" doc:"Calls that are never made."`
}

// Commands sets how agents run commands.
type Commands struct {
	Wait        Duration `toml:"wait" doc:"Time that a call waits for its command before the command continues in the background, like 10s, unless the call sets it."`
	TimeLimit   Duration `toml:"time_limit" doc:"Maximum run time of a command, also in the background, like 2h; no limit if empty."`
	MaxMemory   int64    `toml:"max_memory" doc:"Maximum memory of a command and all its processes, also in the background, in bytes; no limit if 0."`
	MaxRunning  int      `toml:"max_running" doc:"Maximum number of commands that a session runs at a time; 64 if 0."`
	OutputBytes int64    `toml:"output_bytes" doc:"Maximum output of a command that is kept on disk, in bytes; 67108864 if 0. Of longer output, the middle is dropped."`
	Keep        Duration `toml:"keep" doc:"Time that output is kept after the agent was notified of the end of the command, like 168h."`
	PassEnv     []string `toml:"pass_env" doc:"Environment variables that commands get although they hold API keys of models."`
	Sandbox     string   `toml:"sandbox" doc:"Whether the kernel confines commands: auto as far as it can, require if commands are not to run where it cannot, off not at all; auto if empty." enum:"auto,require,off"`
	Writable    []string `toml:"writable" doc:"Files and directories, beside the working directory, that confined commands may change."`
	Network     string   `toml:"network" doc:"off gives confined commands a network of their own, in which there is nobody else; on if empty." enum:"on,off"`
}

// Instructions are files that are read into the system prompt.
type Instructions struct {
	Files    []string `toml:"files" doc:"Names of files to look for in the working directory and above it; [\"AGENTS.md\", \"CLAUDE.md\"] if empty, of which the first that a directory has is read."`
	MaxBytes int      `toml:"max_bytes" doc:"Maximum number of bytes read from all files together; 32768 if 0."`
}

// Store sets how the log is stored.
type Store struct {
	URL string `toml:"url" doc:"Location of the log: sqlite:PATH, where a relative path starts at the data folder; abide.db in the data folder if empty."`
	// KeyFile is not for one project to decide: see userOnly.
	KeyFile string   `toml:"key_file" doc:"File with the key that seals the secrets in the log; a relative path starts at the data folder; secrets.key in the data folder if empty."`
	Sync    string   `toml:"sync" doc:"full: acknowledged data survives a power failure. normal: it survives a crash of the program, but a power failure may lose the last moments." enum:"full,normal"`
	Rest    Duration `toml:"rest" doc:"Time that an idle session stays in memory, like 30s."`
}

// check returns the values that are invalid by themselves.
func (c *Config) check() []mistake {
	list := checkEnums(reflect.ValueOf(c).Elem(), nil)
	list = orZero(list, path{"model", "patience"}, c.Model.Patience)
	list = duration(list, path{"model", "silence"}, c.Model.Silence)
	list = notNegative(list, path{"worker", "max_tokens"}, c.Worker.MaxTokens)
	list = notNegative(list, path{"worker", "max_steps"}, c.Worker.MaxSteps)
	list = notNegative(list, path{"worker", "max_queue"}, c.Worker.MaxQueue)
	list = notNegative(list, path{"instructions", "max_bytes"}, c.Instructions.MaxBytes)
	list = c.Model.Endpoint().check(list, path{"model"})
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		list = c.Providers[name].check(list, path{"providers", name})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		list = append(list, c.Models[name].check(path{"models", name})...)
	}
	list = notNegative(list, path{"commands", "max_running"}, c.Commands.MaxRunning)
	list = notNegative(list, path{"commands", "max_memory"}, int(c.Commands.MaxMemory))
	list = notNegative(list, path{"commands", "output_bytes"}, int(c.Commands.OutputBytes))
	list = duration(list, path{"commands", "wait"}, c.Commands.Wait)
	list = duration(list, path{"commands", "time_limit"}, c.Commands.TimeLimit)
	list = duration(list, path{"commands", "keep"}, c.Commands.Keep)
	for i, name := range c.Commands.Writable {
		if strings.TrimSpace(name) == "" {
			list = append(list, wrong(path{"commands", "writable"}.item(i), "it is empty: write a path, or remove it"))
		}
	}
	list = duration(list, path{"workspace", "patience"}, c.Workspace.Patience)
	for _, name := range slices.Sorted(maps.Keys(c.Workspaces)) {
		list = append(list, c.Workspaces[name].check(name)...)
	}
	list = c.MCP.check(list)
	list = duration(list, path{"store", "rest"}, c.Store.Rest)
	list = keyFile(list, path{"store", "key_file"}, c.Store.KeyFile)
	list = age(list, path{"retention", "sessions"}, c.Retention.Sessions)
	list = duration(list, path{"compaction", "timeout"}, c.Compaction.Timeout)
	list = duration(list, path{"memory", "timeout"}, c.Memory.Timeout)
	list = orZero(list, path{"memory", "idle"}, c.Memory.Idle)
	list = given(list, path{"memory", "extract_threshold"}, c.Memory.ExtractThreshold)
	list = given(list, path{"memory", "recall_tokens"}, c.Memory.Recall)
	list = c.Budget.check(list)
	list = c.Notify.check(list)
	list = checkRules(list, path{"permissions", "allow"}, c.Permissions.Allow, approval.CheckAllow)
	list = checkRules(list, path{"permissions", "ask"}, c.Permissions.Ask, approval.Check)
	list = checkRules(list, path{"permissions", "deny"}, c.Permissions.Deny, approval.Check)
	list = checkTargets(list, path{"scope", "allow"}, c.Scope.Allow)
	return checkTargets(list, path{"scope", "deny"}, c.Scope.Deny)
}

func checkRules(list []mistake, at path, rules []string, check func(rule string, tools ...string) error) []mistake {
	for i, r := range rules {
		if err := check(r); err != nil {
			list = append(list, wrong(at.item(i), "%v", err))
		}
	}
	return list
}

func jsonObject(list []mistake, at path, text string) []mistake {
	var members map[string]json.RawMessage
	if text != "" && (json.Unmarshal([]byte(text), &members) != nil || members == nil) {
		list = append(list, wrong(at, "%q is not a JSON object", text))
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
	list = within(list, at.with("temperature"), l.Temperature, 2)
	return within(list, at.with("top_p"), l.TopP, 1)
}

// within accepts numbers from zero to a limit.
func within(list []mistake, key path, value *float64, most float64) []mistake {
	if value == nil || *value >= 0 && *value <= most {
		return list
	}
	return append(list, wrong(key, "%v is not a number from 0 to %v", *value, most))
}

// A Duration is a setting that is a length of time, like 30s or 5m; empty if it is not
// set.
type Duration string

// Value returns the length of time, which Load has checked; zero if it is not set.
func (d Duration) Value() time.Duration {
	v, _ := time.ParseDuration(string(d))
	return v
}

func duration(list []mistake, key path, value Duration) []mistake {
	if d, err := time.ParseDuration(string(value)); value == "" || err == nil && d > 0 {
		return list
	}
	return append(list, wrong(key, "%q is not a duration like 30s or 5m", value))
}

// orZero is like duration, and also accepts zero, which switches a feature off.
func orZero(list []mistake, key path, value Duration) []mistake {
	if d, err := time.ParseDuration(string(value)); err == nil && d == 0 {
		return list
	}
	return duration(list, key, value)
}

// keyFile refuses what was meant for a shell, and what cannot be a file.
func keyFile(list []mistake, key path, value string) []mistake {
	switch {
	case strings.HasPrefix(value, "~"):
		return append(list, wrong(key, "%q: ~ is not replaced by your home folder; write the whole path", value))
	case value != "" && (strings.TrimSpace(value) == "" || strings.HasSuffix(value, "/")):
		return append(list, wrong(key, "%q is not the name of a file", value))
	}
	return list
}

// given is like notNegative, for a value that may be missing.
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
	return append(list, wrong(key, "%d is negative; use 0 or more", value))
}

func checkTargets(list []mistake, at path, rules []Rule) []mistake {
	for i, r := range rules {
		if why := targetMistake(r.Target, at[len(at)-1]); why != "" {
			list = append(list, wrong(at.item(i).with("target"), "%s", why))
		}
	}
	return list
}

// targetMistake returns why the target of a rule in the list allow or deny is about nothing;
// empty if it is about a file or a directory.
func targetMistake(target, list string) string {
	switch {
	case target == "":
		return "it is empty; name a file or a directory"
	case strings.ContainsAny(target, "*?[{"):
		return fmt.Sprintf("%q is a pattern, and a target is one file or directory; for patterns write [permissions] %s = [%q]", target, list, "read("+target+")")
	case strings.HasPrefix(target, "$"), strings.HasPrefix(target, "~") && target != "~" && !strings.HasPrefix(target, "~/"):
		return fmt.Sprintf("%q: neither variables nor the names of users are replaced; write an absolute path, or ~/ for the home directory", target)
	}
	return ""
}

// checkAnchored refuses relative targets in a file that belongs to no project: they would be
// about files beside the configuration.
func (c *Config) checkAnchored() (list []mistake) {
	check := func(kind string, rules []Rule) {
		for i, r := range rules {
			if r.Target != "" && !filepath.IsAbs(r.Target) && !strings.HasPrefix(r.Target, "~") {
				list = append(list, wrong(path{"scope", kind}.item(i).with("target"), "%q is relative, and this file belongs to no project; write an absolute path, or ~/ for the home directory", r.Target))
			}
		}
	}
	check("allow", c.Scope.Allow)
	check("deny", c.Scope.Deny)
	return list
}
