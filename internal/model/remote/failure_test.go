package remote

import (
	"strings"
	"testing"
)

func TestOnlyTextIsQuotedFromARefusal(t *testing.T) {
	for body, want := range map[string]string{
		"out of order":                          "out of order",
		`{"error":{"message":"no such model"}}`: "no such model",
		"<html><body>502</body></html>":         "",
		"\x1f\x8b\x08\x00\x00":                  "",
		"\x1b[31mred":                           "",
		strings.Repeat("ä", 256) + "x":          strings.Repeat("ä", 256) + "x",
		"x" + strings.Repeat("ä", 300):          "x" + strings.Repeat("ä", 300),
		"caf\xe9 au lait":                       "",
		"":                                      "",
	} {
		if got := readFailure(strings.NewReader(body)).Message; got != want {
			t.Errorf("%q: %q", body, got)
		}
	}
}
