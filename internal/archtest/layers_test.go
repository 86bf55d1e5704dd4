package archtest

// layers is the picture in docs/ARCHITECTURE.md as data, from the bottom to the
// top. A name stands for a package below internal/ and for all packages below
// it, unless these are named themselves.
//
// A package imports only from layers below its own, and from its own noun: what
// begins with the same folder belongs together.
var layers = []layer{
	{name: "words, and the auditor that shares not even these", packages: []string{"event", "audit"}},
	{name: "ports and leaves", packages: []string{"eventlog", "model", "approval", "process", "jsonrpc"}},
	{name: "parts", packages: []string{"tool", "window", "workspace", "project", "jobs", "api", "config"}},
	{name: "views", packages: []string{"transcript", "memory", "client"}},
	{name: "decision", packages: []string{"turn"}},
	{name: "engine", packages: []string{"session"}},
	{name: "doors", packages: []string{"server", "relay"}},
	{name: "implementations", implements: true, packages: []string{
		"eventlog/sqlite",
		"model/anthropic", "model/offline", "model/openai", "model/responses", "model/scripted",
		"tool/agent", "tool/ask", "tool/bash", "tool/builtin", "tool/done", "tool/files", "tool/guard", "tool/plan", "tool/recall", "tool/skill", "tool/todo",
		"workspace/bridge", "workspace/local",
		"memory/worker",
	}},
	{name: "all together", packages: []string{"daemon"}},
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
var testsOnly = []string{"archtest", "killtest", "upgradetest"}
