package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/daemon"
)

// The token is not sent to a program that listens where a killed server has listened.
func TestOpenDoesNotTrustAnOldAddress(t *testing.T) {
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another program got %v", r.Header)
	}))
	defer foreign.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"http": strings.TrimPrefix(foreign.URL, "http://") + "\n", "token": "secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{home: dir}
	if _, err := a.signInLink(t.Context(), filepath.Join(dir, "token")); !errors.Is(err, daemon.ErrNotServed) {
		t.Errorf("got %v, want that there is no server", err)
	}
}
