// Package instant is a model server that answers at once, for measuring everything but the
// model. It supports Chat Completions, Anthropic Messages and OpenAI Responses, and runs
// in another process, so that its work is not counted as that of the client.
//
// It does as little as possible: it decodes nothing, and its usual answers are prepared.
// Every answer has 50 tokens and constant usage. A [Prompt] in the newest user message
// asks for another length, and a [Run] asks for a tool call before the answer.
package instant

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Token is the text of every token. Tokens is the number of tokens of an answer, unless
// the prompt asks for another.
const (
	Token  = "word "
	Tokens = 50
)

// A Prompt asks for a certain answer.
type Prompt struct {
	Tokens   int   // number of tokens; a streamed answer has as many chunks
	PerWrite int   // number of chunks in each write; as many as fit into 64 KiB if zero
	Piece    Piece // kind of the pieces of a streamed answer
}

// A Piece is the kind of the pieces of a stream.
type Piece string

// The pieces of a stream.
const (
	Text    Piece = ""
	Thought Piece = "thought"
	Input   Piece = "input" // arguments of a call
)

const (
	opening = "[[tokens="
	closing = "]]"
)

// String is what to put into the user's message.
func (p Prompt) String() string {
	return fmt.Sprintf("%s%d/%d/%s%s", opening, p.Tokens, p.PerWrite, p.Piece, closing)
}

// A Run asks for a call of bash with a command, in a stream of Chat Completions.
// When a request contains its output, the answer is the usual one. The command becomes
// part of the user's message unchanged, so it must not need escapes in JSON.
type Run string

const running = "[[run="

// String is what to put into the user's message.
func (r Run) String() string { return running + string(r) + closing }

// findRun returns the call that the prompt asks for, if it was not made yet, from the end
// of a request.
func findRun(end []byte) (Run, bool) {
	end = end[max(0, bytes.LastIndex(end, []byte(`"role":"user"`))):]
	_, found, ok := bytes.Cut(end, []byte(running))
	if !ok || bytes.Contains(found, []byte(`"role":"tool"`)) {
		return "", false
	}
	command, _, ok := bytes.Cut(found, []byte(closing))
	return Run(command), ok
}

// findPrompt returns the Prompt in the newest user message, from the end of a request.
func findPrompt(end []byte) Prompt {
	p := Prompt{Tokens: Tokens}
	end = end[max(0, bytes.LastIndex(end, []byte(`"role":"user"`))):]
	if _, found, ok := bytes.Cut(end, []byte(opening)); ok {
		_, _ = fmt.Sscanf(string(found), "%d/%d/", &p.Tokens, &p.PerWrite)
		p.Tokens = max(0, p.Tokens)
		for _, piece := range []Piece{Thought, Input} {
			if words, _, _ := bytes.Cut(found, []byte(closing)); bytes.HasSuffix(words, []byte("/"+piece)) {
				p.Piece = piece
			}
		}
	}
	return p
}

// childVariable is the environment variable that is set in the server process.
const childVariable = "ABIDE_BENCH_INSTANT_MODEL"

// Main runs the server and does not return, if this process was started by Start. A
// program that calls Start must call Main first.
func Main() {
	if os.Getenv(childVariable) == "" {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "instant model:", err)
		os.Exit(1)
	}
	fmt.Printf("http://%s/v1\n", l.Addr())
	go Serve(l)                          // ends with the process
	_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent ends
	os.Exit(0)
}

// A Server is a server process.
type Server struct {
	URL string // base URL

	cmd   *exec.Cmd
	stdin io.Closer
}

// Start runs the program again as a server.
func Start() (*Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{cmd: cmd, stdin: stdin}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("the model server did not say where it is: %w", err)
	}
	s.URL = strings.TrimSpace(url)
	return s, nil
}

// Close ends the server and waits for it.
func (s *Server) Close() error {
	_ = s.stdin.Close()
	return s.cmd.Wait()
}

// Serve answers on all connections of l, until l is closed and all clients have closed
// their connections.
func Serve(l net.Listener) {
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		connections.Go(func() { answer(conn) })
	}
}

const (
	readBuffer = 64 << 10
	// endLength is the number of bytes at the end of a request in which a prompt is
	// looked for.
	endLength = 4 << 10
)

// answer serves one connection until the client closes it.
func answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReaderSize(conn, readBuffer)
	end := make([]byte, 0, 2*endLength)
	for {
		wire, length, err := readHead(r)
		if err != nil {
			return
		}
		if end, err = drain(r, end[:0], length); err != nil {
			return
		}
		if err := wire.reply(conn, end); err != nil {
			return
		}
	}
}

// readHead reads the head of a request. It returns the wire, and the length of the body.
func readHead(r *bufio.Reader) (w *wire, length int, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, 0, err
		}
		if w == nil {
			w = spoken(line)
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return w, length, nil
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			n, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil {
				return nil, 0, err
			}
			length = int(n)
		}
	}
}

// drain reads a body and appends its end to dst.
func drain(r *bufio.Reader, dst []byte, length int) ([]byte, error) {
	if _, err := r.Discard(max(0, length-endLength)); err != nil {
		return dst, err
	}
	dst = dst[:min(length, endLength)]
	_, err := io.ReadFull(r, dst)
	return dst, err
}

// reply answers a request, given the end of its body.
func (w *wire) reply(to io.Writer, end []byte) error {
	if len(end) == 0 { // a request without a body asks for the list of models
		_, err := to.Write(modelList)
		return err
	}
	if run, ok := findRun(end); ok {
		_, err := to.Write(chatCall(run))
		return err
	}
	p := findPrompt(end)
	plain := p == Prompt{Tokens: Tokens}
	answer := w.plainStream
	switch stream := bytes.Contains(end, []byte(`"stream":true`)); {
	case stream && !plain:
		return w.streamTo(to, p)
	case !stream && plain:
		answer = w.plainWhole
	case !stream:
		answer = body(w.whole(p.Tokens))
	}
	_, err := to.Write(answer)
	return err
}

var modelList = body(`{"object":"list","data":[{"id":"instant","object":"model"}]}`)

// streamTo streams the tokens that the prompt asks for.
func (w *wire) streamTo(to io.Writer, p Prompt) error {
	s := w.streams[p.Piece]
	if _, err := to.Write(slices.Concat(streamHead, s.begin)); err != nil {
		return err
	}
	together := p.PerWrite
	if together <= 0 {
		together = (64 << 10) / len(s.token(nil, 0))
	}
	var block []byte
	for sent := 0; sent < p.Tokens; sent += together {
		block = s.tokens(block[:0], sent, min(together, p.Tokens-sent))
		if _, err := to.Write(block); err != nil {
			return err
		}
	}
	_, err := to.Write(s.end(p.Tokens))
	return err
}
