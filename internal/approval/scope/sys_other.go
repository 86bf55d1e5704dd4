//go:build !linux

package scope

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// stepFlags are the flags for opening a folder inside a path.
const stepFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func statAt(dir int, name string) (info, error) {
	var s unix.Stat_t
	err := unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW)
	return plain(s), err
}

func statFD(fd int) (info, error) {
	var s unix.Stat_t
	err := unix.Fstat(fd, &s)
	return plain(s), err
}

func plain(s unix.Stat_t) info {
	return info{identity{uint64(s.Dev), s.Ino}, uint64(s.Dev), uint32(s.Mode), s.Uid, s.Gid, s.Size}
}

func moveNew(dir int, from, to string) error { return linkNew(dir, from, to) }

// each calls visit with every entry of an open folder until it returns false.
func each(fd int, buf []byte, visit func(name []byte, kind Kind) bool) error {
	for {
		n, err := retry(func() (int, error) { return unix.ReadDirent(fd, buf) })
		if n <= 0 || err != nil {
			return err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if !visit(bytes.Clone([]byte(name)), unknown) {
				return nil
			}
		}
	}
}
