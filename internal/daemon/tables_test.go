package daemon

import "testing"

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
