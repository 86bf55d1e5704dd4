// Package markdown turns the Markdown of a model into lines for a terminal.
//
//   - The source must be clean (see the text package). HTML is shown as it is written.
//   - Paragraphs are wrapped between words. Code, addresses and tables are not: what is
//     copied has no line breaks that the model has not written, and no margin.
//   - A [Document] that grows is parsed again only from its last block on.
package markdown

import (
	"html"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/abide-run/abide/internal/tui/text"
)

// maxDepth is how deep blocks are indented. What is nested deeper is shown at this depth.
const maxDepth = 8

// maxNested is the number of signs of nesting at the beginning of a line, and maxSigns the
// number of signs of emphasis and links in a block, from which on it is shown as it is
// written: the time to parse it grows with their square.
const (
	maxNested = 64
	maxSigns  = 1000
)

// parser parses what CommonMark knows. The package with the extensions of goldmark takes
// some milliseconds at every start of the program; of these, tables are done here.
var parser = sync.OnceValue(func() goldmark.Markdown { return goldmark.New() })

// Render returns the lines of a text, wrapped to some columns; zero for no limit.
func Render(source string, columns int) []text.Line {
	var d Document
	d.Append(source)
	return d.Lines(columns)
}

// A Document is a Markdown text that may grow. The zero value is empty.
type Document struct {
	source  string
	from    int         // where the last block begins, which may still change
	done    []text.Line // lines of the blocks before it
	columns int         // width for which they were made
}

// Source returns the text.
func (d *Document) Source() string { return d.source }

// Append adds to the end of the text.
func (d *Document) Append(more string) { d.source += more }

// Lines returns the lines of the text for some columns.
func (d *Document) Lines(columns int) []text.Line {
	return d.lines(columns, func(last string) string { return last })
}

// Tail returns lines that end as those of Lines do. Of a last block that is very long, only the
// end is drawn: it is drawn again whenever a piece of it arrives.
func (d *Document) Tail(columns int) []text.Line { return d.lines(columns, tail) }

// maxTail is the number of bytes of the last block that Tail draws.
const maxTail = 16 << 10

// tail returns the end of a long block. Where it begins changes rarely, so that its lines stay
// where they are.
func tail(block string) string {
	const step = maxTail / 2
	if len(block) <= maxTail {
		return block
	}
	from := (len(block) - step) / step * step
	at := strings.IndexAny(block[from:], " \n")
	if at < 0 {
		return strings.ToValidUTF8(block[from:], "")
	}
	from += at + 1
	fence := ""
	for line := range strings.Lines(block[:from]) {
		trimmed := strings.TrimLeft(line, " ")
		fence = nextFence(fence, trimmed, len(line)-len(trimmed))
	}
	if fence != "" {
		return fence + "\n" + block[from:]
	}
	return block[from:]
}

// lines returns the lines of the text, and of what is left of its last block.
func (d *Document) lines(columns int, left func(string) string) []text.Line {
	if columns != d.columns {
		d.from, d.done, d.columns = 0, nil, columns
	}
	for {
		n := blockEnd(d.source[d.from:])
		if n < 0 {
			break
		}
		d.done = joined(d.done, block(d.source[d.from:d.from+n], columns))
		d.from += n
	}
	return joined(d.done[:len(d.done):len(d.done)], block(left(d.source[d.from:]), columns))
}

// joined appends the lines of a block to those before it, with an empty line between.
func joined(lines, more []text.Line) []text.Line {
	if len(more) == 0 {
		return lines
	}
	if len(lines) > 0 {
		lines = append(lines, nil)
	}
	return append(lines, more...)
}

// blockEnd returns the length of the first part of a text that does not change whatever
// follows; -1 if there is none yet. It ends with an empty line, outside of a code block,
// before a line that is not indented.
func blockEnd(source string) int {
	fence, blank, at := "", false, 0
	for line := range strings.Lines(source) {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case strings.TrimSpace(line) == "" && strings.HasSuffix(line, "\n"):
			blank = fence == ""
		case blank && at > 0 && line[0] != ' ' && strings.TrimSpace(source[:at]) != "":
			return at
		default:
			blank = false
			fence = nextFence(fence, trimmed, len(line)-len(trimmed))
		}
		at += len(line)
	}
	return -1
}

// nextFence returns what ends the code block that a line is in or begins; empty if it is
// in none.
func nextFence(fence, line string, indent int) string {
	if fence != "" {
		if strings.HasPrefix(line, fence) && strings.Trim(strings.TrimSpace(line), fence[:1]) == "" {
			return ""
		}
		return fence
	}
	for _, sign := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, sign)); n >= 3 && indent <= 3 {
			return line[:n]
		}
	}
	return ""
}

// block returns the lines of a part of a text.
func block(source string, columns int) []text.Line {
	if strings.TrimSpace(source) == "" {
		return nil
	}
	if tooMuch(source) {
		return text.Lines(strings.Trim(source, "\n"), text.Style{})
	}
	r := &renderer{source: []byte(source), columns: columns}
	r.blocks(parser().Parser().Parse(gtext.NewReader(r.source)), nil, nil)
	return r.lines
}

// tooMuch reports whether a block has too many signs to be parsed.
func tooMuch(source string) bool {
	fence, signs := "", 0
	for line := range strings.Lines(source) {
		trimmed := strings.TrimLeft(line, " ")
		if fence = nextFence(fence, trimmed, len(line)-len(trimmed)); fence != "" {
			continue
		}
		if nesting(line) > maxNested || len(line)-len(trimmed) > 4*maxNested {
			return true
		}
		for i := range len(line) {
			if strings.IndexByte("*_~[<`", line[i]) >= 0 {
				signs++
			}
		}
	}
	return signs > maxSigns
}

// nesting returns the number of signs of nesting at the beginning of a line.
func nesting(line string) int {
	n := 0
	for i := 0; i < len(line) && strings.IndexByte(" >-+*0123456789.)", line[i]) >= 0; i++ {
		if line[i] == '>' || i > 0 && line[i] != ' ' && line[i-1] == ' ' {
			n++
		}
	}
	return n
}

// A renderer makes the lines of a tree.
type renderer struct {
	source  []byte
	columns int
	lines   []text.Line
}

var (
	styleHeading = text.Style{Bold: true}
	styleCode    = text.Style{Colour: text.Cyan}
	styleMark    = text.Style{Faint: true}
	styleLink    = text.Style{Underline: true}
)

// blocks adds the blocks below a node. The first line begins with first, the others with
// rest.
func (r *renderer) blocks(parent ast.Node, first, rest text.Line) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() {
			if !tight(parent) {
				r.lines = append(r.lines, trimmed(rest))
			}
			first = rest
		}
		r.block(n, first, rest)
	}
	if parent.FirstChild() == nil && len(first) > 0 {
		r.lines = append(r.lines, first)
	}
}

// tight reports whether no empty lines are between the blocks of a node.
func tight(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.List:
		return n.IsTight
	case *ast.ListItem:
		list, ok := n.Parent().(*ast.List)
		return ok && list.IsTight
	}
	return false
}

// trimmed returns the indent of an empty line: blanks at its end are left out.
func trimmed(indent text.Line) text.Line {
	s := indent.String()
	if s == "" {
		return nil
	}
	return text.Styled(s, styleMark)
}

// block adds one block.
func (r *renderer) block(n ast.Node, first, rest text.Line) {
	switch n := n.(type) {
	case *ast.Heading:
		r.paragraph(n, first, rest, styleHeading)
	case *ast.FencedCodeBlock:
		r.code(n, string(n.Language(r.source)), first, rest)
	case *ast.CodeBlock:
		r.code(n, "", first, rest)
	case *ast.HTMLBlock:
		r.code(n, "", first, rest)
		if n.HasClosure() {
			r.lines = append(r.lines, with(rest, text.Plain(strings.TrimRight(string(n.ClosureLine.Value(r.source)), "\n"))))
		}
	case *ast.ThematicBreak:
		r.lines = append(r.lines, with(first, text.Styled("─────", styleMark)))
	case *ast.Blockquote:
		if len(rest) >= maxDepth {
			r.blocks(n, first, rest)
			return
		}
		mark := text.Span{Text: "│ ", Style: styleMark}
		r.blocks(n, append(first[:len(first):len(first)], mark), append(rest[:len(rest):len(rest)], mark))
	case *ast.List:
		r.list(n, first, rest)
	default:
		if rows := r.tableRows(n); rows != nil {
			r.table(rows, first, rest)
			return
		}
		r.paragraph(n, first, rest, text.Style{})
	}
}

// with returns a line with an indent.
func with(indent, line text.Line) text.Line {
	return append(indent[:len(indent):len(indent)], line...)
}

// list adds the items of a list.
func (r *renderer) list(n *ast.List, first, rest text.Line) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item != n.FirstChild() {
			if !n.IsTight {
				r.lines = append(r.lines, trimmed(rest))
			}
			first = rest
		}
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		inner := rest
		if len(rest) < maxDepth {
			inner = append(rest[:len(rest):len(rest)], text.Span{Text: strings.Repeat(" ", text.Width(mark))})
		}
		r.blocks(item, append(first[:len(first):len(first)], text.Span{Text: mark, Style: styleMark}), inner)
	}
}

// code adds the lines of a code block, without wrapping them.
func (r *renderer) code(n ast.Node, language string, first, rest text.Line) {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(r.source))
	}
	for _, line := range Code(b.String(), language) {
		r.lines = append(r.lines, with(first, line))
		first = rest
	}
}

// paragraph adds wrapped text.
func (r *renderer) paragraph(n ast.Node, first, rest text.Line, style text.Style) {
	in := inlines{source: r.source}
	in.children(n, style)
	for _, line := range in.lines() {
		r.lines = append(r.lines, with(first, line).Wrap(r.columns, rest)...)
		first = rest
	}
}

// tableRows returns the cells of a paragraph that is a table: its second line is made of
// dashes. It returns nil for other blocks.
func (r *renderer) tableRows(n ast.Node) [][]string {
	if n.Type() != ast.TypeBlock || n.Lines() == nil || n.Lines().Len() < 2 {
		return nil
	}
	var rows [][]string
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		rows = append(rows, cells(string(segment.Value(r.source))))
	}
	for _, cell := range rows[1] {
		if strings.Trim(cell, "-:") != "" || !strings.Contains(cell, "-") {
			return nil
		}
	}
	if len(rows[0]) != len(rows[1]) || len(rows[1]) < 2 && !strings.Contains(string(r.source), "|") {
		return nil
	}
	return append(rows[:1], rows[2:]...)
}

// cells returns the cells of a line of a table.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if !strings.HasSuffix(line, `\|`) {
		line = strings.TrimSuffix(line, "|")
	}
	var list []string
	for _, cell := range strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|") {
		list = append(list, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
	}
	return list
}

// table adds a table. Its columns are aligned; its rows are not wrapped.
func (r *renderer) table(rows [][]string, first, rest text.Line) {
	widths := make([]int, len(rows[0]))
	lines := make([][]text.Line, len(rows))
	for i, row := range rows {
		for c := range widths {
			var line text.Line
			if c < len(row) {
				line = inline(row[c], text.Style{Bold: i == 0})
			}
			widths[c] = max(widths[c], line.Width())
			lines[i] = append(lines[i], line)
		}
	}
	for i, row := range lines {
		var line text.Line
		for c, cell := range row {
			if c > 0 {
				line = append(line, text.Span{Text: " │ ", Style: styleMark})
			}
			line = append(line, cell...)
			if c < len(row)-1 {
				line = append(line, text.Span{Text: strings.Repeat(" ", widths[c]-cell.Width())})
			}
		}
		r.lines = append(r.lines, with(first, line))
		first = rest
		if i == 0 {
			r.lines = append(r.lines, with(rest, text.Styled(rule(widths), styleMark)))
		}
	}
}

// inline returns a text that is part of a line.
func inline(source string, style text.Style) text.Line {
	in := inlines{source: []byte(source)}
	document := parser().Parser().Parse(gtext.NewReader(in.source))
	if block := document.FirstChild(); block != nil && block.Kind() == ast.KindParagraph && block.NextSibling() == nil {
		in.children(block, style)
		return in.lines()[0]
	}
	return text.Styled(source, style)
}

// rule returns the line below the head of a table.
func rule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return strings.Join(parts, "─┼─")
}

// inlines collects the text of a paragraph, in lines that the source breaks.
type inlines struct {
	source []byte
	done   []text.Line
	line   text.Line
}

func (in *inlines) lines() []text.Line { return append(in.done, in.line) }

func (in *inlines) put(s string, style text.Style) {
	if s != "" {
		in.line = append(in.line, text.Span{Text: s, Style: style})
	}
}

// children adds the text below a node.
func (in *inlines) children(n ast.Node, style text.Style) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		in.node(c, style)
	}
}

// node adds the text of a node.
func (in *inlines) node(n ast.Node, style text.Style) {
	switch n := n.(type) {
	case *ast.Text:
		in.text(n, style)
	case *ast.String:
		in.put(string(n.Value), style)
	case *ast.CodeSpan:
		style.Colour = styleCode.Colour
		in.raw(n, style)
	case *ast.Emphasis:
		style.Bold = style.Bold || n.Level > 1
		style.Italic = style.Italic || n.Level == 1
		in.children(n, style)
	case *ast.Link:
		in.link(n, string(n.Destination), style)
	case *ast.Image:
		in.put("image: ", styleMark)
		in.link(n, string(n.Destination), style)
	case *ast.AutoLink:
		style.Underline = styleLink.Underline
		in.put(string(n.URL(in.source)), style)
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			segment := n.Segments.At(i)
			in.put(strings.ReplaceAll(string(segment.Value(in.source)), "\n", " "), style)
		}
	default:
		in.children(n, style)
	}
}

// text adds plain text. A line break of the source is a blank.
func (in *inlines) text(n *ast.Text, style text.Style) {
	value := n.Segment.Value(in.source)
	if !n.IsRaw() {
		value = util.UnescapePunctuations(value)
	}
	s := string(value)
	if strings.Contains(s, "&") {
		s = strings.ReplaceAll(text.Clean(html.UnescapeString(s)), "\n", " ")
	}
	in.put(s, style)
	// Models end a line where they mean to, so a soft break is a line break, too: joined, the lines
	// of a listing or of a command's output could not be read.
	if n.HardLineBreak() || n.SoftLineBreak() {
		in.done, in.line = append(in.done, in.line), nil
	}
}

// raw adds the text below a node as it is written.
func (in *inlines) raw(n ast.Node, style text.Style) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			in.put(strings.ReplaceAll(string(t.Segment.Value(in.source)), "\n", " "), style)
		}
	}
}

// link adds the text of a link and where it leads: a person sees the address that a click
// or a copy would use.
func (in *inlines) link(n ast.Node, to string, style text.Style) {
	before := len(in.line)
	label := style
	label.Underline = true
	in.children(n, label)
	to = strings.ReplaceAll(text.Clean(to), "\n", " ")
	if to != "" && text.Line(in.line[min(before, len(in.line)):]).String() != to {
		in.put(" ("+to+")", styleMark)
	}
}
