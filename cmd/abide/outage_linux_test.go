package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// refusalTime is how long a provider that is down takes to say so: requests that are made
// at the same time are seen to be.
const refusalTime = 100 * time.Millisecond

// A fallibleProvider is a model behind HTTP that is down until it is told to recover. The
// prompt of a turn contains its number.
type fallibleProvider struct {
	url string

	mu       sync.Mutex
	change   *sync.Cond
	engine   int            // number of the engine that is asking
	asking   map[int]int    // number of requests of an engine that are refused right now
	crowd    int            // most requests of parked turns that were refused at the same time
	refused  map[string]int // by turn
	answered map[string]int // by turn
	back     time.Time      // time of the recovery; zero while it is down
	requests []time.Time    // times of the requests since then
}

// engineOf is the key of the engine that has made a connection.
type engineOf struct{}

func newFallibleProvider(t *testing.T) *fallibleProvider {
	p := &fallibleProvider{asking: map[int]int{}, refused: map[string]int{}, answered: map[string]int{}}
	p.change = sync.NewCond(&p.mu)
	server := httptest.NewUnstartedServer(p)
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		p.mu.Lock()
		defer p.mu.Unlock()
		return context.WithValue(ctx, engineOf{}, p.engine)
	}
	server.Start()
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *fallibleProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		return
	}
	_, rest, _ := bytes.Cut(body, []byte("this is turn "))
	number, _, _ := bytes.Cut(rest, []byte("."))
	turn := string(number)
	if p.refuse(turn, r.Context().Value(engineOf{}).(int)) {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":"answer to %s"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, turn)
}

// refuse counts a request, and reports whether the provider is down.
func (p *fallibleProvider) refuse(turn string, engine int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.change.Broadcast()
	if !p.back.IsZero() {
		p.requests = append(p.requests, time.Now())
		p.answered[turn]++
		return false
	}
	p.refused[turn]++
	if engine > 0 { // the first one makes the first requests of all turns
		p.asking[engine]++
		p.crowd = max(p.crowd, p.asking[engine])
		p.mu.Unlock()
		time.Sleep(refusalTime)
		p.mu.Lock()
		p.asking[engine]--
	}
	return true
}

// await waits until the provider has seen enough.
func (p *fallibleProvider) await(enough func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !enough() {
		p.change.Wait()
	}
}

// total returns the number of requests that were refused. The mutex is held.
func (p *fallibleProvider) total() (n int) {
	for _, count := range p.refused {
		n += count
	}
	return n
}

// nextEngine lets the connections from here on be those of another engine. Those of the
// one before have arrived when a later one has.
func (p *fallibleProvider) nextEngine(t *testing.T) {
	t.Helper()
	r, err := http.Get(p.url)
	must(t, err)
	must(t, r.Body.Close())
	http.DefaultClient.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine++
}

func (p *fallibleProvider) recover() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back = time.Now()
}

// inTheFirstSecond counts the requests in the first second after the recovery and in the
// first second after the first request, whichever has more.
func (p *fallibleProvider) inTheFirstSecond() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := 0
	for _, from := range []time.Time{p.back, p.requests[0]} {
		n := 0
		for _, at := range p.requests {
			if at.Before(from.Add(time.Second)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// outageSize returns how many turns are under way, and how long the outage lasts at least:
// ABIDE_TURNS=200 ABIDE_OUTAGE=3m is the whole story. By default the outage is over as soon
// as each engine has been refused.
func outageSize(t *testing.T) (turns int, d time.Duration) {
	t.Helper()
	turns = 8
	var err error
	if s := os.Getenv("ABIDE_TURNS"); s != "" {
		turns, err = strconv.Atoi(s)
		must(t, err)
	}
	if s := os.Getenv("ABIDE_OUTAGE"); s != "" {
		d, err = time.ParseDuration(s)
		must(t, err)
	}
	return turns, d
}

func TestAnOutageIsWaitedOutByEnginesThatAreKilled(t *testing.T) {
	turns, outage := outageSize(t)
	dir := t.TempDir()
	model := newFallibleProvider(t)
	serve := func() *program {
		p := start(t, dir, "serve")
		p.await("serves .*engine")
		return p
	}
	engine := serve()
	var ids []string
	for i := range turns {
		p := command(t, dir, "run", "--detach", "--model", "m", fmt.Sprintf("this is turn %d.", i))
		p.Env = append(p.Env, "OPENAI_BASE_URL="+model.url)
		p.begin()
		id, code := p.ends()
		if code != 0 {
			t.Fatalf("exit code %d; stderr: %s", code, p.stderr)
		}
		ids = append(ids, strings.TrimSpace(id))
	}
	awaitParked(t, dir, turns)
	for range 2 {
		time.Sleep(outage / 3)
		must(t, engine.Process.Kill())
		engine.ends()
		model.nextEngine(t)
		before := 0
		model.await(func() bool { before = model.total(); return true })
		engine = serve()
		model.await(func() bool { return model.total() >= before+3 })
	}
	time.Sleep(outage / 3)

	model.recover()
	model.await(func() bool { return len(model.answered) == turns })
	for i, id := range ids {
		if got, want := output(t, dir, "run", "--resume", id), fmt.Sprintf("answer to %d\n", i); got != want {
			t.Errorf("turn %d ended with %q, want %q", i, got, want)
		}
		if n := model.answered[strconv.Itoa(i)]; n != 1 {
			t.Errorf("turn %d was answered %d times", i, n)
		}
	}
	first := model.inTheFirstSecond()
	t.Logf("%d turns: %d requests in the outage, %d in the first second after it, %d in all", turns, model.total(), first, len(model.requests))
	if 2*first > 3*turns {
		t.Errorf("%d requests were made in the first second after the outage for %d turns", first, turns)
	}
	if model.crowd > 1 {
		t.Errorf("%d parked turns asked at the same time while the provider was down", model.crowd)
	}
	if got := output(t, dir, "sessions", "verify"); !strings.Contains(got, "intact") {
		t.Errorf("verify: %s", got)
	}
}

// awaitParked waits until the log says of a number of sessions that their turns wait.
func awaitParked(t *testing.T, dir string, sessions int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "home", "abide.db")+"?mode=ro")
	must(t, err)
	defer db.Close()
	for n := 0; n < sessions; {
		must(t, db.QueryRow(`SELECT count(DISTINCT key >> 32) FROM records WHERE instr(CAST(body AS TEXT), '"turn.parked"')`).Scan(&n))
	}
}
