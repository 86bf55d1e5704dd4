package bridge_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// greedyFiles are the files of a workspace that answers with more than it is asked for.
type greedyFiles struct {
	workspace.Files
	shown    workspace.Shown
	surveyed int // number of files in a survey, of half a megabyte each
}

func (g *greedyFiles) Show(context.Context, *scope.Scope, workspace.ShowRequest) (workspace.Shown, error) {
	return g.shown, nil
}

func (g *greedyFiles) Survey(_ context.Context, r workspace.SurveyRequest) (workspace.Survey, error) {
	s := workspace.Survey{States: make(map[string]protect.State)}
	for path := range r.Known {
		if s.States[path] = (protect.State{Exists: true, Content: make([]byte, 1<<19)}); len(s.States) == 16 {
			return s, nil // the others in the next answers
		}
	}
	if !r.Only {
		for i := range g.surveyed {
			s.Targets = append(s.Targets, workspace.SurveyTarget{Target: protect.Target{Path: fmt.Sprint("/", i)}})
		}
	}
	return s, nil
}

func TestAWorkspaceCannotAnswerMoreThanItIsAsked(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	g := &greedyFiles{Files: ws.Files}
	ws.Files = g
	files := bridgetest.Over(t, "unix", ws).Files
	everything, err := scope.New([]scope.Rule{{Target: "/", Mode: scope.Read}}, nil)
	must(t, err)
	for name, c := range map[string]struct {
		shown   workspace.Shown
		request workspace.ShowRequest
		refused bool
	}{
		"names":      {workspace.Shown{Folder: true, Names: make([]string, 11)}, workspace.ShowRequest{MaxNames: 10}, true},
		"few names":  {workspace.Shown{Folder: true, Names: make([]string, 10)}, workspace.ShowRequest{MaxNames: 10}, false},
		"lines":      {workspace.Shown{Content: bytes.Repeat([]byte("x"), 1<<20)}, workspace.ShowRequest{Lines: true, MaxLines: 1000, MaxWhole: 1 << 20}, true},
		"few lines":  {workspace.Shown{Content: bytes.Repeat([]byte("x"), 1001)}, workspace.ShowRequest{Lines: true, MaxLines: 1000}, false},
		"whole file": {workspace.Shown{Content: bytes.Repeat([]byte("x"), 1<<20)}, workspace.ShowRequest{MaxWhole: 1000}, true},
	} {
		g.shown = c.shown
		_, err := files.Show(t.Context(), everything, c.request)
		if refused := err != nil && strings.Contains(err.Error(), "more than it was asked for"); refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n, refused := range map[int]bool{100: false, 200: true} {
		g.surveyed = n
		s, err := files.Survey(t.Context(), workspace.SurveyRequest{})
		if (err != nil) != refused || !refused && len(s.States) != n {
			t.Errorf("a survey of %d files has %d: %v", n, len(s.States), err)
		}
	}
}
