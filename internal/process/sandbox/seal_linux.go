package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sandbox/confine"
	"github.com/abide-run/abide/internal/process/sys"
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
		return Confinement{}, &Error{fmt.Errorf("a sealed command may change all of its working directory, and %s %s: work in a folder below it", r.Root, what)}
	}
	c := Confinement{Profile: Sealed, Offline: true, Root: r.Root, Empty: s.sealedEmpty(), Hidden: s.hidden()}
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

// TrySealed starts a sealed command that does nothing, and returns why that is not
// possible. The program has to import package keeper.
func TrySealed() error {
	attr, err := confine.Namespaces(true)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "abide-sealed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	work, err = filepath.EvalSymlinks(work)
	if err != nil {
		return err
	}
	s := Open(Options{Mode: Off})
	program, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	orders, feed, err := os.Pipe()
	if err != nil {
		return err
	}
	defer orders.Close()
	var failures bytes.Buffer
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{confine.StageName}, SysProcAttr: attr, ExtraFiles: []*os.File{orders, nil}}
	read, write, err := os.Pipe()
	if err != nil {
		feed.Close()
		return err
	}
	defer read.Close()
	cmd.ExtraFiles[1] = write
	if os.Geteuid() != 0 { // otherwise the file of the child that takes the users of the namespace belongs to root
		_ = sys.SetDumpable(true) // the start says what is wrong
	}
	err = cmd.Start()
	write.Close()
	if err != nil {
		feed.Close()
		return fmt.Errorf("make namespaces: %w", err)
	}
	r := record.New(confine.Stage).With("program", program).WithAll("arg", []string{"true"}).With("dir", work).WithFlag("sealed", true).
		With("root", work).WithAll("empty", s.sealedEmpty())
	_, err = feed.Write(r.Line())
	feed.Close()
	_, copied := failures.ReadFrom(read)
	ended := cmd.Wait()
	if failures.Len() > 0 {
		return errors.New(failures.String())
	}
	return errors.Join(err, copied, ended)
}
