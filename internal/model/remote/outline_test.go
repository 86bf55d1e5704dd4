package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func draft(on func(model.Delta)) *Draft {
	return NewDraft(&Query{Request: &model.Request{Model: "m"}, Host: "h"}, on)
}

func message(d *Draft) *model.Message {
	r := d.Reply()
	return &model.Message{Role: model.Assistant, Text: r.Text, Calls: r.Calls}
}

// retold is a message in its parts: what was said, called and kept.
func retold(m *model.Message, parts []Part) []string {
	var all []string
	text, calls := m.Text, m.Calls
	for _, p := range parts {
		said, rest := p.Cut(text)
		text = rest
		switch {
		case p.Call:
			all = append(all, "call "+calls[0].Name+p.ID)
			calls = calls[1:]
		case p.Raw != nil:
			all = append(all, "raw "+string(p.Raw))
		default:
			all = append(all, "text "+said+p.ID+p.Phase)
		}
	}
	return all
}

func TestAReplyIsRetoldInTheOrderInWhichItCame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var told strings.Builder
		d := draft(func(delta model.Delta) { told.WriteString(delta.Text) })
		want := []string{`raw {"a":  "<\u00e9>"}`}
		d.Add(Part{Raw: json.RawMessage(`{"a":  "<\u00e9>"}`)})
		for range rapid.IntRange(0, 8).Draw(t, "parts") {
			word := rapid.StringMatching(`\n?[a-zé][a-zé\n]{0,3}`).Draw(t, "word") // three line feeds at the beginning are the joint of paragraphs
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				d.BeginCall("", word)
				want = append(want, "call "+word)
			case 1:
				d.Add(Part{Raw: json.RawMessage(`{ "b": [1]}`)})
				want = append(want, `raw { "b": [1]}`)
			case 2:
				d.Add(Part{}) // it was announced, and never came
				d.BeginText("x", "")
			case 3:
				c := d.BeginCall("", word)
				c.Part.ID = "fc"
				want = append(want, "call "+word+"fc")
			default:
				d.BeginText("msg", "phase")
				d.AddText(word)
				d.AddTextBytes([]byte("more"))
				want = append(want, "text "+word+"moremsgphase")
			}
		}
		m := message(d)
		if got := retold(m, Parts(d.Outline(), "h", "m", m)); !cmp.Equal(want, got) {
			t.Fatalf("retold as %q, want %q", got, want)
		}
		if told.String() != m.Text || strings.HasPrefix(m.Text, "\n\n\n") || strings.HasSuffix(m.Text, "more\n\n") {
			t.Fatalf("the text is %q, told was %q", m.Text, told.String())
		}
	})
}

func TestAnOutlineIsOnlyForItsOwnMessageHostAndModel(t *testing.T) {
	d := draft(nil)
	d.Add(Part{Raw: json.RawMessage("{}")})
	d.AddText("hello")
	d.BeginCall("a", "b")
	kept, m := d.Outline(), message(d)
	if parts := Parts(kept, "h", "m", m); len(parts) != 3 {
		t.Errorf("the parts are %+v", parts)
	}
	for name, parts := range map[string][]Part{
		"another host":  Parts(kept, "h2", "m", m),
		"another model": Parts(kept, "h", "m2", m),
		"another text":  Parts(kept, "h", "m", &model.Message{Text: "hello!", Calls: m.Calls}),
		"other calls":   Parts(kept, "h", "m", &model.Message{Text: "hello"}),
		"nothing":       Parts("", "h", "m", m),
		"nonsense":      Parts("sealed", "h", "m", m),
		"half of it":    Parts(kept[:len(kept)-4], "h", "m", m),
	} {
		if parts != nil {
			t.Errorf("%s: the parts are %+v", name, parts)
		}
	}
}

func TestNothingIsKeptOfAReplyThatIsOnlyTextAndCalls(t *testing.T) {
	d := draft(nil)
	d.BeginText("msg", "")
	d.AddText("hello")
	d.BeginCall("a", "b")
	d.Add(Part{})
	if kept := d.Outline(); kept != "" {
		t.Errorf("kept was %s", kept)
	}
}

func FuzzAnyOutlineFitsOrIsDropped(f *testing.F) {
	f.Add(`{"host":"h","model":"m","parts":[{"raw":{}},{"text":2},{"call":true},{"text":3,"gap":1}]}`, "abcdef")
	f.Add(`{"host":"h","model":"m","parts":[{"text":-2},{"text":8}]}`, "abcdef")
	f.Add(`{"host":"h","model":"m","parts":[{"gap":9223372036854775807},{"text":9223372036854775807}]}`, "a")
	f.Fuzz(func(t *testing.T, kept, text string) {
		m := &model.Message{Text: text, Calls: make([]model.Call, 1)}
		retold(m, Parts(kept, "h", "m", m)) // it must not run out of text or calls
	})
}

func TestIDsAndNamesFitEveryProvider(t *testing.T) {
	for id, want := range map[string]string{
		"call_1":                 "call_1",
		"toolu_01-x":             "toolu_01-x",
		strings.Repeat("a", 64):  strings.Repeat("a", 64),
		"":                       "call_e3b0c44298fc1c149afbf4c8996fb924",
		"functions.bash:0":       FitID("functions.bash:0"),
		strings.Repeat("é", 100): FitID(strings.Repeat("é", 100)),
	} {
		got := FitID(id)
		if got != want || !fits(got, longestName) {
			t.Errorf("%q became %q, want %q", id, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab._- é/")), 0, 90, -1)
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		if !fits(FitName(a), longestName) || (a == b) != (FitName(a) == FitName(b)) || (a == b) != (FitID(a) == FitID(b)) {
			t.Fatalf("%q became %q, %q became %q", a, FitName(a), b, FitName(b))
		}
		if short := FitIDWithin(40, a); len(short) > 40 {
			t.Fatalf("%q became %q", a, short)
		}
	})
}

func TestOnlyPicturesThatCanBeSeenAreShown(t *testing.T) {
	got := make(map[string]string)
	for _, mediaType := range []string{"image/png", "IMAGE/JPEG", "image/jpg", "image/bmp", "text/html", ""} {
		if fit, ok := FitImage(model.Image{MediaType: mediaType}); ok {
			got[mediaType] = fit
		}
	}
	want := map[string]string{"image/png": "image/png", "IMAGE/JPEG": "image/jpeg", "image/jpg": "image/jpeg"}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestACallThatWasCutOffIsNotOneWithoutArguments(t *testing.T) {
	for finish, want := range map[string][]string{"tool_calls": {"{}", "{}"}, "length": {"{}", "{"}} {
		d := draft(nil)
		d.BeginCall("a", "x")
		d.BeginCall("b", "x")
		d.Finish = finish
		for i, c := range d.Reply().Calls {
			if string(c.Arguments) != want[i] {
				t.Errorf("%s: the arguments of call %d are %s, want %s", finish, i, c.Arguments, want[i])
			}
		}
	}
}
