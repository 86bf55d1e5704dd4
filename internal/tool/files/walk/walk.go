// Package walk visits the files below a folder, several at a time.
//
//   - Links are not followed. What the scope does not allow, and what cannot be
//     read, is left out and counted.
//   - What .gitignore files say is honoured if that is wanted: those in the tree
//     and those above it, up to the root of the repository. A repository in the
//     tree has rules of its own.
//   - Folders named .git are not entered, unless a filter wants them.
//   - Memory is bounded, also for a folder of a million files.
//
// Files come in no order.
package walk

import (
	"context"
	"runtime"
	"sync"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool/files/gitignore"
)

// A Choice is what a filter says of a name.
type Choice int

// The choices.
const (
	Neither Choice = iota // the ignore rules decide
	Take
	Leave
)

// Options say what is visited. The zero value visits all files.
type Options struct {
	// Honour is whether .gitignore files are honoured.
	Honour bool
	// Ignore are the rules of those above the folder, see [Above].
	Ignore *gitignore.Rules
	// Filter decides before the rules do, if it is set. The path is that of the
	// folder below the root: empty, or with a slash at its end.
	Filter func(path, name string, isFolder bool) Choice
}

// A File is a regular file that is visited.
type File struct {
	Dir  *scope.Dir
	Path string // of the folder below the root: empty, or with a slash at its end
	Name string
}

// Problems are what could not be visited.
type Problems struct {
	Count int
	First error // the first by its text
}

// Add counts a problem.
func (p *Problems) Add(err error) {
	if p.Count++; p.First == nil || err.Error() < p.First.Error() {
		p.First = err
	}
}

// Join counts the problems of another walk too.
func (p *Problems) Join(q Problems) {
	if q.Count > 0 {
		p.Add(q.First)
		p.Count += q.Count - 1
	}
}

// Workers is how many files are visited at a time. It is more than there are
// processors, since some of them wait for a disk.
func Workers() int { return min(16, max(4, runtime.GOMAXPROCS(0))) }

// Tree visits the files below a folder, and closes it. Visit is called with the
// number of the worker that calls it, below [Workers]; what it returns is
// counted as a problem.
func Tree(ctx context.Context, root *scope.Dir, o Options, visit func(worker int, f File) error) (Problems, error) {
	w := &walker{ctx: ctx, Options: o, visit: visit}
	w.ready.L = &w.mu
	top := &node{dir: root, rules: o.Ignore}
	top.refs.Store(1)
	w.push(task{node: top})
	var workers sync.WaitGroup
	for i := range Workers() {
		workers.Go(func() { w.work(i) })
	}
	workers.Wait()
	return w.problems, context.Cause(ctx)
}

// A walker is one walk.
type walker struct {
	Options
	ctx   context.Context
	visit func(worker int, f File) error

	mu       sync.Mutex
	ready    sync.Cond
	tasks    []task // the last comes first, so that few folders are open at a time
	undone   int    // tasks that wait or are being done
	problems Problems
}

// A task is a share of the work: to read a folder, to open a folder in it and
// read that, or to visit some of its files.
type task struct {
	node   *node
	folder string
	files  []string
}

const (
	maxTasks = 1 << 12 // that wait; beyond that, workers do at once what comes up
	maxDepth = 200
	share    = 64 // files in a task
)

// push adds a task, if there is room for it.
func (w *walker) push(t task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) >= maxTasks {
		return false
	}
	w.tasks = append(w.tasks, t)
	w.undone++
	w.ready.Signal()
	return true
}

// pop waits for a task. When all are done there is none any more.
func (w *walker) pop() (task, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.tasks) == 0 && w.undone > 0 {
		w.ready.Wait()
	}
	if len(w.tasks) == 0 {
		return task{}, false
	}
	t := w.tasks[len(w.tasks)-1]
	w.tasks = w.tasks[:len(w.tasks)-1]
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
	w.problems.Add(err)
}

// work does tasks until there are none.
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
