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
)

// Options are the settings of a Manager. The zero value works.
type Options struct {
	Shell    string        // runs Spec.Command with -c; "/bin/sh" if empty
	Env      []string      // environment of commands that bring none; PlainEnv() if nil
	Quota    int64         // bytes of disk for the output of one process; 64 MiB if zero
	Limits   Limits        // of jobs that bring none
	Nice     int           // added to the priority number of commands; 5 if zero
	OOMScore int           // what commands have at least, so that they are ended before the daemon is; 300 if zero
	Grace    time.Duration // between TERM and KILL; 5s if zero
	Quiet    time.Duration // without output before it is looked whether a command with a terminal waits for input; 1s if zero

	MaxRunning int   // processes of one owner that are not gone; 64 if zero
	MaxDisk    int64 // bytes of output of one owner; 4 GiB if zero

	Log *slog.Logger // discards if nil

	fault string // where tests let the power fail
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
	o.Quiet = cmp.Or(o.Quiet, time.Second)
	o.MaxRunning = cmp.Or(o.MaxRunning, 64)
	o.MaxDisk = cmp.Or(o.MaxDisk, 4<<30)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Manager starts commands and knows all that were started in its folder. It
// is safe for concurrent use.
type Manager struct {
	dir    string
	opts   Options
	folder *os.File // locked
	boot   string

	ctx    context.Context // until Close
	cancel context.CancelFunc
	work   sync.WaitGroup // one for each process that is not gone

	mu       sync.Mutex
	procs    map[ID]*proc
	closed   bool
	spare    *newKeeper // nil if there is none
	hiring   bool       // there will be one
	rooms    []*room    // in reserve
	building bool       // there will be more
}

// Open takes over the folder: it finds keepers again, reads what ended
// meanwhile and notes what is lost.
func Open(dir string, opts Options) (*Manager, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("open processes in %s: %w", dir, err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	folder, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("open processes in %s: %w", dir, err)
	}
	m := &Manager{dir: dir, opts: opts.withDefaults(), folder: folder, boot: boot, procs: map[ID]*proc{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.load(); err != nil {
		m.Close()
		return nil, fmt.Errorf("open processes in %s: %w", dir, err)
	}
	return m, nil
}

// lockFolder makes the folder if need be, and this program the only one that
// manages it.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := tryLock(folder); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// load finds what was started before.
func (m *Manager) load() error {
	names, err := m.folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case isID(name):
			m.adopt(ID(name))
		case strings.HasPrefix(name, discarded), strings.HasPrefix(name, unborn):
			m.removeFolder(filepath.Join(m.dir, name)) // or the next time
		}
	}
	return nil
}

// Close lets go of the folder. Processes go on.
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
	if m.spare != nil {
		m.spare.dismiss()
	}
	for _, r := range m.rooms {
		r.remove()
	}
	return errors.Join(unlock(m.folder), m.folder.Close())
}

// find returns a process that an owner may see.
func (m *Manager) find(owner Owner, id ID) (*proc, error) {
	if owner == "" {
		return nil, ErrNoOwner
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.procs[id]
	if p == nil || p.birth.spec.Owner != owner {
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

// Find is Get by key.
func (m *Manager) Find(owner Owner, key string) (Info, error) {
	return m.Get(owner, idOf(owner, key))
}

// List returns an owner's processes, the oldest first.
func (m *Manager) List(owner Owner) ([]Info, error) {
	if owner == "" {
		return nil, ErrNoOwner
	}
	return m.list(func(p *proc) bool { return p.birth.spec.Owner == owner }), nil
}

// All returns everybody's processes, the oldest first. It is for whoever runs
// the daemon.
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
		return cmp.Or(a.birth.time.Compare(b.birth.time), cmp.Compare(a.id, b.id))
	})
	infos := make([]Info, len(found))
	for i, p := range found {
		infos[i] = p.info()
	}
	return infos
}

// Wait blocks until the process has ended: Info.State is final, its output is
// complete but for children that live on.
func (m *Manager) Wait(ctx context.Context, owner Owner, id ID) (Info, error) {
	return m.wait(ctx, owner, id, func(s *story) bool { return s.state.Ended() })
}

// WaitGone blocks until nothing of the process is left.
func (m *Manager) WaitGone(ctx context.Context, owner Owner, id ID) (Info, error) {
	return m.wait(ctx, owner, id, func(s *story) bool { return s.gone })
}

func (m *Manager) wait(ctx context.Context, owner Owner, id ID, until func(*story) bool) (Info, error) {
	p, err := m.find(owner, id)
	if err != nil {
		return Info{}, err
	}
	err = p.await(ctx, until)
	return p.info(), err
}

func itoa(n int) string { return strconv.Itoa(n) }
