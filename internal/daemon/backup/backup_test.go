package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

func TestMain(m *testing.M) {
	if what := os.Getenv("BACKUP_TEST_KILL"); what != "" {
		runVictim(what)
		return
	}
	goleak.VerifyTestMain(m)
}

// newData makes a data folder with sessions, files of all kinds, and what belongs to its
// processes alone.
func newData(t testing.TB, sessions int) Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	for name, text := range map[string]string{
		"sessions/s0/checkpoints/1": "before",
		"sessions/s0/files/run.sh":  "#!/bin/sh\n",
		"sessions/unknown/file":     "of a session that is not in the log",
		"trusted":                   "/home/me\n",
		"locations.json":            "{}",
		"memory/facts.md":           "# Facts\n",
		"processes/new.abc/state":   "\n",
		"processes/gone.abc/state":  "\n",
		"lock":                      "pid 1\n",
		"doctor-123":                "",
	} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	must(t, os.Chmod(filepath.Join(dir, "sessions/s0/files/run.sh"), 0o700))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "sessions/s0/files/link")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "sock"), 0o600))
	s := Source{Dir: dir, Store: filepath.Join(dir, "abide.db"), Version: "test"}
	addSessions(t, s.Store, sessions)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addSessions(t testing.TB, path string, n int) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Sync: eventlog.Normal})
	must(t, err)
	for i := range n {
		_, err := store.Append(t.Context(), event.SessionID(fmt.Sprint("s", i)), eventlog.Batch{Events: []event.Event{say("hello")}})
		must(t, err)
	}
	must(t, store.Close())
}

func say(text string) event.Event {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: text})
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return e
}

// tree returns the files below a folder with their content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		text, err := os.ReadFile(path)
		files[rel] = string(text)
		return err
	}))
	return files
}

// names lists a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func backUp(t *testing.T, s Source) (path string, r Report) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "b")
	r, err := s.WriteFile(t.Context(), path, false)
	must(t, err)
	return path, r
}

func TestARestoredFolderHoldsWhatTheFolderHeld(t *testing.T) {
	s := newData(t, 3)
	path, r := backUp(t, s)
	if r.Sessions != 3 || !slices.Equal(r.LeftOut, []string{"sessions/s0/files/link"}) || len(r.Damaged) > 0 {
		t.Errorf("backed up %+v", r)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup is %v, %v", info, err)
	}
	if list := names(t, filepath.Dir(path)); len(list) != 1 {
		t.Errorf("beside the backup there is %v", list)
	}
	to := Target{Dir: filepath.Join(t.TempDir(), "a", "b", "restored")}
	restored, err := to.ReadFile(t.Context(), path)
	if err != nil || restored.Sessions != 3 || restored.Store != "abide.db" {
		t.Fatalf("restored %+v, %v", restored, err)
	}
	got := tree(t, to.Dir)
	for _, name := range []string{"sessions/s0/checkpoints/1", "sessions/s0/files/run.sh", "trusted", "locations.json", "memory/facts.md"} {
		want, err := os.ReadFile(filepath.Join(s.Dir, name))
		if text, is := got[name]; err != nil || !is || text != string(want) {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
		delete(got, name)
	}
	if delete(got, "abide.db"); len(got) > 0 {
		t.Errorf("there is also %v", got)
	}
	for name, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o700, "sessions": fs.ModeDir | 0o700, "sessions/s0/files/run.sh": 0o700, "abide.db": 0o600} {
		if info, err := os.Lstat(filepath.Join(to.Dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%q is %v, %v", name, info.Mode(), err)
		}
	}
	addSession(t, filepath.Join(to.Dir, "abide.db"), "after")
}

// addSession appends to the store of a restored folder.
func addSession(t *testing.T, path, id string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	must(t, err)
	defer store.Close()
	if _, err := store.Append(t.Context(), event.SessionID(id), eventlog.Batch{Events: []event.Event{say("on")}}); err != nil {
		t.Error(err)
	}
}

func TestAStoreThatIsElsewhereIsBackedUp(t *testing.T) {
	for place, where := range map[string]struct{ store, want string }{
		"in a folder of the folder": {"log/x.db", "log/x.db"},
		"outside":                   {"../x.db", "abide.db"},
	} {
		t.Run(place, func(t *testing.T) {
			s := newData(t, 0)
			must(t, os.Remove(s.Store))
			s.Store = filepath.Join(s.Dir, where.store)
			must(t, os.MkdirAll(filepath.Dir(s.Store), 0o700))
			addSessions(t, s.Store, 2)
			path, _ := backUp(t, s)
			to := Target{Dir: filepath.Join(t.TempDir(), "restored")}
			r, err := to.ReadFile(t.Context(), path)
			if err != nil || r.Store != where.want || r.Sessions != 2 || (r.WasAt != "") != (where.want == "abide.db") {
				t.Errorf("restored %+v, %v", r, err)
			}
		})
	}
}

// TestAFolderThatCannotBeBackedUp: what is wrong with the log is wrong with the folder,
// and not with the backup.
func TestAFolderThatCannotBeBackedUp(t *testing.T) {
	for want, spoil := range map[string]func(s Source) error{
		"has version 99, this abide knows versions up to": func(s Source) error {
			db, err := sql.Open("sqlite", s.Store)
			if err == nil {
				_, err = db.Exec("PRAGMA user_version = 99")
			}
			return errors.Join(err, db.Close())
		},
		"is a folder: name a file in it": func(s Source) error { return errors.Join(os.Remove(s.Store), os.Mkdir(s.Store, 0o700)) },
		"it is not an abide store":       func(s Source) error { return os.WriteFile(s.Store, []byte("This is no database."), 0o600) },
		"it is empty":                    func(s Source) error { return os.Truncate(s.Store, 0) },
		"check that its folder exists":   func(s Source) error { return os.Remove(s.Store) },
	} {
		s := newData(t, 1)
		must(t, spoil(s))
		var b bytes.Buffer
		if _, err := s.Write(t.Context(), &b); err == nil || !strings.Contains(err.Error(), want) || !IsAboutFolder(err) {
			t.Errorf("err = %v, about the folder: %v; want one that says %q", err, IsAboutFolder(err), want)
		}
	}
}

func TestWhereNoBackupCanBeWritten(t *testing.T) {
	s := newData(t, 1)
	other := t.TempDir()
	there := filepath.Join(other, "there")
	must(t, os.WriteFile(there, []byte("precious"), 0o600))
	must(t, os.Symlink(s.Dir, filepath.Join(other, "link")))
	for path, want := range map[string]string{
		there:                             "exists: name a new file, or replace it with --force",
		other:                             "is not a file",
		filepath.Join(s.Dir, "x"):         "is inside the data folder",
		filepath.Join(other, "link", "x"): "is inside the data folder",
		filepath.Join(s.Dir, "memory/x"):  "is inside the data folder",
	} {
		_, err := s.WriteFile(t.Context(), path, false)
		if err == nil || !strings.Contains(err.Error(), want) || !IsAboutPath(err) {
			t.Errorf("a backup to %s: %v", path, err)
		}
	}
	if text, _ := os.ReadFile(there); string(text) != "precious" {
		t.Errorf("the file that was there holds %q", text)
	}
	if _, err := s.WriteFile(t.Context(), there, true); err != nil {
		t.Error(err)
	}
	if _, err := (Target{Dir: filepath.Join(other, "r")}).ReadFile(t.Context(), there); err != nil {
		t.Error(err)
	}
}

func damageSession(t *testing.T, s Source, id event.SessionID) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), s.Store, sqlite.Options{})
	must(t, err)
	must(t, store.Quarantine(t.Context(), id, &eventlog.Damage{Session: id, Seq: 1, Reason: "for the test"}))
	must(t, store.Close())
}

func TestADamagedSessionIsBackedUpOnlyIfThatIsAllowed(t *testing.T) {
	s := newData(t, 3)
	damageSession(t, s, "s1")
	path := filepath.Join(t.TempDir(), "b")
	_, err := s.WriteFile(t.Context(), path, false)
	if d, is := errors.AsType[*DamageError](err); !is || len(d.Damaged) != 1 || d.Damaged[0].Session != "s1" {
		t.Fatalf("the backup of a damaged folder: %v", err)
	}
	if list := names(t, filepath.Dir(path)); len(list) > 0 {
		t.Errorf("it left %v", list)
	}
	s.AllowDamaged = true
	if r, err := s.WriteFile(t.Context(), path, false); err != nil || len(r.Damaged) != 1 {
		t.Fatalf("backed up %+v, %v", r, err)
	}
	r, err := Target{Dir: filepath.Join(t.TempDir(), "r")}.ReadFile(t.Context(), path)
	if err != nil || r.Sessions != 3 || len(r.Damaged) != 1 || r.Damaged[0].Session != "s1" {
		t.Errorf("restored %+v, %v", r, err)
	}
}

func TestIntoWhichFoldersNothingIsRestored(t *testing.T) {
	s := newData(t, 1)
	path, _ := backUp(t, s)
	used, err := folder.Open(filepath.Join(t.TempDir(), "used"))
	must(t, err)
	lock, _, err := used.TryLock()
	must(t, err)
	defer lock.Close()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	full := t.TempDir()
	must(t, os.WriteFile(filepath.Join(full, "x"), []byte("mine"), 0o600))
	for dir, want := range map[string]string{
		used.Dir(): fmt.Sprintf("is in use by process %d", os.Getpid()),
		file:       "is not a folder",
		full:       "is not empty: move it away",
		"/proc":    "is not empty",
	} {
		_, err := Target{Dir: dir}.ReadFile(t.Context(), path)
		if err == nil || !strings.Contains(err.Error(), want) || !IsAboutFolder(err) {
			t.Errorf("restoring into %s: %v", dir, err)
		}
	}
	if got := tree(t, full); len(got) != 1 || got["x"] != "mine" {
		t.Errorf("the full folder holds %v", got)
	}
	empty := t.TempDir()
	if _, err := (Target{Dir: empty}).ReadFile(t.Context(), path); err != nil {
		t.Errorf("restoring into an empty folder: %v", err)
	}
}

// A file is an entry of an archive that is made by hand.
type file struct {
	name, text string
	kind       byte
}

func makeArchive(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: max(f.kind, tar.TypeReg), Size: int64(len(f.text)), Mode: 0o600, Format: tar.FormatPAX}
		if h.Typeflag != tar.TypeReg {
			h.Linkname, h.Size, f.text = f.text, 0, ""
		}
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, f.text)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func TestWhatIsNoSoundBackupIsRefusedAndLeavesNothing(t *testing.T) {
	s := newData(t, 2)
	path, _ := backUp(t, s)
	good, err := os.ReadFile(path)
	must(t, err)
	flipped := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	head := file{name: headerName, text: `{"format":1,"abide":"x"}`}
	store := bytes.Index(good, []byte("SQLite format 3"))
	outside := filepath.Join(t.TempDir(), "outside")
	tests := map[string]struct {
		archive []byte
		want    string
	}{
		"empty":                {nil, "it is not a backup of abide"},
		"text":                 {[]byte("hello"), "it is not a backup of abide"},
		"zeros":                {make([]byte, 4096), "it is not a backup of abide"},
		"another tar":          {makeArchive(t, file{name: "x", text: "y"}), "it is not a backup of abide"},
		"a header without one": {makeArchive(t, file{name: headerName, text: "{}"}), "it is not a backup of abide"},
		"a newer one":          {makeArchive(t, file{name: headerName, text: `{"format":2,"abide":"9.9"}`}), "it has format 2 and was written by abide 9.9; this abide knows formats up to 1: use a newer abide"},
		"the header alone":     {makeArchive(t, head), "it is not complete"},
		"cut in the store":     {good[:store+5000], "it is not complete"},
		"cut at the end":       {good[:bytes.LastIndex(good, []byte(`"sha256"`))], "it is not complete"},
		"cut by half":          {good[:len(good)/2], "it is not complete"},
		"a bit of the store":   {flipped(store + 3000), "abide.db in it is not what was backed up"},
		"a bit of a file":      {flipped(bytes.Index(good, []byte("# Facts"))), "facts.md in it is not what was backed up"},
		"a bit of a header":    {flipped(bytes.Index(good, []byte("data/trusted"))), "damaged"},
		"no store":             {makeArchive(t, head, file{name: manifestName, text: `{"store":"abide.db","files":[]}`}), "it is damaged"},
		"a broken manifest":    {makeArchive(t, head, file{name: manifestName, text: `{"store"`}), "it is damaged"},
		"a path above":         {makeArchive(t, head, file{name: "data/../../outside", text: "x"}), "which no backup of abide has"},
		"a path from /":        {makeArchive(t, head, file{name: "data/" + outside, text: "x"}), "which no backup of abide has"},
		"no data":              {makeArchive(t, head, file{name: "/etc/x", text: "x"}), "which no backup of abide has"},
		"a link":               {makeArchive(t, head, file{name: "data/l", text: outside, kind: tar.TypeSymlink}, file{name: "data/l/x", text: "x"}), "is a link or something else"},
		"a hard link":          {makeArchive(t, head, file{name: "data/l", text: "/etc/passwd", kind: tar.TypeLink}), "is a link or something else"},
		"a device":             {makeArchive(t, head, file{name: "data/l", kind: tar.TypeFifo}), "is a link or something else"},
		"the same name twice":  {makeArchive(t, head, file{name: "data/a", text: "x"}, file{name: "data/a", text: "y"}), "two files of the name"},
		"a file as a folder":   {makeArchive(t, head, file{name: "data/a", text: "x"}, file{name: "data/a/b", text: "y"}), "two files of the name"},
		"something after it":   {append(bytes.Clone(good[:len(good)-1024]), makeArchive(t, head)...), "it is damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			broken := filepath.Join(t.TempDir(), "broken")
			must(t, os.WriteFile(broken, test.archive, 0o600))
			_, err := Target{Dir: filepath.Join(parent, "a", "b")}.ReadFile(t.Context(), broken)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
			if list := names(t, parent); len(list) > 0 {
				t.Errorf("it left %v", list)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("it wrote outside the folder")
			}
		})
	}
}

// A backup that says of itself that all is well can still hold a session whose chain is
// broken, or the store of another program.
func TestTheLogOfABackupIsVerified(t *testing.T) {
	s := newData(t, 2)
	s.AllowDamaged = true
	damageSession(t, s, "s1")
	path, _ := backUp(t, s)
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	all := collect{}
	m, err := readArchive(f, all)
	must(t, err)
	for name, change := range map[string]struct {
		change func(m *manifest, files collect)
		want   string
	}{
		"damage that is not told": {func(m *manifest, _ collect) { m.Damaged = nil }, "session s1 is damaged"},
		"no database":             {func(m *manifest, files collect) { files["abide.db"] = "This is no database." }, "it is not an abide store"},
		"no sessions":             {func(m *manifest, files collect) { files["abide.db"] = "" }, "no such table"},
	} {
		t.Run(name, func(t *testing.T) {
			changed, files := *m, collect{}
			for n, text := range all {
				files[n] = text
			}
			change.change(&changed, files)
			parent := t.TempDir()
			_, err := Target{Dir: filepath.Join(parent, "x")}.Read(t.Context(), bytes.NewReader(writeAgain(t, changed, files)))
			if err == nil || !strings.Contains(err.Error(), change.want) {
				t.Errorf("error %v", err)
			}
			if list := names(t, parent); len(list) > 0 {
				t.Errorf("it left %v", list)
			}
		})
	}
}

// collect is a sink that keeps the files.
type collect map[string]string

func (c collect) put(name string, _ *tar.Header, content io.Reader) error {
	text, err := io.ReadAll(content)
	c[name] = string(text)
	return err
}

// writeAgain makes a backup of files, with right digests.
func writeAgain(t *testing.T, m manifest, files collect) []byte {
	t.Helper()
	var b bytes.Buffer
	a, err := newArchive(&b, header{Format: format})
	must(t, err)
	m.Files = nil
	a.manifest = m
	for name, text := range files {
		must(t, a.add(name, textInfo{int64(len(text))}, strings.NewReader(text)))
	}
	must(t, a.close())
	return b.Bytes()
}

// A session that is deleted while its files are copied is not in the backup, because some
// of its files may be missing there.
func TestASessionThatIsDeletedMeanwhileIsLeftOut(t *testing.T) {
	s := newData(t, 3)
	deleted := false
	s.Progress = func(stage string, _, _ int64) {
		if stage != "copying files" || deleted {
			return
		}
		deleted = true
		store, err := sqlite.Open(t.Context(), s.Store, sqlite.Options{})
		must(t, err)
		must(t, store.Delete(t.Context(), "s0"))
		must(t, store.Close())
		must(t, os.RemoveAll(filepath.Join(s.Dir, "sessions/s0")))
	}
	path, _ := backUp(t, s)
	to := Target{Dir: filepath.Join(t.TempDir(), "r")}
	r, err := to.ReadFile(t.Context(), path)
	if err != nil || !deleted || r.Sessions != 2 {
		t.Fatalf("restored %+v, %v", r, err)
	}
	left, err := sqlite.Names(t.Context(), filepath.Join(to.Dir, "abide.db"))
	if err != nil || slices.Contains(left, "s0") {
		t.Errorf("sessions %v, %v", left, err)
	}
	var record struct{ Session string }
	text, err := os.ReadFile(filepath.Join(to.Dir, "deletions/s0.json"))
	if err != nil || json.Unmarshal(text, &record) != nil || record.Session != "s0" {
		t.Errorf("the record of the deletion is %s, %v", text, err)
	}
}

// An engine shortens its log while it runs, which is no reason to have no backup.
func TestAFileThatGetsShorterMeanwhileIsBackedUpAsItIs(t *testing.T) {
	s := newData(t, 1)
	log := filepath.Join(s.Dir, "engine.log")
	must(t, os.WriteFile(log, bytes.Repeat([]byte("a line\n"), 1000), 0o600))
	s.Progress = func(stage string, _, _ int64) {
		if stage == "copying files" {
			must(t, os.WriteFile(log, []byte("the last line\n"), 0o600))
		}
	}
	for _, name := range []string{"trusted", "sessions", "memory", "locations.json"} {
		must(t, os.RemoveAll(filepath.Join(s.Dir, name))) // the log is the only file
	}
	path, _ := backUp(t, s)
	to := Target{Dir: filepath.Join(t.TempDir(), "r")}
	_, err := to.ReadFile(t.Context(), path)
	must(t, err)
	if text, err := os.ReadFile(filepath.Join(to.Dir, "engine.log")); err != nil || string(text) != "the last line\n" {
		t.Errorf("the log holds %q, %v", text, err)
	}
}

func TestACancelledBackupAndRestoreLeaveNothing(t *testing.T) {
	s := newData(t, 3)
	good, _ := backUp(t, s)
	for _, stage := range []string{"copying the log", "copying files", "writing the log", "checking the backup", "reading the backup"} {
		t.Run(stage, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("interrupted")
			dir, seen := t.TempDir(), false
			tell := func(at string, _, _ int64) {
				if at == stage {
					seen = true
					cancel(stop)
				}
			}
			s.Progress = tell
			var err error
			if stage == "reading the backup" {
				_, err = Target{Dir: filepath.Join(dir, "r"), Progress: tell}.ReadFile(ctx, good)
			} else {
				_, err = s.WriteFile(ctx, filepath.Join(dir, "b"), false)
			}
			if list := names(t, dir); !seen || !errors.Is(err, stop) || len(list) > 0 {
				t.Errorf("error %v, left %v", err, list)
			}
		})
	}
}

// runVictim backs up or restores, and is killed at the given report of its progress.
func runVictim(what string) {
	verb, at, _ := strings.Cut(what, " ")
	last, _ := strconv.Atoi(at)
	n := 0
	die := func(string, int64, int64) {
		if n++; n == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	var err error
	if verb == "backup" {
		dir := os.Getenv("BACKUP_TEST_DIR")
		s := Source{Dir: dir, Store: filepath.Join(dir, "abide.db"), Progress: die}
		_, err = s.WriteFile(context.Background(), os.Getenv("BACKUP_TEST_FILE"), false)
	} else {
		t := Target{Dir: os.Getenv("BACKUP_TEST_DIR"), Progress: die}
		_, err = t.ReadFile(context.Background(), os.Getenv("BACKUP_TEST_FILE"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// victim runs a process that is killed at the n-th report of its progress, and reports
// whether it was.
func victim(t *testing.T, verb string, n int, dir, file string) (killed bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("BACKUP_TEST_KILL=%s %d", verb, n), "BACKUP_TEST_DIR="+dir, "BACKUP_TEST_FILE="+file)
	out, err := c.CombinedOutput()
	exit, is := errors.AsType[*exec.ExitError](err)
	killed = is && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Fatalf("%s, killed at %d: %v\n%s", verb, n, err, out)
	}
	return killed
}

func TestABackupThatIsKilledAtAnyStepLeavesNoBackup(t *testing.T) {
	s := newData(t, 3)
	dir := t.TempDir()
	path := filepath.Join(dir, "b")
	n := 1
	for ; victim(t, "backup", n, s.Dir, path); n++ {
		if _, err := os.Lstat(path); err == nil {
			t.Fatalf("killed at %d, there is a backup", n)
		}
		if list := names(t, dir); len(list) != 1 {
			t.Fatalf("killed at %d, there is %v", n, list)
		}
	}
	if n < 10 {
		t.Errorf("it was killed only %d times", n-1)
	}
	if list := names(t, dir); !slices.Equal(list, []string{"b"}) {
		t.Errorf("at the end there is %v", list)
	}
	if r, err := (Target{Dir: filepath.Join(t.TempDir(), "r")}).ReadFile(t.Context(), path); err != nil || r.Sessions != 3 {
		t.Errorf("restored %+v, %v", r, err)
	}
}

func TestARestoreThatIsKilledAtAnyStepLeavesNoFolder(t *testing.T) {
	s := newData(t, 3)
	path, _ := backUp(t, s)
	dir := t.TempDir()
	to := filepath.Join(dir, "r")
	n := 1
	for ; victim(t, "restore", n, to, path); n++ {
		if _, err := os.Lstat(to); err == nil {
			t.Fatalf("killed at %d, there is a folder", n)
		}
	}
	if n < 5 {
		t.Errorf("it was killed only %d times", n-1)
	}
	if list := names(t, dir); !slices.Equal(list, []string{"r"}) {
		t.Errorf("at the end there is %v", list)
	}
	addSession(t, filepath.Join(to, "abide.db"), "after")
}

// Commands can give files names of any bytes. One of them must not keep everything else from
// being backed up, least of all in a stream, which nobody reads back.
func TestAFileOfAnyNameIsBackedUpAndRestored(t *testing.T) {
	s := newData(t, 1)
	names := []string{"a\xffb", "\xff\xfe/\xf0(", "a\nb", " ", "...", `a\b`, "manifest.json", strings.Repeat("x", 255), strings.Repeat(strings.Repeat("y", 200)+"/", 15) + "f"}
	for _, name := range names {
		path := filepath.Join(s.Dir, "sessions", "s0", "files", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(name), 0o600))
	}
	var stream bytes.Buffer
	_, err := s.Write(t.Context(), &stream)
	must(t, err)
	written := filepath.Join(t.TempDir(), "written")
	_, err = s.WriteFile(t.Context(), written, false)
	must(t, err)
	for from, restore := range map[string]func(Target) (Report, error){
		"stream": func(to Target) (Report, error) { return to.Read(t.Context(), &stream) },
		"file":   func(to Target) (Report, error) { return to.ReadFile(t.Context(), written) },
	} {
		to := Target{Dir: filepath.Join(t.TempDir(), "restored")}
		_, err := restore(to)
		must(t, err)
		for _, name := range names {
			if got, err := os.ReadFile(filepath.Join(to.Dir, "sessions", "s0", "files", name)); string(got) != name || err != nil {
				t.Errorf("restored from the %s, %q holds %q, %v", from, name, got, err)
			}
		}
	}
}
