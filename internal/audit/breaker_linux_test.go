package audit_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/audit/stored"
	"github.com/abide-run/abide/internal/event"
)

// good is the folder that every test breaks a copy of.
var good struct {
	once sync.Once
	dir  string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if good.dir != "" {
		os.RemoveAll(good.dir)
	}
	os.Exit(code)
}

// A folder is a copy of a good data folder, to be broken.
type folder struct {
	t    *testing.T
	dir  string
	db   *sql.DB
	once []string
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	good.once.Do(func() {
		dir, err := os.MkdirTemp("", "audit")
		if err != nil {
			t.Fatal(err)
		}
		makeFolder(t, dir)
		good.dir = dir
	})
	if good.dir == "" {
		t.Fatal("there is no good folder")
	}
	f := &folder{t: t, dir: filepath.Join(t.TempDir(), "data")}
	if err := os.CopyFS(f.dir, os.DirFS(good.dir)); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.db, err = sql.Open("sqlite", "file:"+filepath.Join(f.dir, "abide.db")+"?_pragma=synchronous(0)"); err != nil {
		t.Fatal(err)
	}
	f.db.SetMaxOpenConns(1)
	t.Cleanup(func() { f.db.Close() })
	return f
}

func (f *folder) exec(query string, args ...any) {
	f.t.Helper()
	done, err := f.db.Exec(query, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		f.t.Fatalf("%s changes nothing: %v", query, err)
	}
}

func (f *folder) number(query string, args ...any) (n int64) {
	f.t.Helper()
	if err := f.db.QueryRow(query, args...).Scan(&n); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (f *folder) text(query string, args ...any) (text string) {
	f.t.Helper()
	if err := f.db.QueryRow(query, args...).Scan(&text); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
	return text
}

// row is the number of a session in the index, and seq where it ends.
func (f *folder) row(session string) int64 {
	return f.number("SELECT id FROM sessions WHERE name = ?", session)
}

func (f *folder) seq(session string) int64 {
	return f.number("SELECT seq FROM sessions WHERE name = ?", session)
}

// info changes a member of a session's entry in the index.
func (f *folder) info(session, member string, value any) int64 {
	f.t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		f.t.Fatal(err)
	}
	f.exec("UPDATE sessions SET info = json_set(info, '$.'||?, json(?)) WHERE name = ?", member, string(b), session)
	return f.seq(session)
}

// audit runs the auditor on the folder.
func (f *folder) audit(options audit.Options) *audit.Report {
	f.t.Helper()
	f.db.Close()
	options.Once = f.once
	r, err := audit.Run(context.Background(), f.dir, options)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// An entry is an event of a log that is about to be broken.
type entry struct {
	Type      string
	ID        string
	Time      string
	Ephemeral bool
	Data      object
	parent    *string             // instead of the right one
	spoil     func(string) string // change of the line
}

// A script is the log of a session, to be written again.
type script struct {
	f           *folder
	session     string
	row, shared int64
	base        []byte
	parent      string // the last event that clients are shown, of what is shared
	events      []*entry
}

// script reads the events of a session's own.
func (f *folder) script(session string) *script {
	f.t.Helper()
	l := &script{f: f, session: session, row: f.row(session), base: make([]byte, sha256.Size)}
	var parent sql.NullInt64
	var base []byte
	if err := f.db.QueryRow("SELECT parent, shared, base FROM sessions WHERE id = ?", l.row).Scan(&parent, &l.shared, &base); err != nil {
		f.t.Fatal(err)
	}
	if parent.Valid {
		l.base = base
		for i, e := range f.lines(parent.Int64) {
			if isListed(e.Type) && int64(i) < l.shared {
				l.parent = e.ID
			}
		}
	}
	l.events = f.lines(l.row)
	return l
}

// lines reads the records of a session.
func (f *folder) lines(row int64) (all []*entry) {
	f.t.Helper()
	rows, err := f.db.Query("SELECT body FROM records WHERE key >> 32 = ? ORDER BY key", row)
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			f.t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(body), "\n") {
			var e struct {
				Type, ID, Timestamp string
				Ephemeral           bool
				Data                object
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				f.t.Fatal(err)
			}
			all = append(all, &entry{Type: e.Type, ID: e.ID, Time: e.Timestamp, Ephemeral: e.Ephemeral, Data: e.Data})
		}
	}
	return all
}

// at finds the nth event of a kind, and returns its position.
func (l *script) at(kind string, nth int) int64 {
	l.f.t.Helper()
	for i, e := range l.events {
		if e.Type == kind {
			if nth--; nth == 0 {
				return l.shared + int64(i) + 1
			}
		}
	}
	l.f.t.Fatalf("session %s has too few events of the kind %s", l.session, kind)
	return 0
}

// get returns the event at a position.
func (l *script) get(seq int64) *entry { return l.events[seq-l.shared-1] }

// end is the position of the last event.
func (l *script) end() int64 { return l.shared + int64(len(l.events)) }

// set changes a member of the nth event of a kind.
func (l *script) set(kind string, nth int, member string, value any) int64 {
	l.f.t.Helper()
	at := l.at(kind, nth)
	if l.get(at).Data[member] = value; value == nil {
		delete(l.get(at).Data, member)
	}
	return at
}

// decide changes the decision of the nth call that was begun.
func (l *script) decide(nth int, change object) int64 {
	l.f.t.Helper()
	at := l.at("tool.execution_begun", nth)
	changed := object{}
	for key, value := range l.get(at).Data["decision"].(map[string]any) {
		changed[key] = value
	}
	for key, value := range change {
		if changed[key] = value; value == nil {
			delete(changed, key)
		}
	}
	l.get(at).Data["decision"] = changed
	return at
}

// age makes the log one of an older version, which recorded no decisions and no replay
// classes.
func (l *script) age() {
	for _, e := range l.events {
		if e.Type == "tool.execution_begun" || e.Type == "external_tool.requested" {
			delete(e.Data, "decision")
			delete(e.Data, "replay")
		}
	}
}

// shift moves what refers to positions after one.
func (l *script) shift(after int64, by float64) {
	for _, e := range l.events {
		if report, ok := e.Data["report"].(float64); ok && int64(report) >= after {
			e.Data["report"] = report + by
		}
	}
}

// insert puts an event in front of a position.
func (l *script) insert(seq int64, kind string, data object) int64 {
	l.shift(seq, 1)
	e := &entry{Type: kind, ID: event.NewID(), Time: l.events[0].Time, Ephemeral: event.Type(kind).Ephemeral(), Data: data}
	l.events = slices.Insert(l.events, int(seq-l.shared-1), e)
	return seq
}

// add puts an event at the end.
func (l *script) add(kind string, data object) int64 { return l.insert(l.end()+1, kind, data) }

// repeat puts a copy of the event at a position in front of another, with members
// changed.
func (l *script) repeat(seq, before int64, change object) int64 {
	was := l.get(seq)
	data := object{}
	for key, value := range was.Data {
		data[key] = value
	}
	for key, value := range change {
		data[key] = value
	}
	return l.insert(before, was.Type, data)
}

// remove takes the nth event of a kind out, and returns where it was.
func (l *script) remove(kind string, nth int) int64 {
	l.f.t.Helper()
	at := l.at(kind, nth)
	l.shift(at, -1)
	l.events = slices.Delete(l.events, int(at-l.shared-1), int(at-l.shared))
	return at
}

// isListed reports whether clients are shown events of a kind in the history.
func isListed(kind string) bool {
	k, _ := event.Type(kind).Kind()
	return k.Listed()
}

// save writes the log, with right parents, hashes and end.
func (l *script) save() {
	l.f.t.Helper()
	parent, hash := l.parent, l.base
	var body []string
	for i, e := range l.events {
		line := e.line(parent)
		if isListed(e.Type) {
			parent = e.ID
		}
		body = append(body, line)
		hash = chain(hash, l.shared+int64(i)+1, line)
	}
	l.f.exec("DELETE FROM records WHERE key >> 32 = ?", l.row)
	l.f.exec("INSERT INTO records (key, head, body) VALUES (?, ?, ?)", l.row<<32|(l.shared+1), hash, []byte(strings.Join(body, "\n")))
	l.f.exec("UPDATE sessions SET seq = ?, head = ? WHERE id = ?", l.end(), hash, l.row)
}

func (e *entry) line(parent string) string {
	if e.parent != nil {
		parent = *e.parent
	}
	quoted := "null"
	if parent != "" {
		quoted = fmt.Sprintf("%q", parent)
	}
	mark := ""
	if e.Ephemeral {
		mark = `,"ephemeral":true`
	}
	data, err := json.Marshal(e.Data)
	if err != nil {
		panic(err)
	}
	line := fmt.Sprintf(`{"type":%q,"id":%q,"timestamp":%q,"parentId":%s%s,"data":%s}`, e.Type, e.ID, e.Time, quoted, mark, data)
	if e.spoil != nil {
		line = e.spoil(line)
	}
	return line
}

// chain is the hash after one more event, as docs/INTEGRITY.md has it.
func chain(hash []byte, seq int64, line string) []byte {
	digest := sha256.Sum256([]byte(line))
	sum := sha256.Sum256(slices.Concat(hash, binary.BigEndian.AppendUint64(nil, uint64(seq)), digest[:]))
	return sum[:]
}

// A process is the folder of a command that a test makes up.
type process struct {
	f     *folder
	id    string
	owner string
	lines []string
}

// process makes a sound record of a command that has ended, of a session that knows
// nothing of it.
func (f *folder) process(owner, key string) *process {
	p := &process{f: f, id: stored.ProcessID(owner, key), owner: owner}
	p.write("spec", entryLine("spec", "key", key, "owner", owner, "command", "true", "arg", "true", "dir", "/", "boot", "b", "marker", "m"))
	p.write("out.0000000000000000", "")
	p.lines = []string{
		entryLine("claimed", "pid", "100", "start", "7", "boot", "b", "namespace", "n"),
		entryLine("started", "pid", "101", "start", "8", "time", "1"),
		entryLine("exited", "status", "0", "bytes", "0", "kept", "0"),
		entryLine("ended", "bytes", "0", "kept", "0"),
	}
	return p
}

// command returns the record of the nth command of a session.
func (f *folder) command(session string, nth int) *process {
	f.t.Helper()
	l := f.script(session)
	key := l.get(l.at("tool.execution_begun", nth)).Data["key"].(string)
	p := &process{f: f, id: stored.ProcessID(session, key), owner: session}
	text, err := os.ReadFile(p.path("state"))
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if _, ok := stored.ParseEntry([]byte(line)); ok {
			p.lines = append(p.lines, line)
		}
	}
	return p
}

func (p *process) path(file string) string { return filepath.Join(p.f.dir, "processes", p.id, file) }

func (p *process) write(file, text string) {
	p.f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(file)), 0o700); err != nil {
		p.f.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(file), []byte(text), 0o600); err != nil {
		p.f.t.Fatal(err)
	}
}

// find is the place of a kind in the journal.
func (p *process) find(kind string) int {
	return slices.IndexFunc(p.lines, func(line string) bool { return strings.Contains(line, " "+kind+" ") })
}

// without takes a kind out of the journal.
func (p *process) without(kind string) *process {
	p.lines = slices.Delete(p.lines, p.find(kind), p.find(kind)+1)
	return p
}

// with puts a line behind a kind in the journal, or at its beginning.
func (p *process) with(after, line string) *process {
	p.lines = slices.Insert(p.lines, p.find(after)+1, line)
	return p
}

// save writes journal and claim.
func (p *process) save() {
	p.write("state", strings.Join(p.lines, "\n")+"\n")
	if i := p.find("claimed"); i >= 0 {
		p.write("claim", p.lines[i]+"\n")
	}
}

// entryLine writes a line of a journal.
func entryLine(kind string, pairs ...string) string {
	text := kind
	for i := 0; i < len(pairs); i += 2 {
		text += fmt.Sprintf(" %s=%q", pairs[i], pairs[i+1])
	}
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return fmt.Sprintf("%08x %s", h, text)
}
