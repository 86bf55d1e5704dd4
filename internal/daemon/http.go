package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/server/httpapi"
	"github.com/abide-run/abide/internal/workspace/local"
)

// ServeHTTP serves HTTP clients that present the token, until ctx is done. Requests
// under way then get a second to finish.
func (n *Node) ServeHTTP(ctx context.Context, l net.Listener, token string) error {
	s := &http.Server{
		Handler: bearer(token, http.HandlerFunc(n.answer)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return n.ctx },
	}
	stop := func() {
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(soon) != nil {
			s.Close()
		}
	}
	defer context.AfterFunc(ctx, stop)()
	defer context.AfterFunc(n.ctx, stop)()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}

// bearer refuses requests without the token.
func bearer(token string, to http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if token == "" || !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "unauthorized", "present the token of this server: Authorization: Bearer TOKEN")
			return
		}
		to.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%q,"message":%q}`+"\n", code, message)
}

// answer handles a request if the engine is in this process, and refuses it otherwise.
func (n *Node) answer(w http.ResponseWriter, r *http.Request) {
	e, err := n.currentEngine()
	switch {
	case err != nil:
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
	case e == nil:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "not_the_engine", n.whyNotEngine())
	case e.tools.processes == nil:
		refuse(w, http.StatusNotImplemented, "unsupported", process.ErrUnsupported.Error())
	default:
		e.http().ServeHTTP(w, r)
	}
}

// whyNotEngine returns the reason why this process is not the engine, and the way out.
func (n *Node) whyNotEngine() string {
	if trouble := n.currentTakeoverError(); trouble != nil {
		return fmt.Sprintf("there is no engine for now (trying again): %v", trouble)
	}
	return "another process is the engine of this data folder: send the request to that one, or stop it so that this one takes over"
}

// http returns the process API for the sessions of the engine. Their commands have a
// plain environment: clients with the token may run commands, but must not read the API
// keys in the environment of this process.
func (e *engine) http() http.Handler {
	return httpapi.New(local.New(homeFolder(), e.tools.processes).Processes, httpapi.Options{
		Owner: func(r *http.Request, session string) (process.Owner, error) {
			_, err := e.store.Session(r.Context(), event.SessionID(session))
			if errors.Is(err, eventlog.ErrNotFound) {
				err = fmt.Errorf("%w %s; list the sessions with: abide sessions list (or start one with: abide run)", httpapi.ErrNoSession, session)
			}
			return process.Owner(session), err
		},
	})
}

// homeFolder returns the default working directory of commands. It is not the data
// folder, where a command could damage the database by accident.
func homeFolder() string {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "/"
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() { // the home directory of a service user often does not exist
		return "/"
	}
	return home
}
