package archtest

// diagram is the picture in docs/ARCHITECTURE.md as data, from the bottom to
// the top: what each package may use of ours. Names are paths below internal/,
// or from the root of the repository for what is not internal.
var diagram = map[string][]string{
	// words
	"event": {},

	// record
	"eventlog": {"event"},
	"sqlite":   {"event", "eventlog"},

	// parts
	"approval":        {"event"},
	"model":           {},
	"model/local":     {"model"},
	"model/offline":   {"model", "model/local"},
	"model/openai":    {"model", "model/plainjson", "model/remote"},
	"model/anthropic": {"model", "model/catalog", "model/plainjson", "model/remote"},
	"model/responses": {"model", "model/catalog", "model/plainjson", "model/remote"},
	"model/remote":    {"model", "model/plainjson"},
	"model/plainjson": {},
	"model/catalog":   {"model"},
	"model/scripted":  {"model", "model/local"},
	"tool":            {"approval", "event"},
	"transcript":      {"event", "model"},

	// files
	"text":       {},
	"glob":       {},
	"gitignore":  {"glob"},
	"scope":      {},
	"walk":       {"gitignore", "scope"},
	"search":     {"text"},
	"tool/files": {"approval", "event", "glob", "scope", "search", "text", "tool", "walk"},

	// engine
	"turn":    {"approval", "event", "model", "tool", "transcript"},
	"session": {"approval", "event", "eventlog", "model", "tool", "transcript", "turn"},

	// wire
	"jsonrpc": {},
	"api":     {"event"},
	"client":  {"api", "event", "jsonrpc"},

	// edges
	"server": {"api", "event", "eventlog", "jsonrpc", "session", "turn"},
	"folder": {},
	"relay":  {"jsonrpc"},

	// all together
	"daemon": {
		"api", "event", "eventlog", "folder", "instructions", "model", "model/anthropic", "model/offline", "model/openai", "model/remote", "model/responses", "model/scripted",
		"relay", "server", "session", "sqlite", "turn",
	},
	"cli": {
		"api", "approval", "client", "config", "daemon", "event", "eventlog", "folder", "instructions",
		"model", "model/offline", "model/scripted", "sqlite", "turn",
	},
	"cmd/abide": {"cli"},

	// what users write down
	"config":       {},
	"instructions": {"event"},

	// the test of the promise
	"killtest": {},

	// measurements
	"bench/compare": {},
	"bench/floor":   {},
	"bench/instant": {},
	"bench":         {"api", "jsonrpc", "bench/compare", "bench/floor", "bench/instant", "event", "model", "model/openai", "session", "sqlite"},
}
