package cli

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/daemon"
)

// A console on a loopback address has both, or does not start: browsers choose either.
func TestConsoleHasBothLoopbackAddresses(t *testing.T) {
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6")
	}
	probe.Close()
	for given, other := range map[string]string{"127.0.0.1": "::1", "::1": "127.0.0.1", "localhost": "::1", daemon.ConsoleHost: "::1", "::ffff:127.0.0.1": "::1"} {
		list, err := listenWeb(t.Context(), net.JoinHostPort(given, "0"))
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 2 || portOf(list[0]) != portOf(list[1]) || list[1].Addr().(*net.TCPAddr).IP.String() != other {
			t.Errorf("%s: listens on %v", given, list)
		}
		_, port, err := net.SplitHostPort(list[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		list[0].Close() // the other one is taken
		if more, err := listenWeb(t.Context(), net.JoinHostPort(given, port)); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: %v, %v", given, more, err)
		}
		list[1].Close()
	}
}
