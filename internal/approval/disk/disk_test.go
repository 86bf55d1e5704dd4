package disk_test

import (
	"testing"

	"github.com/abide-run/abide/internal/approval/disk"
)

// What nobody has answered counts as the worse, and is noted.
func TestWhatIsNotKnownCountsAsTheWorse(t *testing.T) {
	for kind, want := range map[disk.Kind]bool{
		disk.Leads: false, disk.Folder: true, disk.Name: true, disk.Place: false,
		disk.Program: false, disk.Submodules: false, disk.Remotes: false, disk.Repository: true,
	} {
		k, q := disk.NewKnown(), disk.Question{Kind: kind, Path: "/x"}
		if got := k.Ask(q); got != (disk.Answer{OK: want}) || k.Complete() {
			t.Errorf("kind %d: %+v, complete %t", kind, got, k.Complete())
		}
	}
}
