package folder

import "syscall"

// networkKinds are the file systems whose files are, or may be, on another machine, by the
// magic numbers of statfs(2).
var networkKinds = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB",
	0x01021997: "9p",
	0x65735546: "FUSE",
	0x786f4256: "a shared folder of VirtualBox",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x564c:     "NCP",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x19830326: "BeeGFS",
	0xaad7aaea: "PanFS",
}

// networkKind returns the kind of the network file system that a folder is on; empty for a
// local one.
func networkKind(dir string) (string, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", err
	}
	return networkKinds[uint32(s.Type)], nil
}
