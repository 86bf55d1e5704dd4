package rpc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
)

func TestSessionsAreListedInPages(t *testing.T) {
	p := newWired(t).connect(rpc.Door{})
	folders := map[string]string{}
	for i := range 7 {
		folders[fmt.Sprint("s", i)] = t.TempDir()
	}
	said(t, p, folders)
	var all api.ListResult
	p.must(api.SessionList, object{}, &all)
	if len(all.Sessions) != 7 || all.NextCursor != "" {
		t.Fatalf("without a limit: %d sessions, cursor %q", len(all.Sessions), all.NextCursor)
	}
	for _, limit := range []int{1, 3, 6, 7, 8} {
		var ids []string
		cursor, pages := "", 0
		for pages == 0 || cursor != "" {
			var page api.ListResult
			p.must(api.SessionList, object{"limit": limit, "cursor": cursor}, &page)
			for _, s := range page.Sessions {
				ids = append(ids, string(s.SessionID))
			}
			if cursor = page.NextCursor; len(page.Sessions) > limit {
				t.Errorf("a page of %d has %d sessions", limit, len(page.Sessions))
			}
			pages++
		}
		var want []string
		for _, s := range all.Sessions {
			want = append(want, string(s.SessionID))
		}
		if strings.Join(ids, " ") != strings.Join(want, " ") || pages != (7+limit-1)/limit {
			t.Errorf("%d pages of %d: %q, want %q", pages, limit, ids, want)
		}
	}
}

func TestAListIsFiltered(t *testing.T) {
	p := newWired(t).connect(rpc.Door{})
	said(t, p, map[string]string{"abc": t.TempDir(), "abd": t.TempDir()})
	p.must(api.NameSet, object{"sessionId": "abc", "name": "Große Reise"}, nil)
	later := event.FormatTime(time.Now().Add(time.Hour))
	for _, test := range []struct {
		filter object
		want   int
	}{
		{object{"idPrefix": "ab"}, 2},
		{object{"idPrefix": "abc"}, 1},
		{object{"text": "große"}, 1},
		{object{"state": "idle"}, 2},
		{object{"state": "damaged"}, 0},
		{object{"modifiedBefore": later}, 2},
		{object{"modifiedSince": later}, 0},
	} {
		var r api.ListResult
		p.must(api.SessionList, object{"filter": test.filter, "limit": 10}, &r)
		if len(r.Sessions) != test.want {
			t.Errorf("%v: %d sessions, want %d", test.filter, len(r.Sessions), test.want)
		}
	}
	for want, params := range map[string]object{
		"filter.state":          {"filter": object{"state": "asleep"}},
		"filter.modifiedSince":  {"filter": object{"modifiedSince": "yesterday"}},
		"filter.modifiedBefore": {"filter": object{"modifiedBefore": "1"}},
		"limit: it is negative": {"limit": -1},
		"cursor: \"x\"":         {"cursor": "x"},
		"cursor: \"1.2\"":       {"cursor": "1.2"},
		"cursor: \"1.2.3.4\"":   {"cursor": "1.2.3.4"},
		"cursor: \"1..3\"":      {"cursor": "1..3"},
	} {
		if fault := p.refused(api.SessionList, params); !strings.Contains(fault.Message, want) {
			t.Errorf("%v: %s, want %s", params, fault.Message, want)
		}
	}
	if fault := p.refused(api.Search, object{"text": "()"}); !strings.Contains(fault.Message, "no word") {
		t.Error(fault)
	}
}
