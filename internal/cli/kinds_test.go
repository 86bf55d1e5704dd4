package cli

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// eventOf is an event of a kind with a body that says nothing.
func eventOf(t *testing.T, kind event.Type) event.Event {
	t.Helper()
	e, err := event.Parse(1, fmt.Appendf(nil, `{"type":%q,"id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{}}`, kind))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEveryShownKindIsRenderedOrSilent: whoever adds a kind that clients are shown
// decides whether people see it.
func TestEveryShownKindIsRenderedOrSilent(t *testing.T) {
	for _, k := range event.Kinds() {
		q, asks, _ := questionOf(eventOf(t, k.Type))
		rendered := asks || eventDescribers[k.Type] != nil || progressEvents[k.Type] != nil || streamedEvents[k.Type] != nil
		switch {
		case k.Question && !asks:
			t.Errorf("%s is a question, and people cannot answer it: give questionOf in internal/cli/question.go a case, or do not make it a Question in its row in internal/event", k.Type)
		case asks && (q.kind() == "external_tool") != (k.Type == event.ExternalAsked):
			t.Errorf("%s is a question, and its kind is %q: give the question in internal/cli/question.go a field for it, and kind, statement, forJSON and answer a case", k.Type, q.kind())
		case asks && panics(func() { q.sentence(); q.forJSON() }):
			t.Errorf("%s is a question that cannot be put into words: give statement and forJSON in internal/cli/question.go a case", k.Type)
		case rendered && k.Silent:
			t.Errorf("%s is rendered, and its row in internal/event says that it is Silent", k.Type)
		case !k.Hidden && !rendered && !k.Silent:
			t.Errorf("%s is shown to clients, and people do not see it: describe it in a file of internal/cli, or make it Silent in its row in internal/event", k.Type)
		}
	}
}

// TestEveryQuestionCanBeAnswered: each kind of question has a case in answer.
func TestEveryQuestionCanBeAnswered(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "question.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]bool{}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "answer" {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CaseClause); ok && len(c.List) == 1 {
					if is, ok := c.List[0].(*ast.BinaryExpr); ok {
						if field, ok := is.X.(*ast.SelectorExpr); ok {
							cases[field.Sel.Name] = true
						}
					}
				}
				return true
			})
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[question]()) {
		if f.Type.Kind() == reflect.Pointer && !cases[f.Name] {
			t.Errorf("a question with the field %s cannot be answered: give answer in internal/cli/question.go a case for it", f.Name)
		}
	}
}

// panics reports whether a function panics.
func panics(f func()) (so bool) {
	defer func() { so = recover() != nil }()
	f()
	return false
}

// TestRenderingAnEmptyBody: no view stumbles over a body without the fields that it
// expects.
func TestRenderingAnEmptyBody(t *testing.T) {
	var out, errors bytes.Buffer
	v := &textView{out: &printer{w: &out}, progress: &progress{err: &printer{w: &errors}, names: map[string]string{}}, live: true}
	for _, k := range event.Kinds() {
		e := eventOf(t, k.Type)
		describeEvent(e)
		v.event(e)
		if err := new(outcome).apply(e); err != nil {
			t.Errorf("%s: %v", k.Type, err)
		}
	}
}

// TestAKindOfANewerVersionIsShownByItsName: an event that this version does not know
// is part of the story, and is not taken for damage.
func TestAKindOfANewerVersionIsShownByItsName(t *testing.T) {
	e := eventOf(t, "future.thing")
	s := &sessionText{events: []event.Event{e}}
	for _, all := range []bool{false, true} {
		var out bytes.Buffer
		if err := s.write(&out, painter{}, all); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "unknown") || !strings.Contains(out.String(), "future.thing") {
			t.Errorf("with all = %v the story is %q", all, out.String())
		}
	}
	if err := new(outcome).apply(e); err != nil {
		t.Error(err)
	}
}

// TestAnEphemeralKindOfANewerVersionIsNotInTheHistory: such an event is shown only with all
// others.
func TestAnEphemeralKindOfANewerVersionIsNotInTheHistory(t *testing.T) {
	e, err := event.Parse(1, []byte(`{"type":"future.thing","id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"ephemeral":true,"data":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := &sessionText{events: []event.Event{e}}
	for _, all := range []bool{false, true} {
		var out bytes.Buffer
		if err := s.write(&out, painter{}, all); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "future.thing") != all {
			t.Errorf("with all = %v the story is %q", all, out.String())
		}
	}
}
