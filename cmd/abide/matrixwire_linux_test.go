package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
)

// A wire is the way from an engine to its workspace. It passes on what they say, frame by
// frame, and a test can cut it at every request, make it silent, and see what was said.
type wire struct {
	t      *testing.T
	listen string // where the engine connects to: "unix:PATH" or "tcp:HOST:PORT"
	target func() string

	mu       sync.Mutex
	state    wireState
	door     net.Listener
	ends     map[net.Conn]bool // both ends of the connections
	opened   chan struct{}     // closed while the wire is not silent
	requests int               // number of requests so far
	said     bytes.Buffer      // what the engine has said
	onMoment func(moment) bool // called at each moment of a request, without the lock; the connection goes on if it returns true
}

// A wireState is what a wire does with connections.
type wireState int

// The states of a wire.
const (
	wireOpen    wireState = iota
	wireRefused           // nobody listens
	wireReset             // connections are accepted and closed
	wireSilent            // connections are accepted, and nothing is passed on
)

// A moment is a point in the life of a request.
type moment struct {
	request int // number of the request, from 1
	at      requestPoint
	data    []byte // its first part; nil if it is only asked
}

// A requestPoint is where a request is.
type requestPoint string

// The points of a request.
const (
	asked    requestPoint = "asked"    // the workspace knows nothing of it
	halfway  requestPoint = "halfway"  // the workspace has got half of its first part
	answered requestPoint = "answered" // the workspace has answered, and the engine does not know
)

var requestPoints = []requestPoint{asked, halfway, answered}

// newWire makes a wire that listens at an address. TCP gets a port that is free.
func newWire(t *testing.T, address string, target func() string) *wire {
	t.Helper()
	w := &wire{t: t, listen: address, target: target, state: wireRefused, ends: make(map[net.Conn]bool), opened: make(chan struct{})}
	close(w.opened)
	w.set(wireOpen)
	t.Cleanup(func() { w.set(wireRefused) })
	return w
}

// set changes the state. Connections are cut, except that a wire that becomes silent or
// speaks again keeps those it has.
func (w *wire) set(state wireState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.state
	w.state = state
	if (state == wireSilent) != (before == wireSilent) {
		if state == wireSilent {
			w.opened = make(chan struct{})
		} else {
			close(w.opened)
		}
	}
	if state == wireRefused || state == wireReset {
		w.cut()
	}
	switch {
	case state == wireRefused && w.door != nil:
		_ = w.door.Close()
		w.door = nil
	case state != wireRefused && w.door == nil:
		w.openDoor()
	}
}

// cut closes all connections. The caller holds the lock.
func (w *wire) cut() {
	for c := range w.ends {
		_ = c.Close()
	}
	clear(w.ends)
}

// openDoor listens. Another user has to be able to connect. The caller holds the lock.
func (w *wire) openDoor() {
	network, address, _ := strings.Cut(w.listen, ":")
	l, err := net.Listen(network, address)
	if err == nil && network == "unix" {
		err = os.Chmod(address, 0o777)
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.door, w.listen = l, network+":"+l.Addr().String()
	go w.accept(l)
}

func (w *wire) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		if w.state == wireRefused || w.state == wireReset {
			_ = c.Close()
		} else {
			w.ends[c] = true
			go w.carry(c)
		}
		w.mu.Unlock()
	}
}

// carry connects an end with the workspace, once the wire is not silent.
func (w *wire) carry(here net.Conn) {
	w.await()
	network, address, _ := strings.Cut(w.target(), ":")
	there, err := net.Dial(network, address)
	if err != nil {
		w.drop(here)
		return
	}
	w.mu.Lock()
	known := w.ends[here]
	if known {
		w.ends[there] = true
	}
	w.mu.Unlock()
	if !known {
		_ = there.Close()
		return
	}
	c := &carried{w: w, here: here, there: there, numbers: make(map[uint32]*carriedRequest)}
	go c.pass(here, there, c.fromEngine)
	go c.pass(there, here, c.fromWorkspace)
}

// await waits until the wire is not silent.
func (w *wire) await() {
	w.mu.Lock()
	opened := w.opened
	w.mu.Unlock()
	<-opened
}

func (w *wire) drop(ends ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		_ = c.Close()
		delete(w.ends, c)
	}
}

// when makes the wire call f at each moment of a request; it goes on if f returns true.
func (w *wire) when(f func(moment) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onMoment = f
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

// hears reports whether the engine has said a text.
func (w *wire) hears(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.said.Bytes(), []byte(text))
}

// A carried connection goes through a wire. It speaks HTTP/2.
type carried struct {
	w           *wire
	here, there net.Conn
	numbers     map[uint32]*carriedRequest // requests by their streams; the wire's lock guards it
}

type carriedRequest struct {
	number int
	data   []byte // its first part
	begun  bool   // true if the workspace was sent data of it
}

// A frame is a frame of HTTP/2.
type frame struct {
	bytes  []byte // header and payload
	kind   byte
	flags  byte
	stream uint32
}

// Kinds and flags of frames.
const (
	dataFrame   = 0
	headerFrame = 1
	endOfStream = 1
	frameHeader = 9
	preface     = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// pass passes on frames until the connection ends, or somebody wants it to end.
func (c *carried) pass(from, to net.Conn, deliver func(frame) bool) {
	defer c.w.drop(c.here, c.there)
	if from == c.here {
		if _, err := io.CopyN(to, from, int64(len(preface))); err != nil {
			return
		}
	}
	for {
		f, err := readFrame(from)
		if err != nil || !deliver(f) {
			return
		}
	}
}

// write writes to an end, once the wire is not silent.
func (c *carried) write(to net.Conn, b []byte) bool {
	c.w.await()
	_, err := to.Write(b)
	return err == nil
}

func readFrame(r io.Reader) (frame, error) {
	head := make([]byte, frameHeader)
	if _, err := io.ReadFull(r, head); err != nil {
		return frame{}, err
	}
	n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	f := frame{bytes: append(head, make([]byte, n)...), kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	_, err := io.ReadFull(r, f.bytes[frameHeader:])
	return f, err
}

// fromEngine passes on a frame to the workspace.
func (c *carried) fromEngine(f frame) bool {
	r, first := c.note(f)
	switch {
	case f.kind == headerFrame:
		return c.meet(r, asked) && c.write(c.there, f.bytes)
	case first:
		half := len(f.bytes) / 2
		return c.write(c.there, f.bytes[:half]) && c.meet(r, halfway) && c.write(c.there, f.bytes[half:])
	}
	return c.write(c.there, f.bytes)
}

// note returns the request of a frame, and whether the frame is the first one
// with data.
func (c *carried) note(f frame) (r carriedRequest, first bool) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.said.Write(f.bytes)
	switch f.kind {
	case headerFrame:
		c.w.requests++
		c.numbers[f.stream] = &carriedRequest{number: c.w.requests}
	case dataFrame:
		if r := c.numbers[f.stream]; r != nil && !r.begun {
			r.begun, r.data, first = true, f.bytes, true
		}
	}
	if known := c.numbers[f.stream]; known != nil {
		r = *known
	}
	return r, first
}

// meet lets a test do something at a moment, and reports whether the connection goes on.
func (c *carried) meet(r carriedRequest, at requestPoint) bool {
	c.w.mu.Lock()
	f := c.w.onMoment
	c.w.mu.Unlock()
	return f == nil || f(moment{r.number, at, r.data})
}

// fromWorkspace passes on a frame to the engine.
func (c *carried) fromWorkspace(f frame) bool {
	if f.kind == headerFrame && f.flags&endOfStream != 0 {
		c.w.mu.Lock()
		r := c.numbers[f.stream]
		c.w.mu.Unlock()
		if r != nil && !c.meet(*r, answered) {
			return false
		}
	}
	return c.write(c.here, f.bytes)
}
