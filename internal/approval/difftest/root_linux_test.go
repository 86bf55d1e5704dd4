package difftest

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// project is the working directory of scripts.
const project = "/home/dev/project"

// baseEnv is the environment that scripts start with.
var baseEnv = []string{
	"PATH=/usr/local/bin:/usr/bin", "HOME=/home/dev", "USER=dev", "TERM=dumb", "LC_ALL=C.UTF-8",
	"XDG_CONFIG_HOME=/home/dev/.config", "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=/tmp", "x=1",
}

// recorder is where the recorder is installed.
const recorder = "/usr/bin/recorder"

// programNames are the other names of the recorder in /usr/bin.
var programNames = strings.Fields(`git ls cat rg grep go make npm echo printf pwd test true false [ sudo rm find sort head tail
	wc sed awk diff stat file env nice timeout nohup xargs tee cp mv touch mkdir chmod curl date sleep uniq cut tr jq node
	python3 pip cargo docker kubectl time seq basename dirname realpath readlink which id whoami uname ps kill tree bash
	dash sh evil a b x 1 2`)

// projectFiles are the files of the project and around it, with their contents.
var projectFiles = map[string]string{
	project + "/README.md":     "read me\n",
	project + "/main.go":       "package main\n",
	project + "/id_rsa":        "secret\n",
	project + "/.env":          "TOKEN=1\n",
	project + "/victim":        "precious\n",
	project + "/a":             "a\n",
	project + "/b":             "b\n",
	project + "/x":             "x\n",
	project + "/-R":            "",
	project + "/1":             "1\n",
	project + "/sub/file":      "file\n",
	project + "/.git/config":   "[core]\n",
	"/home/dev/.config/git/ig": "x\n",
	"/etc/passwd":              "root:x:0:0::/root:/usr/bin/bash\n",
	"/tmp/x":                   "x\n",
}

// projectPrograms are recorders that no rule is meant to run.
var projectPrograms = []string{project + "/evil", project + "/git", project + "/sub/ls", "/tmp/git"}

// makeSandbox makes the root of the sandbox and moves there.
func makeSandbox(root string, programs setup) (*world, error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("sandbox", root, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
		return nil, fmt.Errorf("mount a root: %w", err)
	}
	for _, step := range []func(string, setup) error{putShells, putRecorders, putDevices} {
		if err := step(root, programs); err != nil {
			return nil, err
		}
	}
	usr := root + "/usr"
	if err := syscall.Mount(usr, usr, "", syscall.MS_BIND, ""); err != nil {
		return nil, err
	}
	if err := syscall.Mount("", usr, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|syscall.MS_NOSUID|syscall.MS_NODEV, ""); err != nil {
		return nil, fmt.Errorf("make programs read-only: %w", err)
	}
	if err := syscall.Chroot(root); err != nil {
		return nil, err
	}
	if err := os.Chdir("/"); err != nil {
		return nil, err
	}
	return newWorld()
}

// putShells copies bash and dash with what they are linked with. They lie beside the
// recorder, because a script that runs a shell by its name has to be recorded too.
func putShells(root string, programs setup) error {
	for name, path := range map[string]string{"bash": programs.Bash, "dash": programs.Dash} {
		if err := copyFile(path, root+"/rec/"+name, 0o755); err != nil {
			return err
		}
		libraries, err := librariesOf(path)
		if err != nil {
			return fmt.Errorf("libraries of %s: %w", path, err)
		}
		for _, l := range libraries {
			if err := copyFile(l, root+l, 0o755); err != nil {
				return err
			}
		}
	}
	locales, _ := filepath.Glob("/usr/lib/locale/C.*/*")
	messages, _ := filepath.Glob("/usr/lib/locale/C.*/LC_MESSAGES/*")
	for _, path := range append(locales, messages...) {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			if err := copyFile(path, root+path, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// librariesOf returns the loader and the libraries of a program, as its loader lists them.
func librariesOf(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	section := f.Section(".interp")
	if section == nil {
		return nil, nil // it is static
	}
	text, err := section.Data()
	if err != nil {
		return nil, err
	}
	loader := strings.TrimRight(string(text), "\x00")
	out, err := exec.Command(loader, "--list", path).Output()
	if err != nil {
		return nil, err
	}
	list := []string{loader}
	for line := range strings.Lines(string(out)) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") && word != loader {
				list = append(list, word)
			}
		}
	}
	return list, nil
}

func putRecorders(root string, programs setup) error {
	first := root + "/rec/missing"
	if err := copyFile(programs.Recorder, first, 0o755); err != nil {
		return err
	}
	installed := root + recorder
	if err := copyFile(programs.Recorder, installed, 0o755); err != nil {
		return err
	}
	for _, name := range programNames {
		if err := os.Link(installed, root+"/usr/bin/"+name); err != nil {
			return err
		}
	}
	for _, path := range projectPrograms {
		if err := copyFile(programs.Recorder, root+path, 0o755); err != nil {
			return err
		}
	}
	for path, content := range projectFiles {
		if err := writeFile(root+path, content); err != nil {
			return err
		}
	}
	return os.Symlink("usr/bin", root+"/bin")
}

func putDevices(root string, _ setup) error {
	null := root + "/dev/null"
	if err := writeFile(null, ""); err != nil {
		return err
	}
	if err := syscall.Mount("/dev/null", null, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind /dev/null: %w", err)
	}
	return nil
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
