package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
)

// maxLog is the size at which the log of a server is begun anew. The one before is kept.
const maxLog = 1 << 20

// Logs keeps what servers print on standard error and tell as log messages, in a file for
// each name of a server. Its zero value keeps nothing.
type Logs struct {
	dir string
	mu  sync.Mutex
	all map[string]*serverLog
}

// OpenLogs returns the logs in a folder, which need not exist.
func OpenLogs(dir string) *Logs { return &Logs{dir: dir, all: make(map[string]*serverLog)} }

// of returns the log of a server.
func (l *Logs) of(server string) *serverLog {
	if l == nil || l.dir == "" {
		return &serverLog{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[server] == nil {
		l.all[server] = &serverLog{path: l.Path(server)}
	}
	return l.all[server]
}

// Path returns the file with the log of a server.
func (l *Logs) Path(server string) string {
	return filepath.Join(l.dir, fileName(server)+".log")
}

// fileName returns a name for a file that belongs to a server: no two servers have the same.
func fileName(server string) string {
	if name := cleaned(server); name == server && len(name) <= maxName {
		return name
	}
	return names([]toolID{{server, ""}}, func(string) bool { return true })[0]
}

// Read writes the log of a server to w, the oldest lines first.
func (l *Logs) Read(server string, w io.Writer) error {
	found := false
	for _, path := range []string{l.Path(server) + ".1", l.Path(server)} {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found = true
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("there is no log of the MCP server %s: it has printed nothing yet", server)
	}
	return nil
}

// A LastState is what was last known of a server, in any session.
type LastState struct {
	Time   time.Time `json:"time"`
	Status Status    `json:"status"`
	Error  string    `json:"error,omitempty"`
}

const stateEnding = ".state"

// Last returns what was last known of a server. It reports false if it never ran.
func (l *Logs) Last(server string) (s LastState, ok bool) {
	text, err := os.ReadFile(l.Path(server) + stateEnding)
	return s, err == nil && json.Unmarshal(text, &s) == nil
}

// A serverLog is the log of a server, of all sessions.
type serverLog struct {
	path string // empty if nothing is kept
	mu   sync.Mutex
	last LastState // what was last noted
}

// state notes what is known of the server. What cannot be noted is missed by nobody but people.
func (l *serverLog) state(to Status, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" || to == Pending || to == Stopped || to == Disabled || l.last.Status == to && l.last.Error == why {
		return
	}
	l.last = LastState{time.Now(), to, why}
	text, err := json.Marshal(l.last)
	if err == nil && os.MkdirAll(filepath.Dir(l.path), 0o700) == nil {
		_ = os.WriteFile(l.path+stateEnding, text, 0o600)
	}
}

// note adds a line of our own.
func (l *serverLog) note(owner process.Owner, format string, args ...any) {
	l.write(owner, fmt.Appendf(nil, "abide: "+format+"\n", args...))
}

// write adds what a server has printed. A log that cannot be written is not a reason to
// stop a server.
func (l *serverLog) write(owner process.Owner, data []byte) {
	if l.path == "" || len(data) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := os.Stat(l.path); err == nil && info.Size() > maxLog {
		_ = os.Rename(l.path, l.path+".1")
	}
	if os.MkdirAll(filepath.Dir(l.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	head := event.FormatTime(time.Now()) + " " + strings.TrimPrefix(string(owner), OwnerPrefix) + " "
	var text bytes.Buffer
	for line := range bytes.Lines(data[:min(len(data), maxLog)]) {
		text.WriteString(head)
		text.Write(bytes.TrimRight(line, "\r\n"))
		text.WriteByte('\n')
	}
	_, _ = f.Write(text.Bytes())
}
