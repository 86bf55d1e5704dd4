package scope_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
)

const secret = "secret"

// A testTree is a tree with a folder that may be used and one that may not.
//
//	in/            allowed to write
//	in/file        "public"
//	in/folder/file "public"
//	in/denied/     denied, with a secret file
//	in/quiet       denied to write
//	out/file       "secret"
type testTree struct {
	*scope.Scope
	in, out string
}

func newTestTree(t testing.TB) testTree {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := testTree{in: filepath.Join(root, "in"), out: filepath.Join(root, "out")}
	for name, text := range map[string]string{
		"in/file": "public", "in/folder/file": "public", "in/quiet": "public", "in/denied/file": secret, "out/file": secret, "out/folder/file": secret,
	} {
		put(t, filepath.Join(root, name), text)
	}
	w.Scope = newScope(t, []scope.Rule{{Target: w.in, Mode: scope.Write}},
		[]scope.Rule{{Target: w.in + "/denied", Mode: scope.Read}, {Target: w.in + "/quiet", Mode: scope.Write}})
	return w
}

func newScope(t testing.TB, allow, deny []scope.Rule) *scope.Scope {
	s, err := scope.New(allow, deny)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, path string) {
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(s *scope.Scope, path string) (string, error) {
	data, err := s.ReadFile(path, 1<<20)
	return string(data), err
}

// mustRefuse checks that every kind of access to a path is refused.
func (w testTree) mustRefuse(t *testing.T, path string) {
	t.Helper()
	if f, err := w.Judge(path, scope.Read); err == nil && f.Verdict == scope.Allowed {
		t.Errorf("%s is judged to be allowed, leading to %s", path, f.Path)
	}
	if text, err := read(w.Scope, path); err == nil {
		t.Errorf("%s was read: %q", path, text)
	}
	if _, err := w.Stat(path); err == nil {
		t.Errorf("%s was looked at", path)
	}
	if d, err := w.OpenDir(path); err == nil {
		_ = d.Close()
		t.Errorf("%s was opened as a folder", path)
	}
	for _, old := range [][]byte{nil, []byte(secret), []byte("public")} {
		if err := w.Apply(scope.Change{Path: path, Old: old, New: []byte("overwritten")}); err == nil {
			t.Errorf("%s was written", path)
		}
		if err := w.Apply(scope.Change{Path: path, Old: old}); old != nil && err == nil {
			t.Errorf("%s was removed", path)
		}
	}
	w.checkOutside(t)
}

// checkOutside checks that the files outside have not changed.
func (w testTree) checkOutside(t *testing.T) {
	t.Helper()
	for _, path := range []string{w.out + "/file", w.out + "/folder/file", w.in + "/denied/file"} {
		if got := content(t, path); got != secret {
			t.Errorf("%s holds %q", path, got)
		}
	}
	entries, err := os.ReadDir(w.out)
	if err != nil || len(entries) != 2 {
		t.Errorf("outside there is %v, %v", entries, err)
	}
}

func TestPathsThatLeadOutsideAreRefused(t *testing.T) {
	w := newTestTree(t)
	for name, target := range map[string]string{
		"absolute":        w.out + "/file",
		"absolute-folder": w.out,
		"relative":        "../out/file",
		"relative-folder": "../out",
		"dots":            "folder/../../out/file",
		"chain-1":         "chain-2",
		"chain-2":         "folder/chain-3",
		"folder/chain-3":  "../../out/file",
		"loop-1":          "loop-2",
		"loop-2":          "loop-1",
		"self":            "self",
		"root":            "/",
		"nowhere":         "../out/new",
		"to-denied":       "denied/file",
		"denied/back":     "../folder/file",
		"to-denied-dir":   "denied",
		"proc":            "/proc/self/root" + w.out + "/file",
		"through-proc":    "/proc/self/root",
		"cwd":             "/proc/self/cwd",
		"empty-name":      "../out//file/.",
		"physical":        "relative-folder/../in/denied/file",
		"far-up":          strings.Repeat("../", 60) + "etc/passwd",
		"long":            strings.Repeat("./", 2000) + "../out/file",
	} {
		link(t, target, filepath.Join(w.in, name))
	}
	for _, path := range []string{
		"../out/file", "folder/../../out/file", "absolute", "absolute-folder", "absolute-folder/file",
		"absolute-folder/folder/../file", "relative", "relative-folder/file", "dots", "chain-1", "chain-2",
		"loop-1", "loop-1/file", "self", "root", "root" + w.out + "/file", "root/etc/passwd", "nowhere",
		"denied/back", "to-denied-dir/back", "to-denied", "to-denied-dir", "to-denied-dir/file", "denied", "denied/file", "denied/new",
		"denied/../denied/file", "folder/../denied/file", "physical",
		"proc", "through-proc" + w.out + "/file", "cwd/escape_test.go", "empty-name", "far-up", "long",
		"DENIED/file", "Denied/file", "file/../../out/file/.", "..", "../", "../in/../out",
	} {
		w.mustRefuse(t, w.in+"/"+path)
	}
	for _, path := range []string{
		"/", "/etc/passwd", "/proc/self/environ", w.out, w.out + "/file", w.in + "side", w.in + "x/file",
		strings.ToUpper(w.in) + "/file", w.in[:len(w.in)-1], "file", "./file", "", "in/file",
	} {
		w.mustRefuse(t, path)
	}
}

func TestPathsThatStayInsideAreAllowed(t *testing.T) {
	w := newTestTree(t)
	for name, target := range map[string]string{
		"to-file":      "file",
		"to-folder":    "folder",
		"absolute":     w.in + "/file",
		"out-and-in":   "../in/file",
		"folder/up":    "../file",
		"through-root": "/proc/self/root" + w.in + "/file",
	} {
		link(t, target, filepath.Join(w.in, name))
	}
	link(t, w.in, w.out+"-link")
	for _, path := range []string{
		w.in + "/file", w.in + "/./folder/../file", w.in + "//file", w.in + "/to-file", w.in + "/to-folder/file",
		w.in + "/absolute", w.in + "/out-and-in", w.in + "/folder/up", w.in + "/through-root",
		w.out + "-link/file", w.out + "-link/folder/up", w.in + "/quiet",
	} {
		if text, err := read(w.Scope, path); err != nil || text != "public" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if err := w.Apply(scope.Change{Path: w.in + "/quiet", Old: []byte("public"), New: []byte("loud")}); err == nil {
		t.Error("a file that may only be read was written")
	}
}

func TestNamesAreBytes(t *testing.T) {
	root := t.TempDir()
	composed, decomposed := "caf\u00e9", "cafe\u0301"
	for _, name := range []string{composed, decomposed, "Kelvin", "\u212aelvin", "work", "WORK", "wor\u200bk"} {
		put(t, filepath.Join(root, name, "file"), name)
	}
	allow := func(name string) *scope.Scope {
		return newScope(t, []scope.Rule{{Target: filepath.Join(root, name), Mode: scope.Write}}, nil)
	}
	for _, test := range []struct{ allowed, other string }{
		{composed, decomposed}, {decomposed, composed}, {"Kelvin", "\u212aelvin"}, {"work", "WORK"}, {"work", "wor\u200bk"}, {"work", "work "},
	} {
		s := allow(test.allowed)
		if _, err := read(s, filepath.Join(root, test.allowed, "file")); err != nil {
			t.Error(err)
		}
		if text, err := read(s, filepath.Join(root, test.other, "file")); err == nil {
			t.Errorf("%q is allowed and %q was read: %q", test.allowed, test.other, text)
		}
	}
}

func TestADenialHoldsUnderOtherNames(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(w testTree) (string, error)
	}{
		{"renamed", func(w testTree) (string, error) {
			return "new/file", os.Rename(w.in+"/denied", w.in+"/new")
		}},
		{"renamed into a folder", func(w testTree) (string, error) {
			return "folder/below/file", os.Rename(w.in+"/denied", w.in+"/folder/below")
		}},
		{"replaced", func(w testTree) (string, error) {
			return "denied/file", errors.Join(os.RemoveAll(w.in+"/denied"), os.Mkdir(w.in+"/denied", 0o755), os.WriteFile(w.in+"/denied/file", []byte(secret), 0o644))
		}},
		{"replaced by a link", func(w testTree) (string, error) {
			return "folder/below/file", errors.Join(os.Rename(w.in+"/denied", w.in+"/folder/below"), os.Symlink("folder/below", w.in+"/denied"))
		}},
		{"spelled in another case", func(w testTree) (string, error) {
			return "dENIED/file", errors.Join(os.Mkdir(w.in+"/dENIED", 0o755), os.WriteFile(w.in+"/dENIED/file", []byte(secret), 0o644))
		}},
		{"a link in its place leads inside", func(w testTree) (string, error) {
			return "denied/file", errors.Join(os.Rename(w.in+"/denied", w.in+"/elsewhere"), os.Symlink("folder", w.in+"/denied"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newTestTree(t)
			path, err := test.change(w)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := read(w.Scope, filepath.Join(w.in, path)); err == nil {
				t.Errorf("%s was read: %q", path, text)
			}
			if text := strings.Join(readAll(t, w.Scope, w.in), " "); strings.Contains(text, secret) {
				t.Errorf("a walk read %q", text)
			}
		})
	}
}

func TestADeniedFileIsDeniedUnderItsHardLinks(t *testing.T) {
	w := newTestTree(t)
	s := newScope(t, []scope.Rule{{Target: w.in, Mode: scope.Read}}, []scope.Rule{{Target: w.in + "/denied/file", Mode: scope.Read}})
	if err := os.Link(w.in+"/denied/file", w.in+"/hard"); err != nil {
		t.Fatal(err)
	}
	if text, err := read(s, w.in+"/hard"); err == nil {
		t.Errorf("read %q", text)
	}
	if all := readAll(t, s, w.in); strings.Contains(strings.Join(all, " "), secret) {
		t.Errorf("a walk read %q", all)
	}
}

// readAll reads all files below a folder.
func readAll(t testing.TB, s *scope.Scope, path string) []string {
	d, err := s.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return walk(t, d)
}

func walk(t testing.TB, d *scope.Dir) (texts []string) {
	defer func() { _ = d.Close() }()
	if err := d.Each(make([]byte, 1<<12), func(name []byte, kind scope.Kind) bool {
		if below, err := d.Dir(string(name)); err == nil {
			texts = append(texts, walk(t, below)...)
		}
		if f, err := d.Open(string(name)); err == nil {
			text, err := io.ReadAll(f)
			if err != nil {
				t.Error(err)
			}
			texts = append(texts, string(text))
			_ = f.Close()
		}
		return true
	}); err != nil {
		t.Error(err)
	}
	return texts
}

func TestAWalkStaysInside(t *testing.T) {
	w := newTestTree(t)
	link(t, w.out, w.in+"/link")
	link(t, w.out+"/file", w.in+"/folder/link")
	if got := readAll(t, w.Scope, w.in); len(got) != 3 || strings.Contains(strings.Join(got, ""), secret) {
		t.Errorf("read %q", got)
	}
}

func TestSpecialFilesAreRefusedWithoutBlocking(t *testing.T) {
	w := newTestTree(t)
	if err := syscall.Mkfifo(w.in+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", w.in+"/sock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	link(t, "fifo", w.in+"/to-fifo")
	s := newScope(t, []scope.Rule{{Target: w.in, Mode: scope.Write}, {Target: "/dev", Mode: scope.Write}}, nil)
	for _, path := range []string{w.in + "/fifo", w.in + "/sock", w.in + "/to-fifo", "/dev/null", "/dev/zero", "/dev/tty"} {
		if _, err := s.Open(path); !errors.Is(err, scope.ErrSpecial) {
			t.Errorf("open %s: %v", path, err)
		}
		if err := s.Apply(scope.Change{Path: path, Old: []byte{}, New: []byte("x")}); !errors.Is(err, scope.ErrSpecial) {
			t.Errorf("write %s: %v", path, err)
		}
		if i, err := s.Stat(path); err != nil || i.Kind != scope.Special {
			t.Errorf("stat %s: %v, %v", path, i, err)
		}
	}
	d, err := s.OpenDir(w.in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if _, err := d.Open("fifo"); !errors.Is(err, scope.ErrSpecial) {
		t.Errorf("open in the folder: %v", err)
	}
}

func TestPathsInProcAreFollowed(t *testing.T) {
	w := newTestTree(t)
	f, err := os.Open(w.out + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s := newScope(t, []scope.Rule{{Target: "/proc", Mode: scope.Read}, {Target: "/dev", Mode: scope.Read}, {Target: w.in, Mode: scope.Read}}, nil)
	for _, path := range []string{
		fmt.Sprintf("/proc/self/fd/%d", f.Fd()), fmt.Sprintf("/dev/fd/%d", f.Fd()), fmt.Sprintf("/proc/thread-self/fd/%d", f.Fd()),
		"/proc/self/root" + w.out + "/file", "/proc/self/cwd/escape_test.go", "/proc/self/exe",
	} {
		var refused *scope.Refusal
		if text, err := read(s, path); !errors.As(err, &refused) {
			t.Errorf("%s: %d bytes, %v", path, len(text), err)
		}
	}
	if text, err := read(s, "/proc/self/root"+w.in+"/file"); err != nil || text != "public" {
		t.Errorf("a way through /proc to what is allowed: %q, %v", text, err)
	}
}

func TestOddPathsAreRefused(t *testing.T) {
	w := newTestTree(t)
	for path, want := range map[string]string{
		w.in + "/a\x00b":                         "NUL",
		w.in + strings.Repeat("/folder/..", 600): "too long",
		w.in + "/" + strings.Repeat("x", 300):    "too long",
		w.in + strings.Repeat("/x", 3000):        "too long",
		"relative":                               "absolute",
		"":                                       "absolute",
		w.in + "/file/below":                     "not a directory",
		w.in + "/none/below":                     "no such file",
	} {
		if _, err := read(w.Scope, path); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 700 {
			t.Errorf("%.60q: %v, want %q", path, err, want)
		}
	}
	deep := w.in
	for range 300 {
		deep += "/d"
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := read(w.Scope, deep+"/file"); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a way through 300 folders: %v", err)
	}
}

func TestARefusalSaysWhereThePathLeadsAndWhatToDo(t *testing.T) {
	w := newTestTree(t)
	link(t, w.out+"/file", w.in+"/link")
	_, err := w.Open(w.in + "/link")
	var r *scope.Refusal
	if !errors.As(err, &r) || r.Verdict != scope.Unlisted || r.Path != w.out+"/file" || !strings.Contains(err.Error(), w.out) || !strings.Contains(err.Error(), "scope.allow") {
		t.Errorf("outside: %v", err)
	}
	_, err = w.Open(w.in + "/folder/../denied/file")
	if !errors.As(err, &r) || r.Verdict != scope.Denied || r.Rule != w.in+"/denied" || !strings.Contains(err.Error(), "denies "+w.in+"/denied") {
		t.Errorf("denied: %v", err)
	}
}

func TestWithAllowsOnePathButNoDeniedOne(t *testing.T) {
	w := newTestTree(t)
	link(t, w.out+"/file", w.in+"/link")
	found, err := w.Judge(w.in+"/link", scope.Read)
	if err != nil || found.Verdict != scope.Unlisted {
		t.Fatal(found, err)
	}
	s := w.With(found.Path, scope.Read)
	if text, err := read(s, w.in+"/link"); err != nil || text != secret {
		t.Errorf("granted: %q, %v", text, err)
	}
	if _, err := read(s, w.out+"/folder/file"); err == nil {
		t.Error("another file was read")
	}
	if err := s.Apply(scope.Change{Path: w.out + "/file", Old: []byte(secret), New: []byte("x")}); err == nil {
		t.Error("reading was granted, and it was written")
	}
	if err := os.Remove(w.in + "/link"); err != nil {
		t.Fatal(err)
	}
	link(t, w.out+"/folder/file", w.in+"/link")
	if _, err := read(s, w.in+"/link"); err == nil {
		t.Error("a link that was turned elsewhere was followed")
	}
	if _, err := read(w.With(w.in+"/denied", scope.Write), w.in+"/denied/file"); err == nil {
		t.Error("a grant undid a denial")
	}
	if _, err := read(w.Scope, w.out+"/file"); err == nil {
		t.Error("a grant changed the scope it was made from")
	}
}

func TestATargetIsFollowedOnce(t *testing.T) {
	w := newTestTree(t)
	link(t, w.in, w.out+"-link")
	s := newScope(t, []scope.Rule{{Target: w.out + "-link", Mode: scope.Read}}, nil)
	if _, err := read(s, w.in+"/file"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(w.out + "-link"); err != nil {
		t.Fatal(err)
	}
	link(t, w.out, w.out+"-link")
	for _, path := range []string{w.out + "-link/file", w.out + "/file"} {
		if text, err := read(s, path); err == nil {
			t.Errorf("%s: %q", path, text)
		}
	}
}

func TestAMissingFileIsMissing(t *testing.T) {
	w := newTestTree(t)
	if _, err := w.Open(w.in + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := w.OpenDir(w.in + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if f, err := w.Judge(w.in+"/none/below", scope.Write); err != nil || f.Verdict != scope.Allowed || f.Path != w.in+"/none/below" {
		t.Error(f, err)
	}
	if _, err := w.Open(w.in); !errors.Is(err, syscall.EISDIR) {
		t.Error(err)
	}
	if _, err := w.OpenDir(w.in + "/file"); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
}

func TestRulesHaveAbsoluteTargets(t *testing.T) {
	for _, target := range []string{"", "x", "./x", "~/x", "/a\x00"} {
		if _, err := scope.New([]scope.Rule{{Target: target}}, nil); err == nil {
			t.Errorf("allow %q", target)
		}
		if _, err := scope.New(nil, []scope.Rule{{Target: target}}); err == nil {
			t.Errorf("deny %q", target)
		}
	}
}

func FuzzPathsThatLeadOutside(f *testing.F) {
	for _, path := range []string{"file", "../out/file", "link/file", "a/../../out", "/proc/self/root", "denied/file", "\x00", "loop"} {
		f.Add(path)
	}
	w := newTestTree(f)
	link(f, "../out", w.in+"/link")
	link(f, "loop", w.in+"/loop")
	f.Fuzz(func(t *testing.T, path string) {
		for _, path := range []string{w.in + "/" + path, path, w.in + "/link/" + path} {
			if text, err := read(w.Scope, path); err == nil && text != "public" {
				t.Errorf("%q gave %q", path, text)
			}
			if err := w.Apply(scope.Change{Path: path, Old: []byte(secret), New: []byte("x")}); err == nil {
				t.Errorf("%q was written", path)
			}
		}
	})
}
