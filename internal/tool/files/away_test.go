package files_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files"
	"github.com/abide-run/abide/internal/workspace"
)

// A silentWorkspace never answers.
type silentWorkspace struct{ workspace.Files }

func (silentWorkspace) Judge(ctx context.Context, _ *scope.Scope, _ ...workspace.Question) ([]workspace.Judgement, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TestAWorkspaceThatDoesNotAnswerFailsTheCall: the question whether a call is allowed ends by
// itself, with a sentence for the model.
func TestAWorkspaceThatDoesNotAnswerFailsTheCall(t *testing.T) {
	for name, arguments := range map[string]string{
		"view": `{"path":"a"}`, "grep": `{"pattern":"a"}`, "glob": `{"pattern":"a"}`,
		"create": `{"path":"a","file_text":"b"}`, "edit": `{"path":"a","old_str":"a","new_str":"b"}`,
	} {
		b := newFixture(t)
		b.files = silentWorkspace{b.files}
		synctest.Test(t, func(t *testing.T) {
			_, err := b.tools[name].Permission(t.Context(), b.call(arguments))
			var refused *tool.Refusal
			if !errors.As(err, &refused) || !strings.Contains(refused.Text, "has not answered within 30 seconds") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestARewindGoesOnWithoutAnAnswer: a file that cannot be reached is left alone, with a
// reason.
func TestARewindGoesOnWithoutAnAnswer(t *testing.T) {
	b := newFixture(t)
	b.run("create", `{"path":"a","file_text":"b"}`)
	silent := files.NewCheckpoints(filepath.Join(filepath.Dir(b.dir), "kept"), silentWorkspace{b.files})
	synctest.Test(t, func(t *testing.T) {
		all, err := silent.Restore(t.Context(), func(string) bool { return true })
		if err != nil || len(all) != 1 || all[0].Outcome != files.Skipped || !strings.Contains(all[0].Reason, "has not answered within 30 seconds") {
			t.Errorf("%+v, %v", all, err)
		}
	})
	if b.content("a") != "b" {
		t.Error("the file was changed")
	}
}
