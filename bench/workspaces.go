package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A remoteCase is a call of a file tool that is measured on local files and over a bridge.
type remoteCase struct {
	searchCase
	calls int // calls of a block
}

// remoteCases are calls with answers of different sizes, in the tree that makeFiles and makeTree make.
var remoteCases = []remoteCase{
	{searchCase{name: "workspace: view of a small file", tool: "view", arguments: map[string]any{"path": "small"}}, 200},
	{searchCase{name: "workspace: lines of a file of 10 MB", tool: "view", arguments: map[string]any{"path": "large", "view_range": []int{100_000, 100_020}}}, 20},
	{searchCase{name: "workspace: view of a file of 10 MB", tool: "view", arguments: map[string]any{"path": "large", "forceReadLargeFiles": true}}, 3},
	{searchCase{name: "workspace: grep in 50,000 files", tool: "grep", arguments: map[string]any{"pattern": "needle", "output_mode": "content"}}, 1},
	{searchCase{name: "workspace: glob in 50,000 files", tool: "glob", arguments: map[string]any{"pattern": "*7.txt"}}, 1},
}

// measureWorkspaces compares the file tools on local files with the same tools over a Unix
// socket and over TCP on this machine. A ratio of 1 means that the bridge costs nothing;
// the first line is a round trip.
func measureWorkspaces(only string, pairs int) (err error) {
	defer stopping(&err)
	wanted := slices.DeleteFunc(slices.Clone(remoteCases), func(c remoteCase) bool { return !strings.Contains(c.name, only) })
	if len(wanted) == 0 {
		return nil
	}
	tree, err := os.MkdirTemp("", "abide-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	must(makeFiles(tree))
	if slices.ContainsFunc(wanted, func(c remoteCase) bool { return c.tool != "view" }) {
		must(makeTree(tree))
	}
	here := local.New(tree, nil)
	sides := map[string]map[string]tool.Tool{"local": takeTools(here.Files, tree)}
	fmt.Printf("\nfile tools on local files and over a bridge; the best block; the middle block\n")
	t := compare.NewTable(os.Stdout, "call", "local µs", "unix µs", "ratio", "tcp µs", "ratio")
	round := []any{"workspace: a round trip", "-"}
	for _, at := range [][2]string{{"unix", filepath.Join(tree, "sock")}, {"tcp", "127.0.0.1:0"}} {
		far, stop := serveWorkspace(at[0], at[1], here)
		defer stop()
		sides[at[0]] = takeTools(far.Files, tree)
		round = append(round, compare.Alternate(pairs, statSide(far.Files), statSide(here.Files)).A.Wall(), "-")
	}
	t.Row(round...)
	for _, c := range wanted {
		unix := compare.Alternate(pairs, c.side(sides["unix"], tree), c.side(sides["local"], tree))
		tcp := compare.Alternate(pairs, c.side(sides["tcp"], tree), c.side(sides["local"], tree))
		t.Row(c.name, unix.B.Wall(), unix.A.Wall(), unix.Wall(), tcp.A.Wall(), tcp.Wall())
	}
	t.Print()
	return nil
}

func takeTools(in workspace.Files, tree string) map[string]tool.Tool {
	tools, err := toolsIn(in, tree)
	must(err)
	return tools
}

// side returns a side that makes the call with one set of tools.
func (c remoteCase) side(tools map[string]tool.Tool, tree string) compare.Side {
	return compare.Side{Name: c.name, Block: func() int {
		for range c.calls {
			must(c.run(tools[c.tool], tree))
		}
		return c.calls
	}}
}

// statSide returns a side that makes the smallest request.
func statSide(in workspace.Files) compare.Side {
	return compare.Side{Name: "stat", Block: func() int {
		for range 500 {
			_, err := in.Stat(context.Background(), workspace.At("small"))
			must(err)
		}
		return 500
	}}
}

// serveWorkspace serves a workspace and returns a client's view of it.
func serveWorkspace(network, address string, ws workspace.Workspace) (workspace.Workspace, func()) {
	l, err := net.Listen(network, address)
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- (&bridge.Server{Workspace: ws}).Serve(ctx, l) }()
	c, err := bridge.NewClient(bridge.ClientOptions{Address: network + ":" + l.Addr().String()})
	must(err)
	return c.Workspace(), func() {
		_ = c.Close()
		cancel()
		must(<-served)
	}
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
