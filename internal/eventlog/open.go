package eventlog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options configure a store of any kind. The zero value is the safe choice.
type Options struct {
	Sync Sync   // guarantee of an acknowledged append; Full if zero
	Dir  string // folder that a relative path in a URL starts from
	// Used is true if there is something of sessions beside the store: a store that is there
	// and empty has lost them, and is refused. One that is not there is made.
	Used bool

	// KeyFile is the path of the file with the key of the secrets. If it is empty, the
	// file is seal.FileName in Dir.
	KeyFile string
	// Warn is called with a line for a person while the store is opened: the secrets of
	// some sessions cannot be read, for example. It may be nil.
	Warn func(line string)
}

// Sync says what an acknowledged append survives.
type Sync int

const (
	// Full waits for the disk before an append returns. An append that returned
	// survives a crash of the program, a crash of the system, and a power cut.
	Full Sync = iota
	// Normal does not wait for the disk. An append that returned survives a crash of
	// the program, but a crash of the system or a power cut may lose the last
	// appends. The store itself is not damaged by that.
	Normal
)

func (s Sync) String() string {
	if s == Normal {
		return "normal"
	}
	return "full"
}

// A Kind is a kind of store that a URL can name.
type Kind struct {
	Form string // form of its URLs, for error messages: "sqlite:PATH"
	// Open opens a store. rest is the part of the URL after the scheme and its colon.
	Open func(ctx context.Context, rest string, opts Options) (Store, error)
	// Check returns an error if that part of the URL is wrong. It opens nothing. If it is
	// nil, every URL is right.
	Check func(rest string) error
	// Plain is true if its URLs contain no passwords, so that error messages may show them.
	Plain bool
	// IsTemporary reports whether an error of Open may go away by itself. If it is nil, no
	// error does.
	IsTemporary func(error) bool
}

// Kinds are the stores that a program knows, by the scheme of their URLs.
type Kinds map[string]Kind

// Open opens the store that a URL names.
func (k Kinds) Open(ctx context.Context, url string, opts Options) (Store, error) {
	kind, rest, err := k.find(url)
	if err != nil {
		return nil, err
	}
	return kind.Open(ctx, rest, opts)
}

// Check returns an error if a URL is wrong. It opens nothing.
func (k Kinds) Check(url string) error {
	_, _, err := k.find(url)
	return err
}

// IsTemporary reports whether an error of Open may go away by itself, such as a full disk.
func (k Kinds) IsTemporary(err error) bool {
	for _, kind := range k {
		if kind.IsTemporary != nil && kind.IsTemporary(err) {
			return true
		}
	}
	return false
}

// find returns the kind of store that a URL names, and the part after the scheme. Its
// errors contain only the scheme if the rest may contain a password.
func (k Kinds) find(url string) (Kind, string, error) {
	scheme, rest, is := strings.Cut(url, ":")
	if !is {
		return Kind{}, "", fmt.Errorf("the URL of the store, %q, has no scheme: write %s", url, k.forms())
	}
	kind, known := k[scheme]
	if !known {
		return Kind{}, "", fmt.Errorf("the URL of the store begins with %q, which is unknown: write %s", scheme+":", k.forms())
	}
	if kind.Check == nil {
		return kind, rest, nil
	}
	if err := kind.Check(rest); err != nil {
		shown := scheme + ":"
		if kind.Plain {
			shown = url
		}
		return Kind{}, "", fmt.Errorf("the URL of the store, %q: %w: write %s", shown, err, kind.Form)
	}
	return kind, rest, nil
}

// forms lists the forms of URLs, for error messages.
func (k Kinds) forms() string {
	var list []string
	for _, scheme := range slices.Sorted(maps.Keys(k)) {
		list = append(list, k[scheme].Form)
	}
	return strings.Join(list, " or ")
}
