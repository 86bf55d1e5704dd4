package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A remoteCase is work that is measured on this machine and over a bridge.
type remoteCase struct {
	name  string
	trips int // number of requests that a turn makes
	pairs int // least number of pairs, for cases with short blocks
	side  func(p *remotePlace) compare.Side
}

// callsOf returns the calls of a file tool. Blocks have the given number of calls.
func callsOf(name string, calls int, tool string, arguments map[string]any) remoteCase {
	c := searchCase{name: name, tool: tool, arguments: arguments}
	return remoteCase{name: name, trips: 1, side: func(p *remotePlace) compare.Side {
		tools := takeTools(p.ws.Files, p.tree)
		return compare.Side{Name: name, Block: func() int {
			for range calls {
				must(c.run(tools[tool], p.tree))
			}
			return calls
		}}
	}}
}

// remoteCases are the smallest request, calls with answers of different sizes, in the tree that makeFiles and
// makeTree make, and the turn that all agents are measured by: its command is started, waited
// for, read and marked as seen.
var remoteCases = []remoteCase{
	{"workspace: a round trip", 1, 0, func(p *remotePlace) compare.Side { return statSide(p.ws.Files) }},
	callsOf("workspace: view of a small file", 200, "view", map[string]any{"path": "small"}),
	callsOf("workspace: lines of a file of 10 MB", 20, "view", map[string]any{"path": "large", "view_range": []int{100_000, 100_020}}),
	callsOf("workspace: view of a file of 10 MB", 3, "view", map[string]any{"path": "large", "forceReadLargeFiles": true}),
	callsOf("workspace: grep in 50,000 files", 1, "grep", map[string]any{"pattern": "needle", "output_mode": "content"}),
	callsOf("workspace: glob in 50,000 files", 1, "glob", map[string]any{"pattern": "*7.txt"}),
	{"workspace: a turn with one echo", 4, 60, func(p *remotePlace) compare.Side { return commandTurns(3).side(p.contender()) }},
}

// maxRatio is how much longer than on this machine work may take over a bridge, beside the
// round trips.
const maxRatio = 1.3

// A remotePlace is a workspace as it is reached over a network, or without one.
type remotePlace struct {
	place
	tree string // folder of the files
	ws   workspace.Workspace
	logs []*sqlite.Store // logs of the contenders
}

// contender returns our engine with its commands in the workspace. Its log is open until
// the place is closed.
func (p *remotePlace) contender() contender {
	o := got(openOurs(p.place))
	c := commandsIn(p.ws.Processes, p.dir)
	o.opts.Tools, o.opts.Tasks = c.Tools(), c
	p.logs = append(p.logs, o.store)
	return contender{name: "abide", shell: o.openShell}
}

// close closes the logs, whose indexes would be filled beside what is measured next.
func (p *remotePlace) close() {
	for _, log := range p.logs {
		must(log.Close())
	}
}

// measureWorkspaces compares work on this machine with the same work over a Unix socket, over
// TCP, and over TCP with TLS. The limit is what it may cost: the time on this machine and a little more, and a
// round trip for each request, which is measured beside it.
func measureWorkspaces(at place, only string, pairs int) (err error) {
	defer stopping(&err)
	wanted := slices.DeleteFunc(slices.Clone(remoteCases), func(c remoteCase) bool { return !strings.Contains(c.name, only) })
	if len(wanted) == 0 {
		return nil
	}
	tree := got(os.MkdirTemp("", "abide-bench-"))
	defer func() { _ = os.RemoveAll(tree) }()
	must(makeFiles(tree))
	if slices.ContainsFunc(wanted, func(c remoteCase) bool { return strings.HasSuffix(c.name, "50,000 files") }) {
		must(makeTree(tree))
	}
	places, stop := openPlaces(at, tree)
	defer stop()
	fmt.Printf("\nwork on this machine and over a bridge; the best block; the middle block. The limit is %.1f × local and a round trip for each request\n", maxRatio)
	t := compare.NewTable(os.Stdout, "work", "over", "local µs", "bridge µs", "ratio", "round trip µs", "requests", "limit µs", "kept")
	for _, c := range wanted {
		for _, network := range []string{"unix", "tcp", "tls"} {
			c.measure(t, network, places["local"], places[network], pairs)
		}
	}
	t.Print()
	return nil
}

// measure adds the row of a case to a table.
func (c remoteCase) measure(t *compare.Table, network string, here, there *remotePlace, pairs int) {
	trip := compare.Alternate(pairs, statSide(there.ws.Files), statSide(here.ws.Files)).A.Wall()
	r := compare.Alternate(max(pairs, c.pairs), c.side(there), c.side(here))
	limit := compare.Spread{Min: c.limit(r.B.Wall().Min, trip.Min), Median: c.limit(r.B.Wall().Median, trip.Median)}
	took := r.A.Wall()
	t.Row(c.name, network, r.B.Wall(), took, r.Wall(), trip, c.trips, limit, isKept(took.Min <= limit.Min)+"; "+isKept(took.Median <= limit.Median))
}

// limit returns what a case may cost over a bridge.
func (c remoteCase) limit(local, trip time.Duration) time.Duration {
	return time.Duration(maxRatio*float64(local)) + time.Duration(c.trips)*trip
}

func isKept(kept bool) string {
	if kept {
		return "yes"
	}
	return "no"
}

// openPlaces opens the workspace of a tree as it is reached without a bridge, over a Unix
// socket, over TCP, and over TCP with TLS.
func openPlaces(at place, tree string) (map[string]*remotePlace, func()) {
	m := got(process.Open(filepath.Join(tree, ".processes"), process.Options{Shell: shell()}))
	here := local.New(tree, m)
	places := map[string]*remotePlace{"local": {ws: here}}
	stops := []func(){func() { must(m.Close()) }}
	for name, a := range map[string]string{"unix": "unix:" + filepath.Join(tree, "sock"), "tcp": "tcp:127.0.0.1:0", "tls": "tcp:127.0.0.1:0"} {
		there, stop := serveWorkspace(a, here, name == "tls")
		places[name], stops = &remotePlace{ws: there}, append(stops, stop)
	}
	for name, p := range places {
		p.tree, p.url, p.dir = tree, at.url, filepath.Join(at.dir, "workspace-"+name)
		must(os.MkdirAll(p.dir, 0o700))
	}
	return places, func() {
		for _, p := range places {
			p.close()
		}
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

func takeTools(in workspace.Files, tree string) map[string]tool.Tool {
	tools, err := toolsIn(in, tree)
	must(err)
	return tools
}

// statSide returns a side that makes the smallest request.
func statSide(in workspace.Files) compare.Side {
	return compare.Side{Name: "stat", Block: func() int {
		for range 200 {
			_, err := in.Stat(context.Background(), workspace.At("small"))
			must(err)
		}
		return 200
	}}
}

// serveWorkspace serves a workspace at an address, with TLS or without, and returns a client's
// view of it.
func serveWorkspace(address string, ws workspace.Workspace, secure bool) (workspace.Workspace, func()) {
	network, addr, _ := strings.Cut(address, ":")
	l, err := net.Listen(network, addr)
	must(err)
	server, client := &bridge.Server{Workspace: ws}, bridge.ClientOptions{Address: network + ":" + l.Addr().String()}
	if secure {
		server.TLS, client.TLS = certificates()
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	c, err := bridge.NewClient(client)
	must(err)
	return c.Workspace(), func() {
		_ = c.Close()
		cancel()
		must(<-served)
	}
}

// certificates returns the configuration of a server, and of a client that trusts it.
func certificates() (server, client *tls.Config) {
	key := got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der := got(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	trusted := x509.NewCertPool()
	trusted.AddCert(got(x509.ParseCertificate(der)))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: trusted}
}

// plainText is the content of a small file.
var plainText = []byte(strings.Repeat("a line of text that says nothing, and says it at length\n", 20))

// makeTree makes 50,000 files of which some have a match.
func makeTree(dir string) error {
	for i := range 500 {
		folder := filepath.Join(dir, fmt.Sprintf("%03d", i))
		err := os.Mkdir(folder, 0o755)
		for j := range 100 {
			content := plainText
			if i%50 == 7 && j == 33 {
				content = append(slices.Clone(plainText), "a needle\n"...)
			}
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%02d.txt", j)), content, 0o644))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeFiles makes a small file and one of 10 MB.
func makeFiles(dir string) error {
	large := []byte(strings.Repeat("0123456789 0123456789 0123456789 0123456789 012345\n", 200_000))
	return errors.Join(os.WriteFile(filepath.Join(dir, "small"), plainText, 0o644), os.WriteFile(filepath.Join(dir, "large"), large, 0o644))
}
