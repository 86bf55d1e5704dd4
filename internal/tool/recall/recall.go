// Package recall has the tool memory_search, with which a model searches its memory and
// the log of its session. So it can still find what a compaction has removed from its
// context.
//
//   - Messages that were undone by a rewind are not found.
//   - If the store has an index of sessions (eventlog.Finder), a search takes as long in a
//     long session as in a short one; otherwise the whole log is read.
//   - Results are limited in length, and say how to get more.
package recall

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/memory/rank"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/window/render"
)

// toolName is the name of the tool.
const toolName = "memory_search"

//go:embed memory_search.md
var text string

var spec = tool.Spec{
	Name:        toolName,
	Description: strings.TrimSpace(text),
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"query":{"type":"string","description":"Words to look for."},` +
		`"event":{"type":"integer","description":"Number of an event of this session to read from."}}}`),
	Replay: tool.Pure,
}

// Limits of a result.
const (
	mostHits  = 20      // maximum number of hits in memory, and in the log
	mostLine  = 400     // maximum bytes of a hit
	mostBytes = 12_000  // maximum bytes of messages that are read from an event on
	mostSaid  = 4 << 10 // maximum bytes of one tool result in them
)

// Search is the tool. It implements tool.Tool.
type Search struct {
	log   eventlog.Log
	books *book.Set
}

// New returns the tool.
func New(log eventlog.Log, books *book.Set) *Search { return &Search{log, books} }

// Spec implements tool.Tool.
func (s *Search) Spec() tool.Spec { return spec }

// Permission implements tool.Tool. A session may always read its own log.
func (s *Search) Permission(_ context.Context, call tool.Call) (*approval.Request, error) {
	_, _, err := arguments(call)
	return nil, err
}

func arguments(call tool.Call) (query string, at int64, err error) {
	a := argument.Read(call.Arguments)
	query, _ = a.Text("query")
	at, _ = a.Number("event")
	if strings.TrimSpace(query) == "" && at <= 0 {
		a.Wrong("query", "give words to look for, or the number of an event to read from")
	}
	return query, at, a.Err()
}

// Run implements tool.Tool.
func (s *Search) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	query, at, err := arguments(call)
	var refused *tool.Refusal
	if errors.As(err, &refused) {
		return refused.Result, nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	if at > 0 {
		text, err := s.from(ctx, call.Session, event.Seq(at))
		return tool.Result{Text: text}, err
	}
	said, err := s.find(ctx, call.Session, query)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: s.noted(call.Dir, query) + said}, nil
}

// noted returns what memory has about a query.
func (s *Search) noted(dir, query string) string {
	hits := s.books.SearchTold(dir, "", query, mostHits)
	if len(hits) == 0 {
		return "Nothing was found in memory.\n"
	}
	var w strings.Builder
	w.WriteString("In memory:\n")
	for _, h := range hits {
		fmt.Fprintf(&w, "%s:%d: %s\n", h.Path, h.Line, cut(h.Text, nil))
	}
	return w.String()
}

// A remark is a message of a session, or a part of one.
type remark struct {
	at        event.Seq
	who, text string
	index     int // number among those that fit the query
}

// remarks returns the remarks of a session from an event on, as long as wanted returns
// true. Remarks that were undone are left out.
func (s *Search) remarks(ctx context.Context, id event.SessionID, from event.Seq, wanted func(*remark) bool) ([]remark, error) {
	var list []remark
	names := make(map[string]string) // names of tools by the IDs of their calls
	for e, err := range s.log.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if e.Type == event.HistoryHidden {
			if d, err := event.As[event.HistoryHiddenData](e); err == nil {
				list = slices.DeleteFunc(list, func(r remark) bool { return r.at >= d.From && r.at <= d.To })
			}
			continue
		}
		for _, r := range read(e, names) {
			if e.Seq >= from && wanted(&r) {
				list = append(list, r)
			}
		}
	}
	return list, nil
}

// read returns the remarks of an event.
func read(e event.Event, names map[string]string) []remark {
	switch e.Type {
	case event.UserMessage:
		if d, err := event.As[event.UserMessageData](e); err == nil {
			return []remark{{at: e.Seq, who: "user", text: d.Content}}
		}
	case event.SystemNotification:
		if d, err := event.As[event.SystemNotificationData](e); err == nil {
			return []remark{{at: e.Seq, who: "notification", text: d.Content}}
		}
	case event.AssistantMessage:
		if d, err := event.As[event.AssistantMessageData](e); err == nil {
			return answer(e.Seq, d, names)
		}
	case event.ToolComplete:
		if d, err := event.As[event.ToolCompleteData](e); err == nil {
			return []remark{{at: e.Seq, who: "result of " + names[d.ToolCallID], text: transcript.ResultText(d)}}
		}
	}
	return nil
}

func answer(at event.Seq, d event.AssistantMessageData, names map[string]string) (list []remark) {
	if d.Content != "" {
		list = append(list, remark{at: at, who: "assistant", text: d.Content})
	}
	for _, call := range d.ToolRequests {
		names[call.ToolCallID] = call.Name
		if call.Name != toolName { // otherwise a search would find its own call
			list = append(list, remark{at: at, who: "assistant calls " + call.Name, text: string(call.Arguments)})
		}
	}
	return list
}

// find returns the remarks of a session that fit a query best, in the order in which they were
// made.
func (s *Search) find(ctx context.Context, id event.SessionID, query string) (string, error) {
	fits := rank.New(query)
	seen := 0
	wanted := func(r *remark) bool {
		if r.who == "result of "+toolName || !fits.Add(seen, r.text) {
			return false
		}
		r.index = seen
		seen++
		return true
	}
	found, ok, err := s.indexed(ctx, id, fits, wanted)
	if err == nil && !ok {
		found, err = s.remarks(ctx, id, 0, func(r *remark) bool {
			if !wanted(r) {
				return false
			}
			r.text = cut(r.text, fits)
			return true
		})
	}
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "Nothing was found in this session.", nil
	}
	best, all := bestOf(found, fits)
	var w strings.Builder
	w.WriteString("In this session:\n")
	for _, r := range best {
		fmt.Fprintf(&w, "[%d] %s: %s\n", r.at, r.who, r.text)
	}
	if all > len(best) {
		fmt.Fprintf(&w, "%d matches that fit less are not shown: say more of what you look for.", all-len(best))
	}
	return w.String(), nil
}

// mostCandidates is how many events an index is asked for. The best of their remarks are shown.
const mostCandidates = 200

// indexed returns the remarks that are wanted among those that the index of the store finds.
// It is not ok if there is no index.
func (s *Search) indexed(ctx context.Context, id event.SessionID, fits *rank.Ranking, wanted func(*remark) bool) (list []remark, ok bool, err error) {
	index, ok := s.log.(eventlog.Finder)
	if !ok {
		return nil, false, nil
	}
	places, ok := index.Find(ctx, id, fits.Terms(), mostCandidates)
	if !ok {
		return nil, false, nil
	}
	for _, at := range places {
		remarks, err := s.remarksAt(ctx, id, at)
		if err != nil {
			return nil, true, err
		}
		for _, r := range remarks {
			if wanted(&r) {
				list = append(list, r)
			}
		}
	}
	if n := len(places); n > 0 {
		fits.Among(int(places[n-1]))
	}
	for i := range list {
		list[i].text = cut(list[i].text, fits)
	}
	return list, true, nil
}

// remarksAt returns the remarks of one event. The name of the tool that gave a result is in an
// event before it, mostly a few events before.
func (s *Search) remarksAt(ctx context.Context, id event.SessionID, at event.Seq) ([]remark, error) {
	for back := event.Seq(1); ; back *= 16 {
		names := make(map[string]string)
		var found []remark
		var e event.Event
		for next, err := range s.log.Read(ctx, id, max(0, at-back)) {
			if err != nil {
				return nil, err
			}
			if found = read(next, names); next.Seq >= at {
				e = next
				break
			}
		}
		d, _ := event.As[event.ToolCompleteData](e)
		if e.Type != event.ToolComplete || names[d.ToolCallID] != "" || back >= at {
			return found, nil
		}
	}
}

// bestOf returns the remarks that fit best, in order, and the number of all.
func bestOf(found []remark, fits *rank.Ranking) (best []remark, all int) {
	hits, _ := fits.Best(len(found) + mostUndone)
	for _, hit := range hits {
		i, there := slices.BinarySearchFunc(found, hit.Index, func(r remark, index int) int { return r.index - index })
		if !there {
			continue // it was taken back
		}
		if all++; len(best) < mostHits {
			best = append(best, found[i])
		}
	}
	slices.SortFunc(best, func(a, b remark) int { return a.index - b.index })
	return best, all
}

// mostUndone is how many remarks that were taken back may have fitted the query.
const mostUndone = 1 << 20

// from returns the remarks of a session from an event on.
func (s *Search) from(ctx context.Context, id event.SessionID, at event.Seq) (string, error) {
	size := 0
	all, err := s.remarks(ctx, id, at, func(r *remark) bool {
		r.text = render.Cut(strings.TrimSpace(r.text), mostSaid)
		size += len(r.text)
		return size < 4*mostBytes // more than needed, because some may have been undone
	})
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return fmt.Sprintf("Nothing was said in this session from event %d on.", at), nil
	}
	var w strings.Builder
	for _, r := range all {
		if w.Len() > mostBytes {
			fmt.Fprintf(&w, "There is more: read on from event %d.", r.at)
			break
		}
		fmt.Fprintf(&w, "[%d] %s: %s\n", r.at, r.who, r.text)
	}
	return w.String(), nil
}

// cut returns a part of a text as one line, around the first word that the query has.
func cut(text string, fits *rank.Ranking) string {
	line := strings.Join(strings.Fields(text), " ")
	if len(line) <= mostLine {
		return line
	}
	at := 0
	if fits != nil {
		at = fits.First(line)
	}
	first := max(0, min(at-mostLine/3, len(line)-mostLine))
	return "…" + strings.ToValidUTF8(line[first:first+mostLine], "") + "…"
}
