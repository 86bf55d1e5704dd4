package protect

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// unwatched is what is protected and not looked at around commands. The page about
// security names it, too.
var unwatched = []string{
	"~/.bun/bin", "~/.cargo/bin", "~/.deno/bin", "~/.local/bin", "~/bin", "~/go/bin", // programs are large, and installers write there
	"~/.asdf", "~/.docker/cli-plugins", "~/.local/lib", "~/.local/share/gh/extensions", "~/.local/share/mise",
	"~/.npm-global/bin", "~/.nvm/versions", "~/.pyenv", "~/.rbenv", "~/.volta/bin", "~/.yarn/bin",
	"./.venv/bin", "./node_modules/.bin", "./venv/bin",
	"~/.sbt", "~/.terraform.d", "~/.local/share/bash-completion", // there is too much in them
	"~/.claude.json", "~/.config/gcloud", "~/.config/github-copilot", // programs write there all the time
	"~/.local/share/applications", "~/.password-store",
	"./.abide/memory", // abide itself writes there
}

// TestWhatIsNotWatchedIsNamed: each name on the list is looked at, or something in the
// folder is, or the page about security says that nothing is.
func TestWhatIsNotWatchedIsNamed(t *testing.T) {
	page, err := os.ReadFile("../../../docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "Protected, but not looked at around commands")
	text, _, _ = strings.Cut(text, "\n- ")
	home, project := t.TempDir(), t.TempDir()
	files, folders, err := New(Options{Homes: []string{home}, Data: home + "/.local/share/abide"}).Watched(project)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		folders = append(folders, f.Path)
	}
	for i, path := range folders {
		folders[i] = strings.Join(components(strings.NewReplacer(home, "~", project, ".").Replace(path)), "/")
	}
	for list, at := range map[*index]string{&inHome: "~", &inHomeCrowded: "~", &anywhere: "."} {
		for _, rules := range *list {
			for _, r := range rules {
				path := at + "/" + strings.Join(r.names, "/")
				seen := slices.ContainsFunc(folders, func(f string) bool { return f == path || r.folder && strings.HasPrefix(f, path+"/") })
				if named := slices.Contains(unwatched, path); named == seen {
					t.Errorf("%s: looked at %v, on the list of what is not %v", path, seen, named)
				}
			}
		}
	}
	for _, path := range unwatched {
		path = strings.TrimPrefix(path, "./")
		if !strings.Contains(text, "`"+path+"`") && !strings.Contains(text, "`"+path+"/`") {
			t.Errorf("the page about security does not name %s", path)
		}
	}
}
