package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A workspace with a full disk or another time can be used, and nobody overlooks what is
// wrong with it.
func TestAFullDiskAndAWrongClockOfAWorkspaceAreNamed(t *testing.T) {
	free := func(n int64) *int64 { return &n }
	hour := float64(time.Hour / time.Millisecond)
	for name, test := range map[string]struct {
		checked checkedWorkspace
		want    string
	}{
		"full":      {checkedWorkspace{DiskFree: free(0)}, "only 0 B are free on its disk"},
		"nearly":    {checkedWorkspace{DiskFree: free(1 << 20)}, "only 1.0 MiB are free"},
		"ahead":     {checkedWorkspace{Clock: hour}, "its clock is 1h0m0s ahead"},
		"behind":    {checkedWorkspace{Clock: -hour, DiskFree: free(1 << 40)}, "its clock is 1h0m0s behind"},
		"all right": {checkedWorkspace{DiskFree: free(1 << 40), Clock: 900}, ""},
		"unknown":   {checkedWorkspace{}, ""},
	} {
		if got := test.checked.doubt(); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	text, err := json.Marshal(checkedWorkspace{DiskFree: free(0)})
	if err != nil || !strings.Contains(string(text), `"diskFree":0`) {
		t.Errorf("a full disk is %s, %v", text, err)
	}
}
