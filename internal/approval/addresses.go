package approval

import (
	"net/url"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// namesURL tells whether a command names an address that the rule is about.
func (d *reading) namesURL(u rule) certainty {
	parts := strings.Split(u.pattern, "*")
	best := no
	for _, w := range slices.Concat(append(d.calls.Words, d.calls.Files)...) {
		best = max(best, aboutAddress(parts, w))
	}
	start := strings.TrimSuffix(parts[0], "/")
	if best == no && (d.calls.Hidden != "" || d.speaksOf(start) || slices.ContainsFunc(d.unknownWords(), func(w string) bool {
		before, _, _ := strings.Cut(w, shell.Unknown)
		return strings.HasPrefix(before, start) || strings.HasPrefix(start, before)
	})) {
		return maybe
	}
	return best
}

// aboutAddress tells whether a word has an address that a pattern, given in parts, is about.
// It is certain for a word that is an address as the pattern writes it; an address that is
// written in another way, or is a part of a word, may be one.
func aboutAddress(parts []string, w string) certainty {
	for _, scheme := range []string{"", "https://", "http://"} {
		if matchStars(parts, scheme+w) {
			return yes
		}
	}
	for _, address := range addressesIn(w) {
		for _, scheme := range []string{"https", "http"} {
			if matchStars(parts, scheme+address) {
				return maybe
			}
		}
		if anAddress.MatchString(w) && isObscure(address) {
			return maybe
		}
	}
	return no
}

// anAddress matches what programs take for an address, from its scheme on: some of them
// take one without slashes, too.
var anAddress = lazyregexp.New(`(?i)(https?|wss?|ftps?):/{0,3}[^/\s].*`)

// aHost matches a word, or the value of an option, that begins with the name of a host. It
// needs no scheme. The shell's own files for connections have one, too.
var aHost = lazyregexp.New(`^(?:-[^=]*=|/dev/(?:tcp|udp)/)?((?:[\pL\d_-]+\.)+[\pL\d-]+\.?(?:[:/?#].*)?)$`)

// addressesIn returns the addresses in a word, from their "://" on, in the form in which
// people write them: small letters in the host, no user, no usual port, a path.
func addressesIn(w string) (list []string) {
	for rest := w; len(list) < 10; {
		at := anAddress.FindStringIndex(rest)
		if at == nil {
			break
		}
		_, after, _ := strings.Cut(rest[at[0]:], ":")
		list = append(list, plainAddress(strings.TrimLeft(after, "/")))
		rest = after
	}
	if host := aHost.FindStringSubmatch(w); host != nil {
		list = append(list, plainAddress(host[1]))
	}
	return list
}

// plainAddress returns an address, given without its scheme, in its usual form.
func plainAddress(text string) string {
	end := strings.IndexAny(text, "/?#\\")
	if end < 0 {
		end = len(text)
	}
	host, rest := text[:end], text[end:]
	host = strings.ToLower(host[strings.LastIndexByte(host, '@')+1:])
	host = strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	if path, err := url.PathUnescape(rest); err == nil {
		rest = path
	}
	return "://" + strings.TrimSuffix(host, ".") + rest
}

// isObscure reports whether the host of an address is written in a way that may stand for
// another one: with percent signs, or with letters that are no ASCII.
func isObscure(address string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "://"), "/")
	return strings.ContainsFunc(host, func(c rune) bool { return c == '%' || c > 0x7f })
}
