package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

const (
	maxWait = 300              // maximum time that a request waits, in seconds
	spare   = 30 * time.Second // time to write the answer after the wait
)

// An outputReply is the output and the state of a process.
type outputReply struct {
	Output    string                  `json:"output"`
	Base64    string                  `json:"output_base64,omitempty"`
	Truncated *process.TruncationInfo `json:"truncated,omitempty"`
	Running   bool                    `json:"running"`
	State     process.State           `json:"state"`
	ExitCode  *int                    `json:"exit_code"`
	Signal    string                  `json:"signal,omitempty"`
	Command   string                  `json:"command"`
	Next      *int64                  `json:"next_offset,omitempty"` // offset of the next part; nil for a view
	Omitted   int64                   `json:"omitted_bytes,omitempty"`
}

// An outputRequest holds the parameters of a request for output.
type outputRequest struct {
	owner  process.Owner
	id     process.ID
	wait   time.Duration // time to wait; zero for no wait
	part   bool          // true for a part instead of a view
	offset int64
	tail   int64 // number of last bytes to read, instead of those from the offset
	limit  int64
	stream process.Stream
	exact  bool // true for base64
}

// output answers with output, in one of its forms.
func (a *api) output(w http.ResponseWriter, r *http.Request, owner process.Owner) error {
	req, err := parseOutput(r, owner)
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return a.events(w, r, req)
	}
	if req.wait > 0 { // extends the write timeout of the server
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(req.wait + spare))
	}
	answer, err := a.gather(r.Context(), req)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, answer)
	return nil
}

func parseOutput(r *http.Request, owner process.Owner) (outputRequest, error) {
	q := r.URL.Query()
	req := outputRequest{owner: owner, id: process.ID(r.PathValue("id")), part: q.Has("offset") || q.Has("tail"), exact: q.Get("encoding") == "base64"}
	var err error
	read := func(to *int64, name string, least, most, otherwise int64) {
		if err == nil {
			*to, err = number(r, name, least, most, otherwise)
		}
	}
	var seconds int64
	read(&req.offset, "offset", 0, math.MaxInt64, 0)
	read(&req.tail, "tail", 1, workspace.MaxOutput, 0)
	read(&req.limit, "limit", 1, workspace.MaxOutput, 64<<10)
	read(&seconds, "timeout", 1, maxWait, maxWait)
	if err != nil {
		return req, err
	}
	return req, req.words(q, seconds)
}

// words reads the parameters that have fixed words as values.
func (req *outputRequest) words(q url.Values, seconds int64) error {
	switch q.Get("wait") {
	case "true":
		req.wait = time.Duration(seconds) * time.Second
	case "", "false":
	default:
		return invalid("wait is %q: give true or false", q.Get("wait"))
	}
	switch q.Get("stream") {
	case "", "both":
	case "stdout":
		req.stream = process.Stdout
	case "stderr":
		req.stream = process.Stderr
	default:
		return invalid("stream is %q: give stdout, stderr or both", q.Get("stream"))
	}
	switch q.Get("encoding") {
	case "", "text", "base64":
	default:
		return invalid("encoding is %q: give text or base64", q.Get("encoding"))
	}
	switch {
	case q.Has("offset") && q.Has("tail"):
		return invalid("offset and tail cannot be used together")
	case req.exact && !req.part:
		return invalid("a view is a text; for bytes, give offset or tail")
	}
	return nil
}

// gather waits if the request says so, and reads the state and the output. The state is
// read first, so that a process that has ended has all of its output.
func (a *api) gather(ctx context.Context, req outputRequest) (*outputReply, error) {
	info, err := a.await(ctx, req)
	if err != nil {
		return nil, err
	}
	answer := &outputReply{Running: !info.State.Ended(), State: info.State, Command: info.Command}
	answer.ExitCode, answer.Signal = exit(info)
	if req.part {
		err = a.readPart(ctx, req, answer)
	} else {
		answer.Output, answer.Truncated, err = a.processes.View(ctx, req.owner, req.id, req.stream)
	}
	if req.exact {
		answer.Output, answer.Base64 = "", base64.StdEncoding.EncodeToString([]byte(answer.Output))
	}
	return answer, err
}

// await waits for the end of the process or, for a part at an offset, for output there.
func (a *api) await(ctx context.Context, req outputRequest) (process.Info, error) {
	if req.wait == 0 {
		return a.processes.Get(ctx, req.owner, req.id)
	}
	waiting, cancel := context.WithTimeout(ctx, req.wait)
	defer cancel()
	if req.part && req.tail == 0 {
		_, err := a.processes.Read(waiting, req.owner, req.id, req.read(1, true))
		if err != nil && !expired(waiting, err) {
			return process.Info{}, err
		}
		return a.processes.Get(ctx, req.owner, req.id)
	}
	info, err := a.processes.Wait(waiting, req.owner, req.id)
	if expired(waiting, err) {
		return a.processes.Get(ctx, req.owner, req.id)
	}
	return info, err
}

// expired reports whether an error means that the time to wait is over.
func expired(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

func (req outputRequest) read(limit int64, wait bool) process.ReadRequest {
	return process.ReadRequest{Offset: req.offset, Limit: int(limit), Stream: req.stream, Wait: wait}
}

func (a *api) readPart(ctx context.Context, req outputRequest, answer *outputReply) error {
	var chunk process.Chunk
	var err error
	if req.tail > 0 {
		chunk, err = a.processes.Tail(ctx, req.owner, req.id, int(req.tail), req.stream)
	} else {
		chunk, err = a.processes.Read(ctx, req.owner, req.id, req.read(req.limit, false))
	}
	answer.Output, answer.Next, answer.Omitted = string(chunk.Data), &chunk.Next, chunk.Omitted
	return err
}
