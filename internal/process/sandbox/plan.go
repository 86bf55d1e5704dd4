package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A plan says which rights a command has to which files. Rights that it does not give are
// refused.
type plan struct {
	key      string   // what the plan was made from
	read     []string // files and folders that can be read and executed
	write    []string // files and folders that can be changed, too
	devices  []string // devices that can be used
	git      Repository
	optional []string // those of write that may be missing without a word
	looked   []string // folders whose entries the plan lists: a new entry makes a new plan
}

// usualDevices are the devices that every program may use.
var usualDevices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts",
}

// plan returns the plan for a command. It lists no folders yet.
func (s *Sandbox) plan(r Request) plan {
	p := plan{devices: usualDevices}
	p.write = append(p.write, r.Root)
	p.optional = append(p.optional, s.o.Temp...)
	if t := s.temporary(r.Env); t != "" {
		p.optional = append(p.optional, t)
	}
	p.optional = append(p.optional, r.Writable...)
	for _, path := range s.o.Writable {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			p.write = append(p.write, real)
		} else {
			s.warn("commands.writable names " + path + ", which is not there: it counts as soon as it is")
		}
	}
	if r.Repository != nil {
		p.git = *r.Repository
	} else {
		p.git = FindRepository(r.Root)
	}
	p.key = strings.Join(append(append(slices.Clone(p.write), p.optional...), p.git.key()), "\x00")
	return p
}

// temporary returns the folder for temporary files that an environment names, without
// links; "" if it is none or too much would be in it.
func (s *Sandbox) temporary(env []string) string {
	dir := variable(env, "TMPDIR")
	if !filepath.IsAbs(dir) {
		return ""
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || s.tooWide(real) != "" {
		return ""
	}
	return real
}

// list lists what can be read: all files but the hidden ones. Rules only give rights, so
// the neighbours of what is hidden are listed one by one.
func (p *plan) list(hidden []string) {
	hidden = append(slices.Clone(hidden), "/dev")
	p.listBelow("/", hidden)
}

func (p *plan) listBelow(dir string, hidden []string) {
	p.looked = append(p.looked, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Type() == fs.ModeSymlink, e.Type() == fs.ModeSocket, slices.Contains(hidden, path):
		case e.IsDir() && slices.ContainsFunc(hidden, func(h string) bool { return isBelow(h, path) }):
			p.listBelow(path, hidden)
		default:
			p.read = append(p.read, path)
		}
	}
}
