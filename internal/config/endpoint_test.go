package config

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatAnEndpointMayNotHave(t *testing.T) {
	for name, test := range map[string]struct {
		p   Provider
		why string // empty if it is right
	}{
		"a command":         {Provider{APIKeyCommand: "pass show key | head -n1"}, ""},
		"no command":        {Provider{APIKeyCommand: " \n"}, "is not a command"},
		"a broken command":  {Provider{APIKeyCommand: "a\x00b"}, "is not a command"},
		"two keys":          {Provider{APIKeyCommand: "a", APIKeyEnv: "B"}, "use one of them"},
		"headers":           {Provider{Headers: map[string]string{"X-A": "b c", "api-key": "${A_1}", "X-B": "Bearer ${A}, ${B}"}}, ""},
		"a header's name":   {Provider{Headers: map[string]string{"X A": "secret"}}, "it is not the name of a header"},
		"no name":           {Provider{Headers: map[string]string{"": "secret"}}, "it is not the name of a header"},
		"a new line":        {Provider{Headers: map[string]string{"X-A": "secret\r\nX-B: c"}}, "control characters"},
		"ours":              {Provider{Headers: map[string]string{"content-LENGTH": "secret"}}, "abide sets this header itself"},
		"an open variable":  {Provider{Headers: map[string]string{"X-A": "secret ${B"}}, "after ${ there is no name"},
		"no variable":       {Provider{Headers: map[string]string{"X-A": "secret ${}"}}, "after ${ there is no name"},
		"a shell's default": {Provider{Headers: map[string]string{"X-A": "${A:-secret}"}}, "after ${ there is no name"},
	} {
		for at, c := range map[string]Config{
			"model":       {Model: Model{APIKeyCommand: test.p.APIKeyCommand, APIKeyEnv: test.p.APIKeyEnv, Headers: test.p.Headers}},
			"providers.p": {Providers: map[string]Provider{"p": test.p}},
		} {
			switch mistakes := c.check(); {
			case test.why == "" && len(mistakes) > 0:
				t.Errorf("%s: %v", name, mistakes)
			case test.why != "" && (len(mistakes) != 1 || !strings.Contains(mistakes[0].why, test.why) || !strings.HasPrefix(mistakes[0].key.String(), at) || strings.Contains(mistakes[0].why, "secret")):
				t.Errorf("%s: %v, want %q", name, mistakes, test.why)
			}
		}
	}
}

func TestVariablesInHeaders(t *testing.T) {
	lookup := func(name string) string { return map[string]string{"A": "1", "B": "${A}"}[name] }
	for value, want := range map[string]string{"": "", "x": "x", "${A}": "1", "a ${A}${B} $A }": "a 1${A} $A }"} {
		if got, err := Expand(value, lookup); got != want || err != nil {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
	if got, err := Expand("${A}${C}", lookup); got != "" || err == nil || !strings.Contains(err.Error(), "the variable C is not set") {
		t.Errorf("%q, %v", got, err)
	}
	names := Provider{Headers: map[string]string{"X": "${B} ${A}"}}.Variables()
	if !slices.Equal(names, []string{"B", "A"}) {
		t.Errorf("variables %v", names)
	}
}
