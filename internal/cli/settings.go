package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/project/file"
)

// projectFile is the name of a project's configuration file.
const projectFile = "abide.toml"

// settings reads the configuration. Keys of an untrusted project that do not apply are
// reported.
func (a *app) settings() (*config.Loaded, error) {
	if a.loaded != nil {
		return a.loaded, nil
	}
	var layers []config.Layer
	if user := userFile(a.home); user != "" {
		layer, err := config.File(user)
		if err != nil {
			return nil, configError(err)
		}
		layers = append(layers, layer)
	}
	project, err := a.projectLayer()
	if err != nil {
		return nil, err
	}
	layers = append(layers, project)
	variables, err := config.Environment(os.Getenv)
	if err != nil {
		return nil, configError(err)
	}
	loaded, err := config.Load(append(layers, variables...)...)
	if err != nil {
		return nil, configError(err)
	}
	for _, ignored := range loaded.Ignored {
		if !a.quiet {
			a.err.printf("abide: ignored %s\n", ignored)
		}
	}
	a.loaded = loaded
	return loaded, nil
}

// maxProjectFile is the maximum size of a project's configuration, in bytes.
const maxProjectFile = 1 << 20

// projectLayer reads the configuration of the current project. A mistake in the file of
// a trusted project is an error. A mistake in the file of an untrusted project must not
// stop the user from working: it is reported, and the file is ignored.
func (a *app) projectLayer() (config.Layer, error) {
	path := findProject()
	if path == "" {
		return config.Layer{}, nil
	}
	dir := filepath.Dir(path)
	trusted, err := a.trusts(dir)
	if err != nil {
		return config.Layer{}, err
	}
	data, more, err := file.Read(file.Root(dir), path, maxProjectFile)
	if more {
		err = fmt.Errorf("it has more than %d bytes", maxProjectFile)
	}
	layer := config.Layer{Name: path, Path: path, Data: data, Project: true, Trusted: trusted}
	if err != nil {
		err = fmt.Errorf("configuration %s: %w", path, err)
	} else if !trusted {
		_, err = config.Load(layer)
	}
	if err == nil || trusted {
		return layer, configError(err)
	}
	if !a.quiet {
		a.err.printf("abide: ignored the configuration of this project, because its directory is not trusted: %s\n", plain(err.Error()))
	}
	return config.Layer{}, nil
}

// userFile returns the path of the user's configuration; empty if there is no home
// directory.
func userFile(home string) string {
	if home == "" {
		home = os.Getenv("ABIDE_HOME")
	}
	if home != "" {
		return filepath.Join(home, "config.toml")
	}
	if xdg := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		return filepath.Join(xdg, "abide", "config.toml")
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, ".config", "abide", "config.toml")
}

// findProject returns the path of the project's configuration: in the working directory
// or above it, up to the root of the repository; empty if there is none.
func findProject() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		path := filepath.Join(dir, projectFile)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		if dir == filepath.Dir(dir) || err == nil {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// trustFile returns the path of the file that lists the trusted directories, one per
// line.
func (a *app) trustFile() (string, error) {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	return filepath.Join(dir, "trusted"), err
}

func (a *app) trusted() ([]string, error) {
	path, err := a.trustFile()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, configError(fmt.Errorf("cannot read the list of trusted directories: %w", err))
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), nil
}

func (a *app) trusts(dir string) (bool, error) {
	list, err := a.trusted()
	return slices.Contains(list, real(dir)), err
}

// real returns the path of a directory without symbolic links, so that a link to a
// trusted directory is not trusted itself.
func real(dir string) string {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}
