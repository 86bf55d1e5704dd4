package killtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// expected is what a run should come to.
type expected struct {
	answers []string
	history []string // the history of the last request; not checked if nil
}

func (o outcome) expected() expected { return expected{o.answers(), o.history} }

// judgeRun reports every promise that a run broke, and every difference from what it
// should come to.
func judgeRun(t *testing.T, w *modelSource, got outcome, want expected) {
	t.Helper()
	for _, broken := range got.check() {
		t.Error(broken)
	}
	for _, fault := range w.faults() {
		t.Errorf("the provider was sent what it refuses: %s", fault)
	}
	same := func(got, want string) bool { return got == want }
	if unsure := got.unsure(); len(unsure) > 0 {
		if slices.ContainsFunc(unsure, func(name string) bool { return name != "once" }) {
			t.Errorf("the outcome of %v is told to be unknown; only that of once-only calls may be", unsure)
		}
		same = saysUnsure
	}
	if answers := got.answers(); !slices.EqualFunc(answers, want.answers, same) {
		t.Errorf("the answers are %q, want %q", answers, want.answers)
	}
	if told := w.history(); want.history != nil && !slices.EqualFunc(told, want.history, same) {
		t.Errorf("the provider was told %q, want %q", told, want.history)
	}
	if t.Failed() {
		t.Log(got.describeLog())
	}
}

// describeLog returns a short line for each event of the log, to debug a failure.
func (o outcome) describeLog() string {
	var b strings.Builder
	for _, e := range o.log {
		data, _ := e.Data() // an invalid event has no data
		fmt.Fprintf(&b, "\n%d %s %.160s", e.Seq, e.Type, data)
	}
	return b.String()
}

// playWithoutKill plays a scenario without a kill.
func playWithoutKill(t *testing.T, s scenario, source string) outcome {
	t.Helper()
	w := modelSources[source](t, s)
	r := newRun(t, s.conversation(w))
	r.instructions.Checked = true
	out := r.play()
	out.history = w.history()
	judgeRun(t, w, out, out.expected())
	if unsure := out.unsure(); len(unsure) > 0 {
		t.Errorf("nobody was killed, and yet the outcome of %v is told to be unknown", unsure)
	}
	if answers := out.answers(); len(answers) != 1 || answers[0] == "" {
		t.Errorf("the answers are %q, want one", answers)
	}
	return out
}

// playWithKills plays a scenario with kills.
func playWithKills(t *testing.T, s scenario, source string, calm outcome, stops ...stop) {
	t.Parallel()
	w := modelSources[source](t, s)
	judgeRun(t, w, newRun(t, s.conversation(w)).play(stops...), calm.expected())
}

// forEachSource calls f for every scenario with every model that fits and is wanted.
// calm is the outcome without a kill.
func forEachSource(t *testing.T, wanted func(s scenario, source string) bool, f func(t *testing.T, s scenario, source string, calm outcome)) {
	for _, s := range scenarios {
		for source := range modelSources {
			if s.fits(source) && wanted(s, source) {
				t.Run(s.name+"/"+source, func(t *testing.T) {
					t.Parallel()
					f(t, s, source, playWithoutKill(t, s, source))
				})
			}
		}
	}
}

// stops returns the points at which a victim is killed: all points of each write if
// thorough is true, and otherwise one point of each write.
func stops(writes []report, thorough bool, shift int) (all []stop) {
	points := []point{before, committed, after}
	for _, w := range writes {
		for i, p := range points {
			if thorough || i == (w.Write+shift)%len(points) {
				all = append(all, stop{w.Write, p})
			}
		}
	}
	return all
}

// The engine is the same with all models, so where calls are not made in parallel,
// each wire tests a third of the points.
func TestKilledAtAnyWriteNothingIsLostOrRepeated(t *testing.T) {
	shifts := map[string]int{"chat": 0, "anthropic": 1, "responses": 2}
	wanted := func(s scenario, source string) bool { return s.name == "tools" || source != "offline" }
	forEachSource(t, wanted, func(t *testing.T, s scenario, source string, calm outcome) {
		thorough := s.name == "tools" || source == "scripted"
		for _, at := range stops(calm.writes, thorough, shifts[source]) {
			t.Run(at.String(), func(t *testing.T) {
				t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
				playWithKills(t, s, source, calm, at)
			})
		}
	})
}

// The parent kills the victim some time after the event. This test is about the
// moments between two writes, while the model answers or fails.
func TestKilledAtAnyEventNothingIsLostOrRepeated(t *testing.T) {
	long := func(s scenario, source string) bool {
		return s.name == "text" && source != "offline" && source != "chat" || s.name == "retry" && (source == "scripted" || source == "chat")
	}
	forEachSource(t, long, func(t *testing.T, s scenario, source string, calm outcome) {
		for i, e := range calm.recorder.shown[0] {
			t.Run(strconv.Itoa(i+1), func(t *testing.T) {
				t.Logf("the event is %s", e.Type)
				playWithKills(t, s, source, calm, stop{i + 1, seen})
			})
		}
	})
}

// The second victim is killed at every write of its recovery and of the rest of the
// turn.
func TestKilledAgainDuringRecoveryNothingIsLostOrRepeated(t *testing.T) {
	hard := func(s scenario, source string) bool { return s.name == "tools" && source == "scripted" }
	forEachSource(t, hard, func(t *testing.T, s scenario, source string, calm outcome) {
		begun := 1 + slices.IndexFunc(calm.writes, func(r report) bool { return slices.Contains(r.Events, event.ToolBegun) })
		for _, first := range []stop{{begun, committed}, {begun + 1, before}, {begun + 2, committed}} {
			w := modelSources[source](t, s)
			recovered := newRun(t, s.conversation(w)).play(first)
			judgeRun(t, w, recovered, calm.expected())
			for _, second := range recovered.writes {
				for _, p := range []point{before, committed, after} {
					t.Run(fmt.Sprintf("%s/%s/%d", first, p, second.Write), func(t *testing.T) {
						t.Logf("the write stores %v", second.Events)
						playWithKills(t, s, source, calm, first, stop{second.Write, p})
					})
				}
			}
		}
	})
}

// No client has to come back for that.
func TestUnfinishedTurnsGoOnByThemselves(t *testing.T) {
	alone := func(s scenario, source string) bool {
		return source == "scripted" && (s.name == "text" || s.name == "tools" || s.name == "retry")
	}
	forEachSource(t, alone, func(t *testing.T, s scenario, source string, calm outcome) {
		begun := slices.IndexFunc(calm.writes, func(r report) bool { return slices.Contains(r.Events, event.UserMessage) })
		for _, write := range calm.writes[begun : len(calm.writes)-1] {
			t.Run(strconv.Itoa(write.Write), func(t *testing.T) {
				t.Parallel()
				w := modelSources[source](t, s)
				r := newRun(t, s.conversation(w))
				if _, err := r.runUntilStop(stop{write.Write, committed}); err != nil {
					t.Fatal(err)
				}
				if err := r.watch(); err != nil {
					t.Fatal(err)
				}
				judgeRun(t, w, r.play(), calm.expected())
			})
		}
	})
}

// A write can fail once, when another program keeps the file locked: then the client
// gets an error, or the turn continues by itself.
func TestAWriteThatFailsOnceLosesNothing(t *testing.T) {
	local := func(_ scenario, source string) bool { return source == "scripted" }
	forEachSource(t, local, func(t *testing.T, s scenario, source string, calm outcome) {
		for _, write := range calm.writes {
			t.Run(strconv.Itoa(write.Write), func(t *testing.T) {
				t.Parallel()
				t.Logf("the write stores %v", write.Events)
				w := modelSources[source](t, s)
				r := newRun(t, s.conversation(w))
				r.instructions.Stop = stop{write.Write, refused}
				judgeRun(t, w, r.play(), calm.expected())
			})
		}
	})
}
