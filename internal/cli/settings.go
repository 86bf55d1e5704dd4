package cli

import (
	"os"
	"path/filepath"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/project/trust"
	"github.com/abide-run/abide/internal/tool/files"
)

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

// projectLayer reads the configuration of the current project. A mistake in the file of
// a trusted project is an error. A mistake in the file of an untrusted project must not
// stop the user from working: it is reported, and the file is ignored.
func (a *app) projectLayer() (config.Layer, error) {
	path := findProject()
	if path == "" {
		return config.Layer{}, nil
	}
	dir := filepath.Dir(path)
	store, err := a.trust()
	if err != nil {
		return config.Layer{}, err
	}
	record, known, err := store.Find(dir)
	if err != nil {
		return config.Layer{}, configError(err)
	}
	data, err := trust.Read(dir)
	trusted := known && err == nil && record.Covers(data)
	layer := config.Layer{Name: path, Path: path, Data: data, Project: true, Trusted: trusted, Changed: known && !trusted}
	if layer.Changed && err == nil {
		a.reportChange(path, store.Shown(record), data)
	}
	if err == nil && !trusted {
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

// reportChange shows how a configuration differs from the one that the user trusts.
func (a *app) reportChange(path string, shown, now []byte) {
	if a.quiet {
		return
	}
	a.err.printf("abide: %s is not the file that you trusted; only its restrictions apply until you trust it again with: abide trust\n", plain(path))
	if shown != nil {
		a.err.printf("%s", a.changeText(path, shown, now))
	}
}

// changeText returns the change of a configuration as it is printed.
func (a *app) changeText(path string, shown, now []byte) string {
	return reveal(diffText(paint(a.err), files.Diff(path, shown, now), 0))
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
		path := filepath.Join(dir, trust.File)
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

// trust returns the directories that the user trusts.
func (a *app) trust() (trust.Store, error) {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	return trust.Open(dir), err
}

// trusts reports whether the user trusts a directory, whatever its configuration holds,
// so that models are told what is in its memory.
func (a *app) trusts(dir string) (bool, error) {
	store, err := a.trust()
	if err != nil {
		return false, err
	}
	_, known, err := store.Find(dir)
	return known, configError(err)
}
