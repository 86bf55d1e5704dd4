package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/spelling"
)

// Schema returns the JSON schema of a configuration file, for editors.
func Schema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[Config]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "abide configuration"
	return json.MarshalIndent(s, "", "  ")
}

func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		properties := make(map[string]any)
		for f := range fields(t) {
			property := schemaOf(f.Type)
			property["description"] = f.Tag.Get("doc")
			if list := enum(f); list != nil {
				property["enum"] = list
			}
			properties[f.Tag.Get("toml")] = property
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "string"}
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func enum(f reflect.StructField) []string {
	if list := f.Tag.Get("enum"); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// Keys lists every key, with * for a name that the user chooses.
func Keys() []string {
	var keys []string
	for _, e := range Entries() {
		keys = append(keys, e.Key)
	}
	return keys
}

// known reports whether a key exists with exactly this spelling. The name of a table
// counts as known, so that a table may be empty.
func known(key path) bool {
	return slices.ContainsFunc(Keys(), func(candidate string) bool {
		return matches(key, strings.Split(candidate, "."))
	})
}

func matches(parts path, pattern []string) bool {
	for i, p := range pattern {
		if i == len(parts) {
			return true
		}
		if p == "*" {
			continue
		}
		if p != parts[i] {
			return false
		}
	}
	return true
}

// checkEnums returns the values that are not among the allowed ones of their keys.
func checkEnums(v reflect.Value, prefix path) (list []mistake) {
	switch v.Kind() {
	case reflect.Struct:
		for f := range fields(v.Type()) {
			key, value := prefix.with(f.Tag.Get("toml")), v.FieldByIndex(f.Index)
			if words := enum(f); words != nil && value.String() != "" && !slices.Contains(words, value.String()) {
				list = append(list, wrong(key, "%q is unknown; use one of %s", value.String(), strings.Join(words, ", ")))
			}
			list = append(list, checkEnums(value, key)...)
		}
	case reflect.Map:
		for _, name := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			list = append(list, checkEnums(v.MapIndex(name), prefix.with(name.String()))...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			list = append(list, checkEnums(v.Index(i), prefix.item(i))...)
		}
	}
	return list
}

// suggestion returns the hint for an unknown key: the nearest known one.
func suggestion(unknown path) string {
	key := unknown.String()
	best, least := "", len(key)/2+1
	for _, known := range Keys() {
		for _, candidate := range prefixes(known) {
			if d := spelling.Distance(key, candidate); d < least {
				best, least = candidate, d
			}
		}
	}
	if best == "" {
		return "; list the keys with: abide config keys"
	}
	return "; did you mean " + best + "?"
}

// prefixes returns a key and the tables that it is in.
func prefixes(key string) []string {
	list := []string{key}
	for i := strings.LastIndexByte(key, '.'); i >= 0; i = strings.LastIndexByte(key, '.') {
		key = key[:i]
		list = append(list, key)
	}
	return list
}
