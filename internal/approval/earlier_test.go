package approval

import (
	"testing"

	"github.com/abide-run/abide/internal/approval/disk"
)

// A large is a disk on which every folder has many files and no repository.
type large struct{ disk.Source }

func (large) Ask(disk.Question) disk.Answer { return disk.Answer{Text: "2000"} }

// The files of all folders together are bounded: what was not searched may hold a
// repository.
func TestTheFilesThatAreSearchedForRepositoriesAreBounded(t *testing.T) {
	d := &reading{disk: large{}}
	if d.holdsRepository("/a") {
		t.Error("a folder without a repository holds one")
	}
	if !d.holdsRepository("/b") || !d.holdsRepository("/c") {
		t.Error("folders with more files than are searched hold no repository")
	}
}
