// Package walk visits the files below a folder concurrently.
//
//   - Links are not followed. Files that the scope does not allow, or that cannot be
//     read, are skipped and counted.
//   - The rules of .gitignore files are honoured if requested: those of files in the
//     tree, and of files above it up to the root of the repository. A repository inside
//     the tree has its own rules.
//   - Folders named .git are not entered, unless a filter takes them.
//   - Memory use is bounded, also for a folder of a million files.
//
// Files are visited in any order.
package walk

import (
	"context"
	"runtime"
	"sync"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace/local/gitignore"
)

// A Choice is the decision of a filter about a name.
type Choice int

// The choices.
const (
	Neither Choice = iota // the ignore rules decide
	Take
	Leave
)

// Options say what is visited. The zero value visits all files.
type Options struct {
	// Honour is true if .gitignore files are honoured.
	Honour bool
	// Ignore are the rules from the folders above, see [Above].
	Ignore *gitignore.Rules
	// Filter, if it is not nil, decides before the rules do. The path is that of the
	// folder, relative to the root: empty, or with a slash at its end.
	Filter func(path, name string, isFolder bool) Choice
}

// A File is a regular file that is visited.
type File struct {
	Dir  *scope.Dir
	Path string // path of its folder relative to the root: empty, or with a slash at its end
	Name string
}

// Problems count the files and folders that could not be visited.
type Problems struct {
	Count int
	First error // the first error in alphabetical order
}

// add counts a problem.
func (p *Problems) add(err error) {
	if p.Count++; p.First == nil || err.Error() < p.First.Error() {
		p.First = err
	}
}

// Join adds the problems of another walk.
func (p *Problems) Join(q Problems) {
	if q.Count > 0 {
		p.add(q.First)
		p.Count += q.Count - 1
	}
}

// Workers returns the number of concurrent workers. It is at least 4, because some
// workers wait for a disk.
func Workers() int { return min(16, max(4, runtime.GOMAXPROCS(0))) }

// Tree visits the files below a folder, and closes the folder. It calls visit with the
// number of the worker, which is less than [Workers]. An error of visit is counted as a
// problem.
func Tree(ctx context.Context, root *scope.Dir, o Options, visit func(worker int, f File) error) (Problems, error) {
	w := &walker{ctx: ctx, Options: o, visit: visit}
	w.ready.L = &w.mu
	top := &node{dir: root, rules: o.Ignore}
	top.refs.Store(1)
	w.push(workItem{node: top})
	var workers sync.WaitGroup
	for i := range Workers() {
		workers.Go(func() { w.work(i) })
	}
	workers.Wait()
	return w.problems, context.Cause(ctx)
}

// A walker is the state of one walk.
type walker struct {
	Options
	ctx   context.Context
	visit func(worker int, f File) error

	mu       sync.Mutex
	ready    sync.Cond
	items    []workItem // stack of waiting work items: the last is done first, so that few folders are open at a time
	undone   int        // number of work items that wait or are being done
	problems Problems
}

// A workItem is a part of the work: read a folder, open and read a folder in it, or visit
// some of its files.
type workItem struct {
	node   *node
	folder string
	files  []string
}

const (
	maxItems     = 1 << 12 // maximum number of waiting work items; beyond that, a worker does them itself
	maxDepth     = 200     // maximum depth of folders
	filesPerItem = 64      // maximum number of files in a work item
)

// push adds a work item and reports true, unless too many are waiting.
func (w *walker) push(t workItem) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) >= maxItems {
		return false
	}
	w.items = append(w.items, t)
	w.undone++
	w.ready.Signal()
	return true
}

// pop waits for a work item. It reports false when all are done.
func (w *walker) pop() (workItem, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.items) == 0 && w.undone > 0 {
		w.ready.Wait()
	}
	if len(w.items) == 0 {
		return workItem{}, false
	}
	t := w.items[len(w.items)-1]
	w.items = w.items[:len(w.items)-1]
	return t, true
}

func (w *walker) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.undone--; w.undone == 0 {
		w.ready.Broadcast()
	}
}

func (w *walker) problem(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems.add(err)
}

// work does work items until all are done.
func (w *walker) work(number int) {
	own := &worker{walker: w, number: number, buf: make([]byte, 1<<15)}
	for {
		t, ok := w.pop()
		if !ok {
			return
		}
		own.do(t)
		w.done()
	}
}
