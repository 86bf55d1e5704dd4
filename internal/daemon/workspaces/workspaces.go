// Package workspaces connects an engine to the workspaces of its sessions.
//
//   - A workspace is named in the configuration, or chosen by its address.
//   - There is one connection for each workspace, made when it is first needed and made
//     again after it was lost. No request of an engine that starts waits for it.
//   - A session is bound to the identity of its workspace: every request carries it, and
//     a workspace with another identity refuses.
//   - An error names the workspace, the reason and the way out.
package workspaces

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// DefaultPatience is how long a call waits for a workspace that is away.
const DefaultPatience = 30 * time.Second

// A Place says how a workspace is reached.
type Place struct {
	Address    string // "unix:PATH" or "tcp:HOST:PORT"
	CA         string // file with the certificates that vouch for it; those of the system if empty
	ServerName string // name that its certificate must have; the host of the address if empty
	TokenFile  string // file with its token
	TokenEnv   string // variable with its token
	Dir        string // working directory of sessions there; the folder that is served if empty
}

// Options are the settings of a Registry.
type Options struct {
	Named    map[string]Place
	Read     func() (map[string]Place, error) // reads Named again; it stays as it is if nil
	Patience time.Duration                    // time that a call waits for a workspace that is away; DefaultPatience if zero
}

// A Registry knows the workspaces and keeps the connections to them. It is safe for
// concurrent use.
type Registry struct {
	opts Options

	mu     sync.Mutex
	named  map[string]Place
	open   map[event.Workspace]*Connection
	closed bool
}

// New returns a registry. It connects to nothing.
func New(o Options) *Registry {
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	return &Registry{opts: o, named: maps.Clone(o.Named), open: make(map[event.Workspace]*Connection)}
}

// Close closes the connections. Commands there keep running.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var errs []error
	for _, c := range r.open {
		errs = append(errs, c.client.Close())
	}
	clear(r.open)
	return errors.Join(errs...)
}

// Places returns the workspaces of the configuration.
func (r *Registry) Places() (map[string]Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.reread()
	return maps.Clone(r.named), err
}

// List returns the workspaces of the configuration, by name.
func (r *Registry) List() ([]api.Workspace, error) {
	places, err := r.Places()
	var list []api.Workspace
	for _, name := range slices.Sorted(maps.Keys(places)) {
		list = append(list, api.Workspace{Name: name, Address: places[name].Address, Dir: places[name].Dir})
	}
	return list, err
}

// reread reads the configuration again. The caller holds the lock.
func (r *Registry) reread() error {
	if r.opts.Read == nil {
		return nil
	}
	named, err := r.opts.Read()
	if err == nil {
		r.named = named
	}
	return err
}

// Resolve returns the workspace that a choice means, which is a name or an address,
// without its identity; nil for the machine of the engine.
func (r *Registry) Resolve(choice string) (*event.Workspace, error) {
	if choice == "" || choice == event.LocalWorkspace {
		return nil, nil
	}
	if strings.Contains(choice, ":") {
		_, _, err := bridge.ParseAddress(choice)
		return &event.Workspace{Address: choice}, err
	}
	place, err := r.place(event.Workspace{Name: choice}, false)
	return &event.Workspace{Name: choice, Address: place.Address}, err
}

// place returns how a workspace is reached. If again is true, the configuration is read
// again in any case, and otherwise only if it has no such name.
func (r *Registry) place(w event.Workspace, again bool) (Place, error) {
	if w.Name == "" {
		return Place{Address: w.Address, TokenEnv: tokenVariable}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	place, ok := r.named[w.Name]
	if again || !ok {
		if err := r.reread(); err != nil {
			return Place{}, err
		}
		place, ok = r.named[w.Name]
	}
	switch {
	case !ok:
		return Place{}, fmt.Errorf("there is no workspace %s in the configuration%s: add [workspaces.%s] with its address, or use unix:PATH or tcp:HOST:PORT", w.Name, among(r.named), w.Name)
	case place.Address == "":
		return Place{}, fmt.Errorf("the workspace %s has no address: set workspaces.%s.address to unix:PATH or tcp:HOST:PORT", w.Name, w.Name)
	}
	return place, nil
}

// tokenVariable is the variable with the token of a workspace that was chosen by its
// address.
const tokenVariable = "ABIDE_WORKSPACE_TOKEN"

func among(named map[string]Place) string {
	if len(named) == 0 {
		return ""
	}
	return " (it has " + strings.Join(slices.Sorted(maps.Keys(named)), ", ") + ")"
}

// ask connects to the workspace of a choice for a few questions. It returns the workspace
// with its identity, and what it says of itself. It does not wait for one that is away, and a
// moment for one that went away meanwhile.
func (r *Registry) ask(ctx context.Context, choice string, more func(context.Context, *bridge.Client, event.Workspace, workspace.Description) error) (event.Workspace, workspace.Description, error) {
	var about workspace.Description
	w, err := r.Resolve(choice)
	if err != nil || w == nil {
		return event.Workspace{Name: choice}, about, err
	}
	place, err := r.place(*w, true)
	if err != nil {
		return *w, about, err
	}
	w.Address = place.Address
	o, err := r.clientOptions(*w, place)
	if err != nil {
		return *w, about, err
	}
	c, err := bridge.NewClient(o)
	if err != nil {
		return *w, about, err
	}
	defer c.Close()
	attempt := func(ctx context.Context) (err error) {
		if about, err = c.Describe(ctx); err != nil {
			return err
		}
		if about.Identity == "" {
			return explain(*w, place, fmt.Errorf("%w: it has no identity", workspace.ErrProtocol))
		}
		w.Identity = about.Identity
		return more(ctx, c, *w, about)
	}
	if err = attempt(bridge.WithoutPatience(ctx)); errors.Is(err, workspace.ErrLost) {
		ctx, cancel := context.WithTimeoutCause(ctx, restartTime, err)
		defer cancel()
		err = attempt(ctx)
	}
	return *w, about, err
}

// restartTime is how long somebody who asks a workspace waits for it if it was there a moment
// ago: it may be starting again.
const restartTime = 5 * time.Second

// A Report is what a check finds out about a workspace.
type Report struct {
	Workspace event.Workspace
	About     workspace.Description
	Dir       string        // where sessions work there
	RoundTrip time.Duration // shortest time of a request and its answer
	Clock     time.Duration // how far its clock is ahead of the clock here
}

// Check connects to the workspace of a choice, measures the way to it, and looks whether
// the folder in which sessions work is there.
func (r *Registry) Check(ctx context.Context, choice string) (Report, error) {
	var report Report
	var err error
	report.Workspace, report.About, err = r.ask(ctx, choice, func(ctx context.Context, c *bridge.Client, found event.Workspace, about workspace.Description) error {
		report.Dir = r.dirOf(found, about)
		if err := report.measure(ctx, c); err != nil {
			return err
		}
		return checkDir(ctx, c, report.Dir, found, about)
	})
	return report, err
}

// measure measures the way to a workspace, and how far its clock is ahead.
func (r *Report) measure(ctx context.Context, c *bridge.Client) error {
	for range 5 {
		began := time.Now()
		about, err := c.Describe(ctx)
		if err != nil {
			return err
		}
		if took := time.Since(began); r.RoundTrip == 0 || took < r.RoundTrip {
			r.RoundTrip, r.Clock = took, about.Time.Sub(began.Add(took/2))
		}
	}
	return nil
}

// dirOf returns the folder in which sessions work.
func (r *Registry) dirOf(w event.Workspace, about workspace.Description) string {
	if place, err := r.place(w, false); err == nil && place.Dir != "" {
		return place.Dir
	}
	return about.Dir
}

// checkDir returns an error if the folder in which sessions work is not there.
func checkDir(ctx context.Context, c *bridge.Client, dir string, w event.Workspace, about workspace.Description) error {
	info, err := c.Workspace().Files.Stat(ctx, workspace.At(dir))
	reason := "is not a folder"
	switch {
	case workspace.Unusable(err) || err == nil && info.Mode.IsDir():
		return err
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist there"
	case err != nil:
		reason = fmt.Sprintf("cannot be used (%v)", err)
	}
	way := "serve another one with --dir"
	if dir != about.Dir {
		way = fmt.Sprintf("name another one in workspaces.%s.dir", w.Name)
	}
	return fmt.Errorf("workspace %s: its folder %s %s: make it, or %s", w.Label(), dir, reason, way)
}

// Choose returns the workspace of a choice with its identity, which the session is bound
// to from now on, and the folder in which the session works: the one that it wants, or else
// that of the workspace, which must be there. It returns nil for the machine of the engine.
func (r *Registry) Choose(ctx context.Context, choice, wanted string) (w *event.Workspace, dir string, err error) {
	if choice == "" || choice == event.LocalWorkspace {
		return nil, "", nil
	}
	dir = wanted
	found, _, err := r.ask(ctx, choice, func(ctx context.Context, c *bridge.Client, found event.Workspace, about workspace.Description) error {
		if wanted != "" {
			return nil
		}
		dir = r.dirOf(found, about)
		return checkDir(ctx, c, dir, found, about)
	})
	if err != nil {
		return nil, "", err
	}
	return &found, dir, nil
}

// Open returns the connection to a workspace. It does not wait for it.
func (r *Registry) Open(w event.Workspace) (*Connection, error) {
	r.mu.Lock()
	c := r.open[w]
	r.mu.Unlock()
	if c != nil && !c.doubted() {
		return c, nil
	}
	place, err := r.place(w, c != nil)
	if err != nil {
		return nil, err
	}
	o, err := r.clientOptions(w, place)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connect(w, place, o)
}

// connect returns the connection with some options. One that is there is used as long as
// nothing has changed. The caller holds the lock.
func (r *Registry) connect(w event.Workspace, place Place, o bridge.ClientOptions) (*Connection, error) {
	c := r.open[w]
	switch {
	case r.closed:
		return nil, errors.New("the engine is stopping")
	case c != nil && c.place == place && c.token == o.Token:
		c.believe()
		return c, nil
	case c != nil:
		_ = c.client.Close()
	}
	c = &Connection{workspace: w, place: place, token: o.Token}
	o.Explain = func(err error) error {
		c.doubt()
		return explain(w, place, err)
	}
	var err error
	if c.client, err = bridge.NewClient(o); err != nil {
		return nil, err
	}
	r.open[w] = c
	return c, nil
}

// clientOptions returns how a client reaches a workspace.
func (r *Registry) clientOptions(w event.Workspace, place Place) (o bridge.ClientOptions, err error) {
	o = bridge.ClientOptions{Address: place.Address, Patience: r.opts.Patience, Identity: w.Identity}
	o.Explain = func(err error) error { return explain(w, place, err) }
	if o.Token, err = place.token(); err != nil {
		return o, fmt.Errorf("the token of the workspace %s cannot be read: %w", w.Label(), err)
	}
	if o.TLS, err = place.tls(); err != nil {
		return o, fmt.Errorf("the certificates for the workspace %s cannot be read: %w", w.Label(), err)
	}
	return o, nil
}

func (p Place) token() (string, error) {
	if p.TokenFile == "" {
		if p.TokenEnv == "" {
			return "", nil
		}
		return os.Getenv(p.TokenEnv), nil
	}
	b, err := os.ReadFile(p.TokenFile)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", fmt.Errorf("%s holds no token, which is one line of letters, digits and signs", p.TokenFile)
	}
	return token, nil
}

// tls returns the configuration of TLS; nil for a workspace on this machine, unless there
// are certificates for it: a token is never sent to another machine in clear text.
func (p Place) tls() (*tls.Config, error) {
	network, addr, err := bridge.ParseAddress(p.Address)
	if err != nil || p.CA == "" && (network == "unix" || bridge.IsLoopback(addr)) {
		return nil, err
	}
	c := &tls.Config{ServerName: p.ServerName}
	if p.CA == "" {
		return c, nil
	}
	text, err := os.ReadFile(p.CA)
	if err != nil {
		return nil, err
	}
	if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", p.CA)
	}
	return c, nil
}

// tokenSource says where the token of a workspace comes from.
func (p Place) tokenSource() string {
	switch {
	case p.TokenFile != "":
		return "the token in " + p.TokenFile
	case p.TokenEnv != "" && os.Getenv(p.TokenEnv) != "":
		return "the token in the variable " + p.TokenEnv
	case p.TokenEnv != "":
		return "a request without a token (the variable " + p.TokenEnv + " is not set)"
	}
	return "a request without a token"
}

// explain adds the name of the workspace and the way out to an error.
func explain(w event.Workspace, place Place, err error) error {
	name := w.Label()
	if w.Name != "" {
		name += " (" + place.Address + ")"
	}
	way := "to see whether it is back: abide workspace check " + w.Label()
	switch {
	case errors.Is(err, workspace.ErrOther):
		way = "it was replaced, or its data folder was; bring back the one that the session began with, or begin a new session"
	case errors.Is(err, workspace.ErrProtocol):
		way = "update the older of the two abide programs"
	case errors.Is(err, workspace.ErrToken):
		err = workspace.ErrToken // what the workspace says is for other clients
		way = place.tokenSource() + " was refused; abide workspace prints where its token is, and token_file or token_env of the configuration names it here"
	case errors.Is(err, workspace.ErrNeedsTLS):
		way = "name the file with its certificate in tls_ca of [workspaces.NAME] in the configuration"
	case errors.Is(err, workspace.ErrHasNoTLS):
		way = "start it with --tls-cert and --tls-key, or leave out tls_ca if it is on this machine"
	case errors.Is(err, workspace.ErrCertificate):
		way = "name the file with its certificate in tls_ca, and its name in tls_server_name"
	case !errors.Is(err, workspace.ErrLost):
		way = "start abide workspace there; " + way
	}
	return fmt.Errorf("workspace %s: %w; %s", name, err, way)
}

// A Connection is the way to a workspace.
type Connection struct {
	client    *bridge.Client
	workspace event.Workspace
	place     Place
	token     string

	mu       sync.Mutex
	failed   bool // true if a request failed because of the way to the workspace
	about    *workspace.Description
	aboutFor int64         // number of connections that were made before about was asked for
	silent   time.Time     // time of the last sign of life that did not come
	usual    time.Duration // time that the last description took; zero if none has come
}

// The longest time that the sign of life of a workspace may take, how long one that gave none
// counts as silent, and the least time that a description is taken to need.
const (
	signTime   = time.Second
	silentTime = time.Second
	minUsual   = 12 * time.Millisecond
)

// Answers returns nil if the workspace gives a sign of life now. Somebody who must not wait
// asks before each request: a connection to a machine that has vanished looks like one to a
// workspace that works, until nothing was heard for long.
func (c *Connection) Answers(ctx context.Context) error { return c.answersWithin(ctx, signTime) }

// AnswersSoon is Answers for somebody who can do without the workspace: it waits four times as
// long as the workspace took before.
func (c *Connection) AnswersSoon(ctx context.Context) error {
	c.mu.Lock()
	usual := c.usual
	c.mu.Unlock()
	if usual == 0 {
		return c.Answers(ctx)
	}
	return c.answersWithin(ctx, min(4*usual, signTime))
}

func (c *Connection) answersWithin(ctx context.Context, most time.Duration) error {
	away := explain(c.workspace, c.place, fmt.Errorf("%w (it does not answer)", workspace.ErrAway))
	c.mu.Lock()
	silent := !c.silent.IsZero() && time.Since(c.silent) < silentTime
	c.mu.Unlock()
	if silent {
		return away
	}
	ctx, cancel := context.WithTimeoutCause(bridge.WithoutPatience(ctx), most, away)
	defer cancel()
	_, err := c.describe(ctx)
	if errors.Is(context.Cause(ctx), workspace.ErrAway) {
		c.mu.Lock()
		c.silent = time.Now()
		c.mu.Unlock()
	}
	return err
}

// describe asks for the description, and notes how long it took.
func (c *Connection) describe(ctx context.Context) (workspace.Description, error) {
	began := time.Now()
	about, err := c.client.Describe(ctx)
	if err == nil {
		c.mu.Lock()
		c.usual = max(time.Since(began), minUsual)
		c.mu.Unlock()
	}
	return about, err
}

// Workspace returns the workspace.
func (c *Connection) Workspace() workspace.Workspace { return c.client.Workspace() }

// For returns the workspace for a session, whose changes carry the fence that a function returns.
func (c *Connection) For(fence func(context.Context) (workspace.Fence, error)) workspace.Workspace {
	return c.client.For(fence)
}

// doubt notes that the way to the workspace may have changed.
func (c *Connection) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
}

func (c *Connection) believe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = false
}

func (c *Connection) doubted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Env returns the environment that commands have there. It is asked for again after the
// connection was made anew, because the workspace may have been started anew.
func (c *Connection) Env(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	about, made := c.about, c.client.Made()
	known := about != nil && c.aboutFor == made
	c.mu.Unlock()
	if known {
		return slices.Clone(about.Env), nil
	}
	fresh, err := c.describe(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.about, c.aboutFor = &fresh, c.client.Made()
	return slices.Clone(fresh.Env), nil
}
