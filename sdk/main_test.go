package sdk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/abide-run/abide/internal/cli" // with this import a change of the program is a change of its tests, and they run again
)

// abide is the path of the program under test.
var abide string

// TestMain builds the program, runs the tests, and looks for what they left
// behind.
func TestMain(m *testing.M) {
	if path := os.Getenv(adapterFor); path != "" {
		if err := adapt(path, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "abide-sdk-")
	if err == nil {
		abide = filepath.Join(dir, "abide")
		err = build()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func build() error {
	cmd := exec.Command("go", "build", "-o", abide, "./cmd/abide")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/abide: %w\n%s", err, out)
	}
	return nil
}
