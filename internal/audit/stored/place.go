package stored

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// SessionFolders yields the names of the folders of sessions.
func (f *Folder) SessionFolders() iter.Seq2[string, error] {
	return f.names("sessions", func(string) bool { return true })
}

// FolderOf is the name of a session's own folder. An id of small letters, digits, -
// and _ is its own name; any other is what is readable of it, a dot and its digest.
func FolderOf(session string) string {
	var readable strings.Builder
	for _, c := range session {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			readable.WriteRune(c)
		case c >= 'A' && c <= 'Z':
			readable.WriteRune(c - 'A' + 'a')
		}
	}
	name := readable.String()
	if name == session && session != "" && len(session) <= 64 {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return name[:min(len(name), 32)] + "." + hex.EncodeToString(sum[:])
}

// Deletions returns the sessions whose deletion was written down and has not ended,
// with the agents that go with them. The next engine finishes it.
func (f *Folder) Deletions() (sessions []string, err error) {
	for name, err := range f.names("deletions", func(name string) bool { return strings.HasSuffix(name, ".json") }) {
		if err != nil {
			return sessions, err
		}
		var d struct {
			Session string   `json:"session"`
			Agents  []string `json:"agents"`
		}
		text, err := os.ReadFile(filepath.Join(f.dir, "deletions", name))
		if err == nil && json.Unmarshal(text, &d) == nil { // a deletion whose record is incomplete was never begun
			sessions = append(append(sessions, d.Session), d.Agents...)
		}
	}
	return sessions, nil
}

// Engine reports whether a process holds the folder's lock, or that of its
// processes. Asking the system for a lock would take it for a moment, so its list of
// locks is read. Where there is none, nobody is seen.
func (f *Folder) Engine() bool {
	locks := [][]byte{f.inode("lock"), f.inode("processes"), f.inode("processes/lock")} // older versions locked the folder
	for range looks {
		list, err := os.ReadFile("/proc/locks")
		if err != nil {
			return false
		}
		for line := range bytes.Lines(list) {
			if held(line, locks) {
				return true
			}
		}
	}
	return false
}

// looks is how often the list of locks is read before nobody is seen: the system
// passes over some when others come and go meanwhile.
const looks = 5

// inode is how the list of locks names a file; nil if there is none.
func (f *Folder) inode(name string) []byte {
	info, err := os.Stat(filepath.Join(f.dir, name))
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return []byte(":" + strconv.FormatUint(stat.Ino, 10) + " ")
}

// held reports whether a line of the list of locks says that one of some is held.
func held(line []byte, locks [][]byte) bool {
	if !bytes.Contains(line, []byte(" FLOCK ")) || bytes.Contains(line, []byte("->")) {
		return false // another kind, or somebody who waits
	}
	for _, inode := range locks {
		if inode != nil && bytes.Contains(line, inode) {
			return true
		}
	}
	return false
}

// Alive reports whether the process that a claim names is running: one with the
// same number that started at another time, or with another start of the machine,
// is not it.
func Alive(claim Entry) bool {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || strings.TrimSpace(string(boot)) != claim.Get("boot") {
		return false
	}
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err != nil || namespace != claim.Get("namespace") {
		return false
	}
	pid, ok := claim.Int("pid")
	if !ok || pid <= 0 {
		return false
	}
	line, err := os.ReadFile("/proc/" + strconv.FormatInt(pid, 10) + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:])) // the name before that may hold anything
	return len(fields) > 19 && fields[0] != "Z" && fields[19] == claim.Get("start")
}

// Elsewhere reports whether the process that a claim names has its number in another
// namespace of this machine than ours: then nothing can be said of it.
func Elsewhere(claim Entry) bool {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid") // none is none of ours
	return err == nil && strings.TrimSpace(string(boot)) == claim.Get("boot") && namespace != claim.Get("namespace")
}
