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

// tokenFile is the name of the file with the generated token.
const tokenFile = "token"

// readOrCreateToken returns the token in a file. If make is true, a missing file is created,
// readable by its owner only.
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

// newToken generates a token and writes it to a file. If two processes do so at once,
// both get the token of the first one.
func newToken(path string) (string, error) {
	token := rand.Text()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", configError(fmt.Errorf("token: %w", err))
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".token-*") // CreateTemp makes files that only the owner can read
	if err != nil {
		return "", configError(fmt.Errorf("token: %w", err))
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(token + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
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
