package upgradetest

import (
	"testing"

	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/turn/turntest"
)

// builtins are the tools of the runtime, as far as only what the log says is asked of
// them.
var builtins = turn.Catalog(builtin.New(nil, nil))

func TestASessionIsLoadedAsItWasFolded(t *testing.T) {
	eachFolder(t, func(t *testing.T, name, archive string) {
		for _, l := range readLogs(t, archive) {
			folded := turn.New(l.index.ID)
			for i, e := range l.events {
				if err := folded.Fold(e); err != nil {
					t.Fatalf("session %s, event %d (%s): %v", l.index.ID, e.Seq, e.Type, err)
				}
				loaded := loadState(t, l.index.ID, l.events[:i+1])
				if diff := turntest.Diff(t, l.events[:i+1], folded); diff != "" {
					t.Errorf("session %s differs when it is loaded at %d (%s) (-folded +loaded):\n%s", l.index.ID, e.Seq, e.Type, diff)
				}
				if was, is := trace(folded), trace(loaded); was != is {
					t.Errorf("session %s at %d (%s): folded %s, loaded %s", l.index.ID, e.Seq, e.Type, was, is)
				}
				if folded.History.Short() { // a session reads its log anew before it goes on
					folded = loaded
				}
			}
		}
	})
}
