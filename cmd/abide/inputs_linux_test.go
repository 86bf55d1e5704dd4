package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
)

// What comes with a prompt outlives kill -9: the file that was attached, the schema of the answer,
// and the command that prints the key, which the next engine runs again.
func TestWhatComesWithAPromptOutlivesKill(t *testing.T) {
	const key = "sk-printed-4711"
	asked := make(chan struct{}, 1)
	var mu sync.Mutex
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		bodies = append(bodies, string(body))
		first := len(bodies) == 1
		mu.Unlock()
		if first {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		openaitest.Handler(offline.Model{}, openaitest.Options{Key: key}).ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	file := func(name, content string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
	file("home/config.toml", "[model]\nmodel_id = 'm'\nbase_url = '"+server.URL+"/v1'\nprofile = 'openai'\napi_key_command = 'cat "+dir+"/key'\n")
	file("key", key+"\n")
	file("paper.pdf", "%PDF-1.7\nPAGES\n%%EOF\n")
	file("form.json", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	p := command(t, dir, "run", "--attach", "paper.pdf", "--output-schema", "form.json", `Reply with exactly: {"n":1}`)
	p.begin()
	<-asked
	must(t, syscall.Kill(p.pid(), syscall.SIGKILL))
	p.ends()
	for _, name := range []string{"paper.pdf", "form.json"} {
		must(t, os.Remove(filepath.Join(dir, name)))
	}
	var list []api.SessionInfo
	must(t, json.Unmarshal([]byte(output(t, dir, "sessions", "list", "--json")), &list))
	if out := output(t, dir, "run", "--json", "--resume", string(list[0].SessionID)); !strings.Contains(out, `"structured_output":{"n":1}`) {
		t.Errorf("the answer is %s", out)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, body := range bodies {
		if !strings.Contains(body, "JVBERi0xLjcKUEFHRVMKJSVFT0YK") || !strings.Contains(body, `"response_format"`) {
			t.Errorf("request %d of %d lacks the file or the schema: %.300s", i+1, len(bodies), body)
		}
	}
	if len(bodies) != 2 {
		t.Errorf("the model was asked %d times", len(bodies))
	}
}
