package mcp

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/process/record"
)

// A journal is what the next engine has to know of a server that is a program, so that it can
// go on with it: which process it is, what it has answered to the handshake, and which calls
// it was sent whose results are not stored in the log yet. It is a file of records.
//
// The records are not synced: a process ends with its machine, and then nothing that the
// journal says counts any more. The zero value of path keeps nothing.
type journal struct {
	path string

	mu    sync.Mutex
	file  *os.File // nil until something is added
	lines int      // number of records in the file

	process     string // key of the process; empty if there is none
	left        string // key of the process that was dropped
	config      string // fingerprint of its configuration
	greetings   []greeting
	ready       bool  // true if it can be used without another handshake
	connections int64 // number of connections that were made to the process
	consumed    int64 // offset in the output before which everything was carried out
	sent        map[string]sentCall
	written     int // number of inputs of the process that its keeper has to remember
}

// A greeting is an answer of a server to a request of the handshake.
type greeting struct{ method, text string }

// A sentCall is a call that was sent and is not settled.
type sentCall struct {
	process string
	before  int  // number of inputs before it
	partly  bool // true if it is long, and was perhaps not written to its end
}

// The kinds of records in a journal.
const (
	journalProcess    = "process"
	journalGreeting   = "greeting"
	journalReady      = "ready"
	journalConnection = "connection"
	journalSent       = "sent"
	journalWritten    = "written"
	journalInputs     = "inputs"
	journalSettled    = "settled"
	journalConsumed   = "consumed"
)

// maxJournal is the number of records after which a journal is written anew.
const maxJournal = 4096

const journalEnding = ".journal"

// openJournal reads the journal of a server; an empty folder keeps none. One that cannot be
// read is like none: the server is started anew.
func openJournal(dir, server string) *journal {
	if dir == "" {
		return &journal{sent: make(map[string]sentCall)}
	}
	j, _ := readJournal(filepath.Join(dir, fileName(server)+journalEnding))
	return j
}

// readJournal reads a journal. It is empty if there is none.
func readJournal(path string) (*journal, error) {
	j := &journal{path: path, sent: make(map[string]sentCall)}
	text, err := os.ReadFile(path)
	if err != nil {
		return j, err
	}
	record.Each(text, func(r record.Record) { j.lines++; j.apply(r) })
	return j, nil
}

// apply takes in a record.
func (j *journal) apply(r record.Record) {
	switch r.Kind {
	case journalProcess:
		j.process, j.config = r.Get("key"), r.Get("config")
		j.greetings, j.ready, j.connections, j.consumed, j.written = nil, false, 0, 0, 0
	case journalGreeting:
		j.greetings = append(j.greetings, greeting{r.Get("method"), r.Get("text")})
	case journalReady:
		j.ready = true
	case journalConnection:
		j.connections = r.Int("number")
	case journalSent:
		s := sentCall{r.Get("process"), int(r.Int("before")), r.Flag("partly")}
		if j.sent[r.Get("id")] = s; s.process == j.process {
			j.written = max(j.written, s.before+int(r.Int("inputs")))
		}
	case journalWritten:
		if s, ok := j.sent[r.Get("id")]; ok {
			s.partly = false
			j.sent[r.Get("id")] = s
		}
		j.written += int(r.Int("inputs"))
	case journalInputs:
		j.written = int(r.Int("number"))
	case journalSettled:
		for id := range j.sent {
			if belongs(id, r.Get("key")) {
				delete(j.sent, id)
			}
		}
	case journalConsumed:
		j.consumed = r.Int("at")
	}
}

// belongs reports whether the id of a request is that of a call or of one of its further
// rounds.
func belongs(id, key string) bool {
	rest, ok := strings.CutPrefix(id, key)
	return ok && (rest == "" || rest[0] == '/')
}

// add adds a record.
func (j *journal) add(r record.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.addLocked(r)
}

func (j *journal) addLocked(r record.Record) error {
	j.apply(r)
	if j.path == "" {
		return nil
	}
	if j.lines >= maxJournal || r.Kind == journalProcess {
		return j.rewriteLocked()
	}
	if j.file == nil {
		f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		j.file = f
	}
	j.lines++
	_, err := j.file.Write(r.Line())
	return err
}

// rewriteLocked writes the journal anew, without what does not matter any more.
func (j *journal) rewriteLocked() error {
	all := []record.Record{record.New(journalProcess).With("key", j.process).With("config", j.config)}
	for _, g := range j.greetings {
		all = append(all, record.New(journalGreeting).With("method", g.method).With("text", g.text))
	}
	if j.ready {
		all = append(all, record.New(journalReady))
	}
	all = append(all, record.New(journalConnection).WithInt("number", j.connections))
	for id, s := range j.sent {
		all = append(all, record.New(journalSent).With("id", id).With("process", s.process).WithInt("before", int64(s.before)).WithFlag("partly", s.partly))
	}
	all = append(all, record.New(journalInputs).WithInt("number", int64(j.written)))
	all = append(all, consumedRecord(j.consumed))
	var text bytes.Buffer
	for _, r := range all {
		text.Write(r.Line())
	}
	var err error
	for range 3 { // the folder is removed with the last journal in it
		if err = os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
			return err
		}
		if err = os.WriteFile(j.path+".new", text.Bytes(), 0o600); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := os.Rename(j.path+".new", j.path); err != nil {
		return err
	}
	j.closeLocked()
	j.lines = len(all)
	return nil
}

func (j *journal) closeLocked() {
	if j.file != nil {
		_ = j.file.Close() // nothing is buffered
		j.file = nil
	}
}

// begin notes a new process. What was sent to another one stays noted.
func (j *journal) begin(key, config string) error {
	return j.add(record.New(journalProcess).With("key", key).With("config", config))
}

// ended notes that the process has ended, and was not needed any more.
func (j *journal) ended() error { return j.add(record.New(journalProcess)) }

// greeted notes an answer to the handshake.
func (j *journal) greeted(method, text string) error {
	return j.add(record.New(journalGreeting).With("method", method).With("text", text))
}

// connect counts a connection to the process.
func (j *journal) connect() (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.connections + 1
	return n, j.addLocked(record.New(journalConnection).WithInt("number", n))
}

// A place says where a call was sent.
type place int

const (
	nowhere   place = iota // nowhere, as far as this journal goes
	here                   // to the process of the journal
	elsewhere              // to another process, which has ended
)

// where reports where a call was sent, and how many inputs the process got since, with those
// of the call.
func (j *journal) where(id string) (at place, since int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.sent[id]
	switch {
	case !ok:
		return nowhere, 0
	case s.process != j.process:
		return elsewhere, 0
	}
	return here, j.written - s.before
}

// send notes that a call is going to be sent to the process, in some inputs.
func (j *journal) send(id string, inputs int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.addLocked(record.New(journalSent).With("id", id).With("process", j.process).WithInt("before", int64(j.written)).
		WithInt("inputs", int64(inputs)).WithFlag("partly", inputs > 1))
}

// lose notes that a call was perhaps sent, and not to the process.
func (j *journal) lose(id string) error {
	return j.add(record.New(journalSent).With("id", id))
}

// wrote notes that a long call was written to its end.
func (j *journal) wrote(id string) error { return j.add(record.New(journalWritten).With("id", id)) }

// count counts an input that is no call.
func (j *journal) count() error { return j.add(record.New(journalWritten).WithInt("inputs", 1)) }

// torn reports whether a call was perhaps written in part: what comes after it would be taken
// for the rest.
func (j *journal) torn() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.sent {
		if s.partly && s.process == j.process {
			return true
		}
	}
	return false
}

// settle notes that nobody asks for the result of a call any more.
func (j *journal) settle(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id := range j.sent {
		if belongs(id, key) {
			_ = j.addLocked(record.New(journalSettled).With("key", key)) // otherwise it counts as open, which does no harm
			return
		}
	}
}

// readyRecord says that the process can be used without another handshake.
var readyRecord = record.New(journalReady)

// consumedRecord says how far the output was carried out.
func consumedRecord(at int64) record.Record { return record.New(journalConsumed).WithInt("at", at) }

// unfinished reports whether the process was sent a call that is not settled.
func (j *journal) unfinished() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.sent {
		if j.process != "" && s.process == j.process {
			return true
		}
	}
	return false
}

// state returns what is known of the process.
func (j *journal) state() (process, config string, greetings []greeting, ready bool, consumed int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.process, j.config, slices.Clone(j.greetings), j.ready, j.consumed
}

// drop ends the journal of a process that nobody goes on with. Where calls were sent stays
// noted: their results may not be stored yet. What is noted later is not kept.
func (j *journal) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	path := j.path
	if path == "" {
		return
	}
	j.left = j.process
	if len(j.sent) > 0 && j.addLocked(record.New(journalProcess)) == nil {
		j.closeLocked()
		j.path = ""
		return
	}
	j.closeLocked()
	j.path = ""
	_ = os.Remove(path)               // one that stays names a process that is gone
	_ = os.Remove(filepath.Dir(path)) // unless there are others
}

// close closes the file.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closeLocked()
}

// journals returns the journals in a session's folder.
func journals(dir string) (list []*journal, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), journalEnding)
		if !ok {
			continue
		}
		j, failed := readJournal(filepath.Join(dir, name+journalEnding))
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		list = append(list, j)
	}
	return list, err
}

// Unfinished returns the keys of the processes in a session's folder of journals that were
// sent calls whose results are perhaps not stored yet. Nobody goes on with the others then; and
// with none, unless the session is active.
func Unfinished(dir string, active bool) (processes []string, err error) {
	list, err := journals(dir)
	for _, j := range list {
		if active && j.unfinished() {
			processes = append(processes, j.process)
		} else {
			j.drop()
		}
	}
	return processes, err
}
