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

// A procDir is the folder of a process with its files. It has a temporary name until
// a process claims it. Creating files is slow where others were just removed, so
// the manager keeps spare folders from the first command on.
type procDir struct {
	path             string
	dir, spec, state *os.File
	synced           bool // true if the empty files are on disk
}

// sparePrefix is the prefix of the names of folders that no process has claimed. The
// next Open removes them.
const sparePrefix = "new."

// newDir creates a folder under a temporary name.
func (m *Manager) newDir() (*procDir, error) {
	d := &procDir{path: filepath.Join(m.dir, sparePrefix+rand.Text())}
	if err := d.create(); err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

// create creates the folder and its files: spec, journal, and the first segment of
// the output, which the keeper fills.
func (d *procDir) create() (err error) {
	if err := os.Mkdir(d.path, 0o700); err != nil {
		return err
	}
	if d.dir, err = os.Open(d.path); err != nil {
		return err
	}
	if d.spec, err = d.createFile(keeper.SpecFile); err != nil {
		return err
	}
	if d.state, err = d.createFile(keeper.StateFile); err != nil {
		return err
	}
	for _, name := range []string{output.DataFile(0), output.IndexFile(0)} {
		f, err := d.createFile(name)
		if err != nil {
			return err
		}
		f.Close()
	}
	if err := reserveDisk(d.state, journalSize); err != nil {
		return err
	}
	return errors.Join(writeEmptyLine(d.spec), writeEmptyLine(d.state))
}

// writeEmptyLine writes an empty line. An append to a block that is already on disk is
// synced in half the time.
func writeEmptyLine(f *os.File) error {
	_, err := f.Write([]byte("\n"))
	return err
}

// journalSize is the disk space reserved for a journal, so that the end of a
// command can be recorded on a full disk.
const journalSize = 16 << 10

func (d *procDir) createFile(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

// SpareDirs is the number of spare folders that are created at a time. The system
// writes them to disk together, which costs hardly more than one.
const SpareDirs = 8

// createSpareDirs creates spare folders in the background if there is none left.
func (m *Manager) createSpareDirs() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.spareDirs) > 0 || m.creatingDirs || m.closed {
		return
	}
	m.creatingDirs = true
	m.work.Go(func() {
		dirs := m.newDirs(SpareDirs)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.spareDirs, m.creatingDirs = dirs, false
	})
}

// newDirs creates n folders, or fewer if one fails: then the next start creates
// its own and reports the error.
func (m *Manager) newDirs(n int) []*procDir {
	var dirs []*procDir
	var files []*os.File
	for range n {
		d, err := m.newDir()
		if err != nil {
			break
		}
		dirs, files = append(dirs, d), append(files, d.dir, d.spec, d.state)
	}
	synced := syncAll(files...) == nil
	for _, d := range dirs {
		d.synced = synced
	}
	return dirs
}

// takeSpareDir returns a spare folder, or a new one if there is none.
func (m *Manager) takeSpareDir() (*procDir, error) {
	m.mu.Lock()
	n := len(m.spareDirs)
	var d *procDir
	if n > 0 {
		d, m.spareDirs = m.spareDirs[n-1], m.spareDirs[:n-1]
	}
	m.mu.Unlock()
	if d != nil {
		return d, nil
	}
	return m.newDir()
}

// claimDir writes the spec into a spare folder and renames it to that of the process.
// If a folder of that name exists, it is not ours and is left alone.
func (p *proc) claimDir() (*procDir, error) {
	d, err := p.m.takeSpareDir()
	if err != nil {
		return nil, err
	}
	_, err = d.spec.Write(p.start.record().Line())
	p.m.failHere("written")
	if err == nil {
		err = os.Rename(d.path, p.dir) // fails if the folder exists
	}
	if err != nil {
		d.remove()
		return nil, err
	}
	d.path = p.dir
	return d, nil
}

// sync writes a start to disk: the spec, its name, and the folder's name. It does
// so concurrently, because the system then writes them together.
func (d *procDir) sync(folder *os.File) error {
	if d.synced {
		return syncAll(folder, d.spec)
	}
	return syncAll(folder, d.spec, d.dir)
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
func (d *procDir) close() {
	for _, f := range []*os.File{d.dir, d.spec, d.state} {
		if f != nil {
			f.Close()
		}
	}
}

// remove removes the folder. If that fails, the next Open removes it.
func (d *procDir) remove() {
	d.close()
	os.RemoveAll(d.path)
}
