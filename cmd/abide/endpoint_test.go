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
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
)

// endpoint NAME WIRE [models=A,B] [key=KEY] [skew=DURATION] [status=TEXT] starts a
// provider with the offline model behind it, and sets the variable NAME to its
// base URL. What it is asked is in the file NAME, a request a line. One with
// models=HANG never lists them; one with models=NONE has no list.
func endpoint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: endpoint NAME WIRE [OPTION=VALUE]…")
	}
	p := &fakeProvider{asked: ts.MkAbs(args[0]), options: make(map[string]string), stop: make(chan struct{})}
	for _, option := range args[2:] {
		name, value, _ := strings.Cut(option, "=")
		p.options[name] = value
	}
	switch args[1] {
	case "openai":
		p.model = openaitest.Handler(offline.Model{}, openaitest.Options{Key: p.options["key"]})
	case "anthropic":
		p.model = anthropictest.Handler(offline.Model{}, anthropictest.Options{Key: p.options["key"]})
	case "responses":
		p.model = responsestest.Handler(offline.Model{}, responsestest.Options{Key: p.options["key"]})
	default:
		ts.Fatalf("there is no wire %q", args[1])
	}
	ts.Check(os.WriteFile(filepath.Clean(p.asked), nil, 0o600))
	server := httptest.NewServer(p)
	ts.Defer(server.Close)
	ts.Defer(func() { close(p.stop) }) // first
	ts.Setenv(args[0], server.URL+"/v1")
}

// A fakeProvider is a model with a list of models beside it.
type fakeProvider struct {
	model   http.Handler
	asked   string
	options map[string]string
	stop    chan struct{}
}

func (p *fakeProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if skew, err := time.ParseDuration(p.options["skew"]); err == nil {
		w.Header().Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
	}
	if r.Method == http.MethodGet {
		p.list(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f, err := os.OpenFile(p.asked, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, _ = f.Write(append(body, '\n'))
		_ = f.Close()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.model.ServeHTTP(w, r)
}

func (p *fakeProvider) list(w http.ResponseWriter, r *http.Request) {
	key := p.options["key"]
	switch {
	case p.options["models"] == "HANG":
		select {
		case <-r.Context().Done():
		case <-p.stop:
		}
	case p.options["models"] == "NONE", !strings.HasSuffix(r.URL.Path, "/v1/models"):
		http.NotFound(w, r)
	case key != "" && r.Header.Get("Authorization") != "Bearer "+key && r.Header.Get("X-Api-Key") != key:
		http.Error(w, `{"error":{"message":"wrong key `+r.Header.Get("Authorization")+`"}}`, http.StatusUnauthorized)
	default:
		type entry struct {
			ID string `json:"id"`
		}
		list := []entry{}
		for name := range strings.SplitSeq(p.options["models"], ",") {
			list = append(list, entry{name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": list})
	}
}
