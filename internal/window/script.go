package window

import (
	"math"

	"github.com/abide-run/abide/internal/model"
)

// Scripts is the number of scripts that are told apart. How many tokens a text has depends
// on its script far more than on its language: providers count less than half of what is
// estimated for Cyrillic, and all of it for English.
const Scripts = 7

// The scripts, by the first bytes of their letters in UTF-8. Their order is stored.
const (
	ascii    = iota // letters, digits and signs of ASCII
	european        // accented Latin letters, Greek
	cyrillic
	semitic // Hebrew, Arabic and their neighbours
	han     // Chinese and Japanese
	hangul
	otherScript // everything else, such as Indic scripts and emoji
)

// scriptOf is the script of each first byte of a letter.
var scriptOf = func() (of [256]byte) {
	for b := range of {
		switch {
		case b < 0x80:
			of[b] = ascii
		case b >= 0xC2 && b <= 0xCF:
			of[b] = european
		case b >= 0xD0 && b <= 0xD3:
			of[b] = cyrillic
		case b >= 0xD4 && b <= 0xDF:
			of[b] = semitic
		case b >= 0xE3 && b <= 0xE9:
			of[b] = han
		case b >= 0xEA && b <= 0xED:
			of[b] = hangul
		default:
			of[b] = otherScript
		}
	}
	return of
}()

// letters is how many bytes are written in each script.
type letters [Scripts]int

// add adds a text.
func (l *letters) add(text string) {
	wide := wideBytesOf(text)
	l[ascii] += len(text) - wide
	for i := 0; wide > 0 && i < len(text); i++ {
		if b := text[i]; b >= 0xC0 { // the first byte of a letter; its other bytes are below
			n := letterBytes(b)
			l[scriptOf[b]] += n
			wide -= n
		}
	}
	l[otherScript] += max(0, wide) // bytes that are no letters
}

// letterBytes returns the length of the letter that begins with a byte.
func letterBytes(first byte) int {
	switch {
	case first < 0xE0:
		return 2
	case first < 0xF0:
		return 3
	}
	return 4
}

// addMessage adds the texts of a message.
func (l *letters) addMessage(m *model.Message) {
	l.add(m.Text)
	for _, c := range m.Calls {
		l.add(c.Name)
		l.add(string(c.Arguments))
	}
	if m.Reasoning != nil {
		l.add(m.Reasoning.Text)
	}
}

// minus returns the difference between two counts.
func (l letters) minus(other letters) letters {
	for i := range l {
		l[i] -= other[i]
	}
	return l
}

// tokens returns the estimated tokens of what is written in a script.
func (l letters) tokens(script int) float64 {
	if script == ascii {
		return float64(l[script]) / asciiBytes
	}
	return float64(l[script]) / wideBytes
}

// Rates is how many tokens a provider counts for each estimated one, script by script; zero
// for a script that is not known yet, which counts as estimated.
type Rates [Scripts]float64

// The limits of rates.
const (
	leastRate = 0.2
	mostRate  = 2.0
)

// of returns the rate of a script.
func (r *Rates) of(script int) float64 {
	if r[script] == 0 {
		return 1
	}
	return r[script]
}

// correct returns an estimate after correction.
func (r *Rates) correct(estimate int, l letters) float64 {
	corrected := float64(estimate)
	for i := range l {
		corrected += (r.of(i) - 1) * l.tokens(i)
	}
	return corrected
}

// learn changes the rates so that they give what a provider has counted of an estimate. Of a
// text in several scripts it is not known which one is to blame: the more there is of one,
// the more its rate changes, so that counts of different texts sort it out.
//
//   - What is not text is taken to be counted like the text. If all of a difference were put on
//     a short text with many calls, its rate would be wrong for a long text that follows: too
//     low, or so high that a request which fits is refused. One that is too large after all is
//     made again, smaller, when the provider has refused it.
//   - No rate moves beyond that of the whole text.
func (r *Rates) learn(counted, estimate int, l letters) {
	text, corrected, squares := 0.0, 0.0, 0.0
	for i := range l {
		text += l.tokens(i)
		corrected += r.of(i) * l.tokens(i)
		squares += l.tokens(i) * l.tokens(i)
	}
	if squares == 0 {
		return
	}
	ofText := float64(counted) * text / float64(estimate)
	for i := range l {
		share := l.tokens(i)
		if share == 0 {
			continue
		}
		next := r.of(i) + (ofText-corrected)*share/squares
		if ofAll := ofText / text; next < r.of(i) {
			next = max(next, min(r.of(i), ofAll))
		} else {
			next = min(next, max(r.of(i), ofAll))
		}
		r[i] = min(max(next, leastRate), mostRate)
	}
}

// Rounded returns the rates with three digits, which are enough to store, and not less than
// they are.
func (r Rates) Rounded() Rates {
	for i := range r {
		r[i] = math.Ceil(r[i]*1000) / 1000
	}
	return r
}
