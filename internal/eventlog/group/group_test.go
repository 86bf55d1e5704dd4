package group

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A change has a name.
type change struct {
	Op
	name string
}

// recorded is a queue whose commits are recorded. Each waits until it may go on.
type recorded struct {
	*Queue[*change]
	goOn   chan struct{}
	groups [][]string
}

func newRecorded() *recorded {
	r := &recorded{goOn: make(chan struct{})}
	r.Queue = New(func(group []*change) {
		var names []string
		for _, c := range group {
			names = append(names, c.name)
			if c.name == "bad" {
				c.Err = errors.New("refused")
			}
		}
		r.groups = append(r.groups, names)
		<-r.goOn
	})
	return r
}

func TestChangesAreCommittedInGroups(t *testing.T) {
	for name, c := range map[string]struct {
		waiting []*change // changes that arrive while another one is committed
		want    [][]string
	}{
		"what waits goes together": {
			[]*change{{name: "a"}, {name: "b"}, {name: "c"}},
			[][]string{{"a", "b", "c"}},
		},
		"a group is bounded, and takes one at least": {
			[]*change{{name: "a", Op: Op{Events: MaxEvents - 1}}, {name: "b", Op: Op{Events: 2}}, {name: "c", Op: Op{Events: 2 * MaxEvents}}, {name: "d"}},
			[][]string{{"a", "b"}, {"c"}, {"d"}},
		},
		"one that is alone has no company": {
			[]*change{{name: "a"}, {name: "b", Op: Op{Alone: true}}, {name: "c", Op: Op{Alone: true}}, {name: "d"}, {name: "e"}},
			[][]string{{"a"}, {"b"}, {"c"}, {"d", "e"}},
		},
		"each has its own outcome": {
			[]*change{{name: "a"}, {name: "bad"}, {name: "c"}},
			[][]string{{"a", "bad", "c"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newRecorded()
				outcomes := make([]error, len(c.waiting))
				go q.Do(t.Context(), &change{name: "first"})
				synctest.Wait()
				for i, one := range c.waiting {
					go func() { outcomes[i] = q.Do(t.Context(), one) }()
					synctest.Wait()
					if waiting, busy := q.Load(); waiting != i+1 || !busy {
						t.Errorf("%d wait, busy = %v, after %s was added", waiting, busy, one.name)
					}
				}
				close(q.goOn)
				q.WaitIdle()
				synctest.Wait()
				if want := append([][]string{{"first"}}, c.want...); fmt.Sprint(q.groups) != fmt.Sprint(want) {
					t.Errorf("groups %v, want %v", q.groups, want)
				}
				for i, one := range c.waiting {
					if err := outcomes[i]; (err != nil) != (one.name == "bad") {
						t.Errorf("%s: %v", one.name, err)
					}
				}
			})
		})
	}
}

func TestAQueueThatIsShutCommitsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, cause := newRecorded(), errors.New("closed")
		var done atomic.Int32
		for _, name := range []string{"a", "b"} {
			go func() {
				if err := q.Do(t.Context(), &change{name: name}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				done.Add(1)
			}()
			synctest.Wait()
		}
		if q.Err() != nil {
			t.Errorf("an open queue says %v", q.Err())
		}
		q.Shut(cause)
		q.Shut(errors.New("another cause"))
		<-q.Closed()
		if err := q.Do(t.Context(), &change{name: "late"}); err != cause || q.Err() != cause {
			t.Errorf("a late change: %v, and the queue says %v; want %v", err, q.Err(), cause)
		}
		idle := false
		go func() { q.WaitIdle(); idle = true }()
		synctest.Wait()
		if idle {
			t.Error("the queue is idle while it commits")
		}
		close(q.goOn)
		synctest.Wait()
		if !idle || done.Load() != 2 {
			t.Errorf("idle = %v, %d changes of 2 are done", idle, done.Load())
		}
	})
}

func TestAContextIsCheckedAtTheStartOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newRecorded()
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		go func() { err = q.Do(ctx, &change{name: "a"}) }()
		synctest.Wait()
		cancel()
		if late := q.Do(ctx, &change{name: "b"}); !errors.Is(late, context.Canceled) {
			t.Errorf("a change after the end of its context: %v", late)
		}
		close(q.goOn)
		synctest.Wait()
		if err != nil || len(q.groups) != 1 {
			t.Errorf("%v; groups %v", err, q.groups)
		}
	})
}
