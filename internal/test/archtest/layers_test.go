package archtest

// layers is the picture in docs/ARCHITECTURE.md as data, from the bottom to the
// top. A name stands for a package below internal/ and for all packages below
// it, unless these are named themselves. A name that ends in /* stands for every
// package of that folder that has no name of its own here, so that a new tool, wire or
// store is in its layer by where it lies.
//
// A package imports only from layers below its own, and from its own noun: what
// begins with the same folder belongs together.
var layers = []layer{
	{name: "documents, and what adds to the library of the language", packages: []string{"attach", "docs", "durable", "lazyregexp", "schema", "seal", "spelling"}},
	{name: "words, and the auditor that shares not even these", packages: []string{"event", "audit"}},
	{name: "ports and leaves", packages: []string{
		"eventlog", "eventlog/group", "eventlog/record", "approval", "process", "jsonrpc",
		"model", "model/answer", "model/catalog", "model/local", "model/plainjson", "model/profile", "model/provider", "model/remote",
	}},
	{name: "workspaces", packages: []string{"workspace"}},
	{name: "MCP servers", packages: []string{"mcp"}},
	{name: "parts", packages: []string{"tool", "tool/argument", "window", "project", "jobs", "api", "config"}},
	{name: "views", packages: []string{"transcript", "memory", "client"}},
	{name: "decision", packages: []string{"turn"}},
	{name: "engine", packages: []string{"session"}},
	{name: "doors", packages: []string{"server", "relay"}},
	{name: "implementations", implements: true, packages: []string{
		"eventlog/*", "model/*", "tool/*", "workspace/bridge", "workspace/local", "memory/worker",
	}},
	{name: "all together", packages: []string{"daemon"}},
	{name: "a person's terminal", packages: []string{"tui"}},
	{name: "a person's side", packages: []string{"cli"}},
	{name: "programs", packages: []string{"cmd/abide", "bench"}},
}

// A layer is what may be built on the same things.
type layer struct {
	name     string
	packages []string
	// implements means that its packages implement ports: only the layers above
	// and their own noun import them.
	implements bool
}

// testsOnly are packages that hold nothing but tests.
var testsOnly = []string{"test"}

// A suite is the test of a port, which every implementation of the port runs.
type suite struct {
	packages string // the implementations, as in layers
	imports  string // only those that import this package; all if empty
	calls    string // function that their tests have to call
}

// suites are the suites of the ports.
var suites = []suite{
	{packages: "eventlog/*", calls: "eventlogtest.Run"},
	{packages: "eventlog/*", calls: "eventlogtest.RunSealed"},
	{packages: "model/*", imports: "model/remote", calls: "remotetest.Run"},
	{packages: "model/*", imports: "model/remote", calls: "remotetest.RunStories"},
}

// lists are the tables that implementations of a port have to be in.
var lists = map[string]string{
	"eventlog/*": "add a line to internal/daemon/stores.go",
	"model/*":    "add a line to internal/daemon/wires.go",
	"tool/*":     "add a line to internal/tool/builtin/builtin.go or to internal/daemon/tools.go",
}
