package seal

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// victimVariables name the file that a process makes, and the step at which it is killed.
const (
	victimFile = "SEAL_TEST_FILE"
	victimStep = "SEAL_TEST_STEP"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimFile); path != "" {
		atStep = func(step string) {
			if step == os.Getenv(victimStep) {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		if f, err := OpenFile(path); err == nil {
			f.Ready()
		}
		return
	}
	os.Exit(m.Run())
}

// ready opens a key file that can seal.
func ready(t testing.TB, path string) *File {
	t.Helper()
	f, err := OpenFile(path)
	if err == nil {
		_, err = f.Ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func sealed(t testing.TB, f *File, value string, labels ...string) []byte {
	t.Helper()
	b, err := f.Seal([]byte(value), labels...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAValueIsOpenedOnlyUnderItsLabels(t *testing.T) {
	f := ready(t, filepath.Join(t.TempDir(), FileName))
	for _, value := range []string{"", "value", strings.Repeat("long ", 10_000)} {
		b := sealed(t, f, value, "session", "name")
		if got, err := f.Open(b, "session", "name"); err != nil || got == nil || string(got) != value {
			t.Errorf("%.10q was opened as %.10q, %v", value, got, err)
		}
		if len(value) > 0 && bytes.Contains(b, []byte(value)) {
			t.Errorf("%.10q is in the sealed value", value)
		}
		for _, labels := range [][]string{nil, {"session"}, {"session", "other"}, {"other", "name"}, {"name", "session"}, {"sessio", "nname"}, {"sessionname"}, {"session", "name", ""}} {
			if got, err := f.Open(b, labels...); !errors.Is(err, ErrChanged) {
				t.Errorf("under %q it was opened as %.10q, %v", labels, got, err)
			}
		}
	}
}

func TestNoTwoSealedValuesAreTheSame(t *testing.T) {
	f := ready(t, filepath.Join(t.TempDir(), FileName))
	if bytes.Equal(sealed(t, f, "value", "l"), sealed(t, f, "value", "l")) {
		t.Error("the same value was sealed to the same bytes twice")
	}
}

func TestAChangedValueIsRefused(t *testing.T) {
	f := ready(t, filepath.Join(t.TempDir(), FileName))
	b := sealed(t, f, "value", "l")
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1
		if got, err := f.Open(changed, "l"); err == nil {
			t.Errorf("with another byte %d it was opened as %q", i, got)
		}
		if got, err := f.Open(b[:i], "l"); err == nil {
			t.Errorf("with %d bytes it was opened as %q", i, got)
		}
	}
	if got, err := f.Open([]byte("a value in clear"), "l"); !errors.Is(err, ErrChanged) {
		t.Errorf("what was never sealed was opened as %q, %v", got, err)
	}
}

func TestAMissingKeyIsNamed(t *testing.T) {
	dir := t.TempDir()
	one, other := ready(t, filepath.Join(dir, "one")), ready(t, filepath.Join(dir, "other"))
	b := sealed(t, one, "value", "l")
	id, ok := KeyOf(b)
	if !ok || id != one.IDs()[0] {
		t.Fatalf("the value names key %v, %v", id, ok)
	}
	none, err := OpenFile(filepath.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[*File]string{other: "has key " + other.IDs()[0].String(), none: "there is no key file " + none.Path()} {
		_, err := f.Open(b, "l")
		var unknown *UnknownKeyError
		if !errors.As(err, &unknown) || unknown.Key != id || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), id.String()) {
			t.Errorf("error %v; want it to say %q", err, want)
		}
	}
}

// Whoever finds the old key file after a new one was made loses nothing.
func TestAnyKeyOfTheFileOpens(t *testing.T) {
	dir := t.TempDir()
	old, now := ready(t, filepath.Join(dir, "old")), ready(t, filepath.Join(dir, "now"))
	a, b := sealed(t, old, "a", "l"), sealed(t, now, "b", "l")
	both := filepath.Join(dir, "both")
	write(t, both, read(t, now.Path())+"\n"+read(t, old.Path())+read(t, old.Path()))
	f := ready(t, both)
	for want, value := range map[string][]byte{"a": a, "b": b} {
		if got, err := f.Open(value, "l"); err != nil || string(got) != want {
			t.Errorf("opened as %q, %v; want %q", got, err, want)
		}
	}
	if ids := f.IDs(); len(ids) != 2 || ids[0] != now.IDs()[0] {
		t.Errorf("keys %v", ids)
	}
	if id, _ := KeyOf(sealed(t, f, "c", "l")); id != now.IDs()[0] {
		t.Errorf("the first key does not seal, but %v", id)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileIsPrivateAndMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("reading has made it: %v", err)
	}
	if _, err := f.Seal(nil); err == nil {
		t.Error("something was sealed with no key")
	}
	other, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id, err := f.Ready()
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, path)
	if again, err := other.Ready(); err != nil || again != id || read(t, path) != text {
		t.Errorf("a second one has key %v, %v; want %v", again, err, id)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestAFileThatOthersCanReadIsCorrectedAndReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if mode := ready(t, path).Exposed(); mode != 0 {
		t.Errorf("a new file is exposed: %v", mode)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if mode := ready(t, path).Exposed(); mode != 0o644 {
		t.Errorf("exposed with mode %v", mode)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

// A file that is no key file is neither used nor replaced.
func TestABrokenFileIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	whole := read(t, ready(t, filepath.Join(dir, FileName)).Path())
	line := strings.TrimPrefix(whole, heading)
	for name, text := range map[string]string{
		"empty":             "",
		"only the heading":  heading,
		"cut":               whole[:len(whole)-9],
		"mistyped":          heading + line[:len(mark)] + "x" + line[len(mark)+1:],
		"another program's": "-----BEGIN OPENSSH PRIVATE KEY-----\n",
		"a bad second line": whole + "more\n",
		"a short key":       mark + "AAAA\n",
		"large":             whole + strings.Repeat("#\n", maxFile),
	} {
		path := filepath.Join(dir, "broken")
		write(t, path, text)
		if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: error %v", name, err)
		}
		if read(t, path) != text {
			t.Errorf("%s: it was changed", name)
		}
	}
}

func TestWhatCanBeNoKeyFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink("nowhere", link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                              "is not a file",
		pipe:                             "is not a file",
		link:                             "is a link to a file that does not exist",
		filepath.Join(dir, "no", "file"): "its folder does not exist: make or mount it",
	} {
		f, err := OpenFile(path)
		if err == nil {
			_, err = f.Ready()
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q", path, err, want)
		}
	}
}

// A link that leads to a key file is one: the key may be on another disk.
func TestAKeyFileCanBeALink(t *testing.T) {
	dir := t.TempDir()
	real := ready(t, filepath.Join(dir, "real"))
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if ids := ready(t, link).IDs(); len(ids) != 1 || ids[0] != real.IDs()[0] {
		t.Errorf("keys %v", ids)
	}
}

// A process that is killed while it makes the file leaves a whole one or none.
func TestAProcessThatIsKilledLeavesNoPartOfAFile(t *testing.T) {
	for _, step := range []string{"made the draft", "wrote the draft", "synced the draft", "named the file", "synced the folder"} {
		t.Run(step, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), victimFile+"="+path, victimStep+"="+step)
			if err := c.Run(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process was not killed there: %v", err)
			}
			left, err := OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			named := step == "named the file" || step == "synced the folder"
			if (len(left.IDs()) == 1) != named {
				t.Errorf("it has left the keys %v", left.IDs())
			}
			f := ready(t, path)
			if named && f.IDs()[0] != left.IDs()[0] {
				t.Error("another key was made")
			}
			if drafts, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); !named && len(drafts) > 0 {
				t.Errorf("left are %v", drafts)
			}
			if got, err := ready(t, path).Open(sealed(t, f, "v", "l"), "l"); err != nil || string(got) != "v" {
				t.Errorf("opened as %q, %v", got, err)
			}
		})
	}
}

// Servers that start at the same time on one folder agree on a key: no one removes what another
// one is just about to name.
func TestProcessesThatMakeTheFileAtTheSameTimeHaveOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	type made struct {
		id  ID
		err error
	}
	start := func() chan made {
		done := make(chan made, 1)
		f, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		go func() { // the test waits for done
			id, err := f.Ready()
			done <- made{id, err}
		}()
		return done
	}
	drafts := make(chan chan struct{}) // of each process that has made its draft, what lets it go on
	atStep = func(step string) {
		if step == "made the draft" {
			goOn := make(chan struct{})
			drafts <- goOn
			<-goOn
		}
	}
	defer func() { atStep = func(string) {} }()
	first := start()
	firstGoesOn := <-drafts
	second := start()
	secondGoesOn := <-drafts
	close(firstGoesOn)
	a := <-first
	close(secondGoesOn)
	b := <-second
	if a.err != nil || b.err != nil || a.id != b.id {
		t.Errorf("one has the key %v, %v; the other %v, %v", a.id, a.err, b.id, b.err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestAFileIsNotRenamedOntoAnother(t *testing.T) {
	dir := t.TempDir()
	draft, file := filepath.Join(dir, "draft"), filepath.Join(dir, "file")
	write(t, draft, "new")
	write(t, file, "old")
	if err := renameNew(draft, file); !errors.Is(err, fs.ErrExist) || read(t, file) != "old" {
		t.Errorf("renamed: %v; it says %q", err, read(t, file))
	}
	if err := renameNew(draft, filepath.Join(dir, "other")); err != nil || read(t, filepath.Join(dir, "other")) != "new" {
		t.Errorf("renamed: %v", err)
	}
}

func FuzzKeyFile(f *testing.F) {
	f.Add([]byte(heading + encodeKey(make([]byte, 32))))
	f.Add([]byte(mark + "AAAA"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if keys, err := parse(text); err == nil && len(keys) == 0 {
			t.Error("there is neither a key nor an error")
		}
	})
}

func FuzzOpen(f *testing.F) {
	file := ready(f, filepath.Join(f.TempDir(), FileName))
	value := sealed(f, file, "value", "l")
	f.Add(value)
	f.Add(value[:prefix])
	f.Add(append(bytes.Clone(value[:prefix]), make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := file.Open(b, "l"); err == nil && !bytes.Equal(b, value) {
			t.Errorf("%x was opened as %q", b, got)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	f := ready(b, filepath.Join(b.TempDir(), FileName))
	value := bytes.Repeat([]byte("NAME=value\n"), 400)
	for b.Loop() {
		if _, err := f.Seal(value, "session", "env"); err != nil {
			b.Fatal(err)
		}
	}
}
