package cli

import (
	"bytes"
	"testing"

	"github.com/abide-run/abide/internal/tui/text"
)

// TestARegionIsTakenAwayBeforeOutput: what is drawn below the output is erased by the write
// that follows it, and nothing is drawn behind a line that is not complete.
func TestARegionIsTakenAwayBeforeOutput(t *testing.T) {
	var out bytes.Buffer
	p := &printer{w: &out}
	r := &region{newLine: true}
	p.setRegion(r)
	p.printf("one\n")
	r.drawn, r.shown = []text.Line{text.Plain("a"), text.Plain("b"), text.Plain("c")}, "a\r\nb\r\nc"
	p.printf("two")
	if got := out.String(); got != "one\n\r\x1b[2A\x1b[Jtwo" {
		t.Errorf("written is %q", got)
	}
	if r.newLine || r.drawn != nil || r.shown != "" {
		t.Errorf("the region counts as drawn, or as free to be drawn: %+v", r)
	}
	p.printf(" and more\n")
	if got := out.String(); got != "one\n\r\x1b[2A\x1b[Jtwo and more\n" || !r.newLine {
		t.Errorf("written is %q", got)
	}
	p.setRegion(nil)
	p.printf("end\n")
	if p.err != nil {
		t.Error(p.err)
	}
}
