package cli

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fieldsOf returns the names that a struct has in JSON, and those that are always there.
func fieldsOf(t reflect.Type) (all, required []string) {
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, name)
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	slices.Sort(all)
	slices.Sort(required)
	return all, required
}

// TestTheSchemaOfTheResult: docs/result.schema.json describes the names that the JSON output
// has, all of them and no others, and the subtypes.
func TestTheSchemaOfTheResult(t *testing.T) {
	type node struct {
		Properties map[string]*node
		Required   []string
		Items      *node
		Enum       []string
	}
	text, err := os.ReadFile("../../docs/result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root node
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		kind reflect.Type
		at   *node
	}{
		"the result": {reflect.TypeFor[result](), &root},
		"usage":      {reflect.TypeFor[usage](), root.Properties["usage"]},
		"agents":     {reflect.TypeFor[agentCost](), root.Properties["agents"]},
		"error":      {reflect.TypeFor[problem](), root.Properties["error"]},
		"a question": {reflect.TypeFor[questionJSON](), root.Properties["questions"].Items},
	} {
		all, required := fieldsOf(c.kind)
		if got := slices.Sorted(maps.Keys(c.at.Properties)); !slices.Equal(got, all) {
			t.Errorf("%s: the schema has %v, the output %v", what, got, all)
		}
		if got := slices.Sorted(slices.Values(c.at.Required)); !slices.Equal(got, required) {
			t.Errorf("%s: the schema requires %v, the output has always %v", what, got, required)
		}
	}
	subtypes := []string{subtypeSuccess, subtypeError, subtypeMaxTurns, subtypeNeedsInput, subtypeInterrupted, subtypeDetached}
	if !slices.Equal(root.Properties["subtype"].Enum, subtypes) {
		t.Errorf("the schema has the subtypes %v, the output %v", root.Properties["subtype"].Enum, subtypes)
	}
}
