package protect

import (
	"fmt"
	"os"
	"testing"
)

// TestASearchThatIsTooLongEndsWithAReason: nobody may take it for one that has found
// nothing.
func TestASearchThatIsTooLongEndsWithAReason(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		if err := os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Lstat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for left, want := range map[int]string{5: reasonManyNames, 11: ""} {
		s := linkSearch{file: info, left: left}
		if got := s.below(dir, reasonData); got != want {
			t.Errorf("with %d files left: %q", left, got)
		}
	}
}
