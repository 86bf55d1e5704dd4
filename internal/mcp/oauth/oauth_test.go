package oauth

import (
	"net/http"
	"net/url"
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
