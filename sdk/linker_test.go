package sdk

import (
	"debug/elf"
	"strings"
	"testing"
)

// The linker drops exported methods that nothing calls, unless a reachable function looks
// methods up by a name that is not constant, as text/template does. Then it keeps all of
// them, and the program is several MB larger on disk and in memory.
func TestTheLinkerDropsUnusedMethods(t *testing.T) {
	file, err := elf.Open(abide)
	if err != nil {
		t.Skip("the program is no ELF file:", err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range symbols {
		found = found || strings.HasPrefix(s.Name, "github.com/spf13/cobra.(*Command).")
		if strings.HasPrefix(s.Name, "text/template.(*state)") || s.Name == "github.com/spf13/cobra.(*Command).SetVersionTemplate" {
			t.Errorf("%s is linked: something reachable uses templates, or looks methods up by name (go build -ldflags=-dumpdep ./cmd/abide lists it with ReflectMethod)", s.Name)
		}
	}
	if !found {
		t.Error("no method of cobra.Command has a symbol, so this test sees nothing")
	}
}
