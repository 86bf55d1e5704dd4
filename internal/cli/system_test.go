package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFlagsOfTheSystemPrompt(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mine := file("mine", "Brew tea.\n")
	for _, test := range []struct {
		flags     runFlags
		want, err string
	}{
		{flags: runFlags{}},
		{flags: runFlags{more: "  "}},
		{flags: runFlags{more: "Be brief."}, want: `{"mode":"append","content":"Be brief."}`},
		{flags: runFlags{system: mine}, want: `{"mode":"replace","content":"Brew tea."}`},
		{flags: runFlags{system: mine, more: "Be brief."}, want: `{"mode":"replace","content":"Brew tea.\n\nBe brief."}`},
		{flags: runFlags{system: filepath.Join(dir, "absent")}, err: "--system"},
		{flags: runFlags{system: dir}, err: "it is a directory"},
		{flags: runFlags{system: file("empty", " \n")}, err: "it is empty"},
		{flags: runFlags{system: file("binary", "\xff")}, err: "not UTF-8"},
		{flags: runFlags{system: file("huge", strings.Repeat("x", 300<<10))}, err: "more than 256 KiB"},
	} {
		got, err := test.flags.systemMessage()
		if string(got) != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: %s, %v", test.flags, got, err)
		}
	}
}
