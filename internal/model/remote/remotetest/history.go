package remotetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// History is a conversation of so many plain turns, about 450 bytes each.
func History(turns int) *model.Request {
	req := &model.Request{
		Model:  "m",
		System: strings.Repeat("You are an agent. ", 200),
		Tools:  &model.Tools{List: []model.Tool{{Name: "bash", Description: "runs a command", Parameters: json.RawMessage(`{"type":"object"}`)}}},
	}
	for i := range turns {
		req.Messages = append(req.Messages,
			&model.Message{Role: model.User, Text: fmt.Sprintf("%d. ", i) + strings.Repeat("a question; ", 16)},
			&model.Message{Role: model.Assistant, Text: fmt.Sprintf("%d. ", i) + strings.Repeat("an answer; ", 18)})
	}
	req.Messages = append(req.Messages, &model.Message{Role: model.User, Text: "and now?"})
	return req
}
