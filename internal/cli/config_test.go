package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/model/provider"
)

func TestTheFlagsOfSDKsAreUnderstood(t *testing.T) {
	args := strings.Fields("--yolo --headless --no-auto-update --log-level debug --stdio --port 7 --auth-token-env X --no-auto-login --session-idle-timeout 30 --remote")
	got, err := parseHeadless(args)
	if err != nil {
		t.Fatal(err)
	}
	want := headlessFlags{stdio: true, port: 7, logLevel: "debug", tokenEnv: "X", idle: 30, yolo: true}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	for _, wrong := range []string{"--made-up", "--port", "--port x", "--port -1", "--port 65536", "--session-idle-timeout -1", "word", "-h"} {
		_, err := parseHeadless(append([]string{"--headless"}, strings.Fields(wrong)...))
		if code, text := exitStatus(t.Context(), err); code != exitUsage || text == "" {
			t.Errorf("%s: exit code %d, %q", wrong, code, text)
		}
	}
}

func FuzzParseHeadless(f *testing.F) {
	f.Add("--headless\x00--port\x007")
	f.Add("--headless\x00--=")
	f.Add("--headless\x00-\x00--")
	f.Fuzz(func(t *testing.T, line string) {
		got, err := parseHeadless(strings.Split(line, "\x00"))
		if err == nil && (got.port < 0 || got.port > 65535 || got.idle < 0) {
			t.Errorf("%q: %+v", line, got)
		}
	})
}

func TestHeadlessIsAFlagAnywhereButNotAText(t *testing.T) {
	for line, want := range map[string]bool{"--headless": true, "run --headless": true, "--stdio --headless": true, "run -- --headless": false, "run headless": false, "": false} {
		if got := isHeadless(strings.Fields(line)); got != want {
			t.Errorf("isHeadless(%q) = %v, want %v", line, got, want)
		}
	}
}

func TestTheEnvironmentNamesTheProvider(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want *provider.Provider
	}{
		"nothing":                   {nil, nil},
		"a key":                     {map[string]string{"OPENAI_API_KEY": "k"}, &provider.Provider{Type: "openai", WireAPI: "responses", BaseURL: "https://api.openai.com/v1", APIKey: "k"}},
		"a local":                   {map[string]string{"OPENAI_BASE_URL": "http://l"}, &provider.Provider{Type: "openai", BaseURL: "http://l"}},
		"both":                      {map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://l"}, &provider.Provider{Type: "openai", BaseURL: "http://l", APIKey: "k"}},
		"another":                   {map[string]string{"ANTHROPIC_API_KEY": "k"}, &provider.Provider{Type: "anthropic", BaseURL: "https://api.anthropic.com", APIKey: "k"}},
		"a token":                   {map[string]string{"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": "http://l"}, &provider.Provider{Type: "anthropic", BaseURL: "http://l", BearerToken: "t"}},
		"a key goes before a token": {map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t"}, &provider.Provider{Type: "anthropic", BaseURL: "https://api.anthropic.com", APIKey: "k"}},
		"not theirs":                {map[string]string{"COPILOT_API_URL": "http://c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, c.env)
			usual, err := choiceFromEnvironment(config.Config{})
			if err != nil {
				t.Fatal(err)
			}
			got := usual.provider
			if got != nil {
				got.Abide = nil
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("the provider is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheEnvironmentOfAnSDKNamesItsProvider(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		token string
	}{
		"the named variable": {map[string]string{"MINE": "m", "COPILOT_SDK_AUTH_TOKEN": "c", "GH_TOKEN": "g"}, "m"},
		"the usual one":      {map[string]string{"COPILOT_SDK_AUTH_TOKEN": "c", "GH_TOKEN": "g"}, "c"},
		"a fallback":         {map[string]string{"GITHUB_TOKEN": "g"}, "g"},
		"none":               {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, c.env)
			if got := copilotProvider("MINE"); got != nil {
				t.Errorf("without an endpoint: %+v", got)
			}
			t.Setenv("COPILOT_API_URL", "http://c")
			want := &provider.Provider{Type: "openai", BaseURL: "http://c", BearerToken: c.token}
			if got := copilotProvider("MINE"); !reflect.DeepEqual(got, want) {
				t.Errorf("the provider is %+v, want %+v", got, want)
			}
		})
	}
}

// setenv sets the variables that a test is about, and clears all others of its
// kind.
func setenv(t *testing.T, env map[string]string) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "COPILOT_API_URL", "MINE", "COPILOT_SDK_AUTH_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} {
		t.Setenv(name, env[name])
	}
}

func TestATokenIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", tokenFile)
	const many = 20
	tokens := make([]string, many)
	var made sync.WaitGroup
	for i := range many {
		made.Go(func() {
			var err error
			if tokens[i], err = readOrCreateToken(path, true); err != nil {
				t.Error(err)
			}
		})
	}
	made.Wait()
	for _, token := range tokens {
		if token != tokens[0] || len(token) < 20 {
			t.Errorf("tokens %q and %q", token, tokens[0])
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

func TestAPromptIsText(t *testing.T) {
	for name, in := range map[string]string{"not UTF-8": "caf\xe9", "too long": strings.Repeat("x", maxPrompt+1)} {
		var out, errs bytes.Buffer
		code := newApp(stdio{strings.NewReader(in), &out, &errs}, Options{}).execute(t.Context(), []string{"--home", filepath.Join(t.TempDir(), "h"), "run"})
		if code != exitUsage || errs.Len() == 0 || out.Len() != 0 {
			t.Errorf("%s: exit code %d, %s", name, code, errs.String())
		}
	}
}

func TestAStdinThatCannotBeReadIsAFailure(t *testing.T) {
	var errs bytes.Buffer
	code := newApp(stdio{broken{}, &errs, &errs}, Options{}).execute(t.Context(), []string{"run", "-"})
	if code != exitFailed || !strings.Contains(errs.String(), "read the prompt from stdin: it is broken") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("it is broken") }
