// Package floor does the least that a durable agent runtime has to do for a turn, as
// directly as Go allows. Real runtimes are compared with its cost; it is not a runtime
// itself.
//
// A session is one file, one JSON record in each line. A turn appends the user's
// message and syncs, sends the history to the model, and appends the answer and
// syncs. History is kept encoded: the bytes of the file are the bytes on the
// wire. There are no permissions, events or settings, and the model's answer is
// only looked for at its usual place in a reply.
//
// In a turn with a command the model may call one, once. The call is appended and
// synced, a shell runs the command with its output in a pipe, the output is
// appended and synced, and the model is asked again. A command that is running
// when the power fails is lost, and one that prints for ever fills the memory.
package floor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// A Client sends requests to a model. Sessions share it.
type Client struct {
	base string
	http http.Client
}

// NewClient returns a client of the server at this base URL.
func NewClient(baseURL string) *Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = 256
	t.ReadBufferSize = 16 << 10
	t.DisableCompression = true
	return &Client{base: baseURL, http: http.Client{Transport: t}}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Session is a conversation in a file.
type Session struct {
	client  *Client
	file    *os.File
	history []byte // records with a comma before each

	tools string // tools that the next request offers
	call  []byte // arguments of the model's call, as a quoted JSON string

	// Buffers that are reused to save allocations.
	record, answer []byte
	lines          *bufio.Reader
}

// Create starts a session in a new file.
func (c *Client) Create(dir, name string) (*Session, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return c.session(f), nil
}

func (c *Client) session(f *os.File) *Session {
	return &Session{client: c, file: f, lines: bufio.NewReaderSize(nil, 16<<10)}
}

// Open resumes a session. Each record is checked to be a whole one.
func (c *Client) Open(dir, name string) (*Session, error) {
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := c.session(f)
	s.history = make([]byte, 0, len(data)+len(data)/64)
	for n := 1; len(data) > 0; n++ {
		record, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole || !json.Valid(record) {
			_ = f.Close()
			return nil, fmt.Errorf("record %d of %s is damaged", n, path)
		}
		s.history = append(append(s.history, ','), record...)
		data = rest
	}
	return s, nil
}

// Close closes the file.
func (s *Session) Close() error { return s.file.Close() }

// Fill adds turns without asking the model, with one sync for all.
func (s *Session) Fill(turns int, prompt, answer string) error {
	var records []byte
	for range turns {
		records = append(s.remember(records, "user", quote(prompt)), '\n')
		records = append(s.remember(records, "assistant", quote(answer)), '\n')
	}
	return s.write(records)
}

// Turn asks the model and returns the number of chunks of its answer, which is zero if the
// answer is not streamed.
func (s *Session) Turn(ctx context.Context, prompt string, stream bool) (chunks int, err error) {
	if err := s.Append("user", prompt); err != nil {
		return 0, err
	}
	if chunks, err = s.ask(ctx, stream); err != nil {
		return 0, err
	}
	return chunks, s.append("assistant", s.answer)
}

// CommandTurn is a streamed Turn in which the model may call a command.
func (s *Session) CommandTurn(ctx context.Context, shell, prompt string) (chunks int, err error) {
	if err := s.Append("user", prompt); err != nil {
		return 0, err
	}
	s.tools = commandTool
	defer func() { s.tools = "" }()
	if chunks, err = s.ask(ctx, true); err != nil {
		return 0, err
	}
	if len(s.call) > 0 {
		if err := s.runCall(ctx, shell); err != nil {
			return 0, err
		}
		if chunks, err = s.ask(ctx, true); err != nil {
			return 0, err
		}
	}
	return chunks, s.append("assistant", s.answer)
}

// runCall runs the command that the model called. Call and output are durable
// before anything is done with them.
func (s *Session) runCall(ctx context.Context, shell string) error {
	var text string // the arguments are a JSON string that contains JSON
	if err := json.Unmarshal(s.call, &text); err != nil {
		return err
	}
	var arguments struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal([]byte(text), &arguments); err != nil {
		return err
	}
	call := fmt.Appendf(nil, `null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bash","arguments":%s}}]`, s.call)
	if err := s.append("assistant", call); err != nil {
		return err
	}
	out, err := run(ctx, shell, arguments.Command)
	if err != nil {
		return err
	}
	return s.append("tool", append(quote(string(out)), `,"tool_call_id":"call_1"`...))
}

// Nice is the priority of commands. Commands of an agent should have a low priority on a
// busy machine.
const Nice = 5

// run runs a command and returns its output.
func run(ctx context.Context, shell, command string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, shell, "-c", command)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, Nice) // it may have ended
	err := cmd.Wait()
	return out.Bytes(), err
}

// Append adds a message, durably.
func (s *Session) Append(role, text string) error { return s.append(role, quote(text)) }

func (s *Session) append(role string, quoted []byte) error {
	s.record = append(s.remember(s.record[:0], role, quoted), '\n')
	return s.write(s.record)
}

// remember adds a message to the history and appends its record to dst.
func (s *Session) remember(dst []byte, role string, quoted []byte) []byte {
	s.history = append(s.history, ',')
	start := len(s.history)
	s.history = append(s.history, `{"role":"`...)
	s.history = append(append(s.history, role...), `","content":`...)
	s.history = append(append(s.history, quoted...), '}')
	return append(dst, s.history[start:]...)
}

func (s *Session) write(records []byte) error {
	if _, err := s.file.Write(records); err != nil {
		return err
	}
	return s.file.Sync()
}

func quote(text string) []byte {
	b, _ := json.Marshal(text) // a string can always be encoded
	return b
}

// The parts of a request before and after the history.
const (
	requestHead   = `{"model":"instant","messages":[{"role":"system","content":"You are a helpful assistant."}`
	requestEnd    = `]}`
	requestStream = `,"stream":true,"stream_options":{"include_usage":true}}`
	commandTool   = `,"tools":[{"type":"function","function":{"name":"bash","description":"Runs a command.",` +
		`"parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}]`
)

// ask sends the history and reads the answer as a quoted JSON string.
func (s *Session) ask(ctx context.Context, stream bool) (chunks int, err error) {
	end := requestEnd
	if stream {
		end = "]" + s.tools + requestStream
	}
	body := io.MultiReader(bytes.NewReader([]byte(requestHead)), bytes.NewReader(s.history), bytes.NewReader([]byte(end)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.client.base+"/chat/completions", body)
	if err != nil {
		return 0, err
	}
	req.ContentLength = int64(len(requestHead) + len(s.history) + len(end))
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, errors.New(resp.Status)
	}
	s.answer, s.call = append(s.answer[:0], '"'), s.call[:0]
	if stream {
		chunks, err = s.readStream(resp.Body)
	} else {
		err = s.readWhole(resp.Body)
	}
	s.answer = append(s.answer, '"')
	return chunks, err
}

func (s *Session) readWhole(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if !s.take(data) {
		return fmt.Errorf("no content in %q", data)
	}
	return nil
}

// readStream reads to the end, so that the connection can be used again.
func (s *Session) readStream(r io.Reader) (chunks int, err error) {
	s.lines.Reset(r)
	done := false
	for {
		line, err := s.lines.ReadSlice('\n')
		switch data, ok := bytes.CutPrefix(line, []byte("data: ")); {
		case ok && bytes.HasPrefix(data, []byte("[DONE]")):
			done = true
		case ok && s.take(data):
			chunks++
		case ok && s.tools != "":
			s.takeCall(data)
		}
		switch {
		case err == io.EOF && done:
			return chunks, nil
		case err == io.EOF:
			return chunks, io.ErrUnexpectedEOF
		case err != nil:
			return chunks, err
		}
	}
}

// Stream sends a request to a path of the server, reads the streamed reply of any wire, and
// returns the number of its events. It only checks that each event is JSON.
func (c *Client) Stream(ctx context.Context, path, body string) (events int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, errors.New(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 32<<10), 32<<20)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok && json.Valid(data) {
			events++
		}
	}
	return events, lines.Err()
}

// take appends the content found in data to the answer.
func (s *Session) take(data []byte) bool {
	found, ok := text(data, `"content":"`)
	if ok {
		s.answer = append(s.answer, found...)
	}
	return ok
}

// takeCall stores the arguments of a call in data, which arrive in one piece.
func (s *Session) takeCall(data []byte) {
	if found, ok := text(data, `"arguments":"`); ok && len(found) > 0 {
		s.call = fmt.Appendf(s.call[:0], `"%s"`, found)
	}
}

// text returns what is between before, which ends with a quote, and the next one.
func text(data []byte, before string) ([]byte, bool) {
	start := bytes.Index(data, []byte(before))
	if start < 0 {
		return nil, false
	}
	data = data[start+len(before):]
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return data[:i], true
		}
	}
	return nil, false
}
