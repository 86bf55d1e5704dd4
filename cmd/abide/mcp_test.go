//lint:file-ignore SA1019 The server of the stories asks the model, as servers of today do.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveMCP is an MCP server for stories. It greets before it serves, as many do.
func serveMCP() {
	if len(os.Args) > 1 && os.Args[1] == "broken" {
		fmt.Fprintln(os.Stderr, "cannot find the database")
		os.Exit(3)
	}
	fmt.Println("Welcome!")
	s := sdk.NewServer(&sdk.Implementation{Name: "story", Version: "1"}, nil)
	type variable struct {
		Name string `json:"name"`
	}
	say := func(text string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "get_env", Description: "Says a variable."}, func(_ context.Context, _ *sdk.CallToolRequest, in variable) (*sdk.CallToolResult, any, error) {
		return say(os.Getenv(in.Name)), nil, nil
	})
	s.AddResource(&sdk.Resource{Name: "note", URI: "story://note"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "story://note", Text: "buy milk"}, {URI: "story://note", Text: "and bread"}}}, nil
	})
	s.AddResource(&sdk.Resource{Name: "mixed", URI: "story://mixed"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "story://mixed", Text: "text"}, {URI: "story://mixed", Blob: []byte{0, 1, 2}}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "reflect", Description: "Asks the model.", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if answer, ok := r.Params.InputResponses["m"].(*sdk.CreateMessageWithToolsResult); ok {
			return say("the model says " + answer.Content[0].(*sdk.TextContent).Text), nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"m": &sdk.CreateMessageParams{
			MaxTokens: 50, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "Reply with exactly: REFLECTED"}}},
		}}}, nil
	})
	calls := 0
	sdk.AddTool(s, &sdk.Tool{Name: "count", Description: "Counts its calls."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		calls++
		return say(strconv.Itoa(calls)), nil, nil
	})
	s.AddPrompt(&sdk.Prompt{
		Name: "review", Description: "Reviews a file \x1b[2J\u202e",
		Arguments: []*sdk.PromptArgument{{Name: "file", Required: true}, {Name: "how"}},
	}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		text := "Review " + r.Params.Arguments["file"] + " (" + r.Params.Arguments["how"] + ") \x1b]0;title\a"
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
