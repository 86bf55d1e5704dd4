package bridge

import (
	"io"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// A fileListener accepts connections to which the kernel copies files, so that large files
// need not pass through this program. TCP connections can do that without help, and kernels
// other than Linux do it differently. Those of this machine with itself do not wait between packets.
type fileListener struct{ net.Listener }

// Accept implements net.Listener.
func (l fileListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	switch c := c.(type) {
	case *net.TCPConn:
		hurry(c)
	case *net.UnixConn:
		if runtime.GOOS == "linux" {
			return unixConn{c}, err
		}
	}
	return c, err
}

// A unixConn is a Unix socket that net/http gives files to.
type unixConn struct{ *net.UnixConn }

// ReadFrom implements io.ReaderFrom.
func (c unixConn) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{c.UnixConn}, r)
	}
	var sent int64
	if f, ok := limited.R.(*os.File); ok {
		sent = c.sendFile(f, limited.N)
		limited.N -= sent
	}
	n, err := io.Copy(struct{ io.Writer }{c.UnixConn}, limited) // what the kernel has not copied, if there is any
	return sent + n, err
}

// sendFile copies the next bytes of a file, at most n, and returns how many were copied: fewer
// if the file is shorter, or if the kernel cannot do it or fails.
func (c unixConn) sendFile(f *os.File, n int64) (sent int64) {
	out, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = out.Write(func(fd uintptr) bool {
		for sent < n {
			some, err := unix.Sendfile(int(fd), int(f.Fd()), nil, int(min(n-sent, 4<<20)))
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false // called again when the other side has read something
			case err != nil || some <= 0:
				return true
			default:
				sent += int64(some)
			}
		}
		return true
	})
	return sent
}
