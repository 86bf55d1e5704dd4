package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
)

// Tasks is a list of commands.
type Tasks struct {
	Tasks []api.Task `json:"tasks"`
}

// commands returns the commands of sessions, or the error of a system without.
func (s *Server) commands() error {
	if s.opts.Tasks == nil {
		return &Problem{Status: http.StatusNotImplemented, Code: "unsupported", Detail: process.ErrUnsupported.Error()}
	}
	return nil
}

// listTasks lists the commands of a session, or of all.
func (s *Server) listTasks(w http.ResponseWriter, r *http.Request) error {
	all, err := flag(r, "all")
	if err != nil {
		return err
	}
	p := api.TasksParams{SessionID: event.SessionID(r.URL.Query().Get("session")), All: all, Agents: true}
	if p.SessionID != "" {
		if _, err := s.host.Info(r.Context(), p.SessionID); err != nil {
			return err
		}
	}
	return calls(s, w, r, func(c caller) (Tasks, error) {
		list, err := c.Tasks(r.Context(), p)
		return Tasks{filled(list.Tasks)}, err
	})
}

// A task is a command that a path names.
func task(r *http.Request) api.TaskParams {
	return api.TaskParams{SessionID: sessionID(r), TaskID: r.PathValue("task")}
}

// findTask returns a command, or a 404.
func (s *Server) findTask(ctx context.Context, p api.TaskParams) (api.Task, error) {
	if err := s.commands(); err != nil {
		return api.Task{}, err
	}
	list, err := s.opts.Tasks.List(ctx, p.SessionID)
	if err != nil {
		return api.Task{}, err
	}
	for _, t := range slices.Backward(list) { // the newest with that name
		if t.TaskID == p.TaskID {
			return t, nil
		}
	}
	return api.Task{}, notFound("session " + string(p.SessionID) + " has no task " + strconv.Quote(p.TaskID))
}

func (s *Server) showTask(w http.ResponseWriter, r *http.Request) error {
	t, err := s.findTask(r.Context(), task(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, t)
}

// An Output is a part of the output of a command, as text, or in base64 if it is not
// UTF-8.
type Output struct {
	Offset  int64     `json:"offset"`
	Text    string    `json:"text,omitempty"`
	Base64  []byte    `json:"base64,omitempty"`
	Next    int64     `json:"next" doc:"offset at which the next part begins"`
	Omitted int64     `json:"omitted,omitempty" doc:"bytes before next that were not kept"`
	End     bool      `json:"end" doc:"true if there is no more"`
	Task    *api.Task `json:"task,omitempty"`
}

func outputOf(o api.TaskOutputResult) Output {
	v := Output{Offset: o.Next - int64(len(o.Data)), Next: o.Next, Omitted: o.Omitted, End: o.End}
	if utf8.Valid(o.Data) {
		v.Text = string(o.Data)
	} else {
		v.Base64 = o.Data
	}
	return v
}

// output answers with a part of the output of a command, or follows it as a stream.
func (s *Server) output(w http.ResponseWriter, r *http.Request) error {
	found, err := s.findTask(r.Context(), task(r))
	if err != nil {
		return err
	}
	p := api.TaskOutputParams{SessionID: sessionID(r), TaskID: r.PathValue("task"), Stream: r.URL.Query().Get("stream")}
	if p.Stream == "true" {
		p.Stream = ""
	}
	if p.Stream != "" && p.Stream != "stdout" && p.Stream != "stderr" {
		return invalid("stream is %q: use stdout or stderr", p.Stream)
	}
	if p.Offset, err = number(r, "offset", 0, 1<<62, 0); err != nil {
		return err
	}
	if p.Tail, err = number(r, "tail", 1, 1<<30, 0); err != nil {
		return err
	}
	if p.Wait, err = flag(r, "wait"); err != nil {
		return err
	}
	if !acceptsStream(r) {
		out, err := s.opts.Tasks.Output(r.Context(), p)
		if err != nil {
			return err
		}
		v := outputOf(out)
		v.Task = &out.Task
		return reply(w, http.StatusOK, v)
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if p.Offset, err = strconv.ParseInt(last, 10, 64); err != nil || p.Offset < 0 {
			return invalid("Last-Event-ID is %q, and no event had that id", last)
		}
		p.Tail = 0
	}
	if p.Tail > 0 {
		p.Offset, p.Tail = max(0, found.Bytes-p.Tail), 0
	}
	s.followOutput(r.Context(), startStream(w, r), p)
	return nil
}

// acceptsStream reports whether a request for output asks for a stream of events.
func acceptsStream(r *http.Request) bool {
	return r.URL.Query().Get("stream") == "true" || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// A part is a part of an output, or what went wrong.
type part struct {
	api.TaskOutputResult
	err error
}

// followOutput sends the output of a command as it is printed, and then how it ended.
func (s *Server) followOutput(ctx context.Context, out *sender, p api.TaskOutputParams) {
	ctx, cancel := context.WithCancel(ctx)
	parts := make(chan part)
	go s.readOutput(ctx, p, parts) // closes the channel
	defer func() {
		cancel()
		for range parts {
		}
	}()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for out.err == nil {
		select {
		case o, ok := <-parts:
			if !ok || s.sendOutput(out, o) {
				out.flush()
				return
			}
		case <-beat.C:
			out.comment("still here")
		case <-leaving(ctx):
			return
		}
		out.flush()
	}
}

// sendOutput sends a part, and reports whether it is the last one.
func (s *Server) sendOutput(out *sender, o part) (over bool) {
	if o.err != nil {
		b, _ := json.Marshal(toProblem(o.err)) // it has nothing that cannot be encoded
		out.frame("error", b)
		return true
	}
	if len(o.Data) > 0 || o.Omitted > 0 {
		b, _ := json.Marshal(outputOf(o.TaskOutputResult)) // likewise
		out.id(o.Next)
		out.frame("output", b)
	}
	if o.End {
		b, _ := json.Marshal(o.Task) // likewise
		out.id(o.Next)
		out.frame("end", b)
	}
	return o.End
}

func (s *Server) readOutput(ctx context.Context, p api.TaskOutputParams, to chan<- part) {
	defer close(to)
	p.Wait = true
	for {
		o, err := s.opts.Tasks.Output(ctx, p)
		select {
		case to <- part{o, err}:
		case <-ctx.Done():
			return
		}
		if err != nil || o.End {
			return
		}
		p.Offset = o.Next
	}
}

// A TaskInput is what a command is given on its standard input.
type TaskInput struct {
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"base64,omitempty"`
	Close  bool   `json:"close,omitempty" doc:"true if the input ends after it"`
}

func (s *Server) input(w http.ResponseWriter, r *http.Request) error {
	var in TaskInput
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	switch {
	case in.Text != "" && len(in.Base64) > 0:
		return invalid("give text or base64")
	case in.Text == "" && len(in.Base64) == 0 && !in.Close:
		return invalid("text: it is empty")
	}
	if _, err := s.findTask(r.Context(), task(r)); err != nil {
		return err
	}
	if err := s.giveInput(r.Context(), task(r), Input{engineKey(r.Context(), true), append([]byte(in.Text), in.Base64...), in.Close}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// inputTime is how long a command has to make room for its input.
const inputTime = 10 * time.Second

// giveInput writes to the standard input of a command. What a command does not read waits for it,
// and the client does not.
func (s *Server) giveInput(ctx context.Context, to api.TaskParams, in Input) error {
	limited, cancel := context.WithTimeout(ctx, inputTime)
	defer cancel()
	err := s.opts.Input(limited, to.SessionID, to.TaskID, in)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return conflict("not_read", "the command reads no input for now, and may still get a part of this one: send it again with the same %s, or stop the command", keyHeader)
	}
	return err
}

// stopTask ends a command, and answers when nothing of it is left.
func (s *Server) stopTask(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, maxBody, &struct{}{}); err != nil {
		return err
	}
	if _, err := s.findTask(r.Context(), task(r)); err != nil {
		return err
	}
	t, err := s.opts.Tasks.Stop(r.Context(), task(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, t)
}
