package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sealedEmpty are the folders that a sealed command finds empty, and may write: sockets and
// files of others are there. Those for temporary files are among Options.Temp.
var sealedEmpty = []string{"/run", "/var/run"}

// seal returns the confinement of a sealed command.
func (s *Sandbox) seal(r Request) (Confinement, error) {
	if s == nil {
		s = Open(Options{Mode: Off})
	}
	if what := s.tooWide(r.Root); what != "" {
		return Confinement{}, explain(errors.New("a sealed command may change all of its working directory, and " + r.Root + " " + what))
	}
	c := Confinement{Profile: Sealed, Offline: true, Root: r.Root, Empty: s.sealedEmpty(), Hidden: slices.Clone(s.o.Hidden)}
	for _, path := range listeningSockets() {
		if !slices.ContainsFunc(c.Empty, func(dir string) bool { return isBelow(path, dir) }) && !isBelow(path, r.Root) {
			c.Hidden = append(c.Hidden, path)
		}
	}
	c.Env = slices.DeleteFunc(slices.Clone(r.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "TMPDIR" || isCacheVariable(name)
	})
	for _, v := range cacheVariables {
		c.Env = append(c.Env, v.name+"="+filepath.Join("/tmp/.cache", v.folder))
	}
	return c, nil
}

// sealedEmpty returns the folders that are empty for sealed commands, without links and
// each once.
func (s *Sandbox) sealedEmpty() []string {
	list := realPaths(slices.Concat(sealedEmpty, s.o.Temp))
	slices.Sort(list)
	return slices.Compact(list)
}

// listeningSockets returns the paths of the sockets of this machine that have one.
func listeningSockets() (paths []string) {
	text, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		if i := bytes.Index(line, []byte(" /")); i >= 0 {
			paths = append(paths, string(bytes.TrimRight(line[i+1:], "\n")))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
