package launch

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "find" {
		_, found := Socket()
		_, set := os.LookupEnv(Variable)
		os.Stdout.WriteString(map[bool]string{true: "found", false: "not found"}[found] + map[bool]string{true: ", set", false: ", not set"}[set])
		syscall.Exit(0) // os.Exit waits for a second under the race detector
	}
	os.Exit(m.Run())
}

// An empty variable that stayed would be found by each program that a launcher starts,
// and each would be the launcher of another.
func TestTheVariableIsRemovedWhateverItIs(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(pair[0])
	syscall.CloseOnExec(pair[1])
	socket := os.NewFile(uintptr(pair[1]), "socket")
	defer socket.Close()
	defer syscall.Close(pair[0])
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	number, _, _ := strings.Cut(Text(pair[1]), ":") // below it is descriptor 3, and 4 is none
	for text, want := range map[string]string{
		"":              "not found",
		":":             "not found",
		":3":            "not found",
		"0:4":           "not found",
		"0:99":          "not found",
		"1:3":           "not found",
		number + ":":    "not found",
		number + ":4":   "not found",
		number + ":-3":  "not found",
		number + ":03":  "not found",
		number + ":3":   "found",
		number + ":3:3": "not found",
	} {
		cmd := exec.Command(os.Args[0], "find")
		cmd.Env = append(os.Environ(), Variable+"="+text)
		cmd.ExtraFiles = []*os.File{socket, null}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want+", not set" {
			t.Errorf("%q: %s, %v; want %s", text, out, err, want)
		}
	}
}
