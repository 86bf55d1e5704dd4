package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A parser finds the characters and commands in output.
type parser struct {
	state  state
	prefix byte   // the character before the parameters of a command, as in ESC [ ? 25 h
	inter  byte   // the character before the last of a command, as in ESC ( B
	params []int  // -1 for one that is missing
	data   []byte // the text of a title; the bytes of a character that is not complete
}

// A state is what a parser has seen the start of.
type state int

const (
	ground  state = iota // nothing
	escape               // ESC
	control              // ESC [
	system               // ESC ], whose text is kept
	ignored              // ESC P and the like, whose text is not
	ending               // ESC within one of these texts
)

const (
	maxParams = 16 // parameters of a command; further ones are ignored
	maxParam  = 1 << 16
	maxTitle  = 200 // characters of a title
	maxData   = 4 * maxTitle
)

// take takes the next byte of the output.
func (p *parser) take(t *Terminal, c byte) {
	switch {
	case p.state == ground && c >= 0x80:
		p.takeRune(t, c)
		return
	case p.state == ground && len(p.data) > 0: // a character that was not completed
		p.data = p.data[:0]
		t.print(utf8.RuneError)
	}
	switch {
	case p.state >= system:
		p.takeText(t, c)
	case c == 0x18 || c == 0x1a: // these cancel a command
		p.state = ground
	case c == 0x1b:
		p.begin(escape)
	case c < ' ':
		t.controlCharacter(c)
	case c == 0x7f:
	case p.state == ground:
		t.print(rune(c))
	case p.state == escape:
		p.takeEscape(t, c)
	case c < 0x80:
		p.takeControl(t, c)
	}
}

func (p *parser) begin(s state) {
	p.state, p.prefix, p.inter, p.params, p.data = s, 0, 0, p.params[:0], p.data[:0]
}

// takeRune takes a byte of a character that is not ASCII.
func (p *parser) takeRune(t *Terminal, c byte) {
	if len(p.data) > 0 && utf8.RuneStart(c) { // the last character was not completed
		p.data = p.data[:0]
		t.print(utf8.RuneError)
	}
	p.data = append(p.data, c)
	if !utf8.FullRune(p.data) {
		return
	}
	r, _ := utf8.DecodeRune(p.data)
	p.data = p.data[:0]
	if !unicode.IsControl(r) {
		t.print(r)
	}
}

// takeText takes a byte of a text that a command has, up to its end.
func (p *parser) takeText(t *Terminal, c byte) {
	switch {
	case p.state == ending:
		kept := p.data
		p.begin(escape)
		if c == '\\' {
			p.state = ground
			t.setTitle(kept)
			return
		}
		p.take(t, c) // the text was cut off by another command
	case c == 0x1b:
		if p.state == ignored {
			p.data = p.data[:0]
		}
		p.state = ending
	case c == 0x07 || c == 0x18 || c == 0x1a:
		kept, titled := p.data, p.state == system && c == 0x07
		p.begin(ground)
		if titled {
			t.setTitle(kept)
		}
	case p.state == system && len(p.data) < maxData:
		p.data = append(p.data, c)
	}
}

// takeEscape takes a byte after ESC.
func (p *parser) takeEscape(t *Terminal, c byte) {
	switch {
	case c < '0': // what follows is the last character
		p.inter = c
		return
	case p.inter != 0:
		t.designate(p.inter, c)
	case c == '[':
		p.begin(control)
		return
	case c == ']':
		p.begin(system)
		return
	case c == 'P' || c == 'X' || c == '^' || c == '_':
		p.begin(ignored)
		return
	default:
		t.escapeCommand(c)
	}
	p.state = ground
}

// takeControl takes a byte after ESC [.
func (p *parser) takeControl(t *Terminal, c byte) {
	switch {
	case c >= '0' && c <= '9':
		p.digit(int(c - '0'))
	case c == ';' || c == ':':
		if len(p.params) == 0 {
			p.params = append(p.params, -1)
		}
		if len(p.params) <= maxParams {
			p.params = append(p.params, -1)
		}
	case c >= '<' && c <= '?':
		p.prefix = c
	case c < '0':
		p.inter = c
	default:
		p.state = ground
		t.command(p.prefix, p.inter, c)
	}
}

func (p *parser) digit(d int) {
	if len(p.params) == 0 {
		p.params = append(p.params, -1)
	}
	last := &p.params[len(p.params)-1]
	*last = min(max(*last, 0)*10+d, maxParam)
}

// param returns a parameter, or a default for one that is missing or zero.
func (p *parser) param(i, otherwise int) int {
	if i >= len(p.params) || p.params[i] <= 0 {
		return otherwise
	}
	return p.params[i]
}

// setTitle sets the title from the text of a command, like "2;title".
func (t *Terminal) setTitle(data []byte) {
	kind, title, ok := strings.Cut(string(data), ";")
	if !ok || kind != "0" && kind != "2" {
		return
	}
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(title, string(utf8.RuneError))))
	t.title = string(runes[:min(len(runes), maxTitle)])
}
