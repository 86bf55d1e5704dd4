// Package man writes a tree of commands as manual pages, in the language of
// man(7).
//
//   - The pages have the texts of --help, so there is no second text to maintain.
//   - The same tree gives the same bytes: the pages have no date.
//   - No text can be taken for a request of man(7): no line of it begins with a dot.
package man

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Book holds the parts that all pages have in common.
type Book struct {
	Source   string // name and version of the program, at the foot of each page
	Chapters []Chapter
}

// A Chapter is a section at the end of the page about the program as a whole.
type Chapter struct{ Title, Text string }

// Name returns the name of the page of a command, such as abide-sessions-list.
func Name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Commands returns a command and all its visible subcommands, recursively.
func Commands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range shown(c) {
		list = append(list, Commands(sub)...)
	}
	return list
}

func shown(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() || sub.Name() == "help"
	})
}

// Page writes the page of one command.
func (b Book) Page(w io.Writer, c *cobra.Command) error {
	p := &page{}
	name := Name(c)
	p.request(".TH %s 1 \"\" %s", quote(strings.ToUpper(name)), quote(b.Source))
	p.request(".nh\n.ad l") // do not hyphenate names
	p.section("NAME", name+" - "+c.Short)
	p.request(".SH SYNOPSIS")
	p.request(".B %s", escape(c.CommandPath()))
	p.text(synopsis(c))
	p.section("DESCRIPTION", describe(c))
	p.commands(c)
	p.options("OPTIONS", c.NonInheritedFlags())
	p.options("OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	p.example(c.Example)
	if !c.HasParent() {
		for _, chapter := range b.Chapters {
			p.section(chapter.Title, chapter.Text)
		}
	}
	p.related(c)
	_, err := w.Write(p.Bytes())
	return err
}

// synopsis returns the usage of a command without its name.
func synopsis(c *cobra.Command) string {
	_, rest, _ := strings.Cut(c.Use, " ")
	if c.HasAvailableSubCommands() {
		rest = strings.TrimSpace(rest + " COMMAND")
	}
	return strings.TrimSpace(rest + " [OPTION]...")
}

func describe(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

// A page is a manual page that is being written.
type page struct{ bytes.Buffer }

func (p *page) request(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) section(title, text string) {
	p.request(".SH %s", quote(title))
	p.paragraphs(text)
}

// paragraphs writes text. Indented paragraphs are written verbatim.
func (p *page) paragraphs(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.request(".PP")
		}
		if strings.HasPrefix(paragraph, "  ") {
			p.verbatim(paragraph)
		} else {
			p.text(paragraph)
		}
	}
}

func (p *page) text(text string) {
	for line := range strings.Lines(text) {
		p.request("%s", escape(strings.TrimSpace(line)))
	}
}

// verbatim writes lines unchanged, without their common indentation.
func (p *page) verbatim(text string) {
	p.request(".RS 4\n.nf")
	for line := range strings.Lines(text) {
		p.request("%s", escape(strings.TrimRight(strings.TrimPrefix(line, "  "), "\n")))
	}
	p.request(".fi\n.RE")
}

func (p *page) commands(c *cobra.Command) {
	list := shown(c)
	if len(list) == 0 {
		return
	}
	p.request(".SH COMMANDS")
	for _, sub := range list {
		p.request(".TP\n.B %s", escape(sub.Name()))
		p.text(sub.Short + "; see " + Name(sub) + "(1).")
	}
}

func (p *page) options(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.request(".SH %s", quote(title))
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		p.request(".TP\n%s", strings.TrimSpace(bold(name)+" "+italic(value)))
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		p.text(usage)
	})
}

func (p *page) example(text string) {
	if text != "" {
		p.request(".SH EXAMPLES")
		p.verbatim(text)
	}
}

// related writes a reference to the page of the parent command.
func (p *page) related(c *cobra.Command) {
	if c.HasParent() {
		p.request(".SH \"SEE ALSO\"")
		p.text(Name(c.Parent()) + "(1)")
	}
}

func bold(s string) string { return `\fB` + escape(s) + `\fR` }

func italic(s string) string {
	if s == "" {
		return ""
	}
	return `\fI` + escape(s) + `\fR`
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// escape escapes text so that man(7) shows it unchanged. A minus stays a minus that can
// be copied.
func escape(s string) string {
	var b strings.Builder
	for _, r := range escapes.Replace(s) {
		switch {
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		case r >= ' ' || r == '\t':
			b.WriteRune(r)
		}
	}
	if strings.HasPrefix(b.String(), ".") {
		return `\&` + b.String()
	}
	return b.String()
}

// quote returns text as one argument of a request.
func quote(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }
