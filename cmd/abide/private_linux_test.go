package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// ordinaryUser returns what makes a process one of a user without rights: root may look into
// every process.
func ordinaryUser(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	if !haveTwoUsers(t) {
		t.Skip("there is no other user")
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: workspaceUser, Gid: workspaceUser}}
}

// userFolder returns a folder that belongs to the ordinary user.
func userFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "abide")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		must(t, os.Chown(dir, workspaceUser, workspaceUser))
	}
	return dir
}

// commandOf prepares a run of the program by the ordinary user, with a secret.
func commandOf(t *testing.T, user *syscall.SysProcAttr, dir string, args ...string) *program {
	t.Helper()
	p := command(t, dir, args...)
	if user.Credential != nil {
		path, err := sharedProgram()
		must(t, err)
		p.Path, p.Err = path, nil
	}
	p.Env = append(p.Env, "HOME="+dir, "OPENAI_API_KEY=a-secret-key", "OPENAI_BASE_URL=http://127.0.0.1:1")
	p.SysProcAttr = user
	return p
}

// A command that was allowed is of the same user as abide. It must not read the keys of
// abide in the environment or the memory of its processes.
func TestOtherProcessesOfTheUserCannotLookIntoAbide(t *testing.T) {
	user := ordinaryUser(t)
	dir := userFolder(t)
	serve := commandOf(t, user, dir, "serve")
	serve.begin()
	serve.await("serves .*engine")
	relay := commandOf(t, user, dir, "--headless", "--stdio")
	in, err := relay.StdinPipe()
	must(t, err)
	relay.begin()
	_, err = io.WriteString(in, "Content-Length: 40\r\n\r\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	must(t, err)
	relay.await("Content-Length")
	for name, pid := range map[string]int{"the engine": serve.pid(), "the launcher": relay.Process.Pid, "the relay": relay.pid()} {
		for _, file := range []string{"environ", "mem", "maps", "fd/0"} {
			look := exec.Command("head", "-c", "1", fmt.Sprintf("/proc/%d/%s", pid, file))
			look.SysProcAttr = user
			if out, err := look.CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") {
				t.Errorf("%s of %s: %q, %v", file, name, out, err)
			}
		}
	}
	must(t, in.Close())
	relay.ends()
	must(t, serve.Process.Signal(syscall.SIGTERM))
	serve.ends()
}

// The keeper of a command is closed as well, and can still give the command another OOM
// score than its own.
func TestACommandCannotLookIntoItsKeeper(t *testing.T) {
	user := ordinaryUser(t)
	dir := userFolder(t)
	must(t, os.WriteFile(filepath.Join(dir, "look"), []byte(`
for file in environ mem; do head -c 1 /proc/$PPID/$file > /dev/null && echo "$file can be read"; done
for i in $(seq 1000); do [ "$(cat /proc/$PPID/oom_score_adj)" = "$(cat /proc/self/oom_score_adj)" ] || break; done
echo own $(cat /proc/self/oom_score_adj)
echo keeper $(cat /proc/$PPID/oom_score_adj)
env
`), 0o644))
	p := commandOf(t, user, dir, "run", "--yolo", "--model", "offline", "Run `. ./look > out 2>&1`")
	if out, err := p.Output(); err != nil {
		t.Fatalf("%v: %s %s", err, out, p.stderr)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	must(t, err)
	out := string(b)
	if strings.Contains(out, "can be read") || strings.Count(out, "Permission denied") != 2 || strings.Contains(out, "a-secret-key") {
		t.Errorf("the command has found: %s", out)
	}
	if own, keeper := score(t, out, "own"), score(t, out, "keeper"); own <= keeper {
		t.Errorf("the command has the OOM score %d, and its keeper %d", own, keeper)
	}
}

// score returns a number that a line begins with a name.
func score(t *testing.T, out, name string) int {
	t.Helper()
	_, rest, _ := strings.Cut(out, name+" ")
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}
