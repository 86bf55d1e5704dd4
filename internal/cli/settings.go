package cli

import (
	"fmt"
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
	project, err := a.projectLayers()
	if err != nil {
		return nil, err
	}
	layers = append(layers, project...)
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

// projectLayers reads the configuration of the current project. A mistake in the file of
// a trusted project is an error. A mistake in the file of an untrusted project must not
// stop the user from working, and lifts no restriction: it is reported, and the
// restrictions that can be read apply. What a file restricted when the user trusted it stays
// restricted until the user trusts it as it is now, also if it is gone or cannot be read.
func (a *app) projectLayers() ([]config.Layer, error) {
	store, err := a.trust()
	hadFile := func(dir string) bool {
		r, known, failed := store.Find(dir)
		return failed == nil && known && len(store.Shown(r)) > 0
	}
	if err != nil { // there is no data folder, which matters only if there is a file
		hadFile = func(string) bool { return false }
	}
	path := findProject(hadFile)
	if path == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	record, known, err := store.Find(dir)
	if err != nil {
		return nil, configError(err)
	}
	data, err := trust.Read(dir)
	trusted := known && err == nil && record.Covers(data)
	layer := config.Layer{Name: path, Path: path, Data: data, Project: true, Trusted: trusted, Changed: known && !trusted}
	var layers []config.Layer
	if shown := store.Shown(record); layer.Changed || len(data) == 0 && len(shown) > 0 {
		a.reportChange(path, shown, data)
		layers = a.keptLayers(path, shown)
	}
	if err == nil {
		_, err = config.Load(layer)
	}
	switch {
	case err == nil:
		return append(layers, layer), nil
	case trusted:
		return nil, configError(err)
	}
	return append(layers, a.restrictions(layer, err)), nil
}

// keptLayers returns the restrictions of a configuration that the user trusted before it
// changed.
func (a *app) keptLayers(path string, shown []byte) []config.Layer {
	if len(shown) == 0 {
		return nil
	}
	kept := config.Layer{Name: path + " as you trusted it", Path: path, Data: shown, Project: true, Changed: true, Kept: true}
	if _, err := config.Load(kept); err != nil {
		kept = a.restrictions(kept, err)
	}
	return []config.Layer{kept}
}

// restrictions reports a mistake in the file of a project, and returns what the file
// restricts as far as it can be read.
func (a *app) restrictions(layer config.Layer, mistake error) config.Layer {
	readable := layer.Restrictions()
	a.mistake = fmt.Errorf("there is a mistake in the configuration of this project: %w; %s", mistake, stillHeld(readable.Unread))
	if !a.quiet {
		a.err.printf("abide: %s\n", plain(a.mistake.Error()))
	}
	return readable
}

// stillHeld says what holds of a project's configuration that has a mistake.
func stillHeld(unread bool) string {
	if unread {
		return "what it restricts applies as far as it can be read, and because there may be more, every call is asked about, also with --yolo"
	}
	return "only what it restricts applies"
}

// reportChange shows how a configuration differs from the one that the user trusts.
func (a *app) reportChange(path string, shown, now []byte) {
	if a.quiet {
		return
	}
	a.err.printf("abide: %s is not the file that you trusted; only its restrictions apply, and those of the file that you trusted, until you trust it again with: abide trust\n", plain(path))
	if shown != nil {
		change, _ := a.changeText(path, shown, now) // nobody is asked about it here
		a.err.printf("%s", change)
	}
}

// changeText returns the change of a configuration as it is printed. If that is not the whole
// change, omitted says what is not shown.
func (a *app) changeText(path string, shown, now []byte) (printed, omitted string) {
	s := &sheet{paint: paint(a.err), most: width(a.err)}
	text, omitted := files.Diff(path, shown, now)
	s.diff(text, 0)
	return s.String(), omitted
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
// or above it, up to the root of the repository; empty if there is none. A file that a
// directory had when the user trusted it counts also if it is gone.
func findProject(hadFile func(dir string) bool) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		path := filepath.Join(dir, trust.File)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() || hadFile(dir) {
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
