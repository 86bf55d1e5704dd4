package sandbox

import (
	"slices"
	"testing"
)

// Rules belong to folders and not to paths, so all paths of a folder on the way count.
func TestNoRuleIsAboutAFolderThatHiddenFilesAreIn(t *testing.T) {
	const (
		root    = "20 1 8:1 / / rw - ext4 /dev/a rw\n"
		home    = "21 20 8:2 / /home rw - ext4 /dev/b rw\n"
		again   = "22 20 8:1 / /mnt/root rw - ext4 /dev/a rw\n"
		part    = "23 20 8:2 /me/data/keys /mnt/keys rw - ext4 /dev/b rw\n"
		export  = "24 20 8:2 /me /srv/me\\040and\\040you rw - ext4 /dev/b rw\n"
		other   = "25 20 8:3 /me /mnt/other rw - ext4 /dev/c rw\n"
		deep    = "26 21 8:2 /me/data /home/deep/later rw - ext4 /dev/b rw\n"
		homesOf = "27 20 8:2 / /exports rw - ext4 /dev/b rw\n"
		own     = "28 21 8:4 / /home/me/data rw - ext4 /dev/d rw\n"
	)
	for name, tt := range map[string]struct {
		mounts string
		want   []string // beside the folder itself
	}{
		"no other mount":                         {root + home + other, []string{"/home"}},
		"the folder above, at another path":      {root + home + export, []string{"/home", "/srv/me and you", "/srv/me and you/data"}},
		"a part of it":                           {root + home + part, []string{"/home", "/mnt/keys"}},
		"the root, without what is mounted":      {root + home + again, []string{"/home", "/mnt/root", "/mnt/root/home", "/mnt/root/mnt/root"}},
		"a mount in a folder that has two":       {root + home + homesOf + deep, []string{"/home", "/home/deep/later", "/exports", "/exports/me/data", "/exports/deep/later"}},
		"it is on a file system of its own":      {root + home + own + homesOf, []string{"/home", "/exports", "/exports/me/data"}},
		"it is on one file system with the root": {root + again, []string{"/mnt/root", "/mnt/root/mnt/root", "/mnt/root/home/me/data"}},
	} {
		got := waysTo([]string{"/home/me/data"}, parseMounts([]byte(tt.mounts)))
		want := append([]string{"/home/me/data"}, tt.want...)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
