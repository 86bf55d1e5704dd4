package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A searchCase is a search that both our tools and those of the system can do.
type searchCase struct {
	name      string
	tool      string
	arguments map[string]any
	system    []string // command line of the tool that every system has
	rg        []string // command line of ripgrep, which is measured if it is installed
}

// searchFor returns a search for files with a match.
func searchFor(name, pattern string, flags ...string) searchCase {
	arguments := map[string]any{"pattern": pattern}
	for _, f := range flags {
		arguments[f] = true
	}
	return searchCase{
		name: name, tool: "grep", arguments: arguments,
		system: append([]string{"grep", "-rlE"}, append(flags, pattern, ".")...),
		rg:     append([]string{"rg", "--hidden", "-l"}, append(flags, pattern, ".")...),
	}
}

// searchCases are searches through the sources of Go.
var searchCases = []searchCase{
	searchFor("grep: a word that is rare", "ListenAndServeTLS"),
	searchFor("grep: a word that is common", "return"),
	searchFor("grep: an expression with a word in it", `\w+Listener\(ctx`),
	searchFor("grep: an expression without", `[A-Z]{5,}_[a-z]+[0-9]`),
	searchFor("grep: one of three words", "quux|frobnicate|xyzzy"),
	searchFor("grep: whatever its case", "listenandservetls", "-i"),
	{
		"grep: every line", "grep", map[string]any{"pattern": "func.*error", "output_mode": "content", "-n": true},
		[]string{"grep", "-rnE", "func.*error", "."}, []string{"rg", "--hidden", "-n", "func.*error", "."},
	},
	{
		"glob: names", "glob", map[string]any{"pattern": "*_test.go"},
		[]string{"find", ".", "-type", "f", "-name", "*_test.go"}, []string{"rg", "--files", "--hidden", "-uu", "-g", "*_test.go"},
	},
}

// measureSearches compares our searches with those of the system, in the same tree and in
// alternating blocks. A ratio below 1 means that ours take less time.
func measureSearches(only string, pairs int) (err error) {
	defer stopping(&err)
	wanted := slices.DeleteFunc(slices.Clone(searchCases), func(h searchCase) bool { return !strings.Contains(h.name, only) })
	if len(wanted) == 0 {
		return nil
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find the sources of Go, to search in them: %w", err)
	}
	tree := filepath.Join(strings.TrimSpace(string(root)), "src")
	tools, err := toolsIn(local.New(tree, nil).Files, tree)
	if err != nil {
		return err
	}
	_, missing := exec.LookPath("rg")
	fmt.Printf("\nsearches in %s; the best block; the middle block\n", tree)
	t := compare.NewTable(os.Stdout, "search", "ours µs", "system µs", "ratio", "rg µs", "ratio")
	for _, h := range wanted {
		ours := compare.Side{Name: "ours", Block: func() int { must(h.run(tools[h.tool], tree)); return 1 }}
		system := compare.Alternate(pairs, ours, program(tree, h.system))
		row := []any{h.name, system.A.Wall(), system.B.Wall(), system.Wall(), "-", "-"}
		if missing == nil {
			rg := compare.Alternate(pairs, ours, program(tree, h.rg))
			row[4], row[5] = rg.B.Wall(), rg.Wall()
		}
		t.Row(row...)
	}
	t.Print()
	return nil
}

// toolsIn returns our tools with permission to read a tree in a workspace.
func toolsIn(in workspace.Files, tree string) (map[string]tool.Tool, error) {
	s, err := in.Scope(context.Background(), []scope.Rule{{Target: tree, Mode: scope.Read}}, nil)
	if err != nil {
		return nil, err
	}
	tools := map[string]tool.Tool{}
	for _, t := range files.New(files.Options{
		Files:       func(tool.Call) (workspace.Files, error) { return in, nil },
		Scope:       func(context.Context, tool.Call) (*scope.Scope, error) { return s, nil },
		Checkpoints: func(event.SessionID) (*files.Checkpoints, error) { return nil, errors.ErrUnsupported },
	}) {
		tools[t.Spec().Name] = t
	}
	return tools, nil
}

// run does the search with one of our tools.
func (h searchCase) run(t tool.Tool, tree string) error {
	arguments, err := json.Marshal(h.arguments)
	if err != nil {
		return err
	}
	r, err := t.Run(context.Background(), tool.Call{Arguments: arguments, Dir: tree})
	if err == nil && r.Failed {
		err = errors.New(r.Text)
	}
	return err
}

// program returns a side that runs a program of the system and reads all of its output.
func program(dir string, args []string) compare.Side {
	return compare.Side{Name: args[0], Block: func() int {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Stdout = dir, io.Discard
		err := cmd.Run()
		if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 1 {
			err = nil // nothing was found
		}
		must(err)
		return 1
	}}
}
