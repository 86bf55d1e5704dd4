// Package responsestest is a local server that speaks OpenAI Responses in front
// of any model.Model; package remotetest says what such a server does.
//
// It keeps nothing between requests. Reasoning is encrypted by its
// Reasoning.Encrypted, and comes back so. Which part of a user message is the
// volatile tail is lost, and so is that a tool result is a failure.
package responsestest

import (
	"net"
	"net/http"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

type (
	// A Server listens on loopback.
	Server = remotetest.Server
	// Options changes how it answers.
	Options = remotetest.Options
)

// NewServer starts a server. It panics if it cannot listen.
func NewServer(m model.Model, o Options) *Server { return remotetest.NewServer(serverWire{}, m, o) }

// Serve starts a server on l, which it closes in the end.
func Serve(l net.Listener, m model.Model, o Options) *Server {
	return remotetest.Serve(l, serverWire{}, m, o)
}

// Handler answers POST …/responses by asking m.
func Handler(m model.Model, o Options) http.Handler { return remotetest.Handler(serverWire{}, m, o) }

// serverWire is the server's half of the wire.
type serverWire struct{}

func (serverWire) Path() string { return "/responses" }

func (serverWire) Decode(body []byte) (*model.Request, bool, error) { return decodeRequest(body) }

func (serverWire) Whole(req *model.Request, r *model.Reply) object { return whole(req, r) }

func (serverWire) Stream(req *model.Request, send remotetest.Send) remotetest.Stream {
	return &stream{req: req, send: send, text: none, reasoning: none}
}
