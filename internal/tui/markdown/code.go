package markdown

import (
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/tui/text"
)

// A language is what is needed to tell words, comments and strings of a programming
// language apart. The scanner reads every byte once, whatever the text is: patterns that
// go back and forth could be made slow by what a model writes.
type language struct {
	keywords string   // separated by blanks
	comments []string // what begins a comment up to the end of the line
	open     string   // what begins a comment over several lines; empty if there is none
	end      string   // what ends it
	quotes   string   // characters around strings
	raw      string   // characters around strings that have no escapes and may have several lines
}

const cKeywords = "auto bool break case char class const constexpr continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while"

const jsKeywords = "abstract any as async await boolean break case catch class const continue declare default delete do else enum export extends false finally for from function if implements import in instanceof interface keyof let new null number of private protected public readonly return static string super switch this throw true try type typeof undefined unknown var void while yield"

// languages are the languages that are known, by the names of code blocks.
var languages = map[string]*language{
	"go":     {keywords: "any bool break byte case chan const continue default defer else error fallthrough false for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type uint64 var", comments: []string{"//"}, open: "/*", end: "*/", quotes: `"'`, raw: "`"},
	"python": {keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield", comments: []string{"#"}, quotes: `"'`},
	"js":     {keywords: jsKeywords, comments: []string{"//"}, open: "/*", end: "*/", quotes: `"'`, raw: "`"},
	"rust":   {keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while", comments: []string{"//"}, open: "/*", end: "*/", quotes: `"`},
	"c":      {keywords: cKeywords, comments: []string{"//"}, open: "/*", end: "*/", quotes: `"'`},
	"java":   {keywords: cKeywords + " abstract boolean byte extends final finally implements import instanceof interface null package super synchronized throws var catch", comments: []string{"//"}, open: "/*", end: "*/", quotes: `"'`},
	"sh":     {keywords: "case cd do done echo elif else esac exit export fi for function if in local return set then unset until while", comments: []string{"#"}, quotes: `"'`},
	"ruby":   {keywords: "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield", comments: []string{"#"}, quotes: `"'`},
	"json":   {keywords: "true false null", quotes: `"`},
	"yaml":   {keywords: "true false null yes no", comments: []string{"#"}, quotes: `"'`},
	"sql":    {keywords: "add all alter and as asc begin between by case commit count create cross delete desc distinct drop else end exists from group having in index inner insert into is join key left like limit not null on or order outer primary references right rollback select set table then union unique update values view when where with ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE COMMIT COUNT CREATE CROSS DELETE DESC DISTINCT DROP ELSE END EXISTS FROM GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER PRIMARY REFERENCES RIGHT ROLLBACK SELECT SET TABLE THEN UNION UNIQUE UPDATE VALUES VIEW WHEN WHERE WITH", comments: []string{"--"}, open: "/*", end: "*/", quotes: `'"`},
}

// aliases are other names of languages.
var aliases = map[string]string{
	"golang": "go", "py": "python", "python3": "python", "javascript": "js", "jsx": "js", "ts": "js", "typescript": "js", "tsx": "js", "rs": "rust",
	"cpp": "c", "c++": "c", "h": "c", "cc": "c", "hpp": "c", "cs": "java", "csharp": "java", "kotlin": "java", "kt": "java", "scala": "java", "swift": "java",
	"bash": "sh", "shell": "sh", "zsh": "sh", "console": "sh", "make": "sh", "makefile": "sh", "dockerfile": "sh", "rb": "ruby",
	"jsonc": "json", "json5": "json", "yml": "yaml", "toml": "yaml", "ini": "yaml", "conf": "yaml",
}

// The styles of code.
var (
	styleKeyword = text.Style{Colour: text.Magenta}
	styleString  = text.Style{Colour: text.Green}
	styleComment = text.Style{Faint: true}
	styleNumber  = text.Style{Colour: text.Cyan}
)

// Code returns the lines of a program text, highlighted if the language is known. The
// text must be clean. The beginning of a text looks the same however it goes on, except
// for its last line.
func Code(source, name string) []text.Line {
	source = strings.TrimSuffix(source, "\n")
	name = strings.ToLower(name)
	if name == "diff" || name == "patch" {
		return diffCode(source)
	}
	if other := aliases[name]; other != "" {
		name = other
	}
	l := languages[name]
	if l == nil {
		return text.Lines(source, text.Style{})
	}
	s := scanner{language: l, words: make(map[string]bool)}
	for word := range strings.FieldsSeq(l.keywords) {
		s.words[word] = true
	}
	var lines []text.Line
	for line := range strings.SplitSeq(source, "\n") {
		lines = append(lines, s.line(line))
	}
	return lines
}

// diffCode returns the lines of a diff in a code block.
func diffCode(source string) []text.Line {
	var lines []text.Line
	for line := range strings.SplitSeq(source, "\n") {
		style := text.Style{}
		switch {
		case strings.HasPrefix(line, "+"):
			style.Colour = text.Green
		case strings.HasPrefix(line, "-"):
			style.Colour = text.Red
		case strings.HasPrefix(line, "@@"):
			style.Colour = text.Cyan
		}
		lines = append(lines, text.Styled(line, style))
	}
	return lines
}

// A scanner highlights one line after the other.
type scanner struct {
	*language
	words  map[string]bool
	inside string // what ends the comment or string that an earlier line has begun; empty if there is none
}

// line returns a line with styles.
func (s *scanner) line(line string) text.Line {
	var out text.Line
	put := func(n int, style text.Style) {
		if n > 0 {
			out = append(out, text.Span{Text: line[:n], Style: style})
			line = line[n:]
		}
	}
	for line != "" {
		switch {
		case s.inside != "":
			style := styleComment
			if s.inside != s.end {
				style = styleString
			}
			n := strings.Index(line, s.inside)
			if n < 0 {
				put(len(line), style)
				return out
			}
			put(n+len(s.inside), style)
			s.inside = ""
		case slices.ContainsFunc(s.comments, func(c string) bool { return strings.HasPrefix(line, c) }):
			put(len(line), styleComment)
		case s.open != "" && strings.HasPrefix(line, s.open):
			put(len(s.open), styleComment)
			s.inside = s.end
		case strings.IndexByte(s.raw, line[0]) >= 0:
			s.inside = line[:1]
			put(1, styleString)
		case strings.IndexByte(s.quotes, line[0]) >= 0:
			put(quoted(line), styleString)
		default:
			n, style := s.token(line)
			put(n, style)
		}
	}
	return out
}

// quoted returns the length of the string at the beginning of a line. One that does not
// end on the line ends with it.
func quoted(line string) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case line[0]:
			return i + 1
		}
	}
	return len(line)
}

// token returns the length and the style of the word, number or sign at the beginning of
// a line.
func (s *scanner) token(line string) (int, text.Style) {
	n := 0
	for n < len(line) && isWord(line[n]) {
		n++
	}
	switch {
	case n == 0:
		for n < len(line) && !isWord(line[n]) && !s.special(line[n:]) {
			n++
		}
		return max(n, 1), text.Style{}
	case s.words[line[:n]]:
		return n, styleKeyword
	case line[0] >= '0' && line[0] <= '9':
		return n, styleNumber
	}
	return n, text.Style{}
}

// special reports whether a string or a comment begins.
func (s *scanner) special(line string) bool {
	return strings.IndexByte(s.quotes, line[0]) >= 0 || strings.IndexByte(s.raw, line[0]) >= 0 || s.open != "" && strings.HasPrefix(line, s.open) ||
		slices.ContainsFunc(s.comments, func(c string) bool { return strings.HasPrefix(line, c) })
}

// isWord reports whether a byte is part of a word. Bytes of characters that are not ASCII
// are.
func isWord(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b >= 0x80
}
