package eventlogtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/seal"
)

// A Disk is a kind of store whose content outlives its process.
type Disk struct {
	// Open opens the store in a folder, and calls the function at the end of the test.
	Open func(t *testing.T, dir string, opts eventlog.Options) eventlog.Store
	// Dump returns everything that the store has written, as whoever steals it would have
	// it. The store may be open.
	Dump func(t *testing.T, dir string) []byte
	// Swap puts the stored values of a secret of two sessions in the place of each other.
	Swap func(t *testing.T, dir string, a, b event.SessionID, name string)
	// Rename gives the stored value of a secret of a session another name.
	Rename func(t *testing.T, dir string, id event.SessionID, from, to string)
}

// RunSealed tests that a store gives no secret away without the key, and that a missing key
// costs nothing but the secrets.
func RunSealed(t *testing.T, d Disk) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *sealedFixture)
	}{
		{"WhatIsWrittenHoldsNoSecret", sealedBytes},
		{"ASecretIsReadAfterTheStoreWasOpenedAgain", sealedAgain},
		{"ASwappedSecretIsRefused", sealedSwapped},
		{"AStoreWithoutItsKeyLosesTheSecretsAlone", sealedWithoutKey},
		{"AWrongKeyIsNamed", sealedWrongKey},
		{"AnOldKeyThatIsFoundAgainOpens", sealedFoundKey},
		{"ABrokenKeyFileIsRefused", sealedBrokenKey},
		{"AKeyThatOthersCanReadIsToldOf", sealedExposed},
		{"AForkIsSealedForItself", sealedFork},
		{"ADeletedSessionLeavesNoSecret", sealedDeleted},
		{"AStoreWithoutSecretsMakesNoKey", sealedNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, &sealedFixture{T: t, disk: d, dir: t.TempDir(), key: filepath.Join(t.TempDir(), "key")})
		})
	}
}

// A sealedFixture is a store on disk under test.
type sealedFixture struct {
	*testing.T
	disk     Disk
	dir, key string
	store    eventlog.Store
	warnings []string
}

// open opens the store, and closes it first if it is open.
func (f *sealedFixture) open() *fixture {
	f.Helper()
	f.close()
	f.warnings = nil
	f.store = f.disk.Open(f.T, f.dir, eventlog.Options{KeyFile: f.key, Warn: func(line string) { f.warnings = append(f.warnings, line) }})
	return &fixture{f.T, f.store}
}

func (f *sealedFixture) close() {
	f.Helper()
	if f.store == nil {
		return
	}
	if err := f.store.Close(); err != nil {
		f.Fatal(err)
	}
	f.store = nil
}

// secretOf is the secret of a session in these tests, long enough for pages of its own.
func secretOf(id event.SessionID) string {
	return strings.Repeat(fmt.Sprintf("TOKEN_OF_%s=hidden-%s ", id, id), 600)
}

// fill makes two sessions with secrets.
func (f *sealedFixture) fill() *fixture {
	f.Helper()
	s := f.open()
	for _, id := range []event.SessionID{"a", "b"} {
		b := batch(eventlog.End{}, "says "+string(id))
		b.Secrets = []eventlog.Secret{{Name: "k", Value: []byte(secretOf(id))}}
		_, err := s.Append(f.Context(), id, b)
		s.fails("append", err, nil)
		s.fails("put", s.PutSecrets(f.Context(), id, eventlog.Secret{Name: "l", Value: []byte("short-hidden-" + id)}), nil)
	}
	return s
}

// has checks a secret.
func (f *fixture) has(id event.SessionID, name, want string) {
	f.Helper()
	got, err := f.Secret(f.Context(), id, name)
	if err != nil || string(got) != want {
		f.Errorf("secret %s of %s = %.40q, %v; want %.40q", name, id, got, err, want)
	}
}

// isSealed checks that a secret cannot be read, and returns the reason.
func (f *fixture) isSealed(id event.SessionID, name string) string {
	f.Helper()
	got, err := f.Secret(f.Context(), id, name)
	if got != nil || !errors.Is(err, eventlog.ErrSealed) {
		f.Errorf("secret %s of %s = %.40q, %v; want it sealed", name, id, got, err)
		return ""
	}
	return err.Error()
}

// gives checks that what is written holds nothing of a text.
func (f *sealedFixture) gives(texts ...string) {
	f.Helper()
	dump := f.disk.Dump(f.T, f.dir)
	if len(dump) == 0 {
		f.Error("nothing was written")
	}
	for _, text := range texts {
		if bytes.Contains(dump, []byte(text)) {
			f.Errorf("what is written holds %q", text)
		}
	}
}

func sealedBytes(t *testing.T, f *sealedFixture) {
	s := f.fill()
	f.gives("hidden", "TOKEN_OF")
	s.fails("replace", s.PutSecrets(t.Context(), "a", eventlog.Secret{Name: "k", Value: []byte("hidden again")}), nil)
	f.gives("hidden", "TOKEN_OF")
	f.close()
	f.gives("hidden", "TOKEN_OF")
	key, err := os.ReadFile(f.key)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(key)) {
		if len(line) > 32 {
			f.gives(line)
		}
	}
}

func sealedAgain(_ *testing.T, f *sealedFixture) {
	f.fill()
	s := f.open()
	s.has("a", "k", secretOf("a"))
	s.has("b", "l", "short-hidden-b")
	if len(f.warnings) > 0 {
		f.Errorf("warned of %q", f.warnings)
	}
}

func sealedSwapped(t *testing.T, f *sealedFixture) {
	f.fill()
	f.close()
	f.disk.Swap(t, f.dir, "a", "b", "k")
	f.disk.Rename(t, f.dir, "a", "l", "m")
	s := f.open()
	s.isSealed("a", "k")
	s.isSealed("b", "k")
	s.isSealed("a", "m")
	s.has("b", "l", "short-hidden-b")
	f.disk.Swap(t, f.dir, "a", "b", "k")
	s = f.open()
	s.has("a", "k", secretOf("a"))
	s.fails("replace", s.PutSecrets(t.Context(), "a", eventlog.Secret{Name: "m", Value: []byte("new")}), nil)
	s.has("a", "m", "new")
}

// lose moves the key file away and returns its new path.
func (f *sealedFixture) lose() string {
	f.Helper()
	f.close()
	away := f.key + ".away"
	if err := os.Rename(f.key, away); err != nil {
		f.Fatal(err)
	}
	return away
}

func sealedWithoutKey(t *testing.T, f *sealedFixture) {
	f.fill()
	f.lose()
	s := f.open()
	if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], "secrets of 2 sessions") || !strings.Contains(f.warnings[0], f.key) {
		t.Errorf("warned of %q", f.warnings)
	}
	if why := s.isSealed("a", "k"); !strings.Contains(why, "there is no key file") {
		t.Errorf("the reason is %q", why)
	}
	s.says("a", "says a")
	a, err := s.Session(t.Context(), "a")
	s.fails("session", err, nil)
	end := s.add("a", a.End, "goes on")
	s.branch("child", "a", end, "forked")
	// A client gives the secret again, and the next start knows which are still missing.
	s.fails("put", s.PutSecrets(t.Context(), "a", eventlog.Secret{Name: "k", Value: []byte("hidden anew")}, eventlog.Secret{Name: "l"}), nil)
	s.has("a", "k", "hidden anew")
	s = f.open()
	s.has("a", "k", "hidden anew")
	s.isSealed("b", "k")
	if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], "secrets of 1 session") {
		t.Errorf("warned of %q", f.warnings)
	}
	s.fails("delete", s.Delete(t.Context(), "b"), nil)
	f.open()
	if len(f.warnings) > 0 {
		t.Errorf("nothing is missing, but warned of %q", f.warnings)
	}
}

func sealedWrongKey(t *testing.T, f *sealedFixture) {
	f.fill()
	id := f.keyID(f.lose())
	other, err := seal.OpenFile(f.key)
	if err != nil {
		t.Fatal(err)
	}
	another, err := other.Ready()
	if err != nil {
		t.Fatal(err)
	}
	s := f.open()
	why := s.isSealed("a", "k")
	for _, text := range append(f.warnings, why) {
		if !strings.Contains(text, id.String()) || !strings.Contains(text, another.String()) || !strings.Contains(text, f.key) {
			t.Errorf("%q does not name the keys %s and %s", text, id, another)
		}
	}
	if len(f.warnings) != 1 {
		t.Errorf("warned of %q", f.warnings)
	}
}

// keyID returns the id of the first key of a file.
func (f *sealedFixture) keyID(path string) seal.ID {
	f.Helper()
	file, err := seal.OpenFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return file.IDs()[0]
}

func sealedFoundKey(t *testing.T, f *sealedFixture) {
	f.fill()
	away := f.lose()
	s := f.open()
	s.fails("put", s.PutSecrets(t.Context(), "a", eventlog.Secret{Name: "k", Value: []byte("new")}), nil)
	f.close()
	now, err := os.ReadFile(f.key)
	old, missing := os.ReadFile(away)
	if err = errors.Join(err, missing, os.WriteFile(f.key, append(now, old...), 0o600)); err != nil {
		t.Fatal(err)
	}
	s = f.open()
	s.has("a", "k", "new")
	s.has("a", "l", "short-hidden-a")
	s.has("b", "k", secretOf("b"))
	if len(f.warnings) > 0 {
		t.Errorf("warned of %q", f.warnings)
	}
}

func sealedBrokenKey(t *testing.T, f *sealedFixture) {
	f.fill()
	f.close()
	whole, err := os.ReadFile(f.key)
	if err == nil {
		err = os.WriteFile(f.key, whole[:len(whole)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.OpenFile(f.key); err == nil || !strings.Contains(err.Error(), f.key) || !strings.Contains(err.Error(), "put a copy of it back") {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(f.key, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	f.open().has("a", "k", secretOf("a"))
}

func sealedExposed(t *testing.T, f *sealedFixture) {
	f.fill()
	f.close()
	if err := os.Chmod(f.key, 0o640); err != nil {
		t.Fatal(err)
	}
	f.open().has("a", "k", secretOf("a"))
	if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], "0640") || !strings.Contains(f.warnings[0], f.key) {
		t.Errorf("warned of %q", f.warnings)
	}
}

func sealedFork(t *testing.T, f *sealedFixture) {
	s := f.fill()
	a, err := s.Session(t.Context(), "a")
	s.fails("session", err, nil)
	b := batch(a.End, "forked")
	b.Secrets = []eventlog.Secret{{Name: "k", Value: []byte(secretOf("a"))}}
	_, err = s.Fork(t.Context(), "child", "a", b)
	s.fails("fork", err, nil)
	s.has("child", "k", secretOf("a"))
	s.has("child", "l", "")
	f.close()
	f.disk.Swap(t, f.dir, "a", "child", "k") // the same secret, sealed for another session
	s = f.open()
	s.isSealed("a", "k")
	s.isSealed("child", "k")
}

func sealedDeleted(t *testing.T, f *sealedFixture) {
	s := f.fill()
	a, err := s.Session(t.Context(), "a")
	s.fails("session", err, nil)
	s.branch("child", "a", a.End, "forked") // keeps the events of the deleted session
	s.fails("delete", s.Delete(t.Context(), "a"), nil)
	s.fails("delete", s.Delete(t.Context(), "child"), nil)
	s.add("a", eventlog.End{}, "again")
	s.has("a", "k", "")
	s.has("b", "k", secretOf("b"))
}

func sealedNone(t *testing.T, f *sealedFixture) {
	s := f.open()
	s.add("a", eventlog.End{}, "x")
	s.fails("remove", s.PutSecrets(t.Context(), "a", eventlog.Secret{Name: "k"}), nil)
	f.close()
	if _, err := os.Stat(f.key); !os.IsNotExist(err) {
		t.Errorf("there is a key file: %v", err)
	}
}
