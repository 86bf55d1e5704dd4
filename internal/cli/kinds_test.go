package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// eventOf is an event of a kind with a body that says nothing.
func eventOf(t *testing.T, kind event.Type) event.Event {
	t.Helper()
	e, err := event.Parse(1, fmt.Appendf(nil, `{"type":%q,"id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{}}`, kind))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEveryShownKindIsRenderedOrSilent: whoever adds a kind that clients are shown
// decides whether people see it.
func TestEveryShownKindIsRenderedOrSilent(t *testing.T) {
	for _, k := range event.Kinds() {
		_, asks, _ := questionOf(eventOf(t, k.Type))
		rendered := asks || eventDescribers[k.Type] != nil || progressEvents[k.Type] != nil || streamedEvents[k.Type] != nil
		named := slices.Contains(notShown, k.Type)
		switch {
		case rendered && named:
			t.Errorf("%s is rendered, and named as silent", k.Type)
		case k.Hidden && named:
			t.Errorf("%s is hidden from clients, and need not be named as silent", k.Type)
		case !k.Hidden && !rendered && !named:
			t.Errorf("%s is shown to clients: add a teller for it, or name it among the silent kinds", k.Type)
		}
	}
	for _, kind := range notShown {
		if _, known := kind.Kind(); !known {
			t.Errorf("%s is named as silent, but is no kind", kind)
		}
	}
}

// TestRenderingAnEmptyBody: no view stumbles over a body without the fields that it
// expects.
func TestRenderingAnEmptyBody(t *testing.T) {
	var out, errors bytes.Buffer
	v := &textView{out: &printer{w: &out}, progress: &progress{err: &printer{w: &errors}, names: map[string]string{}}, live: true}
	for _, k := range event.Kinds() {
		e := eventOf(t, k.Type)
		describeEvent(e)
		v.event(e)
		if err := new(outcome).apply(e); err != nil {
			t.Errorf("%s: %v", k.Type, err)
		}
	}
}

// TestAKindOfANewerVersionIsShownByItsName: an event that this version does not know
// is part of the story, and is not taken for damage.
func TestAKindOfANewerVersionIsShownByItsName(t *testing.T) {
	e := eventOf(t, "future.thing")
	s := &sessionText{events: []event.Event{e}}
	for _, all := range []bool{false, true} {
		var out bytes.Buffer
		if err := s.write(&out, painter{}, all); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "unknown") || !strings.Contains(out.String(), "future.thing") {
			t.Errorf("with all = %v the story is %q", all, out.String())
		}
	}
	if err := new(outcome).apply(e); err != nil {
		t.Error(err)
	}
}
