package compact

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// A Head is the beginning of an epoch: the requests of people in their own words, and a
// summary of everything else. It is stored with the epoch.
type Head struct {
	Asked   []string      `json:"asked,omitempty"`   // requests, oldest first
	Current bool          `json:"current,omitempty"` // true if the last one in Asked is the newest of all, in full
	Repeat  int           `json:"repeat,omitempty"`  // bytes of it that are repeated at the end, if they are fewer than usual
	Omitted int           `json:"omitted,omitempty"` // number of older requests that are not in Asked
	Images  []model.Image `json:"images,omitempty"`  // images of the newest request, if that is in Asked in full
	Summary string        `json:"summary"`
	Since   string        `json:"since,omitempty"`  // text about messages that are neither summarised nor kept
	Unread  string        `json:"unread,omitempty"` // notices that no request has had yet, in full

	Documents []model.Document `json:"documents,omitempty"` // documents of the newest request, like Images
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
	return &model.Message{Role: model.User, Text: w.String(), Images: h.Images, Documents: h.Documents}
}

// The layout of a head. Recordings of clients match it.
const (
	opening        = "Some of the conversation history has been summarized to free up context.\n"
	askedOpening   = "\nYou were originally given instructions from a user over one or more turns. Here were the user messages:\n"
	summaryOpening = "\nHere is a summary of the prior context:\n<summary>\n"
	summaryClosing = "\n</summary>"
	reminderOpen   = "\n\n<system_reminder>"
	currentOpening = "\nThe newest message of the user is this one. If nothing that follows answers it yet, it is what you are working on:\n"
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
	if h.Omitted == 0 && h.Since == "" && h.Unread == "" && !h.Current {
		return ""
	}
	text := reminderOpen
	if h.Omitted > 0 {
		text += omitted(h.Omitted)
	}
	if h.Since != "" {
		text += "\n" + quote(h.Since)
	}
	if h.Unread != "" {
		text += "\n" + quote(h.Unread)
	}
	return text + h.current() + reminderClose
}

// mostCurrent is the length of the newest request that is repeated at the end, in bytes.
const mostCurrent = 2000

// current returns the newest request again, so that it comes last: among the others above it
// is easily taken for one that was done long ago. A long one is not repeated in full.
func (h *Head) current() string {
	if !h.Current || len(h.Asked) == 0 {
		return ""
	}
	return currentOpening + quote(render.Cut(h.Asked[len(h.Asked)-1], cmp.Or(h.Repeat, mostCurrent)))
}

func omitted(n int) string {
	return fmt.Sprintf("\n%d older messages of the user are left out above. They are kept in the session's log.", n)
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
