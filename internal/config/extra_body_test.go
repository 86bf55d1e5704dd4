package config

import "testing"

func TestAnExtraBodyIsAnObject(t *testing.T) {
	for text, right := range map[string]bool{"": true, "{}": true, `{"temperature":0.2}`: true, "[]": false, "null": false, "{": false, "0.2": false} {
		c := Config{Model: Model{ExtraBody: text}, Providers: map[string]Provider{"p": {ExtraBody: text}}}
		if mistakes := c.check(); (len(mistakes) == 0) != right || !right && len(mistakes) != 2 {
			t.Errorf("%q: %v", text, mistakes)
		}
	}
}

func TestAWritableFolderHasAName(t *testing.T) {
	c := Config{Commands: Commands{Writable: []string{"/w", "", " "}}}
	if list := c.check(); len(list) != 2 {
		t.Errorf("the mistakes are %v, want one for each empty name", list)
	}
}
