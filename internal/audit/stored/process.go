package stored

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Process is the folder of a command, as it is on disk.
type Process struct {
	ID      string
	Spec    *Entry  // the requested command; nil if there is no readable one
	Claim   *Entry  // the decision whether the process runs; nil if there is none yet
	Journal []Entry // entries of the journal, in order
	Output  int64   // bytes of output that are there
	Files   bool    // true if the first file of the output exists
}

// ProcessID is the name of the folder of a command: it is made from the owner and
// the key of the call that started it.
func ProcessID(owner, key string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + key))
	return "p" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}

// ProcessRecords are the records of processes in a data folder.
type ProcessRecords struct{ dir string }

// OpenWorkspace returns the records in the data folder of a workspace, and the identity of the
// workspace.
func OpenWorkspace(dir string) (records ProcessRecords, identity string, err error) {
	records.dir = filepath.Join(dir, "workspace")
	text, err := os.ReadFile(filepath.Join(records.dir, "identity"))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is not the data folder of a workspace: it has no workspace/identity", dir)
	}
	return records, strings.TrimSpace(string(text)), err
}

// Processes yields the names of the folders of commands. Those that are in reserve,
// or about to be removed, are left out.
func (f ProcessRecords) Processes() iter.Seq2[string, error] {
	return f.names("processes", func(name string) bool {
		return len(name) == len(ProcessID("", "")) && name[0] == 'p' && strings.Trim(name[1:], "0123456789abcdefghijklmnopqrstuv") == ""
	})
}

// names yields the wanted names in a folder of the data folder, which need not be
// there.
func (f ProcessRecords) names(folder string, wanted func(string) bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir, err := os.Open(filepath.Join(f.dir, folder))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield("", err)
			return
		}
		defer dir.Close()
		for {
			names, err := dir.Readdirnames(page)
			for _, name := range names {
				if wanted(name) && !yield(name, nil) {
					return
				}
			}
			if err != nil { // the end, or what else there is cannot be read
				return
			}
		}
	}
}

// HasProcess reports whether there is a folder of that name.
func (f ProcessRecords) HasProcess(id string) bool {
	_, err := os.Lstat(filepath.Join(f.dir, "processes", id))
	return err == nil
}

// Process reads the folder of a command. It reports false if there is none.
func (f ProcessRecords) Process(id string) (p Process, found bool, err error) {
	p.ID = id
	dir := filepath.Join(f.dir, "processes", id)
	if _, err := os.Lstat(dir); err != nil {
		return p, false, nil
	}
	spec, err := entries(filepath.Join(dir, "spec"))
	if err != nil {
		return p, true, err
	}
	if len(spec) == 1 && spec[0].Kind == "spec" && spec[0].Get("key") != "" && spec[0].Get("owner") != "" {
		p.Spec = &spec[0]
	}
	claim, err := entries(filepath.Join(dir, "claim"))
	if err != nil {
		return p, true, err
	}
	for i := range claim {
		if p.Claim == nil && (claim[i].Kind == "claimed" || claim[i].Kind == "abandoned") {
			p.Claim = &claim[i]
		}
	}
	if p.Journal, err = entries(filepath.Join(dir, "state")); err != nil {
		return p, true, err
	}
	p.measure(dir)
	return p, true, nil
}

// measure counts the output.
func (p *Process) measure(dir string) {
	list, _ := filepath.Glob(filepath.Join(dir, "out.*")) // the pattern is well-formed
	for _, path := range list {
		if info, err := os.Lstat(path); err == nil {
			p.Output += info.Size()
			p.Files = p.Files || strings.HasSuffix(path, "out.0000000000000000")
		}
	}
}

// An Entry is a line of a journal: a kind and its values.
type Entry struct {
	Kind   string
	values [][2]string
}

// Get returns the first value of a name.
func (e Entry) Get(name string) string {
	for _, v := range e.values {
		if v[0] == name {
			return v[1]
		}
	}
	return ""
}

// All returns every value of a name.
func (e Entry) All(name string) (all []string) {
	for _, v := range e.values {
		if v[0] == name {
			all = append(all, v[1])
		}
	}
	return all
}

// Int returns a number, and false if there is none.
func (e Entry) Int(name string) (int64, bool) {
	n, err := strconv.ParseInt(e.Get(name), 10, 64)
	return n, err == nil
}

// entries reads the lines of a file that are entries. Others are passed over: the
// last words of a keeper, and lines that were only half written.
func entries(path string) (list []Entry, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		if e, ok := ParseEntry(line); ok {
			list = append(list, e)
		}
	}
	return list, nil
}

// ParseEntry reads a line: a checksum of eight digits, a kind, and values that are
// quoted as in Go.
func ParseEntry(line []byte) (Entry, bool) {
	sum, rest, ok := strings.Cut(string(line), " ")
	if !ok || len(sum) != 8 || fmt.Sprintf("%08x", checksum(rest)) != sum {
		return Entry{}, false
	}
	kind, rest, _ := strings.Cut(rest, " ")
	e := Entry{Kind: kind}
	for rest != "" {
		name, quoted, ok := strings.Cut(rest, "=")
		if !ok || name == "" {
			return Entry{}, false
		}
		prefix, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return Entry{}, false
		}
		value, err := strconv.Unquote(prefix)
		if err != nil {
			return Entry{}, false
		}
		e.values = append(e.values, [2]string{name, value})
		rest = strings.TrimPrefix(quoted[len(prefix):], " ")
	}
	return e, kind != ""
}

// checksum is FNV-1a of 32 bits.
func checksum(text string) uint32 {
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return h
}
