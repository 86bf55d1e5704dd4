package rest

import (
	"testing"

	"github.com/abide-run/abide/internal/event"
)

func TestWhatNoSessionCanHaveIsRefused(t *testing.T) {
	for _, in := range []Create{{Folder: "relative"}, {Folder: "./x"}, {Folder: "~/x"}, {MaxSteps: -1}} {
		if _, err := in.check(); err == nil {
			t.Errorf("%+v is accepted", in)
		}
	}
	for _, in := range []Create{{}, {Folder: "/x", MaxSteps: 1}} {
		if _, err := in.check(); err != nil {
			t.Errorf("%+v: %v", in, err)
		}
	}
	var s Server
	for _, id := range []string{"a\u202eb", "a\u200bb", "a\x1b[0m", "a\nb", "\u2028", "a\xffb", "../x", "a,b", "a@1"} {
		if _, err := s.newID(t.Context(), event.SessionID(id), "", ""); err == nil {
			t.Errorf("the id %q is accepted", id)
		}
	}
	for _, id := range []string{"a b", "שלום", "日本", "a.b-c_d"} {
		if got, err := s.newID(t.Context(), event.SessionID(id), "", ""); err != nil || string(got) != id {
			t.Errorf("the id %q: %q, %v", id, got, err)
		}
	}
}
