package remote

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// A Kind is a row of the table of wires: how a provider selects the wire, and what is
// known of the vendors that use it. The package of each wire exports its row.
type Kind struct {
	Types   []string // types of the providers that use the wire
	API     string   // wireApi that selects it among the wires of a type; a type with one wire ignores it
	New     func(Config) *Client
	Streams bool // true if replies are always streamed from the provider
	Vendors []Vendor
}

// A Vendor is a type of providers that the configuration names by its scheme, with
// defaults.
type Vendor struct {
	Scheme   string // name in the configuration
	Type     string // type of the provider
	API      string // wireApi of the provider
	KeyEnv   string // environment variable of the API key
	TokenEnv string // environment variable of a bearer token
	BaseEnv  string // environment variable of the base URL
	URL      string // default base URL; empty if there is none
	Models   string // beginning of the names of models that only this vendor has; empty if there are none
	Usual    bool   // true if its environment variables alone can select it
}

// Kinds is a table of wires. The first wire is the default, and so is the first type of
// each wire. Wires of the same type are in order of preference.
type Kinds []Kind

// Find returns the wire of a provider of a type. The wireApi may be empty.
func (t Kinds) Find(typ, api string) (Kind, error) {
	if typ == "" {
		typ = t[0].Types[0]
	}
	fit := slices.DeleteFunc(slices.Clone(t), func(k Kind) bool { return !slices.Contains(k.Types, typ) })
	if len(fit) == 0 {
		types := t.types()
		return Kind{}, notFound("The provider type %q is unknown; use %s, which also fits every compatible endpoint, %s.", typ, types[0], either(types[1:]))
	}
	if len(fit) == 1 || api == "" {
		return fit[0], nil
	}
	i := slices.IndexFunc(fit, func(k Kind) bool { return k.API == api })
	if i < 0 {
		var names []string
		for _, k := range fit {
			names = append(names, k.API)
		}
		return Kind{}, notFound("The wire %q is unknown; use %s.", api, either(names))
	}
	return fit[i], nil
}

// types returns all types of providers.
func (t Kinds) types() (list []string) {
	for _, k := range t {
		for _, typ := range k.Types {
			if !slices.Contains(list, typ) {
				list = append(list, typ)
			}
		}
	}
	return list
}

// Vendors returns the vendors of all wires, in the order of the table.
func (t Kinds) Vendors() (list []Vendor) {
	for _, k := range t {
		list = append(list, k.Vendors...)
	}
	return list
}

func notFound(format string, args ...any) error {
	return &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf(format, args...)}
}

// either lists names as alternatives.
func either(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
