package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A path is the name of a key, split into parts. A part may contain any character:
// models have dots in their names.
type path []string

// String returns the path as it is written in a file.
func (p path) String() string {
	parts := make([]string, len(p))
	for i, part := range p {
		if parts[i] = part; part == "" || strings.IndexFunc(part, special) >= 0 {
			parts[i] = fmt.Sprintf("%q", part)
		}
	}
	return strings.Join(parts, ".")
}

// special reports whether a part with this character needs quotes. Brackets need none,
// because item adds them itself.
func special(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-[]*", r))
}

func (p path) with(part string) path { return append(slices.Clip(p), part) }

// item returns the path of an entry of the list that the path names.
func (p path) item(i int) path {
	last := len(p) - 1
	return p[:last].with(fmt.Sprintf("%s[%d]", p[last], i))
}

// A mistake is an invalid value.
type mistake struct {
	key path
	why string
}

func wrong(key path, format string, args ...any) mistake {
	return mistake{key, fmt.Sprintf(format, args...)}
}

// report returns an error that lists all mistakes in a file with their positions.
func (l Layer) report(list []mistake) error {
	var errs []error
	found := places(l.Data)
	for _, m := range list {
		errs = append(errs, fmt.Errorf("%s: %s: %s", l.at(nearest(found, m.key)), m.key, m.why))
	}
	return errors.Join(errs...)
}

// at returns the name of the layer and, if it is a file, a position in it.
func (l Layer) at(line, column int) string {
	switch {
	case l.Path == "":
		return l.Name
	case line == 0:
		return "configuration " + l.Name
	}
	return fmt.Sprintf("configuration %s, line %d, column %d", l.Name, line, column)
}

// nearest returns the position of a key, or of the table that it is in.
func nearest(found map[string]unstable.Position, key path) (line, column int) {
	for ; len(key) > 0; key = key[:len(key)-1] {
		if at, ok := found[key.String()]; ok {
			return at.Line, at.Column
		}
	}
	return 0, 0
}

// places returns the positions of the keys of a file. A key inside a value has the
// position of the value.
func places(data []byte) map[string]unstable.Position {
	found := make(map[string]unstable.Position)
	tables := make(map[string]int) // number of tables so far in each list of tables
	var p unstable.Parser
	var table path
	for p.Reset(data); p.NextExpression(); {
		switch e := p.Expression(); e.Kind {
		case unstable.KeyValue:
			key, at := keyOf(&p, e)
			key = append(slices.Clip(table), key...)
			found[key.String()] = at
			addItems(found, &p, key, e.Value())
		case unstable.Table, unstable.ArrayTable:
			key, at := keyOf(&p, e)
			if table = key; e.Kind == unstable.ArrayTable && len(key) > 0 {
				n := tables[key.String()]
				tables[key.String()]++
				table = key.item(n)
			}
			found[table.String()] = at
		}
	}
	return found
}

// addItems adds the positions of the entries of a list.
func addItems(found map[string]unstable.Position, p *unstable.Parser, key path, list *unstable.Node) {
	if list.Kind != unstable.Array || len(key) == 0 {
		return
	}
	i := 0
	for it := list.Children(); it.Next(); {
		if it.Node().Kind == unstable.Comment {
			continue
		}
		if it.Node().Raw.Length > 0 {
			found[key.item(i).String()] = p.Shape(it.Node().Raw).Start
		}
		i++
	}
}

func keyOf(p *unstable.Parser, e *unstable.Node) (key path, at unstable.Position) {
	for it := e.Key(); it.Next(); {
		if len(key) == 0 {
			at = p.Shape(it.Node().Raw).Start
		}
		key = append(key, string(it.Node().Data))
	}
	return key, at
}
