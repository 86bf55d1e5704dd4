package eventlogtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// tell appends events to a session that is listed.
func (f *fixture) tell(id event.SessionID, what ...event.Payload) eventlog.End {
	f.Helper()
	var end eventlog.End
	if s, err := f.Session(f.Context(), id); err == nil {
		end = s.End
	}
	end, err := f.Append(f.Context(), id, spoken(end, what...))
	if err != nil {
		f.Fatal(err)
	}
	return end
}

func spoken(after eventlog.End, what ...event.Payload) eventlog.Batch {
	b := eventlog.Batch{After: after, Info: &eventlog.Info{Listed: true}}
	for _, p := range what {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, p)
		if err != nil {
			panic(err) // a string can always be encoded
		}
		b.Events = append(b.Events, e)
	}
	return b
}

func user(text string) event.Payload      { return event.UserMessageData{Content: text} }
func assistant(text string) event.Payload { return event.AssistantMessageData{Content: text} }

// finds checks which messages a search finds, as SESSION/POSITION.
func (f *fixture) finds(text string, want ...string) {
	f.Helper()
	found, err := f.Search(f.Context(), eventlog.Search{Text: text})
	if err != nil || found.Behind != 0 || found.More {
		f.Errorf("search for %q: %+v, %v; want all there is", text, found, err)
	}
	if got := placesOf(found); !slices.Equal(got, want) {
		f.Errorf("search for %q = %q, want %q", text, got, want)
	}
}

func placesOf(found eventlog.Found) (places []string) {
	for _, m := range found.Matches {
		places = append(places, fmt.Sprintf("%s/%d", m.Session.ID, m.Event.Seq))
	}
	return places
}

func search(t *testing.T, f *fixture) {
	f.tell("a", user("The connection was Refused by_host-7.example.org\nplease fix it"), event.SessionInfoData{Message: "refused in silence"}, assistant("I see: REFUSED connection"))
	f.tell("b", user("Straße nach Köln, ДОБРЫЙ день"), assistant("東京都に行きます"))
	f.add("unlisted", eventlog.End{}, "refused")
	f.tell("c", assistant("refusal is no refuse"), user(""))

	f.finds("refused", "a/1", "a/3")
	f.finds("REFUSED Connection", "a/1", "a/3")
	f.finds(`"refused connection"`, "a/3")
	f.finds(`"connection was" refused`, "a/1")
	f.finds("refus*", "c/1", "a/1", "a/3")
	f.finds(`"no refu"*`, "c/1")
	f.finds("refuse", "c/1")
	f.finds("host-7.example", "a/1")
	f.finds("fix refused", "a/1") // on different lines
	f.finds("köln", "b/1")
	f.finds("STRASSE")
	f.finds("straße добрый", "b/1")
	f.finds("京都", "b/2")
	f.finds("都京")
	f.finds("silence")
	f.finds("none")

	f.tell("a", user("again refused"))
	f.finds("refus*", "a/1", "a/3", "a/4", "c/1")
	f.finds("again", "a/4")
}

// searchHostile searches for what is no word, or means something elsewhere.
func searchHostile(t *testing.T, f *fixture) {
	f.tell("s", user("NEAR and OR not: words* ^start {a b} col:umn 'quoted' it's 100% \x00null"))
	for _, text := range []string{
		`"`, `""`, `*`, `"*`, "'", "--", ";", "()", "{}", "^", ":", "%", "\x00", "\xff\xfe", "  \t\n", "-", "+", "🙂", "",
	} {
		if _, err := f.Search(t.Context(), eventlog.Search{Text: text}); err != eventlog.ErrNoWord {
			t.Errorf("search for %q: err = %v, want ErrNoWord", text, err)
		}
	}
	for _, text := range []string{
		`NEAR`, `AND OR NOT`, `and or not`, `words*`, `^start`, `{a b}`, `col:umn`, `words:`, `'quoted'`, `it's`, `100%`, "\x00null", `near(and or)`, `"near and`, `"near`, `near" and`,
		`not"words`, `"or" "not"`, `*words*`, `-near`, `near+and`, `or ) not`, `words" *`, "near\xff", "'; DROP TABLE messages; --*near*"[len("'; DROP TABLE messages; --"):],
	} {
		f.finds(text, "s/1")
	}
	for _, text := range []string{`'; DROP TABLE messages; --`, `near OR nothing`, `words NOT near2`, `zero*near`, strings.Repeat("x", 10000), strings.Repeat("y ", 300), strings.Repeat(`"`, 1001) + "q"} {
		f.finds(text)
	}
}

func searchRewound(t *testing.T, f *fixture) {
	f.tell("s", user("first apple"), assistant("second apple"), user("third apple"))
	f.finds("apple", "s/1", "s/2", "s/3")
	f.tell("s", event.HistoryHiddenData{From: 2, To: 3}, user("fourth apple"))
	f.finds("apple", "s/1", "s/5")
	f.tell("t", user("one pear"), assistant("two pear"), event.HistoryHiddenData{From: 1, To: 1})
	f.finds("pear", "t/2")
}

func searchForked(t *testing.T, f *fixture) {
	end := f.tell("parent", user("shared apple"))
	f.tell("parent", user("late apple"))
	if _, err := f.Fork(t.Context(), "child", "parent", spoken(end, user("own apple"))); err != nil {
		t.Fatal(err)
	}
	f.finds("apple", "child/1", "child/2", "parent/1", "parent/2")
	f.tell("child", event.HistoryHiddenData{From: 1, To: 1})
	f.finds("apple", "child/2", "parent/1", "parent/2")
	f.fails("delete", f.Delete(t.Context(), "parent"), nil)
	f.finds("apple", "child/2")
	f.finds("late")
	f.fails("delete", f.Delete(t.Context(), "child"), nil)
	f.finds("apple")
	f.tell("child", user("another apple"))
	f.finds("apple", "child/1")
}

func searchDamaged(t *testing.T, f *fixture) {
	f.tell("s", user("good apple"), user("bad apple"))
	f.tell("other", user("other apple"))
	f.fails("quarantine", f.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 2, Reason: "a test"}), nil)
	f.finds("apple", "other/1", "s/1")
	f.fails("lift", f.Quarantine(t.Context(), "s", nil), nil)
	f.finds("apple", "other/1", "s/1", "s/2")
	f.tell("s", user("new apple"))
	f.finds("apple", "s/1", "s/2", "s/3", "other/1")
}

func searchLimited(t *testing.T, f *fixture) {
	for i := range 60 {
		f.tell(event.SessionID(fmt.Sprintf("s%02d", i)), user(fmt.Sprint("number ", i)), assistant("number"))
	}
	for limit, want := range map[int]int{0: 50, 1: 1, 3: 3, 119: 119, 120: 120, 500: 120} {
		found, err := f.Search(t.Context(), eventlog.Search{Text: "number", Max: limit})
		if err != nil || len(found.Matches) != want || found.More != (want < 120) || found.Matches[0].Session.ID != "s59" {
			t.Errorf("at most %d: %d matches, more %v, %v; want %d", limit, len(found.Matches), found.More, err, want)
		}
	}
	found, err := f.Search(t.Context(), eventlog.Search{Text: "number 7", Rebuild: true})
	if err != nil || !slices.Equal(placesOf(found), []string{"s07/1"}) {
		t.Errorf("after a rebuild: %q, %v", placesOf(found), err)
	}
}

func searchExcerpts(t *testing.T, f *fixture) {
	long := strings.Repeat("Ä-word ", 100)
	for text, c := range map[string]struct{ query, want string }{
		"one\n  two Apples here \napples and pears\n": {"pears apples", "apples and pears"},
		"one\n  two Apples here \nthree":              {"APPLES", "two Apples here"},
		"begin of\na phrase":                          {`"of a"`, "begin of"},
		long + "needle " + long:                       {"needle", "…" + string([]rune(long + "needle " + long)[660:780]) + "…"},
	} {
		f.tell("s", user(text))
		found, err := f.Search(t.Context(), eventlog.Search{Text: c.query})
		if err != nil || len(found.Matches) != 1 || found.Matches[0].Line != c.want {
			t.Errorf("search for %q: %+v, %v; want %q", c.query, found.Matches, err, c.want)
		}
		f.fails("delete", f.Delete(t.Context(), "s"), nil)
	}
}
