// Package screen shows what a terminal shows: it carries out the output of a program, with
// its cursor movements and the like, on a screen in memory. It knows what programs send to
// an xterm, as far as that changes which characters are where. Colours it does not know.
//
//   - Output is never trusted. Whatever it is, a screen is made in time and memory that its
//     length and the size of the terminal bound, or there is an error.
//   - The same output always makes the same screen, however it is cut into parts. Nothing
//     else is needed for one, so that a screen can be made again whenever the output is there.
//   - A row is plain text: valid UTF-8 without control characters.
package screen

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// The largest terminal.
const (
	MaxRows = 200
	MaxCols = 400
)

// A Size is the size of a terminal, in characters.
type Size struct{ Rows, Cols int }

// A Screen is what a terminal shows.
type Screen struct {
	Size
	Lines  []string // the rows, without blanks at their ends
	Row    int      // row of the cursor; the first is 1
	Col    int      // column of the cursor; the first is 1
	Hidden bool     // true if the cursor is not shown
	Title  string   // title that the program has set

	// Full is true if a program draws on the whole screen, and has not begun to print lines
	// again: it uses the alternate screen, or has set the cursor to a place since the screen
	// last scrolled.
	Full bool
	// Application is true if the program wants the arrow keys in their application form.
	Application bool
}

// ErrTooMuch says that output has more in it than a terminal could show in reasonable time.
var ErrTooMuch = errors.New("the output asks for more than a terminal can show in reasonable time")

// maxWork is the number of cells that one output may change.
const maxWork = 256 << 20

// A Terminal carries out output.
type Terminal struct {
	Size
	parser
	screens   [2]page // the main screen and the alternate one
	page      *page   // the screen that is shown
	place             // the cursor
	top, last int     // rows of the region that scrolls
	noWrap    bool    // true if a line that is full is not continued in the next
	insert    bool    // true if characters are inserted, not overwritten
	drawn     bool    // true if the cursor was set to a place on the main screen, and that has not scrolled since
	printed   rune    // the last character, for commands that repeat it

	hidden      bool
	application bool
	title       string
	spare       [][]cell // buffer for rows that are moved, used again
	work        int      // how much work is left
	err         error    // why the screen is not known any more
}

// A page is the content of a screen.
type page struct {
	lines [][]cell
	saved place
}

// A cell is a place for a character.
type cell struct {
	char rune   // 0 for none; wideRest for the second half of a wide character
	more string // characters that combine with it
}

const wideRest = -1

// A place is where the cursor is, and what is saved with it.
type place struct {
	row, col int
	wraps    bool    // true if the line is full: the next character begins another
	origin   bool    // true if rows count from the top of the region that scrolls
	charsets [2]bool // true for each of the two sets of characters that has lines and corners
	charset  int     // the set that is used
}

// New returns a terminal.
func New(size Size) *Terminal {
	t := &Terminal{Size: Size{min(max(size.Rows, 1), MaxRows), min(max(size.Cols, 1), MaxCols)}, work: maxWork}
	for i := range t.screens {
		t.screens[i].lines = make([][]cell, t.Rows)
		for y := range t.Rows {
			t.screens[i].lines[y] = make([]cell, t.Cols)
		}
	}
	t.reset()
	return t
}

// reset puts the terminal into the state that it begins with.
func (t *Terminal) reset() {
	for i := range t.screens {
		t.page = &t.screens[i]
		t.page.saved = place{}
		t.erase(0, t.Rows)
	}
	t.page, t.place = &t.screens[0], place{}
	t.top, t.last = 0, t.Rows-1
	t.noWrap, t.insert, t.drawn, t.hidden, t.application = false, false, false, false, false
}

// Write carries out output. After an error the screen is not known any more.
func (t *Terminal) Write(output []byte) error {
	for _, c := range output {
		if t.err != nil {
			break
		}
		t.take(t, c)
	}
	return t.err
}

// spend takes a number of changed cells from the work that is left.
func (t *Terminal) spend(cells int) {
	if t.work -= cells; t.work < 0 {
		t.err = ErrTooMuch
	}
}

// Screen returns what the terminal shows.
func (t *Terminal) Screen() (Screen, error) {
	if t.err != nil {
		return Screen{}, t.err
	}
	s := Screen{
		Size: t.Size, Row: t.row + 1, Col: t.col + 1, Hidden: t.hidden, Title: t.title,
		Full: t.page == &t.screens[1] || t.drawn, Application: t.application,
	}
	for _, line := range t.page.lines {
		s.Lines = append(s.Lines, text(line))
	}
	return s, nil
}

// text returns a row as text.
func text(line []cell) string {
	var b strings.Builder
	for _, c := range line {
		switch c.char {
		case wideRest:
		case 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(c.char)
			b.WriteString(c.more)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// String returns the rows, without empty ones at the end, and a line about the cursor and
// the title.
func (s Screen) String() string {
	last := len(s.Lines)
	for last > 0 && s.Lines[last-1] == "" {
		last--
	}
	var b strings.Builder
	for _, line := range s.Lines[:last] {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "<screen of %d rows and %d columns; the cursor is in row %d, column %d", s.Rows, s.Cols, s.Row, s.Col)
	if s.Hidden {
		b.WriteString(", and not shown")
	}
	if s.Title != "" {
		fmt.Fprintf(&b, "; its title is %q", s.Title)
	}
	return b.String() + ">"
}

// print puts a character at the cursor.
func (t *Terminal) print(r rune) {
	if t.charsets[t.charset] {
		r = lineDrawing(r)
	}
	w := width(r)
	if w == 0 {
		t.combine(r)
		return
	}
	t.printed = r
	w = min(w, t.Cols)
	if t.wraps || t.col+w > t.Cols {
		if t.noWrap {
			t.col = t.Cols - w
		} else {
			t.col = 0
			t.lineFeed()
		}
	}
	t.wraps = false
	if t.insert {
		t.shift(t.col, w)
	}
	line := t.page.lines[t.row]
	t.unpair(t.col)
	t.unpair(t.col + w)
	line[t.col] = cell{char: r}
	for x := t.col + 1; x < t.col+w; x++ {
		line[x] = cell{char: wideRest}
	}
	t.spend(w)
	if t.col += w; t.col >= t.Cols {
		t.col, t.wraps = t.Cols-1, true
	}
}

const maxCombined = 7 // characters that one other combines with

// combine adds a character to the one before the cursor.
func (t *Terminal) combine(r rune) {
	x := t.col - 1
	if t.wraps {
		x = t.col
	}
	line := t.page.lines[t.row]
	if x > 0 && line[x].char == wideRest {
		x--
	}
	if x < 0 || line[x].char <= 0 || len([]rune(line[x].more)) >= maxCombined || unicode.IsControl(r) {
		return
	}
	t.spend(1)
	line[x].more += string(r)
}

// unpair erases the other half of a wide character of which a column gets something else.
func (t *Terminal) unpair(x int) {
	line := t.page.lines[t.row]
	if x > 0 && x < t.Cols && line[x].char == wideRest {
		line[x-1], line[x] = cell{}, cell{}
	}
}

// lineFeed moves the cursor down, and scrolls at the end of the region.
func (t *Terminal) lineFeed() {
	t.wraps = false
	switch {
	case t.row == t.last:
		t.scroll(t.top, 1)
		if t.top == 0 && t.last == t.Rows-1 && t.page == &t.screens[0] {
			t.drawn = false
		}
	case t.row < t.Rows-1:
		t.row++
	}
}

// reverseLineFeed moves the cursor up, and scrolls at the top of the region.
func (t *Terminal) reverseLineFeed() {
	t.wraps = false
	switch {
	case t.row == t.top:
		t.scroll(t.top, -1)
	case t.row > 0:
		t.row--
	}
}

// scroll moves the rows from one to the end of the region up by n, or down if n is negative.
func (t *Terminal) scroll(from, n int) {
	lines := t.page.lines[from : t.last+1]
	count := min(max(n, -n), len(lines))
	t.spend(len(lines))
	if n > 0 {
		t.rotate(lines, count)
		t.erase(t.last+1-count, t.last+1)
		return
	}
	t.rotate(lines, len(lines)-count)
	t.erase(from, from+count)
}

// rotate moves the first rows to the end.
func (t *Terminal) rotate(lines [][]cell, count int) {
	t.spare = append(t.spare[:0], lines[:count]...)
	copy(lines, lines[count:])
	copy(lines[len(lines)-count:], t.spare)
}

// erase erases whole rows.
func (t *Terminal) erase(from, to int) {
	t.spend((to - from) * t.Cols)
	for y := from; y < to && t.err == nil; y++ {
		clear(t.page.lines[y])
	}
}

// eraseIn erases columns of the cursor's row.
func (t *Terminal) eraseIn(from, to int) {
	from, to = max(from, 0), min(to, t.Cols)
	t.wraps = false
	if from >= to {
		return
	}
	t.unpair(from)
	t.unpair(to)
	t.spend(to - from)
	clear(t.page.lines[t.row][from:to])
}

// shift moves the characters from a column on to the right by n, or to the left if n is
// negative.
func (t *Terminal) shift(from, n int) {
	line := t.page.lines[t.row][from:]
	count := min(max(n, -n), len(line))
	t.unpair(from)
	t.spend(len(line))
	if n > 0 {
		copy(line[count:], line)
		clear(line[:count])
	} else {
		copy(line, line[count:])
		clear(line[len(line)-count:])
	}
	if last := len(line) - 1; line[last].char > 0 && width(line[last].char) > 1 { // its second half is gone
		line[last] = cell{}
	}
	if line[0].char == wideRest {
		line[0] = cell{}
	}
}

// moveTo sets the cursor to a place.
func (t *Terminal) moveTo(row, col int) {
	t.wraps = false
	t.row, t.col = min(max(row, 0), t.Rows-1), min(max(col, 0), t.Cols-1)
}

// moveToRow sets the cursor to a place whose row counts from the origin.
func (t *Terminal) moveToRow(row, col int) {
	t.draws()
	if t.origin {
		t.moveTo(min(max(row, 0)+t.top, t.last), col)
		return
	}
	t.moveTo(row, col)
}

// draws notes that a program draws on the whole screen.
func (t *Terminal) draws() { t.drawn = t.drawn || t.page == &t.screens[0] }

// moveUp moves the cursor up by n rows, or down if n is negative. It stays in the region
// that scrolls if it is there.
func (t *Terminal) moveUp(n int) {
	row := t.row - n
	if t.row >= t.top && t.row <= t.last {
		row = min(max(row, t.top), t.last)
	}
	t.moveTo(row, t.col)
}

// show changes to the main screen or to the alternate one, which is empty then.
func (t *Terminal) show(alternate bool) {
	switch {
	case alternate && t.page == &t.screens[0]:
		t.page = &t.screens[1]
		t.erase(0, t.Rows)
	case !alternate:
		t.page = &t.screens[0]
	}
	t.wraps = false
}

func (t *Terminal) save() { t.page.saved = t.place }

func (t *Terminal) restore() { t.place = t.page.saved }
