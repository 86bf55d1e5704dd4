package compact

import (
	"errors"
	"strings"
	"unicode"

	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/answer"
	"github.com/abide-run/abide/internal/window/render"
)

// Summary returns the summary in a reply: the argument of its call of [WriteSummary], or
// else its text. The errors are written for the model.
func Summary(reply *model.Reply) (string, error) {
	var in struct {
		Text string `json:"text"`
	}
	called, err := answer.Read(reply, WriteSummary, &in)
	text := in.Text
	if !called {
		if text = reply.Text; cutOff(reply) {
			err = errors.New("the summary was cut off because it was too long: write a shorter one")
		}
	}
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(text) == "":
		return "", errors.New("there was no summary: write it as your answer, and call no other tool")
	case !hasContent(text):
		return "", errors.New("the summary said nothing: tell what was asked, what was done, and what is left to do")
	}
	return text, nil
}

func cutOff(reply *model.Reply) bool { return reply.Finish == "length" || reply.Finish == "max_tokens" }

var (
	tag     = lazyregexp.New(`<[^<>]*>`)
	nothing = map[string]bool{"none": true, "nothing": true, "empty": true, "n": true, "a": true, "na": true, "null": true, "nil": true, "no": true, "summary": true}
)

// hasContent reports whether a text has content, and does not only say that there is none.
func hasContent(text string) bool {
	for word := range strings.FieldsFuncSeq(tag.ReplaceAllString(text, " "), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !nothing[strings.ToLower(word)] {
			return true
		}
	}
	return false
}

const (
	titleOpen  = "<checkpoint_title>"
	titleClose = "</checkpoint_title>"
	mostTitle  = 80 // bytes
)

// Title returns the title that a summary contains, as one line, or "Summary" if it has
// none.
func Title(summary string) string {
	_, after, _ := strings.Cut(summary, titleOpen)
	title, _, found := strings.Cut(after, titleClose)
	if title = render.Line(title, mostTitle); !found || title == "" {
		return "Summary"
	}
	return title
}
