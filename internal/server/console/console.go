// Package console serves the page with which people look at sessions and answer questions.
//
// The page is a client of the HTTP API like any other: this package only holds its files,
// which are built from the sources in web and committed, so that a program that is built by
// "go install" has them. The files are the same for everybody and hold no secret, so they
// need no sign-in.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// policy is the content security policy of the page: scripts, styles and connections only
// from its own origin, nothing inline, nothing that makes elements out of text, and no page
// that frames it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are the media types of the files. The table of the system is not asked, because it
// may say something else.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// A file is a file of the page, as it is sent.
type file struct {
	kind   string // media type
	etag   string
	plain  []byte
	zipped []byte
}

// files reads the embedded files once, when the first of them is asked for.
var files = sync.OnceValues(func() (map[string]file, error) {
	all := map[string]file{}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		var zipped bytes.Buffer
		w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		all["/"+strings.TrimPrefix(name, "dist/")] = file{kind: types[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: b, zipped: zipped.Bytes()}
		return nil
	})
	return all, err
})

// Handler serves the page and its files. Other paths are not found.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	header(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	all, err := files()
	if err != nil {
		http.Error(w, "the files of the console cannot be read", http.StatusInternalServerError)
		return
	}
	name := r.URL.Path
	if name == "/" {
		name = "/index.html"
	}
	f, ok := all[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	send(w, r, f)
}

// header sets what every answer says to the browser.
func header(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// send sends a file, compressed if the browser takes that. Browsers keep it, and ask each
// time whether it is still the same: after an upgrade they have the new page at once.
func send(w http.ResponseWriter, r *http.Request, f file) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(f.zipped) < len(f.plain) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the browser has gone, and nobody else wants to know
	}
}
