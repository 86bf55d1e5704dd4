package daemon

import (
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/approval"
)

// TestEveryRowIsComplete: a row without its function would only fail when somebody uses it.
func TestEveryRowIsComplete(t *testing.T) {
	for i, k := range Wires {
		if len(k.Types) == 0 || k.New == nil {
			t.Errorf("row %d of internal/daemon/wires.go, %q for %q, lacks its Types or New", i+1, k.API, k.Types)
		}
	}
	for scheme, k := range stores {
		if k.Form == "" || k.Open == nil {
			t.Errorf("the row of %q in internal/daemon/stores.go lacks its Form or Open", scheme)
		}
	}
}

// TestRulesCanNameEveryTool: a name that is nearly that of another tool, or that of a
// program, is refused in rules as a typing error. Of two tools with the same name, only the
// first would be called.
func TestRulesCanNameEveryTool(t *testing.T) {
	names := ToolNames()
	for i, name := range names {
		if err := approval.Check(name); err != nil {
			t.Errorf("no rule can name the tool %s: %v; choose another name, or add it to otherNames in internal/approval/rule.go", name, err)
		}
		if slices.Index(names, name) != i {
			t.Errorf("two tools have the name %s: choose another name", name)
		}
	}
}
