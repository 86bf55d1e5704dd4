package console

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, path string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "http://abide.localhost"+path, nil)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestServe(t *testing.T) {
	for _, test := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", 200, "text/html; charset=utf-8"},
		{"GET", "/index.html", 200, "text/html; charset=utf-8"},
		{"GET", "/app.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/style.css", 200, "text/css; charset=utf-8"},
		{"GET", "/icon.svg", 200, "image/svg+xml"},
		{"GET", "/LICENSES.txt", 200, "text/plain; charset=utf-8"},
		{"POST", "/", 405, ""},
		{"GET", "/nothing", 404, ""},
		{"GET", "/dist/app.js", 404, ""},
		{"GET", "/../console.go", 404, ""},
		{"GET", "//app.js", 404, ""},
		{"GET", "/%2e%2e/console.go", 404, ""},
	} {
		r := get(t, test.method, test.path, nil)
		if r.StatusCode != test.status || (test.kind != "" && r.Header.Get("Content-Type") != test.kind) {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, r.StatusCode, r.Header.Get("Content-Type"), test.status, test.kind)
		}
		if p := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'; script-src 'self'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s %s: policy %q", test.method, test.path, p)
		}
	}
}

func TestServeAgain(t *testing.T) {
	first := get(t, "GET", "/app.js", map[string]string{"Accept-Encoding": "gzip"})
	if first.Header.Get("Content-Encoding") != "gzip" {
		t.Error("app.js is not compressed")
	}
	again := get(t, "GET", "/app.js", map[string]string{"If-None-Match": first.Header.Get("ETag")})
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("the same file again: %d, want 304", again.StatusCode)
	}
}

const largest = 150_000 // bytes of all files, compressed

// The page has to stay small enough for a phone, and alone: whatever it needs is in it.
func TestPageIsSmallAndAlone(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, f := range all {
		size += len(f.zipped)
	}
	if size > largest {
		t.Errorf("the files have %d bytes compressed, more than %d", size, largest)
	}
	page := string(all["/index.html"].plain)
	for _, pattern := range []string{`(?i)(src|href)="(https?:)?//`, `(?i)<script>`, `(?i)<style`, `(?i)\sstyle=`, `(?i)\son[a-z]+=`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("index.html has %q, which the policy forbids", found)
		}
	}
}

// Nothing in the sources makes elements out of text: what models write stays text.
func TestNoHTMLFromText(t *testing.T) {
	names, err := filepath.Glob("../../../web/src/*.ts*")
	if err != nil || len(names) == 0 {
		t.Fatalf("the sources of the page: %d files, %v", len(names), err)
	}
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function|srcdoc|DOMParser`)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := forbidden.Find(b); found != nil {
			t.Errorf("%s has %s", name, found)
		}
	}
}
