package rpc_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
)

// TestNobodyWaitsForAPipe: commands of a session can put a pipe where its plan or one of its
// files is expected. Whoever reads that is told so, and does not wait for a writer.
func TestNobodyWaitsForAPipe(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	var at api.GetWorkspaceResult
	p.must(api.WorkspaceEnsure, object{"sessionId": "s"}, &at)
	for name, method := range map[string]string{"plan.md": api.PlanRead, "files/x": api.WorkspaceReadFile} {
		if err := syscall.Mkfifo(filepath.Join(at.Path, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if fault := p.refused(method, object{"sessionId": "s", "path": "x"}); !strings.Contains(fault.Message, "it is no file") {
			t.Errorf("%s: %s", method, fault.Message)
		}
	}
}
