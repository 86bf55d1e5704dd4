package compact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window/compact"
)

// A told is a conversation of which is known what the model has not read yet.
type told struct {
	*rapid.T
	head   *compact.Head
	items  []compact.Item
	unread []compact.Item // what was added since the last request
	number int
	room   int
}

// add adds items, whose texts begin with a number of their own.
func (c *told) add(items ...compact.Item) {
	c.items, c.unread = append(c.items, items...), append(c.unread, items...)
}

// text returns a text that no other item has.
func (c *told) text(what string, words int) string {
	c.number++
	return fmt.Sprintf("%s-%d. %s", what, c.number, strings.Repeat("word ", words))
}

// ask makes a request: everything that was added since the last one has to be in it. In a
// window that is too small for it, results of calls may have to be given up, and all messages
// of people but the newest; what the runtime tells never is.
func (c *told) ask() {
	list := epochView(c.head, messages(c.items), 0, 0)
	for i, it := range c.unread {
		newest := !slices.ContainsFunc(c.unread[i+1:], func(it compact.Item) bool { return it.Asked })
		if it.Role == model.Assistant || c.room < 20_000 && (it.CallID != "" || it.Asked && !newest) {
			continue
		}
		id, _, _ := strings.Cut(it.Text, ".")
		if !slices.ContainsFunc(list, func(m *model.Message) bool { return strings.Contains(m.Text, id+".") }) {
			c.Fatalf("%q was in no request, and is gone", id)
		}
	}
	c.unread = nil
}

// compact compacts the conversation. The summariser may fail.
func (c *told) compact() {
	in := compact.Input{
		Head: c.head, Items: c.items, Room: c.room, AskRoom: 20_000,
		Retain: rapid.IntRange(0, 2000).Draw(c.T, "retain"), Must: rapid.Bool().Draw(c.T, "must"),
	}
	if rapid.Bool().Draw(c.T, "ride") {
		in.Ride, in.Left = &model.Request{Messages: epochView(c.head, messages(c.items), 0, 0)}, 5000
	}
	reply, err := summary("All is well."), error(nil)
	if rapid.IntRange(0, 3).Draw(c.T, "fails") == 0 {
		reply, err = nil, errNoKey
	}
	j := compact.New(in)
	for req := j.Next(); req != nil; req = j.Next() {
		if len(req.Messages) == 1 { // a record, in which only what was read may be
			c.checkRecord(req.Messages[0].Text)
		}
		j.Take(reply, err)
	}
	if r := j.Result(); r.Outcome == compact.Done {
		c.head, c.items = r.Head, c.items[r.Cut:]
	}
}

func (c *told) checkRecord(text string) {
	for _, it := range c.unread {
		id, _, _ := strings.Cut(it.Text, ".")
		if !it.Asked && it.Role == model.User && strings.Contains(text, id+".") {
			c.Fatalf("%q is summarised, and no request had it", id)
		}
	}
}

// TestNothingIsSummarisedThatTheModelHasNotSeen runs random conversations with notices,
// messages in the middle of the work, and compactions at any point.
func TestNothingIsSummarisedThatTheModelHasNotSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &told{T: t, room: rapid.SampledFrom([]int{1500, 6000, 100_000}).Draw(t, "room")}
		c.add(asked(c.text("request", 1)))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				c.add(asked(c.text("request", rapid.SampledFrom([]int{5, 5, 2500}).Draw(t, "words"))))
			case 1:
				c.add(noticed(c.text("notice", 3)))
			case 2:
				c.compact()
			case 3:
				c.ask()
				c.add(answered(c.text("answer", 50)))
			default:
				c.ask()
				c.add(called(c.text("result", rapid.IntRange(1, 4000).Draw(t, "words")), c.text("result", 3))...)
			}
		}
		c.ask()
	})
}
