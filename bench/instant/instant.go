// Package instant is a Chat Completions server that answers at once, for
// measuring what stands around a model. It runs in a process of its own, so that
// its work is not counted as that of whoever asks.
//
// It is as cheap as it can be: it decodes nothing, and its answers are bytes
// made beforehand. Every answer is 50 tokens long, with constant usage. A
// [Prompt] in the newest user message asks for another length.
package instant

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// Token is each token of an answer. Tokens is how many an answer has, unless
// the prompt says otherwise.
const (
	Token  = "word "
	Tokens = 50
)

// A Prompt asks for a certain answer.
type Prompt struct {
	Tokens   int // in as many chunks, if it is streamed
	PerWrite int // chunks sent together; as many as fit 64 KiB if zero
}

const (
	opening = "[[tokens="
	closing = "]]"
)

// String is what to put into the user's message.
func (p Prompt) String() string {
	return fmt.Sprintf("%s%d/%d%s", opening, p.Tokens, p.PerWrite, closing)
}

// findPrompt looks for a prompt in the newest user message, given the end of a
// request.
func findPrompt(end []byte) Prompt {
	p := Prompt{Tokens: Tokens}
	end = end[max(0, bytes.LastIndex(end, []byte(`"role":"user"`))):]
	if _, found, ok := bytes.Cut(end, []byte(opening)); ok {
		_, _ = fmt.Sscanf(string(found), "%d/%d", &p.Tokens, &p.PerWrite)
		p.Tokens = max(0, p.Tokens)
	}
	return p
}

// childVariable is set for the process that serves.
const childVariable = "ABIDE_BENCH_INSTANT_MODEL"

// Main serves, if this process was started for that, and does not return then.
// A program that calls Start must call it first.
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
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
	os.Exit(0)
}

// A Server is the other process.
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

// Serve answers on all connections of l, until l is closed and all clients
// have hung up.
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
	// endLength is how much of a request is kept to look for a prompt.
	endLength = 4 << 10
)

// answer serves one connection until the client hangs up.
func answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReaderSize(conn, readBuffer)
	end := make([]byte, 0, 2*endLength)
	for {
		length, err := readHead(r)
		if err != nil {
			return
		}
		if end, err = drain(r, end[:0], length); err != nil {
			return
		}
		if err := reply(conn, end); err != nil {
			return
		}
	}
}

// readHead reads the head of a request and returns the length of its body.
func readHead(r *bufio.Reader) (int, error) {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return length, nil
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			n, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil {
				return 0, err
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

// reply answers a request, of which it knows the end.
func reply(w io.Writer, end []byte) error {
	if len(end) == 0 { // a question without a body is for the models there are
		_, err := w.Write(modelList)
		return err
	}
	p := findPrompt(end)
	plain := p == Prompt{Tokens: Tokens}
	answer := plainStream
	switch stream := bytes.Contains(end, []byte(`"stream":true`)); {
	case stream && !plain:
		return streamTo(w, p)
	case !stream && plain:
		answer = plainWhole
	case !stream:
		answer = whole(p.Tokens)
	}
	_, err := w.Write(answer)
	return err
}

const (
	usage  = `"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}`
	before = `{"id":"instant","object":"chat.completion.chunk","created":1700000000,"model":"instant","choices":[`
)

var (
	streamHead = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk      = event(before + `{"index":0,"delta":{"content":"` + Token + `"},"finish_reason":null}]}`)
	streamEnd  = []byte(string(event(before+`{"index":0,"delta":{},"finish_reason":"stop"}]}`)) +
		string(event(before+`],`+usage+`}`)) + string(event("[DONE]")) + "0\r\n\r\n")

	plainStream = []byte(string(streamHead) + strings.Repeat(string(chunk), Tokens) + string(streamEnd))
	plainWhole  = whole(Tokens)
	modelList   = body(`{"object":"list","data":[{"id":"instant","object":"model"}]}`)
)

// event is an event of a stream, in an HTTP chunk of its own.
func event(data string) []byte {
	data = "data: " + data + "\n\n"
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data)
}

func whole(tokens int) []byte {
	return body(`{"id":"instant","object":"chat.completion","created":1700000000,"model":"instant","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"` + strings.Repeat(Token, tokens) + `"},"finish_reason":"stop"}],` + usage + `}`)
}

func body(text string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// streamTo streams as many tokens as asked for, some of them with each write.
func streamTo(w io.Writer, p Prompt) error {
	together := p.PerWrite
	if together <= 0 {
		together = (64 << 10) / len(chunk)
	}
	if _, err := w.Write(streamHead); err != nil {
		return err
	}
	block := bytes.Repeat(chunk, min(together, p.Tokens))
	for left := p.Tokens; left > 0; left -= together {
		if _, err := w.Write(block[:min(together, left)*len(chunk)]); err != nil {
			return err
		}
	}
	_, err := w.Write(streamEnd)
	return err
}
