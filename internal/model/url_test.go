package model

import "testing"

func TestOpenURL(t *testing.T) {
	for _, test := range []struct{ base, want string }{
		{"", ""},
		{"https://host/v1", "https://host/v1"},
		{"https://host:8080/v1/", "https://host:8080/v1/"},
		{"openai https://me:secret@host/v1", "openai https://host/v1"},
		{"https://secret@host", "https://host"},
		{"https://me:sec@ret@host:80/v1", "https://host:80/v1"},
		{"me:secret@host/v1", "host/v1"},
		{"https://host/v1?api_key=secret", "https://host/v1"},
		{"https://host?api_key=secret@x", "https://host"},
		{"https://host/v1#secret", "https://host/v1"},
		{"https://host:8080/v1/@scope", "https://host:8080/v1/@scope"},
		{"https://[::1]/v1/@scope", "https://[::1]/v1/@scope"},
		{"https://[::1]:80/v1/@scope", "https://[::1]:80/v1/@scope"},
		// Passwords that are not escaped.
		{"https://me:sec/ret@host/v1", "https://host/v1"},
		{"https://me:sec?ret@host/v1", "https://host/v1"},
		{"https://me:sec#ret@host/v1?key=secret", "https://host/v1"},
		{"https://me@mine:sec/r@et@host/v1", "https://host/v1"},
	} {
		if got := OpenURL(test.base); got != test.want {
			t.Errorf("OpenURL(%q) = %q, want %q", test.base, got, test.want)
		}
	}
}
