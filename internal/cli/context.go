package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

const contextHelp = `Show how the context window of a session's model is used, as a bar and in tokens.
The numbers below the bar mark the thresholds at which the older part of the session
is summarised; "abide compact" summarises it now.

The total is the provider's count for the last request plus an estimate of everything
since; without a count, all of it is an estimate. The parts are always estimates.`

func (a *app) contextCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "context SESSION",
		Short:   "Show how the context window of a session is used",
		Long:    contextHelp,
		Example: "  abide context 0198c2f1\n  abide context 0198c2f1 --json | jq .currentTokens",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			r, err := c.Context(cmd.Context(), info.SessionID)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(struct {
					SessionID event.SessionID `json:"sessionId"`
					api.ContextResult
				}{info.SessionID, r})
			}
			s := windowView{r: r, paint: paint(a.out), maxWidth: width(a.out)}
			return a.out.buffered(func(w io.Writer) error { return s.write(w, info.SessionID) })
		})
	}
	return c
}

// A windowView draws the context window of a session.
type windowView struct {
	r        api.ContextResult
	paint    painter
	maxWidth int // maximum number of columns; zero means no limit
}

// A part is a kind of content that uses tokens of the window.
type part struct {
	key    string // character of the part in a bar without colours
	colour style  // colour of the part in a bar with colours
	name   string
	tokens int
}

// parts returns the parts of the window, in the order of a request.
func (s windowView) parts() []part {
	r := s.r
	list := []part{
		{"y", "\x1b[34m", "system prompt", r.SystemTokens},
		{"t", "\x1b[36m", "tools", r.ToolDefinitionsTokens},
		{"s", "\x1b[35m", "summary", r.Summary},
		{"p", "\x1b[32m", "user messages", r.Asked},
		{"m", "\x1b[33m", "model messages", r.Answered},
		{"o", "\x1b[31m", "tool output", r.Gave},
		{"r", "\x1b[37m", "running state", r.Tail},
	}
	told := 0
	for _, p := range list {
		told += p.tokens
	}
	switch more := r.CurrentTokens - told; {
	case more > 0:
		list = append(list, part{"+", "\x1b[90m", "not attributed", more})
	case more < 0:
		shrink(list, told, r.CurrentTokens)
	}
	return append(list,
		part{"·", plainStyle, "free", max(0, r.TokenLimit-r.CurrentTokens)},
		part{"░", plainStyle, "reserved for answer", r.Reserved})
}

// shrink makes parts smaller in proportion, from one sum to another: the sizes of parts are
// estimates, and the provider has counted less.
func shrink(list []part, from, to int) {
	estimated, shown := 0, 0
	for i := range list {
		estimated += list[i].tokens
		upTo := int(int64(estimated) * int64(to) / int64(from))
		list[i].tokens = upTo - shown
		shown = upTo
	}
}

// block returns the character that stands for a part in the bar.
func (s windowView) block(p part) string {
	if s.paint.colours && p.colour != plainStyle {
		return "█"
	}
	return p.key
}

// scale returns the number of tokens that the whole bar stands for: the size of the
// window, or the number of tokens in it if that is greater.
func (s windowView) scale() int { return max(1, s.r.Window, s.r.CurrentTokens+s.r.Reserved) }

// cell returns the column of the bar at which a number of tokens ends.
func (s windowView) cell(tokens, cells int) int {
	return int((int64(tokens)*int64(cells) + int64(s.scale())/2) / int64(s.scale()))
}

// bar draws the window as a bar with a number of columns.
func (s windowView) bar(cells int) string {
	var b strings.Builder
	sum, at := 0, 0
	for _, p := range s.parts() {
		sum += p.tokens
		end := min(cells, s.cell(sum, cells))
		b.WriteString(s.paint.in(p.colour, strings.Repeat(s.block(p), end-at)))
		at = end
	}
	return b.String()
}

// A threshold is a number of tokens above which something happens.
type threshold struct {
	name   string
	tokens int // zero if the threshold is off
	what   string
}

// thresholds returns the thresholds that apply, the lowest first, and those that are
// off.
func (s windowView) thresholds() (on, off []threshold) {
	all := []threshold{
		{"before a turn", s.r.BeforeRun, "compacted first, if a turn begins above it (compact_threshold)"},
		{"background", s.r.Ahead, "compacted in the background while the turn continues"},
		{"before a request", s.r.Between, "compacted first (compact_request_threshold)"},
		{"request limit", s.r.TokenLimit, "the window minus the reserve for the answer: always compacted first"},
	}
	for _, t := range all {
		if t.tokens > 0 {
			on = append(on, t)
		} else {
			off = append(off, t)
		}
	}
	slices.SortStableFunc(on, func(a, b threshold) int { return cmp.Compare(a.tokens, b.tokens) })
	return on, off
}

// marks returns the line below the bar: the number of each threshold, below the last
// column that is within it. If that column is taken, the number moves to the right.
func (s windowView) marks(on []threshold, cells int) string {
	line := []byte(strings.Repeat(" ", cells))
	next := 0
	for i, t := range on {
		at := max(next, s.cell(t.tokens, cells)-1)
		if at >= cells {
			break
		}
		line[at], next = '1'+byte(i), at+1
	}
	return strings.TrimRight(string(line), " ")
}

// The width of the bar without a terminal, and its maximum width.
const (
	usualBar = 72
	mostBar  = 100
)

func (s windowView) write(w io.Writer, id event.SessionID) error {
	cells := usualBar
	if s.maxWidth > 0 {
		cells = min(s.maxWidth, mostBar)
	}
	if err := s.title(w, id); err != nil {
		return err
	}
	on, off := s.thresholds()
	if _, err := fmt.Fprintf(w, "\n%s\n%s\n\n", s.bar(cells), s.paint.in(faint, s.marks(on, cells))); err != nil {
		return err
	}
	if err := s.table(w); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return s.limits(w, on, off)
}

// title prints the state of the window in words.
func (s windowView) title(w io.Writer, id event.SessionID) error {
	epoch := "never compacted"
	if s.r.EpochID != "" {
		epoch = fmt.Sprintf("epoch %d", s.r.Epoch)
	}
	var lines []string
	for _, line := range s.folded(plain(fmt.Sprintf("session %s  %s  %s", id, epoch, cmp.Or(oneLine(s.r.Model), "no model yet")))) {
		lines = append(lines, s.paint.in(bold, line))
	}
	said := fmt.Sprintf("%s of %s tokens used (%s), %s", grouped(s.r.CurrentTokens), grouped(s.r.Window), s.share(s.r.CurrentTokens), source(s.r.Source))
	lines = append(lines, s.folded(said)...)
	if over := s.r.CurrentTokens - s.r.TokenLimit; over > 0 {
		lines = append(lines, s.folded(fmt.Sprintf("that is %s more than a request can have: the session will be compacted before the next one", grouped(over)))...)
	}
	if s.r.Pruned > 0 {
		lines = append(lines, s.folded(fmt.Sprintf("%s tokens of old tool output are left out of requests", grouped(s.r.Pruned)))...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func (s windowView) clipped(text string) string {
	if s.maxWidth == 0 {
		return text
	}
	return clip(text, s.maxWidth-1) // one column is for the key before the text
}

func (s windowView) folded(text string) []string {
	if s.maxWidth == 0 {
		return []string{text}
	}
	return fold(text, s.maxWidth)
}

// source returns in words where the numbers come from.
func source(of string) string {
	if of == "usage" {
		return "counted by the provider, plus an estimate of everything since"
	}
	return "estimated from the length of the text"
}

func (s windowView) share(tokens int) string {
	return fmt.Sprintf("%.1f%%", 100*float64(tokens)/float64(s.scale()))
}

// table prints the parts with their characters in the bar.
func (s windowView) table(w io.Writer) error {
	row := func(key, name, tokens, share string) string {
		return key + s.clipped(fmt.Sprintf("  %-19s  %*s  %6s", name, len(grouped(s.scale())), tokens, share))
	}
	lines := []string{s.paint.in(faint, row(" ", "PART", "TOKENS", "SHARE"))}
	for _, p := range s.parts() {
		lines = append(lines, row(s.paint.in(p.colour, s.block(p)), p.name, grouped(p.tokens), s.share(p.tokens)))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// limits prints the thresholds with their numbers below the bar.
func (s windowView) limits(w io.Writer, on, off []threshold) error {
	t := &table{head: []string{" ", "THRESHOLD", "TOKENS", "ABOVE IT"}, wrap: true}
	for i, l := range on {
		t.add(strconv.Itoa(i+1), l.name, grouped(l.tokens), l.what)
	}
	for _, l := range off {
		t.add(" ", l.name, "off", l.what)
	}
	return t.write(w, s.paint, s.maxWidth)
}

// grouped returns a number with commas between groups of three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
