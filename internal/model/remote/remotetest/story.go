package remotetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// A Story is a conversation with a provider that was written down by hand: what
// is sent, what comes back, and what becomes of it. It is a txtar file.
//
//	given.json      what every request has: a [Given]
//	1/say.json      messages that are added to the history before the first request
//	1/sent.json     the body of the request
//	1/verbatim      lines that stand in it, byte for byte
//	1/head          status and header of the answer; 200 if there is none
//	1/reply.json    the answer, or
//	1/reply.sse     the answer as a stream
//	1/want.json     what becomes of it: a [Want]
//	2/say.json      and so on
//
// A reply is added to the history for the next request. JSON is compared by what
// it says, not by how it is written.
type Story struct {
	Name  string
	Given Given
	Steps []Step
}

// Given is what every request of a story has.
type Given struct {
	Model           string       `json:"model"`
	System          string       `json:"system"`
	Tail            string       `json:"tail"`
	Session         string       `json:"session"`
	ReasoningEffort string       `json:"effort"`
	MaxOutput       int          `json:"maxOutput"`
	Profile         string       `json:"profile"` // profile of the provider
	Tools           []model.Tool `json:"tools"`
	Temperature     *float64     `json:"temperature"`
	Schema          *model.Schema
}

// A Step is a request and its answer.
type Step struct {
	Say      []*model.Message
	Sent     []byte // nil if it does not matter
	Verbatim []string

	Status int
	Header http.Header
	Reply  []byte
	Stream bool

	Want Want
}

// Want is a reply, or an error.
type Want struct {
	Text      string       `json:"text"`
	Reasoning string       `json:"reasoning"`
	Calls     []model.Call `json:"calls"`
	Usage     model.Usage  `json:"usage"`
	Finish    string       `json:"finish"`
	Model     string       `json:"model"`
	Error     *WantedError `json:"error"`
}

// A WantedError is how an error is told.
type WantedError struct {
	Kind       model.Kind `json:"kind"`
	Status     int        `json:"status"`
	Says       string     `json:"says"`
	RetryAfter float64    `json:"retryAfter"` // seconds
}

// ReadStories reads all stories of a folder.
func ReadStories(t testing.TB, dir string) []Story {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("there are no stories in %s: add one as NAME.txtar", dir)
	}
	var stories []Story
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := Story{Name: strings.TrimSuffix(filepath.Base(name), ".txtar")}
		for _, f := range a.Files {
			if err := s.add(f); err != nil {
				t.Fatalf("%s: %s: %v", name, f.Name, err)
			}
		}
		stories = append(stories, s)
	}
	return stories
}

func (s *Story) add(f txtar.File) error {
	if f.Name == "given.json" {
		return strict(f.Data, &s.Given)
	}
	number, part, _ := strings.Cut(f.Name, "/")
	n, err := strconv.Atoi(number)
	if err != nil || n < len(s.Steps) || n > len(s.Steps)+1 || n < 1 {
		return fmt.Errorf("it belongs to no step, or to one out of order")
	}
	if n > len(s.Steps) {
		s.Steps = append(s.Steps, Step{Status: http.StatusOK})
	}
	return s.Steps[n-1].add(part, f.Data)
}

func (s *Step) add(part string, data []byte) error {
	switch part {
	case "say.json":
		return s.say(data)
	case "sent.json":
		s.Sent = data
	case "verbatim":
		s.Verbatim = strings.Split(strings.TrimSpace(string(data)), "\n")
	case "head":
		return s.head(string(data))
	case "reply.json", "reply.sse":
		s.Reply, s.Stream = data, part == "reply.sse"
	case "want.json":
		return s.want(data)
	default:
		return fmt.Errorf("there is no such part of a step")
	}
	return nil
}

func (s *Step) say(data []byte) error {
	var said []struct {
		Role   model.Role
		Text   string
		Images []model.Image

		Documents []model.Document

		CallID string
		Failed bool
	}
	if err := strict(data, &said); err != nil {
		return err
	}
	for _, m := range said {
		s.Say = append(s.Say, &model.Message{Role: m.Role, Text: m.Text, Images: m.Images, Documents: m.Documents, CallID: m.CallID, Failed: m.Failed})
	}
	return nil
}

// want reads what becomes of the answer. Arguments that are no JSON stand in a
// string.
func (s *Step) want(data []byte) error {
	if err := strict(data, &s.Want); err != nil {
		return err
	}
	for i := range s.Want.Calls {
		var text string
		if json.Unmarshal(s.Want.Calls[i].Arguments, &text) == nil {
			s.Want.Calls[i].Arguments = json.RawMessage(text)
		}
	}
	return nil
}

func (s *Step) head(text string) error {
	status, rest, _ := strings.Cut(text, "\n")
	s.Header = make(http.Header)
	for line := range strings.Lines(rest) {
		name, value, _ := strings.Cut(line, ":")
		s.Header.Set(textproto.TrimString(name), textproto.TrimString(value))
	}
	var err error
	s.Status, err = strconv.Atoi(strings.TrimSpace(status))
	return err
}

func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// ContentType is that of the answer.
func (s *Step) ContentType() string {
	if s.Stream {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}

// Answer sends the answer of a step.
func (s *Step) Answer(w http.ResponseWriter) {
	for name, values := range s.Header {
		w.Header()[name] = values
	}
	answer(w, s.Status, s.ContentType(), string(s.Reply))
}

// Request is the request of a step, after this history.
func (s *Story) Request(history []*model.Message) *model.Request {
	g := s.Given
	req := &model.Request{
		Model: g.Model, System: g.System, Tail: g.Tail, Session: g.Session,
		ReasoningEffort: g.ReasoningEffort, MaxOutput: g.MaxOutput, Messages: slices.Clone(history), Temperature: g.Temperature, Schema: g.Schema,
	}
	if len(g.Tools) > 0 {
		req.Tools = &model.Tools{List: g.Tools}
	}
	return req
}

// RunStories plays all stories of a folder.
func RunStories(t *testing.T, s Subject, dir string) {
	for _, story := range ReadStories(t, dir) {
		t.Run(story.Name, func(t *testing.T) { story.Play(t, s) })
	}
}

// Play has the conversation, and returns the bodies that were sent.
func (s *Story) Play(t *testing.T, subject Subject) (sent [][]byte) {
	_, c := subject.Client(t, nil, Options{Fault: func(n int, body []byte) Fault {
		sent = append(sent, body)
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { s.Steps[n-1].Answer(w) }
	}}, remote.Config{APIKey: "key", Profile: s.Given.Profile})
	var history []*model.Message
	for i := range s.Steps {
		step := &s.Steps[i]
		history = append(history, step.Say...)
		var h Pieces
		on := h.Add
		if !step.Stream {
			on = nil
		}
		reply, err := c.Ask(t.Context(), s.Request(history), on)
		step.check(t, i+1, sent[i], reply, err)
		if err != nil {
			continue
		}
		if on != nil {
			h.Check(t, reply)
		}
		history = append(history, &model.Message{Role: model.Assistant, Text: reply.Text, Calls: reply.Calls, Reasoning: reply.Reasoning})
	}
	return sent
}

func (s *Step) check(t *testing.T, n int, sent []byte, reply *model.Reply, err error) {
	t.Helper()
	if s.Sent != nil {
		if diff := DiffJSON(s.Sent, sent); diff != "" {
			t.Errorf("request %d differs (-want +got):\n%s", n, diff)
		}
	}
	for _, line := range s.Verbatim {
		if !bytes.Contains(sent, []byte(line)) {
			t.Errorf("request %d does not have %s in it: %s", n, line, sent)
		}
	}
	if s.Want.Error != nil {
		s.Want.Error.check(t, n, err)
		return
	}
	if err != nil {
		t.Fatalf("request %d: %v", n, err)
	}
	if diff := gocmp.Diff(s.Want, wanted(reply), Same); diff != "" {
		t.Errorf("reply %d differs (-want +got):\n%s", n, diff)
	}
}

func (e *WantedError) check(t *testing.T, n int, err error) {
	t.Helper()
	got := WantError(t, err, e.Kind)
	after := time.Duration(e.RetryAfter * float64(time.Second))
	if got.Status != e.Status || got.RetryAfter != after || !strings.Contains(got.Message, e.Says) {
		t.Errorf("error %d is %+v, want %+v", n, got, e)
	}
}

// wanted is a reply as a story tells it.
func wanted(r *model.Reply) Want {
	return Want{
		Text: r.Text, Reasoning: cmp.Or(r.Reasoning, new(model.Reasoning)).Text, Calls: r.Calls,
		Usage: r.Usage, Finish: r.Finish, Model: r.Model,
	}
}

// DiffJSON compares two texts of JSON by what they say.
func DiffJSON(want, got []byte) string {
	var values [2]any
	for i, data := range [][]byte{want, got} {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil {
			return fmt.Sprintf("no JSON: %v, in %s", err, data)
		}
	}
	return gocmp.Diff(values[0], values[1])
}
