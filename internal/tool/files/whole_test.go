package files_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/tool/files"
)

func TestAQuestionShowsTheWholeChange(t *testing.T) {
	b := newFixture(t)
	for name, content := range map[string]string{
		"a long line":   "#!/bin/sh\n#" + strings.Repeat("A", 66_000) + "\nrm -rf ~\n",
		"6,000 lines":   strings.Repeat("0123456789\n", 6000) + "rm -rf ~\n",
		"400,000 bytes": strings.Repeat(strings.Repeat("x", 79)+"\n", 5000) + "rm -rf ~\n",
	} {
		arguments, err := json.Marshal(map[string]string{"path": b.path("hook"), "file_text": content})
		if err != nil {
			t.Fatal(err)
		}
		r, err := b.tools["create"].Permission(t.Context(), b.call(string(arguments)))
		if err != nil {
			t.Fatal(err)
		}
		var shown struct{ Diff, Omitted string }
		if err := json.Unmarshal(r.Ask, &shown); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(shown.Diff, "\n+") - 1; got != strings.Count(content, "\n") || !strings.HasSuffix(shown.Diff, "\n+rm -rf ~\n") || shown.Omitted != "" {
			t.Errorf("%s: %d lines are shown, omitted %q", name, got, shown.Omitted)
		}
		if len(r.Offers()) < 2 {
			t.Errorf("%s: no grant is offered", name)
		}
	}
}

func TestAChangeThatIsTooLargeSaysWhatIsNotShown(t *testing.T) {
	long := "#!/bin/sh\n#" + strings.Repeat("A", 3<<20) + "\nrm -rf ~\n"
	shown, omitted := files.Diff("/f", nil, []byte(long))
	if !strings.HasSuffix(shown, "\n+rm -rf ~\n") || !strings.Contains(shown, "+#!/bin/sh\n+#AAA") {
		t.Errorf("the lines around a long one are not shown: %s", shown)
	}
	left := 3<<20 - strings.Count(shown, "A")
	if want := fmt.Sprintf("%d bytes in the middle of long lines of the change are not shown", left); omitted != want || !strings.Contains(shown, fmt.Sprintf("[%d bytes are not shown]", left)) {
		t.Errorf("omitted %q, want %q", omitted, want)
	}
	lines := strings.Repeat("0123456789\n", 300_000) + "rm -rf ~\n"
	shown, omitted = files.Diff("/f", nil, []byte(lines))
	gone := 300_000 - strings.Count(shown, "+0123456789\n")
	if want := fmt.Sprintf("%d lines and %d bytes of the change are not shown", gone, 12*gone); omitted != want || !strings.HasSuffix(shown, "\n+rm -rf ~\n") || len(shown) > 1<<20+100 || gone > 250_000 {
		t.Errorf("omitted %q, want %q; %d bytes shown", omitted, want, len(shown))
	}
}

func TestNoGrantIsOfferedForAChangeThatWasNotShown(t *testing.T) {
	b := newFixture(t)
	arguments, err := json.Marshal(map[string]string{"path": b.path("f"), "file_text": strings.Repeat("0123456789\n", 300_000)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.tools["create"].Permission(t.Context(), b.call(string(arguments)))
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Intention, Omitted string
		CanOffer           bool `json:"canOfferSessionApproval"`
	}
	if err := json.Unmarshal(r.Ask, &body); err != nil {
		t.Fatal(err)
	}
	if len(r.Offers()) != 1 || r.SessionGrants() != nil || body.CanOffer || body.Omitted == "" || r.Omitted != body.Omitted || !strings.Contains(body.Intention, body.Omitted) {
		t.Errorf("offers %v, %+v", r.Offers(), body)
	}
}
