package rpc_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
)

// said makes sessions that were spoken to, each in its folder.
func said(t *testing.T, p *peer, folders map[string]string) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(folders)) {
		p.must(api.SessionCreate, object{"sessionId": id, "workingDirectory": folders[id]}, nil)
		p.must(api.SessionSend, object{"sessionId": id, "prompt": "Reply with exactly: HI"}, nil)
		p.await(event.SessionIdle)
	}
}

func TestTheSessionsOfAFolder(t *testing.T) {
	p := newFiled(t).connect(rpc.Door{})
	repo := t.TempDir()
	if err := os.MkdirAll(filepath.Join(repo, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	sub, elsewhere := filepath.Join(repo, "sub"), t.TempDir()
	said(t, p, map[string]string{"aa1": repo, "aa2": sub, "b": elsewhere})
	ids := func(filter object) string {
		var r api.ListResult
		p.must(api.SessionsList, object{"filter": filter}, &r)
		var list []string
		for _, s := range r.Sessions {
			list = append(list, string(s.SessionID))
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	for want, filter := range map[string]object{"aa1 aa2 b": {}, "b": {"cwd": elsewhere}, "aa1 aa2": {"gitRoot": repo}, "": {"branch": "main"}} {
		if got := ids(filter); got != want {
			t.Errorf("with %v: %q, want %q", filter, got, want)
		}
	}
	find := func(method string, params object) event.SessionID {
		var r api.LastIDResult
		p.must(method, params, &r)
		return r.SessionID
	}
	for _, test := range []struct {
		method string
		params object
		want   event.SessionID
	}{
		{api.SessionsByPrefix, object{"prefix": "aa2"}, "aa2"},
		{api.SessionsByPrefix, object{"prefix": "aa"}, ""}, // two
		{api.SessionsByPrefix, object{"prefix": "zz"}, ""},
		{api.SessionsLast, object{"context": object{"cwd": repo}}, "aa1"},
		{api.SessionsLast, object{"context": object{"cwd": filepath.Join(repo, "other")}}, "aa2"}, // the last one in the repository
		{api.SessionsLast, object{"context": object{"cwd": t.TempDir()}}, ""},
		{api.SessionsLast, object{}, "b"},
	} {
		if got := find(test.method, test.params); got != test.want {
			t.Errorf("%s %v: %q, want %q", test.method, test.params, got, test.want)
		}
	}
	var some api.IDsResult
	p.must(api.SessionsIDs, object{"limit": 2}, &some)
	if len(some.SessionIDs) != 2 {
		t.Errorf("two of the ids are %v", some.SessionIDs)
	}
	var rich struct{ Sessions []api.SessionInfo }
	p.must(api.SessionsEnrich, object{"sessions": []object{{"sessionId": "b", "isRemote": false}, {"sessionId": "nope", "summary": "kept", "startTime": "then", "modifiedTime": "then", "isRemote": false}}}, &rich)
	if len(rich.Sessions) != 2 || rich.Sessions[0].Context.Cwd != elsewhere || rich.Sessions[1].Summary != "kept" {
		t.Errorf("enriched is %+v", rich)
	}
}

func TestASessionIsSavedClosedAndLetGo(t *testing.T) {
	r := newFiled(t)
	p, other := r.connect(rpc.Door{}), r.connect(rpc.Door{})
	said(t, p, map[string]string{"s": t.TempDir()})
	other.must(api.SessionResume, object{"sessionId": "s"}, nil)
	used := func() bool {
		var in api.InUseResult
		p.must(api.CheckInUse, object{"sessionIds": []string{"s"}}, &in)
		return len(in.InUse) > 0
	}
	p.must(api.SessionsSave, object{"sessionId": "s"}, nil)
	p.must(api.SessionsReleaseLock, object{"sessionId": "s"}, nil)
	if !used() {
		t.Error("what another client holds is let go")
	}
	other.must(api.SessionsClose, object{"sessionId": "s"}, nil)
	other.must(api.SessionsClose, object{"sessionId": "s"}, nil) // it is
	if used() {
		t.Error("a closed session is in use")
	}
	for method, want := range map[string]string{
		api.SessionsSave: "Session not found: nope", api.SessionsClose: "Session not found: nope", api.SessionsDelete: "Session not found: nope",
	} {
		if fault := p.refused(method, object{"sessionId": "nope"}); !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %s", method, fault.Message)
		}
	}
	for method, want := range map[string]string{api.SessionsByPrefix: "prefix: it is empty", api.SessionsPrune: "olderThanDays: want", api.SessionsReleaseLock: "sessionId: it is missing"} {
		if fault := p.refused(method, object{}); !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %s", method, fault.Message)
		}
	}
	if fault := p.refused(api.SessionsEnrich, object{"sessions": []object{{}}}); !strings.Contains(fault.Message, "sessions[0].sessionId") {
		t.Error(fault)
	}
}

func TestOldSessionsAreRemovedUnlessSomebodyNeedsThem(t *testing.T) {
	r := newFiled(t)
	p := r.connect(rpc.Door{})
	folders := map[string]string{}
	for _, id := range []string{"plain", "named", "kept", "used"} {
		folders[id] = t.TempDir()
	}
	said(t, p, folders)
	p.must(api.NameSet, object{"sessionId": "named", "name": "mine"}, nil)
	p.must(api.WorkspaceCreateFile, object{"sessionId": "plain", "path": "a", "content": strings.Repeat("x", 10000)}, nil)
	for _, id := range []string{"plain", "named", "kept"} {
		p.must(api.SessionDestroy, object{"sessionId": id}, nil)
	}
	prune := func(params object) string {
		t.Helper()
		var r api.PruneResult
		p.must(api.SessionsPrune, params, &r)
		for _, list := range [][]event.SessionID{r.Candidates, r.Deleted, r.Skipped} {
			slices.Sort(list)
		}
		if (r.FreedBytes > 10000) != slices.Contains(r.Candidates, "plain") {
			t.Errorf("%v: %d bytes are freed", params, r.FreedBytes)
		}
		return fmt.Sprintf("%v %v %v", r.Candidates, r.Deleted, r.Skipped)
	}
	for _, test := range []struct {
		params object
		want   string
	}{
		{object{"olderThanDays": 1}, "[] [] []"},
		{object{"olderThanDays": 0, "dryRun": true, "excludeSessionIds": []string{"kept"}}, "[plain] [] [kept named used]"},
		{object{"olderThanDays": 0, "dryRun": true, "includeNamed": true}, "[kept named plain] [] [used]"},
		{object{"olderThanDays": 0, "excludeSessionIds": []string{"kept"}}, "[plain] [plain] [kept named used]"},
		{object{"olderThanDays": 0, "dryRun": true}, "[kept] [] [named used]"},
	} {
		if got := prune(test.params); got != test.want {
			t.Errorf("%v: %s, want %s", test.params, got, test.want)
		}
	}
	var sizes api.SizesResult
	p.must(api.SessionsSizes, object{}, &sizes)
	if len(sizes.Sizes) != 3 || sizes.Sizes["kept"] < 500 {
		t.Errorf("the sizes are %v", sizes.Sizes)
	}
	var freed api.FreedResult
	p.must(api.SessionsBulkDelete, object{"sessionIds": []string{"kept", "nope", "used"}}, &freed)
	if len(freed.FreedBytes) != 2 || freed.FreedBytes["kept"] != sizes.Sizes["kept"] {
		t.Errorf("freed is %v", freed.FreedBytes)
	}
	p.must(api.SessionsDelete, object{"sessionId": "named"}, nil)
	var left api.ListResult
	p.must(api.SessionsList, object{}, &left)
	if len(left.Sessions) > 0 {
		t.Errorf("left are %+v", left.Sessions)
	}
}
