package man_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/cli/man"
)

// tree is a program with everything that a page can get wrong.
func tree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does it", Long: "Does it.\n\n  .verbatim \\n 'quoted'\n\n.a dot, and “more” – it's \\fBnot bold", Run: run}
	root.PersistentFlags().String("home", "", "data in `DIR`")
	sub := &cobra.Command{Use: "sub FILE", Short: "Part of it", Example: "  tool sub a-b.c", Run: run}
	sub.Flags().IntP("count", "n", 3, ".how many")
	sub.Flags().Bool("secret", false, "")
	_ = sub.Flags().MarkHidden("secret")
	hidden := &cobra.Command{Use: "hidden", Hidden: true, Run: run}
	root.AddCommand(sub, hidden)
	return root
}

func page(t *testing.T, c *cobra.Command) string {
	t.Helper()
	var b bytes.Buffer
	book := man.Book{Source: "tool 1", Chapters: []man.Chapter{{Title: "FILES", Text: "None."}}}
	if err := book.Page(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAPageSaysWhatTheHelpSays(t *testing.T) {
	root := tree()
	sub, _, _ := root.Find([]string{"sub"})
	for _, test := range []struct {
		page       string
		has, hasNo []string
	}{
		{page(t, root), []string{`.TH "TOOL" 1 "" "tool 1"`, `tool \- Does it`, `see tool\-sub(1)`, `\fB\-\-home\fR \fIDIR\fR`, ".SH \"FILES\"\nNone."},
			[]string{"hidden", "SEE ALSO"}},
		{page(t, sub), []string{`.TH "TOOL\-SUB"`, "FILE [OPTION]...", `\fB\-n, \-\-count\fR \fIint\fR`, "(default 3)", `tool sub a\-b.c`, "SEE ALSO", "tool(1)"},
			[]string{"secret", "FILES"}},
	} {
		for _, want := range test.has {
			if !strings.Contains(test.page, want) {
				t.Errorf("there is no %q in\n%s", want, test.page)
			}
		}
		for _, wrong := range test.hasNo {
			if strings.Contains(test.page, wrong) {
				t.Errorf("there is %q in\n%s", wrong, test.page)
			}
		}
	}
	if names := man.Commands(root); len(names) != 2 || man.Name(names[1]) != "tool-sub" {
		t.Errorf("pages: %v", names)
	}
}

// requests are all that begin a line with a dot.
var requests = []string{".TH ", ".SH ", ".PP", ".TP", ".B ", ".RS 4", ".RE", ".nf", ".fi", ".nh", ".ad l"}

func check(t *testing.T, text string) {
	for line := range strings.Lines(text) {
		ours := false
		for _, r := range requests {
			ours = ours || strings.HasPrefix(line, r)
		}
		if (line[0] == '.' || line[0] == '\'') && !ours {
			t.Errorf("text became a request: %q", line)
		}
	}
}

func FuzzNoTextIsARequest(f *testing.F) {
	f.Add(".so /etc/passwd", "'x\n\n  .y", "a\\\n.b")
	f.Fuzz(func(t *testing.T, short, long, example string) {
		c := &cobra.Command{Use: "tool", Short: short, Long: long, Example: example, Run: func(*cobra.Command, []string) {}}
		c.Flags().String("flag", short, long)
		check(t, page(t, c))
	})
}

func TestThePagesAreFreeOfWarnings(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not here")
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(page(t, tree()))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff says %v: %s", err, out)
	}
}
