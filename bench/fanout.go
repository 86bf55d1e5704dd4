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
	"strconv"
	"strings"
	"sync"
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
	turns     int // number of turns of each session in a block
}

var fanouts = []fanout{
	{name: "follow: 1 session by 1,000", sessions: 1, followers: 1000, turns: 5},
	{name: "follow: 1 session by 1,000, beside 100 that read nothing", sessions: 1, followers: 1000, idle: 100, turns: 5},
	{name: "follow: 1,000 sessions by 1 each", sessions: 1000, followers: 1, turns: 1},
}

// maxFanout is how many times the processor time of the writes an event may cost.
const maxFanout = 2

// measureFanouts compares the events of sessions, sent to their followers, with the same
// bytes written to as many sockets: one write for each write of a stream. The followers are
// another process, so that their work is not measured. The turns that make the events are measured
// without followers, and their processor time is taken from that with followers.
func measureFanouts(at place, only string, pairs int) (err error) {
	defer stopping(&err)
	var t *compare.Table
	for _, f := range fanouts {
		if !strings.Contains(f.name, only) {
			continue
		}
		if t == nil {
			fmt.Printf("\nevents that are sent to followers; the best block; the middle block. The limit is %d × the writes\n", maxFanout)
			t = compare.NewTable(os.Stdout, "followed", "events/s", "writes/s", "CPU µs of an event", "of its turn", "of the writes", "ratio without the turn", "kept")
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
	quiet := compare.Alternate(pairs, s.side(false), s.plain())
	s.follow()
	loud := compare.Alternate(pairs, s.side(true), s.plain())
	sent, made, written := loud.A.CPU(), quiet.A.CPU(), loud.B.CPU()
	ratio := compare.Ratio{Min: float64(sent.Min-made.Min) / float64(written.Min), Median: float64(sent.Median-made.Median) / float64(written.Median)}
	best, median := loud.A.Rate()
	bestWrites, medianWrites := loud.B.Rate()
	t.Row(f.name, fmt.Sprintf("%.0f; %.0f", best, median), fmt.Sprintf("%.0f; %.0f", bestWrites, medianWrites),
		sent, made, written, ratio, isKept(ratio.Min <= maxFanout)+"; "+isKept(ratio.Median <= maxFanout))
}

// A stage is a fanout that was opened.
type stage struct {
	fanout
	log      *ours
	host     *engine.Host
	sessions []*ourSession
	api      *http.Server
	handler  *rest.Server
	address  string
	readers  *readers
	bare     []net.Conn // sockets of the other side
	turn     [][]byte   // what a follower is sent in a turn, one element for each write
	frames   int        // number of events in it
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
		one := &ourSession{ours: s.log, id: s.log.name(), host: s.host, idle: make(chan error, 1)}
		_ = got(s.host.Create(context.Background(), one.id, engine.Spec{Config: toolless}, nil))
		s.sessions = append(s.sessions, one)
	}
	s.record()
	s.accept()
	return s
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

// record follows the first session for a turn, and keeps what is written to a follower.
func (s *stage) record() {
	first := s.sessions[0]
	_ = got(first.turn(prompt, false))
	ctx, cancel := context.WithCancel(context.Background())
	to, over := &recorder{written: make(chan []byte, 64)}, make(chan struct{})
	req := got(http.NewRequestWithContext(ctx, http.MethodGet, "http://bench"+s.path(first), nil))
	go func() { defer close(over); s.handler.ServeHTTP(to, req) }()
	defer func() { cancel(); <-over }()
	<-to.written // the comment at the beginning
	_ = got(first.turn(prompt, false))
	for end := []byte(`"type":"` + string(event.SessionIdle) + `"`); ; {
		write := <-to.written
		s.turn = append(s.turn, write)
		s.frames += bytes.Count(write, frameEnd)
		if bytes.Contains(write, end) {
			return
		}
	}
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

// side is turns in all sessions, until their followers have all events.
func (s *stage) side(followed bool) compare.Side {
	return compare.Side{Name: s.name, Block: func() int {
		var work sync.WaitGroup
		room := make(chan struct{}, 64)
		failed := make([]error, len(s.sessions))
		for i, one := range s.sessions {
			room <- struct{}{}
			work.Go(func() {
				defer func() { <-room }()
				for range s.turns {
					_, err := one.turn(prompt, false)
					failed[i] = cmp.Or(failed[i], err)
				}
			})
		}
		work.Wait()
		must(errors.Join(failed...))
		events := s.frames * s.turns * len(s.sessions) * s.followers
		if followed {
			s.readers.do("await %d", events)
		}
		return events
	}}
}

// plain is the same bytes, written to as many sockets.
func (s *stage) plain() compare.Side {
	return compare.Side{Name: "writes", Block: func() int {
		for range s.turns {
			for _, write := range s.turn {
				for _, c := range s.bare {
					_ = got(c.Write(write))
				}
			}
		}
		events := s.frames * s.turns * len(s.bare)
		s.readers.do("await %d", events)
		return events
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
