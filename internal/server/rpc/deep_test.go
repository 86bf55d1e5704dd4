package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// Every method refuses what could not be stored, before it does anything.
func TestNoMethodTakesWhatIsNestedTooDeeply(t *testing.T) {
	params := `{"sessionId":"s","deep":` + strings.Repeat("[", event.MaxDepth) + strings.Repeat("]", event.MaxDepth) + `}`
	c := &conn{server: &Server{opts: Options{Memory: struct{ Memory }{}}}}
	for name, m := range methods {
		if _, none := truths[name]; none {
			continue
		}
		_, err := m(c, context.Background(), &jsonrpc.Request{Method: name, Params: json.RawMessage(params)})
		var bad errBadParams
		if !errors.As(err, &bad) || err.Error() != "deep: it is nested deeper than 500 levels" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
