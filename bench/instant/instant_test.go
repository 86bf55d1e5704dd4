package instant

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote"
	responsesClient "github.com/abide-run/abide/internal/model/responses"
)

func TestMain(m *testing.M) {
	Main() // the tests start themselves as a server
	goleak.VerifyTestMain(m)
}

// clients are those of all wires.
var clients = map[string]func(remote.Config) *remote.Client{"chat": openai.New, "messages": anthropic.New, "responses": responsesClient.New}

// client starts a server in this process and returns a client of it.
func client(t *testing.T, open func(remote.Config) *remote.Client) *remote.Client {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Serve(l)
	}()
	transport := new(http.Transport)
	t.Cleanup(func() {
		_ = l.Close()
		transport.CloseIdleConnections()
		<-done
	})
	return open(remote.Config{BaseURL: fmt.Sprintf("http://%s/v1", l.Addr()), Transport: transport})
}

func says(texts ...string) *model.Request {
	req := &model.Request{Model: "m", Tools: &model.Tools{List: []model.Tool{{Name: "bash", Description: strings.Repeat("long ", 5000)}}}}
	for _, text := range texts {
		req.Messages = append(req.Messages, &model.Message{Role: model.User, Text: text}, &model.Message{Role: model.Assistant, Text: "an answer"})
	}
	req.Messages = req.Messages[:len(req.Messages)-1]
	return req
}

func TestAnAnswerIsAsLongAsTheNewestPromptSays(t *testing.T) {
	tests := map[string]struct {
		req  *model.Request
		want int
	}{
		"as always":               {says("hello"), Tokens},
		"more":                    {says("please: " + Prompt{Tokens: 700}.String()), 700},
		"more, one by one":        {says(Prompt{Tokens: 123, PerWrite: 1}.String()), 123},
		"more, some at a time":    {says(Prompt{Tokens: 123, PerWrite: 10}.String()), 123},
		"the same, one by one":    {says(Prompt{Tokens: Tokens, PerWrite: 1}.String()), Tokens},
		"an old prompt is no one": {says(Prompt{Tokens: 700}.String(), "hello"), Tokens},
		"a long history":          {says(strings.Repeat("x", 100_000), "hello"), Tokens},
	}
	for wire, open := range clients {
		c := client(t, open)
		for name, test := range tests {
			t.Run(wire+"/"+name, func(t *testing.T) { checkLength(t, c, test.req, test.want) })
		}
	}
}

// checkLength asks twice, the second time for a stream.
func checkLength(t *testing.T, c model.Model, req *model.Request, want int) {
	pieces := 0
	for _, on := range []func(model.Delta){nil, func(model.Delta) { pieces++ }} {
		r, err := c.Ask(t.Context(), req, on)
		if err != nil {
			t.Fatal(err)
		}
		if r.Text != strings.Repeat(Token, want) || r.Usage.Output == 0 || r.Finish != "stop" {
			t.Errorf("the reply has %d bytes and usage %+v, want %d tokens", len(r.Text), r.Usage, want)
		}
	}
	if pieces != want {
		t.Errorf("the stream had %d pieces, want %d", pieces, want)
	}
}

func TestAStreamHasThePiecesThatThePromptSays(t *testing.T) {
	const tokens = 70
	want := strings.Repeat(Token, tokens)
	for wire, open := range clients {
		c := client(t, open)
		for _, piece := range []Piece{Text, Thought, Input} {
			t.Run(wire+"/"+string(piece), func(t *testing.T) {
				var heard model.Delta
				pieces := 0
				_, err := c.Ask(t.Context(), says(Prompt{Tokens: tokens, PerWrite: 3, Piece: piece}.String()), func(d model.Delta) {
					pieces++
					heard.Text += d.Text
					heard.Reasoning += d.Reasoning
					heard.Arguments += d.Arguments
				})
				if err != nil {
					t.Fatal(err)
				}
				all := map[Piece]model.Delta{Text: {Text: want}, Thought: {Reasoning: want}, Input: {Arguments: want}}
				if heard != all[piece] || pieces != tokens {
					t.Errorf("there were %d pieces: %+v", pieces, heard)
				}
			})
		}
	}
}

func TestItSaysWhichModelsThereAre(t *testing.T) {
	if name, _, err := client(t, openai.New).DefaultModel(t.Context()); name != "instant" || err != nil {
		t.Errorf("the default model is %q, err = %v", name, err)
	}
}

func TestItRunsInAProcessOfItsOwn(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	transport := new(http.Transport)
	_, err = openai.New(openai.Config{BaseURL: s.URL, Transport: transport}).Ask(t.Context(), says("hello"), nil)
	if err != nil {
		t.Error(err)
	}
	transport.CloseIdleConnections()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzAnyRequestIsAnsweredOrHungUp(f *testing.F) {
	f.Add("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
	f.Add("POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n[[tokens=5/1]]")
	f.Add("POST /v1/messages HTTP/1.1\r\nContent-Length: 52\r\n\r\n{\"stream\":true,\"role\":\"user\"[[tokens=5/1/thought]]")
	f.Add("POST /v1/responses HTTP/1.1\r\nContent-Length: 4\r\n\r\n{  }")
	f.Add("\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		r := bufio.NewReaderSize(strings.NewReader(in), readBuffer)
		wire, length, err := readHead(r)
		if err != nil {
			return
		}
		end, err := drain(r, make([]byte, 0, 2*endLength), length)
		if err != nil {
			return
		}
		if p := findPrompt(end); p.Tokens <= 1<<20 {
			if err := wire.reply(io.Discard, end); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestACallIsMadeOnceIfAPromptAsksForIt(t *testing.T) {
	c := client(t, openai.New)
	req := says("hello", "please: "+Run("echo a | cat").String())
	ask := func() *model.Reply {
		r, err := c.Ask(t.Context(), req, func(model.Delta) {})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := ask()
	if len(r.Calls) != 1 || r.Calls[0].Name != "bash" || !strings.Contains(string(r.Calls[0].Arguments), `"command":"echo a | cat"`) {
		t.Fatalf("the reply is %+v", r)
	}
	req.Messages = append(req.Messages, &model.Message{Role: model.Assistant, Calls: r.Calls},
		&model.Message{Role: model.ToolRole, CallID: r.Calls[0].ID, Text: "a"})
	if r := ask(); len(r.Calls) != 0 || r.Text != strings.Repeat(Token, Tokens) {
		t.Errorf("after the call the reply is %+v", r)
	}
}
