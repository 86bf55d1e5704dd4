package mcp

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server may redirect to itself, not to another place: that one would be sent what is meant
// for the server.
func TestRedirectsToOtherPlacesAreRefused(t *testing.T) {
	parse := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	r := &remote{origin: parse("https://example.org/mcp")}
	for to, refused := range map[string]bool{
		"https://example.org/other": false, "https://EXAMPLE.org/mcp": false,
		"http://example.org/mcp": true, "https://example.org:8443/mcp": true, "https://example.org.evil.test/mcp": true, "https://evil.test/mcp": true,
	} {
		if err := r.checkRedirect(&http.Request{URL: parse(to)}, nil); (err != nil) != refused {
			t.Errorf("a redirect to %s: %v", to, err)
		}
	}
	if r.checkRedirect(&http.Request{URL: r.origin}, make([]*http.Request, 5)) == nil {
		t.Error("a server that redirects to itself again and again is followed")
	}
}

// The time limits of calls stand still while a server asks a person something.
func TestAServerAsksWhileItsQuestionIsOpen(t *testing.T) {
	c := newClient(&Set{}, Server{})
	asking := false
	c.set.events.Elicit = func(context.Context, string, string, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		asking = c.isAsking()
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	if _, err := c.elicit(t.Context(), &sdk.ElicitRequest{Params: &sdk.ElicitParams{}}); err != nil || !asking || c.isAsking() {
		t.Errorf("asking: %v, and afterwards: %v; %v", asking, c.isAsking(), err)
	}
}
