package attach_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/attach"
)

const (
	png  = "\x89PNG\r\n\x1a\nrest"
	gif  = "GIF89arest"
	webp = "RIFF....WEBPrest"
	pdf  = "%PDF-1.7\nrest\n%%EOF\n"
)

func TestTheContentDecidesWhatAFileIs(t *testing.T) {
	for what, test := range map[string]struct{ name, content, kind, fails string }{
		"png":              {"a.png", png, "image/png", ""},
		"jpeg":             {"a", "\xff\xd8\xff\xe0rest", "image/jpeg", ""},
		"gif":              {"A.GIF", gif, "image/gif", ""},
		"older gif":        {"a.gif", "GIF87a", "image/gif", ""},
		"webp":             {"a.webp", webp, "image/webp", ""},
		"another image":    {"a.jpg", png, "image/png", ""},
		"pdf":              {"a.PDF", pdf, "application/pdf", ""},
		"pdf with a tail":  {"a.pdf", pdf + strings.Repeat("\n", 1000), "application/pdf", ""},
		"text":             {"/x/main.go", "package main\n", "text/plain", ""},
		"named oddly":      {"notes.v1.0", "Ä", "text/plain", ""},
		"svg":              {"a.svg", "<svg/>", "text/plain", ""},
		"a pdf as text":    {"a.txt", pdf, "application/pdf", ""},
		"no pdf":           {"a.pdf", "hello", "", "named like another kind of file than it is (text/plain)"},
		"half a pdf":       {"a.pdf", "%PDF-1.7\nrest", "", "named like another kind"},
		"half, binary":     {"a.pdf", "%PDF-1.7\n\xff\xfe", "", "it is neither an image"},
		"the end too far":  {"a.pdf", pdf + strings.Repeat("\xff", 3000), "", "it is neither an image"},
		"no png":           {"a.png", "hello", "", "named like another kind of file than it is (text/plain)"},
		"a png as pdf":     {"a.pdf", png, "", "named like another kind of file than it is (image/png)"},
		"invalid UTF-8":    {"a.txt", "a\xffb", "", "nor a text in UTF-8"},
		"zeros":            {"a.txt", "a\x00b", "", "nor a text in UTF-8"},
		"UTF-16":           {"a.txt", "\xff\xfea\x00", "", "nor a text in UTF-8"},
		"a short RIFF":     {"a.webp", "RIFF....WEB\xff", "", "it is neither"},
		"empty":            {"a.txt", "", "", "it is empty"},
		"a large text":     {"a.txt", strings.Repeat("a", attach.MaxText+1), "", "it has more than 1 MiB, the most that is sent of a file of the type text/plain"},
		"a text that fits": {"a.txt", strings.Repeat("a", attach.MaxText), "text/plain", ""},
		"a large image":    {"a.png", png + strings.Repeat("a", attach.MaxImage), "", "it has more than 10 MiB"},
		"a large pdf":      {"a.pdf", strings.Replace(pdf, "rest", strings.Repeat("a", attach.MaxPDF), 1), "", "it has more than 16 MiB"},
	} {
		b, err := attach.New(test.name, []byte(test.content))
		if b.MIMEType != test.kind || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %q, %v; want %q, %q", what, b.MIMEType, err, test.kind, test.fails)
		}
		if err == nil && (string(b.Data) != test.content || b.Name != test.name[strings.LastIndex(test.name, "/")+1:]) {
			t.Errorf("%s: %q is attached", what, b.Name)
		}
	}
}

func TestAMessageHasLimits(t *testing.T) {
	large := attach.Blob{Type: "blob", MIMEType: "image/png", Data: make([]byte, attach.MaxAll/3)}
	raw, err := attach.Encode([]attach.Blob{large, large, large})
	if err != nil || len(raw) != 3 {
		t.Fatal(err)
	}
	var again attach.Blob
	if err := json.Unmarshal(raw[2], &again); err != nil || len(again.Data) != len(large.Data) || again.Type != "blob" {
		t.Errorf("%v, %d bytes", err, len(again.Data))
	}
	if _, err := attach.Encode([]attach.Blob{large, large, large, {Data: []byte("abc")}}); err == nil || !strings.Contains(err.Error(), "more than 32 MiB together") {
		t.Error(err)
	}
	many := make([]attach.Blob, attach.MaxFiles)
	if _, err := attach.Encode(many); err != nil {
		t.Error(err)
	}
	if _, err := attach.Encode(append(many, attach.Blob{})); err == nil || !strings.Contains(err.Error(), "more than 20 files") {
		t.Error(err)
	}
}
