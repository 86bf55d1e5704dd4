package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// tamper changes the file behind the store's back.
func tamper(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, Options{}, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// makeDamageStore creates a store with a session "victim", whose events 1 to 8 are in four
// records, a fork of it at event 3, and a session "other"; it closes the store.
func makeDamageStore(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	add(t, s, "other", eventlog.End{}, "o1")
	one := add(t, s, "victim", eventlog.End{}, "v1")
	three := add(t, s, "victim", one, "v2", "v3")
	six := add(t, s, "victim", three, "v4", "v5", "v6")
	add(t, s, "victim", six, "v7", "v8")
	if _, err := s.Fork(t.Context(), "fork", "victim", batch(three, "f4")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The victim is the second session: its records begin at this key.
const victimKeys = 2 << 32

func TestDamageIsReportedWithItsPlaceAndHarmsNobodyElse(t *testing.T) {
	for name, c := range map[string]struct {
		sql    string
		says   int       // number of events that are still read
		at     event.Seq // position of the damage
		reason string
		forked bool // the fork suffers as well
	}{
		"a byte is flipped in the middle":     {flip("v5"), 3, 4, record.BrokenChain, false},
		"a byte is flipped at the end":        {flip("v8"), 6, 7, record.BrokenChain, false},
		"a byte is flipped at the start":      {flip("v1"), 0, 1, record.BrokenChain, true},
		"a line is not an event":              {"UPDATE records SET body = CAST(replace(body, '{\"type\"', '{\"tipe\"') AS BLOB) WHERE key = %d + 4", 3, 4, record.NotAnEvent, false},
		"a record is empty":                   {"UPDATE records SET body = x'' WHERE key = %d + 4", 3, 4, record.NotAnEvent, false},
		"an event of a record is cut off":     {"UPDATE records SET body = CAST(substr(body, 1, instr(body, char(10)) - 1) AS BLOB) WHERE key = %d + 4", 3, 4, record.BrokenChain, false},
		"an event is added to a record":       {"UPDATE records SET body = CAST(body || char(10) || body AS BLOB) WHERE key = %d + 4", 3, 4, record.BrokenChain, false},
		"the first row is deleted":            {"DELETE FROM records WHERE key = %d + 1", 0, 1, record.Missing, true},
		"a middle row is deleted":             {"DELETE FROM records WHERE key = %d + 4", 3, 4, record.Missing, false},
		"the last row is deleted":             {"DELETE FROM records WHERE key = %d + 7", 6, 7, record.Missing, false},
		"all rows are deleted":                {"DELETE FROM records WHERE key > %d + 0", 0, 1, record.Missing, true},
		"two rows are swapped":                {swap(2, 7), 1, 2, record.BrokenChain, true},
		"a row is moved":                      {"UPDATE records SET key = key + 1 WHERE key = %d + 4", 3, 4, record.Missing, false},
		"a row is added":                      {"INSERT INTO records SELECT %[1]d + 9, head, body FROM records WHERE key = %[1]d + 7", 8, 9, record.Unknown, false},
		"a row's hash is changed":             {"UPDATE records SET head = zeroblob(32) WHERE key = %d + 4", 3, 4, record.BrokenChain, false},
		"a row's hash is cut":                 {"UPDATE records SET head = substr(head, 1, 31) WHERE key = %d + 4", 3, 4, record.BrokenChain, false},
		"the index has another hash":          {"UPDATE sessions SET head = zeroblob(32) WHERE name = 'victim' AND %d", 8, 8, record.OtherHash, false},
		"the index's hash is cut":             {"UPDATE sessions SET head = x'00' WHERE name = 'victim' AND %d", 8, 8, record.OtherHash, false},
		"the index is behind":                 {"UPDATE sessions SET seq = 6, head = (SELECT head FROM records WHERE key = %d + 4) WHERE name = 'victim'", 6, 7, record.Unknown, false},
		"the index is ahead":                  {"UPDATE sessions SET seq = 9 WHERE name = 'victim' AND %d", 8, 9, record.Missing, false},
		"the index is in the middle of a row": {"UPDATE sessions SET seq = 5 WHERE name = 'victim' AND %d", 5, 5, record.OtherHash, false},
		"the index says nothing happened":     {"UPDATE sessions SET seq = 0 WHERE name = 'victim' AND %d", 0, 1, record.OtherHash, false},
		"the row is another session's":        {"UPDATE records SET body = (SELECT body FROM records WHERE key = (1 << 32) + 1), head = (SELECT head FROM records WHERE key = (1 << 32) + 1) WHERE key = %d + 1", 0, 1, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := makeDamageStore(t)
			tamper(t, path, fmt.Sprintf(c.sql, victimKeys))
			s := open(t, path)
			got, err := read(t, s, "victim")
			want := []string{"v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"}[:c.says]
			if c.reason == "" { // a whole record was put there: the break shows in the next one
				want, c.at, c.reason = []string{"o1"}, 2, record.BrokenChain
			}
			if !slices.Equal(got, want) {
				t.Errorf("victim says %q, want %q", got, want)
			}
			checkDamage(t, "read", err, eventlog.Damage{Session: "victim", Seq: c.at, Reason: c.reason})
			checkOthers(t, s, c.forked)
			checkQuarantine(t, s, err)
		})
	}
}

// flip changes a bit in what an event of the victim says.
func flip(text string) string {
	return fmt.Sprintf("UPDATE records SET body = CAST(replace(body, '%s', '%s') AS BLOB) WHERE key > %%d", text, strings.ToUpper(text))
}

// swap exchanges what two rows of the victim hold.
func swap(a, b int) string {
	return fmt.Sprintf(`CREATE TEMP TABLE t AS SELECT * FROM records WHERE key IN (%%[1]d + %[1]d, %%[1]d + %[2]d);
		UPDATE records SET (head, body) = (SELECT head, body FROM t WHERE t.key = %%[1]d + %[2]d) WHERE key = %%[1]d + %[1]d;
		UPDATE records SET (head, body) = (SELECT head, body FROM t WHERE t.key = %%[1]d + %[1]d) WHERE key = %%[1]d + %[2]d`, a, b)
}

func checkDamage(t *testing.T, what string, err error, want eventlog.Damage) {
	t.Helper()
	if d, ok := errors.AsType[*eventlog.Damage](err); !ok || *d != want {
		t.Errorf("%s: err = %v, want %v", what, err, &want)
	}
}

// checkOthers checks that the sessions beside a damaged one still work.
func checkOthers(t *testing.T, s *Store, forked bool) {
	t.Helper()
	for session, err := range s.Sessions(t.Context(), eventlog.Query{}) {
		if err != nil {
			t.Fatalf("sessions: %v", err)
		}
		if session.ID == "other" {
			add(t, s, "other", session.End, "o2")
		}
	}
	if got, err := read(t, s, "other"); err != nil || fmt.Sprint(got) != "[o1 o2]" {
		t.Errorf("other says %q, %v; want o1 and o2", got, err)
	}
	got, err := read(t, s, "fork")
	if !forked && (err != nil || fmt.Sprint(got) != "[v1 v2 v3 f4]") {
		t.Errorf("fork says %q, %v; want v1 to f4", got, err)
	}
	if d, ok := errors.AsType[*eventlog.Damage](err); forked && (!ok || d.Session != "fork") {
		t.Errorf("fork says %q, %v; want damage", got, err)
	}
	add(t, s, "new", eventlog.End{}, "n1")
}

// checkQuarantine puts the victim away and gets it out of the way.
func checkQuarantine(t *testing.T, s *Store, damage error) {
	t.Helper()
	d, ok := errors.AsType[*eventlog.Damage](damage)
	if !ok {
		return
	}
	if err := s.Quarantine(t.Context(), "victim", d); err != nil {
		t.Fatal(err)
	}
	session, err := s.Session(t.Context(), "victim")
	if err != nil || session.Damage == nil || *session.Damage != *d {
		t.Errorf("victim is %+v, %v; want it damaged", session, err)
	}
	_, err = s.Append(t.Context(), "victim", batch(session.End, "v9"))
	checkDamage(t, "append", err, *d)
	for _, id := range []event.SessionID{"victim", "fork"} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
	}
	var left int
	if err := s.reading.QueryRow("SELECT count(*) FROM records WHERE key BETWEEN ? AND ?", victimKeys, victimKeys+maxSeq).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d records are left, %v", left, err)
	}
}

func TestDamageToAForksOriginIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		sql    string
		reason string
	}{
		"the parent is gone":         {"DELETE FROM sessions WHERE name = 'victim'", record.Orphaned},
		"it is its own parent":       {"UPDATE sessions SET parent = id WHERE name = 'fork'", record.Orphaned},
		"its parent is a stranger":   {"UPDATE sessions SET parent = 1 WHERE name = 'fork'", record.Missing},
		"its parent is another fork": {"UPDATE sessions SET parent = 1, shared = 1 WHERE name = 'fork'", record.OtherOrigin},
		"it shares less":             {"UPDATE sessions SET shared = 2 WHERE name = 'fork'", record.OtherOrigin},
		"it shares more":             {"UPDATE sessions SET shared = 4 WHERE name = 'fork'", record.OtherOrigin},
		"it shares nothing any more": {"UPDATE sessions SET shared = 0, parent = NULL WHERE name = 'fork'", record.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			path := makeDamageStore(t)
			tamper(t, path, c.sql)
			s := open(t, path)
			got, err := read(t, s, "fork")
			if len(got) != 0 {
				t.Errorf("fork says %q, which may not be its own", got)
			}
			if d, ok := errors.AsType[*eventlog.Damage](err); !ok || d.Session != "fork" || d.Reason != c.reason {
				t.Errorf("read: err = %v, want damage: %s", err, c.reason)
			}
			session, err := s.Session(t.Context(), "fork")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Fork(t.Context(), "grandchild", "fork", batch(eventlog.End{Seq: 2}, "x")); err == nil {
				t.Error("a fork of it within what it shares is possible")
			}
			if err := s.Delete(t.Context(), session.ID); err != nil {
				t.Errorf("delete: %v", err)
			}
			if got, err := read(t, s, "other"); err != nil || len(got) != 1 {
				t.Errorf("other says %q, %v", got, err)
			}
		})
	}
}

// SQLite believes an index of its own. A name that it finds there leads to the
// row of another session.
func TestANameThatLeadsToAnotherSessionIsDamage(t *testing.T) {
	path := makeDamageStore(t)
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entry := bytes.Index(all, []byte("victim\x02")) // the name, then the id
	if entry < 0 {
		t.Fatal("the index is not as it was")
	}
	all[entry+len("victim")] = 3 // the fork's
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	want := eventlog.Damage{Session: "victim", Seq: 1, Reason: record.BrokenEntry}
	got, err := read(t, s, "victim")
	checkDamage(t, fmt.Sprintf("read %q", got), err, want)
	_, err = s.Session(t.Context(), "victim")
	checkDamage(t, "session", err, want)
	_, err = s.Append(t.Context(), "victim", batch(eventlog.End{Seq: 4}, "x"))
	checkDamage(t, "append", err, want)
	checkDamage(t, "delete", s.Delete(t.Context(), "victim"), want)
	checkOthers(t, s, false)
}

func TestABrokenIndexEntryIsShownAndReadAllTheSame(t *testing.T) {
	path := makeDamageStore(t)
	tamper(t, path, "UPDATE sessions SET info = '{' WHERE name = 'victim'")
	s := open(t, path)
	session, err := s.Session(t.Context(), "victim")
	if err != nil || session.Damage == nil || session.Damage.Reason != record.BrokenEntry {
		t.Errorf("victim is %+v, %v; want a broken entry", session, err)
	}
	if got, err := read(t, s, "victim"); err != nil || len(got) != 8 {
		t.Errorf("victim says %q, %v", got, err)
	}
	checkOthers(t, s, false)
}

// Someone who can compute hashes can write another history. Only a copy of the
// end, kept elsewhere, tells.
func TestARewrittenHistoryIsNotDetected(t *testing.T) {
	path := makeDamageStore(t)
	s := open(t, path)
	before, err := s.Session(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	forged := batch(eventlog.End{}, "never happened")
	end, err := forged.End()
	if err != nil {
		t.Fatal(err)
	}
	tamper(t, path, fmt.Sprintf(`DELETE FROM records WHERE key > %[1]d AND key < %[1]d + %[2]d;
		INSERT INTO records VALUES (%[1]d + 1, x'%[3]x', x'%[4]x');
		UPDATE sessions SET seq = 1, head = x'%[3]x' WHERE name = 'victim'`, victimKeys, int64(maxSeq), end.Hash, record.Join(forged.Events)))
	if got, err := read(t, s, "victim"); err != nil || fmt.Sprint(got) != "[never happened]" {
		t.Errorf("victim says %q, %v; want the forgery", got, err)
	}
	for _, err := range s.ReadFrom(t.Context(), "victim", before.End) {
		if !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("read after the end that was kept elsewhere: err = %v, want ErrConflict", err)
		}
	}
}

// Sessions whose names are exchanged are whole; only what they say can tell.
func TestExchangedNamesAreNotDetected(t *testing.T) {
	path := makeDamageStore(t)
	tamper(t, path, `UPDATE sessions SET name = 'x' WHERE name = 'victim';
		UPDATE sessions SET name = 'victim' WHERE name = 'other'; UPDATE sessions SET name = 'other' WHERE name = 'x'`)
	if got, err := read(t, open(t, path), "victim"); err != nil || fmt.Sprint(got) != "[o1]" {
		t.Errorf("victim says %q, %v; want o1", got, err)
	}
}

// big makes sessions that fill pages of their own.
func big(t *testing.T, sessions int) (path string, ids []event.SessionID) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	for i := range sessions {
		id := event.SessionID(fmt.Sprintf("session-%04d", i))
		ids = append(ids, id)
		var end eventlog.End
		var err error
		for j := range 6 {
			b := batch(end, fmt.Sprintf("%s says %d %s", id, j, strings.Repeat("x", 3000)))
			b.Info = &eventlog.Info{Name: "name of " + string(id), Summary: strings.Repeat("s", 500)}
			if end, err = s.Append(t.Context(), id, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, ids
}

// overwritePage overwrites the head of the page that holds a text and has a kind.
func overwritePage(t *testing.T, path, text string, kind byte) {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; ; {
		i := bytes.Index(all[at:], []byte(text))
		if i < 0 {
			t.Fatalf("no page of kind %d holds %q", kind, text)
		}
		at += i
		if page := all[at/pageSize*pageSize:]; page[0] == kind {
			copy(page, bytes.Repeat([]byte{0xff}, 16))
			break
		}
		at++
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

const tableLeaf = 0x0d // the first byte of a page with rows

func TestABrokenPageOfRecordsIsDamageOfItsSession(t *testing.T) {
	path, ids := big(t, 8)
	overwritePage(t, path, "session-0003 says 3", tableLeaf)
	s := open(t, path)
	damaged := 0
	for _, id := range ids {
		got, err := read(t, s, id)
		switch d, ok := errors.AsType[*eventlog.Damage](err); {
		case ok && d.Session == id && d.Reason == brokenPage && d.Seq == event.Seq(len(got)+1):
			damaged++
		case err != nil || len(got) != 6:
			t.Errorf("%s says %d things, %v", id, len(got), err)
		}
	}
	// A page is shared with a neighbour at most.
	if damaged == 0 || damaged > 2 {
		t.Errorf("%d sessions are damaged, want 1 or 2", damaged)
	}
	add(t, s, "new", eventlog.End{}, "n1")
	session, err := s.Session(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, ids[0], session.End, "goes on")
}

func TestABrokenPageOfTheIndexHidesNoOtherSession(t *testing.T) {
	path, ids := big(t, 60)
	overwritePage(t, path, "name of session-0030", tableLeaf)
	s := open(t, path)
	var damaged, whole int
	for session, err := range s.Sessions(t.Context(), eventlog.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if session.Damage != nil {
			damaged++
			_, err := read(t, s, session.ID)
			checkDamage(t, "read", err, eventlog.Damage{Session: session.ID, Seq: 1, Reason: brokenPage})
			continue
		}
		if whole++; session.End.Seq != 6 {
			t.Errorf("%s ends at %d", session.ID, session.End.Seq)
		}
		if got, err := read(t, s, session.ID); err != nil || len(got) != 6 {
			t.Errorf("%s says %d things, %v", session.ID, len(got), err)
		}
	}
	if damaged == 0 || damaged > 20 || damaged+whole != len(ids) {
		t.Errorf("%d sessions are damaged and %d are whole, of %d", damaged, whole, len(ids))
	}
	for _, err := range s.Active(t.Context()) {
		t.Errorf("active: %v, want none", err)
	}
	add(t, s, "new", eventlog.End{}, "n1")
}

// crash copies a store that is in use, as a power cut would leave it, with only
// so many bytes of the write-ahead log.
func crash(t *testing.T, path string, wal int64) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "abide.db")
	for _, side := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + side)
		if err != nil {
			t.Fatal(err)
		}
		if side != "" {
			data = data[:min(wal, int64(len(data)))]
		}
		if err := os.WriteFile(copied+side, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// A write-ahead log that is cut takes the last appends with it, whole ones only.
// Nothing in the file tells that they ever were: that is what syncing is for.
func TestATruncatedWriteAheadLogLosesTheLastAppendsUnnoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	if err := s.write.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil { // nobody commits now
		t.Fatal(err)
	}
	const appends = 6
	var end eventlog.End
	for i := range appends {
		end = add(t, s, "s", end, fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for size := info.Size(); size >= 0; size -= 3000 {
		again := open(t, crash(t, path, size))
		got, err := read(t, again, "s")
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		if len(got)%2 != 0 {
			t.Errorf("cut to %d bytes: half an append is there: %q", size, got)
		}
		seen[len(got)/2] = true
		add(t, again, "new", eventlog.End{}, "n1")
		again.Close()
	}
	if !seen[appends] || !seen[0] || len(seen) < appends {
		t.Errorf("the cuts left %v appends, want all numbers up to %d", seen, appends)
	}
}

func TestAFlippedByteInTheWriteAheadLogLosesTheLaterAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	var end eventlog.End
	for i := range 6 {
		end = add(t, s, "s", end, fmt.Sprint("text ", i))
	}
	copied := crash(t, path, 1<<30)
	wal, err := os.ReadFile(copied + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(wal, []byte("text 3"))
	wal[at] ^= 1
	if err := os.WriteFile(copied+"-wal", wal, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, open(t, copied), "s"); err != nil || len(got) != 3 {
		t.Errorf("s says %q, %v; want what came before", got, err)
	}
}
