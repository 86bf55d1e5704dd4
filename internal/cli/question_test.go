package cli

import "testing"

// What a person is asked about is written as it is read, and nothing else of it is changed.
func TestArgumentsAreShownWithoutEscapesForWebPages(t *testing.T) {
	for text, want := range map[string]string{
		`{"c":"a \u0026\u0026 b \u003c c \u003E d"}`: `{"c":"a && b < c > d"}`,
		`{"c":"\\u0026 \\\u0026 \"\u0026\n"}`:        `{"c":"\\u0026 \\& \"&\n"}`,
		`{"c":"\u0027\u00e4\ud83d\ude00"}`:           `{"c":"\u0027\u00e4\ud83d\ude00"}`,
		`{}`:                                         `{}`,
		`"\`:                                         `"\`,
		``:                                           `{}`,
	} {
		if got := orNothing([]byte(text)); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}
