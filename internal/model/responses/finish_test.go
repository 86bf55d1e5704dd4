package responses_test

import (
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/responses"
)

// The words of a refusal are its reason, once, however they arrive.
func TestARefusalSaysWhy(t *testing.T) {
	const whole = `{"id":"r","status":"completed","output":[{"type":"message","id":"m","content":[{"type":"refusal","refusal":"not this"}]}]}`
	const end = `data: {"type":"response.completed","response":` + whole + "}\n\n"
	const delta = `data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}` + "\n\n" +
		`data: {"type":"response.refusal.delta","output_index":0,"delta":"not "}` + "\n\n" +
		`data: {"type":"response.refusal.delta","output_index":0,"delta":"this"}` + "\n\n"
	for name, test := range map[string]struct{ kind, body string }{
		"whole":     {"application/json", whole},
		"in pieces": {"text/event-stream", delta + end},
		"at last":   {"text/event-stream", end},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := subject.Client(t, nil, remotetest.Always(remotetest.Raw(test.kind, test.body)), responses.Config{})
			r, err := c.Ask(t.Context(), remotetest.Hello, nil)
			if err != nil || r.Finish != model.FinishRefusal || r.Text != "not this" || r.Declined != "not this" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
