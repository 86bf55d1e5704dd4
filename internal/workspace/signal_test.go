package workspace

import (
	"errors"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/process"
)

func TestSignalsAreFoundByName(t *testing.T) {
	for name, want := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "SIGTERM": syscall.SIGTERM, "term": syscall.SIGTERM, "sigint": syscall.SIGINT, "Kill": syscall.SIGKILL, "usr1": syscall.SIGUSR1,
	} {
		if got, err := ParseSignal(name); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "SIG", "9", "-9", "nosuch", "SIGSIGTERM", "TERM ", "TERM\x00"} {
		if got, err := ParseSignal(name); !errors.Is(err, process.ErrInvalid) {
			t.Errorf("%q: %v, %v; want a refusal", name, got, err)
		}
	}
}

// FuzzParseSignal checks that only the names that SignalName returns are parsed.
func FuzzParseSignal(f *testing.F) {
	for _, name := range []string{"TERM", "SIGKILL", "int", "", "SIG", "99"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		sig, err := ParseSignal(name)
		if err != nil {
			return
		}
		if again, err := ParseSignal(SignalName(sig)); again != sig || err != nil {
			t.Errorf("%q is %v, whose name %s is %v, %v", name, sig, SignalName(sig), again, err)
		}
	})
}
