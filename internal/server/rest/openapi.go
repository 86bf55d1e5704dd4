package rest

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// document answers with the OpenAPI document.
func (s *Server) document(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, s.Document())
}

// An object is a JSON object of the document.
type object = map[string]any

// Document returns the OpenAPI document of all routes, and of what is answered before them.
func (s *Server) Document() map[string]any {
	d := &documenter{schemas: object{}, types: make(map[string]reflect.Type)}
	paths := object{}
	for _, r := range append(doorRoutes(), s.routes...) {
		full := r.path
		if !strings.HasPrefix(full, "/healthz") && !strings.HasPrefix(full, "/readyz") {
			full = Prefix + r.path
		}
		at, _ := paths[full].(object)
		if at == nil {
			at = object{}
			paths[full] = at
		}
		at[strings.ToLower(r.method)] = d.operation(r)
	}
	d.ref(reflect.TypeFor[Problem]())
	return object{
		"openapi":  "3.1.0",
		"info":     object{"title": "abide", "version": orUnknown(s.opts.Version), "description": "Sessions of agents over HTTP. docs/HTTP.md has stories."},
		"servers":  []any{object{"url": "/"}},
		"security": []any{object{"token": []string{}}, object{"cookie": []string{}, "key": []string{}}},
		"paths":    paths,
		"components": object{"schemas": d.schemas, "securitySchemes": object{
			"token":  object{"type": "http", "scheme": "bearer", "description": "the token of abide serve"},
			"cookie": object{"type": "apiKey", "in": "cookie", "name": "abide_console", "description": "of a browser that is signed in; together with the key"},
			"key":    object{"type": "apiKey", "in": "header", "name": "Abide-Key", "description": "from the storage of the console's origin; together with the cookie"},
		}},
	}
}

func orUnknown(version string) string {
	if version == "" {
		return "unknown"
	}
	return version
}

// The bodies of what is answered before a route is looked for.
type (
	// SignIn spends the token of a link.
	SignIn struct {
		Token string `json:"token"`
	}
	// SignedIn is what a browser gets that is let in.
	SignedIn struct {
		Key     string `json:"key" doc:"is sent as the header Abide-Key, beside the cookie"`
		Expires string `json:"expires"`
	}
	// Link is a link that signs a browser in.
	Link struct {
		Token   string `json:"token"`
		URL     string `json:"url"`
		Expires string `json:"expires"`
	}
	// Me is who makes a request.
	Me struct {
		Kind    string `json:"kind" enum:"token,browser"`
		Expires string `json:"expires,omitempty"`
		Version string `json:"version"`
	}
	// Health is the state of the server.
	Health struct {
		Status string `json:"status" enum:"ok,ready"`
	}
)

// doorRoutes are the routes that the door answers itself.
func doorRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/healthz", summary: "Tell whether the server lives (no token)", answer: Health{}},
		{method: http.MethodGet, path: "/readyz", summary: "Tell whether the server can answer requests (no token)", answer: Health{}},
		{method: http.MethodPost, path: "/signin", summary: "Sign a browser in with the token of a link (no token)", body: SignIn{}, answer: SignedIn{}},
		{method: http.MethodPost, path: "/signin/links", summary: "Make a link that signs a browser in", answer: Link{}, status: http.StatusCreated},
		{method: http.MethodPost, path: "/signout", summary: "Sign a browser out", status: http.StatusNoContent},
		{method: http.MethodGet, path: "/me", summary: "Show who makes the request", answer: Me{}},
	}
}

// A documenter collects the schemas of types.
type documenter struct {
	schemas object
	types   map[string]reflect.Type // by the name of the schema
}

// operation describes a route.
func (d *documenter) operation(r route) object {
	op := object{"summary": r.summary, "operationId": operationID(r), "responses": d.responses(r)}
	params := []any{}
	for _, name := range pathParams(r.path) {
		params = append(params, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range r.query {
		schema := object{"type": "string"}
		if p.kind != "" {
			schema["type"] = p.kind
		}
		if p.values != nil {
			schema["enum"] = p.values
		}
		params = append(params, object{"name": p.name, "in": "query", "description": p.about, "schema": schema})
	}
	if r.stream {
		params = append(params, object{"name": "Last-Event-ID", "in": "header", "description": "id of the last event of a stream that the reader has", "schema": object{"type": "string"}})
	}
	if r.writes() && r.handle != nil {
		params = append(params, object{"name": keyHeader, "in": "header", "description": "the same write with the same key is done once", "schema": object{"type": "string", "maxLength": maxKey}})
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if r.body != nil {
		op["requestBody"] = object{"content": object{"application/json": object{"schema": d.ref(reflect.TypeOf(r.body))}}}
	}
	return op
}

// operationID returns a name for a route: the method, and the words of the path.
func operationID(r route) string {
	id := strings.ToLower(r.method)
	for part := range strings.FieldsFuncSeq(r.path, func(c rune) bool { return strings.ContainsRune("/{}.", c) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

func pathParams(p string) (names []string) {
	for part := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

func (d *documenter) responses(r route) object {
	content := object{}
	if r.answer != nil {
		content["application/json"] = object{"schema": d.ref(reflect.TypeOf(r.answer))}
	}
	if r.text != "" {
		content[r.text] = object{"schema": object{}}
	}
	if r.stream {
		content["text/event-stream"] = object{"schema": object{"type": "string"}}
	}
	ok := object{"description": "done"}
	if len(content) > 0 {
		ok["content"] = content
	}
	return object{
		strconv.Itoa(max(r.status, http.StatusOK)): ok,
		"default": object{"description": "a problem", "content": object{ProblemType: object{"schema": object{"$ref": "#/components/schemas/Problem"}}}},
	}
}

// ref returns a reference to the schema of a struct, or the schema of another type.
func (d *documenter) ref(t reflect.Type) any {
	if t.Kind() != reflect.Struct {
		return d.schema(t)
	}
	name := t.Name()
	if name == "" {
		return d.structure(t)
	}
	if other, taken := d.types[name]; taken && other != t {
		name = strings.ToUpper(path.Base(t.PkgPath())[:1]) + path.Base(t.PkgPath())[1:] + name
	}
	if _, known := d.types[name]; !known {
		d.types[name] = t
		d.schemas[name] = d.structure(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// schema returns the schema of a type.
func (d *documenter) schema(t reflect.Type) any {
	switch {
	case t == rawMessage:
		return object{}
	case t.Kind() == reflect.Pointer:
		return d.ref(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return object{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": d.ref(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.ref(t.Elem())}
	case reflect.Struct:
		return d.ref(t)
	case reflect.Interface:
		return object{}
	}
	return object{"type": "integer"}
}

// structure returns the schema of a struct.
func (d *documenter) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.PkgPath != "" || f.Anonymous || name == "-" || !directly(t, f) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		properties[name] = d.field(f, optional)
		if !optional {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	return s
}

// directly reports whether a field is one of the struct in JSON: its own, or one of a struct
// that is embedded without a name.
func directly(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		if t.FieldByIndex(f.Index[:i]).Tag.Get("json") != "" {
			return false
		}
	}
	return true
}

// field returns the schema of a field.
func (d *documenter) field(f reflect.StructField, optional bool) any {
	schema := d.schema(f.Type)
	if f.Type.Kind() == reflect.Struct {
		schema = d.ref(f.Type)
	}
	if f.Type.Kind() == reflect.Pointer && !optional {
		schema = object{"oneOf": []any{schema, object{"type": "null"}}}
	}
	plain, ok := schema.(object)
	if !ok {
		return schema
	}
	if about := f.Tag.Get("doc"); about != "" {
		plain["description"] = about
	}
	if values := f.Tag.Get("enum"); values != "" {
		plain["enum"] = strings.Split(values, ",")
	}
	return plain
}
