package eventlog_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/eventlog"
)

// kinds are two stores: one in memory, and one that needs a name.
func kinds(opened *string) eventlog.Kinds {
	open := func(_ context.Context, rest string, opts eventlog.Options) (eventlog.Store, error) {
		*opened = rest + " in " + opts.Dir
		return eventlog.NewMemory(), nil
	}
	return eventlog.Kinds{
		"memory": {Form: "memory:", Open: open},
		"named": {Form: "named:NAME", Open: open, Check: func(rest string) error {
			if rest == "" {
				return errors.New("it names nothing")
			}
			return nil
		}},
	}
}

func TestAStoreIsOpenedFromItsURL(t *testing.T) {
	var opened string
	for url, want := range map[string]string{"memory:": " in /d", "named:a:b": "a:b in /d", "named://host/x?y=z": "//host/x?y=z in /d"} {
		s, err := kinds(&opened).Open(t.Context(), url, eventlog.Options{Dir: "/d"})
		if err != nil || opened != want {
			t.Errorf("%s: opened %q, %v; want %q", url, opened, err, want)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnErrorIsTemporaryIfAKindSaysSo(t *testing.T) {
	var opened string
	busy := errors.New("busy")
	all := kinds(&opened)
	if all.IsTemporary(busy) {
		t.Error("an error is temporary, and no kind says so")
	}
	all["other"] = eventlog.Kind{IsTemporary: func(err error) bool { return err == busy }}
	if !all.IsTemporary(busy) || all.IsTemporary(errors.New("gone")) {
		t.Error("a kind is not asked which errors are temporary")
	}
}

func TestAnInvalidURLIsRefusedWithTheValidForms(t *testing.T) {
	var opened string
	for url, want := range map[string]string{
		"":                         "has no scheme: write memory: or named:NAME",
		"/var/log.db":              "has no scheme: write memory: or named:NAME",
		"nmaed:x":                  `begins with "nmaed:", which is unknown: write memory: or named:NAME`,
		"Named:x":                  `begins with "Named:", which is unknown`,
		":x":                       `begins with ":", which is unknown`,
		"named:":                   `"named:": it names nothing: write named:NAME`,
		"postgres://me:secret@h/d": `begins with "postgres:", which is unknown`,
	} {
		err := kinds(&opened).Check(url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: err = %v; want it to say %q", url, err, want)
		}
		if _, opening := kinds(&opened).Open(t.Context(), url, eventlog.Options{}); opening == nil || opened != "" {
			t.Errorf("%q was opened as %q, %v", url, opened, opening)
		}
	}
}
