package cli

import "testing"

// What may be a secret is not shown with the configuration.
func TestSecretsOfTheConfigurationAreNotShown(t *testing.T) {
	for _, test := range []struct{ key, value, want string }{
		{"model.name", "m", "m"},
		{"model.headers.X", "secret", "(hidden)"},
		{"model.headers.X", "Bearer ${KEY}", "Bearer ${KEY}"},
		{"providers.a.headers.X", "secret", "(hidden)"},
		{"mcp.servers.a.headers.X", "secret", "(hidden)"},
		{"mcp.servers.a.headers.X", "${KEY}", "${KEY}"},
		{"mcp.servers.a.env.X", "secret", "(hidden)"},
		{"mcp.servers.a.oauth.client_secret", "secret", "(hidden)"},
		{"mcp.servers.a.oauth.client_id", "me", "me"},
		{"mcp.servers.a.command", "run?a=b", "run?a=b"},
		{"mcp.servers.a.url", "https://host/mcp?key=secret&b=secret#part", "https://host/mcp?key=(hidden)&b=(hidden)#part"},
		{"model.base_url", "http://me:secret@host/v1?secret", "http://me:(hidden)@host/v1?(hidden)"},
		{"model.base_url", "http://me:sec/ret@host/v1", "http://me:(hidden)@host/v1"},
		{"model.base_url", "http://me:sec?ret@host/v1", "http://me:(hidden)@host/v1"},
		{"model.base_url", "http://host:8080/v1/@scope", "http://host:8080/v1/@scope"},
		{"notify.webhook", "https://host/hook?token=secret", "https://host/hook?token=(hidden)"},
		{"model.base_url", "https://host/v1?key=sec=ret", "https://host/v1?key=(hidden)"},
		{"store.url", "postgres://u:secret@host/db?password=secret", "postgres://u:(hidden)@host/db?password=(hidden)"},
	} {
		if got := shownValue(test.key, test.value); got != test.want {
			t.Errorf("%s = %q is shown as %q, want %q", test.key, test.value, got, test.want)
		}
	}
}
