package rpc

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/session"
)

// named finds the methods that a table of docs/SDK.md names, under a heading.
func named(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/SDK.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/SDK.md has no %q", heading)
	}
	part, _, _ = strings.Cut(part, "\n#")
	var names []string
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`([\\w.]+)`").FindAllStringSubmatch(cells[2], -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

func TestTheTableOfMethodsIsTrue(t *testing.T) {
	works := map[string]bool{api.Connect: true}
	for name := range methods {
		if _, none := truths[name]; !none {
			works[name] = true
		}
	}
	for heading, want := range map[string][]string{
		"### What works":       slices.Sorted(maps.Keys(works)),
		"### What is not here": slices.Sorted(maps.Keys(truths)),
	} {
		got := named(t, heading)
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("docs/SDK.md, %q: %s is missing: add it to a row of the table", heading, name)
			}
		}
		for i, name := range got {
			switch {
			case i > 0 && got[i-1] == name:
				t.Errorf("docs/SDK.md, %q: it has %s twice", heading, name)
			case !slices.Contains(want, name):
				t.Errorf("docs/SDK.md, %q: no file of internal/server/rpc registers %s: add it to the register of its file", heading, name)
			}
		}
	}
}

// Whatever is asked about a session, the answer says that it was not named.
func TestASessionThatIsNotNamedIsMissing(t *testing.T) {
	host := session.New(eventlog.NewMemory(), session.Options{})
	defer host.Close()
	srv := New(host, Options{Workspace: nil})
	for name, m := range methods {
		if !strings.HasPrefix(name, "session.") || !scoped(name) {
			continue
		}
		for _, params := range []string{`{}`, `{"sessionId":""}`, `{"sessionId":7}`} {
			c := &conn{server: srv, serving: t.Context()}
			near, _ := net.Pipe()
			c.rpc = jsonrpc.New(near, jsonrpc.Options{})
			_, err := m(c, context.Background(), &jsonrpc.Request{Method: name, Params: []byte(params)})
			if err == nil {
				t.Errorf("%s %s is no error", name, params)
				continue
			}
			if text := c.wireError(name, err).Error(); !strings.Contains(text, ": it is") && !strings.Contains(text, ": want") {
				t.Errorf("%s %s: %s", name, params, text)
			}
		}
	}
}

// sentToClients are the names in package api of messages that clients are sent.
var sentToClients = []string{
	"exitPlanMode.request", "hooks.invoke", "llmInference.httpRequestChunk", "llmInference.httpRequestStart", "providerToken.getToken",
	"session.event", "session.lifecycle", "shell.exit", "systemMessage.transform", "userInput.request",
}

// apiFiles parses the files of package api.
func apiFiles(t *testing.T) []*ast.File { return parseFiles(t, "../../api/*.go") }

func parseFiles(t *testing.T, pattern string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// TestEveryMethodOfTheAPIIsRegistered: a name that package api declares is that of a method
// that works, or of a message that clients are sent.
func TestEveryMethodOfTheAPIIsRegistered(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+[a-zA-Z]*(\.[a-zA-Z]+)+$`)
	for constant, value := range constantsOfAPI(t) {
		if name.MatchString(value) && methods[value] == nil && !slices.Contains(sentToClients, value) {
			t.Errorf("%s (%s) of internal/api is neither registered by a file of internal/server/rpc nor in sentToClients in methods_test.go", constant, value)
		}
	}
}

// constantsOfAPI returns the values of the constants of package api that are texts without a
// type, by their names.
func constantsOfAPI(t *testing.T) map[string]string {
	values := map[string]string{}
	for _, f := range apiFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type != nil {
				return true
			}
			for i, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					values[spec.Names[i].Name], _ = strconv.Unquote(lit.Value) // it has been parsed
				}
			}
			return true
		})
	}
	return values
}

// TestAMethodHasAKeyOrMayBeRepeated: a relay sends a request again if the engine ends before
// it has answered. Either the params have the key by which the engine knows the request
// again, or the method is listed as one that may be carried out twice.
func TestAMethodHasAKeyOrMayBeRepeated(t *testing.T) {
	keyed := keyedTypes(apiFiles(t))
	taken := map[string]bool{}
	listing := slices.Concat(repeatable, leaveTwo)
	for method, h := range handlersOfMethods(t) {
		taken[method] = true
		switch listed := slices.Contains(listing, method); {
		case keyed[h.params] && !h.keeps:
			t.Errorf("the params of api.%s have a key, and its handler does not read it: record it with what the request does, or a relay may send it twice", method)
		case !keyed[h.params] && !listed:
			t.Errorf("a relay may send api.%s twice: give its params a Key with the tag abideKey, and what it records the same key, or give its name to mayRepeat in a test file of its feature, package rpc", method)
		case keyed[h.params] && listed:
			t.Errorf("api.%s has a key, and mayRepeat is given its name", method)
		}
	}
	for _, method := range listing {
		if !taken[method] {
			t.Errorf("api.%s, which mayRepeat is given, is no method", method)
		}
	}
}

// keyedTypes returns the names of the structs that have a field with the tag abideKey, also
// by a struct that is embedded.
func keyedTypes(files []*ast.File) map[string]bool {
	embeds, keyed := map[string][]string{}, map[string]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				if field.Tag != nil && strings.Contains(field.Tag.Value, `"abideKey`) {
					keyed[spec.Name.Name] = true
				}
				if len(field.Names) == 0 {
					embeds[spec.Name.Name] = append(embeds[spec.Name.Name], typeText(field.Type))
				}
			}
			return true
		})
	}
	for range embeds { // as often as structs can be nested
		for name, parts := range embeds {
			keyed[name] = keyed[name] || slices.ContainsFunc(parts, func(part string) bool { return keyed[part] })
		}
	}
	return keyed
}

// typeText returns the name of a type without its package.
func typeText(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.StarExpr:
		return typeText(x.X)
	}
	return ""
}

// A handler is the function that answers a method.
type handler struct {
	params string // name of the type of its params
	keeps  bool   // it reads the key of its params, or passes the params on as a whole
}

// handlersOfMethods returns the handlers of all methods that files register, by the name of
// the method's constant.
func handlersOfMethods(t *testing.T) map[string]handler {
	names, functions := map[string]string{}, map[string]handler{}
	for _, f := range parseFiles(t, "*.go") {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr: // api.Name: on((*conn).handler)
				name, isName := n.Key.(*ast.SelectorExpr)
				call, isCall := n.Value.(*ast.CallExpr)
				if isName && isCall && len(call.Args) == 1 && typeText(name.X) == "api" {
					names[name.Sel.Name] = typeText(call.Args[0])
				}
			case *ast.FuncDecl:
				functions[n.Name.Name] = handler{lastParam(n.Type), readsKey(n)}
			case *ast.InterfaceType:
				for _, m := range n.Methods.List {
					if f, ok := m.Type.(*ast.FuncType); ok {
						functions[m.Names[0].Name] = handler{lastParam(f), true}
					}
				}
			}
			return true
		})
	}
	if len(names) < 100 {
		t.Fatalf("only %d methods were found in the files of the package", len(names))
	}
	handlers := map[string]handler{}
	for name, function := range names {
		handlers[name] = functions[function]
	}
	return handlers
}

// readsKey reports whether a function reads the field Key of its last parameter, or uses the
// parameter as a whole, so that another function can.
func readsKey(f *ast.FuncDecl) (reads bool) {
	list := f.Type.Params.List
	if f.Body == nil || len(list) == 0 || len(list[len(list)-1].Names) == 0 {
		return false
	}
	names := list[len(list)-1].Names
	params := names[len(names)-1].Name
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == params {
				reads = reads || n.Sel.Name == "Key"
				return false
			}
		case *ast.Ident:
			reads = reads || n.Name == params
		}
		return true
	})
	return reads
}

// TestEveryMethodIsRegisteredByItsConstant: the tests of this file read from the source what
// files register, and would miss a method that is written in another way.
func TestEveryMethodIsRegisteredByItsConstant(t *testing.T) {
	seen := map[string]bool{}
	values := constantsOfAPI(t)
	for constant := range handlersOfMethods(t) {
		seen[values[constant]] = true
	}
	for name := range methods {
		if _, none := truths[name]; !none && !seen[name] {
			t.Errorf("the method %s is not registered as api.Name: on((*conn).handler): declare its name in internal/api, and use the constant in the register of its file", name)
		}
	}
}

// lastParam returns the type of the last parameter of a function.
func lastParam(f *ast.FuncType) string {
	if len(f.Params.List) == 0 {
		return ""
	}
	return typeText(f.Params.List[len(f.Params.List)-1].Type)
}

// repeatable are the methods whose requests may be carried out twice: they only read, or
// they set something to a value, or the second one finds nothing left to do.
var repeatable []string

// mayRepeat adds methods to repeatable, by the names of their constants. A feature calls it in a
// test file of its own.
func mayRepeat(names ...string) struct{} {
	repeatable = append(repeatable, names...)
	return struct{}{}
}

var _ = mayRepeat(strings.Fields(`
	Activity AgentDeselect AgentGetCurrent AgentList AgentReload AgentSelect AgentSetPrompt Attach AuthGetStatus CheckInUse CommandsList ContextInfo
	ContinueAll Cost CurrentTools EventLogRead EventLogTail Events FolderAddTrusted FolderIsTrusted GetForeground HistoryAbort HistoryCancel
	HistoryContext HistoryRewind HistoryTruncate InferenceResponseChunk InferenceResponseStart InferenceSetProvider InstructionDiscover InstructionPaths
	InstructionSources InterruptTurn IsProcessing JobRetry JobWait Jobs LocationsAddApproval LocationsApply LocationsResolve MemoryConsolidate
	MCPCancelSampling MCPConfigDisable MCPConfigEnable MCPConfigList MCPConfigReload MCPConfigRemove MCPConfigAdd MCPConfigUpdate MCPDisable MCPDiscover MCPEnable
	MCPExecuteSampling MCPIsServerRunning MCPList MCPListTools MCPOAuthLogin MCPLogin MCPAwaitLogin MCPFinishLogin MCPLogout MCPOAuthAnswer MCPOAuthChanged MCPPromptGet MCPPromptsList MCPReload MCPResourceTemplate MCPResourcesList
	MCPResourcesRead MCPRestartServer MCPSetEnvValueMode MCPStartServer MCPStopServer
	MemoryForget MemoryHistory MemorySearch MemoryShow ModeGet ModeSet ModelGetCurrent ModelList ModelSwitchTo ModelsList NameGet NameSet NameSetAuto
	OptionsUpdate PathsAdd PathsAllowed PathsList PathsUpdatePrimary PathsWorkspace PendingPermissions PermissionsConfigure PermissionsGetMode
	PermissionsModifyRules PermissionsPromptShown PermissionsReset PermissionsSetApproveAll PermissionsSetMode PermissionsSetRequired Ping PlanDelete
	PlanRead PlanReadTodos PlanReadTodosDeps PlanUpdate PreviewRewind ProviderAdd ProviderEndpoint Questions QueueHasPending QueuePending QueueSnapshot
	RecomputeContext ReleaseInterest RuleRevoke Rules Search SessionDelete SessionDestroy SessionDetach SessionGetLastID SessionGetMessages
	SessionGetMetadata SessionList SessionShutdown SessionSuspend SessionsBulkDelete SessionsByPrefix SessionsClose SessionsDelete SessionsEnrich
	SessionsIDs SessionsLast SessionsList SessionsMetadata SessionsPrune SessionsReleaseLock SessionsSave SessionsSizes SetDirectory SetForeground
	SetReasoningEffort ShellKill Shutdown SkillsDisable SkillsDiscover SkillsEnable SkillsEnsureLoaded SkillsInvoked SkillsList SkillsPaths SkillsReload
	Snapshot Status StatusGet TaskOutput TaskResize TaskStop Tasks ToolsList URLsUnrestricted UsageMetrics Verify WorkspaceCreateFile WorkspaceDiff WorkspaceEnsure
	WorkspaceGet WorkspaceListCheckpoints WorkspaceListFiles WorkspaceReadCheckpoint WorkspaceReadFile WorkspacesList
`)...)

// leaveTwo are methods without a key whose second request leaves something behind: a fork, a
// remark, a file or a version of a page too many. Nothing is lost by that.
var leaveTwo = strings.Fields(`HistoryUncompact MemoryEdit MemoryRevert RecordContext SessionLog SessionsFork WorkspaceSavePaste`)
