package difftest

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// serverVariable is set in the process that runs scripts inside of a sandbox. Its value
// is the folder to be the root of the sandbox.
const serverVariable = "ABIDE_DIFFTEST_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(serverVariable); root != "" {
		serve(root)
		return
	}
	os.Exit(m.Run())
}

// A setup is what a sandbox is made from: paths of programs outside of it.
type setup struct {
	Bash, Dash string
	Recorder   string
}

func newSetup(t testing.TB) setup {
	return setup{Bash: findShell(t, "bash"), Dash: findShell(t, "dash"), Recorder: buildRecorder(t)}
}

// A request is a script to run.
type request struct {
	Shell    string // bash or dash
	Script   string
	Builtins bool     // leave the builtins of bash as they are; otherwise they are recorded too
	Status   byte     // exit status of recorders: '0', '1', or 'h' for one that depends on the words
	Enter    string   // folder that the script changes to before everything else
	Probes   []string // paths to look at before the script runs, from the folder that it changes to
}

// A response is what a script did.
type response struct {
	Err     string // reason that the script could not be run or did not end
	Records []record
	Changes []change
	Entered bool     // true if the folder to change to is there
	Probed  []string // kind of each of the probes: program, file, dir, free or none
	Stderr  string
}

// A record is one execution of a recorder.
type record struct {
	Path  string   // path that was executed
	Args  []string // arguments, of which the name is the first
	Dir   string
	Env   []string
	Files map[int]string // open files by descriptor: "out:w", "/home/dev/project/a:r"
}

// A change is a difference of the tree after a script.
type change struct {
	Path    string
	Was, Is string // type and content, "" if there is nothing
}

// A sandbox runs scripts in a chroot.
type sandbox struct {
	enc *gob.Encoder
	dec *gob.Decoder
}

// newSandbox starts a sandbox, or skips the test where there cannot be one.
func newSandbox(t testing.TB, programs setup) *sandbox {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), serverVariable+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		skipOrFail(t, "there are no user namespaces here: "+err.Error())
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Logf("the sandbox ended with %v\n%s", err, stderr.String())
		}
	})
	s := &sandbox{gob.NewEncoder(in), gob.NewDecoder(out)}
	var ready response
	if err := errors.Join(s.enc.Encode(programs), s.dec.Decode(&ready)); err != nil {
		t.Fatalf("start the sandbox: %v\n%s", err, stderr.String())
	}
	if ready.Err != "" {
		skipOrFail(t, "there can be no sandbox here: "+ready.Err)
	}
	return s
}

// skipOrFail skips a test for a reason that lies in the machine. Where ABIDE_REQUIRE
// names namespaces, as in CI, it fails the test.
func skipOrFail(t testing.TB, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("ABIDE_REQUIRE"), ","), "namespaces") {
		t.Fatal("ABIDE_REQUIRE asks for namespaces, and " + reason)
	}
	t.Skip("what rules allow was not held against real shells: " + reason)
}

func findShell(t testing.TB, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		skipOrFail(t, "there is no "+name)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildRecorder builds the recorder as a static program.
func buildRecorder(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "recorder")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/recorder")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the recorder: %v\n%s", err, out)
	}
	return path
}

// run runs a script and returns what it did.
func (s *sandbox) run(t testing.TB, r request) response {
	t.Helper()
	var res response
	if err := errors.Join(s.enc.Encode(r), s.dec.Decode(&res)); err != nil {
		t.Fatalf("the sandbox died at script %q: %v", r.Script, err)
	}
	return res
}

// serve runs inside of the namespaces: it makes the sandbox and runs scripts in it until
// its input ends.
func serve(root string) {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd) // files of whoever started the tests are not for scripts
	}
	enc, dec := gob.NewEncoder(os.Stdout), gob.NewDecoder(os.Stdin)
	var programs setup
	if err := dec.Decode(&programs); err != nil {
		return
	}
	w, err := makeSandbox(root, programs)
	if err != nil {
		_ = enc.Encode(response{Err: err.Error()})
		return
	}
	if enc.Encode(response{}) != nil {
		return
	}
	for {
		var r request
		if err := dec.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) {
				os.Stderr.WriteString(err.Error() + "\n")
			}
			return
		}
		if enc.Encode(w.run(r)) != nil {
			return
		}
	}
}
