package cli

import (
	"cmp"
	"context"
	"flag"
	"io"
	"os"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/daemon"
)

// headlessFlags are the flags that an SDK passes to the runtime.
type headlessFlags struct {
	stdio    bool
	port     int
	logLevel string
	tokenEnv string // variable that holds the token of the model endpoint
	idle     int    // seconds after which idle sessions are unloaded
	yolo     bool

	// Flags of abide.
	home    string
	model   string
	servers string // servers on other machines, separated by commas
}

// parseHeadless parses the flags of the SDKs. Flags that have no meaning here are
// accepted and ignored.
func parseHeadless(args []string) (*headlessFlags, error) {
	f := &headlessFlags{}
	set := flag.NewFlagSet("abide", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, name := range []string{"headless", "no-auto-update", "no-auto-login", "remote"} {
		set.Bool(name, false, "")
	}
	set.BoolVar(&f.stdio, "stdio", false, "")
	set.IntVar(&f.port, "port", 0, "")
	set.StringVar(&f.logLevel, "log-level", "error", "")
	set.StringVar(&f.tokenEnv, "auth-token-env", "", "")
	set.IntVar(&f.idle, "session-idle-timeout", 0, "")
	set.BoolVar(&f.yolo, "yolo", false, "")
	set.StringVar(&f.home, "home", "", "")
	set.StringVar(&f.model, "model", "", "")
	set.StringVar(&f.servers, "server", "", "")
	if err := set.Parse(args); err != nil {
		return nil, usagef("%w (with --headless, only the flags that SDKs pass are accepted)", err)
	}
	switch {
	case set.NArg() > 0:
		return nil, usagef("%q is not a flag (with --headless, only the flags that SDKs pass are accepted)", set.Arg(0))
	case f.port < 0 || f.port > 65535:
		return nil, usagef("--port: %d is not a port; use 0 to 65535", f.port)
	case f.servers != "" && (!f.stdio || f.yolo || f.model != "" || f.home != ""):
		return nil, usagef("--server goes with --stdio alone: the server decides the rest")
	case f.idle < 0:
		return nil, usagef("--session-idle-timeout: %d is negative; give a number of seconds", f.idle)
	}
	return f, nil
}

// headless runs the program as SDKs start it: as a server for the client at the other
// end of stdin and stdout, or for TCP clients.
func (a *app) headless(ctx context.Context, args []string) error {
	f, err := parseHeadless(args)
	if err != nil {
		return err
	}
	if f.servers != "" {
		a.servers, a.logLevel = strings.Split(f.servers, ","), f.logLevel
		node, err := a.openRemote(ctx)
		if err != nil {
			return err
		}
		return a.serveStdio(ctx, node)
	}
	c, err := a.headlessConfig(f)
	if err != nil {
		return err
	}
	if f.stdio {
		return a.headlessStdio(ctx, c)
	}
	return a.headlessTCP(ctx, c, f.port)
}

// headlessConfig returns the configuration with the overrides of the SDK.
func (a *app) headlessConfig(f *headlessFlags) (daemon.Config, error) {
	dir, err := dataFolder(f.home, "COPILOT_HOME", "ABIDE_HOME")
	if err != nil {
		return daemon.Config{}, err
	}
	a.home, a.logLevel = f.home, f.logLevel
	c, err := a.config(dir)
	if err != nil {
		return daemon.Config{}, err
	}
	c.OneCommand, c.Defaults.Programmed = true, true
	if f.idle > 0 {
		c.Rest = time.Duration(f.idle) * time.Second
	}
	c.Defaults.Env = withoutVariables(c.Defaults.Env, a.loaded.Config, func(name string) bool { return name == f.tokenEnv })
	if p := copilotProvider(f.tokenEnv); p != nil {
		c.Defaults.Provider, c.Defaults.Model = withModelSettings(p, a.loaded.Config, ""), ""
	}
	c.Defaults.Model = cmp.Or(f.model, c.Defaults.Model)
	if f.yolo {
		c.Defaults.Approve = approval.All
	}
	return c, nil
}

// headlessStdio serves the client that started the program, until it closes stdin.
func (a *app) headlessStdio(ctx context.Context, c daemon.Config) error {
	node, err := daemon.Open(ctx, c)
	if err != nil {
		return configError(err)
	}
	return a.serveStdio(ctx, node)
}

func (a *app) serveStdio(ctx context.Context, node *daemon.Node) error {
	err := node.ServeStdio(ctx, interruptible(a.in), a.out)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a.leaveNode(node, false, err)
}

// interruptible returns a reader whose pending reads end when it is closed; those of
// standard input do not. The goroutine that copies the input ends with the process.
func interruptible(r io.Reader) io.ReadCloser {
	in, out := io.Pipe()
	go func() {
		_, err := io.Copy(out, r)
		out.CloseWithError(err) // nil is the end of input
	}()
	return in
}

// headlessTCP serves TCP clients that present the token. SDKs read the port from the
// line on stdout.
func (a *app) headlessTCP(ctx context.Context, c daemon.Config, port int) error {
	token, err := a.headlessToken(c.Dir)
	if err != nil {
		return err
	}
	listeners, err := loopback(ctx, port, four)
	if err != nil {
		return listenError(err)
	}
	node, err := daemon.Open(ctx, c)
	if err != nil {
		return configError(err)
	}
	a.out.printf("CLI server listening on port %d\n", portOf(listeners[0]))
	err = serveTCP(ctx, node, listeners, token)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a.leaveNode(node, false, err)
}

// headlessToken returns the token that TCP clients must present. If the SDK gave none,
// it is the token in the data folder: a server is never open without a token.
func (a *app) headlessToken(dir string) (string, error) {
	if token := os.Getenv("COPILOT_CONNECTION_TOKEN"); token != "" {
		return token, nil
	}
	token, kept, err := serveToken(dir, "")
	if err == nil {
		a.err.printf("abide: COPILOT_CONNECTION_TOKEN is not set; clients need the token in %s\n", kept)
	}
	return token, err
}
