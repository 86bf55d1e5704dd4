package turn_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
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

// TestMain runs no test if a cell of the table of lifecycle.go is missing: every fold would
// only say that a nil function was called.
func TestMain(m *testing.M) {
	for i, part := range turn.Rows() {
		for moment, about := range turn.Moments {
			if !turn.HasChange(i, moment) {
				fmt.Fprintf(os.Stderr, "the table of internal/turn/lifecycle.go does not say what %q does to %s: use keeps if it does nothing\n", about.Name, part)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
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
	}
}

// These options compare whole states, and events by their positions.
var (
	everyField = cmp.Exporter(func(reflect.Type) bool { return true })
	sameEvent  = cmp.Comparer(func(a, b event.Event) bool { return a.Seq == b.Seq })
)

// TestAMomentChangesEachPartInItsOwnRow: a cell of the table assigns nothing but the
// part of its row.
func TestAMomentChangesEachPartInItsOwnRow(t *testing.T) {
	w := newWriter(t).add(busyLog()...)
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
			if diff := cmp.Diff(w.state, changed, everyField, sameEvent, others); diff != "" {
				t.Errorf("in the row of %s, %q changes another part:\n%s", part, moment.Name, diff)
			}
		}
	}
}

// fullLogs are logs after which more fields hold something: during a turn, and after it.
func fullLogs() [][]event.Payload {
	during := append(busyLog(),
		event.MemoryExtractedData{From: 21, To: 30, Hash: "g", Quarantined: true, Found: 1},
		event.SessionModelChangeData{NewModel: "m3", PreviousModel: "m2"},
		event.CompactionStartData{Point: event.PointBetween}, event.CompactionCompleteData{Outcome: event.OutcomeFailed, Must: true, Error: "full", PreTokens: 9},
		event.CompactionStartData{Point: event.PointBetween},
		event.ElicitationAskedData{RequestID: "b2", Budget: &event.BudgetReached{}}, event.ElicitationDoneData{RequestID: "b2", Action: turn.Dismiss},
		event.InputAcceptedData{InputID: "i9"}, event.CommandDoneData{RequestID: "x9", Stop: true}, event.SessionSuspendedData{Suspended: true})
	return [][]event.Payload{during, append(slices.Clone(during), event.TurnEndedData{})}
}

// TestWhatTheMomentsChange: these are the fields that each moment changes. A cell of the
// table that is forgotten, or one that forgets a field, is missing here.
func TestWhatTheMomentsChange(t *testing.T) {
	want := strings.Fields(`
		aborted:Budget.Refused aborted:Hooks.Open aborted:Life.Aborted aborted:Life.Suspended aborted:Queue.Halted aborted:Queue.Inputs
		forked:Budget.Refused forked:Budget.day forked:Budget.raised forked:Budget.unpriced
		forked:Context.Broken forked:Context.Handoffs forked:Exchanges.Open forked:Exchanges.done forked:Exchanges.redelivered forked:Hooks.Open
		forked:Life.Idle forked:Life.Last forked:Life.Suspended forked:Memory.Aside forked:Memory.Waiting
		forked:Queue.Halted forked:Queue.Inputs forked:Queue.Paused forked:Rewind.Restore
		forked:Tasks.Open forked:Tasks.Reports forked:Turn
		hidden:Context.Compaction hidden:Context.Measured hidden:Hooks.Open
		hidden:Life.Idle hidden:Life.Last hidden:Life.Suspended hidden:Memory.Hidden
		hidden:Rewind.Hidden hidden:Rewind.Restore hidden:Skills.told hidden:Skills.waiting hidden:Turn
		hidden:todos.at hidden:todos.changes hidden:todos.list
		idle:About.Totals idle:Budget.Refused idle:Context.Compactions idle:Context.Full idle:Context.Gate idle:Context.Switched
		idle:Hooks.Open idle:Life.Idle idle:Life.Last idle:Life.Suspended idle:Queue.Halted idle:Queue.Inputs idle:Turn
		opened:About.Totals opened:Budget.Refused opened:Context.Compactions opened:Context.Full opened:Hooks.Open opened:Life.Last
		opened:Turn opened:Turn.Calls opened:Turn.Finish opened:Turn.Hooks opened:Turn.InteractionID opened:Turn.Output opened:Turn.Phase opened:Turn.Prompt opened:Turn.Stop
		over:Hooks.Open over:Life.Last over:Turn`)
	var got []string
	for _, log := range fullLogs() {
		w := newWriter(t).add(log...)
		for i := range turn.Rows() {
			for m, moment := range turn.Moments {
				for _, field := range changedFields(w, i, m) {
					got = append(got, moment.Name+":"+field)
				}
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("the moments change other fields (-want +got): if it is meant, add it to want in lifecycle_test.go, or remove it there; otherwise correct the cell in lifecycle.go\n%s", diff)
	}
}

// changedFields returns the fields of parts that a cell of the table changes after a log.
func changedFields(w *writer, row, m int) []string {
	changed := newWriter(w.t)
	for _, e := range w.events {
		if err := changed.state.Fold(e); err != nil {
			w.t.Fatal(err)
		}
	}
	changed.state.Change(row, m, event.Event{Seq: 5000})
	var found fieldReporter
	cmp.Equal(w.state, changed.state, everyField, sameEvent, cmp.Reporter(&found))
	return found.fields
}

// A fieldReporter collects which fields of parts differ.
type fieldReporter struct {
	path   cmp.Path
	fields []string
}

func (r *fieldReporter) PushStep(s cmp.PathStep) { r.path = append(r.path, s) }
func (r *fieldReporter) PopStep()                { r.path = r.path[:len(r.path)-1] }

func (r *fieldReporter) Report(result cmp.Result) {
	if result.Equal() {
		return
	}
	var names []string
	for _, s := range r.path {
		if f, ok := s.(cmp.StructField); ok && len(names) < 2 {
			names = append(names, f.Name())
		}
	}
	r.fields = append(r.fields, strings.Join(names, "."))
}
