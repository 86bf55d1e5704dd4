package archtest

// diagram is the picture in docs/ARCHITECTURE.md as data, from the bottom to
// the top: what each package may use of ours. Names are paths below internal/,
// or from the root of the repository for what is not internal.
var diagram = map[string][]string{
	// words
	"event": {},

	// record
	"eventlog": {"event"},
	"eventlog/sqlite":   {"event", "eventlog"},

	// parts
	"approval":        {"event", "approval/glob"},
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
	"transcript":      {"window/compact", "event", "model"},

	// context and memory
	"window":      {"model"},
	"window/render":     {"model", "window"},
	"model/answer":      {"model"},
	"window/compact":     {"model/answer", "window/render", "model", "window"},
	"memory":      {"model/answer", "event", "memory/page", "window/render", "model", "window"},
	"memory/page": {},
	"memory/book": {"memory/page"},
	"jobs":         {"event", "eventlog"},
	"tool/recall": {"approval", "event", "eventlog", "memory/book", "window/render", "tool", "tool/argument", "transcript"},
	"memory/worker":      {"event", "eventlog", "jobs", "memory", "memory/book", "memory/page", "window/render", "model", "session", "transcript", "turn"},

	// files
	"tool/files/text":       {},
	"approval/glob":       {},
	"tool/files/gitignore":  {"approval/glob"},
	"approval/scope":      {},
	"tool/files/walk":       {"tool/files/gitignore", "approval/scope"},
	"tool/files/search":     {"tool/files/text"},
	"tool/files": {"approval", "event", "approval/glob", "approval/scope", "tool/files/search", "tool/files/text", "tool", "tool/argument", "tool/files/walk"},

	// commands
	"process":          {"process/identity", "process/keeper", "process/outlog", "process/output", "process/record"},
	"process/outlog":   {"process/output"},
	"process/keeper":   {"process/identity", "process/output", "process/record", "process/sys"},
	"process/identity": {"process/sys"},
	"process/output":   {"process/record"},
	"process/record":   {},
	"process/sys":      {},

	// where files and commands are
	"workspace":             {"process"},
	"workspace/local":       {"process", "workspace"},
	"workspace/workspacepb": {},
	"workspace/bridge":      {"process", "workspace", "workspace/workspacepb"},
	"server/httpapi":            {"process", "workspace"},

	// the tools for commands
	"approval/shell":         {},
	"tool/argument": {"tool"},
	"tool/todo":     {"approval", "event", "tool", "tool/argument"},
	"tool/ask":      {"approval", "event", "tool", "tool/argument"},
	"tool/plan":     {"approval", "event", "tool", "tool/argument"},
	"tool/done":     {"approval", "event", "tool", "tool/argument"},
	"tool/agent":    {"approval", "event", "tool", "tool/argument"},
	"tool/skill":    {"approval", "event", "tool", "tool/argument"},
	"tool/builtin":  {"tool", "tool/agent", "tool/ask", "tool/done", "tool/plan", "tool/skill"},
	"tool/bash":     {"approval", "event", "process", "approval/shell", "tool", "tool/argument"},

	// engine
	"turn":    {"approval", "event", "model", "tool", "transcript", "window"},
	"session": {"approval", "window/compact", "event", "eventlog", "model", "tool", "transcript", "turn", "window"},

	// wire
	"jsonrpc": {},
	"api":     {"event"},
	"client":  {"api", "event", "jsonrpc"},

	// edges
	"server/rpc/rpc": {"api", "approval", "event", "eventlog", "project/instructions", "jsonrpc", "approval/places", "session", "project/skills", "tool", "transcript", "turn"},
	"approval/places": {"event"},
	"project/skills": {"event", "project/file"},
	"daemon/folder": {},
	"relay":  {"jsonrpc"},

	// all together
	"daemon": {
		"api", "event", "eventlog", "daemon/folder", "project/instructions", "memory", "memory/book", "memory/page", "model", "model/anthropic", "model/catalog", "model/offline", "model/openai", "model/remote", "model/responses", "model/scripted",
		"approval/places", "process", "server/httpapi", "relay", "approval/scope", "server/rpc/rpc", "session", "project/skills", "eventlog/sqlite", "tool", "tool/agent", "tool/bash", "tool/builtin", "tool/files", "tool/recall", "tool/todo", "turn", "memory/worker", "window", "workspace/local",
	},
	"cli": {
		"api", "approval", "client", "config", "daemon", "event", "eventlog", "daemon/folder", "project/instructions", "cli/man", "project/file",
		"model", "model/offline", "model/scripted", "process", "turn", "workspace/bridge", "workspace/local",
	},
	"cmd/abide": {"cli", "process/keeper"},

	// what users read
	"cli/man": {},

	// what users write down
	"config":       {"approval"},
	"project/instructions": {"event", "project/file"},
	"project/file":  {},

	// the test of the promise, and that of folders of earlier versions
	"killtest":    {},
	"upgradetest": {},

	// the shapes that typed clients read, for tests
	"api/shapetest": {},

	// measurements
	"bench/compare": {},
	"bench/floor":   {},
	"bench/instant": {},
	"bench": {
		"api", "approval", "bench/compare", "bench/floor", "bench/instant", "event", "eventlog", "jsonrpc", "memory", "memory/book", "model", "model/anthropic", "model/openai", "model/remote", "model/responses",
		"process", "process/keeper", "approval/scope", "session", "eventlog/sqlite", "tool", "tool/bash", "tool/files", "memory/worker", "window", "workspace/local",
	},
}
