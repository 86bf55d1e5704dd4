package event_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// A source is what the files of the package declare.
type source struct {
	types  map[string]string // the constants of type Type, by name: their values
	bodies map[string]string // the types with a method Type, by name: their file
	rows   map[string]row    // the rows of the table, by the name of their constant
}

// A row is one of the table, as it stands in a file.
type row struct {
	file, body string
	decodes    bool // it has a body function
}

// readSource reads the package as it is written, not as it runs.
func readSource(t *testing.T) source {
	t.Helper()
	s := source{types: map[string]string{}, bodies: map[string]string{}, rows: map[string]row{}}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				s.readConstants(n)
			case *ast.FuncDecl:
				if n.Name.Name == "Type" && n.Recv != nil {
					s.bodies[fmt.Sprint(n.Recv.List[0].Type)] = name
				}
			case *ast.CompositeLit:
				if fmt.Sprint(n.Type) == "Kind" {
					s.readRow(t, name, n)
				}
			}
			return true
		})
	}
	return s
}

func (s *source) readConstants(n *ast.ValueSpec) {
	if fmt.Sprint(n.Type) != "Type" {
		return
	}
	for i, v := range n.Values {
		if lit, ok := v.(*ast.BasicLit); ok {
			s.types[n.Names[i].Name], _ = strconv.Unquote(lit.Value) // it has been parsed
		}
	}
}

func (s *source) readRow(t *testing.T, file string, n *ast.CompositeLit) {
	var constant string
	r := row{file: file}
	for _, e := range n.Elts {
		pair := e.(*ast.KeyValueExpr)
		switch fmt.Sprint(pair.Key) {
		case "Type":
			constant = fmt.Sprint(pair.Value)
		case "body":
			r.decodes = true
			if generic, ok := pair.Value.(*ast.IndexExpr); ok {
				r.body = fmt.Sprint(generic.Index)
			}
		}
	}
	if _, twice := s.rows[constant]; twice {
		t.Errorf("the table has %s twice", constant)
	}
	s.rows[constant] = r
}

// TestEveryKindIsInTheTable: a kind that is declared has a row, beside its body, and
// a body that is declared is that of a row.
func TestEveryKindIsInTheTable(t *testing.T) {
	s := readSource(t)
	if len(s.types) == 0 || len(s.bodies) == 0 {
		t.Fatal("nothing was found in the files of the package")
	}
	ofRows := map[string]bool{"EmptyData": true, "SubagentData": true} // the bodies of several kinds
	for constant, value := range s.types {
		r, ok := s.rows[constant]
		if _, known := event.Type(value).Kind(); !ok || !known {
			t.Errorf("%s (%s) has no row in the table of kinds: list it beside its body", constant, value)
		}
		if ok && !r.decodes {
			t.Errorf("the row of %s in %s has no body: write body: body[%sData], or body: empty if its events have no fields", constant, r.file, constant)
		}
		if r.body == "" {
			continue
		}
		ofRows[r.body] = true
		if s.bodies[r.body] != r.file {
			t.Errorf("the row of %s stands in %s, its body %s in %s", constant, r.file, r.body, s.bodies[r.body])
		}
	}
	for constant, r := range s.rows {
		if s.types[constant] == "" {
			t.Errorf("a row of the table in %s has a type that is no constant of this package: declare one above it", r.file)
		}
	}
	for body, file := range s.bodies {
		if !ofRows[body] {
			t.Errorf("%s in %s is a Payload, but no row of the table has it", body, file)
		}
	}
	if len(event.Kinds()) != len(s.types) {
		t.Errorf("the table has %d kinds, %d are declared", len(event.Kinds()), len(s.types))
	}
}

// TestRowsOfTheTableAreConsistent: properties that exclude each other, or
// that follow from each other.
func TestRowsOfTheTableAreConsistent(t *testing.T) {
	for _, k := range event.Kinds() {
		e, err := event.Parse(1, fmt.Appendf(nil, `{"type":%q,"id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{}}`, k.Type))
		if err != nil {
			t.Fatal(err)
		}
		body, err := e.Body()
		if err != nil {
			t.Errorf("%s: its body cannot be decoded: %v", k.Type, err)
			continue
		}
		if body.Type() != k.Type {
			t.Errorf("%s: the Type method of its body %T returns %s: correct it, or the body in the row", k.Type, body, body.Type())
			continue
		}
		_, keyed := body.(event.Requester)
		end, ends := k.Answer.Kind()
		for rule, holds := range map[string]bool{
			"a keyed kind that closes something is an answer":                  !k.Keyed || !k.Type.Closes() || strings.HasSuffix(string(k.Type), ".completed"),
			"a kind is keyed exactly if its body is a Requester":               keyed == k.Keyed,
			"what is only sent has no meaning for a stored log":                !k.Sent || !(k.Hidden || k.Lasting || k.Keyed || k.Shapes),
			"what is inert is stored, and not needed after an idle session":    !k.Inert || !(k.Sent || k.Lasting),
			"what is only sent is ephemeral":                                   !k.Sent || k.Ephemeral,
			"what is hidden is not marked for clients as ephemeral":            !k.Hidden || !k.Ephemeral,
			"what is hidden from clients is not marked as silent":              !k.Hidden || !k.Silent,
			"a piece of an answer is only sent":                                !k.Piece || k.Sent,
			"what is said shapes the conversation":                             !k.Said || k.Shapes,
			"a question is shown, and has an answer":                           !k.Question || (ends && !k.Hidden),
			"an answer is a kind that is stored":                               k.Answer == "" || (ends && !end.Sent),
			"what lasts while it is open is ended by something that lasts too": k.Answer == "" || !k.Lasting || end.Lasting,
		} {
			if !holds {
				t.Errorf("%s: it does not hold that %s", k.Type, rule)
			}
		}
	}
}

// TestTheKeyOfARequestIsFound: a body with the idempotency key of a request gives it away, or
// a client that repeats the request would have it carried out twice. The key is a field Key
// that may be missing, or is in a field of type *Answered.
func TestTheKeyOfARequestIsFound(t *testing.T) {
	for _, k := range event.Kinds() {
		body, has := withKey(bodyOf(t, k.Type), "k")
		r, keyed := body.(event.Requester)
		switch {
		case has && !keyed:
			t.Errorf("%s has the key of a request, and nobody finds it: give its body a method Request, and its row Keyed", k.Type)
		case keyed && !has:
			t.Errorf("%s is keyed, and its body has no key: give it a field Key with the tag key,omitempty, or one of type *Answered", k.Type)
		case keyed && r.Request().Key != "k":
			t.Errorf("%s: the method Request of its body returns the key %q, want the one that the body has", k.Type, r.Request().Key)
		}
	}
}

// withKey returns a copy of a body with an idempotency key in its field for one; false if
// it has none.
func withKey(body event.Payload, key string) (event.Payload, bool) {
	if reflect.TypeOf(body).Kind() != reflect.Struct {
		return body, false
	}
	with := reflect.New(reflect.TypeOf(body)).Elem()
	with.Set(reflect.ValueOf(body))
	for i := range with.NumField() {
		switch f := with.Type().Field(i); {
		case f.Tag.Get("json") == "key,omitempty":
			with.Field(i).SetString(key)
		case f.Type == reflect.TypeFor[*event.Answered]():
			with.Field(i).Set(reflect.ValueOf(&event.Answered{Key: key}))
		default:
			continue
		}
		return with.Interface().(event.Payload), true
	}
	return body, false
}

// TestAnUnknownKindIsStoredAndShownLikeAnyOther: a log of a newer version can be read and
// shown, and its body is refused with its name.
func TestAnUnknownKindIsStoredAndShownLikeAnyOther(t *testing.T) {
	e, err := event.Parse(7, []byte(`{"type":"future.thing","id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{"a":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, known := e.Type.Kind(); known || e.Type.Hidden() || e.Type.Ephemeral() || !e.Kind().Listed() || e.Kind().Lasting {
		t.Error("the table says something of it")
	}
	if _, err := e.Body(); err == nil || !strings.Contains(err.Error(), "future.thing") {
		t.Errorf("err = %v, want one that names the kind", err)
	}
}

// TestAnUnknownKindIsEphemeralIfItsEnvelopeSaysSo: a newer version says in the envelope
// that clients do not read an event back, and this version heeds it, whether it found the
// event in a log or made it.
func TestAnUnknownKindIsEphemeralIfItsEnvelopeSaysSo(t *testing.T) {
	for _, ephemeral := range []bool{false, true} {
		e := encode(t, event.Head{ID: "i", Time: noon, Ephemeral: ephemeral}, raw{"future.thing", []byte(`{}`)})
		stored, err := event.Parse(7, e.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range map[string]event.Event{"made": e, "stored": stored} {
			if k := e.Kind(); k.Type != "" || k.Ephemeral != ephemeral || k.Listed() == ephemeral {
				t.Errorf("%s, ephemeral = %v: the row is %+v", name, ephemeral, *k)
			}
		}
	}
}

// mark is how docs/EVENTS.md writes what becomes of events of a kind.
func mark(k event.Kind) string {
	switch {
	case k.Sent:
		return "–"
	case k.Hidden:
		return "H"
	case k.Ephemeral:
		return "E"
	}
	return "S"
}

// A documentedKind is what docs/EVENTS.md says of a kind.
type documentedKind struct{ mark, data string }

// documentedKinds reads the tables of docs/EVENTS.md.
func documentedKinds(t *testing.T) map[event.Type]documentedKind {
	t.Helper()
	text, err := os.ReadFile("../../docs/EVENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| ([SEH–]) \\|(.*)")
	names := regexp.MustCompile("`([^`]+)`")
	documented := map[event.Type]documentedKind{}
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		for _, name := range names.FindAllStringSubmatch(row[1], -1) {
			kind := event.Type(name[1])
			if _, twice := documented[kind]; twice {
				t.Errorf("docs/EVENTS.md has %s twice", kind)
			}
			documented[kind] = documentedKind{row[2], row[3]}
		}
	}
	return documented
}

// TestTheDocumentHasEveryKind holds docs/EVENTS.md against the table: one row for
// every kind, with the same mark, and none for anything else.
func TestTheDocumentHasEveryKind(t *testing.T) {
	documented := documentedKinds(t)
	for _, k := range event.Kinds() {
		switch got := documented[k.Type].mark; got {
		case mark(k):
		case "":
			t.Errorf("docs/EVENTS.md has no row for %s: add one with the mark %s", k.Type, mark(k))
		default:
			t.Errorf("docs/EVENTS.md says %s of %s, the table %s", got, k.Type, mark(k))
		}
		delete(documented, k.Type)
	}
	for _, kind := range slices.Sorted(maps.Keys(documented)) {
		t.Errorf("docs/EVENTS.md has a row for %s, which is no kind", kind)
	}
}

// TestTheDocumentHasEveryField: the row of a kind in docs/EVENTS.md names every field of
// its body in backticks, with a question mark if and only if the field may be missing.
func TestTheDocumentHasEveryField(t *testing.T) {
	documented := documentedKinds(t)
	for _, k := range event.Kinds() {
		said := documentedFields(documented[k.Type].data)
		for _, f := range fieldsOf(t, k.Type) {
			switch optional, ok := said[f.name]; {
			case !ok:
				t.Errorf("docs/EVENTS.md, %s: the field %s is missing: add `%s` to the row", k.Type, f.name, f)
			case optional != f.optional:
				t.Errorf("docs/EVENTS.md, %s: the field is `%s`, because its json tag says so: correct the question mark", k.Type, f)
			}
		}
	}
}

// TestTheDocumentHasNoOtherFields: every name in backticks in the row of a kind is a field of
// its body, a member of one (in the braces behind it), or a kind.
func TestTheDocumentHasNoOtherFields(t *testing.T) {
	name := regexp.MustCompile("`(\\w+)((?:\\[\\])?\\??(?:\\[\\])?(?:\\{[^`]*)?)`")
	members := regexp.MustCompile("`[^`]*\\{[^`]*`")
	documented := documentedKinds(t)
	rows := map[string]map[string]bool{} // the fields of all kinds of a row
	for kind, d := range documented {
		if rows[d.data] == nil {
			rows[d.data] = map[string]bool{}
		}
		for _, f := range fieldsOf(t, kind) {
			rows[d.data][f.name] = true
		}
	}
	for kind, d := range documented {
		known := rows[d.data]
		for _, m := range members.FindAllString(d.data, -1) {
			for _, member := range regexp.MustCompile(`\w+`).FindAllString(m, -1) {
				if !strings.HasPrefix(m, "`"+member) {
					known[member] = true
				}
			}
		}
		for _, m := range name.FindAllStringSubmatch(d.data, -1) {
			if _, is := event.Type(m[1]).Kind(); !is && !known[m[1]] && !slices.Contains(explained[kind], m[1]) {
				t.Errorf("docs/EVENTS.md, %s: `%s` is no field of its body: remove it; a member or a value that the row explains is in explained in kind_test.go", kind, m[1])
			}
		}
	}
}

// explained are names that a row of docs/EVENTS.md explains although they are neither fields
// nor kinds: members of what a field holds as raw JSON, and values.
var explained = map[event.Type][]string{
	event.SessionConfigured: {"target", "permission"},
	event.HookEnd:           {"preToolUse"},
	event.PermissionAsked:   {"inputTo", "none", "putBack"},
	event.ElicitationAsked:  {"sessionCostUsd", "sessionTokens", "dayCostUsd", "dayTokens", "always"},
	event.ElicitationDone:   {"writeOnly"},
	event.BudgetRaised:      {"raised"},
}

// documentedFields returns the fields that a row of docs/EVENTS.md names, and whether they
// are marked as optional. Only the first mention of a name counts: the text after the
// fields may explain one again.
func documentedFields(row string) map[string]bool {
	field := regexp.MustCompile("`(\\w+)((?:\\[\\])?\\??)[^`]*`")
	fields := map[string]bool{}
	for _, m := range field.FindAllStringSubmatch(row, -1) {
		if _, again := fields[m[1]]; !again {
			fields[m[1]] = strings.HasSuffix(m[2], "?")
		}
	}
	return fields
}

// A field is one of the body of a kind.
type field struct {
	name     string
	goName   string
	optional bool // it is left out of an event if it is empty
}

func (f field) String() string {
	if f.optional {
		return f.name + "?"
	}
	return f.name
}

// bodyOf returns an empty body of a kind.
func bodyOf(t *testing.T, kind event.Type) event.Payload {
	t.Helper()
	e, err := event.Parse(1, fmt.Appendf(nil, `{"type":%q,"id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{}}`, kind))
	if err != nil {
		t.Fatal(err)
	}
	body, err := e.Body()
	if err != nil {
		t.Fatalf("%s: its body cannot be decoded: %v", kind, err)
	}
	return body
}

// fieldsOf returns the fields of a kind's body.
func fieldsOf(t *testing.T, kind event.Type) (fields []field) {
	t.Helper()
	for _, f := range reflect.VisibleFields(reflect.TypeOf(bodyOf(t, kind))) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields = append(fields, field{name, f.Name, strings.Contains(options, "omit")})
		}
	}
	return fields
}

// TestEveryStoredFieldHasAName: the name of a field is stored and never changes, so it does
// not follow from the name in Go. That holds for the fields of a body, and of what is in it.
func TestEveryStoredFieldHasAName(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(typ.Elem())
		case reflect.Struct:
			if seen[typ] || typ.PkgPath() != reflect.TypeFor[event.Event]().PkgPath() {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				if f.IsExported() && !f.Anonymous && f.Tag.Get("json") == "" {
					t.Errorf("the field %s of event.%s has no name in JSON: give it a json tag", f.Name, typ.Name())
				}
				if f.IsExported() || f.Anonymous {
					check(f.Type)
				}
			}
		}
	}
	for _, k := range event.Kinds() {
		e, err := event.Parse(1, fmt.Appendf(nil, `{"type":%q,"id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{}}`, k.Type))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := e.Body(); err == nil {
			check(reflect.TypeOf(body))
		}
	}
	if len(seen) < len(event.Kinds())/2 {
		t.Errorf("only %d types were found in %d kinds", len(seen), len(event.Kinds()))
	}
}
