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
	sockets  []string // files and folders whose sockets can be reached
	hidden   []string // files and folders that cannot be read
	services []string // sockets, and folders of such, that cannot be reached
	through  []string // paths whose folders get no right, so that hidden files cannot be read
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
	p := s.newPlan()
	p.services = s.o.Services
	p.write = append(p.write, r.Root)
	p.optional = slices.Concat(s.o.Temp, r.Writable)
	if t := s.temporary(r.Env, slices.Concat(p.write, p.optional)); t != "" {
		p.optional = append(p.optional, t)
	}
	p.write = append(p.write, s.given(slices.Concat(p.write, p.optional))...)
	if r.Repository != nil {
		p.git = *r.Repository
	} else {
		p.git = FindRepository(r.Root)
	}
	return p.named(strings.Join(append(slices.Concat(p.write, p.optional), p.git.key()), "\x00"))
}

// newPlan returns a plan for reading.
func (s *Sandbox) newPlan() plan {
	return plan{devices: usualDevices, hidden: s.hidden(), through: s.mounts.through(s.o.Hidden)}
}

// named returns the plan with a key of what it was made from, beside what is hidden.
func (p plan) named(key string) plan {
	p.key = strings.Join(append(slices.Concat(p.hidden, p.through), "", strings.Join(p.services, "\x00"), "", key), "\x00")
	return p
}

// given returns the files and folders of the settings that commands may change, without links.
// A path through a folder that commands may change anyway needs no right of its own; if it
// leads elsewhere, a command may have put a link there.
func (s *Sandbox) given(changeable []string) (list []string) {
	for _, path := range s.o.Writable {
		others := slices.DeleteFunc(slices.Clone(s.o.Writable), func(other string) bool { return other == path })
		others = append(others, changeable...)
		real, err := filepath.EvalSymlinks(path)
		switch {
		case err != nil:
			s.warn("commands.writable names " + path + ", which is not there: it counts as soon as it is")
		case !leadsThrough(path, others):
			list = append(list, real)
		case !slices.ContainsFunc(realPaths(others), func(dir string) bool { return isBelow(real, dir) }):
			s.warn("commands.writable names " + path + ", which leads to " + real + " by a link in a folder that commands may change: it does not count; name " + real + " if that is right")
		}
	}
	return list
}

// temporary returns the folder for temporary files that an environment names, without
// links; "" if it is none, too much would be in it, or its path leads through a folder that
// commands may change: it needs no right then, and a command may have put a link there.
func (s *Sandbox) temporary(env, changeable []string) string {
	dir := variable(env, "TMPDIR")
	if !filepath.IsAbs(dir) || leadsThrough(dir, changeable) {
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
func (p *plan) list() {
	p.hidden = append(slices.Clone(p.hidden), "/dev")
	p.read = p.listBelow("/", slices.Concat(p.hidden, p.through), func(path string, kind fs.FileMode) bool {
		return kind != fs.ModeSymlink && kind != fs.ModeSocket && !slices.Contains(p.hidden, path)
	})
}

// listSockets lists where sockets can be reached: everywhere but in hidden folders, and but for
// those of services.
func (p *plan) listSockets() {
	closed := slices.Concat(p.hidden, p.services)
	p.sockets = p.listBelow("/", slices.Concat(closed, p.through), func(path string, kind fs.FileMode) bool {
		return (kind.IsDir() || kind == fs.ModeSocket) && !slices.Contains(closed, path)
	})
}

// listBelow lists the files and folders in a folder that are wanted. Of a folder that is above one
// of the given paths the entries are listed.
func (p *plan) listBelow(dir string, apart []string, wanted func(path string, kind fs.FileMode) bool) (list []string) {
	if !slices.Contains(p.looked, dir) {
		p.looked = append(p.looked, dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch isAbove := func(other string) bool { return other != path && isBelow(other, path) }; {
		case !wanted(path, e.Type()):
		case e.IsDir() && slices.ContainsFunc(apart, isAbove):
			list = append(list, p.listBelow(path, apart, wanted)...)
		default:
			list = append(list, path)
		}
	}
	return list
}
