package sdk

import (
	"context"
	"strings"
	"sync"
	"testing"

	copilot "github.com/github/copilot-sdk/go"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
)

// A mind is where the answers in a home come from. Whichever it is, it does what
// it is told in the language of the offline model.
type mind struct {
	name     string
	provider *copilot.ProviderConfig // nil if it is in the program
	far      *far                    // nil if it is in the program
}

// worlds are all the ways to reach a model.
var worlds = map[string]func(*testing.T) mind{"offline": newNear, "wire": newFar}

func newNear(*testing.T) mind { return mind{name: offline.Name} }

// newFar puts the offline model behind a server that speaks Chat Completions. Its
// key is checked: that is kept beside the log, and has to be there after a kill.
func newFar(t *testing.T) mind {
	f := &far{}
	server := openaitest.NewServer(f, openaitest.Options{Key: "key"})
	t.Cleanup(server.Close)
	return mind{name: "far", provider: &copilot.ProviderConfig{BaseURL: server.URL, APIKey: "key"}, far: f}
}

// A far is the model in this process. It looks at its requests as strictly as a
// provider, and can be made to take its time.
type far struct {
	home *home // set by newHome

	mu     sync.Mutex
	hold   chan struct{} // requests wait while it is open; nil if they do not
	there  chan struct{} // closed when one waits
	asked  [][]string    // the messages of each request, in lines
	faults []string
}

func (f *far) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if hold := f.took(req); hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return offline.Model{}.Ask(ctx, req, on)
}

// took remembers a request. If it has to wait, that is for the channel to be
// closed.
func (f *far) took(req *model.Request) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := make(map[string]bool)
	var lines []string
	for _, m := range req.Messages {
		if (m.Role == model.ToolRole) != open[m.CallID] || m.Role != model.ToolRole && len(open) > 0 {
			f.faults = append(f.faults, "a message does not fit the calls that are open: "+m.Text)
		}
		delete(open, m.CallID)
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		lines = append(lines, string(m.Role)+": "+local.Words(m.Text))
	}
	f.asked = append(f.asked, lines)
	if f.there != nil {
		close(f.there)
		f.there = nil
	}
	return f.hold
}

// pause lets requests wait from now on.
func (f *far) pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold, f.there = make(chan struct{}), make(chan struct{})
}

// arrival waits until a request waits.
func (f *far) arrival() {
	f.home.t.Helper()
	f.mu.Lock()
	there := f.there
	f.mu.Unlock()
	if there == nil {
		return
	}
	select {
	case <-there:
	case <-f.home.ctx.Done():
		f.home.t.Fatalf("%v: the model was not asked", context.Cause(f.home.ctx))
	}
}

// goOn lets requests be answered again.
func (f *far) goOn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.hold)
	f.hold = nil
}

// told is what the last request said, and how many there were.
func (f *far) told() (last string, requests int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return "", 0
	}
	return strings.Join(f.asked[len(f.asked)-1], "\n"), len(f.asked)
}
