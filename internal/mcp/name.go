package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxName is the maximum length of the name of a tool that all providers accept.
const maxName = 64

// maxDescription is the maximum length of what a server says of a tool, in bytes.
const maxDescription = 2000

// A toolID names a tool of a server.
type toolID struct{ server, tool string }

// names returns the names under which a model knows tools: server-tool, with a hash if a
// character had to be replaced, if it would be too long, if it stands for several tools, or if it
// could be a name with a long hash. The function reserved reports whether a name is that of another
// tool. No two names are the same, whatever servers call their tools: providers refuse all tools
// then.
func names(list []toolID, reserved func(string) bool) []string {
	plain := make([]string, len(list))
	times := make(map[string]int)
	for i, id := range list {
		plain[i] = id.server + "-" + id.tool
		times[strings.ToLower(cleaned(plain[i]))]++
	}
	out := make([]string, len(list))
	for i, id := range list {
		name := cleaned(plain[i])
		if name == plain[i] && len(name) <= maxName && times[strings.ToLower(name)] == 1 && !reserved(name) && !endsWithHash(name) {
			out[i] = name
			continue
		}
		out[i] = hashed(name, id, shortHash)
	}
	clear(times)
	for _, name := range out {
		times[strings.ToLower(name)]++
	}
	for i, id := range list {
		if times[strings.ToLower(out[i])] > 1 { // a server can call a tool like another one with its short hash
			out[i] = hashed(cleaned(plain[i]), id, longHash)
		}
	}
	return out
}

// The bytes of a hash in a name.
const (
	shortHash = 4
	longHash  = 16
)

// hashed returns a name with a hash of what it stands for.
func hashed(name string, id toolID, bytes int) string {
	sum := sha256.Sum256([]byte(id.server + "\x00" + id.tool))
	hash := "_" + hex.EncodeToString(sum[:bytes])
	return name[:min(len(name), maxName-len(hash))] + hash
}

// endsWithHash reports whether a name ends as if it had a long hash.
func endsWithHash(name string) bool {
	at := len(name) - 2*longHash - 1
	return at >= 0 && name[at] == '_' && strings.Trim(strings.ToLower(name[at+1:]), "0123456789abcdef") == ""
}

// cleaned returns a name with the characters that providers do not accept replaced.
func cleaned(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, name)
}

// describe returns the description of a tool for the model. The words of the server are
// quoted and cut, because they are not ours: whoever writes them may want the model to
// follow them.
func describe(id toolID, said string) string {
	intro := fmt.Sprintf("Tool %s of the MCP server %s.", quote(id.tool, maxName), quote(id.server, maxName))
	if said = strings.TrimSpace(said); said == "" {
		return intro
	}
	return intro + " The server describes it in these words: " + quote(said, maxDescription)
}

// quote returns a text in quotes, with at most so many bytes, and with nothing in it that
// would look like the end of the quote.
func quote(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case c == '"':
			return '\''
		case notPrintable(c) || c == 0x2028 || c == 0x2029:
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	return `"` + cut(text, most) + `"`
}

// maxWhy is the maximum length of what is told of an error, in bytes: a server may have written it.
const maxWhy = 4000

// cut returns a text with at most so many bytes of it.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " […]"
}

// Why returns what is told of an error, which a server may have written.
func Why(err error) string { return cut(err.Error(), maxWhy) }
