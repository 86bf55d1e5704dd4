package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// A Layer is one source of values.
type Layer struct {
	Name    string // name for messages: a file, a variable or a flag
	Path    string // path of the file; empty if the layer is not a file
	Data    []byte // TOML
	Project bool   // true for the file of a project
	Trusted bool   // true if the user trusts the directory of the project with this content
	Changed bool   // true if the user trusts the directory with another content
	Kept    bool   // true for that other content: its restrictions apply, and the rest is not reported
	Unread  bool   // true if the file may restrict more than Data: see Layer.Restrictions
}

// Loaded is the configuration with the source of each value.
type Loaded struct {
	Config  Config
	Values  map[string]any    // the values that are set, by key
	Origins map[string]string // the source of each value, by key
	Ignored []Ignored         // the keys of an untrusted project that do not apply
	Unread  bool              // true if there may be restrictions that could not be read
}

// Ignored is a key that does not apply, because its directory is not trusted.
type Ignored struct {
	Key, From string
	Changed   bool // true if the file has changed since the directory was trusted
	UserOnly  bool // true if no project may set it, trusted or not
}

// String returns the key, the reason and the way out.
func (i Ignored) String() string {
	if i.UserOnly && i.Key == workspaceDefault {
		return fmt.Sprintf("%s in %s: a project cannot choose a workspace by its address, which a token is sent to; name one of your [workspaces]", i.Key, i.From)
	}
	if i.UserOnly {
		return fmt.Sprintf("%s in %s: it is about all sessions, also of other projects; set it in your own configuration file", i.Key, i.From)
	}
	if i.Changed {
		return fmt.Sprintf("%s in %s: the file has changed since you trusted it; see abide trust", i.Key, i.From)
	}
	return fmt.Sprintf("%s in %s: this directory is not trusted; see abide trust", i.Key, i.From)
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

// Load merges layers; a later one wins over an earlier one.
func Load(layers ...Layer) (*Loaded, error) {
	l := &Loaded{Values: make(map[string]any), Origins: make(map[string]string)}
	merged := make(map[string]any)
	for _, layer := range layers {
		l.Unread = l.Unread || layer.Unread
		if len(layer.Data) == 0 {
			continue
		}
		values, err := layer.read()
		if err != nil {
			return nil, err
		}
		if layer.Project {
			for _, key := range narrow(values, layer.Trusted) {
				if !layer.Kept {
					l.Ignored = append(l.Ignored, Ignored{key.String(), layer.Name, layer.Changed, layer.Trusted || userOnly(key.String())})
				}
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

// read checks a layer by itself, so that an error can name its line, and returns its
// values with absolute paths.
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
	if err := l.checkRuleTables(values); err != nil {
		return nil, err
	}
	if mistakes := c.checkAnchored(); len(mistakes) > 0 && !l.Project {
		return nil, l.report(mistakes)
	}
	l.anchor(values)
	return values, nil
}

// checkRuleTables refuses what the decoder takes for rules about files and the other
// functions here do not: a table instead of a list of tables, and keys in other case. Its
// paths would not be made absolute, and the list of another layer would replace it.
func (l Layer) checkRuleTables(values map[string]any) error {
	scope, _ := values["scope"].(map[string]any)
	for _, kind := range slices.Sorted(maps.Keys(scope)) {
		at := path{"scope", kind}
		if _, table := scope[kind].(map[string]any); table {
			return l.report([]mistake{wrong(at, "it must be a list of tables, not a table: write [[%s]]", at)})
		}
		rules, _ := scope[kind].([]any)
		for i, rule := range rules {
			if err := l.checkRuleKeys(at, i, rule); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRuleKeys refuses keys of a rule, the entry i of a list, that are spelled otherwise.
func (l Layer) checkRuleKeys(list path, i int, rule any) error {
	table, _ := rule.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !known(list.with(key)) {
			at := list.item(i).with(key)
			return fmt.Errorf("%s: there is no key %s%s", l.at(nearest(places(l.Data), at)), at, suggestion(list.with(key)))
		}
	}
	return nil
}

// explain adds the position in the file to an error, and suggests a key for an unknown
// one.
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

// typed matches the decoder's error for a value of the wrong type.
var typed = lazyregexp.New(`^toml: cannot decode TOML (.+) into .* of type (.+)$`)

// kinds are the types of keys in plain words.
var kinds = map[string]string{"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false", "string": "a text in quotes", "[]string": "a list of texts"}

// inWords returns the decoder's error in plain words.
func inWords(wrong *toml.DecodeError) string {
	found := typed.FindStringSubmatch(wrong.Error())
	if found == nil {
		return strings.TrimPrefix(wrong.Error(), "toml: ")
	}
	want, ok := kinds[strings.TrimPrefix(found[2], "*")]
	switch {
	case ok:
	case strings.HasPrefix(found[2], "[]"):
		want = "a list of tables"
	default:
		want = "a table"
	}
	return fmt.Sprintf("%s: it must be %s, not a value of type %s", path(wrong.Key()), want, found[1])
}

// anchor makes the paths in a file absolute: they are relative to the file.
func (l Layer) anchor(values map[string]any) {
	if l.Path == "" {
		return
	}
	dir := filepath.Dir(l.Path)
	if pod, ok := values["pod"].(map[string]any); ok {
		anchorKey(pod, "pwd", dir)
	}
	anchorPlaces(values, dir)
	if notify, ok := values["notify"].(map[string]any); ok {
		anchorKey(notify, "secret_file", dir)
	}
	commands, _ := values["commands"].(map[string]any)
	if list, ok := commands["writable"].([]any); ok {
		for i := range list {
			entry := map[string]any{"path": list[i]}
			anchorKey(entry, "path", dir)
			list[i] = entry["path"]
		}
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
	if rest, home := strings.CutPrefix(path+"/", "~/"); home {
		if dir, err := os.UserHomeDir(); err == nil {
			table[key] = filepath.Join(dir, rest)
		}
		return
	}
	table[key] = filepath.Join(dir, path)
}

// merge adds values to a table, and replaces those that are there. Lists of rules are
// appended instead.
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
			value = union(before, list)
			if l.Origins[name] != "" {
				from = l.Origins[name] + ", " + origin
			}
		}
		into[key], l.Values[name], l.Origins[name] = value, value, from
	}
}

// union returns a list and what of another one it does not have.
func union(list, more []any) []any {
	list = slices.Clip(list)
	for _, v := range more {
		if !slices.ContainsFunc(list, func(has any) bool { return reflect.DeepEqual(has, v) }) {
			list = append(list, v)
		}
	}
	return list
}

// additive reports whether a list of a later source is appended to that of an earlier
// one.
func additive(key string) bool {
	return strings.HasPrefix(key, "scope.") || strings.HasPrefix(key, "permissions.")
}

// narrowing reports whether an untrusted project may set a key, because the key can
// only restrict. No key of memory or compaction is among them, because each of them can
// cause requests that cost money.
func narrowing(key string) bool {
	switch key {
	case "pod.name", "scope.deny", "permissions.ask", "permissions.deny":
		return true
	}
	return false
}

// userOnly reports whether no project may set a key: what is kept of all sessions, where the
// key of their secrets is, to whom a token is sent, how the commands of all sessions are
// confined, and what requests may cost, is not for one project to decide.
func userOnly(key string) bool {
	switch key {
	case "commands.sandbox", "commands.writable", "commands.network", "store.key_file", "workspace.patience":
		return true
	}
	return strings.HasPrefix(key, "retention.") || strings.HasPrefix(key, "workspaces.") || strings.HasPrefix(key, "budget.") || strings.HasPrefix(key, "notify.")
}

// narrow removes the keys that a project may not set, and returns them.
func narrow(values map[string]any, trusted bool) (ignored []path) {
	for _, key := range flatten(values, nil) {
		if userOnly(key.String()) || choosesAddress(values, key) || !trusted && !narrowing(key.String()) {
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

// remove removes a key, and the tables that are empty without it.
func remove(values map[string]any, key path) {
	if table, ok := values[key[0]].(map[string]any); ok && len(key) > 1 {
		remove(table, key[1:])
		if len(table) > 0 {
			return
		}
	}
	delete(values, key[0])
}
