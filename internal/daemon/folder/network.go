package folder

import "path/filepath"

// NetworkRisk says what a network file system means for a data folder.
const NetworkRisk = "locks and syncs may not hold there, so that two engines may write at once and acknowledged events may be lost after a crash; choose a folder on a local disk with ABIDE_HOME"

// Network returns the kind of the network file system that a folder is on. It is empty for
// a local one, and if the kind cannot be found out.
func Network(dir string) string {
	kind, _ := networkKind(dir)
	return kind
}

// OnDisk reports whether a folder and all folders above it are on disks of this machine.
// It waits for a network if one of them is not.
func OnDisk(dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	for {
		if kind, err := networkKind(dir); err != nil || kind != "" {
			return false
		}
		above := filepath.Dir(dir)
		if above == dir {
			return true
		}
		dir = above
	}
}
