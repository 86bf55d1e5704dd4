package screen

const tabWidth = 8

// controlCharacter carries out a control character.
func (t *Terminal) controlCharacter(c byte) {
	switch c {
	case '\b':
		t.moveTo(t.row, t.col-1)
	case '\t':
		t.moveTo(t.row, (t.col/tabWidth+1)*tabWidth)
	case '\n', '\v', '\f':
		t.lineFeed()
	case '\r':
		t.moveTo(t.row, 0)
	case 0x0e, 0x0f: // the other set of characters, and back
		t.charset = int(0x0f - c)
	}
}

// escapeCommand carries out a command of one character after ESC.
func (t *Terminal) escapeCommand(c byte) {
	switch c {
	case '7':
		t.save()
	case '8':
		t.restore()
	case 'D':
		t.lineFeed()
	case 'E':
		t.col = 0
		t.lineFeed()
	case 'M':
		t.reverseLineFeed()
	case 'c':
		t.reset()
	}
}

// designate chooses a set of characters.
func (t *Terminal) designate(which, set byte) {
	switch which {
	case '(':
		t.charsets[0] = set == '0'
	case ')':
		t.charsets[1] = set == '0'
	}
}

// command carries out a command after ESC [. Those that are not known change no character.
func (t *Terminal) command(prefix, inter, c byte) {
	switch {
	case prefix == '?' && inter == 0 && (c == 'h' || c == 'l'):
		for _, mode := range t.params {
			t.setMode(mode, c == 'h')
		}
	case prefix == 0 && inter == '!' && c == 'p': // a soft reset
		t.top, t.last = 0, t.Rows-1
		t.noWrap, t.insert, t.hidden, t.application, t.origin = false, false, false, false, false
	case prefix == 0 && inter == 0:
		if !t.moveCommand(c) {
			t.changeCommand(c)
		}
	}
}

// moveCommand carries out a command that moves the cursor.
func (t *Terminal) moveCommand(c byte) bool {
	n := t.param(0, 1)
	switch c {
	case 'A':
		t.moveUp(n)
	case 'B', 'e':
		t.moveUp(-n)
	case 'C', 'a':
		t.moveTo(t.row, t.col+n)
	case 'D':
		t.moveTo(t.row, t.col-n)
	case 'E':
		t.moveUp(-n)
		t.col = 0
	case 'F':
		t.moveUp(n)
		t.col = 0
	case 'G', '`':
		t.moveTo(t.row, n-1)
	case 'H', 'f':
		t.moveToRow(n-1, t.param(1, 1)-1)
	case 'd':
		t.moveToRow(n-1, t.col)
	case 'I':
		t.moveTo(t.row, (t.col/tabWidth+n)*tabWidth)
	case 'Z':
		t.moveTo(t.row, ((t.col+tabWidth-1)/tabWidth-n)*tabWidth)
	case 's':
		t.save()
	case 'u':
		t.restore()
	default:
		return false
	}
	return true
}

// changeCommand carries out a command that changes characters, or how others do.
func (t *Terminal) changeCommand(c byte) {
	n := t.param(0, 1)
	switch c {
	case 'J':
		t.eraseScreen(t.param(0, 0))
	case 'K':
		t.eraseLine(t.param(0, 0))
	case 'X':
		t.eraseIn(t.col, t.col+n)
	case '@':
		t.shift(t.col, n)
	case 'P':
		t.shift(t.col, -n)
	case 'L', 'M':
		t.changeLines(n, c == 'M')
	case 'S':
		t.scroll(t.top, n)
	case 'T':
		t.scroll(t.top, -n)
	case 'b':
		for range min(n, t.Cols) { // no program fills more than a line with it
			if t.printed != 0 {
				t.print(t.printed)
			}
		}
	case 'r':
		t.setRegion(n-1, t.param(1, t.Rows)-1)
	case 'h', 'l':
		for _, mode := range t.params {
			if mode == 4 {
				t.insert = c == 'h'
			}
		}
	}
}

// changeLines deletes rows at the cursor, or inserts some.
func (t *Terminal) changeLines(n int, deletes bool) {
	if t.row < t.top || t.row > t.last {
		return
	}
	if !deletes {
		n = -n
	}
	t.scroll(t.row, n)
	t.moveTo(t.row, 0)
}

// setRegion sets the rows that scroll.
func (t *Terminal) setRegion(top, last int) {
	last = min(last, t.Rows-1)
	if top < last {
		t.top, t.last = top, last
		t.moveToRow(0, 0)
	}
}

// eraseScreen erases the screen: from the cursor on, up to the cursor, or all of it.
func (t *Terminal) eraseScreen(what int) {
	switch what {
	case 0:
		t.eraseIn(t.col, t.Cols)
		t.erase(t.row+1, t.Rows)
	case 1:
		t.erase(0, t.row)
		t.eraseIn(0, t.col+1)
	case 2, 3:
		t.erase(0, t.Rows)
	}
}

// eraseLine erases the row of the cursor: from the cursor on, up to it, or all of it.
func (t *Terminal) eraseLine(what int) {
	switch what {
	case 0:
		t.eraseIn(t.col, t.Cols)
	case 1:
		t.eraseIn(0, t.col+1)
	case 2:
		t.eraseIn(0, t.Cols)
	}
}

// setMode sets or resets a private mode.
func (t *Terminal) setMode(mode int, set bool) {
	switch mode {
	case 1:
		t.application = set
	case 6:
		t.origin = set
		t.moveToRow(0, 0)
	case 7:
		t.noWrap = !set
	case 25:
		t.hidden = !set
	case 47, 1047:
		t.show(set)
	case 1048:
		t.saveOrRestore(set)
	case 1049: // the cursor is that of the main screen
		if !set {
			t.show(false)
			t.restore()
			return
		}
		if t.page == &t.screens[0] {
			t.save()
		}
		t.show(true)
	}
}

func (t *Terminal) saveOrRestore(save bool) {
	if save {
		t.save()
		return
	}
	t.restore()
}
