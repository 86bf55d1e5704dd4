package eventlogtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func closed(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a")
	f.fails("err", f.Err(), nil)
	select {
	case <-f.Closed():
		t.Error("an open store says that it is closed")
	default:
	}
	f.fails("close", f.Close(), nil)
	<-f.Closed()
	f.fails("err", f.Err(), eventlog.ErrClosed)
	f.fails("close again", f.Close(), nil)
	_, err := f.Append(t.Context(), "s", batch(end, "b"))
	f.fails("append", err, eventlog.ErrClosed)
	_, err = f.said("s", 0)
	f.fails("read", err, eventlog.ErrClosed)
	_, err = f.Session(t.Context(), "s")
	f.fails("session", err, eventlog.ErrClosed)
	for _, err := range f.Sessions(t.Context(), eventlog.Query{}) {
		f.fails("sessions", err, eventlog.ErrClosed)
	}
	f.fails("delete", f.Delete(t.Context(), "s"), eventlog.ErrClosed)
	f.fails("quarantine", f.Quarantine(t.Context(), "s", &eventlog.Damage{}), eventlog.ErrClosed)
	_, err = f.Fork(t.Context(), "c", "s", batch(end, "b"))
	f.fails("fork", err, eventlog.ErrClosed)
	f.fails("put secret", f.PutSecrets(t.Context(), "s", eventlog.Secret{Name: "k", Value: nil}), eventlog.ErrClosed)
	_, err = f.Secret(t.Context(), "s", "k")
	f.fails("secret", err, eventlog.ErrClosed)
	_, _, err = f.TakeJob(t.Context(), "h", noon, noon)
	f.fails("take a job", err, eventlog.ErrClosed)
	f.fails("change jobs", f.ChangeJobs(t.Context()), eventlog.ErrClosed)
	_, err = f.Job(t.Context(), "1")
	f.fails("job", err, eventlog.ErrClosed)
	_, err = f.Jobs(t.Context(), "")
	f.fails("jobs", err, eventlog.ErrClosed)
}

// closeBusy closes a store that is in use. Each append is stored or refused.
func closeBusy(t *testing.T, f *fixture) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			id := event.SessionID(fmt.Sprint(i))
			for end := (eventlog.End{}); ; {
				next, err := f.Append(t.Context(), id, batch(end, "x"))
				if err != nil {
					f.fails("append", err, eventlog.ErrClosed)
					return
				}
				end = next
			}
		})
	}
	f.fails("close", f.Close(), nil)
	wg.Wait()
}
