package scope

import (
	"encoding/binary"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// stepFlags are the flags for opening a folder inside a path, which need not be readable.
const stepFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// noStatx is set on systems that do not have the call statx.
var noStatx atomic.Bool

// statAt returns the info of a name in a folder, without following a link.
func statAt(dir int, name string) (info, error) {
	return stat(dir, name, unix.AT_SYMLINK_NOFOLLOW)
}

// statFD returns the info of an open file.
func statFD(fd int) (info, error) { return stat(fd, "", unix.AT_EMPTY_PATH) }

func stat(dir int, name string, flags int) (info, error) {
	if noStatx.Load() {
		return plainStat(dir, name, flags)
	}
	var s unix.Statx_t
	err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &s)
	if err == unix.ENOSYS {
		noStatx.Store(true)
		return plainStat(dir, name, flags)
	}
	dev := unix.Mkdev(s.Dev_major, s.Dev_minor)
	i := info{identity{dev, s.Ino}, s.Mnt_id, uint32(s.Mode), s.Uid, s.Gid, int64(s.Size)}
	if s.Mask&unix.STATX_MNT_ID == 0 {
		i.mount = dev
	}
	return i, err
}

// plainStat is stat without mounts: it uses the device instead.
func plainStat(dir int, name string, flags int) (info, error) {
	var s unix.Stat_t
	err := unix.Fstatat(dir, name, &s, flags)
	return info{identity{s.Dev, s.Ino}, s.Dev, s.Mode, s.Uid, s.Gid, s.Size}, err
}

// moveNew renames a file to a name that must not exist.
func moveNew(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if err == unix.ENOSYS || err == unix.EINVAL {
		return linkNew(dir, from, to)
	}
	return err
}

// each calls visit with every entry of an open folder until it returns false.
func each(fd int, buf []byte, visit func(name []byte, kind Kind) bool) error {
	for {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, buf) })
		if n <= 0 || err != nil {
			return err
		}
		for entries := buf[:n]; len(entries) > 0; {
			size := binary.NativeEndian.Uint16(entries[16:])
			name := entries[19:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if !dots(name) && !visit(name, kindOf(entries[18])) {
				return nil
			}
			entries = entries[size:]
		}
	}
}

func dots(name []byte) bool { return string(name) == "." || string(name) == ".." }

// kindOf returns the kind for a type of entry.
func kindOf(t byte) Kind {
	switch t {
	case unix.DT_REG:
		return Regular
	case unix.DT_DIR:
		return Folder
	case unix.DT_LNK:
		return Link
	case unix.DT_UNKNOWN:
		return unknown
	}
	return Special
}
