package approval

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// fetching are programs that take operands for addresses. They need no scheme.
var fetching = strings.Fields("aria2c axel curl ftp http httpie https lftp lynx nc ncat netcat socat telnet w3m wget xh")

// namesURL tells whether a command names an address that the rule is about.
func (d *reading) namesURL(u rule) certainty {
	best := no
	for _, text := range addressTexts(u.pattern) {
		best = max(best, d.namesAddress(parseAddress(text)))
	}
	return best
}

// addressTexts returns the patterns that a rule about addresses stands for. One that ends
// with a host is about everything there.
func addressTexts(pattern string) []string {
	_, host, found := strings.Cut(pattern, "://")
	if !found || strings.ContainsAny(host, "/*") {
		return []string{pattern}
	}
	return []string{pattern, pattern + "/*"}
}

// addressSchemes are the schemes that a pattern for addresses can have been meant to have.
var addressSchemes = []string{"http", "https", "ftp", "ftps", "ws", "wss", "file", "ssh", "sftp", "git"}

// checkAddress returns an error if the pattern matches no address as they are written.
func (u rule) checkAddress() error {
	start, _, hasStar := strings.Cut(u.pattern, "*")
	scheme, rest, found := strings.Cut(start, "://")
	host, path, _ := strings.Cut(rest, "/")
	isCut := func(scheme string) bool { return hasStar && strings.HasPrefix(scheme+"://", start) }
	near := nearest(scheme, addressSchemes)
	switch {
	case !found && slices.ContainsFunc(addressSchemes, isCut):
		return nil
	case !found:
		whole := "https://" + strings.TrimLeft(u.pattern, ":/")
		if !hasStar {
			whole = strings.TrimSuffix(whole, "/") + "/*"
		}
		return fmt.Errorf("it can never match, because addresses begin with their scheme; write %s(%s)", u.tool, whole)
	case scheme+host != strings.ToLower(scheme+host):
		fixed := strings.ToLower(scheme+"://"+host) + strings.TrimPrefix(u.pattern, scheme+"://"+host)
		return fmt.Errorf("it can never match, because schemes and hosts are compared in small letters; write %s(%s)", u.tool, fixed)
	case !slices.Contains(addressSchemes, scheme) && near != "":
		return fmt.Errorf("there is no scheme %s; did you mean %s(%s%s)?", scheme, u.tool, near, strings.TrimPrefix(u.pattern, scheme))
	case host == "" && path == "" && !hasStar:
		return fmt.Errorf("it can never match, because it names no host; write %s(%s://example.org/*)", u.tool, scheme)
	}
	return nil
}

// namesAddress tells whether a command names an address that the pattern is about.
func (d *reading) namesAddress(p addressPattern) certainty {
	best := no
	for _, words := range append(slices.Clip(d.calls.Words), slices.Concat([]string{""}, d.calls.Files)) {
		fetches := slices.Contains(fetching, programOf(words))
		for _, w := range words[1:] {
			best = max(best, p.isAbout(w, fetches))
		}
	}
	start := strings.TrimSuffix(p.parts[0], "/")
	if best == no && (d.calls.Hidden != "" || d.speaksOf(start) || slices.ContainsFunc(d.unknownWords(), func(w string) bool {
		before, _, _ := strings.Cut(w, shell.Unknown)
		return strings.HasPrefix(before, start) || strings.HasPrefix(start, before)
	})) {
		return maybe
	}
	return best
}

// An addressPattern is the pattern of a rule about addresses.
type addressPattern struct {
	parts   []string // texts between its stars
	anyHost bool     // true if it is about all hosts
}

func parseAddress(pattern string) addressPattern {
	_, host, found := strings.Cut(pattern, "://")
	if !found {
		host = strings.TrimPrefix(strings.TrimPrefix(pattern, "http"), "s")
	}
	host, _, _ = strings.Cut(host, "/")
	return addressPattern{parts: strings.Split(pattern, "*"), anyHost: strings.Trim(host, "*:.") == ""}
}

// isAbout tells whether a word has an address that the pattern is about. It is certain for
// a word that is an address as the pattern writes it; an address that is written in another
// way, or is a part of a word, may be one. If the pattern is about all hosts, a word without
// a scheme is an address only where the program takes it for one.
func (p addressPattern) isAbout(w string, fetches bool) certainty {
	hasScheme := anAddress.MatchString(w)
	if p.anyHost && !hasScheme && (!fetches || strings.HasPrefix(w, "-")) {
		return no
	}
	for _, scheme := range []string{"", "https://", "http://"} {
		if matchStars(p.parts, scheme+w) {
			return yes
		}
	}
	for _, address := range addressesIn(w, fetches) {
		for _, scheme := range []string{"https", "http"} {
			if matchStars(p.parts, scheme+address) {
				return maybe
			}
		}
		if hasScheme && isObscure(address) {
			return maybe
		}
	}
	return no
}

// anAddress matches what programs take for an address, from its scheme on: some of them
// take one without slashes, too.
var anAddress = lazyregexp.New(`(?i)(https?|wss?|ftps?):[/\\]{0,3}[^/\\\s].*`)

// addressesIn returns the addresses that a word may have, from their "://" on, in the forms
// in which people write them: small letters in the host, no user, with and without a port,
// a path without dots. An address needs no scheme; it can be the whole word, or what follows
// a sign. The shell's own files for connections have one, too. A program that fetches may
// have one in the word of a short option.
func addressesIn(w string, fetches bool) (list []string) {
	const most = 10
	for rest := w; len(list) < 4*most; {
		at := anAddress.FindStringIndex(rest)
		if at == nil {
			break
		}
		_, after, _ := strings.Cut(rest[at[0]:], ":")
		list = append(list, plainAddresses(strings.TrimLeft(after, "/\\"))...)
		rest = after
	}
	for _, dir := range []string{"/dev/tcp/", "/dev/udp/", "//"} {
		w = strings.TrimPrefix(w, dir)
	}
	for i := 0; i < len(w) && len(list) < 8*most; i++ {
		inOption := fetches && w[0] == '-' && i >= 2 && i < most
		if i == 0 || inOption || strings.IndexByte("=:@", w[i-1]) >= 0 {
			list = append(list, plainAddresses(w[i:])...)
		}
	}
	return list
}

// plainAddresses returns the usual forms of an address that is given without its scheme.
func plainAddresses(text string) (list []string) {
	end := strings.IndexAny(text, "/?#\\")
	if end < 0 {
		end = len(text)
	}
	host, rest := text[:end], text[end:]
	host = strings.ToLower(host[strings.LastIndexByte(host, '@')+1:])
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	if unescaped, err := url.PathUnescape(rest); err == nil {
		rest = unescaped
	}
	name, _, _ := strings.Cut(host, ":")
	name = strings.TrimSuffix(name, ".")
	for _, h := range slices.Compact([]string{host, name, dotted(name)}) {
		for _, path := range slices.Compact([]string{rest, withoutDots(rest)}) {
			list = append(list, "://"+h+path)
		}
	}
	return list
}

// withoutDots returns the path of an address as programs send it: without dots and slashes
// that have no effect.
func withoutDots(rest string) string {
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		end = len(rest)
	}
	cleaned := path.Clean(rest[:end])
	if strings.HasSuffix(rest[:end], "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned + rest[end:]
}

// dotted returns a host that is a number in any of the forms that programs understand, such
// as 0x7f000001 and 127.1, as four numbers with dots. Other hosts are returned as they are.
func dotted(host string) string {
	parts := strings.Split(host, ".")
	var all uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		isLast := i == len(parts)-1
		if err != nil || len(parts) > 4 || !isLast && n > 255 {
			return host
		}
		if isLast {
			all |= n
		} else {
			all |= n << (24 - 8*i)
		}
	}
	return fmt.Sprintf("%d.%d.%d.%d", all>>24&255, all>>16&255, all>>8&255, all&255)
}

// isObscure reports whether the host of an address is written in a way that may stand for
// another one: with percent signs, or with letters that are no ASCII.
func isObscure(address string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "://"), "/")
	return strings.ContainsFunc(host, func(c rune) bool { return c == '%' || c > 0x7f })
}
