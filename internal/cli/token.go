package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tokenFile is where a token is kept that nobody chose.
const tokenFile = "token"

// readOrCreateToken returns the token of a file. With make, a file that is not there is
// made, for its owner alone.
func readOrCreateToken(path string, make bool) (string, error) {
	b, err := os.ReadFile(path)
	switch {
	case make && errors.Is(err, fs.ErrNotExist):
		return newToken(path)
	case err != nil:
		return "", configError(fmt.Errorf("token: %w", err))
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", configError(fmt.Errorf("the token file %s is empty: write a token to it, or remove it", path))
	}
	return token, nil
}

// newToken makes a token and keeps it. Of two processes that do so at once, one
// wins.
func newToken(path string) (string, error) {
	token := rand.Text()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", configError(fmt.Errorf("token: %w", err))
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".token-*") // only its owner may read it
	if err != nil {
		return "", configError(fmt.Errorf("token: %w", err))
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(token + "\n")
	if err = errors.Join(err, tmp.Close()); err != nil {
		return "", configError(fmt.Errorf("token: %w", err))
	}
	err = os.Link(tmp.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return readOrCreateToken(path, false)
	}
	if err != nil {
		return "", configError(fmt.Errorf("token: %w", err))
	}
	return token, nil
}
