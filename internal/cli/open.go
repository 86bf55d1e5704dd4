package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/daemon"
)

const openHelp = `Print a link that signs a browser in to the console of "abide serve --http". The link can
be used once, within two minutes, and only while that server runs. It holds no lasting
secret: its token is spent when the page is asked to sign in.

The server is found through the data folder. Its token is read from --token-file or
ABIDE_TOKEN, or from the data folder, as "abide serve" does.`

func (a *app) openCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "open",
		Short:   "Print a link that signs a browser in",
		Long:    openHelp,
		Example: "  abide serve --http 127.0.0.1:7480 &\n  abide open",
		Args:    arguments(0, 0, "no arguments"),
	}
	file := c.Flags().String("token-file", "", "`FILE` with the token of the server")
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		link, err := a.signInLink(cmd.Context(), *file)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.out.json(link)
		}
		a.out.printf("%s\n", link.URL)
		return nil
	}
	return c
}

// A signInLink is a link that signs a browser in.
type signInLink struct {
	URL     string `json:"url"`
	Expires string `json:"expires"`
}

// signInLink asks the server of the data folder for a link.
func (a *app) signInLink(ctx context.Context, file string) (link signInLink, err error) {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil {
		return link, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, address, err := dialServer(ctx, dir)
	if errors.Is(err, daemon.ErrNotServed) {
		return link, configError(fmt.Errorf("%s: %w: start one with: abide serve --http 127.0.0.1:7480", dir, err))
	}
	if err != nil {
		return link, configError(err)
	}
	defer conn.Close()
	token, _, err := serveToken(dir, file)
	if err != nil {
		return link, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/api/v0/signin/links", bytes.NewReader(nil))
	if err != nil {
		return link, configError(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil } // a request that is tried again finds it closed
	answer, err := (&http.Transport{DisableKeepAlives: true, DialContext: dial}).RoundTrip(r)
	if err != nil {
		return link, configError(fmt.Errorf("the server of %s does not answer at %s: %w", dir, address, err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return link, err
	}
	if answer.StatusCode != http.StatusCreated {
		return link, configError(fmt.Errorf("the server at %s refused to make a link (%s): is its token that of --token-file or ABIDE_TOKEN?", address, answer.Status))
	}
	return link, json.Unmarshal(body, &link)
}

// dialServer connects to the server of a data folder. It was there before and after, so that
// the connection is to it, and not to a program that listens at its address since it has ended.
func dialServer(ctx context.Context, dir string) (conn net.Conn, address string, err error) {
	address, err = daemon.HTTPAddress(dir)
	if err != nil {
		return nil, "", err
	}
	var d net.Dialer
	conn, err = d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("the server of %s does not answer: %w", dir, err)
	}
	after, err := daemon.HTTPAddress(dir)
	if err == nil && after != address {
		err = fmt.Errorf("the server of %s was started anew at %s: try again", dir, after)
	}
	if err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, address, nil
}
