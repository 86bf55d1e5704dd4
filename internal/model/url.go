package model

import "strings"

// OpenURL returns what of a base URL is no secret: the URL without its user and password, its query
// and its fragment. One without these is returned as it was written. What stands before the URL is
// kept.
//
// Passwords are often written as they are, with characters that end the host of a URL. Their URL
// cannot be used, and yet the password is removed: what stands before the last @ is no host if it
// has a port that is no number.
func OpenURL(base string) string {
	before, rest := "", base
	if i := strings.Index(base, "//"); i >= 0 {
		before, rest = base[:i+2], base[i+2:]
	}
	if at := strings.LastIndexByte(host(rest), '@'); at >= 0 {
		rest = rest[at+1:]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 && !hasNumericPort(host(rest)) {
		rest = rest[at+1:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	return before + rest
}

// host returns the beginning of a URL without its scheme, up to the path.
func host(rest string) string {
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// hasNumericPort reports whether a host has no port, or one that is a number.
func hasNumericPort(host string) bool {
	i := strings.LastIndexByte(host, ':')
	return i < 0 || strings.HasSuffix(host, "]") || strings.Trim(host[i+1:], "0123456789") == ""
}
