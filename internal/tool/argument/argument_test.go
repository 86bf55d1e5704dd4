package argument_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

func TestArgumentsAreRead(t *testing.T) {
	s := argument.Read(json.RawMessage(`{"a":"x","b":true,"c":3,"d":["p","q"],"e":"one","n":null,"other":{}}`))
	if v, ok := s.Text("n", "a"); v != "x" || !ok {
		t.Errorf("text is %q, %v", v, ok)
	}
	if v := s.Needed("a"); v != "x" {
		t.Errorf("needed is %q", v)
	}
	if !s.Flag("b") || s.Flag("z") {
		t.Error("flags are wrong")
	}
	if v, ok := s.Number("c"); v != 3 || !ok {
		t.Errorf("number is %d, %v", v, ok)
	}
	if v := s.Texts("d"); !slices.Equal(v, []string{"p", "q"}) {
		t.Errorf("texts are %q", v)
	}
	if v := s.Texts("e"); !slices.Equal(v, []string{"one"}) {
		t.Errorf("one text is %q", v)
	}
	if v := s.Choice("e", "none", "one"); v != "one" {
		t.Errorf("choice is %q", v)
	}
	if v := s.Choice("z", "none", "one"); v != "none" {
		t.Errorf("choice of nothing is %q", v)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	if err := argument.Read(nil).Err(); err != nil {
		t.Error(err)
	}
}

func TestTimesAreReadInManyForms(t *testing.T) {
	for raw, want := range map[string]time.Duration{
		`5`: 5 * time.Second, `0.5`: 500 * time.Millisecond, `"5"`: 5 * time.Second, `"10s"`: 10 * time.Second,
		`"1m30s"`: 90 * time.Second, `0`: 0, `-1`: -time.Second, `"-2s"`: -2 * time.Second,
	} {
		s := argument.Read(json.RawMessage(`{"t":` + raw + `}`))
		if got, name, ok := s.Seconds("x", "t"); got != want || name != "t" || !ok || s.Err() != nil {
			t.Errorf("%s is %v, %q, %v, %v", raw, got, name, ok, s.Err())
		}
	}
	for _, huge := range []string{`1e300`, `9223372036854775807`, `"1e300"`, `"inf"`} {
		s := argument.Read(json.RawMessage(`{"t":` + huge + `}`))
		if got, _, ok := s.Seconds("t"); !ok || got < 100*365*24*time.Hour {
			t.Errorf("%s is %v, %v, %v", huge, got, ok, s.Err())
		}
	}
}

func TestInvalidArgumentsAreReportedTogether(t *testing.T) {
	const several = "Multiple validation errors:\n- "
	for raw, want := range map[string]string{
		`[]`:                        several + `Expected JSON object but got array` + "\n- " + `"a": Required`,
		`{"a":1}`:                   `"a": Expected string, received number`,
		`{"a":"x","b":"yes"}`:       `"b": Expected boolean, received string`,
		`{"a":"x","c":-1}`:          `"c": Number must be greater than or equal to 0`,
		`{"a":"x","c":1.5}`:         `"c": Expected integer, received float`,
		`{"a":"x","c":1e30}`:        `"c": Expected integer, received float`,
		`{"a":"x","t":"soon"}`:      `"t": Expected a number of seconds, received 'soon'`,
		`{"a":"x","t":[]}`:          `"t": Expected string, received array`,
		`{"a":"x","t":1e999}`:       `"t": Invalid number`,
		`{"a":"x","t":"NaN"}`:       `"t": Expected a number of seconds, received 'NaN'`,
		`{"a":"x","m":"z"}`:         `"m": Invalid enum value. Expected 'p' | 'q', received 'z'`,
		`{"a":"x","l":[1]}`:         `"l": Expected string or array of strings, received array`,
		`{}`:                        `"a": Required`,
		`{"a":null}`:                `"a": Required`,
		`{"a":"x","c":"1","b":"1"}`: several + `"b": Expected boolean, received string` + "\n- " + `"c": Expected number, received string`,
	} {
		s := argument.Read(json.RawMessage(raw))
		s.Needed("a", "alias")
		s.Flag("b")
		s.Number("c")
		s.Seconds("t")
		s.Choice("m", "p", "q")
		s.Texts("l")
		var refused *tool.Refusal
		if !errors.As(s.Err(), &refused) || !refused.Failed {
			t.Errorf("%s: %v", raw, s.Err())
			continue
		}
		if refused.Message != want || refused.Text != "Invalid input: "+want {
			t.Errorf("%s: %q, want %q", raw, refused.Text, want)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"a":"x","t":"1m"}`)
	f.Add(`[`)
	f.Fuzz(func(_ *testing.T, raw string) {
		s := argument.Read(json.RawMessage(raw))
		s.Needed("a")
		s.Flag("a", "b")
		s.Number("a")
		s.Seconds("a")
		s.Choice("a", "x")
		s.Texts("a")
		_ = s.Err()
	})
}
