package audit

import "testing"

// TestTheDocumentIsRead: a kind that the auditor expects members of is one that
// docs/EVENTS.md lists, and each mark is understood.
func TestTheDocumentIsRead(t *testing.T) {
	for name := range needs {
		if k, known := kinds()[name]; !known || k.sent {
			t.Errorf("docs/EVENTS.md has no row for %s, or says that it is not stored", name)
		}
	}
	const document = "| `a.shown`, `b.shown` | S | `x` |\n| `c.hidden` | H | |\n| `d.marked` | E | |\n| `e.sent` | – | |\n| `not.a.kind` | words |\n"
	got := readKinds(document)
	for name, want := range map[string]kind{
		"a.shown": {}, "b.shown": {}, "c.hidden": {hidden: true}, "d.marked": {ephemeral: true}, "e.sent": {sent: true},
	} {
		k, known := got[name]
		if !known || k.hidden != want.hidden || k.ephemeral != want.ephemeral || k.sent != want.sent {
			t.Errorf("%s is %+v, %v; want %+v", name, k, known, want)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d kinds are read, want 5: %v", len(got), got)
	}
}

func TestTheErrorOfABodyNamesTheMember(t *testing.T) {
	for data, want := range map[string]string{
		`{"attempt":"first"}`:           "attempt has the wrong type: string",
		`{"agent":{"sessionId":[]}}`:    "agent.sessionId has the wrong type: array",
		`[]`:                            "it has the wrong type: array",
		`{"attempt":1,"toolCallId":""}`: "",
	} {
		got := ""
		if _, err := read([]byte(data)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}
