package cli

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

const workspaceHelp = `Serve the files and processes of this machine over gRPC to programs that run
elsewhere: outside of this container or virtual machine, or on another computer. See
docs/WORKSPACE.md, which shows how that is done with Docker, Podman and SSH.

It runs until it is stopped (SIGINT or SIGTERM). Commands that were started here keep
running, and the next "abide workspace" finds them again.

By default it listens on a Unix socket that only you can use. TCP clients must present
a token, which is created and kept in the data folder unless --token-file names
one. An address that other machines can reach also needs TLS.

A session works in a workspace if it begins with "abide run --workspace NAME" or with an
address instead of a name. NAME is one of [workspaces] in the configuration: "abide
workspace list" lists them, and "abide workspace check" connects to them.`

// workspaceFlags are the flags of abide workspace.
type workspaceFlags struct {
	listen, tokenFile, cert, key, dir string
	confine                           bool
}

func (a *app) workspaceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "workspace",
		Short: "Serve files and processes to programs elsewhere",
		Long:  workspaceHelp,
		Example: "  abide workspace --dir /src\n" +
			"  abide workspace --dir /src --confine\n" +
			"  abide workspace --listen tcp:127.0.0.1:7481\n" +
			"  abide workspace --listen tcp:0.0.0.0:7481 --tls-cert c.pem --tls-key k.pem",
		Args: noSuchCommand,
	}
	f := &workspaceFlags{}
	c.Flags().StringVar(&f.listen, "listen", "", "serve clients on `ADDRESS`: unix:PATH or tcp:HOST:PORT (default a socket in the data folder)")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token that clients must present")
	c.Flags().StringVar(&f.cert, "tls-cert", "", "`FILE` with the TLS certificate")
	c.Flags().StringVar(&f.key, "tls-key", "", "`FILE` with the private key of the certificate")
	c.Flags().StringVar(&f.dir, "dir", "", "directory `DIR` that paths are relative to and commands run in (default the current one)")
	c.Flags().BoolVar(&f.confine, "confine", false, "keep file calls inside the directory; commands.sandbox says what commands may do")
	c.RunE = func(cmd *cobra.Command, _ []string) error { return a.workspace(cmd.Context(), f) }
	c.AddCommand(a.workspaceList(), a.workspaceCheck())
	return c
}

// workspace runs abide workspace.
func (a *app) workspace(ctx context.Context, f *workspaceFlags) error {
	home, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil {
		return err
	}
	home, err = filepath.Abs(filepath.Join(home, "workspace"))
	if err != nil {
		return configError(err)
	}
	dir, err := folderOf(f.dir)
	if err != nil {
		return err
	}
	confined, err := a.workspaceSandbox(home, f)
	if err != nil {
		return err
	}
	defer confined.Close()
	manager, err := a.processes(home, confined)
	if err != nil {
		return err
	}
	defer func() { _ = manager.Close() }() // commands keep running
	protected := protect.ForUser(filepath.Dir(home))
	roots := &servedRoots{folder: filepath.Join(home, "roots")}
	served, err := local.NewServed(dir, manager, local.Options{Confine: f.confine, Protected: protected.Protected, List: protected, Roots: roots.of})
	if err != nil {
		return configError(err)
	}
	door, err := f.openListeners(ctx, home, confined.Confines())
	if err != nil {
		return err
	}
	defer door.close()
	settings, err := a.settings()
	if err != nil {
		return err
	}
	about := workspace.Description{Version: a.opts.Version, Dir: dir, Env: environment(settings.Config)}
	if about.Identity, err = readOrCreateToken(filepath.Join(home, identityFile), true); err != nil {
		return err
	}
	a.out.printf("abide %s serves the workspace %s\n", a.opts.Version, dir)
	door.print(a.out)
	door.server.Workspace, door.server.About, door.server.Fences = served, about, filepath.Join(home, "fences")
	var sweeper sync.WaitGroup
	sweeping, cancel := context.WithCancel(ctx)
	sweeper.Go(func() { sweep(sweeping, manager) })
	err = door.serve(ctx)
	cancel()
	sweeper.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// identityFile is the name of the file with the identity of a workspace. Sessions are
// bound to it: it is made once.
const identityFile = "identity"

// workspaceRetention is how long a workspace keeps the output and the records of commands
// whose end was seen.
var workspaceRetention = process.Retention{Output: 7 * 24 * time.Hour, Record: 30 * 24 * time.Hour}

// sweep removes old output and records, now and every hour.
func sweep(ctx context.Context, m *process.Manager) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		_ = m.Sweep(workspaceRetention) // the next sweep tries again
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// folderOf returns the absolute path of the directory that is served.
func folderOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", configError(err)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return "", usagef("--dir: %w", err)
	}
	return dir, nil
}

// workspaceSandbox opens the sandbox of the commands of a workspace. They can read neither
// the data folder nor what lets a client in.
func (a *app) workspaceSandbox(home string, f *workspaceFlags) (*sandbox.Sandbox, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	hidden := []string{filepath.Dir(home)}
	for _, path := range []string{f.tokenFile, f.key} {
		if path == "" {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, configError(err)
		}
		hidden = append(hidden, path)
	}
	warn := func(text string) { a.err.printf("abide: %s\n", plain(text)) }
	return daemon.OpenSandbox(commands(settings.Config.Commands), hidden, warn), nil
}

// servedRoots are the working directories of the sessions that work here.
type servedRoots struct {
	folder string
	mu     sync.Mutex
	known  map[process.Owner]*sandbox.Roots
}

// maxServedRoots is how many sessions are remembered: more are read again.
const maxServedRoots = 1024

func (r *servedRoots) of(session process.Owner) (*sandbox.Roots, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.known[session]; known != nil {
		return known, nil
	}
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return nil, err
	}
	if r.known == nil || len(r.known) >= maxServedRoots {
		r.known = make(map[process.Owner]*sandbox.Roots)
	}
	sum := sha256.Sum256([]byte(session)) // an owner can be any text
	roots := &sandbox.Roots{File: filepath.Join(r.folder, hex.EncodeToString(sum[:16])+".json")}
	r.known[session] = roots
	return roots, nil
}

// processes opens the process manager of the workspace.
func (a *app) processes(home string, confined *sandbox.Sandbox) (*process.Manager, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, configError(err)
	}
	limits := commands(settings.Config.Commands)
	m, err := process.Open(filepath.Join(home, "processes"), process.Options{
		Env: environment(settings.Config), Shell: process.Shell(), Sandbox: confined, MaxRunning: limits.MaxRunning, Quota: limits.Quota,
		Limits: process.Limits{Time: limits.TimeLimit, Memory: limits.MaxMemory},
	})
	if errors.Is(err, process.ErrInUse) {
		err = fmt.Errorf("%w: another abide workspace is running; stop it, or choose another data folder with --home", err)
	}
	return m, configError(err)
}

// workspaceListeners are the listeners of a workspace and the server behind them.
type workspaceListeners struct {
	listeners []net.Listener
	network   string
	server    *bridge.Server
	tokenPath string // path of the token file; empty if no token is needed
}

// openListeners opens the listeners, and refuses addresses that are not safe.
func (f *workspaceFlags) openListeners(ctx context.Context, home string, confines bool) (*workspaceListeners, error) {
	if f.listen == "" {
		f.listen = "unix:" + filepath.Join(home, "sock")
	}
	network, place, err := bridge.ParseAddress(f.listen)
	if err != nil {
		return nil, usagef("--listen: %w", err)
	}
	d := &workspaceListeners{network: network, server: &bridge.Server{}}
	if d.server.TLS, err = f.tls(); err != nil {
		return nil, err
	}
	if err := d.readToken(f, home); err != nil {
		return nil, err
	}
	if network == "unix" {
		if d.listeners, err = listenUnix(place); err == nil && confines && d.server.Token == "" {
			d.listeners[0] = outsideListener{d.listeners[0]}
		}
		return d, err
	}
	if d.server.TLS == nil && !bridge.IsLoopback(place) {
		return nil, usagef("--listen: other machines can reach %s, so it needs --tls-cert and --tls-key; for this machine only, use tcp:127.0.0.1:PORT", place)
	}
	d.listeners, err = listenOn(ctx, "--listen", place)
	return d, err
}

// readToken reads or creates the token. The private socket needs none.
func (d *workspaceListeners) readToken(f *workspaceFlags, home string) error {
	if d.network == "unix" && f.tokenFile == "" {
		return nil
	}
	var err error
	d.tokenPath = f.tokenFile
	if d.tokenPath == "" {
		d.tokenPath = filepath.Join(home, tokenFile)
	}
	d.server.Token, err = readOrCreateToken(d.tokenPath, f.tokenFile == "")
	return err
}

func (f *workspaceFlags) tls() (*tls.Config, error) {
	if f.cert == "" && f.key == "" {
		return nil, nil
	}
	if f.cert == "" || f.key == "" {
		return nil, usagef("--tls-cert and --tls-key must be used together: name both files")
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, configError(fmt.Errorf("cannot load the TLS certificate: %w", err))
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}, nil
}

// maxSocket is the maximum length of a socket path that every system accepts.
const maxSocket = 100

// listenUnix listens on a socket that only its owner can use. A socket that a dead
// process left behind is replaced.
func listenUnix(path string) ([]net.Listener, error) {
	if len(path) > maxSocket {
		return nil, usagef("--listen: the socket path %s is longer than %d bytes; name a shorter one with unix:PATH", path, maxSocket)
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isLeft(path) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, configError(err)
		}
		l, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, configError(socketError(path, err))
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, configError(err)
	}
	return []net.Listener{l}, nil
}

// An outsideListener closes the connections of confined commands. On a socket without a token
// they could start commands that are not confined, or that nobody was asked about.
type outsideListener struct{ net.Listener }

func (l outsideListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || !sandbox.ConfinedPeer(c) {
			return c, err
		}
		c.Close()
	}
}

// isLeft reports whether there is a socket on which no process listens. A file of another
// kind refuses connections as well, and is not ours to remove.
func isLeft(path string) bool {
	if !isSocket(path) {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// socketError adds the way out to the error of a socket that cannot be listened on.
func socketError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: make the folder of the socket first", err)
	case !errors.Is(err, syscall.EADDRINUSE):
		return err
	case isSocket(path):
		return fmt.Errorf("another program is listening on %s: stop it, or name another socket with unix:PATH", path)
	}
	return fmt.Errorf("cannot listen on %s: something else has that name; name another socket with unix:PATH", path)
}

func (d *workspaceListeners) close() {
	for _, l := range d.listeners {
		l.Close()
	}
}

// print prints where clients find the workspace.
func (d *workspaceListeners) print(out *printer) {
	for _, l := range d.listeners {
		out.printf("listening on %s:%s\n", d.network, l.Addr())
	}
	if d.tokenPath != "" {
		out.printf("token in %s\n", d.tokenPath)
	}
}

// serve serves on all listeners until ctx is done or one of them fails.
func (d *workspaceListeners) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(d.listeners))
	var served sync.WaitGroup
	for i, l := range d.listeners {
		served.Go(func() {
			defer cancel()
			errs[i] = d.server.Serve(ctx, l)
		})
	}
	served.Wait()
	return errors.Join(errs...)
}
