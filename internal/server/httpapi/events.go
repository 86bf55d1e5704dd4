package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// heartbeat is the interval of comments while there is no event, so that no proxy takes
// the connection for dead.
const heartbeat = 15 * time.Second

// A piece is output in an event: as text, or as base64 if it is not valid UTF-8.
type piece struct {
	Offset  int64  `json:"offset"`
	Text    string `json:"text,omitempty"`
	Base64  string `json:"base64,omitempty"`
	Omitted int64  `json:"omitted_bytes,omitempty"` // number of bytes before this piece that were not kept
}

// An end is the last event.
type end struct {
	State    process.State `json:"state"`
	Reason   string        `json:"reason,omitempty"`
	ExitCode *int          `json:"exit_code"`
	Signal   string        `json:"signal,omitempty"`
}

// A frameOrError is a frame, or what went wrong.
type frameOrError struct {
	frame workspace.Frame
	err   error
}

// events sends output as it arrives. A client that reconnects names the last event that
// it saw, and misses nothing.
func (a *api) events(w http.ResponseWriter, r *http.Request, req outputRequest) error {
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		offset, err := strconv.ParseInt(last, 10, 64)
		if err != nil || offset < 0 {
			return invalid("Last-Event-ID is %q, and no event had that id", last)
		}
		req.offset = offset
	}
	if _, err := a.processes.Get(r.Context(), req.owner, req.id); err != nil {
		return err
	}
	s := &sender{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies that know it pass the stream on piece by piece
	w.WriteHeader(http.StatusOK)
	a.send(r.Context(), s, req)
	return nil
}

// send sends frames, and comments while there are none.
func (a *api) send(ctx context.Context, s *sender, req outputRequest) {
	ctx, cancel := context.WithCancel(ctx)
	frames := make(chan frameOrError)
	go a.frames(ctx, req, frames) // closes the channel
	defer func() {
		cancel()
		for range frames {
		}
	}()
	s.comment("here it comes")
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for s.err == nil {
		select {
		case f, ok := <-frames:
			if !ok {
				return
			}
			s.show(f, req.stream)
		case <-beat.C:
			s.comment("still here")
		}
	}
}

func (a *api) frames(ctx context.Context, req outputRequest, to chan<- frameOrError) {
	defer close(to)
	for frame, err := range a.processes.Follow(ctx, req.owner, req.id, req.offset) {
		select {
		case to <- frameOrError{frame, err}:
		case <-ctx.Done():
			return
		}
	}
}

// stall is how long a client may take no event that is ready. It can come back later, with
// the id of the last event that it has seen.
const stall = time.Minute

// A sender writes events until a write fails. The response lasts as long as the process, but
// a client that does not read loses it.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *sender) comment(text string) { s.write(": %s\n\n", text) }

// event writes an event; id is the offset at which a client that saw it continues.
func (s *sender) event(kind string, id int64, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.err = err
		return
	}
	s.write("event: %s\nid: %d\ndata: %s\n\n", kind, id, data)
}

func (s *sender) write(format string, args ...any) {
	if s.err == nil {
		_ = s.control.SetWriteDeadline(time.Now().Add(stall)) // a server without deadlines has none
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
	if s.err == nil {
		s.err = s.control.Flush()
	}
}

// show writes a frame as an event, if it is of the wanted stream.
func (s *sender) show(f frameOrError, wanted process.Stream) {
	frame := f.frame
	next := frame.Offset + int64(len(frame.Data))
	switch {
	case f.err != nil:
		s.write("event: error\ndata: %s\n\n", mustJSON(toAnswer(f.err)))
	case frame.End != nil:
		code, signal := exit(*frame.End)
		s.event("exit", next, end{frame.End.State, frame.End.Reason, code, signal})
	case len(frame.Data) == 0:
		s.event("omitted", next, piece{Offset: frame.Offset, Omitted: frame.Omitted})
	case wanted == process.Both || wanted == frame.Stream:
		s.event(frame.Stream.String(), next, pieceOf(frame))
	}
}

func mustJSON(e *apiError) []byte {
	data, err := json.Marshal(e)
	if err != nil {
		panic(err) // two strings cannot fail
	}
	return data
}

func pieceOf(f workspace.Frame) piece {
	p := piece{Offset: f.Offset, Omitted: f.Omitted}
	if utf8.Valid(f.Data) {
		p.Text = string(f.Data)
	} else {
		p.Base64 = base64.StdEncoding.EncodeToString(f.Data)
	}
	return p
}
