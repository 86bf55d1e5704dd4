package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
)

var aWord = regexp.MustCompile(`word\d+x`)

// A randomTest does this and that to a session, and knows what was said in it.
type randomTest struct {
	*testWorker
	r      *rand.Rand
	said   []string        // words
	gone   map[string]bool // words of the messages that were taken back
	unsure int             // attempts that will fail
}

// note is a model that notes every word, and fails now and then.
func (w *randomTest) note(_ context.Context, req *model.Request) (*model.Reply, error) {
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	if w.unsure > 0 {
		w.unsure--
		return nil, &model.Error{Kind: model.KindNetwork, Message: "no"}
	}
	var found memory.Extracted
	for _, word := range aWord.FindAllString(record(req), -1) {
		found.Decisions = append(found.Decisions, memory.Decision{Chosen: word})
	}
	return handIn(found), nil
}

// step does one thing.
func (w *randomTest) step() {
	switch w.r.IntN(8) {
	case 0, 1, 2:
		word := fmt.Sprintf("word%dx", len(w.said))
		w.said = append(w.said, word)
		w.turn("s", word+strings.Repeat(" and so on", w.r.IntN(200)))
	case 3:
		w.rewind()
	case 4:
		if _, err := w.host.Context.Compact(w.Context(), "s", session.Squeeze{}); err != nil && !errors.Is(err, session.ErrCompacting) {
			w.Fatal(err)
		}
	case 5:
		w.worker.Stop()
		if w.r.IntN(2) == 0 {
			w.close()
			w.open()
		}
		if w.r.IntN(2) == 0 {
			w.start()
		}
	case 6:
		w.model.mu.Lock()
		w.unsure = w.r.IntN(4)
		w.model.mu.Unlock()
	case 7:
		time.Sleep(time.Duration(w.r.IntN(20)) * time.Minute)
	}
}

// rewind takes the last turn back.
func (w *randomTest) rewind() {
	shown, err := w.host.Log.Messages(w.Context(), "s")
	if err != nil {
		w.Fatal(err)
	}
	for i := len(shown) - 1; i >= 0; i-- {
		if shown[i].Type != event.UserMessage {
			continue
		}
		head, err := shown[i].Head()
		if err == nil {
			_, err = w.host.Rewind(w.Context(), "s", session.Rewind{EventID: head.ID, KeepFiles: true})
		}
		if err != nil {
			w.Fatal(err)
		}
		w.gone[aWord.FindString(as[event.UserMessageData](w.testWorker, shown[i]).Content)] = true
		return
	}
}

// Whatever happens to a session, what was said and not taken back is noted once.
func TestEveryMessageIsExtractedOnce(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			story(t, func(l *testWorker) {
				l.rules.ExtractThreshold, l.window = 200, 4000
				l.squeeze = event.CompactionRules{Retained: num(0)}
			}, func(l *testWorker) {
				w := &randomTest{testWorker: l, r: rand.New(rand.NewPCG(seed, 0)), gone: make(map[string]bool)}
				l.model.extract = w.note
				l.create("s")
				for range 25 {
					w.step()
				}
				w.finish()
			})
		})
	}
}

// finish has everything remembered, and looks at it.
func (w *randomTest) finish() {
	w.model.mu.Lock()
	w.unsure = 0
	w.model.mu.Unlock()
	w.start()
	id, err := w.host.Memory.Schedule(w.Context(), "s")
	if err != nil {
		w.Fatal(err)
	}
	time.Sleep(24 * time.Hour)
	synctest.Wait()
	if err := w.worker.Wait(w.Context(), id); err != nil {
		w.Fatal(err)
	}
	if left := w.jobs(); len(left) != 0 {
		w.Errorf("jobs = %s", describe(left))
	}
	found := w.extracted("s")
	w.contiguous("s", len(found))
	noted := ""
	for _, d := range found {
		noted += string(d.Decisions)
	}
	page := w.page(memory.KindDecisions)
	for _, word := range w.said {
		n, lines := strings.Count(noted, `"`+word+`"`), strings.Count(page, "- "+word+" [")
		if n != lines || n > 1 || n == 0 && !w.gone[word] {
			w.Errorf("%s was noted %d times and is in the page %d times; taken back: %v", word, n, lines, w.gone[word])
		}
	}
}
