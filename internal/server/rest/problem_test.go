package rest

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// The engine's errors have the status of what went wrong.
func TestAFaultOfTheEngineHasItsStatus(t *testing.T) {
	const prefix = "Request session.rewind failed with message: "
	for _, test := range []struct {
		data   string
		status int
		code   string
	}{
		{`{"kind":"` + api.FaultNotFound + `"}`, 404, "not_found"},
		{`{"kind":"` + api.FaultDamaged + `"}`, 409, "damaged"},
		{`{"kind":"` + api.FaultUnavailable + `"}`, 503, "unavailable"},
		{`{"kind":"` + api.FaultFull + `"}`, 429, "full"},
		{`{"kind":"` + api.FaultInternal + `"}`, 500, "internal"},
		{`{"kind":"of a later version"}`, 409, "refused"},
		{``, 409, "refused"},
	} {
		fault := jsonrpc.Errorf(jsonrpc.CodeInternal, prefix+"the reason")
		if test.data != "" {
			fault.Data = json.RawMessage(test.data)
		}
		w := httptest.NewRecorder()
		Refuse(w, fault)
		var got Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != test.status || got.Code != test.code || got.Detail != "the reason" {
			t.Errorf("%s: %d %s (%v), want %d %s", test.data, w.Code, w.Body, err, test.status, test.code)
		}
	}
}
