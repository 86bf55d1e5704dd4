package difftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// patience is how long a script may run. Recorders end at once.
const patience = time.Minute

// A world is the inside of a sandbox. It runs scripts and looks at what they did.
type world struct {
	tree           map[string]node   // files as they have to be before each script
	fixed          map[fileID]string // names of the files that scripts cannot change
	null, out, err *os.File          // standard streams of scripts
}

// A node is a file of the tree.
type node struct {
	text     string // type and content
	dev, ino uint64
}

// Files of the sandbox that scripts have no reason to name.
const (
	logFile    = "/rec/log"
	statusFile = "/rec/status"
	outFile    = "/rec/out"
	errFile    = "/rec/err"
	noBuiltins = "/rec/nobuiltins" // start-up file of bash: commands that are not found are recorded, builtins are off
	builtins   = "/rec/builtins"   // start-up file of bash: commands that are not found are recorded
)

func newWorld() (*world, error) {
	list, err := exec.Command("/rec/bash", "-c", "compgen -b").Output()
	if err != nil {
		return nil, fmt.Errorf("run bash: %w", err)
	}
	start := "command_not_found_handle() { /rec/missing \"$@\"; }\nunset BASH_ENV\n"
	off := "enable -n " + strings.Join(strings.Fields(string(list)), " ") + "\n"
	for path, content := range map[string]string{logFile: "", outFile: "", errFile: "", builtins: start, noBuiltins: start + off} {
		if err := writeFile(path, content); err != nil {
			return nil, err
		}
	}
	w := &world{}
	if w.out, err = os.OpenFile(outFile, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if w.err, err = os.OpenFile(errFile, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if w.null, err = os.Open(os.DevNull); err != nil {
		return nil, err
	}
	if w.fixed, err = readFixed(); err != nil {
		return nil, err
	}
	w.tree, err = readTree()
	return w, err
}

// fixedFolders are the folders in which scripts can change nothing.
var fixedFolders = []string{"/usr", "/rec", "/lib", "/lib64"}

// readFixed returns the names of all files that scripts cannot change. All programs that are
// installed are one file, the recorder.
func readFixed() (map[fileID]string, error) {
	names := make(map[fileID]string)
	for _, dir := range fixedFolders {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			var st syscall.Stat_t
			err = syscall.Lstat(path, &st)
			names[fileID{uint64(st.Dev), st.Ino}] = installedAs(path)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// readTree returns all files that scripts could change.
func readTree() (map[string]node, error) {
	tree := map[string]node{}
	err := filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(fixedFolders, path):
			return fs.SkipDir
		case path == os.DevNull: // it is that of the machine, where others may change its mode
			return nil
		}
		tree[path], err = readNode(path)
		return err
	})
	return tree, err
}

// maxContent is the size up to which the content of a file is compared. Larger files are
// copies of the recorder.
const maxContent = 64 << 10

func readNode(path string) (node, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return node{}, err
	}
	n := node{dev: uint64(st.Dev), ino: st.Ino, text: fmt.Sprintf("%o", st.Mode)}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFLNK:
		to, err := os.Readlink(path)
		n.text += " " + to
		return n, err
	case syscall.S_IFREG:
		if st.Size > maxContent {
			n.text += " " + strconv.FormatInt(st.Size, 10) + " bytes"
			return n, nil
		}
		content, err := os.ReadFile(path)
		n.text += " " + string(content)
		return n, err
	}
	return n, nil
}

// run runs a script in the tree as it has to be, and puts back what the script changed.
func (w *world) run(r request) response {
	res := response{}
	dir := project
	if r.Enter != "" && probe(project, r.Enter) == "dir" {
		dir, res.Entered = absolute(r.Enter), true
	}
	for _, path := range r.Probes {
		res.Probed = append(res.Probed, probe(dir, path))
	}
	if err := w.execute(r); err != nil {
		res.Err = err.Error()
		return res
	}
	after, err := readTree()
	if err != nil {
		res.Err = err.Error()
		return res
	}
	log, err := os.ReadFile(logFile)
	if err != nil {
		res.Err = err.Error()
		return res
	}
	if res.Records, err = w.decodeRecords(log, after); err != nil {
		res.Err = err.Error()
	}
	stderr, _ := os.ReadFile(errFile)
	res.Stderr = string(stderr)
	if res.Changes, err = w.restore(after); err != nil {
		res.Err = err.Error()
	}
	return res
}

// probe says what a path is for a command in a folder.
func probe(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	st, err := os.Stat(path)
	switch {
	case err == nil && st.IsDir():
		return "dir"
	case err == nil && st.Mode()&0o111 != 0:
		return "program"
	case err == nil:
		return "file"
	}
	at := strings.LastIndexByte(path, '/')
	if parent, err := os.Stat(path[:at+1]); err == nil && parent.IsDir() && at+1 < len(path) && len(path)-at <= 255 {
		return "free"
	}
	return "none"
}

// execute starts a script and waits for all processes that come of it.
func (w *world) execute(r request) error {
	if err := os.WriteFile(statusFile, []byte{r.Status}, 0o644); err != nil {
		return err
	}
	for _, path := range []string{logFile, outFile, errFile} {
		if err := os.Truncate(path, 0); err != nil {
			return err
		}
	}
	for _, f := range []*os.File{w.out, w.err} {
		if _, err := f.Seek(0, 0); err != nil {
			return err
		}
	}
	env := append([]string{"PWD=" + project}, baseEnv...)
	switch {
	case r.Shell != "bash":
	case r.Builtins:
		env = append(env, "BASH_ENV="+builtins)
	default:
		env = append(env, "BASH_ENV="+noBuiltins)
	}
	_, err := syscall.ForkExec("/rec/"+r.Shell, []string{r.Shell, "-c", r.Script}, &syscall.ProcAttr{
		Dir: project, Env: env,
		Files: []uintptr{w.null.Fd(), w.out.Fd(), w.err.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", r.Shell, err)
	}
	return waitForAll()
}

// waitForAll waits until this process, the first one of its namespace, is the only one.
func waitForAll() error {
	var late atomic.Bool
	timer := time.AfterFunc(patience, func() {
		late.Store(true)
		_ = syscall.Kill(-1, syscall.SIGKILL)
	})
	defer timer.Stop()
	for {
		_, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR), err == nil:
		case late.Load():
			return errors.New("the script did not end")
		case errors.Is(err, syscall.ECHILD):
			return nil
		default:
			return err
		}
	}
}

// restore puts back the tree and returns what was changed.
func (w *world) restore(after map[string]node) ([]change, error) {
	var list []change
	for path, n := range w.tree {
		if is := after[path]; is.text != n.text {
			list = append(list, change{path, n.text, is.text})
		}
	}
	for path, n := range after {
		if _, was := w.tree[path]; !was {
			list = append(list, change{path, "", n.text})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b change) int { return strings.Compare(a.Path, b.Path) })
	for _, c := range list {
		if err := putBack(c); err != nil {
			return list, err
		}
	}
	var err error
	w.tree, err = readTree()
	return list, err
}

// putBack undoes a change.
func putBack(c change) error {
	if c.Is != "" {
		if err := os.RemoveAll(c.Path); err != nil {
			return err
		}
	}
	content, known := projectFiles[c.Path]
	switch {
	case c.Was == "":
		return nil
	case slices.Contains(projectPrograms, c.Path):
		return copyFile("/rec/missing", c.Path, 0o755)
	case !known:
		return fmt.Errorf("%s was %s and is %s: the sandbox cannot be used again", c.Path, c.Was, c.Is)
	}
	return writeFile(c.Path, content)
}

// decodeRecords reads what recorders wrote.
func (w *world) decodeRecords(log []byte, tree map[string]node) ([]record, error) {
	names, err := w.fileNames(tree)
	if err != nil {
		return nil, err
	}
	var list []record
	d := decoder{rest: log}
	for len(d.rest) > 0 && !d.bad {
		one := decoder{rest: d.bytes()}
		r := record{Files: map[int]string{}}
		if head := one.strings(); len(head) == 2 {
			r.Path, r.Dir = head[0], head[1]
		}
		r.Args, r.Env = one.strings(), one.strings()
		for len(one.rest) > 0 && !one.bad {
			fd := int(one.number())
			r.Files[fd] = describeFile(names, one.number(), one.number(), one.number(), one.number())
		}
		d.bad = d.bad || one.bad
		list = append(list, r)
	}
	if d.bad {
		return list, errors.New("the log of the recorders is damaged")
	}
	return list, nil
}

type fileID struct{ dev, ino uint64 }

// fileNames returns the names of the files that can be open.
func (w *world) fileNames(tree map[string]node) (map[fileID]string, error) {
	names := maps.Clone(w.fixed)
	for path, n := range tree {
		names[fileID{n.dev, n.ino}] = path
	}
	for name, f := range map[string]*os.File{"out": w.out, "err": w.err, "null": w.null} {
		var st syscall.Stat_t
		if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
			return nil, err
		}
		names[fileID{uint64(st.Dev), st.Ino}] = name
	}
	return names, nil
}

// describeFile returns the name of an open file and what it is open for.
func describeFile(names map[fileID]string, dev, ino, mode, flags uint64) string {
	name := names[fileID{dev, ino}]
	switch {
	case mode&syscall.S_IFMT == syscall.S_IFIFO:
		return "pipe"
	case name == "":
		name = "unknown file"
	}
	switch flags & syscall.O_ACCMODE {
	case syscall.O_RDONLY:
		return name + ":r"
	case syscall.O_RDWR:
		return name + ":rw"
	}
	if flags&syscall.O_APPEND != 0 {
		return name + ":a"
	}
	return name + ":w"
}

// A decoder reads what the recorder encoded.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) strings() []string {
	n := d.number()
	var list []string
	for range n {
		if d.bad {
			break
		}
		list = append(list, string(d.bytes()))
	}
	return list
}
