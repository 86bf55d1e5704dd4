package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/daemon/folder"
)

func TestTheLogOfAnEngineStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), folder.EngineLogName)
	f, err := openEngineLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const limit, last = 1000, 500
	log := &printer{w: &boundedLog{f, limit}}
	for i := range last + 1 {
		log.printf("line %d %s\n", i, strings.Repeat("x", i%30))
		if info, err := f.Stat(); err != nil || info.Size() > limit {
			t.Fatalf("after line %d: %v, %v", i, info.Size(), err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || log.err != nil {
		t.Fatal(err, log.err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) < limit/2-50 {
		t.Errorf("only %d bytes are left", len(text))
	}
	if lines[0] != removedLines {
		t.Errorf("it begins with %q", lines[0])
	}
	for i, line := range lines[1:] {
		if want := fmt.Sprintf("line %d ", last-len(lines)+2+i); !strings.HasPrefix(line, want) {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
}

// A line that is longer than the log may be is cut as well.
func TestALongLineDoesNotMakeTheLogOfAnEngineLong(t *testing.T) {
	f, err := openEngineLog(filepath.Join(t.TempDir(), folder.EngineLogName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := &boundedLog{f, 100}
	for range 3 {
		if n, err := log.Write([]byte(strings.Repeat("x", 1000))); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
		if info, err := f.Stat(); err != nil || info.Size() > 100 {
			t.Errorf("%d bytes, %v", info.Size(), err)
		}
	}
}
