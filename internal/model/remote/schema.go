package remote

import (
	"encoding/json"
	"slices"

	"github.com/abide-run/abide/internal/model"
)

// AnswerName returns the name of the form of the answer. No tool of the request has it.
func (q *Query) AnswerName() string {
	name := q.Schema.Name
	if name == "" {
		name = "answer"
	}
	name = FitName(name)
	for q.Tools != nil && slices.ContainsFunc(q.Tools.List, func(t model.Tool) bool { return FitName(t.Name) == name }) {
		name = FitName(name + "_form")
	}
	return name
}

// AnswerTool returns the tool whose parameters are the answer, for a provider or a model
// that cannot be held to a schema. The decoder turns its call into the text of the reply.
func (q *Query) AnswerTool() model.Tool {
	q.answerTool = q.AnswerName()
	return model.Tool{
		Name:        q.answerTool,
		Description: "Gives the answer to the user. Call it once, alone, when the work is done: its parameters are the whole answer, and no other text is shown.",
		Parameters:  q.Schema.JSON,
	}
}

// HasTools reports whether the model can call tools.
func (q *Query) HasTools() bool { return q.Tools != nil && len(q.Tools.List) > 0 }

// checkSchema returns an error if the form of the answer is not the schema of an object,
// which every provider would refuse with words of its own.
func checkSchema(s *model.Schema) error {
	if s == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(s.JSON, &object); err != nil || string(object["type"]) != `"object"` {
		return &model.Error{Kind: model.KindRequest, Message: `the schema of the answer is not a JSON schema of an object; correct it, so that it has "type": "object"`}
	}
	return nil
}
