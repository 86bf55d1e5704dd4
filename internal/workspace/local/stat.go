package local

import (
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
)

// A status is what the system reports about a file.
type status struct {
	mode     fs.FileMode
	size     int64
	time     time.Time
	uid, gid int
}

func statAt(dir int, name string, flags int) (status, error) {
	var s unix.Stat_t
	for {
		err := unix.Fstatat(dir, name, &s, flags)
		if err != unix.EINTR {
			return statusOf(&s), err
		}
	}
}

func statFD(fd int) (status, error) {
	var s unix.Stat_t
	err := unix.Fstat(fd, &s)
	return statusOf(&s), err
}

func statusOf(s *unix.Stat_t) status {
	return status{
		mode: modeOf(uint32(s.Mode)), size: s.Size,
		time: time.Unix(s.Mtim.Unix()), uid: int(s.Uid), gid: int(s.Gid),
	}
}

func modeOf(m uint32) fs.FileMode {
	return typeOf(m) | fs.FileMode(m&0o777)
}

func typeOf(m uint32) fs.FileMode {
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

func (s status) info(name string) workspace.Info {
	return workspace.Info{Name: name, Mode: s.mode, Size: s.size, ModTime: s.time}
}

// readable returns an error if a file is not a regular file, which can be read and
// replaced.
func (s status) readable() error {
	switch {
	case s.mode.IsRegular():
		return nil
	case s.mode.IsDir():
		return workspace.ErrFolder
	case s.mode&fs.ModeSymlink != 0:
		return workspace.ErrLink
	}
	return workspace.ErrSpecial
}
