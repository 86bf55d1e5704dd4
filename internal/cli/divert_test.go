package cli

import "testing"

func TestALineOfTheLogInAChat(t *testing.T) {
	for line, want := range map[string]string{
		`time=2026-11-19T21:12:57.238Z level=ERROR msg="a session is damaged" session=s position=4 reason="the chain breaks"`: `a session is damaged (session=s position=4 reason="the chain breaks")`,
		`time=2026-11-19T21:12:57.238Z level=WARN msg="a \"quoted\" word"`:                                                    `a "quoted" word`,
		`time=2026-11-19T21:12:57.238Z level=INFO msg=ready port=7`:                                                           `ready (port=7)`,
		`time=x level=INFO msg="never closed`:                                                                                 `"never (closed)`,
		`warning: the msg= of a person`:                                                                                       `warning: the msg= of a person`,
		``:                                                                                                                    ``,
	} {
		if got := withoutTime(line); got != want {
			t.Errorf("%q is shown as %q, want %q", line, got, want)
		}
	}
}
