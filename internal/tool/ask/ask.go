// Package ask has the tool ask_user, with which a model asks a person. A call is an open
// question, and the answer is its result.
package ask

import (
	"context"
	"encoding/json"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

var spec = tool.Spec{
	Name:        tool.AskUser,
	Description: "Ask the user a question and wait for the answer. Use it when you cannot go on without a decision or a fact that only the user has. Do not use it for what files, commands or memory can tell you, or to have work praised.\n\nExample: {\"question\": \"Which database is the migration for?\", \"choices\": [\"staging\", \"production\"]}",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"question":{"type":"string","description":"The question, complete in itself."},` +
		`"choices":{"type":"array","items":{"type":"string"},"description":"Answers to choose from, if there are some."}},` +
		`"required":["question"]}`),
	Replay: tool.Pure, Instant: true,
}

// New returns the tool.
func New() tool.Tool { return askTool{} }

type askTool struct{}

func (askTool) Spec() tool.Spec { return spec }

// Offer offers the tool if a client has declared that it can ask a person.
func (askTool) Offer(s tool.State) (tool.Spec, bool) {
	session, ok := s.(interface {
		Can() event.ClientDeclaredData
	})
	return spec, ok && session.Can().UserInput
}

func (askTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run opens the question.
func (askTool) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	a := argument.Read(call.Arguments)
	question := a.Filled("question")
	choices := a.Texts("choices")
	if result, refused := a.Refused(); refused {
		return result, nil
	}
	return tool.Result{Open: true, Record: []event.Payload{event.UserInputAskedData{
		RequestID: event.NewID(), Question: question, Choices: choices,
		AllowFreeform: true, ToolCallID: call.ID,
	}}}, nil
}
