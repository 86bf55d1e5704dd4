package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// liarFiles are files that answer with what a test wants, whatever they are asked.
type liarFiles struct {
	workspace.Files
	judged    workspace.Judgement
	found     workspace.Found
	collected workspace.Collected
	looked    disk.Answer
	shown     workspace.Shown
	surveyed  func(workspace.SurveyRequest) workspace.Survey
	failed    error
}

func (l *liarFiles) Look(context.Context, ...disk.Question) ([]disk.Answer, error) {
	return []disk.Answer{l.looked}, nil
}

func (l *liarFiles) Show(context.Context, *scope.Scope, workspace.ShowRequest) (workspace.Shown, error) {
	return l.shown, nil
}

func (l *liarFiles) Survey(_ context.Context, r workspace.SurveyRequest) (workspace.Survey, error) {
	return l.surveyed(r), nil
}

func (l *liarFiles) Judge(_ context.Context, _ *scope.Scope, asked ...workspace.Question) ([]workspace.Judgement, error) {
	return []workspace.Judgement{l.judged}, l.failed
}

func (l *liarFiles) Grep(context.Context, *scope.Scope, workspace.GrepQuery) (workspace.Found, error) {
	return l.found, nil
}

func (l *liarFiles) Collect(context.Context, ...workspace.Selection) ([][]workspace.Collected, error) {
	return [][]workspace.Collected{{l.collected}}, nil
}

// liarProcesses are processes that answer with what a test wants.
type liarProcesses struct {
	workspace.Processes
	chunk  process.Chunk
	text   string
	info   process.Info
	frames []workspace.Frame
}

func (l *liarProcesses) Start(context.Context, process.Spec) (process.Info, bool, error) {
	return l.info, false, nil
}

func (l *liarProcesses) Get(context.Context, process.Owner, process.ID) (process.Info, error) {
	return l.info, nil
}

func (l *liarProcesses) List(context.Context, process.Owner) ([]process.Info, error) {
	return []process.Info{l.info}, nil
}

func (l *liarProcesses) Wait(context.Context, process.Owner, process.ID) (process.Info, error) {
	return l.info, nil
}

func (l *liarProcesses) Stop(context.Context, process.Owner, process.ID) (process.Info, error) {
	return l.info, nil
}

func (l *liarProcesses) Follow(context.Context, process.Owner, process.ID, int64) iter.Seq2[workspace.Frame, error] {
	return func(yield func(workspace.Frame, error) bool) {
		for _, frame := range l.frames {
			if !yield(frame, nil) {
				return
			}
		}
	}
}

func (l *liarProcesses) Read(context.Context, process.Owner, process.ID, process.ReadRequest) (process.Chunk, error) {
	return l.chunk, nil
}

func (l *liarProcesses) Tail(context.Context, process.Owner, process.ID, int, process.Stream) (process.Chunk, error) {
	return l.chunk, nil
}

func (l *liarProcesses) View(context.Context, process.Owner, process.ID, process.Stream) (string, *process.TruncationInfo, error) {
	return l.text, nil, nil
}

// checkRefused fails unless an answer was refused because it is more than was asked for, or
// taken if it is not.
func checkRefused(t *testing.T, what string, err error, want bool) {
	t.Helper()
	if refused := err != nil && strings.Contains(err.Error(), "more than it was asked for"); refused != want || err != nil && !refused {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAnswersAboutFilesAreBounded(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	judge := func() error {
		_, err := files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/f", Most: 10})
		return err
	}
	for content, refused := range map[string]bool{"0123456789": false, "0123456789+": true} {
		liar.judged.Content = []byte(content)
		checkRefused(t, "judge "+content, judge(), refused)
		liar.collected = workspace.Collected{Path: "/f", Content: []byte(content)}
		_, err := files.Collect(t.Context(), workspace.Selection{Dir: "/", Names: []string{"f"}, Most: 10})
		checkRefused(t, "collect "+content, err, refused)
	}
	for length, refused := range map[int]bool{64 << 10: false, 64<<10 + 1: true} {
		liar.judged = workspace.Judgement{Finding: scope.Finding{Path: strings.Repeat("p", length)}}
		checkRefused(t, fmt.Sprint("a path of ", length), judge(), refused)
	}
	for name, refused := range map[string]bool{"src": false, "other": true} {
		liar.found.Missing = []string{name}
		_, err := files.Grep(t.Context(), new(scope.Scope), workspace.GrepQuery{Pattern: "x", Roots: []workspace.SearchRoot{{Path: "/src", Given: "src"}}})
		checkRefused(t, "missing "+name, err, refused)
	}
}

func TestTheTextOfAnErrorIsBounded(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files, failed: errors.New(strings.Repeat("x", 100_000))}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	ask := func() error {
		list, err := files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/f"})
		if err == nil {
			err = list[0].Err
		}
		return err
	}
	if err := ask(); err == nil || len(err.Error()) > 5000 || !strings.HasSuffix(err.Error(), "bytes more)") {
		t.Errorf("a request has failed with %.5100v", err)
	}
	liar.judged.Err, liar.failed = liar.failed, nil
	if err := ask(); err == nil || len(err.Error()) > 5000 {
		t.Errorf("a path has the problem %.5100v", err)
	}
}

func TestOutputIsWithinTheRangeThatWasAskedFor(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := new(liarProcesses)
	ws.Processes = liar
	processes := bridgetest.Over(t, "unix", ws).Processes
	for what, c := range map[string]struct {
		chunk   process.Chunk
		request process.ReadRequest
		refused bool
	}{
		"all of it":          {process.Chunk{Data: []byte("01234"), Next: 15}, process.ReadRequest{Offset: 10, Until: 15}, false},
		"one stream":         {process.Chunk{Data: []byte("01"), Next: 15}, process.ReadRequest{Offset: 10, Until: 15}, false},
		"not kept":           {process.Chunk{Next: 15, Omitted: 5}, process.ReadRequest{Offset: 10}, false},
		"nothing yet":        {process.Chunk{Next: 10}, process.ReadRequest{Offset: 10}, false},
		"more than it says":  {process.Chunk{Data: []byte("01234"), Next: 11}, process.ReadRequest{Offset: 10, Until: 15}, true},
		"beyond the range":   {process.Chunk{Data: []byte("012345"), Next: 16}, process.ReadRequest{Offset: 10, Until: 15}, true},
		"before the range":   {process.Chunk{Next: 9}, process.ReadRequest{Offset: 10, Until: 15}, true},
		"more than a limit":  {process.Chunk{Data: []byte("01234"), Next: 15}, process.ReadRequest{Offset: 10, Limit: 4}, true},
		"more than is usual": {process.Chunk{Data: make([]byte, 64<<10+1), Next: 64<<10 + 1}, process.ReadRequest{}, true},
	} {
		liar.chunk = c.chunk
		_, err := processes.Read(t.Context(), "me", "p", c.request)
		checkRefused(t, what, err, c.refused)
	}
	for n, refused := range map[int]bool{5: false, 4: true} {
		liar.chunk = process.Chunk{Data: []byte("01234"), Next: 5}
		_, err := processes.Tail(t.Context(), "me", "p", n, process.Both)
		checkRefused(t, fmt.Sprint("the last ", n), err, refused)
	}
	for length, refused := range map[int]bool{100: false, 1 << 20: true} {
		liar.text = strings.Repeat("x", length)
		_, _, err := processes.View(t.Context(), "me", "p", process.Both)
		checkRefused(t, fmt.Sprint("a view of ", length), err, refused)
	}
}

// The names in an error become a part of its text, which a model reads and the log keeps.
func TestTheNamesInAnErrorAreBounded(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	long := strings.Repeat("x", 1<<20)
	for what, err := range map[string]error{
		"a path":       &fs.PathError{Op: "read", Path: long, Err: fs.ErrPermission},
		"an operation": &fs.PathError{Op: long, Path: "/f", Err: fs.ErrPermission},
		"a refusal":    &scope.Refusal{Finding: scope.Finding{Verdict: scope.Denied, Path: long, Rule: long}, Name: long},
		"protection":   &scope.Refusal{Finding: scope.Finding{Verdict: scope.Denied, Path: "/f", Protected: long}, Name: "/f"},
		"a start":      &process.StartError{ID: process.ID(long), Reason: long},
		"a cap":        &process.CapError{What: long},
	} {
		liar.failed, liar.judged.Err = err, nil
		_, err := files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/f"})
		if err == nil || len(err.Error()) > 200<<10 || strings.Contains(what, "start") && !errors.As(err, new(*process.StartError)) {
			t.Errorf("%s: a request has failed with %.300v", what, err)
		}
		liar.failed, liar.judged.Err = nil, liar.failed
		if list, err := files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/f"}); err != nil || len(list[0].Err.Error()) > 200<<10 {
			t.Errorf("%s: a path has the problem %.300v, %v", what, list, err)
		}
	}
}

func TestWhatIsFoundOutAboutACommandIsBounded(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	for _, c := range []struct {
		kind    disk.Kind
		answer  disk.Answer
		refused bool
	}{
		{disk.Leads, disk.Answer{Text: strings.Repeat("p", 64<<10)}, false},
		{disk.Leads, disk.Answer{Text: strings.Repeat("p", 64<<10+1)}, true},
		{disk.Submodules, disk.Answer{More: strings.Repeat("p", 64<<10+1)}, true},
		{disk.Remotes, disk.Answer{Text: strings.Repeat("p", 64<<10+1)}, false},
		{disk.Remotes, disk.Answer{Text: strings.Repeat("p", 1<<20+1)}, true},
	} {
		liar.looked = c.answer
		_, err := files.Look(t.Context(), disk.Question{Kind: c.kind, Path: "/f"})
		checkRefused(t, fmt.Sprint("kind ", c.kind, " with ", len(c.answer.Text), " bytes"), err, c.refused)
	}
}

func TestAnImageIsOne(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	for kind, refused := range map[string]bool{"": false, "image/png": false, "text/html": true, "image/" + strings.Repeat("x", 2000): true} {
		liar.shown = workspace.Shown{Image: kind, Content: []byte("x")}
		_, err := files.Show(t.Context(), new(scope.Scope), workspace.ShowRequest{Path: "/f", MaxImage: 100, MaxWhole: 100})
		checkRefused(t, fmt.Sprintf("%.20q", kind), err, refused)
	}
	liar.shown = workspace.Shown{Folder: true, Names: []string{strings.Repeat("n", 64<<10+1)}}
	_, err := files.Show(t.Context(), new(scope.Scope), workspace.ShowRequest{Path: "/f", MaxNames: 100})
	checkRefused(t, "a long name", err, true)
}

// A survey asks again until it has all states. Each answer may bring one with a long link or a
// long reason.
func TestASurveyIsBounded(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarFiles{Files: ws.Files}
	ws.Files = liar
	files := bridgetest.Over(t, "unix", ws).Files
	half := strings.Repeat("x", 1<<19)
	for what, c := range map[string]struct {
		state  protect.State
		reason string
	}{
		"links":   {state: protect.State{Exists: true, Link: half}},
		"digests": {state: protect.State{Exists: true, Digest: half}},
		"reasons": {reason: half},
	} {
		liar.surveyed = func(r workspace.SurveyRequest) workspace.Survey {
			s := workspace.Survey{States: make(map[string]protect.State), Reasons: make(map[string]string)}
			for path := range r.Known {
				if s.States[path], s.Reasons[path] = c.state, c.reason; len(s.States) == 16 {
					break
				}
			}
			if !r.Only {
				for i := range 200 {
					s.Targets = append(s.Targets, workspace.SurveyTarget{Target: protect.Target{Path: fmt.Sprint("/", i)}})
				}
			}
			return s
		}
		_, err := files.Survey(t.Context(), workspace.SurveyRequest{})
		checkRefused(t, what, err, true)
	}
	for length, refused := range map[int]bool{64 << 10: false, 64<<10 + 1: true} {
		for what, s := range map[string]workspace.Survey{
			"a target": {Targets: []workspace.SurveyTarget{{Target: protect.Target{Path: strings.Repeat("p", length)}}}},
			"a folder": {Folders: []string{strings.Repeat("p", length)}},
		} {
			liar.surveyed = func(workspace.SurveyRequest) workspace.Survey { return s }
			_, err := files.Survey(t.Context(), workspace.SurveyRequest{})
			checkRefused(t, fmt.Sprint(what, " with ", length, " bytes"), err, refused)
		}
	}
}

// The name of a process is stored, and so are the signal that ended it and its state.
func TestAProcessCannotHaveAnyName(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := new(liarProcesses)
	ws.Processes = liar
	processes := bridgetest.Over(t, "unix", ws).Processes
	good := process.Info{Owner: "me", Key: "k", ID: process.IDOf("me", "k"), State: process.Exited, Exit: &process.Exit{}}
	for what, change := range map[string]func(*process.Info){
		"":            func(*process.Info) {},
		"its name":    func(i *process.Info) { i.ID = "p\x1b[2J" },
		"a long name": func(i *process.Info) { i.Key = strings.Repeat("k", 64<<10+1); i.ID = process.IDOf(i.Owner, i.Key) },
		"its state":   func(i *process.Info) { i.State = "done" },
		"its signal":  func(i *process.Info) { i.Exit = &process.Exit{Signal: strings.Repeat("S", 2000)} },
		"its folder":  func(i *process.Info) { i.Files.Dir = strings.Repeat("d", 64<<10+1) },
	} {
		liar.info = good
		change(&liar.info)
		liar.frames = []workspace.Frame{{End: &liar.info}}
		_, _, err := processes.Start(t.Context(), process.Spec{Owner: "me", Key: "k", Command: "true"})
		checkRefused(t, "start: "+what, err, what != "")
		for call, ask := range map[string]func() (process.Info, error){
			"get":  func() (process.Info, error) { return processes.Get(t.Context(), "me", "p") },
			"wait": func() (process.Info, error) { return processes.Wait(t.Context(), "me", "p") },
			"stop": func() (process.Info, error) { return processes.Stop(t.Context(), "me", "p") },
			"list": func() (process.Info, error) {
				_, err := processes.List(t.Context(), "me")
				return good, err
			},
		} {
			_, err := ask()
			checkRefused(t, call+": "+what, err, what != "")
		}
		if what == "" {
			continue
		}
		liar.info = good // the stream begins with what is known
		bad := good
		change(&bad)
		liar.frames = []workspace.Frame{{End: &bad}}
		for _, err := range processes.Follow(t.Context(), "me", "p", 0) {
			checkRefused(t, "follow: "+what, err, true)
		}
	}
}

func TestOutputThatIsFollowedComesOnce(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	liar := &liarProcesses{info: process.Info{Owner: "me", Key: "k", ID: process.IDOf("me", "k"), State: process.Running}}
	ws.Processes = liar
	liar.frames = []workspace.Frame{{Stream: process.Stdout, Data: []byte("one")}, {Stream: process.Stdout, Offset: 2, Data: []byte("two")}}
	var last error
	got := ""
	for frame, err := range bridgetest.Over(t, "unix", ws).Processes.Follow(t.Context(), "me", "p", 0) {
		got, last = got+string(frame.Data), err
	}
	checkRefused(t, "output that was there before", last, true)
	if got != "one" {
		t.Errorf("the output is %q", got)
	}
}

// An answer of empty parts takes two bytes for each, and hundreds in memory.
func TestAnAnswerOfManyPartsIsNotDecoded(t *testing.T) {
	parts := strings.Repeat("\x0a\x00", 2_000_000)
	m := serveAnswers(t, envelope(uint32(len(parts)), parts))
	c := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}})
	ws := c.Workspace()
	for what, ask := range map[string]func() error{
		"list": func() error {
			_, err := ws.Processes.List(t.Context(), "me")
			return err
		},
		"folder": func() error {
			_, err := ws.Files.List(t.Context(), workspace.At("f"), workspace.ListOptions{})
			return err
		},
		"survey": func() error {
			_, err := ws.Files.Survey(t.Context(), workspace.SurveyRequest{})
			return err
		},
		"collect": func() error {
			_, err := ws.Files.Collect(t.Context(), workspace.Selection{})
			return err
		},
	} {
		checkRefused(t, what, ask(), true)
	}
}

// A list of numbers takes one byte for each, and eight in memory.
func TestAnAnswerOfManyNumbersIsNotDecoded(t *testing.T) {
	numbers := make([]byte, 1_000_000)
	packed, err := proto.Marshal(&pb.CountResponse{Counts: make([]int64, len(numbers))})
	must(t, err)
	for what, text := range map[string]string{"packed": string(packed), "one by one": strings.Repeat("\x08\x00", len(numbers))} {
		m := serveAnswers(t, envelope(uint32(len(text)), text))
		_, err := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}}).Workspace().Files.Count(t.Context(), "/f")
		checkRefused(t, what, err, true)
	}
}

func TestWhatAWorkspaceSaysOfItselfIsBounded(t *testing.T) {
	for what, about := range map[string]*pb.DescribeResponse{
		"identity":     {Identity: strings.Repeat("i", 2000)},
		"control":      {Identity: "a\x1b[2Jb"},
		"two lines":    {Identity: "a\nb"},
		"letters":      {Identity: "ünder"},
		"version":      {Version: strings.Repeat("v", 2000)},
		"folder":       {Directory: []byte("/" + strings.Repeat("d", 64<<10))},
		"environment":  {Environment: [][]byte{make([]byte, 4<<20), make([]byte, 1)}},
		"all in order": {Identity: "OURS-1", Version: "v1", Directory: []byte("/src"), Environment: [][]byte{[]byte("A=b")}},
	} {
		about.Protocol = bridge.Protocol
		text, err := proto.Marshal(about)
		must(t, err)
		m := serveAnswers(t, envelope(uint32(len(text)), string(text)))
		_, err = client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}}).Describe(t.Context())
		if (err == nil) != (what == "all in order") {
			t.Errorf("%s: %.200v", what, err)
		}
	}
}

// A client does not rely on whoever answers to compare identities.
func TestAnotherWorkspaceThatAnswersIsRefused(t *testing.T) {
	text, err := proto.Marshal(&pb.DescribeResponse{Identity: "another", Protocol: bridge.Protocol})
	must(t, err)
	m := serveAnswers(t, envelope(uint32(len(text)), string(text)))
	for wanted, refused := range map[string]bool{"": false, "another": false, "ours": true} {
		_, err := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}, Identity: wanted}).Describe(t.Context())
		if errors.Is(err, workspace.ErrOther) != refused || err != nil && !refused {
			t.Errorf("of a workspace that is to be %q: %v", wanted, err)
		}
	}
}
