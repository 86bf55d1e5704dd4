package remotetest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

func testGivingUp(t *testing.T, s Subject) {
	why := errors.New("the user pressed stop")
	for name, fault := range map[string]Fault{"before the reply": Hang(), "in the middle": StallChunks(s.Finished - 1)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			waiting := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if name == "before the reply" {
					cancel(why)
				}
				fault(w, r, next)
			}
			_, c := s.Client(t, Says("x"), Always(waiting), remote.Config{})
			_, err := c.Ask(ctx, Hello, func(model.Delta) { cancel(why) })
			if err != why {
				t.Errorf("err = %v, want the cause", err)
			}
		})
	}
	t.Run("a deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		_, c := s.Client(t, Says("x"), Options{}, remote.Config{})
		if _, err := c.Ask(ctx, Hello, nil); err != context.DeadlineExceeded {
			t.Errorf("err = %v, want the deadline's", err)
		}
	})
}

// pipes is a listener whose connections are in memory, so that they can live in
// a bubble with a clock of its own.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return address("memory.example") }

type address string

func (a address) Network() string { return "pipe" }
func (a address) String() string  { return string(a) }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

// inBubble runs test with a client and a server in a bubble.
func (s Subject) inBubble(t *testing.T, m model.Model, o Options, config remote.Config, test func(*testing.T, *remote.Client)) {
	synctest.Test(t, func(t *testing.T) {
		listener := make(pipes)
		server := s.Serve(listener, m, o)
		transport := &http.Transport{DialContext: listener.dial}
		config.BaseURL, config.Transport = server.URL, transport
		test(t, s.New(config))
		transport.CloseIdleConnections()
		server.Close()
	})
}

func testSilence(t *testing.T, s Subject) {
	for name, fault := range map[string]Fault{
		"before the reply": Hang(), "at the beginning": StallChunks(1), "in the middle": StallChunks(s.Finished - 1),
	} {
		t.Run(name, func(t *testing.T) {
			s.inBubble(t, Says(strings.Repeat("long ", 50)), Always(fault), remote.Config{}, func(t *testing.T, c *remote.Client) {
				start := time.Now()
				_, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
				if e := WantError(t, err, model.KindTimeout); !strings.Contains(e.Message, "5m0s") {
					t.Errorf("the message does not say how long: %s", e.Message)
				}
				if waited := time.Since(start); waited != 5*time.Minute {
					t.Errorf("it took %v, want 5m", waited)
				}
			})
		})
	}
}

// slowly streams words with a pause before each.
func slowly(pause time.Duration, words ...string) model.Model {
	return Ask(func(_ context.Context, _ *model.Request, on func(model.Delta)) (*model.Reply, error) {
		for _, w := range words {
			time.Sleep(pause) // the clock is that of the bubble
			on(model.Delta{Text: w})
		}
		return &model.Reply{Text: strings.Join(words, ""), Finish: "stop"}, nil
	})
}

func testSlow(t *testing.T, s Subject) {
	s.inBubble(t, slowly(50*time.Second, "a", "b", "c"), Options{}, remote.Config{IdleTimeout: time.Minute}, func(t *testing.T, c *remote.Client) {
		if r, err := c.Ask(t.Context(), Hello, func(model.Delta) {}); err != nil || r.Text != "abc" {
			t.Errorf("reply %v, err = %v", r, err)
		}
	})
}

// repeat sends a text again and again, until the client is gone.
func repeat(w http.ResponseWriter, r *http.Request, text string) {
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte(text))
		w.(http.Flusher).Flush()
		select {
		case <-time.After(5 * time.Second): // the clock is that of the bubble
		case <-r.Context().Done():
		}
	}
}

// testSignsOfLife checks that comments in a stream, events that bring nothing, and a reply that
// never becomes an object are enough for a while, and not for ever.
func testSignsOfLife(t *testing.T, s Subject) {
	for name, c := range map[string]struct{ contentType, text string }{
		"comments":    {"text/event-stream", ": waiting\n\n"},
		"events":      {"text/event-stream", "data: {\"type\":\"ping\"}\n\n"},
		"white space": {"application/json", " "},
	} {
		t.Run(name, func(t *testing.T) {
			alive := func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
				w.Header().Set("Content-Type", c.contentType)
				repeat(w, r, c.text)
			}
			s.inBubble(t, nil, Always(alive), remote.Config{IdleTimeout: time.Minute}, func(t *testing.T, c *remote.Client) {
				start := time.Now()
				_, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
				if e := WantError(t, err, model.KindTimeout); !strings.Contains(e.Message, "nothing but signs of life for 12m0s") {
					t.Errorf("the message does not say how long: %s", e.Message)
				}
				if took := time.Since(start); took < 12*time.Minute || took > 13*time.Minute {
					t.Errorf("it took %v, want 12 to 13 minutes", took)
				}
			})
		})
	}
}

// testChatterAfterTheEnd checks that a provider that goes on to send events after the reply is
// complete does not keep it.
func testChatterAfterTheEnd(t *testing.T, s Subject) {
	if s.Finished == s.Events {
		return // nothing is read after the last event
	}
	chatter := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		EndChunks(s.Finished)(w, r, next)
		repeat(w, r, "data: {\"type\":\"ping\"}\n\n")
	}
	s.inBubble(t, Says("text"), Always(chatter), remote.Config{}, func(t *testing.T, c *remote.Client) {
		start := time.Now()
		if r, err := c.Ask(t.Context(), Hello, func(model.Delta) {}); err != nil || r.Text != "text" {
			t.Errorf("reply %v, err = %v", r, err)
		}
		if took := time.Since(start); took > 3*time.Minute {
			t.Errorf("it took %v, want 2 minutes", took)
		}
	})
}

func testTimeout(t *testing.T, s Subject) {
	s.inBubble(t, slowly(50*time.Second, "a", "b", "c"), Options{}, remote.Config{Timeout: 2 * time.Minute}, func(t *testing.T, c *remote.Client) {
		start := time.Now()
		_, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
		if e := WantError(t, err, model.KindTimeout); !strings.Contains(e.Message, "2m0s") {
			t.Errorf("the message does not say how long: %s", e.Message)
		}
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("it took %v, want 2m", took)
		}
	})
}

func testLastWords(t *testing.T, s Subject) {
	for events := s.Finished; events <= s.Events; events++ {
		stall, want := StallChunks(events), 10*time.Second
		if events == s.Events {
			want = 100 * time.Millisecond
			stall = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(w, r)
				<-r.Context().Done()
			}
		}
		s.inBubble(t, Says("text"), Always(stall), remote.Config{}, func(t *testing.T, c *remote.Client) {
			start := time.Now()
			r, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
			if err != nil || r.Text != "text" {
				t.Fatalf("reply %v, err = %v", r, err)
			}
			if waited := time.Since(start); waited != want {
				t.Errorf("silence after %d events: waited %v, want %v", events, waited, want)
			}
		})
	}
}

func testGivingUpLate(t *testing.T, s Subject) {
	stall := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
		<-r.Context().Done()
	}
	if s.Finished < s.Events {
		stall = StallChunks(s.Finished)
	}
	s.inBubble(t, Says("text"), Always(stall), remote.Config{}, func(t *testing.T, c *remote.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if r, err := c.Ask(ctx, Hello, func(model.Delta) {}); err != nil || r.Text != "text" {
			t.Errorf("reply %v, err = %v", r, err)
		}
	})
}

func testRetryDate(t *testing.T, s Subject) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
		listener := make(pipes)
		server := s.Serve(listener, nil, Always(Status(429, "x", "Retry-After", at)))
		transport := &http.Transport{DialContext: listener.dial}
		_, err := s.New(remote.Config{BaseURL: server.URL, Transport: transport}).Ask(t.Context(), Hello, nil)
		if e := WantError(t, err, model.KindRateLimit); e.RetryAfter != 90*time.Second {
			t.Errorf("RetryAfter = %v, want 90s", e.RetryAfter)
		}
		transport.CloseIdleConnections()
		server.Close()
	})
}
