package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/project/file"
)

// serversFile is the name of the file with the MCP servers of a project.
const serversFile = ".mcp.json"

// maxServersFile is the maximum size of such a file, in bytes.
const maxServersFile = 1 << 20

// readServers reads the file with the MCP servers of a directory; nil if there is none. Links
// are not followed out of the project.
func readServers(dir string) ([]byte, error) {
	content, size, err := file.Read(file.Root(dir), filepath.Join(dir, serversFile), maxServersFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && size > maxServersFile:
		return nil, errors.New("it has more than 1 MiB")
	}
	return content, err
}

// findServers returns the directory with the MCP servers of the project: the working
// directory or one above it, up to the root of the repository; empty if there is none.
func findServers() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if info, err := os.Lstat(filepath.Join(dir, serversFile)); err == nil && info.Mode().IsRegular() {
			return dir
		}
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		if dir == filepath.Dir(dir) || err == nil {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// projectServers returns the MCP servers of the project, if the user trusts the file as it
// is: it names programs that are started. A file that cannot be used is reported, and keeps
// nobody from working.
func (a *app) projectServers() ([]mcp.Server, error) {
	dir := findServers()
	if dir == "" {
		return nil, nil
	}
	path := filepath.Join(dir, serversFile)
	content, err := readServers(dir)
	if err != nil {
		a.err.printf("abide: ignored %s: %v\n", plain(path), err)
		return nil, nil
	}
	store, err := a.trust()
	if err != nil {
		return nil, err
	}
	record, known, err := store.Find(path)
	if err != nil {
		return nil, configError(err)
	}
	if !known || !record.Covers(content) {
		if !a.quiet {
			reason := "this directory is not trusted"
			if known {
				reason = "the file has changed since you trusted it"
			}
			a.err.printf("abide: ignored %s: %s; see abide trust\n", plain(path), reason)
		}
		return nil, nil
	}
	list, err := mcp.ParseFile(path, content)
	if err != nil {
		a.err.printf("abide: ignored %v\n", err)
		return nil, nil
	}
	return list, nil
}

// trustServers shows the MCP servers of a directory, and trusts what was shown.
func (a *app) trustServers(ctx context.Context, dir string, yes bool) error {
	path := filepath.Join(dir, serversFile)
	content, err := readServers(dir)
	if err != nil || len(content) == 0 {
		return configError(err)
	}
	if _, err := mcp.ParseFile(path, content); err != nil {
		return configError(err)
	}
	store, err := a.trust()
	if err != nil {
		return err
	}
	record, known, err := store.Find(path)
	if err != nil {
		return configError(err)
	}
	if !known || !record.Covers(content) {
		if err := a.confirmTrust(ctx, path, store.Shown(record), content, yes); err != nil {
			return err
		}
	}
	if _, err := store.Trust(path, content); err != nil {
		return configError(err)
	}
	a.out.printf("%s is trusted\n", plain(path))
	return nil
}
