package rpc

import "testing"

func FuzzACursorIsReadAsItWasWritten(f *testing.F) {
	for _, text := range []string{"", "0", "12", "b7", "3.ab", "-1", "9999999999999999999", "b1.00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		if err != nil {
			return
		}
		again, err := parseCursor(c.String())
		if err != nil || again.String() != c.String() || again.end.Seq != c.end.Seq || again.backward != c.backward {
			t.Errorf("%q is %+v, written as %q, and read as %+v, %v", text, c, c.String(), again, err)
		}
	})
}
