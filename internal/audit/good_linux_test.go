package audit_test

import (
	"testing"

	"github.com/abide-run/abide/internal/audit"
)

func TestAGoodFolderHasNoFindings(t *testing.T) {
	f := newFolder(t)
	r := f.audit(audit.Options{})
	for _, found := range r.Findings {
		t.Errorf("%+v", found)
	}
	if r.Sessions < 18 || r.Events < 300 || r.Processes < 6 || r.Unfinished != 3 {
		t.Errorf("the folder has %d sessions (%d unfinished), %d events, %d processes", r.Sessions, r.Unfinished, r.Events, r.Processes)
	}
	for _, d := range r.Unknown {
		t.Logf("unknown: %d × %+v", d.Count, d.Finding)
	}
}
