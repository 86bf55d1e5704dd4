package rest

import (
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// An event that happens while a page is made is in it, or in the next one.
func TestAPageLeavesNoEventOut(t *testing.T) {
	f := newFollower()
	p := Page{Next: 4}
	p.collect(func() event.Seq {
		f.Event("s", event.Event{Seq: 5, Bytes: []byte("{}")})
		return 5
	}, f, 10)
	if len(p.Events) != 1 || p.Next != 5 {
		t.Errorf("the page is %+v, want event 5", p)
	}
	p = Page{Next: 5}
	p.collect(func() event.Seq { return 7 }, f, 10)
	if len(p.Events) != 0 || p.Next != 7 {
		t.Errorf("the page is %+v, want to go on after the hidden events", p)
	}
}
