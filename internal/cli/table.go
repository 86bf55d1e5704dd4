package cli

import (
	"io"
	"strings"
)

// A table has rows of cells. On a terminal a last column that is too long is cut, or
// continues on the next line if wrap is true.
type table struct {
	head []string
	rows [][]string
	wrap bool

	printed []int // widths of the part that was printed before; nil if there is none
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table with a maximum width; zero means no limit.
func (t *table) write(w io.Writer, paint painter, most int) error {
	widths := t.widths()
	if t.printed == nil {
		if err := t.line(w, t.head, widths, most, paint, faint); err != nil {
			return err
		}
	}
	for _, row := range t.rows {
		if err := t.line(w, row, widths, most, paint, plainStyle); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for i, n := range t.printed {
		widths[i] = max(widths[i], n)
	}
	return widths
}

func (t *table) line(w io.Writer, cells []string, widths []int, most int, paint painter, s style) error {
	var b strings.Builder
	last := len(cells) - 1
	for i, cell := range cells[:last] {
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-columns(cell)+2))
	}
	lines, indent := []string{cells[last]}, columns(b.String())
	if t.wrap && most > 0 {
		if indent > most/2 { // there is too little space beside the other columns
			lines, indent = []string{""}, 2
		} else {
			lines = nil
		}
		lines = append(lines, fold(cells[last], max(most-indent, 8))...)
	}
	for _, text := range lines {
		b.WriteString(text)
		if err := writeLine(w, b.String(), most, paint, s); err != nil {
			return err
		}
		b.Reset()
		b.WriteString(strings.Repeat(" ", indent))
	}
	return nil
}

func writeLine(w io.Writer, text string, most int, paint painter, s style) error {
	text = strings.TrimRight(text, " ")
	if most > 0 {
		text = clip(text, most)
	}
	_, err := io.WriteString(w, paint.in(s, text)+"\n")
	return err
}

// printPart prints the rows of the table and removes them, so that more can be added and
// printed below them.
func (a *app) printPart(t *table) error {
	err := a.print(t)
	t.printed, t.rows = t.widths(), nil
	return err
}

// print writes the table to stdout.
func (a *app) print(t *table) error {
	return a.out.buffered(func(w io.Writer) error { return t.write(w, paint(a.out), width(a.out)) })
}
