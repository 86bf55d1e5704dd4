package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/seal"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, body event.Payload) event.Event {
	t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(1760000000, 0)}, body)
	must(t, err)
	return e
}

func say(t testing.TB, text string) event.Event {
	return encode(t, event.UserMessageData{Content: text})
}

// newMove returns a move of a data folder that has nothing yet.
func newMove(t testing.TB, url string) Move {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(dir, 0o700))
	return Move{Dir: dir, Store: filepath.Join(dir, "abide.db"), KeyFile: filepath.Join(dir, seal.FileName), To: url}
}

func (m Move) openSource(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), m.Store, sqlite.Options{KeyFile: m.KeyFile, Sync: eventlog.Normal})
	must(t, err)
	return s
}

func (m Move) openTarget(t testing.TB) *postgres.Store {
	t.Helper()
	key := m.TargetKeyFile
	if key == "" {
		key = m.KeyFile
	}
	s, err := postgres.Open(t.Context(), m.To, eventlog.Options{KeyFile: key, Warn: func(line string) { t.Error("the database warns:", line) }})
	must(t, err)
	return s
}

const secretValue = "sk-a-secret-that-nobody-may-find"

// add makes a session with a turn of some events, its cost, and a secret.
func add(t testing.TB, s eventlog.Store, id event.SessionID, info eventlog.Info) eventlog.End {
	t.Helper()
	info.Listed, info.Name, info.Dir = true, "about "+string(id), "/work/"+string(id)
	usd := 0.25
	end, err := s.Append(t.Context(), id, eventlog.Batch{
		Events:  []event.Event{say(t, "hello from "+string(id)), say(t, strings.Repeat("words ", 40))},
		Info:    &info,
		Secrets: []eventlog.Secret{{Name: "env", Value: []byte(secretValue)}},
		Jobs:    []eventlog.JobChange{{Job: eventlog.Job{ID: "job-" + string(id), Kind: eventlog.JobExtract, Session: id, From: 1, To: 2, Due: time.UnixMicro(1760000000000000), Error: "none yet"}}},
	})
	must(t, err)
	end, err = s.Append(t.Context(), id, eventlog.Batch{After: end, Events: []event.Event{
		encode(t, event.AssistantUsageData{Model: "m", InputTokens: 7, OutputTokens: 3, CostUSD: &usd}), say(t, "bye"),
	}})
	must(t, err)
	return end
}

// fill makes sessions of every kind: plain ones, forks, one of which the parent is deleted, an agent,
// one in another workspace, one with an unfinished turn, and one that is only there for its forks.
func fill(t testing.TB, m Move, plain int) {
	t.Helper()
	s := m.openSource(t)
	defer func() { must(t, s.Close()) }()
	for i := range plain {
		add(t, s, event.SessionID(fmt.Sprintf("plain-%05d", i)), eventlog.Info{})
	}
	parent := add(t, s, "parent", eventlog.Info{})
	add(t, s, "gone", eventlog.Info{})
	at := func(id event.SessionID, n event.Seq) eventlog.End {
		end, err := s.EndAt(t.Context(), id, n)
		must(t, err)
		return end
	}
	fork := func(child, of event.SessionID, after eventlog.End) {
		_, err := s.Fork(t.Context(), child, of, eventlog.Batch{After: after, Events: []event.Event{say(t, "the fork "+string(child))}, Info: &eventlog.Info{Listed: true}})
		must(t, err)
	}
	fork("fork-at-the-end", "parent", parent)
	fork("fork-in-the-middle", "parent", at("parent", 3))
	fork("fork-of-gone", "gone", at("gone", 1))
	fork("fork-of-a-fork", "fork-of-gone", at("fork-of-gone", 2))
	must(t, s.Delete(t.Context(), "gone"))
	_, err := s.Append(t.Context(), "agent", eventlog.Batch{Events: []event.Event{encode(t, event.SessionConfiguredData{Agent: &event.AgentOf{Session: "parent"}})}, Info: &eventlog.Info{}})
	must(t, err)
	add(t, s, "elsewhere", eventlog.Info{Workspace: &event.Workspace{Name: "box"}})
	add(t, s, "active", eventlog.Info{Active: true})
	must(t, s.PutSecrets(t.Context(), "parent", eventlog.Secret{Name: "other", Value: []byte("another")}))
	add(t, s, "deleted", eventlog.Info{})
	must(t, s.Delete(t.Context(), "deleted"))
}

// What a store has, in a form that can be compared.
type contents struct {
	Sessions map[event.SessionID]eventlog.Session
	Events   map[event.SessionID][]string
	Secrets  map[event.SessionID]string
	Jobs     []eventlog.Job
	Costs    []eventlog.Cost
}

// read reads all that a store has.
func read(t testing.TB, s eventlog.Store) contents {
	t.Helper()
	c := contents{map[event.SessionID]eventlog.Session{}, map[event.SessionID][]string{}, map[event.SessionID]string{}, nil, nil}
	for one, err := range s.Sessions(t.Context(), eventlog.Query{}) {
		must(t, err)
		if _, twice := c.Sessions[one.ID]; twice {
			t.Errorf("session %s is there twice", one.ID)
		}
		one.Row = 0
		c.Sessions[one.ID] = one
		end := eventlog.End{}
		for e, err := range s.Read(t.Context(), one.ID, 0) {
			if damage, is := errors.AsType[*eventlog.Damage](err); is {
				c.Events[one.ID] = append(c.Events[one.ID], damage.Error())
				end = one.End
				break
			}
			must(t, err)
			end = end.Next(e.Bytes)
			c.Events[one.ID] = append(c.Events[one.ID], string(e.Bytes))
		}
		if end != one.End {
			t.Errorf("the chain of session %s does not end where the index says", one.ID)
		}
		for _, name := range []string{"env", "other"} {
			value, err := s.Secret(t.Context(), one.ID, name)
			must(t, err)
			c.Secrets[one.ID] += string(value) + " "
		}
	}
	var err error
	c.Jobs, err = s.Jobs(t.Context(), "")
	must(t, err)
	slices.SortFunc(c.Jobs, func(a, b eventlog.Job) int { return strings.Compare(a.ID, b.ID) })
	c.Costs, err = s.Costs(t.Context(), eventlog.CostQuery{BySession: true, ByDay: true, ByModel: true, ByPurpose: true})
	must(t, err)
	return c
}

// before reads what the source has.
func before(t testing.TB, m Move) contents {
	t.Helper()
	s := m.openSource(t)
	defer func() { must(t, s.Close()) }()
	return read(t, s)
}

// checkMoved checks that the database has what the source had, and that the source refuses.
func checkMoved(t testing.TB, m Move, want contents) {
	t.Helper()
	s := m.openTarget(t)
	defer s.Close()
	same(t, read(t, s), want)
	if _, err := sqlite.Open(t.Context(), m.Store, sqlite.Options{KeyFile: m.KeyFile}); err == nil || !strings.Contains(err.Error(), "were moved to postgres database") {
		t.Errorf("the old log opens with %v", err)
	}
}

func same(t testing.TB, got, want contents) {
	t.Helper()
	if len(got.Sessions) != len(want.Sessions) {
		t.Errorf("there are %d sessions, want %d", len(got.Sessions), len(want.Sessions))
	}
	wrong := 0
	for id, w := range want.Sessions {
		g := got.Sessions[id]
		if wrong < 5 && (!reflect.DeepEqual(g, w) || !slices.Equal(got.Events[id], want.Events[id]) || got.Secrets[id] != want.Secrets[id]) {
			wrong++
			t.Errorf("session %s is\n%+v\nwant\n%+v\nits events\n%s\nwant\n%s\nits secrets %q, want %q", id, g, w, got.Events[id], want.Events[id], got.Secrets[id], want.Secrets[id])
		}
	}
	if !slices.EqualFunc(got.Jobs, want.Jobs, func(a, b eventlog.Job) bool {
		return a.Due.Equal(b.Due) && func() bool { a.Due = b.Due; return a == b }()
	}) {
		t.Errorf("the jobs are\n%+v\nwant\n%+v", got.Jobs, want.Jobs)
	}
	if !slices.Equal(got.Costs, want.Costs) {
		t.Errorf("the costs are\n%+v\nwant\n%+v", got.Costs, want.Costs)
	}
}

// The variables of a process that a test kills.
const (
	victimFolder = "MOVE_TEST_FOLDER"
	victimStep   = "MOVE_TEST_STEP"
	victimTo     = "MOVE_TEST_TO"
	victimPage   = "MOVE_TEST_PAGE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimFolder); dir != "" {
		runVictim(dir)
	}
	os.Exit(m.Run())
}

// runVictim moves a folder, and is killed at a step.
func runVictim(dir string) {
	last, _ := strconv.Atoi(os.Getenv(victimStep))
	page, _ = strconv.Atoi(os.Getenv(victimPage))
	n := 0
	m := Move{Dir: dir, Store: filepath.Join(dir, "abide.db"), KeyFile: filepath.Join(dir, seal.FileName), To: os.Getenv(victimTo)}
	m.AtStep = func(string) {
		if n++; n == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	if _, err := m.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// killAt runs a move in a process that is killed at its n-th step, and reports whether it was.
func killAt(t testing.TB, m Move, n, page int) (killed bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), victimFolder+"="+m.Dir, victimTo+"="+m.To, fmt.Sprint(victimStep, "=", n), fmt.Sprint(victimPage, "=", page))
	out, err := c.CombinedOutput()
	exit, is := errors.AsType[*exec.ExitError](err)
	killed = is && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Fatalf("killed at %d: %v\n%s", n, err, out)
	}
	return killed
}
