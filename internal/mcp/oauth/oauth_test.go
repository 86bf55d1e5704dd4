package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestAServerNamesOnlyPlacesThatItMay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, place string
		want          bool
	}{
		{"https://mcp.example/mcp", "https://login.example", true},
		{"https://mcp.example/mcp", "http://login.example", false},
		{"https://mcp.example/mcp", "https://127.0.0.1:8443", false},
		{"https://mcp.example/mcp", "http://localhost:9000", false},
		{"https://mcp.example/mcp", "https://[::1]/x", false},
		{"https://mcp.example/mcp", "https://a.localhost/x", false},
		{"https://mcp.example/mcp", "https://me@login.example", false},
		{"https://mcp.example/mcp", "javascript:alert(1)", false},
		{"https://mcp.example/mcp", "file:///etc/passwd", false},
		{"http://127.0.0.1:3000/mcp", "http://localhost:9000", true},
		{"http://127.0.0.1:3000/mcp", "https://login.example", true},
	} {
		server, err := url.Parse(c.server)
		if err != nil {
			t.Fatal(err)
		}
		if err := allowed(c.place, server); (err == nil) != c.want {
			t.Errorf("%s names %s: %v, want that it may: %v", c.server, c.place, err, c.want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	server, err := url.Parse("https://mcp.example/a/mcp")
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]bool{
		"https://mcp.example/a/mcp": true, "https://mcp.example/a/mcp/": true, "https://MCP.example/a": true, "https://mcp.example": true, "https://mcp.example/": true,
		"https://mcp.example/a/m": false, "https://mcp.example/b": false, "http://mcp.example/a/mcp": false, "https://other.example/a/mcp": false,
		"https://mcp.example:8443/a/mcp": false, "": false, "https://mcp.example/a/mcp#x": false,
	} {
		if got := covers(resource, server); got != want {
			t.Errorf("covers(%q) = %v, want %v", resource, got, want)
		}
	}
}

func FuzzReadChallenge(f *testing.F) {
	f.Add(`Bearer error="invalid_token", scope="a b", resource_metadata="https://x/y"`)
	f.Add(`Basic realm="x", Bearer scope=a`)
	f.Add(`Bearer "`)
	f.Fuzz(func(_ *testing.T, header string) { ReadChallenge(401, http.Header{"Www-Authenticate": {header}}) })
}

func TestARegistrationThatFailsShowsNoSecret(t *testing.T) {
	t.Parallel()
	const body = `"client_secret": "hidden-1", "registration_access_token": "hidden-2"`
	for name, c := range map[string]struct {
		status       int
		answer, want string
	}{
		"forbidden":       {http.StatusForbidden, `{` + body + `}`, "status 403"},
		"down":            {http.StatusBadGateway, `<p>hidden</p>`, "status 502"},
		"not JSON":        {http.StatusCreated, `{` + body, "no client id"},
		"wrong types":     {http.StatusCreated, `{"client_id": "x", "client_secret_expires_at": "hidden", ` + body + `}`, "no client id"},
		"no client":       {http.StatusCreated, `{` + body + `}`, "no client id"},
		"bad and no JSON": {http.StatusBadRequest, `hidden`, "status 400"},
		"refused":         {http.StatusBadRequest, `{"error": "invalid_redirect_uri", "error_description": "` + strings.Repeat("long ", 1000) + `", ` + body + `}`, "invalid_redirect_uri (long "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.answer)
			}))
			t.Cleanup(server.Close)
			_, err := Place{Issuer: server.URL, Register: server.URL}.RegisterClient(t.Context(), NewHTTP(nil), Setup{}, "http://127.0.0.1/callback")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") || len(err.Error()) > 600 {
				t.Errorf("the error is %v, want a short one with %q and nothing hidden", err, c.want)
			}
		})
	}
}
