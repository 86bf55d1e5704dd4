package files_test

import (
	"os"
	"strings"
	"testing"
)

// TestGrepLeavesOutWhatRulesDeny searches folders that may be read, with files in them that
// rules deny.
func TestGrepLeavesOutWhatRulesDeny(t *testing.T) {
	b := newFixture(t)
	for _, name := range []string{".env", "a.txt", "keys/id_rsa", "keys/deep/id_rsa", "private/x", "private/deep/y", "src/b.txt", "src/c.pem"} {
		b.put(name, "secret\n")
	}
	if err := os.Symlink("private", b.path("linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", b.path("here")); err != nil {
		t.Fatal(err)
	}
	rules := []string{"bash(sudo *)", "read(.env)", "read(private/**)", "read(**/id_rsa)", "view(src/*.pem)", "write(a.txt)", "edit(src/**)"}
	for arguments, want := range map[string]string{
		`{"pattern":"secret"}`:                                          "./a.txt ./src/b.txt",
		`{"pattern":"secret","output_mode":"content"}`:                  "./a.txt:secret ./src/b.txt:secret",
		`{"pattern":"secret","output_mode":"count"}`:                    "./a.txt:1 ./src/b.txt:1",
		`{"pattern":"secret","glob":".env"}`:                            "No matches found.",
		`{"pattern":"secret","path":"keys"}`:                            "No matches found.",
		`{"pattern":"secret","path":"keys","output_mode":"content"}`:    "No matches found.",
		`{"pattern":"secret","path":"here"}`:                            "here/a.txt here/src/b.txt",
		`{"pattern":"secret","paths":["$","src/"]}`:                     "$/a.txt $/src/b.txt src/b.txt",
		`{"pattern":"secret","paths":"here/src","output_mode":"count"}`: "here/src/b.txt:1",
	} {
		call := b.call(arguments)
		call.Unread = rules
		r, _ := b.runCall("grep", call)
		text, _, _ := strings.Cut(r.Text, "\n\n[") // leaves out the note about files that were not searched
		if got := strings.Join(strings.Fields(strings.ReplaceAll(text, b.dir+"/", "$/")), " "); got != want && text != want {
			t.Errorf("%s: %q, want %q", arguments, r.Text, want)
		}
		if strings.Contains(r.Text, "private/x") || strings.Contains(r.Text, "id_rsa") {
			t.Errorf("%s: %q names a denied file", arguments, r.Text)
		}
	}
	call := b.call(`{"pattern":"secret","paths":"linked","output_mode":"content"}`)
	call.Unread = rules
	if r, _ := b.runCall("grep", call); strings.Contains(r.Text, ":secret") {
		t.Errorf("a link to a denied folder: %q", r.Text)
	}
}

// TestCountsOfGrepTellNothingOfDeniedFiles searches more files than an answer holds.
func TestCountsOfGrepTellNothingOfDeniedFiles(t *testing.T) {
	b := newFixture(t)
	for i := range 30 {
		for k := range 30 {
			b.put(strings.Join([]string{"d", string(rune('a' + i%26)), string(rune('a'+i/26)) + string(rune('a'+k%26)), string(rune('a'+k/26)) + ".txt"}, "/"), "secret\n")
		}
	}
	search := func(mode string) string {
		call := b.call(`{"pattern":"secret","output_mode":"` + mode + `"}`)
		call.Unread = []string{"read(**/id_rsa)"}
		r, _ := b.runCall("grep", call)
		return r.Text
	}
	for _, mode := range []string{"content", "files_with_matches", "count"} {
		_ = os.RemoveAll(b.path("z"))
		before := search(mode)
		b.put("z/id_rsa", "secret\n")
		if after := search(mode); after != before {
			t.Errorf("%s: %.100q, and with a denied file %.100q", mode, before, after)
		}
	}
}
