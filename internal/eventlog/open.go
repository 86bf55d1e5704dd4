package eventlog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options are what any store can be told. The zero value is the safe choice.
type Options struct {
	Sync Sync   // what an acknowledged append survives; Full if zero
	Dir  string // the folder that a relative path in a URL is meant from
}

// Sync says what an acknowledged append survives.
type Sync int

const (
	// Full waits for the disk before an append is acknowledged. What was
	// acknowledged survives a crash of the program, of the system, and a power
	// cut.
	Full Sync = iota
	// Normal does not wait for the disk. What was acknowledged survives a crash of
	// the program, but a power cut or a crash of the system may take the last
	// appends back, as if they had never happened. The store itself stays sound.
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
	Form string // of its URLs, for people: "sqlite:PATH"
	// Open opens a store. It is given what stands after the scheme and its colon.
	Open func(ctx context.Context, rest string, opts Options) (Store, error)
	// Check says what is wrong with that part of a URL, without opening anything.
	Check func(rest string) error
	// CanPass reports whether opening failed for a reason that may end by itself.
	CanPass func(error) bool
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

// Check says what is wrong with a URL, without opening anything.
func (k Kinds) Check(url string) error {
	_, _, err := k.find(url)
	return err
}

// CanPass reports whether opening some store failed for a reason that may end by
// itself, such as a full disk.
func (k Kinds) CanPass(err error) bool {
	for _, kind := range k {
		if kind.CanPass(err) {
			return true
		}
	}
	return false
}

// find splits a URL. Errors show no more of it than the scheme: the rest may hold a
// password.
func (k Kinds) find(url string) (Kind, string, error) {
	scheme, rest, is := strings.Cut(url, ":")
	if !is {
		return Kind{}, "", fmt.Errorf("the URL of the store has no scheme: write %s", k.forms())
	}
	kind, known := k[scheme]
	if !known {
		return Kind{}, "", fmt.Errorf("the URL of the store begins with %q, which is unknown: write %s", scheme+":", k.forms())
	}
	if err := kind.Check(rest); err != nil {
		return Kind{}, "", fmt.Errorf("the URL of the store, %q: %w: write %s", scheme+":", err, kind.Form)
	}
	return kind, rest, nil
}

// forms lists what can be written.
func (k Kinds) forms() string {
	var list []string
	for _, scheme := range slices.Sorted(maps.Keys(k)) {
		list = append(list, k[scheme].Form)
	}
	return strings.Join(list, " or ")
}
