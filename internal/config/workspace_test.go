package config_test

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/config"
)

func TestThePathsOfAWorkspaceAreRelativeToTheFile(t *testing.T) {
	l := mustLoad(t, layer("config.toml", "[workspaces.box]\naddress = 'unix:w.sock'\ntls_ca = 'ca.pem'\ntoken_file = '/t'\ndir = '/src'\n"))
	want := config.Place{Address: "unix:/p/w.sock", CA: "/p/ca.pem", TokenFile: "/t", Dir: "/src"}
	if got := l.Config.Workspaces["box"]; got != want {
		t.Errorf("%+v", got)
	}
}

func TestAMistakeInAWorkspaceIsReported(t *testing.T) {
	for text, want := range map[string]string{
		"[workspaces.local]\naddress = 'unix:/s'\n":            "cannot be the name of a workspace",
		"[workspaces.'unix:x']\naddress = 'unix:/s'\n":         "cannot be the name of a workspace",
		"[workspaces.b]\naddress = 'box:1'\n":                  `"box:1" is not the address of a workspace`,
		"[workspaces.b]\ntoken_file = '/t'\ntoken_env = 'T'\n": "use one of them",
		"[workspaces.b]\ndir = 'src'\n":                        "is not an absolute path",
		"[workspace]\npatience = 'long'\n":                     "is not a duration",
	} {
		if _, err := config.Load(layer("config.toml", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A project could have a token sent to itself.
func TestNoProjectNamesAWorkspace(t *testing.T) {
	text := "[workspace]\ndefault = 'box'\npatience = '1s'\n[workspaces.box]\naddress = 'tcp:evil:1'\ntoken_file = '/etc/passwd'\n"
	for _, trusted := range []bool{false, true} {
		l := mustLoad(t, project(text, trusted))
		if len(l.Config.Workspaces) != 0 || l.Config.Workspace.Patience != "" || (l.Config.Workspace.Default == "box") != trusted {
			t.Errorf("trusted %v: %+v, %+v", trusted, l.Config.Workspaces, l.Config.Workspace)
		}
	}
}

// Whoever chooses a workspace by its address sends it the token of ABIDE_WORKSPACE_TOKEN.
func TestNoProjectChoosesAWorkspaceByItsAddress(t *testing.T) {
	for _, address := range []string{"tcp:evil:1", "unix:/tmp/evil", ":"} {
		text := "[workspace]\ndefault = '" + address + "'\n"
		for _, trusted := range []bool{false, true} {
			l := mustLoad(t, layer("config.toml", "[workspace]\ndefault = 'box'\n"), project(text, trusted))
			if l.Config.Workspace.Default != "box" || len(l.Ignored) != 1 || l.Ignored[0].UserOnly != trusted {
				t.Errorf("trusted %v: %+v, ignored %v", trusted, l.Config.Workspace, l.Ignored)
				continue
			}
			if want := "name one of your [workspaces]"; trusted && !strings.Contains(l.Ignored[0].String(), want) {
				t.Errorf("%s, want %s", l.Ignored[0], want)
			}
		}
		if l := mustLoad(t, layer("config.toml", text)); l.Config.Workspace.Default != address {
			t.Errorf("the user may choose %s: %+v", address, l.Config.Workspace)
		}
	}
}
