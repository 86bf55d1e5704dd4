package cli

import (
	"io"
	"strings"
)

// A table is rows of cells. The last column takes what room is left, and is cut
// if the table has to fit a terminal.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, at most so many columns wide; zero is no limit.
func (t *table) write(w io.Writer, paint painter, most int) error {
	widths := t.widths()
	if err := t.line(w, t.head, widths, most, paint, faint); err != nil {
		return err
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
	return widths
}

func (t *table) line(w io.Writer, cells []string, widths []int, most int, paint painter, s style) error {
	var b strings.Builder
	last := len(cells) - 1
	for i, cell := range cells[:last] {
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-columns(cell)+2))
	}
	b.WriteString(cells[last])
	text := strings.TrimRight(b.String(), " ")
	if most > 0 {
		text = clip(text, most)
	}
	_, err := io.WriteString(w, paint.in(s, text)+"\n")
	return err
}

// print writes the table to stdout.
func (a *app) print(t *table) error {
	return a.out.buffered(func(w io.Writer) error { return t.write(w, paint(a.out), width(a.out)) })
}
