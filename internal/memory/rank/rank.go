// Package rank finds the texts that best fit a question in plain words.
//
//   - A question is not a list of words that must all be there: words that say nothing are
//     ignored, and the more of the others a text has, and the rarer they are, the better it
//     fits.
//   - Words are compared by their stems, in the languages whose endings are known: English,
//     German and Russian. Chinese and Japanese, which are written without spaces, are
//     compared by pairs of characters.
//   - The result depends on its arguments alone.
package rank

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// Terms returns what a text is compared by, in order.
func Terms(text string) (terms []string) {
	for _, word := range words(text) {
		if word.dense {
			terms = append(terms, pairs(word.text)...)
		} else if !idle[word.text] {
			terms = append(terms, Stem(word.text))
		}
	}
	return terms
}

// mostTerms is how many different terms of a question count.
const mostTerms = 32

// A word is a word of a text, in lower case.
type word struct {
	text  string
	dense bool // true if it is of a script without spaces
}

// words splits a text into words.
func words(text string) (all []word) {
	var run []rune
	dense := false
	flush := func() {
		if len(run) > 0 {
			all = append(all, word{string(run), dense})
		}
		run = nil
	}
	for _, r := range text {
		is := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
		switch {
		case r == unicode.ReplacementChar || !unicode.In(r, unicode.L, unicode.N, unicode.M):
			flush()
			continue
		case is != dense:
			flush()
		}
		dense = is
		run = append(run, unicode.ToLower(r))
	}
	flush()
	return all
}

// pairs returns the pairs of characters of a word; a single character is a pair of its own.
func pairs(text string) (list []string) {
	runes := []rune(text)
	if len(runes) == 1 {
		return []string{text}
	}
	for i := range len(runes) - 1 {
		if pair := string(runes[i : i+2]); !idle[pair] {
			list = append(list, pair)
		}
	}
	return list
}

// A Hit is a text that fits a question.
type Hit struct {
	Index int // index of the text
	Score float64
}

// The constants of the ranking function, BM25.
const (
	saturation = 1.2 // how soon further occurrences of a term stop to count
	lengthRate = 0.5 // how much long texts are held back
)

// A Ranking ranks texts that are shown to it one after the other. Texts that have no term of
// the question cost no memory.
type Ranking struct {
	terms map[string]int // index of each term of the question
	seen  []int          // number of texts that have each term
	found []candidate
	texts int
	words int
	among int // number of texts that they were chosen from, if that is more
}

// A candidate is a text that has a term of the question.
type candidate struct {
	index, words int
	counts       map[int]int // occurrences of each term
}

// New returns a ranking for a question.
func New(question string) *Ranking {
	r := &Ranking{terms: make(map[string]int)}
	for _, term := range Terms(question) {
		if _, known := r.terms[term]; !known && len(r.terms) < mostTerms {
			r.terms[term] = len(r.terms)
		}
	}
	r.seen = make([]int, len(r.terms))
	return r
}

// Terms returns the terms of the question, in order.
func (r *Ranking) Terms() []string {
	terms := make([]string, len(r.terms))
	for term, i := range r.terms {
		terms[i] = term
	}
	return terms
}

// Empty reports whether the question has no word that says something.
func (r *Ranking) Empty() bool { return len(r.terms) == 0 }

// Add adds a text, and reports whether it has a term of the question.
func (r *Ranking) Add(index int, text string) bool {
	terms := Terms(text)
	r.texts++
	r.words += len(terms)
	var counts map[int]int
	for _, term := range terms {
		if i, wanted := r.terms[term]; wanted {
			if counts == nil {
				counts = make(map[int]int)
			}
			counts[i]++
		}
	}
	if counts == nil {
		return false
	}
	for i := range counts {
		r.seen[i]++
	}
	r.found = append(r.found, candidate{index, len(terms), counts})
	return true
}

// Among says from how many texts those were chosen that were added, because they have terms of
// the question.
func (r *Ranking) Among(texts int) { r.among = texts }

// First returns the place in a text where the rarest word of the question begins that the text
// has, or zero if it has none.
func (r *Ranking) First(text string) (at int) {
	rarest := math.MaxInt
	for _, field := range strings.Fields(text) {
		for _, term := range Terms(field) {
			if i, wanted := r.terms[term]; wanted && r.seen[i] < rarest {
				rarest, at = r.seen[i], strings.Index(text, field)
			}
		}
	}
	return at
}

// Best returns the texts that fit best, at most so many, and the number of all that fit. Of
// texts that fit equally well the later one is better: it is newer.
func (r *Ranking) Best(most int) (best []Hit, found int) {
	mean := float64(r.words) / float64(max(1, r.texts))
	all := float64(max(r.texts, r.among))
	for _, c := range r.found {
		score := 0.0
		for i, n := range c.counts {
			rarity := math.Log(1 + (all-float64(r.seen[i])+0.5)/(float64(r.seen[i])+0.5))
			count := float64(n)
			score += rarity * count * (saturation + 1) / (count + saturation*(1-lengthRate+lengthRate*float64(c.words)/max(1, mean)))
		}
		best = append(best, Hit{c.index, score})
	}
	slices.SortFunc(best, func(a, b Hit) int {
		if a.Score != b.Score {
			if a.Score > b.Score {
				return -1
			}
			return 1
		}
		return b.Index - a.Index
	})
	return best[:min(len(best), most)], len(best)
}
