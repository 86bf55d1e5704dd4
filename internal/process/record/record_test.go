package record

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func draw(t *rapid.T) Record {
	r := New(rapid.StringMatching(`[a-z_]{1,10}`).Draw(t, "kind"))
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		r = r.With(rapid.StringMatching(`[a-z_]{1,8}`).Draw(t, "name"), string(rapid.SliceOf(rapid.Byte()).Draw(t, "value")))
	}
	return r
}

func TestARecordThatWasWrittenIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := draw(t)
		line := r.Line()
		if bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("%q is not one line", line)
		}
		got, err := Parse(line)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("Parse(%q) = %v, %v, want %v", line, got, err, r)
		}
	})
}

func TestADamagedRecordDoesNotParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := draw(t).Line()
		cut := rapid.IntRange(0, len(line)-2).Draw(t, "cut")
		if r, err := Parse(line[:cut]); err == nil {
			t.Fatalf("half a line, %q, is %v", line[:cut], r)
		}
		line[cut] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		if r, err := Parse(line); err == nil {
			t.Fatalf("a changed line, %q, is %v", line, r)
		}
	})
}

func TestEachSkipsOtherLines(t *testing.T) {
	text := append([]byte("panic: something\n\n"), New("one").With("a", "x\ny").Line()...)
	text = append(text, "goroutine 1 [running]:\n"...)
	text = append(text, New("two").WithInt("n", -7).WithFlag("set", true).WithFlag("unset", false).Line()...)
	text = append(text, New("three").Line()[:10]...)
	var kinds []string
	Each(text, func(r Record) {
		kinds = append(kinds, r.Kind)
		if r.Kind == "two" && (r.Int("n") != -7 || !r.Flag("set") || r.Flag("unset") || r.Int("none") != 0) {
			t.Errorf("values differ: %v", r)
		}
	})
	if !reflect.DeepEqual(kinds, []string{"one", "two"}) {
		t.Errorf("kinds = %v", kinds)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`exited status="256" text="a\x00b"`))
	f.Add([]byte(`x a="" a="é" b="\xff"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		Each(body, func(Record) {})
		r, err := parseBody(string(body))
		if err != nil {
			return
		}
		if got := r.Line(); string(got[9:len(got)-1]) != string(body) {
			t.Errorf("%q was read as %v, which is written %q", body, r, got)
		}
	})
}
