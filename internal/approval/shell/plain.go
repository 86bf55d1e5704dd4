package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Plain is a script in a small closed language: simple commands of literal words,
// joined by |, &&, ||, ; and newlines, with redirections of the standard streams.
//
//   - Whatever is not listed here is refused with a [NotPlain]: assignments, expansions,
//     patterns, braces, tildes, comments, groups, loops, functions, here-documents,
//     background commands, negation, control characters.
//   - Its words are what bash passes to the programs, byte for byte.
//   - String writes it again with every word quoted. What was judged is run in that form,
//     so that the text that somebody else wrote never reaches a shell.
//
// The reader is written by hand. A closed language is small enough for that, and what the
// reader does not know it refuses; a filter over the tree of a complete parser would have
// to know everything that the parser can return, and where bash reads the same bytes
// differently.
type Plain struct{ commands []Simple }

// A Simple is a simple command: a program, or a builtin of the shell, with its arguments.
type Simple struct {
	Joint     string   // sign before the command: |, &&, || or ; and none before the first
	Words     []string // words of the command, at least one
	Redirects []Redirect
}

// A Redirect redirects one of the standard streams.
type Redirect struct {
	FD int    // 0, 1 or 2
	Op string // <, >, >> or >&
	To string // path of a file; 1 or 2 if the stream goes where that stream goes (>&)
}

// Commands returns the commands of the script in order. Callers must not change them.
func (p *Plain) Commands() []Simple { return p.commands }

// Dir returns the folder that the script changes to before everything else, as in
// cd folder && make, or "". If that fails, commands after || and ; run where the script
// was started.
func (p *Plain) Dir() string {
	if c := p.commands[0]; c.Words[0] == "cd" {
		return c.Words[1]
	}
	return ""
}

// String returns the script with every word quoted.
func (p *Plain) String() string {
	var b strings.Builder
	for _, c := range p.commands {
		switch c.Joint {
		case "":
		case ";":
			b.WriteString("; ")
		default:
			b.WriteString(" " + c.Joint + " ")
		}
		b.WriteString(c.String())
	}
	return b.String()
}

// String returns the command with every word quoted, without its joint.
func (c Simple) String() string {
	parts := make([]string, 0, len(c.Words)+len(c.Redirects))
	for _, w := range c.Words {
		parts = append(parts, Quote(w))
	}
	for _, r := range c.Redirects {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, " ")
}

// String returns the redirection as bash reads it.
func (r Redirect) String() string {
	if r.Op == ">&" {
		return strconv.Itoa(r.FD) + r.Op + r.To
	}
	return strconv.Itoa(r.FD) + r.Op + Quote(r.To)
}

// Quote returns a word in single quotes, which every shell reads as the word itself.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// A NotPlain says what a script has that the closed language has not.
type NotPlain struct {
	What         string // description for people, such as "an expansion ($HOME)"
	Line, Column int    // position from 1 on; the column counts characters
}

func (e *NotPlain) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("%s at line %d, column %d", e.What, e.Line, e.Column)
	}
	return fmt.Sprintf("%s at column %d", e.What, e.Column)
}

// Plain reads the script in the closed language. An & at its end is not a part of it.
func (s *Script) Plain() (*Plain, error) {
	if s.err == ErrTooLong {
		return nil, s.err
	}
	text, _ := s.Foreground()
	return ReadPlain(text)
}

// ReadPlain reads a script in the closed language. The error says what is not understood
// and where.
func ReadPlain(text string) (*Plain, error) {
	if len(text) > maxScript {
		return nil, ErrTooLong
	}
	r := &plainReader{text: text}
	if err := r.checkCharacters(); err != nil {
		return nil, err
	}
	if err := r.readScript(); err != nil {
		return nil, err
	}
	return &Plain{r.commands}, nil
}

// A plainReader reads a script from its start to its end, without ever going back.
type plainReader struct {
	text     string
	at       int // position of the next byte
	commands []Simple
}

// refuse returns the error for what stands at a position.
func (r *plainReader) refuse(at int, what string) error {
	before := r.text[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	return &NotPlain{what, strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1}
}

// IsInvisible reports whether a person does not see a character, or sees others in another
// order because of it.
func IsInvisible(c rune) bool {
	const fillers = "\u115f\u1160\u3164\uffa0"
	return unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp) || strings.ContainsRune(fillers, c)
}

// checkCharacters refuses characters that a shell, a terminal or a person may read
// differently: control characters, among them CR and NUL, and invalid UTF-8.
func (r *plainReader) checkCharacters() error {
	for i, c := range r.text {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(r.text[i:], "\uFFFD"):
			return r.refuse(i, "a byte that is not UTF-8")
		case c == '\r':
			return r.refuse(i, "a carriage return")
		case c != '\n' && c != '\t' && unicode.IsControl(c):
			return r.refuse(i, fmt.Sprintf("a control character (%U)", c))
		case IsInvisible(c):
			return r.refuse(i, fmt.Sprintf("a character that nobody sees (%U)", c))
		}
	}
	return nil
}

// next returns the next byte, or 0 at the end.
func (r *plainReader) next() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

// accept moves over a text if it is next.
func (r *plainReader) accept(text string) bool {
	if !strings.HasPrefix(r.text[r.at:], text) {
		return false
	}
	r.at += len(text)
	return true
}

// skip moves over these bytes, and over a backslash at the end of a line if nothing but
// a blank stands before it.
func (r *plainReader) skip(bytes string) {
	for r.at < len(r.text) {
		switch {
		case strings.IndexByte(bytes, r.next()) >= 0:
			r.at++
		case strings.HasPrefix(r.text[r.at:], "\\\n") && r.at > 0 && isBlank(r.text[r.at-1]):
			r.at += 2
		default:
			return
		}
	}
}

// follows reports whether one of these bytes stands directly before the next one.
func (r *plainReader) follows(bytes string) bool {
	return r.at > 0 && strings.IndexByte(bytes, r.text[r.at-1]) >= 0
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// Bytes that are skipped: within a line, and where lines may end.
const (
	blanks   = " \t"
	newlines = " \t\n"
)

// ends are the bytes that end a word.
const ends = " \t\n;|&<>"

func (r *plainReader) readScript() error {
	joint := ""
	for r.skip(newlines); ; r.skip(newlines) {
		if r.at == len(r.text) && joint == ";" {
			return nil
		}
		if err := r.readCommand(joint); err != nil {
			return err
		}
		if r.at == len(r.text) {
			return nil
		}
		if joint = r.readJoint(); joint == "" {
			return r.refuse(r.at, "a command in the background (&)")
		}
	}
}

// readJoint reads what joins two commands. It returns "" for anything else.
func (r *plainReader) readJoint() string {
	for _, joint := range []string{"&&", "||", "|", ";"} {
		if r.accept(joint) {
			return joint
		}
	}
	if r.accept("\n") {
		return ";"
	}
	return ""
}

// readCommand reads a command up to the end of the text or of the command.
func (r *plainReader) readCommand(joint string) error {
	c := Simple{Joint: joint}
	start := r.at
	for {
		r.skip(blanks)
		var err error
		switch {
		case r.next() == '<', r.next() == '>':
			err = r.readRedirect(&c, -1)
		case strings.HasPrefix(r.text[r.at:], "&>") && !r.follows(";|"): // bash reads ;& and |& as one sign
			err = r.readRedirectBoth(&c)
		case r.at == len(r.text), strings.IndexByte(ends, r.next()) >= 0:
			if len(c.Words) == 0 {
				return r.refuse(start, "a command without a name")
			}
			if c.Words[0] == "cd" && !r.understandsCD(c) {
				return r.refuse(start, "cd other than at the start, as in cd folder &&")
			}
			r.commands = append(r.commands, c)
			return nil
		default:
			err = r.readArgument(&c)
		}
		if err != nil {
			return err
		}
	}
}

// understandsCD reports whether cd comes first and changes to a plain folder for all that
// comes after &&. A folder with .. is not plain: cd takes it by name, and not as the
// system does.
func (r *plainReader) understandsCD(c Simple) bool {
	alone := len(r.commands) == 0 && len(c.Words) == 2 && len(c.Redirects) == 0
	rest := r.text[r.at:]
	return alone && !strings.HasPrefix(c.Words[1], "-") && c.Words[1] != "" && !slices.Contains(strings.Split(c.Words[1], "/"), "..") &&
		(strings.HasPrefix(rest, "&&") || strings.Trim(rest, newlines+";") == "")
}

// readArgument reads a word of a command, or the number before a redirection.
func (r *plainReader) readArgument(c *Simple) error {
	start := r.at
	w, bare, err := r.readWord()
	if err != nil {
		return err
	}
	if isNumber(w) && (r.next() == '<' || r.next() == '>') {
		if !bare || len(w) > 1 || w > "2" {
			return r.refuse(start, "a redirection of another stream ("+w+")")
		}
		return r.readRedirect(c, int(w[0]-'0'))
	}
	if len(c.Words) == 0 {
		if what := misleading(w); what != "" {
			return r.refuse(start, what)
		}
	}
	c.Words = append(c.Words, w)
	return nil
}

func isNumber(w string) bool { return w != "" && strings.Trim(w, "0123456789") == "" }

// keywords are the words that begin something else than a simple command. Quoted, they
// would be names of programs; nobody needs that.
var keywords = []string{"!", "[[", "]]", "{", "}", "{}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
	"function", "if", "in", "select", "then", "time", "until", "while"}

// IsKeyword reports whether a word begins something else than a simple command, and is the
// name of no program either.
func IsKeyword(w string) bool { return w != "time" && slices.Contains(keywords, w) }

// changing are the builtins that change the shell, and with it what later commands do, or
// that read their arguments as a script, a variable with a subscript or a number to
// calculate. The other builtins do what programs of their name do.
var changing = []string{".", "alias", "bg", "bind", "break", "builtin", "caller", "chdir", "compgen", "complete", "compopt", "continue", "declare",
	"dirs", "disown", "enable", "eval", "exec", "export", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "let", "local", "logout",
	"mapfile", "popd", "pushd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "times", "trap",
	"typeset", "ulimit", "umask", "unalias", "unset", "wait"}

// misleading says why a word cannot be the first of a command. It returns "" if it can.
func misleading(w string) string {
	switch {
	case w == "", w == Unknown:
		return "a command without a name"
	case slices.Contains(keywords, w):
		return "a keyword of the shell (" + w + ")"
	case strings.ContainsAny(w[:1], "-+%"): // %1 is fg %1 for bash
		return "an option in the place of a command"
	case slices.Contains(changing, w):
		return "a builtin that changes the shell (" + w + ")"
	case strings.Contains(w, "="):
		return "an assignment (" + excerpt(w) + ")"
	}
	return ""
}

// readRedirect reads < > >> >& and what follows, for the stream fd, or for the one that
// the operator is about if fd is negative.
func (r *plainReader) readRedirect(c *Simple, fd int) error {
	start := r.at
	op := ""
	for _, o := range []string{">>", ">&", ">", "<"} {
		if r.accept(o) {
			op = o
			break
		}
	}
	out := op != "<"
	if fd < 0 && out {
		fd = 1
	}
	fd = max(fd, 0)
	if out != (fd > 0) {
		return r.refuse(start, "a redirection of another stream")
	}
	if op != ">&" {
		return r.readTarget(c, fd, op, start)
	}
	to := r.next()
	if r.at++; to != '1' && to != '2' || r.at < len(r.text) && strings.IndexByte(" \t\n;|&", r.next()) < 0 {
		return r.refuse(start, "a redirection other than >, >>, <, &> and 2>&1")
	}
	c.Redirects = append(c.Redirects, Redirect{fd, op, string(to)})
	return nil
}

// readRedirectBoth reads &> or &>> and a path.
func (r *plainReader) readRedirectBoth(c *Simple) error {
	start := r.at
	op := ">"
	if !r.accept("&>>") {
		r.at += len("&>")
	} else {
		op = ">>"
	}
	if err := r.readTarget(c, 1, op, start); err != nil {
		return err
	}
	c.Redirects = append(c.Redirects, Redirect{2, ">&", "1"})
	return nil
}

// readTarget reads the path of a redirection.
func (r *plainReader) readTarget(c *Simple, fd int, op string, start int) error {
	if strings.IndexByte("<>&|(", r.next()) >= 0 {
		return r.refuse(start, "a redirection other than >, >>, <, &> and 2>&1")
	}
	r.skip(blanks)
	path, _, err := r.readWord()
	if err != nil {
		return err
	}
	if path == "" || r.next() == '<' || r.next() == '>' {
		return r.refuse(start, "a redirection without a plain path")
	}
	c.Redirects = append(c.Redirects, Redirect{fd, op, path})
	return nil
}

// readWord reads a word without its quotes. It also reports whether the word has none.
func (r *plainReader) readWord() (word string, bare bool, err error) {
	var b strings.Builder
	start := r.at
	bare = true
	for r.at < len(r.text) && strings.IndexByte(ends, r.next()) < 0 {
		switch r.next() {
		case '\'':
			bare, err = false, r.readSingleQuoted(&b)
		case '"':
			bare, err = false, r.readDoubleQuoted(&b)
		case '\\':
			bare, err = false, r.readEscaped(&b)
		default:
			err = r.readBare(&b, start)
		}
		if err != nil {
			return "", false, err
		}
	}
	return b.String(), bare, nil
}

func (r *plainReader) readSingleQuoted(b *strings.Builder) error {
	inside, _, closed := strings.Cut(r.text[r.at+1:], "'")
	if !closed {
		return r.refuse(r.at, "a quote (') that is not closed")
	}
	b.WriteString(inside)
	r.at += len(inside) + 2
	return nil
}

// readDoubleQuoted reads a text in which a backslash quotes only $ ` " and itself.
func (r *plainReader) readDoubleQuoted(b *strings.Builder) error {
	start := r.at
	for r.at++; r.at < len(r.text); r.at++ {
		c := r.next()
		switch c {
		case '"':
			r.at++
			return nil
		case '`', '$':
			if c == '`' || !r.dollarIsLiteral() {
				return r.refuse(r.at, "an expansion ("+excerpt(r.text[r.at:])+")")
			}
		case '\\':
			if r.at+1 < len(r.text) && r.text[r.at+1] == '\n' {
				return r.refuse(r.at, "a line that goes on inside a quote")
			}
			if r.at+1 < len(r.text) && strings.IndexByte("$`\"\\", r.text[r.at+1]) >= 0 {
				r.at++
				c = r.next()
			}
		}
		b.WriteByte(c)
	}
	return r.refuse(start, `a quote (") that is not closed`)
}

// dollarIsLiteral reports whether the $ in double quotes stands for itself, as at the end
// of a regular expression.
func (r *plainReader) dollarIsLiteral() bool {
	return r.at+1 < len(r.text) && strings.IndexByte("\" |)", r.text[r.at+1]) >= 0
}

// readEscaped reads a character after a backslash.
func (r *plainReader) readEscaped(b *strings.Builder) error {
	if r.at+1 == len(r.text) || r.text[r.at+1] == '\n' {
		return r.refuse(r.at, "a backslash inside a word at the end of a line")
	}
	_, width := utf8.DecodeRuneInString(r.text[r.at+1:])
	b.WriteString(r.text[r.at+1 : r.at+1+width])
	r.at += 1 + width
	return nil
}

// readBare reads a character without quotes, if it stands for itself. The word began at
// start.
func (r *plainReader) readBare(b *strings.Builder, start int) error {
	rest := r.text[r.at:]
	c, width := utf8.DecodeRuneInString(rest)
	switch {
	case unicode.IsLetter(c), unicode.IsDigit(c), strings.ContainsRune("_-+=,./:@%^!]", c):
	case c == '#' && r.at > start:
	case c == '~' && r.at > start && followsName(r.text[r.at-1]):
	case c == '[' && r.at == start && endsAfter(rest, 1):
	case c == '{' && r.at == start && strings.HasPrefix(rest, "{}") && endsAfter(rest, 2):
		width = len("{}")
	case c == '{' && r.at > start && r.text[r.at-1] == '@' && revision(rest) > 0:
		width = revision(rest)
	default:
		return r.refuse(r.at, describe(c, rest))
	}
	b.WriteString(rest[:width])
	r.at += width
	return nil
}

// followsName reports whether a tilde after this byte stands for itself, as in HEAD~1. At
// the start of a word and after = and : the shell replaces it.
func followsName(c byte) bool {
	return c < utf8.RuneSelf && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)) || strings.IndexByte("_-./^~", c) >= 0)
}

// endsAfter reports whether a word ends after n bytes.
func endsAfter(rest string, n int) bool {
	return len(rest) == n || strings.IndexByte(" \t\n;|&", rest[n]) >= 0
}

// revision returns the length of a part in braces without a comma and dots, as in
// stash@{0}, which no shell expands, or 0.
func revision(rest string) int {
	inside, _, closed := strings.Cut(rest[1:], "}")
	isOther := func(c rune) bool { return c >= utf8.RuneSelf || !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	if !closed || inside == "" || strings.ContainsFunc(inside, isOther) {
		return 0
	}
	return len(inside) + 2
}

// describe says what a character without quotes begins.
func describe(c rune, rest string) string {
	switch c {
	case '$', '`':
		return "an expansion (" + excerpt(rest) + ")"
	case '*', '?', '[':
		return "a pattern for file names (" + string(c) + ")"
	case '{', '}':
		return "a brace (" + string(c) + ")"
	case '(', ')':
		return "a parenthesis (" + string(c) + ")"
	case '~':
		return "a home directory (~)"
	case '#':
		return "a comment (#)"
	}
	return fmt.Sprintf("a character without quotes (%U)", c)
}

// excerpt returns the start of a text up to a blank, for a message.
func excerpt(text string) string {
	const most = 20
	end := strings.IndexAny(text, " \t\n\"';|&<>")
	if end < 0 {
		end = len(text)
	}
	text = text[:end]
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most]) + "…"
	}
	return text
}
