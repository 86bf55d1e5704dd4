package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// newProtectedFixture returns a fixture whose session may write in its working directory,
// but for what is protected.
func newProtectedFixture(t *testing.T) *fixture {
	b := newFixture(t)
	b.scope = b.scope.Protecting(protect.New(protect.Options{Homes: []string{filepath.Join(filepath.Dir(b.dir), "home")}}).Protected)
	b.put(".git/config", "[user]\nname = Ann\n")
	b.put("abide.toml", "[model]\n")
	return b
}

// TestAProtectedFileIsAskedAbout: the scope allows the folder, and still the call waits
// for a person, who is shown the change and the reason.
func TestAProtectedFileIsAskedAbout(t *testing.T) {
	b := newProtectedFixture(t)
	if err := os.Symlink(".git", b.path("alias")); err != nil {
		t.Fatal(err)
	}
	for tool, arguments := range map[string][]string{
		"edit":   {`{"path":".git/config","old_str":"Ann","new_str":"you"}`, `{"path":"$/alias/config","old_str":"Ann","new_str":"you"}`, `{"path":"x/../abide.toml","old_str":"model","new_str":"pod"}`},
		"create": {`{"path":".git/hooks","file_text":""}`, `{"path":".envrc","file_text":"evil"}`, `{"path":"alias/HOOKS","file_text":"evil"}`},
	} {
		for _, a := range arguments {
			call := b.call(a)
			r, err := b.tools[tool].Permission(t.Context(), call)
			if err != nil {
				t.Errorf("%s: %v", a, err)
				continue
			}
			if r.Protected == "" || r.Allowed || len(r.SessionGrants()) > 0 || !strings.Contains(string(r.Ask), r.Protected) || !strings.Contains(string(r.Ask), `"canOfferSessionApproval":false`) || !strings.Contains(string(r.Ask), "diff --git") {
				t.Errorf("%s: %+v", a, r)
			}
			for _, granted := range []bool{false, true} { // a rule, a grant or --yolo are no answer
				call.Granted = granted
				if got := b.mustRun(tool, call); got.Code != event.CodeDenied || !strings.Contains(got.Text, r.Protected) {
					t.Errorf("%s without an answer: %+v", a, got)
				}
			}
			call.Asked = r.Ask
			if got := b.mustRun(tool, call); got.Failed {
				t.Errorf("%s with a yes: %+v", a, got)
			}
			b.put(".git/config", "[user]\nname = Ann\n")
		}
	}
	r, err := b.tools["edit"].Permission(t.Context(), b.call(`{"path":"$/other","old_str":"a","new_str":"b"}`))
	if err == nil && r.Protected != "" {
		t.Errorf("an ordinary file: %+v", r)
	}
}

// TestALinkThatIsTurnedLeadsToNoProtectedFile: the folder is exchanged between the
// decision and the write.
func TestALinkThatIsTurnedLeadsToNoProtectedFile(t *testing.T) {
	b := newProtectedFixture(t)
	b.put("harmless/config", "[user]\nname = Ann\n")
	if err := os.Symlink("harmless", b.path("link")); err != nil {
		t.Fatal(err)
	}
	call := b.call(`{"path":"link/config","old_str":"Ann","new_str":"you"}`)
	r, err := b.tools["edit"].Permission(t.Context(), call)
	if err != nil || r.Protected != "" || !r.Allowed {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := errors.Join(os.Remove(b.path("link")), os.Symlink(".git", b.path("link"))); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{false, true} {
		if call.Granted = asked; asked {
			call.Asked = r.Ask // a yes for the other file
		}
		if got := b.mustRun("edit", call); !got.Failed || b.content(".git/config") != "[user]\nname = Ann\n" {
			t.Errorf("the change was made: %+v", got)
		}
	}
}

// TestReadingAProtectedFileIsNotSpecial: the list is about writing.
func TestReadingAProtectedFileIsNotSpecial(t *testing.T) {
	b := newProtectedFixture(t)
	call := b.call(`{"path":".git/config"}`)
	if r, err := b.tools["view"].Permission(t.Context(), call); err != nil || r.Protected != "" || !r.Allowed {
		t.Errorf("%+v, %v", r, err)
	}
	if got := b.mustRun("view", call); got.Failed {
		t.Errorf("%+v", got)
	}
}

// TestADenyRuleStillWins: what is denied is not asked about.
func TestADenyRuleStillWins(t *testing.T) {
	b := newProtectedFixture(t)
	b.allow([]scope.Rule{{Target: b.dir, Mode: scope.Write}}, scope.Rule{Target: b.path(".git"), Mode: scope.Write})
	b.scope = b.scope.Protecting(protect.New(protect.Options{}).Protected)
	if r, got := b.runCall("edit", b.call(`{"path":".git/config","old_str":"Ann","new_str":"you"}`)); got != nil || r.Code != event.CodeDenied {
		t.Errorf("%+v, %+v", r, got)
	}
}

// TestAWorkspaceProtectsItsOwnFiles: the engine knows nothing of the homes and hard links
// of another machine, and still a person is asked.
func TestAWorkspaceProtectsItsOwnFiles(t *testing.T) {
	b := newFixture(t)
	home := filepath.Join(filepath.Dir(b.dir), "home")
	if err := errors.Join(os.Mkdir(home, 0o755), os.WriteFile(filepath.Join(home, ".bashrc"), []byte("echo\n"), 0o644), os.Link(filepath.Join(home, ".bashrc"), b.path("harmless"))); err != nil {
		t.Fatal(err)
	}
	served, err := local.NewServed(b.dir, nil, local.Options{Protected: protect.New(protect.Options{Homes: []string{home}}).Protected})
	if err != nil {
		t.Fatal(err)
	}
	b.files = bridgetest.FilesOf(t, served)
	call := b.call(`{"path":"harmless","old_str":"echo","new_str":"evil"}`)
	r, err := b.tools["edit"].Permission(t.Context(), call)
	if err != nil || r.Protected == "" || r.Allowed || !strings.Contains(string(r.Ask), r.Protected) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, granted := range []bool{false, true} {
		call.Granted = granted
		if got := b.mustRun("edit", call); got.Code != event.CodeDenied || !strings.Contains(got.Text, r.Protected) || b.content("harmless") != "echo\n" {
			t.Errorf("without an answer: %+v", got)
		}
	}
	call.Asked = r.Ask
	if got := b.mustRun("edit", call); got.Failed || b.content("harmless") != "evil\n" {
		t.Errorf("with a yes: %+v", got)
	}
}
