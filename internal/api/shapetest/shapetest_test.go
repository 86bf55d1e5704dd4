package shapetest_test

import (
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/api/shapetest"
)

func TestWhatTypedClientsCannotReadIsFound(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"type":"input.accepted"}`: nil,
		`{"type":"abort","id":"1","timestamp":"now","parentId":null,"data":{"reason":"user_initiated"}}`: nil,
		`{"type":"abort","id":"1","timestamp":"now","data":{"reason":"bored"}}`: {
			"AbortEvent.data.reason: bored is not 'user_initiated", "AbortEvent.parentId is missing"},
		`{"type":"tool.execution_complete","id":"1","timestamp":"now","parentId":null,"data":{"toolCallId":"1","success":true,"result":{"content":"","contents":[{"type":"terminal"}]}}}`: {
			"ToolExecutionCompleteEvent.data.result.contents[0].text is missing"},
		`{`: {"unexpected end of JSON input"},
	} {
		if got := shapetest.Event([]byte(raw)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
	if got := shapetest.Result("session.metadata.recordContextChange", []byte(`null`)); len(got) != 1 {
		t.Errorf("a result that is no object: %q", got)
	}
}
