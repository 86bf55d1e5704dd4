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
		for _, v := range k.Vendors {
			if !slices.Contains(k.Types, v.Type) {
				t.Errorf("row %d of internal/daemon/wires.go has the vendor %s of the type %q, which is none of its Types %q", i+1, v.Scheme, v.Type, k.Types)
			}
		}
	}
	for scheme, k := range stores {
		if k.Form == "" || k.Open == nil {
			t.Errorf("the row of %q in internal/daemon/stores.go lacks its Form or Open", scheme)
		}
	}
}

// TestEveryWireCanBeChosen: of two wires for the same type of providers without an API that
// tells them apart, the second would never be used.
func TestEveryWireCanBeChosen(t *testing.T) {
	for i, k := range Wires {
		for j, other := range Wires[:i] {
			shared := func(typ string) bool { return slices.Contains(other.Types, typ) }
			if slices.ContainsFunc(k.Types, shared) && (k.API == "" || other.API == "" || k.API == other.API) {
				t.Errorf("rows %d and %d of internal/daemon/wires.go, for %q and %q, share a type: give each an API of its own", j+1, i+1, other.Types, k.Types)
			}
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
