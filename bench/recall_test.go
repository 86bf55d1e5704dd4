package main

import (
	"strings"
	"testing"
)

func TestWhatWasSaidEarlyIsAskedForLate(t *testing.T) {
	var err error
	func() {
		defer stopping(&err)
		l := tongues[0]
		with, without := runRecall(place{dir: t.TempDir()}, l, true), runRecall(place{dir: t.TempDir()}, l, false)
		if with.compactions < recallSessions*recallCompactions || with.consolidations != recallSessions {
			t.Errorf("%d compactions, %d consolidations", with.compactions, with.consolidations)
		}
		if n := len(l.planted); with.same.asked != n || with.later.asked != n || 100*(with.same.found+with.later.found) < 2*n*recallFound {
			t.Errorf("%+v", with)
		}
		if without.later.found > 0 || with.newest.later > 0 {
			t.Errorf("a new session knows facts without memory: %+v, %+v", without, with)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
}

// No question gives its answer away: then a request would have it in any case.
func TestNoQuestionHasItsAnswerInIt(t *testing.T) {
	for _, l := range tongues {
		for _, f := range l.planted {
			if strings.Contains(f.question, f.key) || !strings.Contains(f.said, f.key) || strings.Contains(l.filler+l.goOn, f.key) {
				t.Errorf("%s: %+v", l.name, f)
			}
		}
	}
}
