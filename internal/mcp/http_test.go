package mcp

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
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

// What may be a key in the address of a server is not in the log, and is used for that address alone.
func TestTheSecretsOfAnAddressAreKeptBesideTheLog(t *testing.T) {
	const address, plain = "https://me:secret@host/mcp?key=secret", "https://host/mcp"
	given := Server{event.MCPServer{Name: "s", Type: HTTP, URL: address}, Secret{Headers: map[string]string{"X": "y"}}}
	logged, secret := given.Apart()
	if logged.URL != plain {
		t.Errorf("the log has %s", logged.URL)
	}
	if whole := Whole(logged, secret); !reflect.DeepEqual(whole, given) {
		t.Errorf("it became %+v", whole)
	}
	logged.URL = "https://evil/mcp"
	if whole := Whole(logged, secret); whole.URL != "https://evil/mcp" || whole.Address != "" {
		t.Errorf("another address got %+v", whole)
	}
	given.URL = plain
	if logged, secret := given.Apart(); logged.URL != plain || secret.Address != "" || !reflect.DeepEqual(Whole(logged, secret), given) {
		t.Errorf("a plain address became %+v and %+v", logged, secret)
	}
	if old := Whole(event.MCPServer{URL: address}, Secret{}); old.URL != address {
		t.Errorf("what an older version has stored is read as %s", old.URL)
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
