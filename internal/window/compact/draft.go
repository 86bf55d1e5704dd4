package compact

import (
	"math"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// fixedHead is the size of the layout of a head alone, in tokens.
var fixedHead = window.Of((&Head{Omitted: 1 << 40, Since: "x", Unread: "x"}).Message()) + window.Tokens(askedOpening)

// The limits of the parts of a head.
const (
	mostAsked    = 8000 // tokens of older requests
	mostSince    = 2000 // tokens of the digest in Since
	ofTheRest    = 4    // divisor: either has at most a quarter of the tokens that are left
	perRequest   = 8    // divisor: an older request is shortened to an eighth of the tokens for all of them
	leastSummary = 128  // tokens that have to be left for everything but the newest request
)

// A draft is the material of a head.
type draft struct {
	before    *Head  // head of the present epoch; nil if there is none
	replaced  []Item // items that the head replaces
	uncovered []Item // those among them that neither the summary covers nor unseen contains
	unseen    []Item // news among them, which the model has not seen; they are the last ones
	answered  bool   // true if the model has answered since the present head was made
	inFull    bool   // true if the newest request has to be in the head in full
	summary   string // empty to make a digest of the items instead
}

// head returns a head of at most room tokens. It reports whether the summary had to be
// shortened, and is not ok if no head fits.
//
// What matters most gets its tokens first: the newest request, then notices that the
// model has not seen, older requests, a digest of what is not summarised, and the summary
// what is left.
func (d draft) head(room int) (h *Head, shortened, ok bool) {
	h = &Head{Omitted: d.omitted()}
	left := room - fixedHead
	older := d.requests()
	if n := len(older); d.inFull && n > 0 {
		left -= h.setNewest(older[n-1], d.newest())
		left -= h.repeatNewest((left - leastSummary) / 2)
		older = older[:n-1]
	}
	if left < leastSummary {
		return nil, false, false
	}
	left -= h.setUnread(shortenTo(d.notices(), left/2))
	left -= h.prependAsked(older, min(left/ofTheRest, mostAsked))
	if most := left / ofTheRest; len(d.uncovered) > 0 && most >= MinDigest {
		left -= h.setSince(shortenTo(Digest("", d.uncovered, min(most, mostSince)), most))
	}
	if d.summary == "" {
		h.Summary = shortenTo(d.digest(min(left, mostSummary)), left)
		return h, false, true
	}
	h.Summary = shortenTo(d.summary, left)
	return h, len(h.Summary) < len(d.summary), true
}

// requests returns the requests of the present head and of the replaced items, oldest
// first.
func (d draft) requests() (list []string) {
	if d.before != nil {
		list = append(list, d.before.Asked...)
	}
	for _, it := range d.replaced {
		if it.Asked {
			list = append(list, it.words())
		}
	}
	return list
}

// omitted returns the number of requests that the present head has left out.
func (d draft) omitted() int {
	if d.before == nil {
		return 0
	}
	return d.before.Omitted
}

// newest returns a message with the images and documents of the newest request.
func (d draft) newest() *model.Message {
	for _, it := range slices.Backward(d.replaced) {
		if it.Asked {
			return &model.Message{Images: it.Images, Documents: it.Documents}
		}
	}
	if d.before != nil {
		return &model.Message{Images: d.before.Images, Documents: d.before.Documents}
	}
	return &model.Message{}
}

// notices returns the messages that the model has not seen and no person wrote. They are
// not summarised: the model reads them in full if they fit. Without an answer among the items
// the model has not read the present head, either.
func (d draft) notices() string {
	var list []string
	if d.before != nil && !d.answered && d.before.Unread != "" {
		list = append(list, d.before.Unread)
	}
	for _, it := range d.unseen {
		if !it.Asked {
			list = append(list, it.Text)
		}
	}
	return strings.Join(list, "\n")
}

// digest returns a digest of the present summary and the replaced items that the model has
// seen.
func (d draft) digest(room int) string {
	known := ""
	if d.before != nil {
		known = d.before.Summary
	}
	return Digest(known, d.replaced[:len(d.replaced)-len(d.unseen)], room)
}

// setNewest puts the newest request into the head, and returns its size in tokens.
func (h *Head) setNewest(text string, with *model.Message) int {
	h.Asked, h.Images, h.Documents = []string{text}, with.Images, with.Documents
	return sizeOfNewest(text, with)
}

// sizeOfNewest returns the size of the newest request in a head, in tokens, without its
// repetition.
func sizeOfNewest(text string, with *model.Message) int {
	return window.Tokens(userMessage(text)) + window.Of(with)
}

// leastRepeat is the length of the shortest part of a request that is worth repeating, in
// bytes.
const leastRepeat = 80

// repeatNewest repeats the newest request at the end of the head, as much of it as fits into
// room tokens, and returns the size of the repetition. A request that fits is never refused
// because of its repetition, so there is none if there is too little room.
func (h *Head) repeatNewest(room int) int {
	h.Current = true
	if window.Tokens(h.current()) > room {
		h.Repeat = quotedBytes(room - window.Tokens(currentOpening))
		if h.Repeat < leastRepeat {
			h.Current, h.Repeat = false, 0
		}
	}
	return window.Tokens(h.current())
}

// setSince sets Since, and returns its size in tokens.
func (h *Head) setSince(text string) int {
	h.Since = text
	return window.Tokens(quote(text))
}

// setUnread sets Unread, and returns its size in tokens.
func (h *Head) setUnread(text string) int {
	h.Unread = text
	return window.Tokens(quote(text))
}

// prependAsked puts older requests at the beginning of Asked: all of them if they have at
// most room tokens, else the newest ones, shortened. It counts the others, and returns the
// size of the requests in tokens.
func (h *Head) prependAsked(older []string, room int) (used int) {
	all := 0
	for _, text := range older {
		all += window.Tokens(userMessage(text))
	}
	bytes := math.MaxInt // limit of one request
	if all > room {
		bytes = quotedBytes(room / perRequest)
	}
	first := len(older)
	var kept []string // newest first
	for ; first > 0; first-- {
		text := render.Cut(older[first-1], bytes)
		cost := window.Tokens(userMessage(text))
		if text == "" && older[first-1] != "" || used+cost > room {
			break
		}
		used += cost
		kept = append(kept, text)
	}
	slices.Reverse(kept)
	h.Omitted += first
	h.Asked = append(kept, h.Asked...)
	return used
}
