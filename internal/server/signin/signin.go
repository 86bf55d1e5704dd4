// Package signin lets browsers in.
//
//   - A link has a token that is used once, within minutes, and is only in the memory of
//     this process.
//   - Using it gives a browser two things: a cookie, and a key that the page keeps in the
//     storage of its origin. Neither is enough alone: browsers send cookies to every port
//     of a host, and a page of another port cannot read the key.
//   - Both are derived from the token of the server. They hold across restarts, until
//     they expire or the token of the server is another one.
package signin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// Cookie is the name of the cookie.
	Cookie = "abide_console"
	// KeyHeader is the header with the key.
	KeyHeader = "Abide-Key"
	// LinkTime is how long a link can be used.
	LinkTime = 2 * time.Minute
	// Lasting is how long a browser stays signed in.
	Lasting = 30 * 24 * time.Hour

	maxLinks = 64 // links that can be used at the same time
)

// A Desk makes links and signs browsers in. It is safe for concurrent use.
type Desk struct {
	secret []byte

	mu    sync.Mutex
	links map[[sha256.Size]byte]time.Time // time until which a token can be used, by its digest
}

// New returns a desk for a server with a token.
func New(token string) *Desk {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("abide: browsers"))
	return &Desk{secret: mac.Sum(nil), links: make(map[[sha256.Size]byte]time.Time)}
}

// Link returns a new token for a link, and until when it can be used.
func (d *Desk) Link() (token string, until time.Time) {
	token, until = rand.Text(), time.Now().Add(LinkTime)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropLocked()
	d.links[sha256.Sum256([]byte(token))] = until
	return token, until
}

// dropLocked forgets links that cannot be used any more, and the oldest if there are too many.
func (d *Desk) dropLocked() {
	now := time.Now()
	for len(d.links) > 0 {
		var first [sha256.Size]byte
		var oldest time.Time
		for digest, until := range d.links {
			if oldest.IsZero() || until.Before(oldest) {
				first, oldest = digest, until
			}
		}
		if len(d.links) < maxLinks && oldest.After(now) {
			return
		}
		delete(d.links, first)
	}
}

// A Browser is what a browser gets that is let in.
type Browser struct {
	Cookie, Key string
	Expires     time.Time
}

// Spend uses the token of a link. It reports false if the token is unknown, too old, or
// was used before.
func (d *Desk) Spend(token string) (Browser, bool) {
	digest := sha256.Sum256([]byte(token)) // whoever can guess digests cannot guess tokens
	d.mu.Lock()
	until, known := d.links[digest]
	delete(d.links, digest)
	d.mu.Unlock()
	if !known || time.Now().After(until) {
		return Browser{}, false
	}
	expires := time.Now().Add(Lasting).Truncate(time.Second)
	id := rand.Text() + "." + strconv.FormatInt(expires.Unix(), 10)
	return Browser{Cookie: id + "." + d.sign("cookie", id), Key: d.sign("key", id), Expires: expires}, true
}

func (d *Desk) sign(what, id string) string {
	mac := hmac.New(sha256.New, d.secret)
	mac.Write([]byte(what + "\x00" + id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Check reports whether a cookie and a key are those of one browser that was let in, and
// until when.
func (d *Desk) Check(cookie, key string) (expires time.Time, ok bool) {
	i := strings.LastIndexByte(cookie, '.')
	if i < 0 {
		return expires, false
	}
	id, signature := cookie[:i], cookie[i+1:]
	_, stamp, _ := strings.Cut(id, ".")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	signed := subtle.ConstantTimeCompare([]byte(signature), []byte(d.sign("cookie", id))) == 1
	keyed := subtle.ConstantTimeCompare([]byte(key), []byte(d.sign("key", id))) == 1
	expires = time.Unix(seconds, 0)
	return expires, signed && keyed && err == nil && time.Now().Before(expires)
}
