package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/approval/shell"
)

// CheckAllow returns an error like [Check] for a rule that is to allow something. Such a
// rule can also never match because commands of its kind are always asked about, or are
// judged by other words than those of the rule.
func CheckAllow(text string, tools ...string) error {
	if err := Check(text, tools...); err != nil {
		return err
	}
	u, err := parse(text)
	if err != nil || !commandKind(u.tool) || len(u.words.words) == 0 {
		return err
	}
	if err := u.checkAllows(); err != nil {
		return fmt.Errorf("rule %q: %w", text, err)
	}
	return nil
}

// checkAllows returns an error if the rule allows no command. It tries those that the rule
// seems to be about.
func (u rule) checkAllows() error {
	if slices.ContainsFunc(u.words.words, func(w string) bool { return w == "~" || strings.HasPrefix(w, "~/") }) {
		return errors.New("it can never match, because a command with a home directory (~) is always asked about; write an absolute path")
	}
	least := make([]string, len(u.words.words))
	for i, w := range u.words.words {
		least[i] = strings.ReplaceAll(w, star, "x")
	}
	if _, err := shell.ReadPlain(shell.Simple{Words: least}.String()); err != nil {
		if least[0] != "cd" {
			return fmt.Errorf("it can never match, because a command with %w is always asked about; leave the rule out", withoutPosition(err))
		}
	} else if u.words.exact() {
		return nil
	}
	program := least[0]
	if program == "cd" {
		return errors.New("it can never match, because cd at the start of a line needs no rule, and elsewhere it is always asked about; leave the rule out")
	}
	if shell.RunsAnother(program) && len(least) == 1 && u.words.open {
		return fmt.Errorf("it can never match, because the command that %s runs is judged in its place; write a rule for that one, like %s(git status *)", program, u.tool)
	}
	var judged []string
	var why error
	for _, words := range [][]string{least, append(slices.Clip(least), "x"), append(slices.Clip(least), "x", "x")} {
		runs, err := shell.Simple{Words: words}.Runs()
		if err != nil {
			why = err
			continue
		}
		for _, run := range runs {
			if u.words.allows(run.Words) {
				return nil
			}
			if judged == nil {
				judged = slices.DeleteFunc(slices.Clone(run.Words), func(w string) bool { return w == shell.Unknown })
			}
		}
		if !u.words.open {
			break
		}
	}
	if judged == nil && why != nil {
		return fmt.Errorf("it can never match, because a command with %w is always asked about; write a whole command without a star, or rules for the programs that it runs", why)
	}
	if judged == nil || !slices.ContainsFunc(judged, func(w string) bool { return !slices.Contains(least, w) }) && len(judged) == len(least) {
		return nil
	}
	return fmt.Errorf("it can never match, because such a command is judged as %s; write %s(%s *)", wordsText(judged), u.tool, wordsText(judged))
}

// withoutPosition returns what a script has that is not understood, without the place.
func withoutPosition(err error) error {
	var not *shell.NotPlain
	if errors.As(err, &not) {
		return errors.New(not.What)
	}
	return err
}

// checkCharacters returns an error if a rule has characters that a person does not see, or
// takes for others: it would match nothing, and nobody would know why.
func checkCharacters(text string) error {
	name, pattern, _ := strings.Cut(text, "(")
	isCommand := commandKind(strings.ToLower(strings.Map(plainCharacter, name)))
	for i, c := range text {
		what := ""
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			return fmt.Errorf("rule %q: it has a byte that is not UTF-8 at position %d; write the rule again", text, i+1)
		case c == ' ' || c == '\t':
		case shell.IsInvisible(c), unicode.IsControl(c), unicode.Is(unicode.Variation_Selector, c), c == '\u034f':
			what = "a character that nobody sees"
		case unicode.IsSpace(c):
			what = "a blank that is not the usual one"
		case isLookalike(c) && (i < len(name) || !unicode.IsLetter(c) || isOutOfPlace(text, i) || isCommand && isInFirstWord(pattern, i-len(name)-1)):
			what = fmt.Sprintf("a character that looks like %c and is another", plainCharacter(c))
		}
		if what != "" {
			return fmt.Errorf("rule %q: it can never match, because it has %s (%U) at character %d; write %q", text, what, c, utf8.RuneCountInString(text[:i])+1, plainText(text))
		}
	}
	return nil
}

// isInFirstWord reports whether a position is in the first word of a pattern.
func isInFirstWord(pattern string, at int) bool {
	start := len(pattern) - len(strings.TrimLeft(pattern, " \t"))
	return !strings.ContainsAny(pattern[min(start, at):at], " \t")
}

// isOutOfPlace reports whether a letter at a position stands among letters of ASCII, in one
// word with them.
func isOutOfPlace(text string, at int) bool {
	isOther := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' }
	before, after := text[:at], text[at:]
	if i := strings.LastIndexFunc(before, isOther); i >= 0 {
		before = before[i:]
	}
	if i := strings.IndexFunc(after, isOther); i >= 0 {
		after = after[:i]
	}
	isASCII := func(c rune) bool { return c < utf8.RuneSelf && unicode.IsLetter(c) }
	return strings.ContainsFunc(before, isASCII) || strings.ContainsFunc(after, isASCII)
}

// lookalikes are characters that look like others, each after the one that it looks like.
var lookalikes = makeLookalikes("aаα", "cсϲ", "dԁ", "eе", "gɡ", "hһ", "iіıι", "jј", "lӏ", "oоοօ", "pрρ", "qԛ", "sѕ", "uսυ", "vνѵ", "wԝ", "xх", "yу", "kκ", "nո",
	"AАΑ", "BВΒ", "CСϹ", "EЕΕ", "HНΗ", "IІΙӀ", "JЈ", "KКΚ", "MМΜ", "NΝ", "OОΟ", "PРΡ", "SЅ", "TТΤ", "XХΧ", "YΥҮ", "ZΖ",
	"-‐‑‒–—―−﹣", "*∗⁎✱﹡", "/⁄∕╱", "~∼˜", "'‘’‛′ʼ", "\"“”„‟″", ":꞉∶", ".․", ",‚", "_ˍ")

func makeLookalikes(groups ...string) map[rune]rune {
	all := make(map[rune]rune)
	for _, group := range groups {
		plain := rune(group[0])
		for _, c := range group[1:] {
			all[c] = plain
		}
	}
	for c := '!'; c <= '~'; c++ { // the wide forms
		all[c-'!'+'！'] = c
	}
	return all
}

func isLookalike(c rune) bool { return lookalikes[c] != 0 }

// plainText returns a rule as its writer probably meant it.
func plainText(text string) string { return strings.TrimSpace(strings.Map(plainCharacter, text)) }

func plainCharacter(c rune) rune {
	switch plain := lookalikes[c]; {
	case plain != 0:
		return plain
	case c == '\t':
		return c
	case unicode.IsSpace(c) && c != '\r' && c != '\u0085' && !unicode.In(c, unicode.Zl, unicode.Zp):
		return ' '
	case shell.IsInvisible(c), unicode.IsControl(c), unicode.Is(unicode.Variation_Selector, c), c == '\u034f':
		return -1
	}
	return c
}
