package keeper_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process/keeper"
	_ "github.com/abide-run/abide/internal/process/outlog" // stands for the other packages of a daemon
	_ "golang.org/x/sys/unix"
	_ "net/http"
)

const module = "github.com/abide-run/abide/internal/process/"

// Packages that a keeper imports are initialised before it, and so are the packages
// that come before those in the alphabet. Package bytes, with unicode, takes only a
// few microseconds; reflect, and packages that need it, would take long.
func TestAKeeperImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"keeper").Output()
	if err != nil {
		t.Skipf("skipped: what is imported, because go list does not run here: %v", err)
	}
	ours := []string{"cgroup", "identity", "keeper", "output", "record", "sandbox/confine", "sys"}
	heavy := []string{"encoding/binary", "fmt", "net", "reflect", "sort", "strings"}
	for name := range strings.FieldsSeq(string(out)) {
		if part, ok := strings.CutPrefix(name, module); ok {
			if !slices.Contains(ours, part) {
				t.Errorf("a keeper imports %s", name)
			}
			continue
		}
		if strings.Contains(name, ".") || slices.Contains(heavy, name) {
			t.Errorf("a keeper imports %s", name)
		}
	}
}

// The test program is started as a keeper without a launch socket. It ends at once,
// and the runtime has listed the packages that were initialised until then.
func TestAKeeperRunsBeforeOtherPackagesAreInitialised(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{keeper.Name}
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	said, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
	if err := cmd.Run(); err == nil {
		t.Error("a keeper without a folder did its work")
	}
	text, err := os.ReadFile(said.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "init os ") || !strings.Contains(string(text), "keeper: take the launch: ") {
		t.Fatalf("it said %s", text)
	}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(line, "init ")
		name, _, _ = strings.Cut(name, " ")
		switch {
		case !ok || strings.HasPrefix(name, module):
		case strings.Contains(name, "."), name == "reflect", name == "net", name == "net/http", name == "testing", name == "fmt":
			t.Errorf("%s was initialised before", name)
		}
	}
}
