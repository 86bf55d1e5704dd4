package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/mcp/oauth"
	"github.com/abide-run/abide/internal/seal"
)

// Logins keeps the logins to servers over HTTP: tokens, what this program is registered as,
// and logins that were begun. All of it is in one file, sealed. It is safe for concurrent
// use; one process has the file.
type Logins struct {
	path string
	key  *seal.File
	http *http.Client
	work sync.WaitGroup
	now  func() time.Time

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	all    map[string]*account // by the server; nil until the file was read
	doors  map[string]*door    // what waits for the answers of browsers, by the server
	closed []byte              // what the file has that could not be opened; nil if there is no such thing
	change chan struct{}       // closed when a login is finished or given up
}

// An account is what is known of the logins to a server.
type account struct {
	Token   *oauth.Token            `json:"token,omitempty"`
	Begun   *oauth.Login            `json:"begun,omitempty"`   // the login that a person has not finished yet
	Clients map[string]oauth.Client `json:"clients,omitempty"` // by issuer
	Issuer  string                  `json:"issuer,omitempty"`  // the only one that a client of the configuration is shown to
	Port    int                     `json:"port,omitempty"`    // where the answers of browsers are taken
	Wanted  string                  `json:"wanted,omitempty"`  // rights that the server has asked for since the last login

	taken    *oauth.Login // the login whose answer is under way; nil if there is none
	failed   error        // what the last login that was finished has failed with
	renewing sync.Mutex   // held while the token is renewed
}

// OpenLogins returns the logins in a file, which need not exist.
func OpenLogins(path string, key *seal.File, transport http.RoundTripper) *Logins {
	l := &Logins{path: path, key: key, http: oauth.NewHTTP(transport), now: time.Now, doors: make(map[string]*door), change: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Close stops waiting for the answers of browsers.
func (l *Logins) Close() {
	if l == nil {
		return
	}
	l.cancel()
	l.mu.Lock()
	for _, d := range l.doors {
		d.close()
	}
	l.mu.Unlock()
	l.work.Wait()
}

// loginLabel is the label under which the file is sealed.
const loginLabel = "mcp logins"

// readLocked reads the file. One that cannot be opened, because its key is lost, is as good
// as none: people log in again. The key may only be missing for now, so the file is kept.
func (l *Logins) readLocked() error {
	if l.all != nil {
		return nil
	}
	all := make(map[string]*account)
	sealed, err := os.ReadFile(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.all = all
		return nil
	case err != nil:
		return fmt.Errorf("read the logins to MCP servers: %w", err)
	}
	text, err := l.key.Open(sealed, loginLabel)
	var unknown *seal.UnknownKeyError
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.As(err, &unknown) && !errors.Is(err, seal.ErrChanged) {
		return fmt.Errorf("read the logins to MCP servers in %s: %w", l.path, err)
	}
	if l.all = all; err != nil {
		l.closed = sealed
	}
	return nil
}

// writeLocked stores all logins.
func (l *Logins) writeLocked() error {
	if _, err := l.key.Ready(); err != nil {
		return err
	}
	text, err := json.Marshal(l.all)
	if err != nil {
		return err
	}
	sealed, err := l.key.Seal(text, loginLabel)
	if err == nil {
		err = l.keepLocked()
	}
	if err == nil {
		err = replaceFile(l.path, sealed)
	}
	if err != nil {
		return fmt.Errorf("write the logins to MCP servers: %w", err)
	}
	return nil
}

// keepLocked stores what could not be opened under another name, before the file is
// replaced. What was kept before is not touched.
func (l *Logins) keepLocked() error {
	for n := 1; l.closed != nil; n++ {
		name := fmt.Sprintf("%s.unreadable-%d", l.path, n)
		switch before, err := os.ReadFile(name); {
		case errors.Is(err, fs.ErrNotExist):
			if err := replaceFile(name, l.closed); err != nil {
				return err
			}
			l.closed = nil
		case err != nil:
			return err
		case bytes.Equal(before, l.closed): // by a process that was stopped after this
			l.closed = nil
		}
	}
	return nil
}

// accountName returns the name of the account of a server: its address, and the client that
// it was configured with.
func accountName(s Server) string {
	if s.OAuth.ClientID == "" {
		return s.URL
	}
	return s.URL + " " + s.OAuth.ClientID
}

func (l *Logins) accountLocked(name string) (*account, error) {
	if err := l.readLocked(); err != nil {
		return nil, err
	}
	if l.all[name] == nil {
		l.all[name] = &account{}
	}
	return l.all[name], nil
}

// token returns the token for a server; empty if there is none. One that is about to end is
// renewed before.
func (l *Logins) token(ctx context.Context, s Server) (string, error) {
	l.mu.Lock()
	a, err := l.accountLocked(accountName(s))
	var t oauth.Token
	if err == nil && a.Token != nil {
		t = *a.Token
	}
	l.mu.Unlock()
	if err != nil || !t.Old(l.now()) {
		return t.Access, err
	}
	renewed, err := l.renew(ctx, s, t.Access)
	if err != nil && !oauth.AskAgain(err) {
		return t.Access, nil // the server decides whether it is still good
	}
	return renewed, nil
}

// renew returns a token in the place of one that the server has refused. All who hold the
// same one get the same new one: a token can often be renewed only once. A token that the
// authorization server does not renew is forgotten.
func (l *Logins) renew(ctx context.Context, s Server, stale string) (string, error) {
	l.mu.Lock()
	a, err := l.accountLocked(accountName(s))
	l.mu.Unlock()
	if err != nil {
		return "", err
	}
	a.renewing.Lock()
	defer a.renewing.Unlock()
	l.mu.Lock()
	before := a.Token
	l.mu.Unlock()
	switch {
	case before == nil:
		return "", &oauth.Refusal{Code: "invalid_grant", Description: "nobody is logged in"}
	case before.Access != stale:
		return before.Access, nil
	}
	ctx = context.WithoutCancel(ctx) // an answer that nobody waits for has the only new token
	asking := *before
	asking.Client = asking.Client.Configured(asking.Place, s.setup())
	next, err := asking.Renew(ctx, l.http, l.now())
	switch {
	case err == nil || oauth.AskAgain(err):
	case !oauth.ClientRefused(err):
		return "", fmt.Errorf("renew the login: %w", err)
	case s.OAuth.ClientID != "": // the token is good again when the configuration is
		return "", fmt.Errorf("renew the login: correct the client id or the client secret in the configuration of the MCP server %s: %w", s.Name, err)
	default:
		err = &oauth.Refusal{Code: "invalid_grant", Description: "the authorization server does not know this program any more"}
		l.forgetClient(a, before.Client)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Token != before { // somebody has logged in or out meanwhile
		if a.Token == nil {
			return "", &oauth.Refusal{Code: "invalid_grant", Description: "nobody is logged in"}
		}
		return a.Token.Access, nil
	}
	if a.Token = &next; err != nil {
		a.Token = nil
	}
	return next.Access, errors.Join(err, l.writeLocked())
}

// forgetClient forgets a client that its authorization server has refused, so that the next
// login registers this program again.
func (l *Logins) forgetClient(a *account, refused oauth.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Clients[refused.Issuer].ID == refused.ID {
		delete(a.Clients, refused.Issuer)
	}
}

// has reports whether there is another token for a server than the one that it has refused.
func (l *Logins) has(s Server, refused string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.accountLocked(accountName(s))
	return err == nil && a.Token != nil && a.Token.Access != refused
}

// want remembers which rights a server has asked for, for the next login.
func (l *Logins) want(s Server, ch oauth.Challenge) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.accountLocked(accountName(s))
	if err != nil || a.Wanted == ch.Scope {
		return err
	}
	a.Wanted = ch.Scope
	return l.writeLocked()
}

// Begin begins a login to a server, and returns the address that a person opens. A login
// that was begun before, also by another process, is continued unless the server asks for
// something else now.
func (l *Logins) Begin(ctx context.Context, s Server) (string, error) {
	if s.Type == Stdio {
		return "", fmt.Errorf("the MCP server %s is a program, and needs no login", s.Name)
	}
	ch, err := l.probe(ctx, s)
	if err != nil {
		return "", err
	}
	place, err := oauth.Discover(ctx, l.http, s.URL, ch)
	if err != nil {
		return "", fmt.Errorf("log in to the MCP server %s: %w", s.Name, err)
	}
	known, begun, before, err := l.known(s, place)
	if err != nil {
		return "", err
	}
	redirect, err := l.open(s)
	if err != nil {
		return "", err
	}
	if !known.Fits(place, s.setup(), redirect, l.now()) {
		if known, err = place.RegisterClient(ctx, l.http, s.setup(), redirect); err != nil {
			return "", err
		}
	}
	next := place.Begin(known, ch, before)
	if begun != nil && slices.Equal(begun.Scopes, next.Scopes) && begun.Client == known && begun.Place.Authorize == place.Authorize && begun.Place.Token == place.Token {
		next = *begun
	}
	if err := l.store(s, func(a *account) {
		if a.Clients == nil {
			a.Clients = make(map[string]oauth.Client)
		}
		a.Clients[place.Issuer], a.Begun = known, &next
		if s.OAuth.ClientID != "" {
			a.Issuer = place.Issuer
		}
	}); err != nil {
		return "", err
	}
	return next.URL()
}

// known returns what is known of an authorization server: the client, the login that was
// begun, and the rights that the last login had.
func (l *Logins) known(s Server, place oauth.Place) (k oauth.Client, begun *oauth.Login, scopes []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.accountLocked(accountName(s))
	if err != nil {
		return k, nil, nil, err
	}
	if first := a.issuer(); s.OAuth.ClientID != "" && first != "" && first != place.Issuer {
		return k, nil, nil, fmt.Errorf("the MCP server %s names another authorization server than before, %s and not %s, and the client of the configuration is not shown to it; if that is right, log out first: abide mcp logout %s",
			s.Name, place.Issuer, first, s.Name)
	}
	if a.Token != nil && a.Token.Place.Issuer == place.Issuer {
		scopes = a.Token.Scopes
	}
	if begun = a.Begun; a.isTaken(begun) { // it has its answer, and cannot be continued
		begun = nil
	}
	return a.Clients[place.Issuer], begun, scopes, nil
}

// issuer returns the authorization server of the logins before; empty if there is none. A
// server that can name any other one could have the secret of the configuration sent there.
func (a *account) issuer() string {
	if a.Issuer == "" && a.Token != nil {
		return a.Token.Place.Issuer
	}
	return a.Issuer
}

// store changes an account.
func (l *Logins) store(s Server, f func(*account)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.accountLocked(accountName(s))
	if err != nil {
		return err
	}
	f(a)
	return l.writeLocked()
}

// probe asks a server without a token, to learn what it wants. What it has asked for in a
// call counts more.
func (l *Logins) probe(ctx context.Context, s Server) (oauth.Challenge, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, http.NoBody)
	if err != nil {
		return oauth.Challenge{}, err
	}
	q.Header.Set("Accept", "application/json, text/event-stream")
	q.Header.Set("Content-Type", "application/json")
	answer, err := l.http.Do(q)
	if err != nil {
		return oauth.Challenge{}, fmt.Errorf("the MCP server %s: %w", s.Name, err)
	}
	answer.Body.Close()
	ch := oauth.ReadChallenge(answer.StatusCode, answer.Header)
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, err := l.accountLocked(accountName(s)); err == nil && a.Wanted != "" {
		ch.Scope = a.Wanted
	}
	return ch, nil
}

// Finish finishes the login that an answer belongs to: the address to which the
// authorization server has sent the browser.
func (l *Logins) Finish(ctx context.Context, answer string) error {
	values, err := oauth.Answer(answer)
	if err != nil {
		return err
	}
	a, begun, err := l.begun(values.Get("state"))
	if err != nil {
		return err
	}
	// An answer counts once: whoever comes with it again has no login to finish any more.
	token, err := begun.Finish(context.WithoutCancel(ctx), l.http, values, l.now())
	if oauth.ClientRefused(err) {
		l.forgetClient(a, begun.Client)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.taken != begun {
		return errors.Join(err, errGivenUp)
	}
	if err == nil {
		a.Token, a.Wanted = &token, ""
	}
	if a.taken, a.failed = nil, err; a.Begun != nil && a.Begun.State == begun.State {
		a.Begun = nil
	}
	err = errors.Join(err, l.writeLocked())
	close(l.change)
	l.change = make(chan struct{})
	return err
}

// errGivenUp means that a login does not count any more.
var errGivenUp = errors.New("somebody has logged out, or in again, before this login was finished")

// begun takes the login with a state. Nobody else can take it then; it is open until its
// outcome is known.
func (l *Logins) begun(state string) (*account, *oauth.Login, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readLocked(); err != nil {
		return nil, nil, err
	}
	for name, a := range l.all {
		if a.Begun != nil && a.Begun.State == state && !a.isTaken(a.Begun) {
			a.taken = a.Begun
			if d := l.doors[name]; d != nil {
				d.close()
				delete(l.doors, name)
			}
			return a, a.taken, nil
		}
	}
	return nil, nil, oauth.ErrOtherLogin
}

// isTaken reports whether the answer to a login is under way.
func (a *account) isTaken(begun *oauth.Login) bool {
	return begun != nil && a.taken != nil && a.taken.State == begun.State
}

// Await waits until nobody has to finish the login to a server any more, and reports whether
// the last one has worked. A token of one before does not count.
func (l *Logins) Await(ctx context.Context, s Server) (bool, error) {
	for {
		l.mu.Lock()
		a, err := l.accountLocked(accountName(s))
		change := l.change
		var open, in bool
		if err == nil {
			open, in = a.Begun != nil, a.Token != nil && a.failed == nil
		}
		l.mu.Unlock()
		if err != nil || !open {
			return in, err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-l.ctx.Done():
			return false, l.ctx.Err()
		}
	}
}

// changed returns a channel that is closed when a login is finished.
func (l *Logins) changed() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change
}

// Logout forgets everything of the login to a server: also what this program is registered
// as there, and which authorization server it was. It reports whether there was a login.
func (l *Logins) Logout(s Server) (bool, error) {
	return l.forget(s, func(a *account) { a.Issuer = "" })
}

// Forget forgets the login to a server, so that another one is begun. The client of the
// configuration is still shown to the same authorization server only.
func (l *Logins) Forget(s Server) error {
	_, err := l.forget(s, func(a *account) { a.Issuer = a.issuer() })
	return err
}

// forget forgets a login. What becomes of its authorization server is for pin to decide.
func (l *Logins) forget(s Server, pin func(*account)) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.accountLocked(accountName(s))
	if err != nil || a.Token == nil && a.Begun == nil && len(a.Clients) == 0 && a.Issuer == "" {
		return false, err
	}
	pin(a)
	was := a.Token != nil || a.Begun != nil
	a.Token, a.Begun, a.Clients, a.Wanted = nil, nil, nil, ""
	a.taken, a.failed = nil, nil
	if d := l.doors[accountName(s)]; d != nil {
		d.close()
		delete(l.doors, accountName(s))
	}
	err = l.writeLocked()
	close(l.change)
	l.change = make(chan struct{})
	return was, err
}

// setup returns what the configuration of a server says of logins.
func (s Server) setup() oauth.Setup {
	return oauth.Setup{ClientID: s.OAuth.ClientID, ClientSecret: s.ClientSecret, Document: s.OAuth.Document}
}

// A door takes the answer of a browser on this machine.
type door struct {
	server *http.Server
	close  func()
}

// doorTime is how long a door is open. The address can still be pasted afterwards.
const doorTime = time.Hour

// pageTime is how long a browser may wait for the page that says whether the login has
// worked.
const pageTime = time.Minute

// open opens the door of a server, and returns its address. It is the same one for each
// login, because some authorization servers know it only as it was registered. If the port
// is taken, by the process of another folder for example, the address is pasted.
func (l *Logins) open(s Server) (string, error) {
	name := accountName(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.accountLocked(name)
	if err != nil {
		return "", err
	}
	port := cmp.Or(s.OAuth.Port, a.Port)
	if l.doors[name] == nil && l.ctx.Err() == nil {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			port = listener.Addr().(*net.TCPAddr).Port
			l.doors[name] = l.serve(name, listener)
		} else if port == 0 {
			return "", fmt.Errorf("wait for the answer of a browser: %w", err)
		}
	}
	a.Port = port
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/callback", nil
}

// serve waits at a door.
func (l *Logins) serve(name string, listener net.Listener) *door {
	d := &door{}
	d.server = &http.Server{Handler: http.HandlerFunc(l.answer), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	ctx, cancel := context.WithTimeout(l.ctx, doorTime)
	d.close = cancel
	l.work.Go(func() { _ = d.server.Serve(listener) }) // it always ends with an error
	l.work.Go(func() {
		<-ctx.Done()
		cancel()
		ending, done := context.WithTimeout(l.ctx, pageTime)
		defer done()
		_ = d.server.Shutdown(ending)
		_ = d.server.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.doors[name] == d {
			delete(l.doors, name)
		}
	})
	return d
}

// answer takes the answer of a browser.
func (l *Logins) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Connection", "close")
	if r.Method != http.MethodGet || r.URL.Path != "/callback" {
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	}
	if err := l.Finish(r.Context(), r.URL.String()); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "The login failed: %v.\n", err)
		return
	}
	fmt.Fprintln(w, "You are logged in. This page can be closed.")
}
