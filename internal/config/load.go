package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"
)

// A Layer is one source of values.
type Layer struct {
	Name    string // what people are shown: a file, a variable, a flag
	Path    string // the file, if it is one
	Data    []byte // TOML
	Project bool   // a file of a project
	Trusted bool   // whose folder the user trusts
}

// Loaded is the configuration with its history.
type Loaded struct {
	Config  Config
	Origins map[string]string // where each key that is set came from
	Ignored []string          // keys of a project that is not trusted, with the way out
}

// File reads a layer from a file. One that does not exist is an empty layer.
func File(path string) (Layer, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Layer{}, nil
	}
	if err != nil {
		return Layer{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return Layer{Name: path, Path: path, Data: data}, nil
}

// Load puts layers together, the first one lowest.
func Load(layers ...Layer) (*Loaded, error) {
	l := &Loaded{Origins: make(map[string]string)}
	merged := make(map[string]any)
	for _, layer := range layers {
		if len(layer.Data) == 0 {
			continue
		}
		values, err := layer.read()
		if err != nil {
			return nil, err
		}
		if layer.Project && !layer.Trusted {
			l.Ignored = append(l.Ignored, narrow(layer, values)...)
		}
		l.merge(merged, values, "", layer.Name)
	}
	text, err := toml.Marshal(merged)
	if err == nil {
		err = toml.Unmarshal(text, &l.Config)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return l, nil
}

// read checks a layer by itself, so that an error can name its place, and
// returns its values with paths made absolute.
func (l Layer) read() (map[string]any, error) {
	var c Config
	decoder := toml.NewDecoder(bytes.NewReader(l.Data)).DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return nil, l.explain(err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", l.Name, err)
	}
	values := make(map[string]any)
	if err := toml.Unmarshal(l.Data, &values); err != nil {
		return nil, l.explain(err)
	}
	for _, key := range flatten(values, "") { // the decoder does not mind case
		if !known(key) {
			return nil, fmt.Errorf("configuration %s: there is no key %s%s", l.Name, key, suggestion(key))
		}
	}
	l.anchor(values)
	return values, nil
}

// explain says where a file is wrong, and what it may have meant.
func (l Layer) explain(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		first := unknown.Errors[0]
		line, column := first.Position()
		key := strings.Join(first.Key(), ".")
		return fmt.Errorf("configuration %s, line %d, column %d: there is no key %s%s", l.Name, line, column, key, suggestion(key))
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, column := wrong.Position()
		return fmt.Errorf("configuration %s, line %d, column %d: %s", l.Name, line, column, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	return fmt.Errorf("configuration %s: %w", l.Name, err)
}

// anchor makes the paths of a file absolute: they are meant from where it is.
func (l Layer) anchor(values map[string]any) {
	if l.Path == "" {
		return
	}
	dir := filepath.Dir(l.Path)
	if pod, ok := values["pod"].(map[string]any); ok {
		anchorKey(pod, "pwd", dir)
	}
	scope, _ := values["scope"].(map[string]any)
	for _, kind := range []string{"allow", "deny"} {
		rules, _ := scope[kind].([]any)
		for _, r := range rules {
			if rule, ok := r.(map[string]any); ok {
				anchorKey(rule, "target", dir)
			}
		}
	}
}

func anchorKey(table map[string]any, key, dir string) {
	path, ok := table[key].(string)
	if !ok || path == "" || filepath.IsAbs(path) {
		return
	}
	if rest, home := strings.CutPrefix(path, "~/"); home {
		if dir, err := os.UserHomeDir(); err == nil {
			table[key] = filepath.Join(dir, rest)
		}
		return
	}
	table[key] = filepath.Join(dir, path)
}

// merge lays values over what is there. Lists of rules are added to.
func (l *Loaded) merge(into, values map[string]any, prefix, origin string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, name := values[key], prefix+key
		table, isTable := value.(map[string]any)
		if isTable {
			under, _ := into[key].(map[string]any)
			if under == nil {
				under = make(map[string]any)
				into[key] = under
			}
			l.merge(under, table, name+".", origin)
			continue
		}
		if list, ok := value.([]any); ok && additive(name) {
			before, _ := into[key].([]any)
			value = append(before[:len(before):len(before)], list...)
			if l.Origins[name] != "" {
				origin := l.Origins[name] + ", " + origin
				into[key], l.Origins[name] = value, origin
				continue
			}
		}
		into[key], l.Origins[name] = value, origin
	}
}

// additive reports whether a list of a later source is added to that of an
// earlier one.
func additive(key string) bool {
	return strings.HasPrefix(key, "scope.") || strings.HasPrefix(key, "permissions.")
}

// narrowing are the keys that a project may set before it is trusted: they only
// restrict, or cannot harm.
func narrowing(key string) bool {
	switch key {
	case "pod.name", "scope.deny", "permissions.ask", "permissions.deny":
		return true
	}
	return strings.HasPrefix(key, "compaction.") && key != "compaction.model" || strings.HasPrefix(key, "memory.")
}

// narrow takes out of a project's file what would widen anything.
func narrow(l Layer, values map[string]any) []string {
	var ignored []string
	for _, key := range flatten(values, "") {
		if !narrowing(key) {
			remove(values, strings.Split(key, "."))
			ignored = append(ignored, fmt.Sprintf("%s in %s: this folder is not trusted; see abide trust", key, l.Name))
		}
	}
	return ignored
}

func flatten(values map[string]any, prefix string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if table, ok := values[key].(map[string]any); ok {
			keys = append(keys, flatten(table, prefix+key+".")...)
		} else {
			keys = append(keys, prefix+key)
		}
	}
	return keys
}

// remove takes a key out, and the tables that are empty without it.
func remove(values map[string]any, path []string) {
	if table, ok := values[path[0]].(map[string]any); ok && len(path) > 1 {
		remove(table, path[1:])
		if len(table) > 0 {
			return
		}
	}
	delete(values, path[0])
}
