package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/schema"
)

const person = `{"type":"object","properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true}},"required":["name"],"additionalProperties":false}`

func TestSchemasThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, why string }{
		"empty":               {"", "it is not valid JSON: line 1"},
		"cut off":             {"{\n\"type\":\n", "it is not valid JSON: line 3"},
		"two values":          {`{"type":"object"}{}`, "it is not valid JSON"},
		"no text":             {"{\"type\":\"object\",\"title\":\"\xff\"}", "it is not valid UTF-8"},
		"a list":              {`[]`, `it is not the schema of an object: it needs "type": "object"`},
		"null":                {`null`, "it is not the schema of an object"},
		"true":                {`true`, "it is not the schema of an object"},
		"of a list":           {`{"type":"array"}`, "it is not the schema of an object"},
		"of two types":        {`{"type":["object","null"]}`, "it is not the schema of an object"},
		"no type":             {`{"properties":{}}`, "it is not the schema of an object"},
		"too large":           {`{"type":"object","title":"` + strings.Repeat("x", schema.MaxBytes) + `"}`, "it has more than 64 KiB"},
		"another draft":       {`{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`, "use draft 2020-12 or draft 7"},
		"no draft":            {`{"type":"object","$schema":7}`, "use draft 2020-12 or draft 7"},
		"deep":                {`{"type":"object","not":` + strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 101), "it is nested more than 64 levels deep"},
		"very deep":           {`{"type":"object","not":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, "exceeded max depth"},
		"a web page":          {`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, `its reference "https://example.com/s.json" leads out of the schema: nothing is fetched`},
		"a file":              {`{"type":"object","$ref":"file:///etc/passwd"}`, "leads out of the schema"},
		"a file beside it":    {`{"type":"object","items":[{"$ref":"other.json#/a"}]}`, "leads out of the schema"},
		"an anchor":           {`{"type":"object","$defs":{"a":{"$anchor":"here"}}}`, "it has $anchor, which is not supported"},
		"an anchor alone":     {`{"type":"object","$ref":"#here"}`, "leads out of the schema"},
		"a name":              {`{"type":"object","$id":"https://example.com/"}`, "it has $id, which is not supported"},
		"a dynamic reference": {`{"type":"object","$dynamicRef":"#a"}`, "it has $dynamicRef"},
		"nowhere":             {`{"type":"object","$ref":"#/$defs/a"}`, `its reference "#/$defs/a" leads nowhere`},
		"a wrong pattern":     {`{"type":"object","properties":{"a":{"pattern":"("}}}`, "missing closing )"},
		"a foreign pattern":   {`{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`, "invalid or unsupported Perl syntax"},
		"a large pattern":     {`{"type":"object","properties":{"a":{"pattern":"((a{1000}){1000}){1000}"}}}`, "invalid repeat count"},
		"many patterns":       {`{"type":"object","patternProperties":{` + manyPatterns(100) + `}}`, "its patterns are too long with all their repetitions"},
		"a wrong type":        {`{"type":"object","properties":{"n":{"type":"integr"}}}`, `there is no type "integr": use array, boolean, integer`},
		"one wrong type":      {`{"type":"object","properties":{"n":{"anyOf":[{"type":["null","int"]}]}}}`, `there is no type "int"`},
		"a wrong type within": {`{"type":"object","$defs":{"n":{"items":{"type":"String"}}}}`, `there is no type "String"`},
		"a wrong keyword":     {`{"type":"object","properties":7}`, "cannot unmarshal"},
	} {
		if s, err := schema.Parse([]byte(test.text)); s != nil || err == nil || !strings.Contains(err.Error(), test.why) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1500v, want %q", name, err, test.why)
		}
	}
}

func TestNamesAreNoTypes(t *testing.T) {
	for _, text := range []string{
		`{"type":"object","properties":{"type":{"type":"string"},"items":{"type":["string","null"]}}}`,
		`{"type":"object","properties":{"a":{"const":{"type":"x"},"enum":[{"type":"x"}],"default":{"type":"x"}}}}`,
		`{"type":"object","x-form":{"type":"slider"},"properties":{"a":{"x-form":{"type":"slider"}}}}`,
		`{"type":"object","additionalProperties":false,"items":true}`,
	} {
		mustParse(t, text)
	}
}

// manyPatterns returns members of an object whose names are patterns.
func manyPatterns(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"[a-z]{%d}":{}`, 900+i))
	}
	return strings.Join(list, ",")
}

func mustParse(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnswersAreChecked(t *testing.T) {
	tree := `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"left":{"$ref":"#"},"right":{"$ref":"#/$defs/node"},"n":{"type":"number"}},"$defs":{"node":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"additionalProperties":false}`
	seven := `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"array","items":[{"type":"string"}],"additionalItems":false}},"definitions":{"x/y":{"$comment":"z"}}}`
	for name, test := range map[string]struct{ schema, answer, why string }{
		"right":           {person, ` {"name":"Ann","age":3,"tags":["a"]}` + "\n", ""},
		"escapes":         {person, `{"name":"\u00c4"}`, ""},
		"empty":           {person, "  ", "it is empty"},
		"words":           {person, "Here it is:", "it is not JSON alone: line 1: invalid character 'H'"},
		"a fence":         {person, "```json\n{\"name\":\"Ann\"}\n```", "it is not JSON alone"},
		"words after it":  {person, "{\"name\":\"Ann\"}\nDone.", "it is not JSON alone: line 2"},
		"cut off":         {person, `{"name":"Ann"`, "it is not JSON alone"},
		"another type":    {person, `["Ann"]`, `want "object"`},
		"a wrong member":  {person, `{"name":7}`, `at /properties/name of the schema: type: 7 has type "integer", want "string"`},
		"none":            {person, `{}`, `required`},
		"one too many":    {person, `{"name":"Ann","x":1}`, `unexpected additional properties ["x"]`},
		"a wrong element": {person, `{"name":"Ann","tags":["a","c"]}`, `at /properties/tags/items of the schema: enum`},
		"twice":           {person, `{"name":"Ann","tags":["a","a"]}`, `uniqueItems`},
		"half a number":   {person, `{"name":"Ann","age":1.5}`, `want "integer"`},
		"a huge number":   {person, `{"name":"Ann","age":1e999999999}`, "it is not JSON alone"},
		"a large number":  {person, `{"name":"Ann","age":100000000000000000000000}`, ""},
		"a tree":          {tree, `{"left":{"left":{"n":1}},"right":{"right":null}}`, ""},
		"a wrong leaf":    {tree, `{"left":{"left":{"n":"1"}}}`, `want "number"`},
		"names":           {`{"type":"object","properties":{"const":{"$ref":"#/$defs/$id"},"$ref":{"type":"string"}},"$defs":{"$id":{"type":"string"}}}`, `{"const":"a","$ref":"b"}`, ""},
		"draft 7":         {seven, `{"a":["x"]}`, ""},
		"draft 7, wrong":  {seven, `{"a":["x","y"]}`, "additionalItems"},
	} {
		value, err := mustParse(t, test.schema).Check(test.answer)
		switch {
		case test.why == "" && (err != nil || string(value) != strings.TrimSpace(test.answer)):
			t.Errorf("%s: %s, %v", name, value, err)
		case test.why != "" && (err == nil || value != nil || !strings.Contains(err.Error(), test.why)):
			t.Errorf("%s: %s, %v; want %q", name, value, err, test.why)
		}
	}
}

// A reason repeats little of an answer, however long that is.
func TestAReasonIsShort(t *testing.T) {
	_, err := mustParse(t, person).Check(`{"name":["` + strings.Repeat("ä", 10000) + `"]}`)
	if err == nil || len(err.Error()) > 600 || !strings.HasSuffix(err.Error(), "ä…") {
		t.Errorf("%v", err)
	}
}

// doubling returns a schema whose check takes 2 to the power of n steps for one value.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{}}}`, n)
	return b.String()
}

// Schemas that would take for ever, or all of the stack, are errors.
func TestACheckIsBounded(t *testing.T) {
	nested := strings.Repeat(`{"a":`, 40) + `{}` + strings.Repeat(`}`, 40)
	const recursive = `{"type":"object","$defs":{"v":{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/v"}}},{"properties":{"a":{"$ref":"#/$defs/v"}},"minProperties":2}]}},"not":{"allOf":[{"$ref":"#/$defs/v"},{"required":["none"]}]}}`
	long := `{"a":[` + strings.TrimSuffix(strings.Repeat(`1,`, 20000), ",") + `]}`
	wide := `{"type":"object","properties":{"a":{"type":"array","items":{"enum":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 10000), ",") + `]}}}}`
	patterns := `{"type":"object","patternProperties":{"^(a+)+$":{"type":"string"},"x*x*x*x*y":{}}}`
	for name, test := range map[string]struct {
		schema, answer string
		fails          bool
	}{
		"it doubles a little":      {doubling(5), `{}`, false},
		"it doubles":               {doubling(100), `{}`, true},
		"it doubles with depth":    {recursive, nested, true},
		"it is itself":             {`{"type":"object","$ref":"#"}`, `{}`, true},
		"by the name of a keyword": {`{"type":"object","properties":{"enum":{"$ref":"#/properties/enum"}}}`, `{"enum":1}`, true},
		"in a list":                {`{"type":"object","allOf":[{"$ref":"#/allOf/0"}]}`, `{}`, true},
		"it is itself, elsewhere":  {`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"not":{"$ref":"#/$defs/b"}}}}`, `{"a":1}`, true},
		"a deep answer":            {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, nested, false},
		"a very deep answer":       {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, strings.Repeat(`{"a":`, 9000) + `{}` + strings.Repeat(`}`, 9000), true},
		"a long list":              {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"uniqueItems":false}}}`, long, false},
		"a long list of choices":   {wide, long, true},
		"a long match":             {`{"type":"object","properties":{"a":{"pattern":"(x?y?z?){300}q"}}}`, `{"a":"` + strings.Repeat("xyz", 1_000_000) + `"}`, true},
		"a long name":              {`{"type":"object","patternProperties":{"(x?y?z?){300}q":{}}}`, `{"` + strings.Repeat("xyz", 1_000_000) + `":1}`, true},
		"evil patterns":            {patterns, `{"` + strings.Repeat("a", 50000) + `!":"` + strings.Repeat("a", 50000) + `"}`, false},
	} {
		_, err := mustParse(t, test.schema).Check(test.answer)
		if (err != nil) != test.fails || test.fails && !strings.Contains(err.Error(), "check") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(person), `{"name":"Ann"}`)
	f.Add([]byte(doubling(12)), `{"a":[1,{"b":null}]}`)
	f.Add([]byte(`{"type":"object","dependencies":{"a":["b"],"c":{"not":{}}},"if":{},"then":false}`), `{"a":1,"c":2}`)
	f.Fuzz(func(t *testing.T, text []byte, answer string) {
		s, err := schema.Parse(text)
		if err != nil {
			return
		}
		_, _ = s.Check(answer)
	})
}
