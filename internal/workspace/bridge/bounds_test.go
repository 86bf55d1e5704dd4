package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// liarFiles are files that answer with what a test wants, whatever they are asked.
type liarFiles struct {
	workspace.Files
	judged    workspace.Judgement
	found     workspace.Found
	collected workspace.Collected
	failed    error
}

func (l *liarFiles) Judge(_ context.Context, _ *scope.Scope, asked ...workspace.Question) ([]workspace.Judgement, error) {
	return []workspace.Judgement{l.judged}, l.failed
}

func (l *liarFiles) Grep(context.Context, *scope.Scope, workspace.GrepQuery) (workspace.Found, error) {
	return l.found, nil
}

func (l *liarFiles) Collect(context.Context, ...workspace.Selection) ([][]workspace.Collected, error) {
	return [][]workspace.Collected{{l.collected}}, nil
}

// liarProcesses are processes that answer with what a test wants.
type liarProcesses struct {
	workspace.Processes
	chunk process.Chunk
	text  string
}

func (l *liarProcesses) Read(context.Context, process.Owner, process.ID, process.ReadRequest) (process.Chunk, error) {
	return l.chunk, nil
}

func (l *liarProcesses) Tail(context.Context, process.Owner, process.ID, int, process.Stream) (process.Chunk, error) {
	return l.chunk, nil
}

func (l *liarProcesses) View(context.Context, process.Owner, process.ID, process.Stream) (string, *process.TruncationInfo, error) {
	return l.text, nil, nil
}

// checkRefused fails unless an answer was refused because it is more than was asked for, or
// taken if it is not.
func checkRefused(t *testing.T, what string, err error, want bool) {
	t.Helper()
	if refused := err != nil && strings.Contains(err.Error(), "more than it was asked for"); refused != want || err != nil && !refused {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAnswersAboutFilesAreBounded(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	judge := func() error {
		_, err := files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/f", Most: 10})
		return err
	}
	for content, refused := range map[string]bool{"0123456789": false, "0123456789+": true} {
		liar.judged.Content = []byte(content)
		checkRefused(t, "judge "+content, judge(), refused)
		liar.collected = workspace.Collected{Path: "/f", Content: []byte(content)}
		_, err := files.Collect(t.Context(), workspace.Selection{Dir: "/", Names: []string{"f"}, Most: 10})
		checkRefused(t, "collect "+content, err, refused)
	}
	for length, refused := range map[int]bool{64 << 10: false, 64<<10 + 1: true} {
		liar.judged = workspace.Judgement{Finding: scope.Finding{Path: strings.Repeat("p", length)}}
		checkRefused(t, fmt.Sprint("a path of ", length), judge(), refused)
	}
	for name, refused := range map[string]bool{"src": false, "other": true} {
		liar.found.Missing = []string{name}
		_, err := files.Grep(t.Context(), new(scope.Scope), workspace.GrepQuery{Pattern: "x", Roots: []workspace.SearchRoot{{Path: "/src", Given: "src"}}})
		checkRefused(t, "missing "+name, err, refused)
	}
}

func TestTheTextOfAnErrorIsBounded(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files, failed: errors.New(strings.Repeat("x", 100_000))}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	ask := func() error {
		list, err := files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/f"})
		if err == nil {
			err = list[0].Err
		}
		return err
	}
	if err := ask(); err == nil || len(err.Error()) > 5000 || !strings.HasSuffix(err.Error(), "bytes more)") {
		t.Errorf("a request has failed with %.5100v", err)
	}
	liar.judged.Err, liar.failed = liar.failed, nil
	if err := ask(); err == nil || len(err.Error()) > 5000 {
		t.Errorf("a path has the problem %.5100v", err)
	}
}

func TestOutputIsWithinTheRangeThatWasAskedFor(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := new(liarProcesses)
	ws.Processes = liar
	processes := bridgetest.Over(t, "unix", ws).Processes
	for what, c := range map[string]struct {
		chunk   process.Chunk
		request process.ReadRequest
		refused bool
	}{
		"all of it":          {process.Chunk{Data: []byte("01234"), Next: 15}, process.ReadRequest{Offset: 10, Until: 15}, false},
		"one stream":         {process.Chunk{Data: []byte("01"), Next: 15}, process.ReadRequest{Offset: 10, Until: 15}, false},
		"not kept":           {process.Chunk{Next: 15, Omitted: 5}, process.ReadRequest{Offset: 10}, false},
		"nothing yet":        {process.Chunk{Next: 10}, process.ReadRequest{Offset: 10}, false},
		"more than it says":  {process.Chunk{Data: []byte("01234"), Next: 11}, process.ReadRequest{Offset: 10, Until: 15}, true},
		"beyond the range":   {process.Chunk{Data: []byte("012345"), Next: 16}, process.ReadRequest{Offset: 10, Until: 15}, true},
		"before the range":   {process.Chunk{Next: 9}, process.ReadRequest{Offset: 10, Until: 15}, true},
		"more than a limit":  {process.Chunk{Data: []byte("01234"), Next: 15}, process.ReadRequest{Offset: 10, Limit: 4}, true},
		"more than is usual": {process.Chunk{Data: make([]byte, 64<<10+1), Next: 64<<10 + 1}, process.ReadRequest{}, true},
	} {
		liar.chunk = c.chunk
		_, err := processes.Read(t.Context(), "me", "p", c.request)
		checkRefused(t, what, err, c.refused)
	}
	for n, refused := range map[int]bool{5: false, 4: true} {
		liar.chunk = process.Chunk{Data: []byte("01234"), Next: 5}
		_, err := processes.Tail(t.Context(), "me", "p", n, process.Both)
		checkRefused(t, fmt.Sprint("the last ", n), err, refused)
	}
	for length, refused := range map[int]bool{100: false, 1 << 20: true} {
		liar.text = strings.Repeat("x", length)
		_, _, err := processes.View(t.Context(), "me", "p", process.Both)
		checkRefused(t, fmt.Sprint("a view of ", length), err, refused)
	}
}

// An answer of empty parts takes two bytes for each, and hundreds in memory.
func TestAnAnswerOfManyPartsIsNotDecoded(t *testing.T) {
	parts := strings.Repeat("\x0a\x00", 2_000_000)
	m := serveAnswers(t, envelope(uint32(len(parts)), parts))
	c := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}})
	ws := c.Workspace()
	for what, ask := range map[string]func() error{
		"list": func() error {
			_, err := ws.Processes.List(t.Context(), "me")
			return err
		},
		"folder": func() error {
			_, err := ws.Files.List(t.Context(), workspace.At("f"), workspace.ListOptions{})
			return err
		},
		"survey": func() error {
			_, err := ws.Files.Survey(t.Context(), workspace.SurveyRequest{})
			return err
		},
		"collect": func() error {
			_, err := ws.Files.Collect(t.Context(), workspace.Selection{})
			return err
		},
	} {
		checkRefused(t, what, ask(), true)
	}
}

// A client does not rely on whoever answers to compare identities.
func TestAnotherWorkspaceThatAnswersIsRefused(t *testing.T) {
	text, err := proto.Marshal(&pb.DescribeResponse{Identity: "another", Protocol: bridge.Protocol})
	must(t, err)
	m := serveAnswers(t, envelope(uint32(len(text)), string(text)))
	for wanted, refused := range map[string]bool{"": false, "another": false, "ours": true} {
		_, err := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}, Identity: wanted}).Describe(t.Context())
		if errors.Is(err, workspace.ErrOther) != refused || err != nil && !refused {
			t.Errorf("of a workspace that is to be %q: %v", wanted, err)
		}
	}
}
