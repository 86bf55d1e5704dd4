package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
	Values  map[string]any    // what is set, by key
	Origins map[string]string // where each key that is set came from
	Ignored []Ignored         // keys of a project that is not trusted
}

// Ignored is a key that does not count, because its folder is not trusted.
type Ignored struct{ Key, From string }

// String says so, with the way out.
func (i Ignored) String() string {
	return fmt.Sprintf("%s in %s: this folder is not trusted; see abide trust", i.Key, i.From)
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
	l := &Loaded{Values: make(map[string]any), Origins: make(map[string]string)}
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
			for _, key := range narrow(values) {
				l.Ignored = append(l.Ignored, Ignored{key.String(), layer.Name})
			}
		}
		l.merge(merged, values, nil, layer.Name)
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
	if mistakes := c.check(); len(mistakes) > 0 {
		return nil, l.report(mistakes)
	}
	values := make(map[string]any)
	if err := toml.Unmarshal(l.Data, &values); err != nil {
		return nil, l.explain(err)
	}
	for _, key := range flatten(values, nil) { // the decoder does not mind case
		if !known(key) {
			return nil, fmt.Errorf("%s: there is no key %s%s", l.at(nearest(places(l.Data), key)), key, suggestion(key))
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
		key := path(first.Key())
		return fmt.Errorf("%s: there is no key %s%s", l.at(first.Position()), key, suggestion(key))
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: %s", l.at(wrong.Position()), inWords(wrong))
	}
	return fmt.Errorf("%s: %w", l.at(0, 0), err)
}

// typed is how the decoder says that a value is of another type than the key.
var typed = regexp.MustCompile(`^toml: cannot decode TOML (.+) into .* of type (.+)$`)

// kinds are the types of keys in the words of people.
var kinds = map[string]string{"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false", "string": "a text in quotes"}

// inWords says what is wrong with a value.
func inWords(wrong *toml.DecodeError) string {
	found := typed.FindStringSubmatch(wrong.Error())
	if found == nil {
		return strings.TrimPrefix(wrong.Error(), "toml: ")
	}
	want, ok := kinds[strings.TrimPrefix(found[2], "*")]
	if !ok {
		want = "something else"
	}
	return fmt.Sprintf("%s: it has to be %s, not a value of type %s", path(wrong.Key()), want, found[1])
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
func (l *Loaded) merge(into, values map[string]any, prefix path, origin string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, at := values[key], prefix.with(key)
		if table, ok := value.(map[string]any); ok {
			under, _ := into[key].(map[string]any)
			if under == nil {
				under = make(map[string]any)
				into[key] = under
			}
			l.merge(under, table, at, origin)
			continue
		}
		name, from := at.String(), origin
		if list, ok := value.([]any); ok && additive(name) {
			before, _ := into[key].([]any)
			value = append(slices.Clip(before), list...)
			if l.Origins[name] != "" {
				from = l.Origins[name] + ", " + origin
			}
		}
		into[key], l.Values[name], l.Origins[name] = value, value, from
	}
}

// additive reports whether a list of a later source is added to that of an
// earlier one.
func additive(key string) bool {
	return strings.HasPrefix(key, "scope.") || strings.HasPrefix(key, "permissions.")
}

// narrowing are the keys that a project may set before it is trusted: they only
// restrict. Neither memory nor compaction is among them, because each of their keys
// can make requests that somebody pays for.
func narrowing(key string) bool {
	switch key {
	case "pod.name", "scope.deny", "permissions.ask", "permissions.deny":
		return true
	}
	return false
}

// narrow takes out of a project's file what would widen anything.
func narrow(values map[string]any) (ignored []path) {
	for _, key := range flatten(values, nil) {
		if !narrowing(key.String()) {
			remove(values, key)
			ignored = append(ignored, key)
		}
	}
	return ignored
}

func flatten(values map[string]any, prefix path) []path {
	var keys []path
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if table, ok := values[key].(map[string]any); ok {
			keys = append(keys, flatten(table, prefix.with(key))...)
		} else {
			keys = append(keys, prefix.with(key))
		}
	}
	return keys
}

// remove takes a key out, and the tables that are empty without it.
func remove(values map[string]any, key path) {
	if table, ok := values[key[0]].(map[string]any); ok && len(key) > 1 {
		remove(table, key[1:])
		if len(table) > 0 {
			return
		}
	}
	delete(values, key[0])
}
