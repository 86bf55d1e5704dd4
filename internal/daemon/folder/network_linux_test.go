package folder

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestNetworkKnowsTheUsualFileSystems(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x01021997: "9p", 0x65735546: "FUSE",
		0xef53: "", 0x58465342: "", 0x9123683e: "", 0x01021994: "", 0x794c7630: "", // ext4, XFS, Btrfs, tmpfs, overlay
	} {
		if got := networkKinds[magic]; got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
}

func TestALocalFolderIsOnNoNetwork(t *testing.T) {
	dir := t.TempDir()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	if got := Network(dir); got != networkKinds[uint32(s.Type)] {
		t.Errorf("%s is on %q", dir, got)
	}
	if got := Network(filepath.Join(dir, "not there")); got != "" {
		t.Errorf("a folder that does not exist is on %q", got)
	}
}

func TestAFolderIsOnDiskWithAllAboveIt(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]bool{dir: Network(dir) == "", "/": Network("/") == "", filepath.Join(dir, "not there"): false, ".": false, "": false} {
		if got := OnDisk(path); got != want {
			t.Errorf("OnDisk(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestInUseNamesTheHolderAndMakesNothing(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	if _, used := InUse(absent); used {
		t.Error("a folder that does not exist is in use")
	}
	if _, err := os.Lstat(absent); err == nil {
		t.Error("the folder was made")
	}
	dir := t.TempDir()
	lock := tryLock(t, open(t, dir))
	if holder, used := InUse(dir); !used || holder.PID != os.Getpid() {
		t.Errorf("the folder is in use: %v, by %v", used, holder)
	}
	lock.Close()
	if _, used := InUse(dir); used {
		t.Error("the folder is in use after its lock was released")
	}
}
