package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A folder for caches that is in a folder that commands can write, such as /tmp, can be a link
// to anything when the next command is started.
func TestALinkInThePlaceOfACacheGivesNoRights(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	tmp, victim, root := base+"/tmp", base+"/victim", base+"/work"
	for _, dir := range []string{tmp, tmp + "/cache", victim, root, base + "/home"} {
		must(t, os.Mkdir(dir, 0o755))
	}
	must(t, os.Symlink(tmp+"/cache", base+"/home/.cache"))
	for name, cache := range map[string]string{"a temporary folder": tmp + "/cache", "a link to one": base + "/home/.cache"} {
		s := Open(Options{Temp: []string{tmp}, Cache: cache, ABI: func() int { return 6 }})
		r := Request{Root: root, Env: []string{"A=b"}}
		env := s.withCache(new(plan), r) // makes the folder, as a plan would that lets nothing else be written
		dir := strings.TrimPrefix(env[1], "XDG_CACHE_HOME=")
		must(t, os.RemoveAll(dir))
		must(t, os.Symlink(victim, dir))
		p := s.plan(r)
		if env := s.withCache(&p, r); !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "GOCACHE="+cache) }) {
			t.Errorf("%s: the environment is %q", name, env)
		}
		if slices.Contains(p.optional, victim) {
			t.Errorf("%s: commands may write %s", name, victim)
		}
		must(t, os.Remove(dir))
	}
	// Links of the user count.
	must(t, os.Symlink(victim, base+"/mine"))
	s := Open(Options{Temp: []string{tmp}, Cache: base + "/mine", ABI: func() int { return 6 }})
	r := Request{Root: root}
	p := s.plan(r)
	s.withCache(&p, r)
	if !slices.ContainsFunc(p.optional, func(path string) bool { return filepath.Dir(path) == victim }) {
		t.Errorf("commands may write %q, and not the folder for caches", p.optional)
	}
}

func TestAFolderInTheDataFolderHoldsLittle(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	data := base + "/data"
	must(t, os.MkdirAll(data+"/processes", 0o755))
	s := Open(Options{Mode: Require, Hidden: []string{data}, Temp: []string{}, ABI: func() int { return 6 }})
	if _, err := s.Confine(Request{Root: data + "/processes"}); err == nil || !strings.Contains(err.Error(), "may not read") {
		t.Errorf("a working directory in the data folder: %v", err)
	}
	if p := s.plan(Request{Root: base, Env: []string{"TMPDIR=" + data + "/processes"}}); slices.Contains(p.optional, data+"/processes") {
		t.Error("a temporary folder in the data folder can be written")
	}
}
