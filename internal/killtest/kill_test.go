package killtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// words are what a run should come to.
type words struct {
	answers []string
	told    []string // the history of the last request; any if nil
}

func (o outcome) words() words { return words{o.answers(), o.told} }

// judgeRun reports every promise that a run broke, and whether it came to what
// it should.
func judgeRun(t *testing.T, w *world, got outcome, want words) {
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
	if told := w.told(); want.told != nil && !slices.EqualFunc(told, want.told, same) {
		t.Errorf("the provider was told %q, want %q", told, want.told)
	}
	if t.Failed() {
		t.Log(got.story())
	}
}

// story is the log for people, a short line for each event.
func (o outcome) story() string {
	var b strings.Builder
	for _, e := range o.log {
		data, _ := e.Data() // what is no event has none
		fmt.Fprintf(&b, "\n%d %s %.160s", e.Seq, e.Type, data)
	}
	return b.String()
}

// undisturbed plays a scenario without a kill.
func undisturbed(t *testing.T, s scenario, world string) outcome {
	t.Helper()
	w := worlds[world](t, s)
	out := newRun(t, s.talk(w)).play()
	out.told = w.told()
	judgeRun(t, w, out, out.words())
	if unsure := out.unsure(); len(unsure) > 0 {
		t.Errorf("nobody was killed, and yet the outcome of %v is told to be unknown", unsure)
	}
	if answers := out.answers(); len(answers) != 1 || answers[0] == "" {
		t.Errorf("the answers are %q, want one", answers)
	}
	return out
}

// killed plays a scenario with kills.
func killed(t *testing.T, s scenario, world string, calm outcome, stops ...stop) {
	t.Parallel()
	w := worlds[world](t, s)
	judgeRun(t, w, newRun(t, s.talk(w)).play(stops...), calm.words())
}

// everywhere calls f for every scenario in every world that it fits and that is
// wanted, with what happens if nobody is killed.
func everywhere(t *testing.T, wanted func(s scenario, world string) bool, f func(t *testing.T, s scenario, world string, calm outcome)) {
	for _, s := range scenarios {
		for world := range worlds {
			if s.fits(world) && wanted(s, world) {
				t.Run(s.name+"/"+world, func(t *testing.T) {
					t.Parallel()
					f(t, s, world, undisturbed(t, s, world))
				})
			}
		}
	}
}

// stops are the places where a victim is killed: everywhere if that is thorough,
// else once in each write.
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

// The engine is the same in all worlds, so that the wires share the points
// between them where calls are not made side by side.
func TestKilledAtAnyWriteNothingIsLostOrRepeated(t *testing.T) {
	shifts := map[string]int{"chat": 0, "anthropic": 1, "responses": 2}
	wanted := func(s scenario, world string) bool { return s.name == "tools" || world != "offline" }
	everywhere(t, wanted, func(t *testing.T, s scenario, world string, calm outcome) {
		thorough := s.name == "tools" || world == "scripted"
		for _, at := range stops(calm.writes, thorough, shifts[world]) {
			t.Run(at.String(), func(t *testing.T) {
				t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
				killed(t, s, world, calm, at)
			})
		}
	})
}

// The parent's blow falls somewhere near the event: what matters here are the
// places between two writes, while the model answers, or fails to.
func TestKilledAtAnyEventNothingIsLostOrRepeated(t *testing.T) {
	long := func(s scenario, world string) bool {
		return s.name == "text" && world != "offline" && world != "chat" || s.name == "retry" && (world == "scripted" || world == "chat")
	}
	everywhere(t, long, func(t *testing.T, s scenario, world string, calm outcome) {
		for i, e := range calm.witness.shown[0] {
			t.Run(strconv.Itoa(i+1), func(t *testing.T) {
				t.Logf("the event is %s", e.Type)
				killed(t, s, world, calm, stop{i + 1, seen})
			})
		}
	})
}

// The second victim is killed at every write of its recovery, and of what
// follows.
func TestKilledAgainDuringRecoveryNothingIsLostOrRepeated(t *testing.T) {
	hard := func(s scenario, world string) bool { return s.name == "tools" && world == "scripted" }
	everywhere(t, hard, func(t *testing.T, s scenario, world string, calm outcome) {
		begun := 1 + slices.IndexFunc(calm.writes, func(r report) bool { return slices.Contains(r.Events, event.ToolBegun) })
		for _, first := range []stop{{begun, committed}, {begun + 1, before}, {begun + 2, committed}} {
			w := worlds[world](t, s)
			recovered := newRun(t, s.talk(w)).play(first)
			judgeRun(t, w, recovered, calm.words())
			for _, second := range recovered.writes {
				for _, p := range []point{before, committed, after} {
					t.Run(fmt.Sprintf("%s/%s/%d", first, p, second.Write), func(t *testing.T) {
						t.Logf("the write stores %v", second.Events)
						killed(t, s, world, calm, first, stop{second.Write, p})
					})
				}
			}
		}
	})
}

// Nobody has to come back for that.
func TestUnfinishedTurnsGoOnByThemselves(t *testing.T) {
	alone := func(s scenario, world string) bool {
		return world == "scripted" && (s.name == "text" || s.name == "tools" || s.name == "retry")
	}
	everywhere(t, alone, func(t *testing.T, s scenario, world string, calm outcome) {
		begun := slices.IndexFunc(calm.writes, func(r report) bool { return slices.Contains(r.Events, event.UserMessage) })
		for _, write := range calm.writes[begun : len(calm.writes)-1] {
			t.Run(strconv.Itoa(write.Write), func(t *testing.T) {
				t.Parallel()
				w := worlds[world](t, s)
				r := newRun(t, s.talk(w))
				if _, err := r.cutShort(stop{write.Write, committed}); err != nil {
					t.Fatal(err)
				}
				if err := r.watch(); err != nil {
					t.Fatal(err)
				}
				judgeRun(t, w, r.play(), calm.words())
			})
		}
	})
}

// A write can fail for a moment, when another program keeps the file locked:
// then the client is told, or the work goes on by itself.
func TestAWriteThatFailsOnceLosesNothing(t *testing.T) {
	local := func(_ scenario, world string) bool { return world == "scripted" }
	everywhere(t, local, func(t *testing.T, s scenario, world string, calm outcome) {
		for _, write := range calm.writes {
			t.Run(strconv.Itoa(write.Write), func(t *testing.T) {
				t.Parallel()
				t.Logf("the write stores %v", write.Events)
				w := worlds[world](t, s)
				r := newRun(t, s.talk(w))
				r.orders.Stop = stop{write.Write, refused}
				judgeRun(t, w, r.play(), calm.words())
			})
		}
	})
}
