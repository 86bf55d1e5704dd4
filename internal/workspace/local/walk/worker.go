package walk

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace/local/gitignore"
)

// A node is an open folder. It is closed when no work item needs it any more.
type node struct {
	dir   *scope.Dir
	path  string
	rules *gitignore.Rules
	depth int
	refs  atomic.Int32
}

func (n *node) release() {
	if n.refs.Add(-1) == 0 {
		_ = n.dir.Close()
	}
}

// A worker does work items, one after the other.
type worker struct {
	*walker
	number int
	buf    []byte
}

// do does a work item and releases its folder. When the walk is cancelled it only releases
// the folder.
func (w *worker) do(t workItem) {
	defer t.node.release()
	switch {
	case w.ctx.Err() != nil:
	case t.files != nil:
		w.files(t.node, t.files)
	case t.folder != "":
		w.enter(t.node, t.folder)
	default:
		w.read(t.node)
	}
}

func (w *worker) files(n *node, names []string) {
	for _, name := range names {
		if w.ctx.Err() != nil {
			return
		}
		if err := w.visit(w.number, File{n.dir, n.path, name}); err != nil {
			w.problem(err)
		}
	}
}

// enter opens and reads a folder in a folder.
func (w *worker) enter(above *node, name string) {
	if above.depth == maxDepth {
		w.problem(fmt.Errorf("%s: it is more than %d folders deep", above.dir.Path(), maxDepth))
		return
	}
	dir, err := above.dir.Dir(name)
	if err != nil {
		w.problem(err)
		return
	}
	n := &node{dir: dir, path: above.path + name + "/", rules: above.rules, depth: above.depth + 1}
	n.refs.Store(1)
	defer n.release()
	w.read(n)
}

// maxList is the maximum number of entries of a folder that are handled together.
const maxList = 1 << 11

// A list is some entries of a folder. The names share one text.
type list struct {
	text  []byte
	ends  []int
	kinds []scope.Kind
	whole bool // true if the list has all entries of the folder
	first bool // true if it is the first list of the folder
}

func (l *list) add(name []byte, kind scope.Kind) {
	l.text = append(l.text, name...)
	l.ends = append(l.ends, len(l.text))
	l.kinds = append(l.kinds, kind)
}

// read reads the entries of a folder.
func (w *worker) read(n *node) {
	l := list{first: true}
	err := n.dir.Each(w.buf, func(name []byte, kind scope.Kind) bool {
		if l.add(name, kind); len(l.kinds) == maxList {
			w.selectEntries(n, l)
			l = list{}
		}
		return w.ctx.Err() == nil
	})
	if err != nil {
		w.problem(err)
	}
	l.whole = l.first
	w.selectEntries(n, l)
}

// selectEntries selects the entries of a list that are wanted, and hands them on as work items.
func (w *worker) selectEntries(n *node, l list) {
	text := string(l.text)
	names := make([]string, len(l.ends))
	for i, start := 0, 0; i < len(names); i++ {
		names[i] = text[start:l.ends[i]]
		start = l.ends[i]
	}
	if l.first && w.Honour {
		w.addRules(n, names, l.whole)
	}
	var folders, files []string
	for i, name := range names {
		isFolder := l.kinds[i] == scope.Folder
		switch {
		case !isFolder && l.kinds[i] != scope.Regular, !w.wants(n, name, isFolder):
		case isFolder:
			folders = append(folders, name)
		default:
			files = append(files, name)
		}
	}
	w.distribute(n, folders, files)
}

func (w *worker) wants(n *node, name string, isFolder bool) bool {
	if w.Filter != nil {
		if c := w.Filter(n.path, name, isFolder); c != Neither {
			return c == Take
		}
	}
	return name != ".git" && !n.rules.Ignored(n.dir.Path(), name, isFolder)
}

// distribute pushes work items for folders and files. It does the rest itself: the last files, and
// the work items that push did not accept.
func (w *worker) distribute(n *node, folders, files []string) {
	for _, name := range folders {
		n.refs.Add(1)
		if t := (workItem{node: n, folder: name}); !w.push(t) {
			w.do(t)
		}
	}
	for len(files) > filesPerItem {
		n.refs.Add(1)
		if t := (workItem{node: n, files: files[:filesPerItem]}); !w.push(t) {
			w.do(t)
		}
		files = files[filesPerItem:]
	}
	w.files(n, files)
}

// addRules adds the ignore rules of a folder. If names are not all of its names, it has to
// try to open the files with rules.
func (w *worker) addRules(n *node, names []string, whole bool) {
	n.rules = rulesOf(n.dir, n.rules, func(name string) bool { return !whole || slices.Contains(names, name) })
}

// maxRules is the maximum size of a file with rules.
const maxRules = 1 << 20

// rulesOf adds the rules of a folder to those above it. The root of a repository begins
// without rules from above. A file that cannot be read has no rules.
func rulesOf(dir *scope.Dir, above *gitignore.Rules, has func(name string) bool) *gitignore.Rules {
	rules := above
	if has(".git") && dir.Has(".git") {
		rules = (*gitignore.Rules)(nil).Below(dir.Path(), exclude(dir))
	}
	if !has(".gitignore") {
		return rules
	}
	text, err := dir.ReadFile(".gitignore", maxRules)
	if err != nil {
		return rules
	}
	return rules.Below(dir.Path(), text)
}

// exclude returns the rules in .git/info/exclude, if that file can be read.
func exclude(dir *scope.Dir) []byte {
	for _, name := range []string{".git", "info"} {
		below, err := dir.Dir(name)
		if err != nil {
			return nil
		}
		defer func() { _ = below.Close() }()
		dir = below
	}
	text, err := dir.ReadFile("exclude", maxRules)
	if err != nil {
		return nil
	}
	return text
}
