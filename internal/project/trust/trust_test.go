package trust_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/project/trust"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func trusts(t *testing.T, s trust.Store, dir string) bool {
	t.Helper()
	r, found, err := s.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	content, err := trust.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return found && r.Covers(content)
}

// TestTrustIsForTheContentThatWasShown: a changed file is not trusted, and the user can
// be shown what has changed.
func TestTrustIsForTheContentThatWasShown(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, trust.File)
	s := trust.Open(filepath.Join(data, "new"))
	put(t, file, "one")
	if trusts(t, s, dir) {
		t.Error("trusted by nobody")
	}
	if _, err := s.Trust(dir, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if !trusts(t, s, dir) {
		t.Error("not trusted")
	}
	put(t, file, "two")
	if trusts(t, s, dir) {
		t.Error("another content is trusted")
	}
	r, known, err := s.Find(dir)
	if err != nil || !known || string(s.Shown(r)) != "one" {
		t.Errorf("%+v, %v, %v: shown %q", r, known, err, s.Shown(r))
	}
	put(t, file, "one")
	if !trusts(t, s, dir) {
		t.Error("what was shown is not trusted again")
	}
	os.Remove(file)
	if !trusts(t, s, dir) {
		t.Error("no file is less than the file that was shown")
	}
	if err := s.TrustNow(dir); err != nil {
		t.Fatal(err)
	}
	put(t, file, "new")
	if trusts(t, s, dir) {
		t.Error("a file that appears later is trusted")
	}
	if _, err := s.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, known, _ := s.Find(dir); known {
		t.Error("it was removed")
	}
}

// TestRecordsOfOlderVersionsTrustNoContent: they named a folder only.
func TestRecordsOfOlderVersionsTrustNoContent(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	s := trust.Open(data)
	put(t, filepath.Join(data, "trusted"), dir+"\n\n/other dir\n")
	put(t, filepath.Join(dir, trust.File), "x")
	if r, known, err := s.Find(dir); err != nil || !known || r.Digest != "" || s.Shown(r) != nil {
		t.Errorf("%+v, %v, %v", r, known, err)
	}
	if trusts(t, s, dir) {
		t.Error("trusted with a content that nobody was shown")
	}
	if err := s.TrustNow(dir); err != nil || !trusts(t, s, dir) {
		t.Error(err)
	}
	text, _ := os.ReadFile(filepath.Join(data, "trusted"))
	if !strings.HasPrefix(string(text), "/other dir\n"+dir+"\tsha256:") {
		t.Errorf("stored %q", text)
	}
}

// TestALinkToATrustedDirectoryIsThatDirectory, and its content may not be led elsewhere.
func TestALinkToATrustedDirectoryIsThatDirectory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "dir")
	s := trust.Open(filepath.Join(root, "data"))
	for _, d := range []string{dir, filepath.Join(root, "outside")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(root, "outside", trust.File), "x")
	os.Symlink(dir, filepath.Join(root, "link"))
	if err := s.TrustNow(filepath.Join(root, "link")); err != nil || !trusts(t, s, dir) {
		t.Error(err)
	}
	os.Symlink("../outside/"+trust.File, filepath.Join(dir, trust.File))
	if _, err := trust.Read(dir); err == nil {
		t.Error("a link out of the project was followed")
	}
}

// A name with line breaks would be read as the records of other directories.
func TestADirectoryCannotForgeTheRecordsOfOthers(t *testing.T) {
	root := t.TempDir()
	victim := filepath.Join(root, "victim")
	sum := sha256.Sum256([]byte("evil"))
	forged := filepath.Join(root, "hostile\n"+victim+"\tsha256:"+hex.EncodeToString(sum[:])+"\nx")
	if err := errors.Join(os.MkdirAll(forged, 0o700), os.MkdirAll(victim, 0o700)); err != nil {
		t.Fatal(err)
	}
	s := trust.Open(t.TempDir())
	if _, err := s.Trust(forged, nil); err == nil || !strings.Contains(err.Error(), "rename the directory") {
		t.Errorf("the error is %v", err)
	}
	if _, found, err := s.Find(victim); found || err != nil {
		t.Errorf("another directory is trusted: %v, %v", found, err)
	}
}
