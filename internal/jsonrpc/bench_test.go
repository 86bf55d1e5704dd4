package jsonrpc

import (
	"context"
	"encoding/json"
	"net"
	"testing"
)

// loopback joins two peers by TCP.
func loopback(b *testing.B, client, server Options) (*Conn, *Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	far, err := ln.Accept()
	if err != nil {
		b.Fatal(err)
	}
	c, s := New(near, client), New(far, server)
	start(b, c, s)
	return c, s
}

func BenchmarkEcho(b *testing.B) {
	client, _ := loopback(b, Options{}, Options{Handler: HandlerFunc(echo)})
	params := raw(`{"sessionId":"8745fa37-0000-4000-8000-000000000000","prompt":"What is 2+2?"}`)
	var result json.RawMessage
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Call(b.Context(), "echo", params, &result); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNotify(b *testing.B) {
	seen := make(chan struct{}, 1)
	n := 0
	client, server := loopback(b, Options{Handler: HandlerFunc(func(context.Context, *Request) (any, error) {
		if n++; n == b.N {
			seen <- struct{}{}
		}
		return nil, nil
	})}, Options{})
	_ = client
	head := []byte(`{"sessionId":"8745fa37-0000-4000-8000-000000000000","event":`)
	event := []byte(`{"type":"assistant.message_delta","id":"8745fa37-0000-4000-8000-000000000000","timestamp":"2026-11-15T00:58:35.528Z","parentId":null,"ephemeral":true,"data":{"messageId":"m","deltaContent":"word"}}`)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for !server.TryNotify("session.event", head, event, closing) {
			<-server.Drained()
		}
	}
	<-seen
}
