package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocket is the maximum length of a socket path that every system accepts.
const maxSocket = 100

// errNoEngine means that no process listens on the private socket.
var errNoEngine = errors.New("no engine is listening")

// Listen opens the private socket. The caller must close the listener before the lock.
func (l *Lock) Listen() (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.New("listen: the lock was released")
	}
	address, err := l.folder.chooseAddress()
	if err != nil {
		return nil, err
	}
	ln, err := listen(address)
	if err != nil {
		return nil, explain(l.folder.dir, err)
	}
	if l.listening, err = os.Lstat(address); err != nil {
		ln.Close()
		return nil, explain(l.folder.dir, err)
	}
	l.socket = address
	return ln, nil
}

// listen replaces whatever is at the address. Closing the listener does not remove the
// socket: by then it may belong to another process.
func listen(address string) (net.Listener, error) {
	if err := os.Remove(address); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	if err := os.Chmod(address, 0o600); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// Dial connects to the engine. The error wraps ErrNoEngine if there is none.
func (f *Folder) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := f.dial(ctx)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("data folder %s: %w", f.dir, errNoEngine)
	}
	return conn, explain(f.dir, err)
}

func (f *Folder) dial(ctx context.Context) (net.Conn, error) {
	address, err := f.address()
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", address)
}

// address returns the path of the private socket. If the folder's path is too long for a
// socket, a symbolic link in the folder points to it: processes with different
// environments would otherwise look in different directories.
func (f *Folder) address() (string, error) {
	own := f.path("sock")
	if len(own) <= maxSocket {
		return own, nil
	}
	return os.Readlink(own)
}

// chooseAddress chooses the path of the private socket.
func (f *Folder) chooseAddress() (string, error) {
	own := f.path("sock")
	if len(own) <= maxSocket {
		return own, nil
	}
	short, err := f.shortAddress()
	if err != nil {
		return "", err
	}
	if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", explain(f.dir, err)
	}
	return short, explain(f.dir, os.Symlink(short, own))
}

// shortAddress returns a path for the socket outside the folder, in the first directory
// that is short enough and private.
func (f *Folder) shortAddress() (string, error) {
	digest := sha256.Sum256([]byte(f.dir))
	name := hex.EncodeToString(digest[:12])
	var reasons []error
	for _, dir := range shortDirs() {
		path := filepath.Join(dir, name)
		if len(path) > maxSocket {
			continue
		}
		err := makePrivateDir(dir)
		if err == nil {
			return path, nil
		}
		reasons = append(reasons, err)
	}
	return "", fmt.Errorf("the path of the data folder %s is too long for a socket, and there is no other directory for it: set XDG_RUNTIME_DIR (%w)", f.dir, errors.Join(reasons...))
}

func shortDirs() []string {
	ours := fmt.Sprintf("abide-%d", os.Getuid())
	dirs := []string{filepath.Join(os.TempDir(), ours), filepath.Join("/tmp", ours)}
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		dirs = append([]string{filepath.Join(runtime, "abide")}, dirs...)
	}
	return dirs
}

// makePrivateDir creates a directory that only this user can use, or returns an error for
// one that other users can use.
func makePrivateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir) // a link may have been placed by an attacker
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ownedByUs(info) {
		return fmt.Errorf("%s is not a directory of yours alone (mode 0700)", dir)
	}
	return nil
}
