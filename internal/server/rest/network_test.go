package rest

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// A command that is known to use a network is pointed out, although it names no address.
func TestProgramsThatAreOnlineArePointedOut(t *testing.T) {
	for line, want := range map[string]bool{
		"npm install left-pad": true, "npm i": true, "npm --prefix web ci": true, "npm test": false, "npm run build": false, "yarn": true, "yarn test": false,
		"git push origin main": true, "git -C sub pull": true, "git status": false, "git commit -m push": false, "/usr/bin/curl x": true, "sudo apt-get install jq": true, "CI=1 npx playwright": true,
		"go test ./...": false, "go mod download": true, "pip install -r requirements.txt": true, "ls": false, "env": false, "": false,
	} {
		if got := reachesOut([]event.CommandReading{{Words: []string{"true"}}, {Words: strings.Fields(line)}}); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
