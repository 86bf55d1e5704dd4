package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/daemon"
)

const serveHelp = `Run the engine of the data folder until it is stopped (SIGINT or SIGTERM), so that
work continues when no other abide process runs. Other abide processes on the same
data folder use it through its private socket.

With --listen, clients can connect over TCP, and with --http, programs and browsers can
use sessions and durable commands over HTTP (see docs/HTTP.md). Both must present a
token. It is read from --token-file or ABIDE_TOKEN; without either, one is created and
kept in the data folder. Connections are not encrypted: to serve other machines, put a
proxy with TLS in front, and name with --http-host what HTTP clients call it.

With --store, --advertise and --cluster-key-file, several servers on several machines
share a log in PostgreSQL. Each session is worked on by one of them; if a server dies,
the others go on with its sessions. See docs/DEPLOY.md.`

// serveFlags are the flags of abide serve.
type serveFlags struct {
	listen, web string
	hosts       []string
	tokenFile   string
	store       string
	advertise   string
	clusterKey  string
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Run the engine in the foreground",
		Long:    serveHelp,
		Example: "  abide serve\n  abide serve --listen 127.0.0.1:7480\n  abide serve --store postgres://abide@db/abide --advertise 10.0.0.7:7490 --cluster-key-file /etc/abide/cluster.key",
		Args:    arguments(0, 0, "no arguments"),
	}
	c.Flags().StringVar(&f.listen, "listen", "", "serve TCP clients on `ADDRESS:PORT`; port 0 means any free port")
	c.Flags().StringVar(&f.web, "http", "", "serve the API and the console over HTTP on `ADDRESS:PORT`")
	c.Flags().StringSliceVar(&f.hosts, "http-host", nil, "`NAME` by which HTTP clients may call this server, beside its addresses and localhost")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token that TCP and HTTP clients must present")
	c.Flags().StringVar(&f.store, "store", "", "`URL` of the log, instead of store.url of the configuration")
	c.Flags().StringVar(&f.advertise, "advertise", "", "share the log with other servers, which reach this one at `HOST:PORT`")
	c.Flags().StringVar(&f.clusterKey, "cluster-key-file", "", "`FILE` with the key that all servers of the log have; the first server makes it")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.serve(cmd.Context(), f)
	}
	return c
}

// serve runs abide serve.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	if err := a.takePart(f); err != nil {
		return err
	}
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil {
		return err
	}
	door, err := openListeners(ctx, dir, f.listen, f.web, f.tokenFile)
	if err != nil {
		return err
	}
	defer door.close()
	door.hosts = f.hosts
	if a.cluster != nil {
		if err := a.listenCluster(ctx, dir, f.tokenFile); err != nil {
			return err
		}
		defer a.cluster.Listener.Close()
	}
	node, err := a.open(ctx, permanent)
	if err != nil {
		return err
	}
	a.printListeners(dir, door, node)
	err = door.serve(ctx, node)
	door.close()
	a.awaitOthers(node)
	return closeNode(node, err)
}

// takePart notes where the log is, and whether this process shares it with other servers.
func (a *app) takePart(f serveFlags) error {
	a.storeURL = f.store
	if f.advertise == "" && f.clusterKey == "" {
		return nil
	}
	if f.advertise == "" || f.clusterKey == "" {
		return usagef("--advertise and --cluster-key-file belong together: give both to each server of a log")
	}
	host, port, err := splitAddress("--advertise", f.advertise)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); port == 0 || err == nil && ip.IsUnspecified() {
		return usagef("--advertise: the other servers cannot reach %s: give the address or the name of this machine, and a port", f.advertise)
	}
	a.cluster, a.clusterKey = &daemon.Cluster{Advertise: f.advertise}, f.clusterKey
	return nil
}

// awaitOthers waits until nothing is under way for other processes whose engine this is.
// A further signal ends this process at once.
func (a *app) awaitOthers(node *daemon.Node) {
	if node.TryStop(false) {
		return
	}
	a.err.printf("abide: other processes use this engine and something is under way: waiting for its end (a further signal ends it now)\n")
	node.AwaitIdle(context.Background())
}

// serveListeners are the listeners of abide serve; none if no address was given.
type serveListeners struct {
	listeners []net.Listener
	web       []net.Listener // listeners for HTTP
	hosts     []string       // names by which HTTP clients may call the server
	token     string
	tokenPath string // path of the file with the token
}

func openListeners(ctx context.Context, dir, address, web, file string) (*serveListeners, error) {
	d := &serveListeners{}
	if address == "" && web == "" {
		return d, nil
	}
	var err error
	if d.token, d.tokenPath, err = serveToken(dir, file); err != nil {
		return nil, err
	}
	if address != "" {
		d.listeners, err = listenOn(ctx, "--listen", address)
	}
	if web != "" && err == nil {
		d.web, err = listenWeb(ctx, web)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// serveToken returns the token of TCP and HTTP clients, and where people find it.
func serveToken(dir, file string) (token, kept string, err error) {
	if file != "" {
		token, err = readOrCreateToken(file, false)
		return token, file, err
	}
	if token = os.Getenv("ABIDE_TOKEN"); token != "" {
		return token, "the variable ABIDE_TOKEN", nil
	}
	kept = filepath.Join(dir, tokenFile)
	token, err = readOrCreateToken(kept, true)
	return token, kept, err
}

// listenWeb listens for HTTP on an address. A loopback address means both: browsers choose
// one of them for the name of the console, and a program of somebody else that listens on
// the other would be its origin.
func listenWeb(ctx context.Context, address string) ([]net.Listener, error) {
	host, port, err := splitAddress("--http", address)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(host, daemon.ConsoleHost) || strings.EqualFold(host, "localhost") {
		return listenBoth(ctx, port, four)
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.Unmap() == four || ip == six) {
		return listenBoth(ctx, port, ip.Unmap())
	}
	return listenOn(ctx, "--http", address)
}

// listenOn listens on an address; "localhost" means both loopback addresses.
func listenOn(ctx context.Context, flag, address string) ([]net.Listener, error) {
	host, port, err := splitAddress(flag, address)
	if err != nil {
		return nil, err
	}
	if host == "localhost" {
		return listenBoth(ctx, port, four)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if _, unknown := errors.AsType[*net.DNSError](err); unknown || errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, configError(fmt.Errorf("%s: this machine cannot listen at %s: give an address of its own, or a name that leads to one (%w)", flag, address, err))
	}
	if err != nil {
		return nil, listenError(err)
	}
	return []net.Listener{l}, nil
}

// listenBoth listens on both loopback addresses, the first of which must be there.
func listenBoth(ctx context.Context, port int, first netip.Addr) ([]net.Listener, error) {
	list, err := loopback(ctx, port, first)
	if err != nil {
		return nil, listenError(err)
	}
	return list, nil
}

// splitAddress splits the ADDRESS:PORT of a flag.
func splitAddress(flag, address string) (host string, port int, err error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, usagef("%s: %w; give ADDRESS:PORT, such as 127.0.0.1:7480", flag, err)
	}
	port, err = strconv.Atoi(service)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, usagef("%s: %q is not a port; use 0 to 65535", flag, service)
	}
	if host == "" {
		return "", 0, usagef("%s: the address is missing: use 127.0.0.1:%s for this machine only, or 0.0.0.0:%s for all interfaces", flag, service, service)
	}
	return host, port, nil
}

func (d *serveListeners) close() {
	for _, l := range append(d.listeners, d.web...) {
		l.Close()
	}
}

// serve serves until ctx is done.
func (d *serveListeners) serve(ctx context.Context, node *daemon.Node) error {
	var err error
	var webs sync.WaitGroup
	defer webs.Wait()
	if len(d.web) > 0 {
		webs.Go(func() { _ = node.ServeHTTP(ctx, d.web, d.token, d.hosts...) }) // ends when ctx is done
	}
	if len(d.listeners) > 0 {
		err = serveTCP(ctx, node, d.listeners, d.token)
	} else {
		select {
		case <-ctx.Done():
		case <-node.Done():
			err = node.Err()
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// printListeners prints where clients find the engine.
func (a *app) printListeners(dir string, d *serveListeners, node *daemon.Node) {
	role := "engine"
	if !node.Engine() {
		role = "relay; another abide is the engine"
	}
	a.out.printf("abide %s serves %s (%s)\n", a.opts.Version, dir, role)
	if a.cluster != nil {
		a.out.printf("shares its log with other servers, which reach it at %s\n", a.cluster.Advertise)
	}
	for _, l := range d.listeners {
		a.out.printf("listening on %s\n", l.Addr())
	}
	for i, l := range d.web {
		if i == 0 {
			a.out.printf("HTTP on %s\n", l.Addr())
		} else {
			a.out.printf("also on %s\n", l.Addr())
		}
	}
	if d.tokenPath != "" {
		a.out.printf("token in %s\n", d.tokenPath)
	}
}
