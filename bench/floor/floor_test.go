package floor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parrot answers with all that was said, and quotes.
type parrot struct{ asked []string }

func (p *parrot) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	p.asked = nil
	for _, m := range req.Messages {
		p.asked = append(p.asked, string(m.Role)+": "+m.Text)
	}
	return &model.Reply{Text: `you said "` + req.Messages[len(req.Messages)-1].Text + `"` + "\n"}, nil
}

func start(t *testing.T) (*Client, *parrot) {
	p := new(parrot)
	s := openaitest.NewServer(p, openaitest.Options{})
	c := NewClient(s.URL)
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return c, p
}

func TestATurnSendsTheHistoryAndKeepsTheAnswer(t *testing.T) {
	for name, stream := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			c, p := start(t)
			dir := t.TempDir()
			s, err := c.Create(dir, "s")
			if err != nil {
				t.Fatal(err)
			}
			for i, prompt := range []string{"a", "b \"<", "c"} {
				if i == 2 { // goes on after a restart
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if s, err = c.Open(dir, "s"); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := s.Turn(t.Context(), prompt, stream); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{"user: a", "assistant: you said \"a\"\n", "user: b \"<", "assistant: you said \"b \"<\"\n", "user: c"}
			if diff := cmp.Diff(want, p.asked); diff != "" {
				t.Errorf("the model was asked (-want +got):\n%s", diff)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFillIsWhatTurnsWouldHaveLeft(t *testing.T) {
	c, _ := start(t)
	dir := t.TempDir()
	filled, _ := c.Create(dir, "filled")
	asked, _ := c.Create(dir, "asked")
	if err := filled.Fill(3, "a", "you said \"a\"\n"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := asked.Turn(t.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*Session{filled, asked} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if a, b := read(t, dir, "filled"), read(t, dir, "asked"); a != b {
		t.Errorf("the files differ:\n%s\n%s", a, b)
	}
}

func read(t *testing.T, dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestADamagedRecordIsNoticed(t *testing.T) {
	c, _ := start(t)
	const record = `{"role":"user","content":"a"}` + "\n"
	for name, text := range map[string]string{"torn": record + record[:9], "cut at the end": record + strings.TrimSpace(record), "spoilt": "{oops}\n" + record} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "s"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open(dir, "s"); err == nil {
			t.Errorf("%s: nobody noticed", name)
		}
	}
}

func FuzzTheAnswerIsFoundOrNot(f *testing.F) {
	f.Add([]byte(`{"content":"a\"b"}`))
	f.Add([]byte(`{"content":"a\`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := new(Session)
		if !s.take(data) && len(s.answer) > 0 {
			t.Errorf("nothing was found in %q, but %q was kept", data, s.answer)
		}
	})
}

func TestAStreamOfAnyWireIsRead(t *testing.T) {
	c, _ := start(t)
	events, err := c.Stream(t.Context(), "/chat/completions", `{"messages":[{"role":"user","content":"a"}],"stream":true}`)
	if err != nil || events == 0 {
		t.Errorf("%d events, err = %v", events, err)
	}
	if _, err := c.Stream(t.Context(), "/nowhere", "{}"); err == nil {
		t.Error("a path that there is not was answered")
	}
}

// caller calls a command, and then says what it printed.
type caller struct{ asked []*model.Message }

func (c *caller) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	c.asked = req.Messages
	if last := req.Messages[len(req.Messages)-1]; last.Role == model.ToolRole {
		return &model.Reply{Text: "it printed " + last.Text}, nil
	}
	return &model.Reply{Calls: []model.Call{{ID: "call_1", Name: "bash", Arguments: []byte(`{"command":"echo \"a  b\"; echo c >&2"}`)}}}, nil
}

func TestACommandTurnRunsTheCommandAndAsksAgain(t *testing.T) {
	m := new(caller)
	server := openaitest.NewServer(m, openaitest.Options{})
	defer server.Close()
	c := NewClient(server.URL)
	defer c.Close()
	dir := t.TempDir()
	s, err := c.Create(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second has the first in its history
		if _, err := s.CommandTurn(t.Context(), "/bin/sh", "run it"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(read(t, dir, "s")), "\n")
	if len(lines) != 8 || !strings.Contains(lines[7], `it printed a  b\nc\n`) {
		t.Errorf("the file has:\n%s", strings.Join(lines, "\n"))
	}
	if n := len(m.asked); n != 7 || len(m.asked[1].Calls) != 1 || m.asked[2].CallID != "call_1" || m.asked[2].Text != "a  b\nc\n" {
		t.Errorf("the model was asked with %d messages: %+v", n, m.asked)
	}
}
