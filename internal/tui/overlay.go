package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/tui/text"
)

// An overlay takes the whole terminal and all keys until it is closed.
type overlay interface {
	// key handles a key, and typed text if the key is one. It reports true when the overlay
	// is to be closed.
	key(c *chat, key, typed string) (tea.Cmd, bool)
	// lines returns what is shown.
	lines(columns, rows int) []text.Line
}

// page opens an overlay.
func (c *chat) page(o overlay) tea.Cmd {
	c.overlay = o
	return nil
}

// A pager shows lines that can be scrolled and searched.
type pager struct {
	title string
	body  []text.Line
	top   int // row that is shown first
	rows  int // rows of the last frame

	earlier func() tea.Cmd // reads what is before the first line; nil if there is nothing
	loading bool
	query   []rune
	asking  bool // true while the query is typed
	width   int
	broken  []text.Line // the body as it fits into the width
	atEnd   bool
}

func newPager(title string, body []text.Line) *pager { return &pager{title: title, body: body} }

func (p *pager) key(c *chat, key, typed string) (tea.Cmd, bool) {
	if p.asking {
		return p.ask(key, typed)
	}
	page := max(1, p.rows-2)
	switch key {
	case "q", "esc", "ctrl+c", "ctrl+o", "ctrl+d":
		return nil, true
	case "up", "k":
		p.top--
	case "down", "j", "enter":
		p.top++
	case "pgup", "b", "ctrl+b":
		p.top -= page
	case "pgdown", "space", " ", "f", "ctrl+f":
		p.top += page
	case "home", "g":
		p.top = 0
	case "end", "G", "shift+g":
		p.top = len(p.broken)
	case "/":
		p.asking, p.query = true, nil
		return nil, false
	case "n":
		p.find(p.top + 1)
	}
	p.clamp()
	if p.top < page && p.earlier != nil && !p.loading {
		p.loading = true
		return p.earlier(), false
	}
	return nil, false
}

// ask handles a key while the query is typed.
func (p *pager) ask(key, typed string) (tea.Cmd, bool) {
	switch key {
	case "esc", "ctrl+c":
		p.asking, p.query = false, nil
	case "enter":
		p.asking = false
		p.find(p.top)
	case "backspace":
		p.query = p.query[:max(0, len(p.query)-1)]
	default:
		p.query = append(p.query, []rune(typed)...)
	}
	return nil, false
}

// find moves to the next line with the query.
func (p *pager) find(from int) {
	query := strings.ToLower(string(p.query))
	for i := range p.broken {
		at := (max(from, 0) + i) % len(p.broken)
		if query != "" && strings.Contains(strings.ToLower(p.broken[at].String()), query) {
			p.top = at
			return
		}
	}
}

func (p *pager) clamp() { p.top = max(0, min(p.top, len(p.broken)-max(1, p.rows-1))) }

// prepend adds what is before the first line, without moving what is shown.
func (p *pager) prepend(lines []text.Line, earlier func() tea.Cmd) {
	before := len(p.broken)
	p.body = append(append([]text.Line(nil), lines...), p.body...)
	p.fit(p.width)
	p.top += len(p.broken) - before
	p.earlier, p.loading = earlier, false
}

// fit breaks the body for a width.
func (p *pager) fit(columns int) {
	p.width = columns
	p.broken = nil
	for _, l := range p.body {
		p.broken = append(p.broken, l.Break(columns)...)
	}
}

func (p *pager) lines(columns, rows int) []text.Line {
	if columns != p.width {
		p.fit(columns)
	}
	p.rows = rows
	if p.atEnd {
		p.top, p.atEnd = len(p.broken), false
	}
	p.clamp()
	end := min(len(p.broken), p.top+max(rows-1, 1))
	shown := append([]text.Line(nil), p.broken[p.top:end]...)
	for len(shown) < rows-1 {
		shown = append(shown, nil)
	}
	foot := p.title + " · " + "↑↓ PgUp PgDn · / search · q closes"
	switch {
	case p.asking:
		foot = "search: " + string(p.query)
	case p.loading:
		foot = p.title + " · reading"
	}
	return append(shown, bar(foot, columns, 1)...)
}

// A choice is an entry of a picker.
type choice struct {
	label  text.Line
	search string // text that a filter looks at
	value  any
}

// A picker lets a person choose one of several entries.
type picker struct {
	title   string
	choices []choice
	filter  []rune
	at      int
	pick    func(c *chat, value any) tea.Cmd
	// keys are further keys that do something with the chosen entry.
	keys map[string]func(c *chat, value any) (tea.Cmd, bool)
	hint string
	// preview returns lines about the entry below the list; nil if there is none.
	preview  func(value any) []text.Line
	filters  bool                                // true if typed text filters the entries
	refilter func(c *chat, query string) tea.Cmd // looks for further entries; may be nil
}

// matches returns the entries that the filter leaves.
func (p *picker) matches() []choice {
	words := strings.Fields(strings.ToLower(string(p.filter)))
	var found []choice
	for _, ch := range p.choices {
		hay, ok := strings.ToLower(ch.search), true
		for _, w := range words {
			ok = ok && strings.Contains(hay, w)
		}
		if ok {
			found = append(found, ch)
		}
	}
	return found
}

func (p *picker) key(c *chat, key, typed string) (tea.Cmd, bool) {
	found := p.matches()
	switch key {
	case "esc", "ctrl+c":
		return nil, true
	case "up", "ctrl+p":
		p.at--
	case "down", "ctrl+n":
		p.at++
	case "pgup":
		p.at -= 10
	case "pgdown":
		p.at += 10
	case "backspace":
		p.filter = p.filter[:max(0, len(p.filter)-1)]
		return p.changed(c), false
	case "enter":
		if len(found) == 0 || p.pick == nil {
			return nil, false
		}
		return p.pick(c, found[p.at].value), true
	default:
		if do := p.keys[key]; do != nil && len(found) > 0 {
			return do(c, found[p.at].value)
		}
		if p.filters && typed != "" {
			p.filter = append(p.filter, []rune(typed)...)
			p.at = 0
			return p.changed(c), false
		}
	}
	p.at = max(0, min(p.at, len(p.matches())-1))
	return nil, false
}

// changed looks for further entries after the filter has changed.
func (p *picker) changed(c *chat) tea.Cmd {
	p.at = max(0, min(p.at, len(p.matches())-1))
	if p.refilter == nil {
		return nil
	}
	return p.refilter(c, string(p.filter))
}

func (p *picker) lines(columns, rows int) []text.Line {
	found := p.matches()
	p.at = max(0, min(p.at, len(found)-1))
	head := text.Line{{Text: p.title, Style: text.Style{Bold: true}}}
	if p.filters {
		head = append(head, text.Span{Text: "  " + text.Clean(string(p.filter)) + "▌", Style: text.Style{Colour: text.Cyan}})
	}
	lines := []text.Line{head.Cut(columns)}
	var preview []text.Line
	if p.preview != nil && len(found) > 0 {
		for _, l := range p.preview(found[p.at].value) {
			preview = append(preview, l.Break(columns)...)
		}
		preview = preview[:min(len(preview), max(0, rows/3))]
	}
	foot := bar(p.hint, columns, min(2, rows/4))
	room := max(1, rows-1-len(foot)-len(preview))
	from := max(0, min(p.at-room/2, len(found)-room))
	for i := from; i < min(len(found), from+room); i++ {
		mark := text.Span{Text: "  "}
		if i == p.at {
			mark = text.Span{Text: "▸ ", Style: text.Style{Colour: text.Cyan, Bold: true}}
		}
		lines = append(lines, append(text.Line{mark}, found[i].label...).Cut(columns))
	}
	if len(found) == 0 {
		lines = append(lines, text.Styled("  nothing found", text.Style{Faint: true}))
	}
	for len(lines) < rows-len(foot)-len(preview) {
		lines = append(lines, nil)
	}
	return append(append(lines, preview...), foot...)
}

// bar returns the hint at the end of an overlay, over the whole width and in at most some
// rows.
func bar(hint string, columns, most int) []text.Line {
	style := text.Style{Reverse: true}
	lines := pack(strings.Split(text.Clean(hint), " · "), " · ", columns, style)
	if len(lines) > max(1, most) {
		lines = []text.Line{text.Styled(text.Clean(hint), style).Cut(columns)}
	}
	for i, l := range lines {
		lines[i] = append(l, text.Span{Text: strings.Repeat(" ", max(0, columns-l.Width())), Style: style})
	}
	return lines
}
