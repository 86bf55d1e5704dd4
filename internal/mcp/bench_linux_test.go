package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace/local"
)

// BenchmarkOpen measures the beginning of a session with 20 servers of 50 tools each, whose lists
// are known, up to the tools that are recorded.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	m, err := process.Open(filepath.Join(dir, "processes"), process.Options{Shell: process.Shell()})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	o := Options{Processes: local.New(dir, m).Processes, Lists: filepath.Join(dir, "lists")}
	in := Surroundings{Session: "s1", Dir: dir, Env: os.Environ()}
	var l lists
	for i := range 50 {
		t := &sdk.Tool{Name: fmt.Sprintf("tool_%02d", i), Description: strings.Repeat("There is more to say. ", 8)}
		if err := json.Unmarshal([]byte(`{"type":"object","properties":{"path":{"type":"string","description":"the path of what is looked at"},"names":{"type":["null","array"],"items":{"type":"string"}},"depth":{"type":"integer"}},"required":["path"],"additionalProperties":false}`), &t.InputSchema); err != nil {
			b.Fatal(err)
		}
		l.Tools = append(l.Tools, t)
	}
	var servers []Server
	for i := range 20 {
		s := Server{MCPServer: event.MCPServer{Name: fmt.Sprintf("s%02d", i), Type: Stdio, Command: "/bin/true", Args: []string{fmt.Sprint(i)}}}
		servers = append(servers, s)
		c := newClient(&Set{opts: o, in: in}, s)
		o.keep(c.fingerprintOf(s), l)
	}
	for name, known := range map[string]*Known{"FirstOfTheProcess": nil, "Next": {}} {
		b.Run(name, func(b *testing.B) {
			o.Known = known
			for b.Loop() {
				s := Open(o, in, servers, Events{Status: func(string, Status, string) {}, Changed: func(string, event.Type) {}})
				s.Wait(context.Background())
				if n := len(s.Tools(func(string) bool { return false })); n != 1000 {
					b.Fatalf("%d tools are offered", n)
				}
				s.Close()
			}
		})
	}
}
