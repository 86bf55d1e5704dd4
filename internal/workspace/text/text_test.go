package text_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/workspace/text"
)

func read(t interface{ Fatal(...any) }, data []byte) string {
	r, err := text.Reader(iotest.OneByteReader(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func encode(s string, order binary.AppendByteOrder) []byte {
	data := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(s)) {
		data = order.AppendUint16(data, unit)
	}
	return data
}

func TestEveryEncodingGivesTheSameText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for _, data := range [][]byte{
			[]byte("\xef\xbb\xbf" + s), encode(s, binary.LittleEndian), encode(s, binary.BigEndian),
		} {
			if got := read(t, data); got != s {
				t.Fatalf("%x: %q, want %q", data, got, s)
			}
		}
	})
}

func TestBrokenUTF16IsReplaced(t *testing.T) {
	for data, want := range map[string]string{
		"\xff\xfea":                        "\ufffd",
		"\xff\xfea\x00b":                   "a\ufffd",
		"\xff\xfe\x00\xd8":                 "\ufffd",
		"\xff\xfe\x00\xd8a\x00":            "\ufffda",
		"\xff\xfe\x00\xdca\x00":            "\ufffda",
		"\xff\xfe\x00\xd8\x00\xd8":         "\ufffd\ufffd",
		"\xff\xfe\x3d\xd8\x00\xde":         "😀",
		"\xff\xfe\x00\xd8\x3d\xd8\x00\xde": "\ufffd😀",
		"\xff\xfe\x00\xd8\x00\x00":         "\ufffd\x00",
		"\xff\xfe":                         "",
		"":                                 "",
		"\xef\xbb":                         "\xef\xbb",
	} {
		if got := read(t, []byte(data)); got != want {
			t.Errorf("%x: %q, want %q", data, got, want)
		}
	}
}

func TestCutSplitsNoCharacter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		n := rapid.IntRange(0, len(s)+2).Draw(t, "most")
		got := text.Cut(s, n)
		if len(got) > n || !strings.HasPrefix(s, got) || !utf8.ValidString(got) || (len(s) > n && n-len(got) > 3) {
			t.Fatalf("%q at %d: %q", s, n, got)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"))
	f.Add([]byte("a\xffb"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := text.Valid(data); !utf8.ValidString(s) || utf8.RuneCount(data) != utf8.RuneCountInString(s) {
			t.Errorf("%x: %q", data, s)
		}
		if text.IsUTF16(data) && !utf8.ValidString(read(t, data)) {
			t.Errorf("%x", data)
		}
	})
}
