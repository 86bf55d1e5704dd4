package audit_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/audit"
)

// The folders that internal/test/upgradetest keeps were made by earlier versions, and some
// of their engines were killed. They have no findings.
func TestFoldersOfEarlierVersionsHaveNoFindings(t *testing.T) {
	kept, err := filepath.Glob("../test/upgradetest/testdata/*.tar.gz")
	if err != nil || len(kept) == 0 {
		t.Fatalf("there are no kept folders: %v", err)
	}
	for _, path := range kept {
		dir := t.TempDir()
		unpack(t, path, dir)
		logs, err := filepath.Glob(filepath.Join(dir, "*", "abide.db"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("%s holds the logs %v: %v", path, logs, err)
		}
		r, err := audit.Run(t.Context(), filepath.Dir(logs[0]), audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range r.Findings {
			t.Errorf("%s: %+v", path, found)
		}
	}
}

// unpack writes the files of an archive below a folder.
func unpack(t *testing.T, path, dir string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(text); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(archive)
		to := filepath.Join(dir, filepath.FromSlash(head.Name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
