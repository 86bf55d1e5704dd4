package front

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/cli/launch"

	_ "golang.org/x/sys/unix" // stands for the other packages of the program
	_ "net/http"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "desert" { // this is a launcher that ends when it has started the program
		os.Args[1] = "run"
		_, _, err := start()
		must(err)
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "run" { // this is the program that the launcher started
		os.Exit(program(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// The packages that a launcher imports are initialised before it, and cost time at every
// start of a command.
func TestALauncherImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("skipped: what is imported, because go list does not run here: %v", err)
	}
	heavy := []string{"encoding/binary", "fmt", "net", "reflect", "sort", "strings"}
	for name := range strings.FieldsSeq(string(out)) {
		ours := strings.HasPrefix(name, "github.com/abide-run/abide/internal/cli/launch") || name == "github.com/abide-run/abide/internal/process/sys" // a few system calls
		if strings.Contains(name, ".") && !ours || slices.Contains(heavy, name) {
			t.Errorf("a launcher imports %s", name)
		}
	}
}

func TestWhichCommandsNeedALauncher(t *testing.T) {
	for line, want := range map[string]bool{
		"abide":                              false,
		"abide run hello":                    true,
		"abide run serve":                    true,
		"abide --home /tmp/x run hello":      true,
		"abide --home /tmp/x serve":          false,
		"abide serve --listen 127.0.0.1:0":   false,
		"abide -p hello":                     true,
		"abide --port 0 --headless":          true,
		"abide --headless --stdio":           true,
		"abide version":                      false,
		"abide --help":                       false,
		"abide-keeper":                       false,
		"abide.test -test.run TestSomething": false,
	} {
		if got := needsLauncher(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
	if needsLauncher(nil) {
		t.Error("a program without arguments needs a launcher")
	}
}

// program does what its argument says, as the program below a launcher.
func program(args []string) int {
	switch args[0] {
	case "fail":
		return 7
	case "die":
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	case "variable":
		fmt.Printf("variable %q, descriptor 3 %v\n", os.Getenv(launch.Variable), descriptor(3))
	case "orphaned":
		parent, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", os.Getppid()))
		must(err)
		if strings.HasSuffix(string(parent), "\x00run\x00orphaned\x00") {
			fmt.Println("has started itself below another launcher")
			return 1
		}
		fd, ok := launch.Socket()
		n, err := syscall.Read(fd, make([]byte, 1)) // returns when the launcher has ended
		fmt.Println(ok, n, err)
	case "leave":
		fd, _ := launch.Socket()
		must(syscall.Kill(os.Getppid(), syscall.SIGTERM))
		b := make([]byte, 1)
		_, err := syscall.Read(fd, b)
		must(err)
		fmt.Printf("got %d\n", b[0])
		os.Stdout.Close()
		_, err = syscall.Write(fd, []byte{42})
		must(err)
		_, err = syscall.Read(fd, b) // the reading ends when the launcher has ended
		must(err)
	}
	return 0
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// descriptor returns what a descriptor refers to.
func descriptor(fd int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	must(err)
	return path
}

// launched runs this program below a launcher.
func launched(t *testing.T, args ...string) (string, *os.ProcessState) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"run"}, args...)...)
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stderr = os.Stderr
	out, _ := cmd.Output()
	return string(out), cmd.ProcessState
}

func TestALauncherEndsAsItsProgramDoes(t *testing.T) {
	if _, state := launched(t, "fail"); state.ExitCode() != 7 {
		t.Errorf("a program that fails: %v", state)
	}
	if _, state := launched(t, "die"); state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("a program that is killed: %v", state)
	}
}

func TestAProgramHasTheDescriptorsOfItsLauncherAndNotItsVariable(t *testing.T) {
	if out, state := launched(t, "variable"); out != "variable \"\", descriptor 3 /dev/null\n" || !state.Success() {
		t.Errorf("%q, %v", out, state)
	}
}

func TestAProgramThatLeavesGetsSignalsAndGivesTheExitCode(t *testing.T) {
	if out, state := launched(t, "leave"); out != "got 15\n" || state.ExitCode() != 42 {
		t.Errorf("%q, %v", out, state)
	}
}

func TestAProgramFindsALauncherThatHasEnded(t *testing.T) {
	out, err := exec.Command("/proc/self/exe", "desert", "orphaned").CombinedOutput()
	if string(out) != "true 0 <nil>\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}
