package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// Options are the settings of a Manager. The zero value works.
type Options struct {
	Shell    string        // program that runs Spec.Command with -c; "/bin/sh" if empty
	Env      []string      // environment of commands whose Spec has none; PlainEnv() if nil
	Quota    int64         // bytes of disk for the output of one process; 64 MiB if zero
	Limits   Limits        // limits of commands whose Spec has none
	Nice     int           // number added to the nice value of commands; 5 if zero
	OOMScore int           // lowest oom_score_adj of commands, so that the kernel ends them before the daemon; 300 if zero
	Grace    time.Duration // time between TERM and KILL; 5s if zero
	Patience time.Duration // time between INT and TERM, and between TERM and KILL, for a command that is interrupted; 2s if zero
	Quiet    time.Duration // time without output after which a command with a terminal is checked for waiting for input; 1s if zero

	// Sandbox confines the commands; they are not confined if nil. The manager does not
	// close it.
	Sandbox *sandbox.Sandbox

	MaxRunning int   // maximum number of processes of one owner that are not gone; 64 if zero
	MaxDisk    int64 // maximum bytes of output of one owner; 4 GiB if zero

	Log *slog.Logger // receives errors that nobody waits for; they are discarded if nil

	AtStep func(step string) // called between the steps that take a start, a removal or a recovery through the file system; for tests

	fault string // point at which a test kills the daemon or the keeper
}

func (o Options) withDefaults() Options {
	o.Shell = cmp.Or(o.Shell, "/bin/sh")
	if o.Env == nil {
		o.Env = PlainEnv()
	}
	o.Quota = cmp.Or(o.Quota, 64<<20)
	o.Nice = cmp.Or(o.Nice, 5)
	o.OOMScore = cmp.Or(o.OOMScore, 300)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Patience = cmp.Or(o.Patience, 2*time.Second)
	o.Quiet = cmp.Or(o.Quiet, time.Second)
	o.MaxRunning = cmp.Or(o.MaxRunning, 64)
	o.MaxDisk = cmp.Or(o.MaxDisk, 4<<30)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Manager starts commands and knows every command that was started in its
// folder. It is safe for concurrent use.
type Manager struct {
	dir    string
	opts   Options
	folder *os.File
	lock   *os.File // file in the folder that is locked while the manager is open
	boot   string   // boot and PID namespace of this program

	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines of the manager: one for each process that is not gone, and preparations

	mu             sync.Mutex
	procs          map[ID]*proc
	closed         bool
	spareKeeper    *keeperProcess // idle keeper for the next command; nil if there is none
	startingKeeper bool           // true while a goroutine starts a spare keeper
	spareDirs      []*procDir     // spare folders for the next commands
	creatingDirs   bool           // true while a goroutine creates spare folders
}

// Open locks the folder and loads its processes: it connects to the keepers that
// still run, reads how processes ended meanwhile, and records those that are lost.
func Open(dir string, opts Options) (*Manager, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("open processes in %s: %w", dir, err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	folder, lock, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("open processes in %s: %w", dir, err)
	}
	m := &Manager{dir: dir, opts: opts.withDefaults(), folder: folder, lock: lock, boot: boot, procs: map[ID]*proc{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.load(); err != nil {
		m.Close()
		return nil, fmt.Errorf("open processes in %s: %w", dir, err)
	}
	return m, nil
}

// lockName is the name of the file that is locked. The folder itself could be locked by a
// command that a sandbox keeps from the files in it: it can open folders to list them.
const lockName = "lock"

// lockFolder creates the folder if it does not exist and locks the file in it, so that no
// other program manages it.
func lockFolder(dir string) (folder, lock *os.File, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	if lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, nil, err
	}
	if err = tryLock(lock); err == nil {
		folder, err = os.Open(dir)
	}
	if err != nil {
		lock.Close()
	}
	return folder, lock, err
}

// load adopts the processes that were started before, and removes the folders that
// an earlier daemon did not finish creating or removing.
func (m *Manager) load() error {
	names, err := m.folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case isID(name):
			m.adopt(ID(name))
		case strings.HasPrefix(name, removedPrefix), strings.HasPrefix(name, sparePrefix):
			m.removeFolder(filepath.Join(m.dir, name)) // if this fails, the next Open tries again
		}
	}
	return nil
}

// Close stops managing the folder and unlocks it. Processes keep running.
func (m *Manager) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.work.Wait()
	if m.spareKeeper != nil {
		m.spareKeeper.end()
	}
	for _, r := range m.spareDirs {
		r.remove()
	}
	return errors.Join(unlock(m.lock), m.lock.Close(), m.folder.Close())
}

// find returns a process if it belongs to the owner.
func (m *Manager) find(owner Owner, id ID) (*proc, error) {
	if owner == "" {
		return nil, ErrNoOwner
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.procs[id]
	if p == nil || p.start.spec.Owner != owner {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return p, nil
}

// Get returns what is known about a process.
func (m *Manager) Get(owner Owner, id ID) (Info, error) {
	p, err := m.find(owner, id)
	if err != nil {
		return Info{}, err
	}
	return p.info(), nil
}

// Find returns what is known about the process that was started with a key.
func (m *Manager) Find(owner Owner, key string) (Info, error) {
	return m.Get(owner, idOf(owner, key))
}

// List returns an owner's processes, the oldest first.
func (m *Manager) List(owner Owner) ([]Info, error) {
	if owner == "" {
		return nil, ErrNoOwner
	}
	return m.list(func(p *proc) bool { return p.start.spec.Owner == owner }), nil
}

// All returns the processes of all owners, the oldest first. It is for the
// operator of the daemon, not for a session.
func (m *Manager) All() []Info {
	return m.list(func(*proc) bool { return true })
}

func (m *Manager) list(wanted func(*proc) bool) []Info {
	m.mu.Lock()
	var found []*proc
	for _, p := range m.procs {
		if wanted(p) {
			found = append(found, p)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(found, func(a, b *proc) int {
		return cmp.Or(a.start.time.Compare(b.start.time), cmp.Compare(a.id, b.id))
	})
	infos := make([]Info, len(found))
	for i, p := range found {
		infos[i] = p.info()
	}
	return infos
}

// Wait blocks until the process has ended: then Info.State is final, and all that
// the process itself wrote is in the log. Children may still run and write.
func (m *Manager) Wait(ctx context.Context, owner Owner, id ID) (Info, error) {
	return m.wait(ctx, owner, id, func(s *status) bool { return s.state.Ended() })
}

// WaitGone blocks until the process and all its children have ended.
func (m *Manager) WaitGone(ctx context.Context, owner Owner, id ID) (Info, error) {
	return m.wait(ctx, owner, id, func(s *status) bool { return s.gone })
}

// wait blocks until the status of the process is as a function wants it.
func (m *Manager) wait(ctx context.Context, owner Owner, id ID, until func(*status) bool) (Info, error) {
	p, err := m.find(owner, id)
	if err != nil {
		return Info{}, err
	}
	err = p.await(ctx, until)
	return p.info(), err
}

func itoa(n int) string { return strconv.Itoa(n) }
