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

// A Head is how an epoch begins: what was asked, in the words of those who asked,
// and a summary of the rest. It is stored with the epoch.
type Head struct {
	Asked   []string      `json:"asked,omitempty"`   // oldest first
	Omitted int           `json:"omitted,omitempty"` // older ones that are not among them
	Images  []model.Image `json:"images,omitempty"`  // that came with the newest, if it is kept in full
	Summary string        `json:"summary"`
	Since   string        `json:"since,omitempty"` // what came after the summary and is not kept either
}

// Message is the head as the model reads it.
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

// The layout of a head, which clients' recordings know.
const (
	opening        = "Some of the conversation history has been summarized to free up context.\n"
	askedOpening   = "\nYou were originally given instructions from a user over one or more turns. Here were the user messages:\n"
	summaryOpening = "\nHere is a summary of the prior context:\n<summary>\n"
	summaryClosing = "\n</summary>"
	reminderOpen   = "\n\n<system_reminder>"
	reminderClose  = "\n</system_reminder>"
)

func userMessage(text string) string { return "<user_message>\n" + quote(text) + "\n</user_message>\n" }

// quote keeps a text from ending the element that it stands in.
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

// fixedHead is what the layout takes, whatever is in it.
var fixedHead = window.Of((&Head{Omitted: 1 << 40, Since: "x"}).Message()) + window.Tokens(askedOpening)

// What a head may spend on older requests, and on what is between the summary and
// what is kept.
const (
	mostAsked    = 8000 // tokens
	mostSince    = 2000
	ofTheRest    = 4   // a quarter of the room at most
	perRequest   = 8   // of these at least, when they have to be shortened
	leastSummary = 128 // tokens that have to be left for the summary and all this
)

// A draft is what a head is made of.
type draft struct {
	before  *Head  // of the present epoch; nil for none
	items   []Item // that are not kept
	since   []Item // those among them that the summary does not cover
	unseen  []Item // those among them that came last and the model has not seen
	newest  bool   // the newest request has to be in the head in full
	summary string // empty to have a digest instead
}

// head makes a head of at most so many tokens. It reports whether the summary had
// to be shortened, and false if there is no room for a head at all.
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
	left -= h.tell(within(d.notices(), left/2))
	left -= h.recall(asked, min(left/ofTheRest, mostAsked))
	if len(d.since) > 0 && left/ofTheRest >= MinDigest {
		left -= h.tell(within(Digest("", d.since, min(left/ofTheRest, mostSince)), left/ofTheRest))
	}
	if d.summary == "" {
		h.Summary = within(Digest(d.known(), d.items[:len(d.items)-len(d.unseen)], min(left, mostSummary)), left)
		return h, false, true
	}
	h.Summary = within(d.summary, left)
	return h, len(h.Summary) < len(d.summary), true
}

// tell puts a text before what the head says of the time since the summary. It
// returns how many tokens that takes.
func (h *Head) tell(text string) int {
	if h.Since != "" && text != "" {
		text += "\n"
	}
	h.Since = text + h.Since
	return window.Tokens(quote(text))
}

// notices are what the model has not seen and no person asked for. No summary and
// no digest replaces them: the model reads them in full where there is room.
func (d draft) notices() string {
	var list []string
	for _, it := range d.unseen {
		if !it.Asked {
			list = append(list, it.Text)
		}
	}
	return strings.Join(list, "\n")
}

// known is the summary of the present epoch.
func (d draft) known() string {
	if d.before == nil {
		return ""
	}
	return d.before.Summary
}

// within shortens a text if it does not fit when it is quoted.
func within(text string, tokens int) string {
	if window.Tokens(quote(text)) <= tokens {
		return text
	}
	return render.Cut(text, quotedBytes(tokens))
}

// quotedBytes is how long a text may be that still fits after it was quoted.
// Quoting adds a byte to at most every ninth.
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

// images returns those of the newest request.
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

// recall puts older requests before those that are there, at most so many tokens:
// all of them if they fit, else the newest ones, shortened. It returns how many
// tokens that takes.
func (h *Head) recall(asked []string, room int) (used int) {
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
