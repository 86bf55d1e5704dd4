// Package sandbox decides what the commands of agents may do to the machine that they run
// on, and has the kernel hold it. There are two profiles.
//
//   - Workspace bounds mistakes. A command writes below the working directory of its
//     session, in temporary folders, in the repository of the working directory and in
//     caches of its own. It reads everything but the data folder of this program, block
//     devices and what only root could read of other users. The network is there, unless
//     it is switched off.
//   - Sealed bounds intent, for code that nobody trusts: beyond that, the command sees no
//     process, no socket and no network of the machine, and writes nothing but the folder.
//
// What holds is what the kernel can hold: [Report] says what that is here. A confinement
// is complete or an error: nothing runs with half of one.
//
// The rules are made here, once for each working directory, and handed to the keeper as a
// descriptor. Package confine applies them there.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Mode says whether commands are confined.
type Mode string

const (
	Auto    Mode = "auto"    // confined as far as this kernel can; the default
	Require Mode = "require" // not started if this kernel cannot hold the whole profile
	Off     Mode = "off"     // not confined
)

// A Profile is what a command may do.
type Profile string

const (
	None      Profile = ""          // everything that the user may do
	Workspace Profile = "workspace" // change the working directory
	Sealed    Profile = "sealed"    // change the working directory, and see nothing of the machine but files
)

// Options say what a sandbox allows. The zero value works.
type Options struct {
	Mode     Mode     // Auto if empty
	Writable []string // further files and folders that commands may change, as absolute paths
	Offline  bool     // true if commands have no network but one of their own
	Hidden   []string // files and folders that commands may not read, as absolute paths: the data folder, keys
	Cache    string   // folder in which each working directory has its caches; commands keep those of the user, which they cannot write, if empty
	Temp     []string // folders that everybody writes; those of the system if nil
	Home     string   // home folder of the user
	Services []string // sockets, or folders of such, of programs that run commands for whoever asks, as absolute paths; those of the system if nil

	// Warn is called with what is not held although it should be, once for each text. It
	// may be nil.
	Warn func(text string)
	// ABI returns the version of Landlock; that of the kernel if nil. For tests.
	ABI func() int
}

// usualTemp are the folders that programs write wherever they run.
var usualTemp = []string{"/tmp", "/var/tmp", "/dev/shm"}

// usualServices returns the sockets of programs that run commands for whoever asks: a command that
// reaches one is not held by anything. The bus of the system asks who it is before it does what
// only root may do, so it is closed to root alone.
func usualServices(home string) []string {
	of := "/run/user/" + strconv.Itoa(os.Getuid()) + "/"
	list := []string{
		"/run/docker.sock", "/run/containerd", "/run/crio", "/run/podman", "/run/libvirt", "/run/screen", "/run/snapd.socket", "/run/systemd/private",
		"/var/lib/incus", "/var/lib/lxd", "/var/snap/lxd/common/lxd",
		of + "bus", of + "docker.sock", of + "podman", of + "systemd", of + "libvirt",
	}
	if os.Getuid() == 0 {
		list = append(list, "/run/dbus")
	}
	if home != "" {
		list = append(list, filepath.Join(home, ".colima"), filepath.Join(home, ".docker"))
	}
	return list
}

// WritableAt returns the folder that confined commands may write and that a path is in: one for
// temporary files, or the working directory. It returns "" if there is none.
func WritableAt(path, root string, env []string) string {
	paths := realPaths([]string{path})
	folders := append(slices.Clone(usualTemp), root)
	if t := variable(env, "TMPDIR"); filepath.IsAbs(t) {
		folders = append(folders, t)
	}
	for i, folder := range realPaths(folders) {
		if isBelow(paths[0], folder) {
			return folders[i]
		}
	}
	return ""
}

// A Sandbox makes confinements. It is safe for concurrent use.
type Sandbox struct {
	o      Options
	abi    int
	mounts mountTable

	mu     sync.Mutex
	warned map[string]bool
	made   map[string]*rules // by key; the rules of working directories that were used lately
	uses   uint64            // number of uses of rules
}

// Open returns a sandbox. Close frees its descriptors.
func Open(o Options) *Sandbox {
	o.Mode = cmp.Or(o.Mode, Auto)
	if o.Temp == nil {
		o.Temp = usualTemp
	}
	if o.Services == nil {
		o.Services = usualServices(o.Home)
	}
	o.Hidden, o.Services = realPaths(o.Hidden), realPaths(o.Services)
	s := &Sandbox{o: o, warned: map[string]bool{}, made: map[string]*rules{}}
	if o.Mode == Off {
		return s
	}
	if s.abi = kernelABI(); o.ABI != nil {
		s.abi = o.ABI()
	}
	return s
}

// Confines reports whether commands are confined, or not started if they cannot be.
func (s *Sandbox) Confines() bool {
	return s != nil && (s.o.Mode == Require || s.o.Mode == Auto && s.abi > 0)
}

// Close frees the descriptors of the sandbox. Confinements that it has made stay valid.
func (s *Sandbox) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.made {
		r.file.Close()
		delete(s.made, key)
	}
	s.mounts.close()
}

// hidden returns the files and folders that commands may not read, at every path.
func (s *Sandbox) hidden() []string {
	return slices.Concat(s.o.Hidden, s.mounts.otherPaths(s.o.Hidden))
}

// A Request says which command is to be confined.
type Request struct {
	Root     string   // folder that the command may change: absolute, and without links
	Env      []string // environment of the command
	Writable []string // further folders that this command may change, without links
	Sealed   bool     // true for the profile Sealed; otherwise it is Workspace
	Require  bool     // true if the whole profile has to be held, whatever the options say
	Offline  bool     // true if the command gets no network, whatever the options say

	// Repository is the repository of the root, as it was found before the first command
	// could change what is there; it is found now if nil.
	Repository *Repository
}

// A Confinement is what a keeper needs to confine a command. Its zero value confines
// nothing.
type Confinement struct {
	Profile Profile
	Rules   *os.File // rules of Landlock; the caller closes them. Nil if there are none
	Env     []string // environment of the command
	Offline bool     // true if the command gets a network of its own
	Root    string   // sealed: folder that stays writable
	Empty   []string // sealed: folders that the command finds empty, and may write
	Hidden  []string // sealed: files and folders that the command finds empty
}

// Close closes the descriptors of a confinement.
func (c *Confinement) Close() {
	if c.Rules != nil {
		c.Rules.Close()
	}
}

// Errors of this package.
var (
	errNoLandlock  = errors.New("this kernel has no Landlock")
	errSwitchedOff = errors.New("commands.sandbox is require where the session is, and off where its commands run: change one of them")
	errOldKernel   = errors.New("the Landlock of this kernel cannot keep commands from emptying files: Linux 6.2 can")
)

// MinABI is the version of Landlock that holds writes, which Require needs: before it, files
// could be emptied.
const MinABI = 3

// Confine returns the confinement of a command. An error says why it cannot be confined as
// the options demand: then it must not be started.
func (s *Sandbox) Confine(r Request) (Confinement, error) {
	if s == nil && !r.Sealed {
		s = Open(Options{Mode: Off})
	}
	require := r.Require || s != nil && s.o.Mode == Require
	switch {
	case r.Sealed:
		return s.seal(r)
	case s.o.Mode == Off && require:
		return Confinement{}, &Error{errSwitchedOff}
	case s.o.Mode == Off:
		return s.withoutRules(r), nil
	case require && s.abi == 0:
		return Confinement{}, explain(errNoLandlock)
	case require && s.abi < MinABI:
		return Confinement{}, explain(errOldKernel)
	case s.abi == 0:
		s.warn("commands are not confined: " + errNoLandlock.Error() + ", or it is switched off; see abide doctor")
		return s.withoutRules(r), nil
	}
	for _, wide := range s.wideFolders(r.Root) {
		if require {
			return Confinement{}, explain(errors.New(wide + ", and commands may change all of it: choose a folder below it"))
		}
		s.warn("the sandbox holds little here: " + wide + ", and commands may change all of it")
	}
	c := Confinement{Profile: Workspace, Env: r.Env, Offline: s.o.Offline || r.Offline}
	plan := s.plan(r)
	c.Env = s.withCache(&plan, r)
	var err error
	if c.Rules, err = s.rulesFor(plan); err != nil {
		return Confinement{}, explain(err)
	}
	return c, nil
}

// withoutRules returns the confinement of a command if the kernel holds no rules: only the
// network can be taken from it.
func (s *Sandbox) withoutRules(r Request) Confinement {
	if !s.o.Offline && !r.Offline {
		return Confinement{Env: r.Env}
	}
	return Confinement{Profile: Workspace, Env: r.Env, Offline: true}
}

// explain adds the way out to the reason why a command was not confined.
func explain(err error) error {
	return &Error{fmt.Errorf("%w; commands.sandbox says whether commands run without it", err)}
}

// An Error says why a command was not started: it could not be confined.
type Error struct{ Reason error }

func (e *Error) Error() string { return "the sandbox cannot hold this command: " + e.Reason.Error() }

func (e *Error) Unwrap() error { return e.Reason }

// warn reports a text once.
func (s *Sandbox) warn(text string) {
	s.mu.Lock()
	seen := s.warned[text]
	s.warned[text] = true
	s.mu.Unlock()
	if !seen && s.o.Warn != nil {
		s.o.Warn(text)
	}
}

// wideFolders returns the folders that leave little to be held: the working directory, and
// those of the settings. Each comes with the reason.
func (s *Sandbox) wideFolders(root string) (list []string) {
	if what := s.tooWide(root); what != "" {
		list = append(list, "the working directory "+root+" "+what)
	}
	for i, path := range realPaths(s.o.Writable) {
		if what := s.tooWide(path); what != "" {
			list = append(list, "commands.writable names "+s.o.Writable[i]+", which "+what)
		}
	}
	return list
}

// tooWide says why a folder that commands may change leaves little to be held; it returns
// "" if it does not.
func (s *Sandbox) tooWide(root string) string {
	switch {
	case root == "/":
		return "is the root of all files"
	case s.o.Home != "" && isBelow(s.o.Home, root):
		return "contains your home folder"
	case slices.ContainsFunc(s.hidden(), func(h string) bool { return isBelow(h, root) }):
		return "contains the data folder of abide, or another file that commands may not read"
	case slices.ContainsFunc(s.hidden(), func(h string) bool { return isBelow(root, h) }):
		return "is in a folder that commands may not read, such as the data folder of abide"
	}
	return ""
}

// isBelow reports whether a path is a folder or in it.
func isBelow(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(folder, "/"))
}

// realPaths returns paths without links. Of a file that does not exist, the folder has to;
// others are returned as they are.
func realPaths(paths []string) []string {
	list := make([]string, 0, len(paths))
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		} else if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			p = filepath.Join(dir, filepath.Base(p))
		}
		list = append(list, filepath.Clean(p))
	}
	return list
}

// variable returns the value of a variable in an environment.
func variable(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
