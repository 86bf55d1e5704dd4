package turn_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// busyLog is a log after which every part of the state holds something.
func busyLog() []event.Payload {
	clears := []event.Type{event.SessionIdle, event.SessionForked, event.HistoryHidden, event.Abort}
	log := slices.DeleteFunc(samples(), func(p event.Payload) bool { return slices.Contains(clears, p.Type()) })
	return append(append([]event.Payload{start, rewound}, log...), accepted, message, asked, calls, intended("c1"), hooks(event.HookPreToolUse, "c1"))
}

// TestEveryPartHasARow: whoever adds a part to the state has to say what the moments
// of a session's life do to it.
func TestEveryPartHasARow(t *testing.T) {
	rows := turn.Rows()
	for _, part := range reflect.VisibleFields(reflect.TypeFor[turn.State]()) {
		if len(part.Index) == 1 && !slices.Contains(rows, part.Name) {
			t.Errorf("part %s of State has no row in the table of lifecycle.go", part.Name)
		}
	}
	for i, name := range rows {
		if _, ok := reflect.TypeFor[turn.State]().FieldByName(name); !ok || slices.Index(rows, name) != i {
			t.Errorf("row %d of the table of lifecycle.go is for %s, which is no part of State or has another row", i, name)
		}
		for m, moment := range turn.Moments {
			if !newWriter(t).add(busyLog()...).state.Change(i, m, event.Event{}) {
				t.Errorf("the table of lifecycle.go does not say what %q does to %s: use keeps if it does nothing", moment.Name, name)
			}
		}
	}
}

// TestAMomentChangesEachPartInItsOwnRow: a cell of the table assigns nothing but the
// part of its row.
func TestAMomentChangesEachPartInItsOwnRow(t *testing.T) {
	w := newWriter(t).add(busyLog()...)
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	sameEvent := cmp.Comparer(func(a, b event.Event) bool { return a.Seq == b.Seq })
	for i, part := range turn.Rows() {
		for m, moment := range turn.Moments {
			changed := turn.New("s")
			for _, e := range w.events {
				if err := changed.Fold(e); err != nil {
					t.Fatal(err)
				}
			}
			changed.Change(i, m, event.Event{Seq: 5000})
			others := cmp.FilterPath(func(p cmp.Path) bool {
				f, ok := p.Last().(cmp.StructField)
				return ok && len(p) == 3 && (f.Name() == part || f.Name() == "History")
			}, cmp.Ignore())
			if diff := cmp.Diff(w.state, changed, all, sameEvent, others); diff != "" {
				t.Errorf("in the row of %s, %q changes another part:\n%s", part, moment.Name, diff)
			}
		}
	}
}
