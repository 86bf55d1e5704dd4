package compact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// A Head is the beginning of an epoch: the requests of people in their own words, and a
// summary of everything else. It is stored with the epoch.
type Head struct {
	Asked   []string      `json:"asked,omitempty"`   // requests, oldest first
	Omitted int           `json:"omitted,omitempty"` // number of older requests that are not in Asked
	Images  []model.Image `json:"images,omitempty"`  // images of the newest request, if that is in Asked in full
	Summary string        `json:"summary"`
	Since   string        `json:"since,omitempty"` // text about messages that are neither summarised nor kept
}

// Message returns the head as the model reads it.
func (h *Head) Message() *model.Message {
	var w strings.Builder
	w.WriteString(opening)
	if len(h.Asked) > 0 {
		w.WriteString(askedOpening)
		for _, text := range h.Asked {
			w.WriteString(userMessage(text))
		}
	}
	w.WriteString(summaryOpening)
	w.WriteString(quote(h.Summary))
	w.WriteString(summaryClosing)
	w.WriteString(h.reminder())
	return &model.Message{Role: model.User, Text: w.String(), Images: h.Images}
}

// The layout of a head. Recordings of clients match it.
const (
	opening        = "Some of the conversation history has been summarized to free up context.\n"
	askedOpening   = "\nYou were originally given instructions from a user over one or more turns. Here were the user messages:\n"
	summaryOpening = "\nHere is a summary of the prior context:\n<summary>\n"
	summaryClosing = "\n</summary>"
	reminderOpen   = "\n\n<system_reminder>"
	reminderClose  = "\n</system_reminder>"
)

func userMessage(text string) string { return "<user_message>\n" + quote(text) + "\n</user_message>\n" }

// quote changes tags in a text, so that it cannot end the element that contains it.
var quote = strings.NewReplacer(
	"</user_message>", "< /user_message>", "<user_message>", "< user_message>",
	"</summary>", "< /summary>", "<summary>", "< summary>",
	"</system_reminder>", "< /system_reminder>", "<system_reminder>", "< system_reminder>",
).Replace

func (h *Head) reminder() string {
	if h.Omitted == 0 && h.Since == "" {
		return ""
	}
	text := reminderOpen
	if h.Omitted > 0 {
		text += omitted(h.Omitted)
	}
	if h.Since != "" {
		text += "\n" + quote(h.Since)
	}
	return text + reminderClose
}

func omitted(n int) string {
	return fmt.Sprintf("\n%d older messages of the user are left out above. They are kept in the session's log.", n)
}

// fixedHead is the size of the layout alone, in tokens.
var fixedHead = window.Of((&Head{Omitted: 1 << 40, Since: "x"}).Message()) + window.Tokens(askedOpening)

// The limits of the parts of a head.
const (
	mostAsked    = 8000 // tokens of older requests
	mostSince    = 2000 // tokens of Since
	ofTheRest    = 4    // divisor: either has at most a quarter of the tokens that are left
	perRequest   = 8    // divisor: an older request is shortened to an eighth of the tokens for all of them
	leastSummary = 128  // tokens that have to be left for the summary and these parts
)

// A draft is the material of a head.
type draft struct {
	before  *Head  // head of the present epoch; nil if there is none
	items   []Item // items that are not kept
	since   []Item // those among them that the summary does not cover
	unseen  []Item // the last ones among them that the model has not seen
	newest  bool   // true if the newest request has to be in the head in full
	summary string // empty to make a digest instead
}

// head returns a head of at most room tokens. It reports whether the summary had to be
// shortened, and is not ok if no head fits.
func (d draft) head(room int) (h *Head, shortened, ok bool) {
	h = new(Head)
	left := room - fixedHead
	asked := d.asked(h)
	if n := len(asked); d.newest && n > 0 {
		h.Asked = asked[n-1:]
		h.Images = d.images()
		asked = asked[:n-1]
		left -= window.Tokens(userMessage(h.Asked[0])) + window.Of(&model.Message{Images: h.Images})
	}
	if left < leastSummary {
		return nil, false, false
	}
	left -= h.prependSince(shortenTo(d.notices(), left/2))
	left -= h.prependAsked(asked, min(left/ofTheRest, mostAsked))
	if len(d.since) > 0 && left/ofTheRest >= MinDigest {
		left -= h.prependSince(shortenTo(Digest("", d.since, min(left/ofTheRest, mostSince)), left/ofTheRest))
	}
	if d.summary == "" {
		h.Summary = shortenTo(Digest(d.known(), d.items[:len(d.items)-len(d.unseen)], min(left, mostSummary)), left)
		return h, false, true
	}
	h.Summary = shortenTo(d.summary, left)
	return h, len(h.Summary) < len(d.summary), true
}

// prependSince puts a text at the beginning of Since, and returns its size in tokens.
func (h *Head) prependSince(text string) int {
	if h.Since != "" && text != "" {
		text += "\n"
	}
	h.Since = text + h.Since
	return window.Tokens(quote(text))
}

// notices returns the messages that the model has not seen and no person wrote. They are
// not summarised: the model reads them in full if they fit.
func (d draft) notices() string {
	var list []string
	for _, it := range d.unseen {
		if !it.Asked {
			list = append(list, it.Text)
		}
	}
	return strings.Join(list, "\n")
}

// known returns the summary of the present epoch.
func (d draft) known() string {
	if d.before == nil {
		return ""
	}
	return d.before.Summary
}

// shortenTo shortens a text to at most the given number of tokens after quoting.
func shortenTo(text string, tokens int) string {
	if window.Tokens(quote(text)) <= tokens {
		return text
	}
	return render.Cut(text, quotedBytes(tokens))
}

// quotedBytes returns the length of the longest text that certainly has at most the given
// number of tokens after quoting, which adds at most one byte to every nine.
func quotedBytes(tokens int) int { return window.Bytes(tokens) * 9 / 10 }

// asked returns all requests, oldest first.
func (d draft) asked(h *Head) (list []string) {
	if d.before != nil {
		list, h.Omitted = append(list, d.before.Asked...), d.before.Omitted
	}
	for _, it := range d.items {
		if it.Asked {
			list = append(list, it.words())
		}
	}
	return list
}

// images returns the images of the newest request.
func (d draft) images() []model.Image {
	for i := len(d.items) - 1; i >= 0; i-- {
		if d.items[i].Asked {
			return d.items[i].Images
		}
	}
	if d.before != nil {
		return d.before.Images
	}
	return nil
}

// prependAsked puts older requests at the beginning of Asked, with at most room tokens: all of
// them if they fit, else the newest ones, shortened. It returns their size in tokens.
func (h *Head) prependAsked(asked []string, room int) (used int) {
	most := 0
	for _, text := range asked {
		most += window.Tokens(userMessage(text))
	}
	bytes := math.MaxInt
	if most > room {
		bytes = quotedBytes(room / perRequest)
	}
	first := len(asked)
	var kept []string // newest first
	for ; first > 0; first-- {
		text := render.Cut(asked[first-1], bytes)
		cost := window.Tokens(userMessage(text))
		if text == "" && asked[first-1] != "" || used+cost > room {
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
