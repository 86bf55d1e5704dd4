package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// An Entry describes a key.
type Entry struct {
	Key      string   `json:"key"` // * stands for a name that the user chooses
	Type     string   `json:"type"`
	About    string   `json:"about"`
	Variable string   `json:"variable,omitempty"` // environment variable that sets the key
	Enum     []string `json:"enum,omitempty"`     // the allowed values; nil if others are allowed

	kind reflect.Kind
}

// Entries lists every key.
func Entries() []Entry { return entriesOf(reflect.TypeFor[Config](), "", "") }

func entriesOf(t reflect.Type, prefix, about string) []Entry {
	switch t.Kind() {
	case reflect.Pointer:
		return entriesOf(t.Elem(), prefix, about)
	case reflect.Slice, reflect.Map:
		if t.Elem().Kind() == reflect.Struct && t.Kind() == reflect.Map {
			return entriesOf(t.Elem(), prefix+".*", about)
		}
		if t.Elem().Kind() == reflect.Struct {
			return entriesOf(t.Elem(), prefix, about)
		}
	case reflect.Struct:
		var list []Entry
		for f := range fields(t) {
			key := strings.TrimPrefix(prefix+"."+f.Tag.Get("toml"), ".")
			entries := entriesOf(f.Type, key, f.Tag.Get("doc"))
			if words := enum(f); words != nil {
				entries[0].Enum = words // such a field is a text, which is one entry
			}
			list = append(list, entries...)
		}
		return list
	}
	e := Entry{Key: prefix, Type: fmt.Sprint(schemaOf(t)["type"]), About: about, kind: t.Kind()}
	if single(t.Kind()) && !strings.Contains(prefix, "*") && !strings.HasPrefix(prefix, "scope.") {
		e.Variable = "ABIDE_" + strings.ToUpper(strings.ReplaceAll(prefix, ".", "_"))
	}
	return []Entry{e}
}

// single reports whether a variable can hold a value of the kind.
func single(k reflect.Kind) bool { return k != reflect.Slice && k != reflect.Map }

// Environment returns a layer for each environment variable that is set, so that
// messages can name it. An empty variable counts as not set.
func Environment(lookup func(variable string) string) ([]Layer, error) {
	var layers []Layer
	for _, e := range Entries() {
		if e.Variable == "" {
			continue
		}
		value := lookup(e.Variable)
		if value == "" {
			continue
		}
		text, err := e.text(value)
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", e.Variable, err)
		}
		layers = append(layers, Layer{Name: "the variable " + e.Variable, Data: []byte(text)})
	}
	return layers, nil
}

// text returns the TOML that sets the key to a value.
func (e Entry) text(value string) (string, error) {
	var typed any
	var err error
	switch e.kind {
	case reflect.Int, reflect.Int64:
		typed, err = strconv.ParseInt(value, 10, 64)
	case reflect.Float64:
		typed, err = strconv.ParseFloat(value, 64)
	case reflect.Bool:
		typed, err = strconv.ParseBool(value)
	default:
		typed = value
		if e.Key == "pod.pwd" { // relative to the working directory of the program
			typed, err = filepath.Abs(value)
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s: %q is not %s", e.Key, value, kinds[e.kind.String()])
	}
	parts := strings.Split(e.Key, ".")
	for _, part := range slices.Backward(parts) {
		typed = map[string]any{part: typed}
	}
	text, err := toml.Marshal(typed)
	return string(text), err
}
