package plainjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model/plainjson"
)

func FuzzStringsAreQuotedForEveryJSONReader(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\b\f\x00\x1f\x7f", "ünï\u2028", "\xff\xc3", "</script>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(plainjson.AppendString(nil, s), &got); err != nil {
			t.Fatalf("%q became %q: %v", s, plainjson.AppendString(nil, s), err)
		}
		if want := strings.ToValidUTF8(s, string(utf8.RuneError)); got != want {
			t.Errorf("%q was read as %q", s, got)
		}
	})
}

// value is what the shape of these tests reads.
type value struct {
	Kind string `json:"kind"`
	Size int    `json:"size"`
	Text string `json:"text"`
	Null *int   `json:"null"`
}

func shape(s *plainjson.Scanner) bool {
	kind, text := false, false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "kind":
			kind = true
			return s.Is("word")
		case "size":
			return s.Count()
		case "null":
			return s.Null()
		case "text":
			return plainjson.Once(&text) && s.Text()
		}
		return s.Skip()
	}) && kind && text
}

const plain = `{"kind":"word","size":12,"text":"hello","other":"x"}`

var values = map[string]struct {
	in   string
	read bool
}{
	"plain":                 {plain, true},
	"spaces":                {" {\n\"kind\" : \"word\" , \"text\"\t: \"a\" } ", true},
	"every plain value":     {`{"kind":"word","text":"a","a":true,"b":false,"c":null,"d":0,"e":17,"f":"g","h":[],"i":[ ]}`, true},
	"simple escapes":        {`{"kind":"word","text":"\"\\\/\b\f\n\r\t"}`, true},
	"not only ASCII":        {`{"kind":"word","text":"größer 世界 😀"}`, true},
	"empty text":            {`{"kind":"word","text":""}`, true},
	"null":                  {`{"kind":"word","null":null,"text":"a"}`, true},
	"another kind":          {`{"kind":"words","text":"a"}`, false},
	"a kind with an escape": {`{"kind":"wor\u0064","text":"a"}`, false},
	"no kind":               {`{"text":"a"}`, false},
	"no text":               {`{"kind":"word"}`, false},
	"nothing":               {``, false},
	"empty object":          {`{}`, false},
	"code point":            {`{"kind":"word","text":"\u00e9"}`, false},
	"not UTF-8":             {"{\"kind\":\"word\",\"text\":\"\xff\"}", false},
	"control character":     {"{\"kind\":\"word\",\"text\":\"\n\"}", false},
	"a string without end":  {`{"kind":"word","text":"a`, false},
	"a backslash at last":   {`{"kind":"word","text":"a\`, false},
	"text after it":         {plain + "x", false},
	"cut":                   {plain[:len(plain)-1], false},
	"text twice":            {`{"kind":"word","text":"a","text":"b"}`, false},
	"kind twice":            {`{"kind":"word","kind":"other","text":"a"}`, false},
	"other spelling":        {`{"kind":"word","text":"a","Text":"b"}`, false},
	"a key with an escape":  {`{"kind":"word","t\u0065xt":"b","text":"a"}`, false},
	"a list":                {`{"kind":"word","text":"a","x":[1]}`, false},
	"an object":             {`{"kind":"word","text":"a","x":{}}`, false},
	"a fraction":            {`{"kind":"word","text":"a","x":1.5}`, false},
	"leading zero":          {`{"kind":"word","text":"a","x":01}`, false},
	"less than nothing":     {`{"kind":"word","text":"a","x":-1}`, false},
	"too large a size":      {`{"kind":"word","size":10000000000000000000,"text":"a"}`, false},
	"not null":              {`{"kind":"word","null":1,"text":"a"}`, false},
	"a comma too many":      {`{"kind":"word","text":"a",}`, false},
	"half a literal":        {`{"kind":"word","text":"a","x":tru}`, false},
}

func TestOnlySimpleValuesAreRead(t *testing.T) {
	for name, test := range values {
		t.Run(name, func(t *testing.T) {
			reader := &plainjson.Text{Shape: shape}
			if _, ok := reader.Append(nil, []byte(test.in)); ok != test.read {
				t.Errorf("read = %v, want %v, for %s", ok, test.read, test.in)
			}
			for _, before := range values {
				checkText(t, []byte(before.in), []byte(test.in))
			}
		})
	}
}

// checkText fails unless the text of data is what encoding/json reads, or none,
// whatever value was read first.
func checkText(t *testing.T, first, data []byte) {
	const before = "before "
	reader := &plainjson.Text{Shape: shape}
	reader.Append(nil, first)
	got, ok := reader.Append([]byte(before), data)
	if !ok {
		return
	}
	var v value
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%q is accepted, encoding/json says: %v", data, err)
	}
	if want := before + v.Text; string(got) != want || v.Kind != "word" || v.Null != nil {
		t.Errorf("%q was read as %q, by encoding/json as %+v", data, got, v)
	}
}

func FuzzTextsAreReadAsByEncodingJSON(f *testing.F) {
	for _, v := range values {
		f.Add([]byte(plain), []byte(v.in))
		f.Add([]byte(v.in), []byte(strings.Replace(v.in, `"text":"`, `"text":"more `, 1)))
	}
	f.Fuzz(checkText)
}

func TestValuesThatDifferOnlyInTheirTextAreNotScannedAgain(t *testing.T) {
	walks := 0
	reader := &plainjson.Text{Shape: func(s *plainjson.Scanner) bool {
		walks++
		return shape(s)
	}}
	with := func(text string) []byte { return []byte(strings.Replace(plain, `"hello"`, `"`+text+`"`, 1)) }
	for text, want := range map[string]string{"b": "b", "": "", `\"\n`: "\"\n", "世": "世"} {
		if got, ok := reader.Append(nil, with(text)); !ok || string(got) != want {
			t.Errorf("%s was read as %q, %v", text, got, ok)
		}
	}
	if walks != 1 {
		t.Errorf("4 values that look alike were walked %d times, want once", walks)
	}
	for _, other := range []string{
		strings.Replace(plain, `"other":"x"`, `"text":"x"`, 1),
		strings.Replace(plain, `"kind":"word"`, `"kind":"mord"`, 1),
		plain + "x",
		plain[:len(plain)-5],
	} {
		if got, ok := reader.Append(nil, []byte(other)); ok {
			t.Errorf("%s was read as %q", other, got)
		}
	}
}

// A sized text is one whose size counts, too.
type sized struct {
	plainjson.Text
	kind string
	size int
}

func newSized() *sized {
	r := new(sized)
	r.Shape = func(s *plainjson.Scanner) bool {
		r.kind, r.size = "", 0
		text := false
		return s.Object(func(key []byte) bool {
			switch string(key) {
			case "kind":
				word, ok := s.Word()
				r.kind = string(word)
				return ok
			case "size":
				return s.Number(&r.size)
			case "null":
				return s.Null()
			case "text":
				return plainjson.Once(&text) && (s.Nothing() || s.Text())
			}
			return s.Skip()
		})
	}
	return r
}

// checkSized fails unless all that counts in data is what encoding/json reads,
// or nothing is read, whatever values were read before.
func checkSized(t *testing.T, first, second, data []byte) {
	r := newSized()
	r.Append(nil, first)
	r.Append(nil, second)
	got, ok := r.Append(nil, data)
	if !ok {
		return
	}
	var v value
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%q is accepted, encoding/json says: %v", data, err)
	}
	if read := (value{Kind: r.kind, Size: r.size, Text: string(got)}); read != v {
		t.Errorf("%q was read as %+v after %q and %q, by encoding/json as %+v", data, read, first, second, v)
	}
}

func TestWhatAShapeRemembersHoldsForTheNextValue(t *testing.T) {
	small := []byte(`{"kind":"word","size":7,"text":"a"}`)
	large := []byte(`{"kind":"words","size":123456789,"text":"b"}`)
	broken := []byte(`{"kind":"word","size":8,"text":"a","x":{}}`)
	all := [][]byte{small, large, broken, []byte(`{"text":""}`), []byte(`{"size":0,"text":null}`), []byte(plain)}
	for _, first := range all {
		for _, second := range all {
			for _, data := range all {
				checkSized(t, first, second, data)
			}
		}
	}
	r := newSized()
	for _, data := range [][]byte{small, broken, small, small} {
		r.Append(nil, data)
	}
	if r.size != 7 || r.kind != "word" {
		t.Errorf("the last value is remembered as %q of size %d", r.kind, r.size)
	}
}

func FuzzWhatAShapeRemembersIsWhatEncodingJSONReads(f *testing.F) {
	for _, v := range values {
		f.Add([]byte(plain), []byte(v.in), []byte(strings.Replace(plain, "hello", "bye", 1)))
		f.Add([]byte(v.in), []byte(plain), []byte(v.in))
	}
	f.Fuzz(checkSized)
}

func BenchmarkText(b *testing.B) {
	for name, fresh := range map[string]bool{"walk": true, "same again": false} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			data, dst := []byte(plain), []byte(nil)
			reader := plainjson.Text{Shape: shape}
			for b.Loop() {
				if fresh {
					reader = plainjson.Text{Shape: shape}
				}
				dst, _ = reader.Append(dst[:0], data)
			}
		})
	}
}
