package process

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/output"
)

// A room is the folder of a process with its files. It has a temporary name until
// a process claims it. Creating files is slow where others were just removed, so
// the manager keeps spare folders from the first command on.
type room struct {
	path             string
	dir, spec, state *os.File
	synced           bool // true if the empty files are on disk
}

// unborn is the prefix of the names of folders that no process has claimed. The
// next Open removes them.
const unborn = "new."

// newRoom creates a folder under a temporary name.
func (m *Manager) newRoom() (*room, error) {
	r := &room{path: filepath.Join(m.dir, unborn+rand.Text())}
	if err := r.furnish(); err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// furnish creates the folder and its files: spec, journal, and the first segment of
// the output, which the keeper fills.
func (r *room) furnish() (err error) {
	if err := os.Mkdir(r.path, 0o700); err != nil {
		return err
	}
	if r.dir, err = os.Open(r.path); err != nil {
		return err
	}
	if r.spec, err = r.create(keeper.SpecFile); err != nil {
		return err
	}
	if r.state, err = r.create(keeper.StateFile); err != nil {
		return err
	}
	for _, name := range []string{output.DataFile(0), output.IndexFile(0)} {
		f, err := r.create(name)
		if err != nil {
			return err
		}
		f.Close()
	}
	if err := reserveDisk(r.state, journalSize); err != nil {
		return err
	}
	return errors.Join(begin(r.spec), begin(r.state))
}

// begin writes an empty line. An append to a block that is already on disk is
// synced in half the time.
func begin(f *os.File) error {
	_, err := f.Write([]byte("\n"))
	return err
}

// journalSize is the disk space reserved for a journal, so that the end of a
// command can be recorded on a full disk.
const journalSize = 16 << 10

func (r *room) create(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(r.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

// Reserve is the number of spare folders that are created at a time. The system
// writes them to disk together, which costs hardly more than one.
const Reserve = 8

// prepare creates spare folders in the background if there is none left.
func (m *Manager) prepare() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rooms) > 0 || m.building || m.closed {
		return
	}
	m.building = true
	m.work.Go(func() {
		rooms := m.newRooms(Reserve)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rooms, m.building = rooms, false
	})
}

// newRooms creates n folders, or fewer if one fails: then the next start creates
// its own and reports the error.
func (m *Manager) newRooms(n int) []*room {
	var rooms []*room
	var files []*os.File
	for range n {
		r, err := m.newRoom()
		if err != nil {
			break
		}
		rooms, files = append(rooms, r), append(files, r.dir, r.spec, r.state)
	}
	synced := syncAll(files...) == nil
	for _, r := range rooms {
		r.synced = synced
	}
	return rooms
}

// takeRoom returns a spare folder, or a new one if there is none.
func (m *Manager) takeRoom() (*room, error) {
	m.mu.Lock()
	n := len(m.rooms)
	var r *room
	if n > 0 {
		r, m.rooms = m.rooms[n-1], m.rooms[:n-1]
	}
	m.mu.Unlock()
	if r != nil {
		return r, nil
	}
	return m.newRoom()
}

// moveIn writes the spec into a spare folder and renames it to that of the process.
// If a folder of that name exists, it is not ours and is left alone.
func (p *proc) moveIn() (*room, error) {
	r, err := p.m.takeRoom()
	if err != nil {
		return nil, err
	}
	_, err = r.spec.Write(p.birth.record().Line())
	p.m.failHere("written")
	if err == nil {
		err = os.Rename(r.path, p.dir) // fails if the folder exists
	}
	if err != nil {
		r.remove()
		return nil, err
	}
	r.path = p.dir
	return r, nil
}

// sync writes a start to disk: the spec, its name, and the folder's name. It does
// so concurrently, because the system then writes them together.
func (r *room) sync(folder *os.File) error {
	if r.synced {
		return syncAll(folder, r.spec)
	}
	return syncAll(folder, r.spec, r.dir)
}

func syncAll(files ...*os.File) error {
	errs := make([]error, len(files))
	var all sync.WaitGroup
	for i, f := range files {
		all.Go(func() { errs[i] = f.Sync() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// close closes the files.
func (r *room) close() {
	for _, f := range []*os.File{r.dir, r.spec, r.state} {
		if f != nil {
			f.Close()
		}
	}
}

// remove removes the folder. If that fails, the next Open removes it.
func (r *room) remove() {
	r.close()
	os.RemoveAll(r.path)
}
