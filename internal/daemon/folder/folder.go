// Package folder is the data folder: it holds all files of one engine, and its lock
// decides which process is the engine.
//
//   - The folder is private: only its owner can enter it.
//   - At most one process holds its [Lock]. The lock is released when the process ends,
//     however it ends.
//   - Only the holder listens on the private socket; a socket that a dead holder left
//     behind is removed by the next holder, and by no other process.
//   - Whoever cannot read the folder does not know the token of the private socket.
//   - Any session id has a directory of its own, inside the folder.
//
// A holder whose folder was deleted or moved has a lock without effect, which
// [Lock.Check] reports; the store protects the stored data.
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// A Folder is an open data folder. It is safe for concurrent use.
type Folder struct {
	dir    string
	opened fs.FileInfo // identity of the folder when it was opened

	mu      sync.Mutex
	queue   []chan lockResult // waiters for the lock, in order
	waiting bool              // true if a goroutine waits on their behalf
}

// Open creates the folder if it does not exist, removes the access of other users, and
// checks that the folder can be used.
func Open(dir string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, explain(dir, err)
	}
	f := &Folder{dir: dir}
	if err := f.makePrivate(); err != nil {
		return nil, err
	}
	if f.opened, err = os.Stat(dir); err != nil {
		return nil, explain(dir, err)
	}
	lock, err := f.openLock() // fails if the folder cannot be written
	if err != nil {
		return nil, err
	}
	lock.Close()
	return f, nil
}

// makePrivate removes the access of other users if the folder belongs to this user. A
// shared directory such as /tmp is refused, and a home directory is not changed.
func (f *Folder) makePrivate() error {
	info, err := os.Stat(f.dir)
	if err != nil {
		return explain(f.dir, err)
	}
	if f.dir == filepath.Dir(f.dir) || info.Mode()&fs.ModeSticky != 0 {
		return fmt.Errorf("data folder %s is shared with other users: name a folder inside it", f.dir)
	}
	home, _ := os.UserHomeDir()
	if f.dir == filepath.Clean(home) || info.Mode().Perm()&0o077 == 0 || !ownedByUs(info) {
		return nil
	}
	return explain(f.dir, os.Chmod(f.dir, info.Mode().Perm()&^0o077))
}

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// explain adds the reason and the way out to an error of the folder.
func explain(dir string, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range explanations {
		if errors.Is(err, known.cause) {
			return fmt.Errorf("data folder %s %s (%w)", dir, known.sentence, err)
		}
	}
	return fmt.Errorf("data folder %s: %w", dir, err)
}

var explanations = []struct {
	cause    error
	sentence string
}{
	{syscall.ENOTDIR, "is not a directory: move the file away or choose another folder with ABIDE_HOME"},
	{syscall.EACCES, "cannot be used by you: change its owner or mode, or choose another folder with ABIDE_HOME"},
	{syscall.EPERM, "cannot be used by you: change its owner or mode, or choose another folder with ABIDE_HOME"},
	{syscall.EROFS, "is read-only: mount it writable or choose another folder with ABIDE_HOME"},
	{syscall.ENOSPC, "is on a full disk: make room or choose another folder with ABIDE_HOME"},
	{syscall.EDQUOT, "is over its quota: make room or choose another folder with ABIDE_HOME"},
	{syscall.ENOLCK, "is on a file system without locks: choose a local one with ABIDE_HOME"},
	{syscall.ENOTSUP, "is on a file system without locks: choose a local one with ABIDE_HOME"},
	{syscall.EOPNOTSUPP, "is on a file system without locks: choose a local one with ABIDE_HOME"},
	{syscall.ENOSYS, "is on a file system without locks: choose a local one with ABIDE_HOME"},
}

// Dir returns the folder's absolute path.
func (f *Folder) Dir() string { return f.dir }

// DatabaseName is the name of the store in the folder.
const DatabaseName = "abide.db"

// EngineLogName is the name of the file to which an engine writes that goes on after its
// command.
const EngineLogName = "engine.log"

// Reserved reports whether a file or folder directly in the data folder has a purpose of its own,
// so that it cannot be the store: it may be emptied, replaced or removed.
func Reserved(name string) bool {
	return slices.Contains([]string{"lock", "sock", TokenName, EngineLogName, "machine-id", "mcp.json", "mcp-logins", "mcp-logs", "mcp-state", "mcp-tools", "sessions", "processes", "deletions"}, name)
}

// Database returns the path of the store.
func (f *Folder) Database() string { return f.path(DatabaseName) }

// Session returns the path of a session's own directory, which may not exist.
func (f *Folder) Session(id string) string { return f.path("sessions", fileName(id)) }

// SessionName returns the name of a session's own directory.
func SessionName(id string) string { return fileName(id) }

// Processes returns the path of the directory of commands, which may not exist.
func (f *Folder) Processes() string { return f.path("processes") }

// MCPServers returns the file with the MCP servers that the user has added.
func (f *Folder) MCPServers() string { return f.path("mcp.json") }

// MCPLogins returns the file with the logins to MCP servers, which are sealed.
func (f *Folder) MCPLogins() string { return f.path("mcp-logins") }

// MCPState returns the folder with what the next engine has to know of the MCP servers of a
// session.
func (f *Folder) MCPState(id string) string { return f.path("mcp-state", fileName(id)) }

// MCPTools returns the folder with the tools that MCP servers had when they were last listed.
func (f *Folder) MCPTools() string { return f.path("mcp-tools") }

// MCPLogs returns the folder of the logs of MCP servers.
func (f *Folder) MCPLogs() string { return f.path("mcp-logs") }

// HasSessions reports whether there is something of sessions in the folder: files of their
// own, or records of their commands.
func (f *Folder) HasSessions() bool {
	for _, dir := range []string{f.path("sessions"), f.Processes()} {
		entries, err := os.ReadDir(dir)
		if err == nil && slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
			return true
		}
	}
	return false
}

// MakeSession makes a session's own directory and returns its path.
func (f *Folder) MakeSession(id string) (string, error) {
	dir := f.Session(id)
	return dir, explain(f.dir, os.MkdirAll(dir, 0o700))
}

func (f *Folder) path(names ...string) string {
	return filepath.Join(append([]string{f.dir}, names...)...)
}

const maxName = 64 // maximum length of an id that is used as a file name

// fileName maps an id, which may be any text, to a unique file name, even on file systems
// that ignore case. An id of lower-case letters, digits, - and _ is its own file name;
// the name of any other id is its readable part, a dot and its digest.
func fileName(id string) string {
	readable := strings.Map(keepPlain, id)
	if readable == id && id != "" && len(id) <= maxName {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return readable[:min(len(readable), maxName/2)] + "." + hex.EncodeToString(digest[:])
}

func keepPlain(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
		return r
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	}
	return -1
}
