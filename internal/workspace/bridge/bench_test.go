package bridge_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// BenchmarkLargeFile shows a text of 10 MB, from this machine and over each kind of
// connection.
func BenchmarkLargeFile(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "large")
	must(b, os.WriteFile(path, []byte(strings.Repeat("0123456789 0123456789 0123456789 0123456789 012345\n", 200_000)), 0o644))
	here := local.New(dir, nil)
	for name, ws := range map[string]workspace.Workspace{
		"local": here, "unix": bridgetest.Over(b, "unix", here), "tcp": overTCP(b, here), "tls": bridgetest.Over(b, "tcp", here),
	} {
		b.Run(name, func(b *testing.B) {
			s, err := ws.Files.Scope(b.Context(), []scope.Rule{{Target: dir}}, nil)
			must(b, err)
			spent := cpuTime(b)
			for b.Loop() {
				shown, err := ws.Files.Show(b.Context(), s, workspace.ShowRequest{Path: path, MaxWhole: 10 << 20})
				if err != nil || len(shown.Text()) < 10_000_000 {
					b.Fatalf("%d bytes, %v", len(shown.Content), err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-spent)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime returns what this process, which is both ends of the bridge, has spent so far. On a
// machine that does other things, too, only that can be compared.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// overTCP serves a workspace over TCP without TLS.
func overTCP(b *testing.B, ws workspace.Workspace) workspace.Workspace {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- (&bridge.Server{Workspace: ws}).Serve(ctx, l) }()
	c, err := bridge.NewClient(bridge.ClientOptions{Address: "tcp:" + l.Addr().String()})
	must(b, err)
	b.Cleanup(func() {
		_ = c.Close()
		cancel()
		must(b, <-served)
	})
	return c.Workspace()
}
