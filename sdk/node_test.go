package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// nodeSDK is the package of npm that is played with.
const nodeSDK = "@github/copilot-sdk@1.0.14"

// skipOrFail skips a test that needs npm, for a reason. Where ABIDE_REQUIRE contains npm,
// that is a failure.
func skipOrFail(t *testing.T, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("ABIDE_REQUIRE"), ","), "npm") {
		t.Fatal("ABIDE_REQUIRE asks for npm, and " + reason)
	}
	t.Skip("skipped: " + reason)
}

// installNode installs the SDK for Node in a folder, or skips the test.
func installNode(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the SDK for Node is not installed in short tests")
	}
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			skipOrFail(t, name+" is not installed")
		}
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional", nodeSDK)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		skipOrFail(t, fmt.Sprintf("npm cannot install %s, is the registry within reach? %v\n%s", nodeSDK, err, out))
	}
	script, err := os.ReadFile("testdata/node/talk.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "talk.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A node is a program of Node that runs.
type node struct {
	home *home
	out  *bufio.Reader
	said bytes.Buffer
	kill func() // kills the process and waits for its end
}

func (h *home) node(dir string, args ...string) *node {
	h.t.Helper()
	cmd := exec.Command("node", append([]string{"talk.mjs"}, args...)...)
	n := &node{home: h}
	cmd.Dir, cmd.Env, cmd.Stderr = dir, h.environment(), &n.said
	out, err := cmd.StdoutPipe()
	h.must(err)
	h.must(cmd.Start())
	n.out = bufio.NewReader(out)
	n.kill = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	stop := context.AfterFunc(h.ctx, n.kill)
	h.t.Cleanup(func() { stop(); n.kill() })
	return n
}

// says reads what the program says next.
func (n *node) says(v any) {
	n.home.t.Helper()
	line, err := n.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		n.kill()
		n.home.t.Fatalf("it said %q: %v\n%s", line, err, &n.said)
	}
}

// leftOpen is the open permission request of a program that has died.
type leftOpen struct{ Session, Request string }

// dieAsking lets a program of Node ask for a permission, and kills it and its server.
func (h *home) dieAsking(dir string) (asked leftOpen) {
	h.t.Helper()
	server := h.serve()
	first := h.node(dir, "first", server.number(), token)
	first.says(&asked)
	server.end()
	first.kill()
	return asked
}

func TestTheSDKForNodeFindsItsWorkAfterAKill(t *testing.T) {
	t.Parallel()
	dir := installNode(t)
	h := newHome(t, newNear(t))
	asked := h.dieAsking(dir)

	type report struct {
		Pending []string
		Answers []bool
		Words   string
		Resumed int
	}
	var got report
	h.node(dir, "second", abide, asked.Session).says(&got)
	want := report{[]string{asked.Request}, []bool{true, false}, "found x, run 1", 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the second program says %+v, want %+v", got, want)
	}
	h.serve()
	h.audit(asked.Session)
}

func TestTheSDKForNodeIsAskedOnceWhenItComesBack(t *testing.T) {
	t.Parallel()
	dir := installNode(t)
	h := newHome(t, newNear(t))
	asked := h.dieAsking(dir)

	type report struct {
		Words string
		Asked int
	}
	var got report
	h.node(dir, "stock", abide, asked.Session).says(&got)
	if want := (report{"found x, run 1", 1}); got != want {
		t.Errorf("the program that came back says %+v, want %+v", got, want)
	}
	h.serve()
	h.audit(asked.Session)
}
