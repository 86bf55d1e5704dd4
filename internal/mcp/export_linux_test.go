package mcp

// What tests outside of the package use.
var (
	Await      = await
	HasTool    = hasTool
	TestServer = testServer
)
