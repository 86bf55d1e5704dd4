package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rest"
	engine "github.com/abide-run/abide/internal/session"
)

// A fanout is sessions that are followed over HTTP.
type fanout struct {
	name      string
	sessions  int
	followers int // number of followers of each session
	idle      int // number of followers of the first session that read nothing
	events    int // number of events of each session in a block
}

var fanouts = []fanout{
	{name: "follow: 1 session by 1,000", sessions: 1, followers: 1000, events: 20},
	{name: "follow: 1 session by 1,000, beside 100 that read nothing", sessions: 1, followers: 1000, idle: 100, events: 20},
	{name: "follow: 1,000 sessions by 1 each", sessions: 1000, followers: 1, events: 20},
}

// maxFanout is how many times the processor time of the writes an event may cost.
const maxFanout = 2

// measureFanouts compares the events of sessions, sent to their followers, with the same
// bytes written to as many sockets. The next event is made when all followers have the one
// before, so that there is one write for each event on both sides. The followers are another
// process, so that their work is not measured. Events that are not stored are made: with the work of
// turns, whose cost varies by more than a write takes, nothing could be told. What making them
// costs is measured in as many sessions without followers, and taken from that with followers:
// the difference of each round is divided by the writes of the round.
func measureFanouts(at place, only string, pairs int) (err error) {
	defer stopping(&err)
	var t *compare.Table
	for _, f := range fanouts {
		if !strings.Contains(f.name, only) {
			continue
		}
		if t == nil {
			fmt.Printf("\nevents that are sent to followers; the best block; the middle block. The limit is %d × the writes\n", maxFanout)
			t = compare.NewTable(os.Stdout, "followed", "events/s", "writes/s", "CPU µs of an event", "of making it", "of the writes", "ratio without making it (middle half)", "kept")
		}
		f.measure(t, at, pairs)
	}
	if t != nil {
		t.Print()
	}
	return nil
}

// measure adds the row of a case to a table.
func (f fanout) measure(t *compare.Table, at place, pairs int) {
	s := f.open(at)
	defer s.close()
	sides := []compare.Side{s.side(s.sessions, true), s.side(s.unsent, false), s.plain()}
	all := make([]compare.Series, len(sides))
	var ratios []float64
	for round := range max(pairs, compare.MinPairs) + 1 {
		var cpu [3]float64
		for i := range sides {
			i = (i + round) % len(sides)
			sample := compare.Measure(sides[i])
			cpu[i] = sample.CPU.Seconds() / float64(sample.Turns)
			if round > 0 { // the first round is not counted
				all[i].Samples = append(all[i].Samples, sample)
			}
		}
		if round > 0 {
			ratios = append(ratios, (cpu[0]-cpu[1])/cpu[2])
		}
	}
	slices.Sort(ratios)
	median := ratios[len(ratios)/2]
	best, middle := all[0].Rate()
	bestWrites, middleWrites := all[2].Rate()
	t.Row(f.name, fmt.Sprintf("%.0f; %.0f", best, middle), fmt.Sprintf("%.0f; %.0f", bestWrites, middleWrites), all[0].CPU(), all[1].CPU(), all[2].CPU(),
		fmt.Sprintf("%.2f (%.2f to %.2f)", median, ratios[len(ratios)/4], ratios[len(ratios)*3/4]), isKept(median <= maxFanout))
}

// A stage is a fanout that was opened.
type stage struct {
	fanout
	log      *ours
	host     *engine.Host
	sessions []*ourSession // those that are followed
	unsent   []*ourSession // as many without followers
	api      *http.Server
	handler  *rest.Server
	address  string
	readers  *readers
	bare     []net.Conn // sockets of the other side
	frame    []byte     // what a follower is sent of an event
}

func (f fanout) open(at place) *stage {
	at.dir = got(os.MkdirTemp(at.dir, "fanout-"))
	s := &stage{fanout: f, log: got(openOurs(at)), readers: startReaders()}
	s.host = engine.New(s.log.store, s.log.opts)
	s.handler = rest.New(rest.Options{Host: s.host, Connect: func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.ErrUnsupported }})
	s.api = &http.Server{Handler: s.handler}
	l := got(net.Listen("tcp", "127.0.0.1:0"))
	s.address = l.Addr().String()
	go func() { _ = s.api.Serve(l) }() // ends when it is closed
	for range f.sessions {
		s.sessions, s.unsent = append(s.sessions, s.create()), append(s.unsent, s.create())
	}
	s.record()
	s.accept()
	s.follow()
	return s
}

func (s *stage) create() *ourSession {
	one := &ourSession{ours: s.log, id: s.log.name(), host: s.host, idle: make(chan error, 1)}
	_ = got(s.host.Create(context.Background(), one.id, engine.Spec{Config: toolless}, nil))
	return one
}

func (s *stage) close() {
	s.readers.close()
	for _, c := range s.bare {
		_ = c.Close()
	}
	_ = s.api.Close()
	s.handler.Close()
	s.host.Close()
	_ = s.log.store.Close()
}

// path returns the path of the events of a session after those that it has.
func (s *stage) path(one *ourSession) string {
	info := got(s.host.Info(context.Background(), one.id))
	return fmt.Sprintf("%s/sessions/%s/events?stream=true&after=%d", rest.Prefix, one.id, info.End.Seq)
}

// note makes an event in a session.
func (s *stage) note(one *ourSession) {
	_ = got(s.host.Log.Note(context.Background(), one.id, event.SessionInfoData{InfoType: "bench", Message: prompt}, true))
}

// record follows the first session, and keeps what is written to a follower of an event.
func (s *stage) record() {
	ctx, cancel := context.WithCancel(context.Background())
	to, over := &recorder{written: make(chan []byte, 64)}, make(chan struct{})
	req := got(http.NewRequestWithContext(ctx, http.MethodGet, "http://bench"+s.path(s.sessions[0]), nil))
	go func() { defer close(over); s.handler.ServeHTTP(to, req) }()
	defer func() { cancel(); <-over }()
	<-to.written // the comment at the beginning
	s.note(s.sessions[0])
	s.frame = <-to.written
}

// A recorder is an http.ResponseWriter that passes on what is written, write by write.
type recorder struct {
	header  http.Header
	buf     []byte
	written chan []byte
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

func (r *recorder) WriteHeader(int) {}

func (r *recorder) Write(b []byte) (int, error) {
	r.buf = append(r.buf, b...)
	return len(b), nil
}

func (r *recorder) Flush() { r.written <- r.buf; r.buf = nil }

// accept opens the sockets that are written to without a server.
func (s *stage) accept() {
	l := got(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	n := s.fanout.sessions * s.followers
	s.readers.ask("plain %s %d", l.Addr(), n)
	for range n {
		s.bare = append(s.bare, got(l.Accept()))
	}
	s.readers.answer()
}

// follow has every session followed.
func (s *stage) follow() {
	if s.idle > 0 {
		s.readers.do("idle %s %d %s", s.address, s.idle, s.path(s.sessions[0]))
	}
	for _, one := range s.sessions {
		s.readers.do("follow %s %d %s", s.address, s.followers, s.path(one))
	}
	s.readers.do("await %d", len(s.sessions)*s.followers) // the comments at the beginning
}

// side is events of some sessions, until their followers have them.
func (s *stage) side(sessions []*ourSession, followed bool) compare.Side {
	return compare.Side{Name: s.name, Block: func() int {
		for range s.events {
			for _, one := range sessions {
				s.note(one)
			}
			if followed {
				s.readers.do("await %d", len(s.bare))
			}
		}
		return s.events * len(s.bare)
	}}
}

// plain is the same bytes, written to as many sockets.
func (s *stage) plain() compare.Side {
	return compare.Side{Name: "writes", Block: func() int {
		for range s.events {
			for _, c := range s.bare {
				_ = got(c.Write(s.frame))
			}
			s.readers.do("await %d", len(s.bare))
		}
		return s.events * len(s.bare)
	}}
}

// frameEnd ends an event of a stream.
var frameEnd = []byte("\n\n")

// readers is the process of the followers. Each line that it is sent is an order, which it
// answers with a line when it is done.
type readers struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
}

// followVariable makes a process one that follows.
const followVariable = "ABIDE_BENCH_FOLLOW"

func startReaders() *readers {
	cmd := exec.Command(got(os.Executable()))
	cmd.Env, cmd.Stderr = append(os.Environ(), followVariable+"=1"), os.Stderr
	r := &readers{cmd: cmd, orders: got(cmd.StdinPipe()), answers: bufio.NewReader(got(cmd.StdoutPipe()))}
	must(cmd.Start())
	return r
}

func (r *readers) ask(order string, args ...any) {
	_ = got(fmt.Fprintf(r.orders, order+"\n", args...))
}

func (r *readers) answer() {
	if line, err := r.answers.ReadString('\n'); err != nil || line != "done\n" {
		must(fmt.Errorf("the followers answer %q: %w", line, cmp.Or(err, errors.ErrUnsupported)))
	}
}

func (r *readers) do(order string, args ...any) {
	r.ask(order, args...)
	r.answer()
}

func (r *readers) close() {
	_ = r.orders.Close()
	_ = r.cmd.Wait()
}

// followProcess is the process of the followers.
func followProcess() {
	if os.Getenv(followVariable) == "" {
		return
	}
	f := &following{arrived: make(chan struct{}, 1)}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := f.do(strings.Fields(in.Text())); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", in.Text(), err)
			os.Exit(1)
		}
		fmt.Println("done")
	}
	os.Exit(0)
}

// following is what the process of the followers counts.
type following struct {
	frames  atomic.Int64 // number of events that have arrived and were not awaited yet
	arrived chan struct{}
}

// do carries out one order.
func (f *following) do(order []string) error {
	if order[0] == "await" {
		n, err := strconv.ParseInt(order[1], 10, 64)
		return cmp.Or(err, f.await(n))
	}
	n, err := strconv.Atoi(order[2])
	if err != nil {
		return err
	}
	for range n {
		c, err := net.Dial("tcp", order[1])
		if err == nil && order[0] != "plain" {
			_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", order[3])
		}
		if err != nil {
			return err
		}
		if order[0] != "idle" {
			go f.read(c)
		}
	}
	return nil
}

// await waits until a number of events have arrived.
func (f *following) await(n int64) error {
	timeout := time.After(time.Minute)
	for f.frames.Load() < n {
		select {
		case <-f.arrived:
		case <-timeout:
			return fmt.Errorf("only %d events have arrived", f.frames.Load())
		}
	}
	f.frames.Add(-n)
	return nil
}

// read counts the events that arrive, until the connection ends.
func (f *following) read(c net.Conn) {
	buf := make([]byte, 16<<10)
	for before := byte(0); ; {
		n, err := c.Read(buf)
		if n > 0 {
			found := bytes.Count(buf[:n], frameEnd)
			if before == '\n' && buf[0] == '\n' {
				found++
			}
			before = buf[n-1]
			f.frames.Add(int64(found))
			select {
			case f.arrived <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}
