package bridgetest

import (
	"flag"
	"testing"

	"github.com/abide-run/abide/internal/workspace"
)

// over is how tests reach a workspace: "local", or the network of a bridge.
var over = "local"

// RunEverywhere runs all tests of a package with each kind of workspace: without a bridge,
// and over one in memory, over a Unix socket and over TCP. Their results must be the same,
// byte for byte. It returns the exit code. Fuzzing, benchmarks and lists run once.
func RunEverywhere(m *testing.M) int {
	code := m.Run()
	isSet := func(name string) bool { f := flag.Lookup(name); return f != nil && f.Value.String() != f.DefValue }
	for _, over = range []string{"memory", "unix", "tcp"} {
		if code == 0 && !isSet("test.fuzz") && !isSet("test.fuzzworker") && !isSet("test.bench") && !isSet("test.list") {
			code = m.Run()
		}
	}
	return code
}

// FilesOf returns the files of a workspace as the run that is under way reaches them.
func FilesOf(t testing.TB, ws workspace.Workspace) workspace.Files {
	if over == "local" {
		return ws.Files
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the workspace was reached over", over)
		}
	})
	return Over(t, over, ws).Files
}
