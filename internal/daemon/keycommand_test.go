package daemon

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/remote"
)

func TestACommandPrintsTheKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "leaked")
	for name, test := range map[string]struct {
		command string
		key     string
		fails   string // part of the error
	}{
		"a key":                 {"echo sk-1", "sk-1", ""},
		"without a line break":  {"printf sk-1", "sk-1", ""},
		"of Windows":            {`printf 'sk-1\r\n\r\n'`, "sk-1", ""},
		"quotes and a pipe":     {`printf 'sk-1\nuser: me\n' | head -n 1`, "sk-1", ""},
		"its environment":       {`printf %s "$GIVEN$OPENAI_API_KEY"`, "given", ""},
		"no input":              {"cat; echo sk-1", "sk-1", ""},
		"no terminal":           {"(: < /dev/tty) 2> /dev/null || echo sk-1", "sk-1", ""},
		"somebody stays behind": {"sleep 1000 > /dev/null & echo sk-1", "sk-1", ""},
		"it fails":              {"echo secret; echo; echo 'vault is  sealed' >&2; echo more >&2; exit 7", "", "mine.api_key_command gave no key: exit status 7: vault is  sealed; run"},
		"it says nothing":       {"exit 3", "", "exit status 3; run"},
		"it is killed":          {"kill -9 $$", "", "signal: killed"},
		"it is not there":       {"no-such-program-here", "", "exit status 127: "},
		"it runs what it got":   {"$(echo sk-secret)", "", "exit status 127: the shell could not run a program"},
		"it cannot be run":      {"secret=/; $secret", "", "exit status 126: the shell could not run a program"},
		"it speaks in colours":  {`printf '\033[31mred\033[0m\n' >&2; exit 1`, "", "exit status 1: [31mred [0m"},
		"a long complaint":      {`head -c 9000 /dev/zero | tr '\0' x >&2; exit 1`, "", strings.Repeat("x", 200) + "…; run"},
		"nothing":               {"true", "", "it printed nothing"},
		"blanks":                {"printf '  \n'", "", "it printed nothing"},
		"two lines":             {`printf 'a\nsecret\n'`, "", "something else than one line with a key"},
		"two words":             {"echo a secret", "", "something else than one line"},
		"a control character":   {`printf 'a\tsecret'`, "", "something else than one line"},
		"a letter of Ä":         {"echo secretÄ", "", "something else than one line"},
		"too much":              {"yes secret", "", "it printed more than 16 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := RunKeyCommand(t.Context(), provider.KeyCommand{Command: test.command, Setting: "mine.api_key_command"}, []string{"GIVEN=given", "PATH=" + os.Getenv("PATH")})
			if key != test.key || (err != nil) != (test.fails != "") {
				t.Fatalf("key %q, %v", key, err)
			}
			if err == nil {
				return
			}
			failure, ok := errors.AsType[*model.Error](err)
			if !ok || failure.Kind != model.KindAuth || !errors.Is(err, ErrKeyCommand) || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %q", err, test.fails)
			}
		})
	}
}

func TestACommandForAKeyRunsInTheHomeDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if key, err := RunKeyCommand(t.Context(), provider.KeyCommand{Command: "pwd"}, nil); key != home || err != nil {
		t.Errorf("it runs in %q, %v", key, err)
	}
	t.Setenv("OPENAI_API_KEY", "leaked")
	if key, err := RunKeyCommand(t.Context(), provider.KeyCommand{Command: `echo "${OPENAI_API_KEY-none}"`}, nil); key != "none" || err != nil {
		t.Errorf("without an environment it has the key %q, %v", key, err)
	}
	t.Setenv("HOME", filepath.Join(home, "gone"))
	if key, err := RunKeyCommand(t.Context(), provider.KeyCommand{Command: "pwd"}, nil); key != "/" || err != nil {
		t.Errorf("it runs in %q, %v", key, err)
	}
}

// A command that does not end is ended, with what it has started and whatever it holds open.
func TestACommandForAKeyIsBounded(t *testing.T) {
	for name, command := range map[string]string{
		"it holds its output":    "echo sk-1; exec sleep 1000",
		"its child does":         "sleep 1000 & echo sk-1; wait",
		"its orphan does":        "sleep 1000 & echo sk-1",
		"it has closed it":       "echo sk-1; exec > /dev/null; exec sleep 1000",
		"it ignores the request": "trap '' TERM HUP INT; echo sk-1; while :; do sleep 1000; done",
	} {
		t.Run(name, func(t *testing.T) {
			defer func(was time.Duration) { keyCommandTime = was }(keyCommandTime)
			keyCommandTime = 100 * time.Millisecond
			key, err := RunKeyCommand(t.Context(), provider.KeyCommand{Command: command}, []string{"PATH=" + os.Getenv("PATH")})
			if key != "" || err == nil || !strings.Contains(err.Error(), "api_key_command gave no key: it did not end within 100ms") {
				t.Errorf("key %q, %v", key, err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			stopped := errors.New("stopped")
			cancel(stopped)
			if _, err := RunKeyCommand(ctx, provider.KeyCommand{Command: command}, nil); err != stopped {
				t.Errorf("a caller that is gone is told %v", err)
			}
		})
	}
}

// What a command has started ends with it when its time is over. A pipe that the child holds open
// tells: it ends with the last process that has it.
func TestTheChildrenOfACommandForAKeyEndWithIt(t *testing.T) {
	for name, line := range map[string]string{
		"it holds its output": "exec 3> PIPE; sleep 1000 & wait",
		"it has closed it":    "exec 3> PIPE; exec >&-; sleep 1000 & wait",
	} {
		t.Run(name, func(t *testing.T) {
			defer func(was time.Duration) { keyCommandTime = was }(keyCommandTime)
			keyCommandTime = 500 * time.Millisecond
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := os.ReadFile(pipe)
				ended <- err
			}()
			command := provider.KeyCommand{Command: strings.ReplaceAll(line, "PIPE", pipe)}
			if _, err := RunKeyCommand(t.Context(), command, []string{"PATH=" + os.Getenv("PATH")}); err == nil {
				t.Error("there is a key")
			}
			select {
			case <-ended:
			case <-time.After(30 * time.Second): // it only ends a test that hangs
				t.Error("a child goes on")
			}
		})
	}
}

// counting returns a command that prints key1, key2 and so on, and a function that returns how
// often it was run.
func counting(t *testing.T) (provider.KeyCommand, func() int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "runs")
	runs := func() int {
		b, _ := os.ReadFile(file)
		return len(b)
	}
	return provider.KeyCommand{Command: "printf x >> " + file + "; echo key$(wc -c < " + file + " | tr -d ' ')", Setting: "model.api_key_command"}, runs
}

func TestAKeyIsPrintedOnceForManyRequests(t *testing.T) {
	command, runs := counting(t)
	k := &keys{env: []string{"PATH=" + os.Getenv("PATH")}}
	all := func(refused, want string) {
		t.Helper()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if key, err := k.get(t.Context(), command, refused); key != want || err != nil {
					t.Errorf("key %q, %v", key, err)
				}
			})
		}
		asking.Wait()
	}
	all("", "key1")
	all("key1", "key2") // all of them were refused with the first one
	all("key1", "key2") // one that comes late is given the newer one
	if runs() != 2 {
		t.Errorf("the command was run %d times", runs())
	}
}

// A command that fails is run again by the next request.
func TestAKeyThatWasNotPrintedIsNotRemembered(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	command := provider.KeyCommand{Command: "cat " + gate}
	k := &keys{env: []string{"PATH=" + os.Getenv("PATH")}}
	if _, err := k.get(t.Context(), command, ""); err == nil {
		t.Error("there is a key")
	}
	if err := os.WriteFile(gate, []byte("sk-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := k.get(t.Context(), command, ""); key != "sk-1" || err != nil {
		t.Errorf("key %q, %v", key, err)
	}
}

// An expired key is replaced in the middle of a session, also when the provider is only asked
// for its models.
func TestAnExpiredKeyIsReplaced(t *testing.T) {
	for name, wanted := range map[string]string{"a model": "m", "the first model": ""} {
		t.Run(name, func(t *testing.T) {
			valid, asked := "key1", 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if (r.Method == http.MethodPost) == (wanted != "") { // windows are asked for as well
					asked++
				}
				if r.Method == http.MethodGet {
					if r.Header.Get("Authorization") != "Bearer "+valid {
						w.WriteHeader(http.StatusUnauthorized)
					}
					_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
					return
				}
				openaitest.Handler(offline.Model{}, openaitest.Options{Key: valid}).ServeHTTP(w, r)
			}))
			defer server.Close()
			command, runs := counting(t)
			m := &models{clients: make(map[string]*remote.Client), keys: keys{env: []string{"PATH=" + os.Getenv("PATH")}}}
			p := &provider.Provider{BaseURL: server.URL + "/v1", Abide: &provider.Settings{KeyCommand: &command}}
			ask := func() error {
				to, err := m.resolve(t.Context(), provider.Choice{Model: wanted, Provider: p})
				if err != nil {
					return err
				}
				reply, err := to.Model.Ask(t.Context(), &model.Request{Model: to.Name, Messages: []*model.Message{{Role: model.User, Text: "Reply with exactly: HI"}}}, func(model.Delta) {})
				if err == nil && reply.Text != "HI" {
					t.Errorf("reply %q", reply.Text)
				}
				return err
			}
			if err := errors.Join(ask(), ask()); err != nil || runs() != 1 {
				t.Fatalf("%v after %d runs", err, runs())
			}
			valid = "key2"
			if err := errors.Join(ask(), ask()); err != nil || runs() != 2 {
				t.Fatalf("%v after %d runs", err, runs())
			}
			valid, asked = "key7", 0
			if err := ask(); !isRefusedKey(err) || runs() != 3 || asked != 2 {
				t.Errorf("%v after %d runs and %d requests", err, runs(), asked)
			}
		})
	}
}

// An answer that has begun is not begun again: its pieces are out already.
func TestAnAnswerThatHasBegunIsNotAskedForWithAnotherKey(t *testing.T) {
	refused := &model.Error{Kind: model.KindAuth, Status: 401, Message: "expired"}
	m := keyedModel{
		pieceModel{refused},
		func(context.Context) (model.Model, error) { return offline.Model{}, nil },
	}
	if _, err := m.Ask(t.Context(), &model.Request{}, func(model.Delta) {}); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
}

// A pieceModel sends a piece and fails.
type pieceModel struct{ err error }

func (m pieceModel) Ask(_ context.Context, _ *model.Request, on func(model.Delta)) (*model.Reply, error) {
	on(model.Delta{Text: "a"})
	return nil, m.err
}
