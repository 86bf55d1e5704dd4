package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/floor"
	"github.com/abide-run/abide/bench/instant"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/responses"
)

// A wire is a protocol of model providers.
type wire struct {
	name  string
	open  func(remote.Config) *remote.Client
	path  string
	reply string // shortest reply
}

var wires = []wire{
	{"Chat Completions", openai.New, "/chat/completions", `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`},
	{"Anthropic Messages", anthropic.New, "/messages", `{"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`},
	{"OpenAI Responses", responses.New, "/responses", `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`},
}

// streams are the streams that are measured on each wire. The cost of a chunk alone shows
// in those in which many chunks are sent together.
var streams = []struct {
	name   string
	prompt instant.Prompt
}{
	{"text, one chunk per write", instant.Prompt{Tokens: 20_000, PerWrite: 1}},
	{"text", instant.Prompt{Tokens: 20_000}},
	{"thoughts", instant.Prompt{Tokens: 20_000, Piece: instant.Thought}},
	{"arguments", instant.Prompt{Tokens: 20_000, Piece: instant.Input}},
}

// measureStreams measures the cost of a chunk of a stream on each wire. The floor reads the
// same bytes, splits them into lines, and checks that each is JSON.
func measureStreams(at place, only string, pairs int) (err error) {
	defer stopping(&err)
	least := floor.NewClient(at.url)
	defer least.Close()
	t := compare.NewTable(os.Stdout, "stream", "ours ns", "floor ns", "ratio", "ours CPU ns", "floor CPU ns", "ratio", "ours allocations", "floor")
	rows := 0
	for _, w := range wires {
		for _, kind := range streams {
			name := w.name + ", " + kind.name
			if !strings.Contains("stream: "+name, only) {
				continue
			}
			rows++
			r := compare.Alternate(pairs, w.listen(at.url, kind.prompt), w.read(least, kind.prompt))
			t.Row(name, nanoseconds(r.A.Wall()), nanoseconds(r.B.Wall()), r.Wall(), nanoseconds(r.A.CPU()), nanoseconds(r.B.CPU()), r.CPU(), perTurn(r.A), perTurn(r.B))
		}
	}
	if rows > 0 {
		fmt.Println("\nour clients and a reader that makes sure of JSON; for each chunk the best block; the middle block")
		t.Print()
	}
	return nil
}

func nanoseconds(s compare.Spread) string { return fmt.Sprintf("%d; %d", s.Min, s.Median) }

func perTurn(s compare.Series) string { return fmt.Sprintf("%.2f", s.Allocations()) }

// listen returns the side that reads a stream with our client.
func (w wire) listen(url string, p instant.Prompt) compare.Side {
	client := w.open(remote.Config{BaseURL: url, APIKey: "bench"})
	req := &model.Request{Model: "instant", Messages: []*model.Message{{Role: model.User, Text: p.String()}}}
	return compare.Side{Name: "ours", Block: func() int {
		pieces := 0
		got(client.Ask(context.Background(), req, func(model.Delta) { pieces++ }))
		must(checkPieces(pieces, p.Tokens))
		return pieces
	}}
}

// read returns the side that reads the same stream with the floor. It also counts the
// events before and after the text.
func (w wire) read(c *floor.Client, p instant.Prompt) compare.Side {
	body := fmt.Sprintf(`{"role":"user","content":"%s","stream":true}`, p)
	return compare.Side{Name: "floor", Block: func() int {
		if events := got(c.Stream(context.Background(), w.path, body)); events < p.Tokens {
			must(checkPieces(events, p.Tokens))
		}
		return p.Tokens
	}}
}

// measureRequests measures the cost of a request with a history of 1000 turns on each wire,
// until its last byte is written to the network. The floor uses json.Marshal on the same
// messages. Before the first request nothing is encoded, as after a restart; the next
// request has one more turn.
func measureRequests(only string, pairs int) (err error) {
	defer stopping(&err)
	t := compare.NewTable(os.Stdout, "request", "ours KB", "ours µs", "floor µs", "ratio", "CPU ratio", "ours MB/s", "floor MB/s", "ours allocations", "floor")
	rows := 0
	for _, w := range wires {
		for _, kind := range []struct {
			name string
			side func(post) compare.Side
		}{{"first", firstRequests}, {"next", nextRequests}} {
			name := w.name + ", " + kind.name
			if !strings.Contains("request: "+name, only) {
				continue
			}
			rows++
			ours, least := &sink{reply: w.reply}, &sink{reply: w.reply}
			r := compare.Alternate(pairs, kind.side(w.post(ours)), kind.side(marshalled(least)))
			t.Row(name, ours.size/1000, r.A.Wall(), r.B.Wall(), r.Wall(), r.CPU(), ours.rate(r.A), least.rate(r.B), perTurn(r.A), perTurn(r.B))
		}
	}
	if rows > 0 {
		fmt.Println("\nour clients and json.Marshal, with 1000 turns of history; for each request the best block; the middle block")
		t.Print()
	}
	return nil
}

// A post is a function that sends a request.
type post func(*model.Request)

// firstRequests returns the side that sends requests with new messages.
func firstRequests(send post) compare.Side {
	const times = 5
	var reqs []*model.Request
	return compare.Side{
		Before: func() {
			reqs = nil
			for range times {
				reqs = append(reqs, conversation(1000))
			}
		},
		Block: func() int {
			for _, req := range reqs {
				send(req)
			}
			return times
		},
	}
}

// nextRequests returns the side that sends requests of a growing conversation.
func nextRequests(send post) compare.Side {
	const times = 30
	var req *model.Request
	return compare.Side{
		Before: func() {
			req = conversation(1000)
			send(req)
		},
		Block: func() int {
			for i := range times {
				more := *req
				req = &more
				addTurn(req, 1000+i)
				send(req)
			}
			return times
		},
	}
}

// conversation returns a history of turns with one tool call each.
func conversation(turns int) *model.Request {
	req := &model.Request{
		Model: "instant", System: strings.Repeat("You are an agent. ", 200),
		Tools: &model.Tools{List: []model.Tool{{Name: "view", Description: "Shows a file.", Parameters: json.RawMessage(`{"type":"object"}`)}}},
	}
	for i := range turns {
		addTurn(req, i)
	}
	return req
}

func addTurn(req *model.Request, n int) {
	call := model.Call{ID: fmt.Sprintf("call_%d", n), Name: "view", Arguments: json.RawMessage(fmt.Sprintf(`{"path":"/src/file_%d.go"}`, n))}
	req.Messages = append(req.Messages,
		&model.Message{Role: model.User, Text: prompt},
		&model.Message{Role: model.Assistant, Calls: []model.Call{call}},
		&model.Message{Role: model.ToolRole, CallID: call.ID, Text: strings.Repeat("\tif err != nil {\n\t\treturn \"no\"\n\t}\n", 8)},
		&model.Message{Role: model.Assistant, Text: answer})
}

// post returns a function that sends requests with our client.
func (w wire) post(to *sink) post {
	client := w.open(remote.Config{BaseURL: "http://bench/v1", APIKey: "bench", Transport: to})
	return func(req *model.Request) { got(client.Ask(context.Background(), req, nil)) }
}

// marshalled returns a function that sends requests as json.Marshal encodes them.
func marshalled(to *sink) post {
	client := http.Client{Transport: to}
	return func(req *model.Request) {
		resp := got(client.Post("http://bench/v1", "application/json", bytes.NewReader(got(json.Marshal(req)))))
		got(io.Copy(io.Discard, resp.Body))
		must(resp.Body.Close())
	}
}

// A sink is a transport that reads requests and replies at once.
type sink struct {
	reply string
	size  int // bytes of the last request
	buf   [32 << 10]byte
}

func (s *sink) RoundTrip(req *http.Request) (*http.Response, error) {
	s.size = 0
	for {
		n, err := req.Body.Read(s.buf[:])
		s.size += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(s.reply)), Request: req,
	}, nil
}

// rate returns the number of bytes per second of requests in the best block.
func (s *sink) rate(of compare.Series) string {
	return fmt.Sprintf("%.0f", float64(s.size)/1e6/of.Wall().Min.Seconds())
}
