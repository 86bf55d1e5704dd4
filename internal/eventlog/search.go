package eventlog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/abide-run/abide/internal/event"
)

// A Search is a search in what users and models said.
type Search struct {
	// Text is what a person types: words, which must all be in a message, in any
	// order and whatever their case; "phrases in quotes"; and starts of words, like
	// refus*. There is no text that is not understood, but it needs a word.
	Text string
	Max  int // number of matches that are returned at most; 50 if not positive

	// Rebuild makes the store drop its index first and build it anew.
	Rebuild bool
	// Patience is how long the index may be brought up to date before it is searched;
	// no limit if zero.
	Patience time.Duration
}

// Found is the result of a search.
type Found struct {
	Matches []Match // messages of the last modified session first, those of a session in order
	More    bool    // true if there are more matches
	Behind  int     // number of sessions with messages that were not searched yet: the index lacks them
}

// A Match is a message that a search has found.
type Match struct {
	Session Session
	Event   event.Event
	Line    string // line of the message that has most of the words, cut to a readable length
}

// ErrNoWord means that the text of a search has no word.
var ErrNoWord = errors.New("there is no word to search for")

// Limit returns the number of matches that are returned at most.
func (s Search) Limit() int {
	if s.Max <= 0 {
		return 50
	}
	return s.Max
}

// Said returns the text of a message, and whether the event is one. Only messages of
// users and models are found by a search.
func Said(e event.Event) (text string, ok bool) {
	if e.Type != event.UserMessage && e.Type != event.AssistantMessage {
		return "", false
	}
	var said struct {
		Content string `json:"content"`
	}
	return said.Content, e.Decode(&said) == nil
}

// Done returns the text of what was done and told beside messages, and whether the event has
// one: notifications, the arguments of calls, and their results. A long text is cut in the
// middle.
func Done(e event.Event) (text string, ok bool) {
	switch e.Type {
	case event.SystemNotification:
		d, err := event.As[event.SystemNotificationData](e)
		return cutMiddle(d.Content), err == nil
	case event.ToolComplete:
		d, err := event.As[event.ToolCompleteData](e)
		switch {
		case err != nil:
			return "", false
		case d.Result != nil:
			return cutMiddle(d.Result.Content), true
		case d.Error != nil:
			return cutMiddle(d.Error.Message + " " + d.Error.ForModel), true
		}
	case event.AssistantMessage:
		d, err := event.As[event.AssistantMessageData](e)
		for _, call := range d.ToolRequests {
			text += cutMiddle(string(call.Arguments)) + " "
		}
		return text, err == nil && text != ""
	}
	return "", false
}

// cutMiddle leaves out the middle of a text of which an index would have too much.
func cutMiddle(text string) string {
	const begin, end = 12 << 10, 4 << 10
	if len(text) <= begin+end {
		return text
	}
	return strings.ToValidUTF8(text[:begin], "") + " " + strings.ToValidUTF8(text[len(text)-end:], "")
}

// A Finder is a store that finds what was said and done in one session without reading all
// of it.
type Finder interface {
	// Find returns the positions of the events of a session that have most of the terms, and
	// the rarest of them, at most so many, in order. Terms are what rank.Terms returns. Events
	// that were taken back are not among them. It is not ok if the store has no index of the
	// whole session: then its log has to be read.
	Find(ctx context.Context, id event.SessionID, terms []string, most int) (at []event.Seq, ok bool)
}

// A Phrase is a sequence of words that must follow each other in a message.
type Phrase struct {
	Words  []string
	Prefix bool // true if the last word is only the start of a word
}

// Phrases returns what must be in a message that the search finds, or ErrNoWord.
func (s Search) Phrases() (all []Phrase, err error) {
	rest := s.Text
	for rest != "" {
		var part string
		if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
			part, rest, _ = strings.Cut(quoted, `"`)
		} else if end := strings.IndexFunc(rest, func(r rune) bool { return r == '"' || unicode.IsSpace(r) }); end > 0 {
			part, rest = rest[:end], rest[end:]
		} else if end == 0 {
			rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
			continue
		} else {
			part, rest = rest, ""
		}
		var p Phrase
		if after, found := strings.CutPrefix(rest, "*"); found {
			p.Prefix, rest = true, after
		}
		p.Prefix = p.Prefix || strings.HasSuffix(part, "*")
		for _, w := range splitWords(part) {
			p.Words = append(p.Words, w.text)
		}
		if len(p.Words) > 0 {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, ErrNoWord
	}
	return all, nil
}

// Words returns the words of a text as an index keeps them. They consist of letters,
// digits and marks alone.
func Words(text string) []string {
	split := splitWords(text)
	words := make([]string, len(split))
	for i, w := range split {
		words[i] = w.text
	}
	return words
}

// A word is a word of a text, in lower case, and the place where it begins.
type word struct {
	text string
	at   int
}

// longestWord is the number of bytes after which a word is cut: what is longer was
// written by no person.
const longestWord = 64

// splitWords splits a text into words. A character of a script that is written without
// spaces is a word of its own, so that any part of a text can be found.
func splitWords(text string) (all []word) {
	begin := -1
	end := func(at int) {
		if begin >= 0 {
			all = append(all, newWord(text[begin:at], begin))
		}
		begin = -1
	}
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			end(i)
			all = append(all, word{string(r), i})
		case r == unicode.ReplacementChar || !unicode.In(r, unicode.L, unicode.N, unicode.M):
			end(i)
		case begin < 0:
			begin = i
		}
	}
	end(len(text))
	return all
}

func newWord(text string, at int) word {
	text = strings.ToLower(text)
	if len(text) > longestWord {
		text = strings.ToValidUTF8(text[:longestWord], "")
	}
	return word{text, at}
}

// find returns the place in a text where a phrase begins, or -1.
func (p Phrase) find(words []word) int {
	last := len(p.Words) - 1
	for i := range len(words) - last {
		if slices.EqualFunc(words[i:i+last], p.Words[:last], func(w word, text string) bool { return w.text == text }) &&
			(words[i+last].text == p.Words[last] || p.Prefix && strings.HasPrefix(words[i+last].text, p.Words[last])) {
			return words[i].at
		}
	}
	return -1
}

// Excerpt returns the line of a text that has most of the phrases, cut to a readable
// length, and whether the text has all of them.
func Excerpt(text string, phrases []Phrase) (line string, ok bool) {
	words := splitWords(text)
	first := len(text)
	for _, p := range phrases {
		at := p.find(words)
		if at < 0 {
			return "", false
		}
		first = min(first, at)
	}
	best, bestAt, most := "", 0, 0
	begin := 0
	for l := range strings.Lines(text) {
		found, at := 0, len(l)
		of := splitWords(l)
		for _, p := range phrases {
			if n := p.find(of); n >= 0 {
				found, at = found+1, min(at, n)
			}
		}
		if most == 0 && first >= begin && first < begin+len(l) { // a phrase that goes over several lines begins here
			best, bestAt = l, first-begin
		}
		if found > most {
			best, bestAt, most = l, at, found
		}
		begin += len(l)
	}
	return cutAround(best, bestAt), true
}

// cutAround shortens a long line to the part around a place.
func cutAround(line string, at int) string {
	const most = 120
	cut := len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
	before := len([]rune(line[min(cut, at):at]))
	runes := []rune(strings.TrimSpace(line))
	if len(runes) <= most {
		return string(runes)
	}
	from := max(0, min(before-most/3, len(runes)-most))
	return "…" + string(runes[from:from+most]) + "…"
}

// Scan searches without an index, by reading every session. What a rewind has taken back
// is not found. A damaged session is searched up to the damage.
func Scan(ctx context.Context, store Store, q Search) (found Found, err error) {
	phrases, err := q.Phrases()
	if err != nil {
		return found, err
	}
	for s, err := range store.Sessions(ctx, Query{Listed: true}) {
		if err != nil {
			return found, err
		}
		matches, err := scanSession(ctx, store, s, phrases)
		if err != nil {
			return found, err
		}
		found.Matches = append(found.Matches, matches...)
		if found.More = len(found.Matches) > q.Limit(); found.More {
			found.Matches = found.Matches[:q.Limit()]
			return found, nil
		}
	}
	return found, nil
}

func scanSession(ctx context.Context, store Store, s Session, phrases []Phrase) (matches []Match, err error) {
	for e, err := range store.Read(ctx, s.ID, 0) {
		var damage *Damage
		if errors.As(err, &damage) || errors.Is(err, ErrNotFound) {
			break // the events before the damage were searched, and a deleted session has nothing to find
		}
		if err != nil {
			return nil, err
		}
		if from, to, hides := Hides(e); hides {
			matches = slices.DeleteFunc(matches, func(m Match) bool { return m.Event.Seq >= from && m.Event.Seq <= to })
		}
		if text, ok := Said(e); ok {
			if line, ok := Excerpt(text, phrases); ok {
				matches = append(matches, Match{s, e, line})
			}
		}
	}
	return matches, nil
}

// Hides returns the range of events that an event takes back, and whether it does.
func Hides(e event.Event) (from, to event.Seq, ok bool) {
	if e.Type != event.HistoryHidden {
		return 0, 0, false
	}
	d, err := event.As[event.HistoryHiddenData](e)
	return d.From, d.To, err == nil
}

// Search implements Store.
func (m *Memory) Search(ctx context.Context, q Search) (Found, error) {
	if err := m.Err(); err != nil {
		return Found{}, err
	}
	return Scan(ctx, m, q)
}
