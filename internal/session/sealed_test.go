package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// storedHeaders returns what the store has of the headers of a session; empty if nothing.
func storedHeaders(t *testing.T, store eventlog.Store) string {
	t.Helper()
	b, err := store.Secret(t.Context(), "s", "headers")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Headers end with the turn of their input, however it ends, and those of inputs that wait
// stay.
func TestHeadersEndWithTheirTurn(t *testing.T) {
	tenant := func(name string) map[string]string { return map[string]string{"X-Tenant": name} }
	for name, end := range map[string]func(t *testing.T, b *sessiontest.Fixture){
		"by an abort": func(t *testing.T, b *sessiontest.Fixture) {
			if _, err := b.Host.Stop(t.Context(), "s", event.AbortData{Reason: "enough", KeepQueue: true, Hold: true}); err != nil {
				t.Fatal(err)
			}
		},
		"by a restart and an abort": func(t *testing.T, b *sessiontest.Fixture) {
			b.Restart()
			if _, err := b.Host.Stop(t.Context(), "s", event.AbortData{Reason: "enough", KeepQueue: true, Hold: true}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := eventlog.NewMemory()
				_, b := newGateways(t, store)
				if _, err := b.Host.Create(t.Context(), "s", at("http://a", "key of http://a"), nil); err != nil { // it never answers
					t.Fatal(err)
				}
				for _, who := range []string{"first", "second"} {
					if _, err := b.Host.SendWith(t.Context(), "s", event.InputAcceptedData{Prompt: who}, tenant(who)); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if got := storedHeaders(t, store); !strings.Contains(got, "first") || !strings.Contains(got, "second") {
					t.Errorf("while the turn runs, stored are %q", got)
				}
				end(t, b)
				synctest.Wait()
				if got := storedHeaders(t, store); strings.Contains(got, "first") || !strings.Contains(got, "second") {
					t.Errorf("after the turn, stored are %q", got)
				}
				if err := b.Host.Abort(t.Context(), "s", "all of it"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := storedHeaders(t, store); got != "" {
					t.Errorf("after everything, stored are %q", got)
				}
				b.Host.Close()
			})
		})
	}
}

func TestHeadersOfATurnThatWasAnsweredAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := eventlog.NewMemory()
		g, b := newGateways(t, store)
		if _, err := b.Host.Create(t.Context(), "s", at("http://b", "key of http://b"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Host.SendWith(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}, map[string]string{"X-Tenant": "me"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := g.reached("http://b"); got.header != "me" {
			t.Errorf("the request had the header %q", got.header)
		}
		if got := storedHeaders(t, store); got != "" {
			t.Errorf("stored are %q", got)
		}
		b.Host.Close()
	})
}

// A sealedStore is a store whose secrets cannot be opened until they are replaced.
type sealedStore struct {
	eventlog.Store
	replaced map[string]bool
}

func (s *sealedStore) Secret(ctx context.Context, id event.SessionID, name string) ([]byte, error) {
	value, err := s.Store.Secret(ctx, id, name)
	if err == nil && value != nil && !s.replaced[name] {
		return nil, fmt.Errorf("secret %q: %w: the key is elsewhere", name, eventlog.ErrSealed)
	}
	return value, err
}

func (s *sealedStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	for _, one := range batch.Secrets {
		s.replaced[one.Name] = true
	}
	return s.Store.Append(ctx, id, batch)
}

// A session whose secrets cannot be opened goes on without them, and with those that a
// client gives it again. Only a model that needs a key refuses, and says why.
func TestASessionGoesOnWithoutItsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := eventlog.NewMemory()
		_, b := newGateways(t, memory)
		spec := at("http://b", "key of http://b")
		spec.Env = []string{"A=1"}
		if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
			t.Fatal(err)
		}
		b.Host.Close()
		g, b := newGateways(t, &sealedStore{memory, map[string]bool{}})
		g.answers = refusing{}
		if env, err := b.Host.Settings.Environment(t.Context(), "s"); err != nil || env != nil {
			t.Errorf("environment = %q, %v", env, err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		synctest.Wait()
		if got := g.reached("http://b"); got.key != "" {
			t.Errorf("the request had the key %q", got.key)
		}
		told := ""
		for e, err := range memory.Read(t.Context(), "s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == event.SessionError {
				told = string(e.Bytes)
			}
		}
		if !strings.Contains(told, "no key was given") || !strings.Contains(told, "cannot be read; resume the session with a key") || !strings.Contains(told, "the key is elsewhere") {
			t.Errorf("the error of the turn is %s", told)
		}
		g.answers = nil
		spec.Env, spec.SpareEnv = nil, []string{"A=2"}
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: spec, Keep: true}, nil); err != nil {
			t.Fatal(err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		synctest.Wait()
		if got := g.reached("http://b"); got.key != "key of http://b" {
			t.Errorf("with a new key the request had %q", got.key)
		}
		spec.SpareEnv = []string{"A=3"} // the session has one again
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: spec, Keep: true}, nil); err != nil {
			t.Fatal(err)
		}
		if env, err := b.Host.Settings.Environment(t.Context(), "s"); err != nil || !slices.Equal(env, []string{"A=2"}) {
			t.Errorf("environment = %q, %v", env, err)
		}
		b.Host.Close()
	})
}

// refusing is a model that wants a key.
type refusing struct{}

func (refusing) Ask(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return nil, &model.Error{Kind: model.KindAuth, Status: 401, Message: "no key was given"}
}

// What no command can get is not stored; all else is, empty variables too.
func TestAnEnvironmentIsStoredAsFarAsCommandsGetIt(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	spec := session.Spec{Env: []string{"A=1", "nothing", "EMPTY=", "=x", "A=2", "B=\x00", "C=a=b"}}
	if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"EMPTY=", "A=2", "C=a=b"}
	for range 2 {
		if env, err := b.Host.Settings.Environment(t.Context(), "s"); err != nil || !slices.Equal(env, want) {
			t.Errorf("environment = %q, %v; want %q", env, err, want)
		}
		b.Restart()
	}
}
