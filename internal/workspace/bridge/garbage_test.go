package bridge_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
)

// requests are requests of every kind: short, large, streamed and changing.
var requests = map[string]func(ctx context.Context, c *bridge.Client) error{
	"describe": func(ctx context.Context, c *bridge.Client) error {
		_, err := c.Describe(ctx)
		return err
	},
	"stat": func(ctx context.Context, c *bridge.Client) error {
		_, err := c.Workspace().Files.Stat(ctx, workspace.At("f"))
		return err
	},
	"small view": func(ctx context.Context, c *bridge.Client) error {
		_, err := c.Workspace().Files.Show(ctx, new(scope.Scope), workspace.ShowRequest{Path: "/f", MaxWhole: 1000})
		return err
	},
	"large view": func(ctx context.Context, c *bridge.Client) error {
		_, err := c.Workspace().Files.Show(ctx, new(scope.Scope), workspace.ShowRequest{Path: "/f", MaxWhole: 10 << 20})
		return err
	},
	"judge": func(ctx context.Context, c *bridge.Client) error {
		_, err := c.Workspace().Files.Judge(ctx, new(scope.Scope), workspace.Question{Path: "/f"})
		return err
	},
	"change": func(ctx context.Context, c *bridge.Client) error {
		return c.Workspace().Files.Apply(ctx, new(scope.Scope), workspace.Change{Path: "/f", New: []byte("x")})
	},
	"search": func(ctx context.Context, c *bridge.Client) error {
		_, err := c.Workspace().Files.Grep(ctx, new(scope.Scope), workspace.GrepQuery{Pattern: "x"})
		return err
	},
	"read": func(ctx context.Context, c *bridge.Client) error {
		in, err := c.Workspace().Files.Open(ctx, workspace.At("f"), 0)
		if err == nil {
			_, err = io.Copy(io.Discard, in)
			_ = in.Close()
		}
		return err
	},
	"write": func(ctx context.Context, c *bridge.Client) error {
		d, err := c.Workspace().Files.Create(ctx, workspace.At("f"), workspace.WriteOptions{})
		if err == nil {
			err = errors.Join(d.Commit(), d.Close())
		}
		return err
	},
	"start": func(ctx context.Context, c *bridge.Client) error {
		_, _, err := c.Workspace().Processes.Start(ctx, process.Spec{Owner: "me", Key: "k", Command: "true"})
		return err
	},
	"follow": func(ctx context.Context, c *bridge.Client) error {
		for _, err := range c.Workspace().Processes.Follow(ctx, "me", "id", 0) {
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// repeat writes the same again and again, until nobody reads it.
func repeat(c net.Conn, text string) {
	many := []byte(strings.Repeat(text, 1+1<<16/len(text)))
	for {
		if _, err := c.Write(many); err != nil {
			return
		}
	}
}

// strangers are servers that are no workspace.
var strangers = map[string]func(c net.Conn){
	"it hangs up":          func(net.Conn) {},
	"it sends noise":       func(c net.Conn) { repeat(c, "\x00\xff\x80noise\r\n") },
	"it sends zeros":       func(c net.Conn) { repeat(c, "\x00") },
	"it speaks mail":       func(c net.Conn) { _, _ = c.Write([]byte("220 mail.example ESMTP\r\n")) },
	"it is a web page":     func(c net.Conn) { answerHTTP(c, "Content-Type: text/html\r\nContent-Length: 5\r\n\r\nhello") },
	"it sends no length":   func(c net.Conn) { answerHTTP(c, "Content-Type: application/proto\r\n\r\nhello") },
	"it sends too little":  func(c net.Conn) { answerHTTP(c, "Content-Type: application/proto\r\nContent-Length: 500\r\n\r\nhello") },
	"its header is no end": func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n")); repeat(c, "X: y\r\n") },
	"its line is no end":   func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nX: ")); repeat(c, "x") },
	"it goes on and on": func(c net.Conn) {
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n\r\n"))
		repeat(c, "x")
	},
	"it only promises":     func(c net.Conn) { answerHTTP(c, "") },
	"it breaks off HTTP/2": func(c net.Conn) { _, _ = c.Write([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\xff\xff")) },
}

func answerHTTP(c net.Conn, rest string) {
	_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n" + rest))
}

// serveStranger lets a function answer each connection, after it has read something.
func serveStranger(t *testing.T, answer func(c net.Conn)) *bridgetest.Memory {
	t.Helper()
	m := new(bridgetest.Memory)
	l := m.Listen()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
			go func() {
				defer func() { _ = c.Close() }()
				answer(c)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return m
}

// Whatever is at the other end: a request fails with a sentence that has a reason, and takes
// little memory.
func TestAServerThatIsNoWorkspace(t *testing.T) {
	for what, answer := range strangers {
		t.Run(what, func(t *testing.T) {
			m := serveStranger(t, answer)
			c := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{0}})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for name, ask := range requests {
				if err := ask(t.Context(), c); !errors.Is(err, workspace.ErrLost) && !errors.Is(err, workspace.ErrAway) || !strings.HasSuffix(err.Error(), ")") {
					t.Errorf("%s: %v", name, err)
				}
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 400<<20 {
				t.Errorf("%d MB were allocated", used>>20)
			}
		})
	}
}

// serveAnswers serves gRPC with wrong messages.
func serveAnswers(t *testing.T, body []byte) *bridgetest.Memory {
	t.Helper()
	return serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() { _, _ = io.Copy(io.Discard, r.Body) }()
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(body)
		w.Header().Set("Grpc-Status", "0")
	}))
}

// envelope returns a message of gRPC.
func envelope(length uint32, content string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, length), content...)
}

func TestMessagesThatAreWrong(t *testing.T) {
	for what, c := range map[string]struct {
		body []byte
		want error // beside ErrLost
	}{
		"larger than any message":    {envelope(1<<31, "x"), workspace.ErrTooLarge},
		"a little too large":         {append(envelope(workspace.MaxFile+1<<20+1, ""), make([]byte, workspace.MaxFile+1<<20+1)...), workspace.ErrTooLarge},
		"shorter than it says":       {envelope(1000, "x"), workspace.ErrLost},
		"no message of the protocol": {envelope(4, "\xff\xff\xff\xff"), workspace.ErrLost},
		"cut in its length":          {[]byte{0, 0, 0}, workspace.ErrLost},
	} {
		t.Run(what, func(t *testing.T) {
			m := serveAnswers(t, c.body)
			client := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}})
			for name, ask := range requests {
				if err := ask(t.Context(), client); !errors.Is(err, c.want) && !errors.Is(err, workspace.ErrLost) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestAStreamThatEndsInTheMiddle(t *testing.T) {
	begun := envelope(0, "")
	m := serveAnswers(t, bytes.Repeat(begun, 2)) // a file that is open, and then nothing; no process
	c := client(t, bridge.ClientOptions{Dial: m.Dial, Retries: []time.Duration{}})
	if err := requests["follow"](t.Context(), c); err == nil {
		t.Error("a command has ended without having ended")
	}
	if shown, err := c.Workspace().Files.Show(t.Context(), new(scope.Scope), workspace.ShowRequest{Path: "/f", MaxWhole: 10 << 20}); err != nil || len(shown.Content) != 0 {
		t.Errorf("%d bytes, %v", len(shown.Content), err)
	}
	if _, err := c.Workspace().Files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/f"}); err == nil {
		t.Error("a path was judged without an answer")
	}
}
