package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/instant"
)

func TestStartsAreMeasured(t *testing.T) {
	for _, row := range startRows {
		t.Run(row.name, func(t *testing.T) {
			s := &starter{dir: t.TempDir()}
			err := try(func() {
				if m := compare.Measure(row.side(s)); m.Turns != 1 || m.Wall == 0 {
					t.Errorf("measured %+v", m)
				}
				s.close()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNothingIsLeftOfManyCommands(t *testing.T) {
	for name, together := range map[string]bool{"one after the other": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			if err := try(func() { runMany(place{dir: t.TempDir()}, 60, together) }); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatIsLeftOfACommandIsNoticed(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "p1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := temporary(dir, 1, 0); err != nil {
		t.Error(err)
	}
	if err := temporary(dir, 0, 0); err == nil {
		t.Error("a process was not noticed")
	}
	if err := os.WriteFile(filepath.Join(dir, "p1", "claim.17"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := temporary(dir, 1, 0); err == nil {
		t.Error("a temporary file was not noticed")
	}
}

// An output that is small enough for a test is large enough for the model to get its
// ends only, and for its log to lose its middle.
func TestABigOutputIsMeasuredAndChecked(t *testing.T) {
	abide := filepath.Join(t.TempDir(), "abide")
	if out, err := exec.Command("go", "build", "-o", abide, "../cmd/abide").CombinedOutput(); err != nil {
		t.Skipf("skipped: the program could not be built: %v, %s", err, out)
	}
	server, err := instant.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	at := place{dir: t.TempDir(), url: server.URL}
	for name, f := range map[string]bigOutput{
		"kept": {"", printBetween("yes | head -c 1000000"), 2_000_000},
		"cut":  {"", printBetween("head -c 100000000 /dev/zero"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			err := try(func() {
				d := f.start(at, abide)
				defer d.stop()
				w := d.weigh(f)
				if w.daemon < 0 || w.keeper <= w.private || w.private <= 0 || w.kept < 1_000_000 {
					t.Errorf("it weighs %+v", w)
				}
				for _, side := range []compare.Side{d.side(f), f.pipe(at.dir)} {
					if s := compare.Measure(side); s.Turns != 1 {
						t.Errorf("measured %+v", s)
					}
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestABeginningOrAnEndThatIsMissingIsNoticed(t *testing.T) {
	whole := first + "\nx\n[omitted 9 bytes]\nx\n" + last + "\n<exited with exit code 0>"
	if err := checkEnds(whole); err != nil {
		t.Error(err)
	}
	for _, part := range []string{first, "[omitted 9 bytes]", last} {
		if err := checkEnds(strings.Replace(whole, part, "", 1)); err == nil {
			t.Errorf("%q was not missed", part)
		}
	}
	if err := checkEnds(whole + strings.Repeat("x", 40<<10)); err == nil {
		t.Error("nobody noticed that it is too long")
	}
}

// try returns the error that must gave up with.
func try(f func()) (err error) {
	defer stopping(&err)
	f()
	return nil
}
