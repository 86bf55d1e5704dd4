package cli

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/client"
)

func (a *app) mcpLoginCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to an MCP server",
		Long: `Log in to an MCP server over HTTP that asks for it. The command prints an address, which
you open in a browser. If the browser is on this machine, the rest happens by itself.
Otherwise the browser is sent to an address that it cannot open: paste that address here.

The login is kept, sealed, and renewed for as long as the server allows it. All sessions
use it.`,
		Example: "  abide mcp login docs",
		Args:    arguments(1, 1, "one NAME"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error { return a.login(cmd.Context(), c, args[0]) })
	}
	return c
}

// login begins a login, and waits until it is finished in one of the two ways.
func (a *app) login(ctx context.Context, c *client.Client, server string) error {
	begun, err := c.LoginMCP(ctx, server)
	if err != nil {
		return err
	}
	a.out.printf("%s\n", plain(begun.AuthorizationURL))
	if !a.quiet {
		a.err.printf("Open this address in a browser and log in. If the browser is on another machine, paste here the address that it is sent to then.\n")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pasted := pastedLines(ctx, interruptible(a.in))
	type outcome struct {
		in  bool
		err error
	}
	done := make(chan outcome, 1)
	go func() { // it ends with the connection
		result, err := c.AwaitMCPLogin(ctx, server)
		done <- outcome{result.LoggedIn, err}
	}()
	for {
		select {
		case line, ok := <-pasted:
			if !ok {
				pasted = nil // the answer may still come from a browser here
				continue
			}
			if err := c.FinishMCPLogin(ctx, line); err != nil {
				return err
			}
		case o := <-done:
			if o.err != nil {
				return o.err
			}
			if !o.in {
				return usagef("you are not logged in to %s: the login was refused or given up; try again", plain(server))
			}
			a.err.printf("you are logged in to %s\n", plain(server))
			return nil
		}
	}
}

// pastedLines returns the lines of a reader that are not empty. The channel is closed at the
// end.
func pastedLines(ctx context.Context, r io.Reader) <-chan string {
	lines := make(chan string)
	go func() { // it ends with the reader
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			line := strings.TrimSpace(s.Text())
			if line == "" {
				continue
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

func (a *app) mcpLogoutCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "logout NAME",
		Short:   "Forget the login to an MCP server",
		Long:    "Forget the login to an MCP server, what abide is registered as there, and which\nauthorization server it was. Servers that are connected ask for a login when they are used\nnext.",
		Example: "  abide mcp logout docs",
		Args:    arguments(1, 1, "one NAME"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			was, err := c.LogoutMCP(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !was.LoggedIn {
				a.err.printf("you were not logged in to %s\n", plain(args[0]))
				return nil
			}
			a.out.printf("you are logged out of %s\n", plain(args[0]))
			return nil
		})
	}
	return c
}
