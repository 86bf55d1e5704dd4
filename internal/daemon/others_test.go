package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/jsonrpc"
)

func TestARelayWithAnotherStoreThanItsEngineIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		engine, relay daemon.Config
		refused       bool
	}{
		"default and another": {engine: daemon.Config{Dir: "dir"}, relay: daemon.Config{Dir: "dir", Store: "sqlite:other.db"}, refused: true},
		"another and default": {engine: daemon.Config{Dir: "dir", Store: "sqlite:other.db"}, relay: daemon.Config{Dir: "dir"}, refused: true},
		"two others":          {engine: daemon.Config{Dir: "dir", Store: "sqlite:a.db"}, relay: daemon.Config{Dir: "dir", Store: "sqlite:b.db"}, refused: true},
		"to stay":             {engine: daemon.Config{Dir: "dir", OneCommand: true}, relay: daemon.Config{Dir: "dir", Store: "sqlite:b.db"}, refused: true},
		"both default":        {engine: daemon.Config{Dir: "dir"}, relay: daemon.Config{Dir: "link", OneCommand: true}},
		"written out":         {engine: daemon.Config{Dir: "dir", Store: "sqlite:ROOT/dir/abide.db"}, relay: daemon.Config{Dir: "link"}},
		"relative":            {engine: daemon.Config{Dir: "dir", Store: "sqlite:mine.db"}, relay: daemon.Config{Dir: "link", Store: "sqlite:ROOT/link/mine.db"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir() // the wait for the lock of a folder goes on for a moment after its process was closed
			if err := errors.Join(os.Mkdir(filepath.Join(root, "dir"), 0o700), os.Symlink("dir", filepath.Join(root, "link"))); err != nil {
				t.Fatal(err)
			}
			below := func(c daemon.Config) daemon.Config {
				c.Dir, c.Store = filepath.Join(root, c.Dir), strings.Replace(c.Store, "ROOT", root, 1)
				return c
			}
			engine, err := daemon.Open(t.Context(), below(c.engine))
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			relay, err := daemon.Open(t.Context(), below(c.relay))
			if err != nil {
				t.Fatal(err)
			}
			defer relay.Close()
			conn, err := relay.Connect(t.Context())
			if err == nil {
				p := jsonrpc.New(conn, jsonrpc.Options{})
				go p.Run(t.Context())
				err = p.Call(t.Context(), api.Connect, api.ConnectParams{}, nil)
				p.Close()
			}
			if !c.refused {
				if err != nil || relay.Err() != nil {
					t.Errorf("the client was told %v, and the process %v", err, relay.Err())
				}
				return
			}
			<-relay.Done()
			wrong, is := errors.AsType[*daemon.FolderError](relay.Err())
			if err == nil || !is || !strings.Contains(wrong.Error(), "the same store.url") {
				t.Errorf("the client was told %v, and the process %v", err, relay.Err())
			}
		})
	}
}
