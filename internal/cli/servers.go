package cli

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/daemon"
)

func (a *app) serversCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "servers",
		Short: "List the servers that share a log",
		Long: `List the servers that share the log of this data folder in a database: those that were
started with abide serve --advertise. SESSIONS are those that a server works on or has
worked on last, and BUSY those in which something is under way. A server whose BEAT
does not count up for eight seconds is marked as dead, and the others go on with its
sessions. See docs/DEPLOY.md.`,
		Example: "  abide servers\n  abide servers drain 10.0.0.7:7490",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			list, err := c.Servers(cmd.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(list)
			}
			t := &table{head: []string{"SERVER", "ADDRESS", "STATUS", "SESSIONS", "BUSY", "BEAT", "VERSION"}}
			for _, s := range list {
				status := s.Status
				if s.Self {
					status += ", this one"
				}
				t.add(plain(s.ID), plain(s.Address), status, strconv.Itoa(s.Sessions), strconv.Itoa(s.Busy), strconv.FormatInt(s.Beat, 10), plain(s.Version))
			}
			return a.print(t)
		})
	}
	c.AddCommand(a.drainCommand())
	return c
}

func (a *app) drainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "drain SERVER",
		Short: "Let the other servers go on with the sessions of one",
		Long: `Let the other servers go on with the sessions of SERVER, so that it can be stopped: an
address, or the start of an id. Each session is handed over when no model request and no
call that runs in the server is under way in it; after 5 minutes also the others are, as
after a crash. The server claims no session any more. Sessions whose files are on its
machine wait until a server is started there again.`,
		Example: "  abide servers drain 10.0.0.7:7490",
		Args:    arguments(1, 1, "one SERVER"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			list, err := c.Servers(cmd.Context())
			if err != nil {
				return err
			}
			s, err := findServer(list, args[0])
			if err != nil {
				return err
			}
			if err := c.Drain(cmd.Context(), s.ID); err != nil {
				return err
			}
			a.err.printf("%s hands over %s; stop it when abide servers shows none\n", s.Address, count(s.Sessions, "session"))
			return nil
		})
	}
	return c
}

// findServer finds a live server by its address, or by the start of its id.
func findServer(list []api.Server, name string) (api.Server, error) {
	var found []api.Server
	for _, s := range list {
		if s.Status != api.ServerDead && (s.Address == name || strings.HasPrefix(s.ID, name)) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return api.Server{}, usagef("there is no live server %q: see abide servers", name)
	case 1:
		return found[0], nil
	}
	return api.Server{}, usagef("%q is ambiguous: give the id that abide servers shows", name)
}

// openRemote connects to servers on other machines, with the token of their clients.
func (a *app) openRemote(ctx context.Context) (*daemon.Node, error) {
	level, err := logLevel(a.logLevel)
	if err != nil {
		return nil, err
	}
	for _, address := range a.servers {
		if _, _, err := splitAddress("--server", address); err != nil {
			return nil, err
		}
	}
	token := os.Getenv("ABIDE_TOKEN")
	if token == "" {
		return nil, usagef("--server: set ABIDE_TOKEN to the token of the servers (the file token in the data folder of each, or its --token-file)")
	}
	node, err := daemon.OpenRemote(ctx, daemon.Remote{Servers: a.servers, Token: token, Log: slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))})
	if err != nil {
		return nil, configError(err)
	}
	return node, nil
}

// minToken is the length of a token that is too long to be guessed.
const minToken = 20

// listenCluster listens for the other servers of the log, and for the relays of clients.
func (a *app) listenCluster(ctx context.Context, dir, file string) error {
	token, kept, err := serveToken(dir, file)
	if err != nil {
		return err
	}
	list, err := listenOn(ctx, "--advertise", a.cluster.Advertise)
	if err != nil {
		return err
	}
	for _, l := range list[1:] {
		l.Close()
	}
	a.cluster.Listener = list[0]
	if len(token) < minToken {
		a.err.printf("abide: the token in %s is too short for clients on other machines (--server): they are not let in; use %d characters or more\n", kept, minToken)
		return nil
	}
	a.cluster.Token = token
	return nil
}
