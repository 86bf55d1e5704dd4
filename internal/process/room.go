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

// A room is the folder of a process with its files, and has a name that no process
// has until one moves in. To make files takes long where others were removed just
// now, so from the first command on there are rooms in reserve.
type room struct {
	path             string
	dir, spec, state *os.File
	synced           bool // the empty files are on disk
}

// unborn begins the names of rooms that nobody has moved into. The next Open
// removes them.
const unborn = "new."

// newRoom makes a room.
func (m *Manager) newRoom() (*room, error) {
	r := &room{path: filepath.Join(m.dir, unborn+rand.Text())}
	if err := r.furnish(); err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// furnish makes the files: ours, and the first of those that the keeper writes
// the output to.
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

// begin writes an empty line. What is added to a block that is on disk is synced in
// half the time.
func begin(f *os.File) error {
	_, err := f.Write([]byte("\n"))
	return err
}

// journalSize is the disk that a journal has from the start, so that the end of
// a command is recorded on a full disk too.
const journalSize = 16 << 10

func (r *room) create(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(r.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

// Reserve is how many folders are made in advance, at a time. The system writes all
// of them to disk together, which costs hardly more than one.
const Reserve = 8

// prepare makes rooms for the next commands, when there is none left.
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

// newRooms makes so many rooms, or as many as it can: the next command makes its
// own, or says why that is impossible.
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

// takeRoom returns the room that there is, or a new one.
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

// moveIn makes a room the folder of a process. If there is such a folder it is not
// ours, and left alone.
func (p *proc) moveIn() (*room, error) {
	r, err := p.m.takeRoom()
	if err != nil {
		return nil, err
	}
	_, err = r.spec.Write(p.birth.record().Line())
	p.m.failHere("written")
	if err == nil {
		err = os.Rename(r.path, p.dir) // which replaces no folder
	}
	if err != nil {
		r.remove()
		return nil, err
	}
	r.path = p.dir
	return r, nil
}

// sync brings a start to disk: the spec, its name, and the folder's name. All at
// once, since the system then writes them together.
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

// close lets go of the files.
func (r *room) close() {
	for _, f := range []*os.File{r.dir, r.spec, r.state} {
		if f != nil {
			f.Close()
		}
	}
}

// remove undoes what was made. If that fails the next Open does it.
func (r *room) remove() {
	r.close()
	os.RemoveAll(r.path)
}
