package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/server/rest"
	"github.com/abide-run/abide/internal/server/signin"
)

// ConsoleHost is the name by which browsers call the console. A name of its own keeps its
// cookies and its origin apart from what else serves pages on this machine. Browsers take
// names below localhost for this machine.
const ConsoleHost = "abide.localhost"

// addressFile is the file in the data folder with the address of the HTTP server.
const addressFile = "http"

// ErrNotServed means that no process on a data folder serves HTTP.
var ErrNotServed = errors.New("no server with a console runs")

// HTTPAddress returns the address at which a process on a data folder serves HTTP. The process
// holds a lock on the file with the address, so that a file which a killed process has left is
// not taken for true: whoever listens there now must not be sent the token.
func HTTPAddress(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotServed
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return "", fmt.Errorf("%w (the last one was killed)", ErrNotServed)
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return "", fmt.Errorf("%s: %w", f.Name(), err)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<10))
	return strings.TrimSpace(string(b)), err
}

// announce writes the address of the HTTP server to the data folder, for abide open, and holds
// a lock on the file. The returned function removes it.
func (n *Node) announce(at net.Addr) (remove func()) {
	path := filepath.Join(n.folder.Dir(), addressFile)
	f, err := lockedFile(path, at.String()+"\n")
	if err != nil {
		n.log.Warn("abide open does not find this server", "err", err)
		return func() {}
	}
	return func() {
		ours, err := f.Stat()
		named, err2 := os.Stat(path)
		if err == nil && err2 == nil && os.SameFile(ours, named) {
			os.Remove(path) // abide open says what is wrong if it stays
		}
		f.Close()
	}
}

// lockedFile writes a file in place of the one that is there, and locks it. It is there only
// with its text and its lock.
func lockedFile(path, text string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		f.Close()
		return nil, err
	}
	return f, nil
}

// An httpDoor decides who may make a request over HTTP, and hands it to the one who answers.
type httpDoor struct {
	node  *Node
	token [sha256.Size]byte
	empty bool     // true if there is no token, so that nobody is let in
	names []string // names by which browsers call the console
	desk  *signin.Desk
	next  http.Handler
}

// newHTTPDoor returns the handler of all requests.
func newHTTPDoor(n *Node, token string, hosts []string) *httpDoor {
	d := &httpDoor{node: n, token: sha256.Sum256([]byte(token)), empty: token == "", names: append([]string{ConsoleHost}, hosts...), desk: signin.New(token)}
	d.next = refuseForeign(d.names, http.HandlerFunc(d.route))
	return d
}

func (d *httpDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.next.ServeHTTP(w, r) }

// route answers what needs no token, and hands the rest to those who do. Paths are taken as
// they are: one that is not in its shortest form is unknown, and not redirected to what it
// may mean.
func (d *httpDoor) route(w http.ResponseWriter, r *http.Request) {
	switch p := r.URL.Path; {
	case strings.HasPrefix(p, "/api") && path.Clean(p) != p:
		hangUp(w, http.StatusNotFound, "not_found", "there is no such path; "+rest.Prefix+"/openapi.json lists all")
	case p == "/healthz" || p == "/readyz":
		d.health(w, r)
	case p == rest.Prefix+"/signin":
		d.signIn(w, r)
	case p == "/api" || strings.HasPrefix(p, "/api/"):
		d.admitted(http.HandlerFunc(d.answer)).ServeHTTP(w, r)
	default:
		d.console(w, r)
	}
}

// answer answers a request of somebody who was let in.
func (d *httpDoor) answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case rest.Prefix + "/signin/links":
		d.link(w, r)
	case rest.Prefix + "/signout":
		d.signOut(w, r)
	case rest.Prefix + "/me":
		d.me(w, r)
	default:
		d.node.answer(w, r)
	}
}

// health says whether this process lives, and whether it can do something.
func (d *httpDoor) health(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		hangUp(w, http.StatusMethodNotAllowed, "method", "use GET")
	case r.URL.Path == "/healthz":
		answerJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case d.node.isReady():
		answerJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "unavailable", d.node.whyNotEngine())
	}
}

// isReady reports whether there is an engine that answers, in this process or another.
func (n *Node) isReady() bool {
	e, err := n.currentEngine()
	return n.ctx.Err() == nil && err == nil && (e != nil || n.currentTakeoverError() == nil)
}

// A visitor describes the client that makes an HTTP request, and how it has signed in.
type visitor struct {
	Kind    string `json:"kind"` // "token" or "browser"
	Expires string `json:"expires,omitempty"`
	Version string `json:"version,omitempty"`
}

type visitorKey struct{}

// admitted refuses requests of those who may make none.
func (d *httpDoor) admitted(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := d.identify(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			hangUp(w, http.StatusUnauthorized, "unauthorized", "present the token of this server: Authorization: Bearer TOKEN (a browser signs in with the link of: abide open)")
			return
		}
		gate.AdmitRequest(r.Context())
		limitBody(w, r)
		to.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, who)))
	})
}

// identify returns who makes a request: a program with the token, or a browser with its
// cookie and its key.
func (d *httpDoor) identify(r *http.Request) (visitor, bool) {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(given)))
	if !d.empty && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], d.token[:]) == 1 {
		return visitor{Kind: "token"}, true
	}
	if scheme != "" || d.empty || !d.isConsole(r) || !fromOwnPage(r) {
		return visitor{}, false
	}
	cookies := r.CookiesNamed(signin.Cookie)
	for _, c := range cookies {
		if until, ok := d.desk.Check(c.Value, r.Header.Get(signin.KeyHeader)); ok {
			return visitor{Kind: "browser", Expires: event.FormatTime(until)}, true
		}
	}
	return visitor{}, false
}

// isConsole reports whether a request calls the console by one of its names.
func (d *httpDoor) isConsole(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	return slices.ContainsFunc(d.names, func(own string) bool { return strings.EqualFold(own, strings.TrimSuffix(name, ".")) })
}

// fromOwnPage reports whether a browser says that a page of this origin makes the request. The
// Origin itself was compared before.
func fromOwnPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Origin") != ""
}

// onlyPost refuses requests with another method than POST, and reports whether it did not.
func onlyPost(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodPost {
		return true
	}
	w.Header().Set("Allow", http.MethodPost)
	hangUp(w, http.StatusMethodNotAllowed, "method", "use POST")
	return false
}

// maxSignIn is the maximum size of the body of a request to sign in.
const maxSignIn = 4 << 10

// signIn lets a browser in that has the token of a link.
func (d *httpDoor) signIn(w http.ResponseWriter, r *http.Request) {
	if !onlyPost(w, r) {
		return
	}
	limitBody(w, r)
	var in struct {
		Token string `json:"token"`
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSignIn))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil || in.Token == "" {
		hangUp(w, http.StatusBadRequest, "invalid", "token: it is missing")
		return
	}
	if !d.isConsole(r) || !fromOwnPage(r) {
		hangUp(w, http.StatusForbidden, "foreign_origin", "sign in from a page of the console: http://"+ConsoleHost)
		return
	}
	browser, ok := d.desk.Spend(in.Token)
	if !ok {
		hangUp(w, http.StatusUnauthorized, "link_spent", "this link was used, or is too old: run abide open again")
		return
	}
	gate.AdmitRequest(r.Context())
	http.SetCookie(w, &http.Cookie{Name: signin.Cookie, Value: browser.Cookie, Path: "/", MaxAge: int(time.Until(browser.Expires).Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isSecure(r)})
	answerJSON(w, http.StatusOK, map[string]string{"key": browser.Key, "expires": event.FormatTime(browser.Expires)})
}

// isSecure reports whether the browser reaches the server by HTTPS, through a proxy. It
// says so by the origin of its page.
func isSecure(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Origin"), "https://") }

// link makes a link for a browser.
func (d *httpDoor) link(w http.ResponseWriter, r *http.Request) {
	if !onlyPost(w, r) {
		return
	}
	if who, _ := r.Context().Value(visitorKey{}).(visitor); who.Kind != "token" {
		refuse(w, http.StatusForbidden, "forbidden", "only a program with the token can make links: run abide open")
		return
	}
	name := d.names[len(d.names)-1] // the configured name, or that of every console
	if _, port, err := net.SplitHostPort(r.Host); err == nil && name == ConsoleHost {
		name = net.JoinHostPort(name, port)
	}
	token, until := d.desk.Link()
	answerJSON(w, http.StatusCreated, map[string]string{"token": token, "url": "http://" + name + "/#signin=" + token, "expires": event.FormatTime(until)})
}

// signOut deletes the cookie of a browser.
func (d *httpDoor) signOut(w http.ResponseWriter, r *http.Request) {
	if onlyPost(w, r) {
		http.SetCookie(w, &http.Cookie{Name: signin.Cookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.WriteHeader(http.StatusNoContent)
	}
}

// me says who makes the request.
func (d *httpDoor) me(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "method", "use GET")
		return
	}
	who, _ := r.Context().Value(visitorKey{}).(visitor)
	who.Version = d.node.config.Version
	answerJSON(w, http.StatusOK, who)
}

// policy lets pages of the console load nothing but their own files, and no page embed them.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// console serves the files of the console, which hold no secrets, under its own name only.
func (d *httpDoor) console(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case consoleHandler == nil:
		hangUp(w, http.StatusNotFound, "not_found", "there is no such path; "+rest.Prefix+"/openapi.json lists all")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		hangUp(w, http.StatusMethodNotAllowed, "method", "use GET")
	case d.isConsole(r):
		consoleHandler.ServeHTTP(w, r)
	case r.URL.Path == "/" && isLoopback(r):
		_, port, _ := net.SplitHostPort(r.Host)
		http.Redirect(w, r, "http://"+net.JoinHostPort(ConsoleHost, port)+"/", http.StatusTemporaryRedirect)
	default:
		hangUp(w, http.StatusNotFound, "not_found", "the console is at http://"+ConsoleHost)
	}
}

// isLoopback reports whether a request calls this machine by its own address, with a port.
func isLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	return err == nil && (strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback())
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
}

// input returns what writes to the standard input of a command; nil if the system does not
// support durable commands.
func (t *toolbox) input() func(context.Context, event.SessionID, string, rest.Input) error {
	if t.commands == nil {
		return nil
	}
	return func(ctx context.Context, id event.SessionID, name string, in rest.Input) error {
		task, err := tasks{t}.find(ctx, id, name)
		if err != nil {
			return err
		}
		return t.commands.Processes.WriteStdin(ctx, task.Process.Owner, task.Process.ID, process.Input{Key: in.Key, Data: in.Data, Close: in.Close})
	}
}
