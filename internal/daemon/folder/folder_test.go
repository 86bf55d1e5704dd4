package folder

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("FOLDER_TEST_HOLD"); dir != "" {
		hold(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestOpenMakesAPrivateFolder(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "a", "b")
	open(t, absent)
	wide := t.TempDir()
	if err := os.Chmod(wide, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, wide)
	for _, dir := range []string{absent, wide} {
		if got := mode(t, dir).Perm(); got != 0o700 {
			t.Errorf("%s has mode %o", dir, got)
		}
	}
}

func TestOpenLeavesTheModeOfAHomeAlone(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, home)
	if got := mode(t, home).Perm(); got != 0o755 {
		t.Errorf("the home directory has mode %o", got)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ dir, want string }{
		"a file":        {file, "is not a directory: move the file away or choose another folder with ABIDE_HOME"},
		"in a file":     {file + "/x", "is not a directory"},
		"shared":        {shared, "is shared with other users: name a folder inside it"},
		"all the files": {"/", "is shared with other users"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Open(test.dir)
			if err == nil || !strings.HasPrefix(err.Error(), "data folder "+test.dir+" "+test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestOpenSaysThatThereIsNoPermission(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() == 0 {
		nobody(t, dir)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	for _, path := range []string{dir, filepath.Join(dir, "below")} {
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), "cannot be used by you: change its owner or mode, or choose another folder with ABIDE_HOME (") {
			t.Errorf("error %v", err)
		}
	}
}

// nobody gives dir to a user without rights, whom the test becomes.
func nobody(t *testing.T, dir string) {
	const uid = 65534
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Skipf("this needs another user: %v", err)
	}
	if err := syscall.Setreuid(-1, uid); err != nil {
		t.Skipf("this needs another user: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Setreuid(-1, 0); err != nil {
			t.Fatal(err)
		}
	})
}

func TestExplainKnowsTheUsualTroubles(t *testing.T) {
	tests := map[syscall.Errno]string{
		syscall.EROFS:      "is read-only",
		syscall.ENOSPC:     "is on a full disk",
		syscall.EDQUOT:     "is over its quota",
		syscall.ENOLCK:     "is on a file system without locks",
		syscall.EOPNOTSUPP: "is on a file system without locks",
		syscall.ENOSYS:     "is on a file system without locks",
		syscall.EPERM:      "cannot be used by you",
		syscall.EIO:        "", // anything else is told as it is
	}
	for cause, want := range tests {
		got := explain("/d", &fs.PathError{Op: "open", Path: "/d/lock", Err: cause}).Error()
		if !strings.HasPrefix(got, strings.TrimSpace("data folder /d "+want)) || !strings.Contains(got, cause.Error()) {
			t.Errorf("%v is explained as %q", cause, got)
		}
	}
	if explain("/d", nil) != nil {
		t.Error("no error is explained as one")
	}
}

func TestSessionNames(t *testing.T) {
	long := strings.Repeat("x", 65)
	tests := map[string]string{
		"8745fa37-0000-4000-8000-000000000000": "8745fa37-0000-4000-8000-000000000000",
		"my_session-1":                         "my_session-1",
		long[:64]:                              long[:64],
		long:                                   long[:32] + ".",
		"UPPER":                                "upper.",
		"../../etc/passwd":                     "etcpasswd.",
		"..":                                   ".",
		"":                                     ".",
		"a\x00b":                               "ab.",
		"Grüße":                                "gre.",
	}
	for id, want := range tests {
		got := fileName(id)
		if strings.HasSuffix(want, ".") && len(got) == len(want)+64 {
			got = got[:len(want)]
		}
		if got != want {
			t.Errorf("%q is named %q, want %q", id, fileName(id), want)
		}
	}
}

func TestMakeSessionStaysInTheFolder(t *testing.T) {
	f := open(t, t.TempDir())
	dir, err := f.MakeSession("../../../x")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(dir) != filepath.Join(f.Dir(), "sessions") || mode(t, dir) != fs.ModeDir|0o700 || dir != f.Session("../../../x") {
		t.Errorf("made %s with mode %v", dir, mode(t, dir))
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("a", "A")
	f.Add("../x", "..\\x")
	f.Add(strings.Repeat("y", 300), strings.Repeat("y", 301))
	f.Add("a.ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", "a")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := fileName(a), fileName(b)
		if a != b && strings.EqualFold(x, y) {
			t.Fatalf("%q and %q have the same name %q", a, b, x)
		}
		if x == "" || x == "." || x == ".." || len(x) > 100 || strings.ContainsAny(x, "/\\\x00:") || x != filepath.Base(x) {
			t.Fatalf("%q is named %q", a, x)
		}
	})
}

func TestPaths(t *testing.T) {
	f := open(t, t.TempDir())
	if got := f.Database(); got != filepath.Join(f.Dir(), "abide.db") {
		t.Errorf("the database is at %s", got)
	}
	if !filepath.IsAbs(f.Dir()) {
		t.Errorf("the folder is %s", f.Dir())
	}
}
