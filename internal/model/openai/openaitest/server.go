// Package openaitest is a local server that speaks Chat Completions in front of
// any model.Model; package remotetest says what such a server does.
//
// What the wire cannot carry is lost: that a tool result is a failure, which
// part of a user message is the volatile tail, and opaque reasoning.
package openaitest

import (
	"net"
	"net/http"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

type (
	// A Server listens on loopback.
	Server = remotetest.Server
	// A Fault is something that goes wrong with a request.
	Fault = remotetest.Fault
)

// Options changes how a server answers. The zero value just answers.
type Options struct {
	Key string // the bearer token that is asked for; any if empty

	// Fault is asked about every request, numbered 1, 2, 3, and says what goes
	// wrong with it; nil is nothing. It may be called concurrently.
	Fault func(n int, body []byte) Fault

	// Split sends the parts of a reply that is not streamed as choices of
	// their own: the text, and each call.
	Split bool
}

func (o Options) common() remotetest.Options {
	return remotetest.Options{Key: o.Key, Fault: o.Fault}
}

// NewServer starts a server. It panics if it cannot listen.
func NewServer(m model.Model, o Options) *Server {
	return remotetest.NewServer(serverWire{o.Split}, m, o.common())
}

// Serve starts a server on l, which it closes in the end.
func Serve(l net.Listener, m model.Model, o Options) *Server {
	return remotetest.Serve(l, serverWire{o.Split}, m, o.common())
}

// Handler answers POST …/chat/completions by asking m.
func Handler(m model.Model, o Options) http.Handler {
	return remotetest.Handler(serverWire{o.Split}, m, o.common())
}
