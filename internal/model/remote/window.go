package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/profile"
)

const (
	// lookTimeout is the time within which a provider has to say how large a window is.
	lookTimeout = 3 * time.Second
	// lookAgain is the time after which a provider is asked again that did not answer,
	// or whose answer will change, because the model was not loaded yet.
	lookAgain = time.Minute
)

// looks are the windows that a provider was asked for, by the names of models.
type looks struct {
	mu sync.Mutex
	of map[string]*look
}

// A look is one question for a window. Those who want the same wait for it.
type look struct {
	done   chan struct{} // closed when the provider has answered
	window int
	until  time.Time // time until which the answer counts; for ever if zero
}

// FindWindow returns how many tokens fit into a request to a model and its reply, as the
// provider says; zero if it does not. It is asked for each model once, and has a few
// seconds for it, or the time of model.WithHurry. A failure is no error: the model itself
// may answer.
func (c *Client) FindWindow(ctx context.Context, name string) int {
	if window, ok := c.looks.find(name); ok {
		return cmp.Or(c.Window(name), window)
	}
	if listed := c.Window(name); listed > 0 || !c.tellsWindow(name) || ctx.Err() != nil {
		return listed
	}
	limit := cmp.Or(model.Hurry(ctx), lookTimeout)
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, first := c.looks.begin(name)
	if !first {
		select {
		case <-l.done:
			return l.window
		case <-timed.Done():
			return 0
		}
	}
	window, sure, err := c.askWindow(timed, name)
	if err == nil {
		l.window = window
	}
	if !sure || err != nil {
		l.until = time.Now().Add(lookAgain)
	}
	c.looks.end(name, l, ctx.Err() == nil && (timed.Err() == nil || limit == lookTimeout))
	return l.window
}

// find returns the window of a model if the provider was asked and its answer still counts.
func (l *looks) find(name string) (window int, ok bool) {
	l.mu.Lock()
	old := l.of[name]
	l.mu.Unlock()
	if old == nil || !old.counts() {
		return 0, false
	}
	select {
	case <-old.done:
		return old.window, true
	default:
		return 0, false
	}
}

// begin returns the question for a model, and whether the caller has to ask it.
func (l *looks) begin(name string) (*look, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.of[name]; old != nil && old.counts() {
		return old, false
	}
	if l.of == nil {
		l.of = make(map[string]*look)
	}
	l.of[name] = &look{done: make(chan struct{})}
	return l.of[name], true
}

// counts reports whether the answer still counts, or is on its way.
func (l *look) counts() bool {
	select {
	case <-l.done:
		return l.until.IsZero() || time.Now().Before(l.until)
	default:
		return true
	}
}

// end tells those who wait. A question that its caller gave up is forgotten.
func (l *looks) end(name string, asked *look, keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !keep {
		delete(l.of, name)
	}
	close(asked.done)
}

// tellsWindow reports whether it is worth asking the provider for a model's window. A
// server of which nothing is known is only asked for models of which nothing is known.
func (c *Client) tellsWindow(name string) bool {
	if c.invalid != nil || c.Azure != nil {
		return false
	}
	as := c.query(&model.Request{Model: name}, false).As()
	_, known := catalog.Lookup(name)
	return as.Windows != profile.WindowsUntold && (as != profile.Other || !known)
}

// askWindow asks the provider for a model's window. sure is false if the answer may be
// another one soon.
func (c *Client) askWindow(ctx context.Context, name string) (window int, sure bool, err error) {
	switch c.query(&model.Request{Model: name}, false).As().Windows {
	case profile.WindowsOllama:
		return c.windowAtOllama(ctx, name)
	case profile.WindowsLMStudio:
		return c.windowAtLMStudio(ctx, name)
	case profile.WindowsGemini:
		return c.windowAtGemini(ctx, name)
	}
	_, err = c.Models(ctx)
	return c.Window(name), true, err
}

// windowAtOllama returns the window with which a model is loaded, or will be. Ollama cuts
// a longer request silently, so the window of the model itself is only a guess.
func (c *Client) windowAtOllama(ctx context.Context, name string) (window int, sure bool, err error) {
	var running struct {
		Models []struct {
			Name   string `json:"name"`
			Model  string `json:"model"`
			Window count  `json:"context_length"`
		} `json:"models"`
	}
	if err := c.lookAt(ctx, c.root("/api/ps"), nil, &running); err != nil {
		return 0, false, err
	}
	tagged := name
	if !strings.Contains(name, ":") {
		tagged += ":latest"
	}
	for _, m := range running.Models {
		if (m.Name == tagged || m.Model == tagged) && m.Window > 0 {
			return int(m.Window), true, nil
		}
	}
	var shown struct {
		Parameters string                     `json:"parameters"`
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	question, err := json.Marshal(map[string]string{"model": name})
	if err != nil {
		return 0, false, err
	}
	if err := c.lookAt(ctx, c.root("/api/show"), question, &shown); err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(shown.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			return int(parseCount(f[1])), true, nil
		}
	}
	for key, value := range shown.Info {
		if strings.HasSuffix(key, ".context_length") {
			window = int(parseCount(string(value)))
		}
	}
	return window, false, nil
}

func (c *Client) windowAtLMStudio(ctx context.Context, name string) (window int, sure bool, err error) {
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Loaded count  `json:"loaded_context_length"`
			Most   count  `json:"max_context_length"`
		} `json:"data"`
	}
	if err := c.lookAt(ctx, c.root("/api/v0/models"), nil, &list); err != nil {
		return 0, false, err
	}
	for _, m := range list.Data {
		if m.ID == name {
			return int(cmp.Or(m.Loaded, m.Most)), m.Loaded > 0, nil
		}
	}
	return 0, false, nil
}

// windowAtGemini asks the API of Gemini itself, beside which the one like that of OpenAI
// is. It wants the key in another header.
func (c *Client) windowAtGemini(ctx context.Context, name string) (window int, sure bool, err error) {
	u := *c.base
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/openai")
	var info struct {
		Input count `json:"inputTokenLimit"`
	}
	err = c.lookAt(ctx, u.JoinPath("models", strings.TrimPrefix(name, "models/")), nil, &info)
	return int(info.Input), true, err
}

// root returns an address at the host of the provider that is not below the base URL.
func (c *Client) root(path string) *url.URL { return c.base.ResolveReference(&url.URL{Path: path}) }

// lookAt asks for a JSON object, with a question unless that is nil.
func (c *Client) lookAt(ctx context.Context, at *url.URL, question []byte, into any) error {
	a := c.begin(ctx, new(model.Request))
	defer a.end()
	a.endpoint = at
	method := http.MethodGet
	if question != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(a.ctx, method, at.String(), bytes.NewReader(question))
	if err != nil {
		return err
	}
	if err := a.setHeaders(req.Header, &Query{Request: a.req, Host: at.Host, Profile: c.profile}); err != nil {
		return err
	}
	if c.query(a.req, false).As().Windows == profile.WindowsGemini && c.APIKey != "" {
		req.Header.Del("Authorization")
		req.Header.Set("X-Goog-Api-Key", c.APIKey)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return a.listError(resp)
	}
	const enough = 4 << 20
	data, err := io.ReadAll(io.LimitReader(resp.Body, enough))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
