package rpc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/project/trust"
	"github.com/abide-run/abide/internal/server/rpc"
)

// fate makes the model call the client's tool, and says what becomes of the call: it is
// asked about, made or denied.
func (p *peer) fate() string {
	p.t.Helper()
	var sent api.SendResult
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Use act with value 'x', then reply with the result"}, &sent)
	for { // a client that creates a session that exists is shown all of it first
		if d := data[event.UserMessageData](p.t, p.await(event.UserMessage)); d.InputID == sent.MessageID {
			break
		}
	}
	timeout := time.After(time.Minute)
	for {
		select {
		case e := <-p.events:
			switch e.Type {
			case event.PermissionAsked:
				p.must(api.SessionAbort, object{"sessionId": "s"}, nil)
				p.await(event.SessionIdle)
				return "asked"
			case event.ExternalAsked:
				p.must(api.AnswerTool, object{"sessionId": "s", "requestId": data[event.ExternalAskedData](p.t, e).RequestID, "result": "ok"}, nil)
				p.await(event.SessionIdle)
				return "made"
			case event.SessionIdle:
				return "denied"
			}
		case <-timeout:
			p.t.Fatal("nothing happens")
		}
	}
}

// managed is managedSettings with the given permissions.
func managed(permissions object) object {
	return object{"requestPermission": true, "tools": []object{{"name": "act"}}, "managedSettings": object{"permissions": permissions}}
}

// allowEverything tries every way to have the tool called unasked.
func (p *peer) allowEverything() {
	rule := []object{{"kind": "custom-tool", "argument": "act"}}
	p.must(api.PermissionsModifyRules, object{"sessionId": "s", "scope": "session", "add": rule}, nil)
	p.must(api.PermissionsModifyRules, object{"sessionId": "s", "scope": "location", "add": rule}, nil)
	_ = p.Call(p.t.Context(), api.PermissionsSetApproveAll, object{"sessionId": "s", "enabled": true}, nil) // some settings refuse it
}

// TestManagedSettingsOnlyRestrict: over rules, grants and the mode that allows all, for
// the life of the session.
func TestManagedSettingsOnlyRestrict(t *testing.T) {
	for name, test := range map[string]struct {
		permissions   object
		before, after string // fate of a call before and after everything was allowed
	}{
		"nothing":                 {object{}, "asked", "made"},
		"deny":                    {object{"deny": []string{"act"}}, "denied", "denied"},
		"deny a kind":             {object{"deny": []string{"Custom-Tool(*)"}}, "denied", "denied"},
		"deny another":            {object{"deny": []string{"Shell(git push *)"}}, "asked", "made"},
		"ask":                     {object{"ask": []string{"act"}}, "asked", "asked"},
		"allow does not widen":    {object{"allow": []string{"act"}}, "asked", "made"},
		"allow others only":       {object{"allow": []string{"Read(**)"}}, "asked", "asked"},
		"allow nothing":           {object{"allow": []string{}}, "asked", "asked"},
		"deny wins over allow":    {object{"allow": []string{"act"}, "deny": []string{"act"}}, "denied", "denied"},
		"no bypass":               {object{"disableBypassPermissionsMode": "disable"}, "asked", "made"}, // a rule allows it, not the mode
		"no bypass in the future": {object{"disableBypassPermissionsMode": "some-new-mode", "ask": []string{"act"}}, "asked", "asked"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFiled(t)
			p := r.open(api.SessionCreate, managed(test.permissions))
			if got := p.fate(); got != test.before {
				t.Errorf("at first the call is %s, want %s", got, test.before)
			}
			p.allowEverything()
			if got := p.fate(); got != test.after {
				t.Errorf("with everything allowed the call is %s, want %s", got, test.after)
			}
			p.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
			again := r.open(api.SessionResume, object{"requestPermission": true, "tools": []object{{"name": "act"}}}) // the client gives no settings
			if got := again.fate(); got != test.after {
				t.Errorf("after a resume the call is %s, want %s", got, test.after)
			}
		})
	}
}

func TestTheModeThatAllowsAllCanBeForbidden(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, managed(object{"disableBypassPermissionsMode": "disable"}))
	if err := p.refused(api.PermissionsSetApproveAll, object{"sessionId": "s", "enabled": true}); !strings.Contains(err.Message, "do not permit to allow everything") {
		t.Errorf("refused with %q", err.Message)
	}
	if got := p.fate(); got != "asked" {
		t.Errorf("the call is %s", got)
	}
	params := managed(object{"disableBypassPermissionsMode": "disable"})
	params["abide"] = object{"approve": "all"}
	p = newFiled(t).open(api.SessionCreate, params)
	if got := p.fate(); got != "asked" {
		t.Errorf("a session that is created with --yolo: the call is %s", got)
	}
}

// TestManagedSettingsHoldForToolsThatSkipPermission, and are added to those that are
// there.
func TestManagedSettingsHoldForToolsThatSkipPermission(t *testing.T) {
	tools := []object{{"name": "act", "skipPermission": true}}
	r := newFiled(t)
	p := r.open(api.SessionCreate, object{"requestPermission": true, "tools": tools, "managedSettings": object{"permissions": object{"deny": []string{"other"}}}})
	if got := p.fate(); got != "made" {
		t.Errorf("the call is %s", got)
	}
	for _, method := range []string{api.SessionCreate, api.SessionResume} {
		p.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
		rule := map[string]string{api.SessionCreate: "ask", api.SessionResume: "deny"}[method]
		p = r.open(method, object{"requestPermission": true, "tools": tools, "managedSettings": object{"permissions": object{rule: []string{"act"}}}})
		if got := p.fate(); got != map[string]string{"ask": "asked", "deny": "denied"}[rule] {
			t.Errorf("%s with %s: the call is %s", method, rule, got)
		}
	}
}

func TestManagedSettingsThatAreNotUnderstoodAreRefused(t *testing.T) {
	p := newFiled(t).connect(rpc.Door{})
	for want, settings := range map[string]any{
		`unknown field "sandbox"`:              object{"sandbox": true},
		`unknown field "denny"`:                object{"permissions": object{"denny": []string{"act"}}},
		"managedSettings.permissions.deny[1]":  object{"permissions": object{"deny": []string{"act", "bash(git"}}},
		"write bash(touch *)":                  object{"permissions": object{"deny": []string{"touch"}}},
		"no regular expression":                object{"permissions": object{"deny": []string{"bash(^rm .*$)"}}},
		"managedSettings: ":                    "strict",
		"managedSettings.permissions.allow[0]": object{"permissions": object{"allow": []string{""}}},
		"managedSettings: cannot unmarshal":    object{"permissions": object{"deny": "act"}},
	} {
		if err := p.refused(api.SessionCreate, object{"managedSettings": settings}); !strings.Contains(err.Message, want) {
			t.Errorf("%v: %q, want %q", settings, err.Message, want)
		}
	}
	if err := p.refused(api.SessionCreate, object{"additionalDirectories": []string{"x"}}); !strings.Contains(err.Message, "additionalDirectories[0]: want an absolute path") {
		t.Errorf("%q", err.Message)
	}
}

// TestWhatHasNoEffectIsTold: the session goes on, and the client knows.
func TestWhatHasNoEffectIsTold(t *testing.T) {
	r := newFiled(t)
	p := r.open(api.SessionCreate, object{"configDir": "/c", "pluginDirectories": []string{"/p"}, "cloud": nil, "canvases": []object{}})
	d := data[event.SessionWarningData](t, p.await(event.SessionWarning))
	if d.WarningType != "unsupported" || d.Message != "Not supported, and without effect: pluginDirectories, configDir" {
		t.Errorf("%+v", d)
	}
}

func TestAdditionalDirectoriesAreFoldersOfTheSession(t *testing.T) {
	more := t.TempDir()
	p := newFiled(t).open(api.SessionCreate, object{"additionalDirectories": []string{more + "/"}})
	var paths api.PathsResult
	p.must(api.PathsList, object{"sessionId": "s"}, &paths)
	if len(paths.Directories) != 2 || paths.Directories[1] != more {
		t.Errorf("%+v", paths)
	}
}

// TestTrustOfAClientIsTrustInTheConfiguration, and bound to what it holds.
func TestTrustOfAClientIsTrustInTheConfiguration(t *testing.T) {
	r := newFiled(t)
	store := trust.Open(t.TempDir())
	r.srv = rpc.New(r.host, rpc.Options{Version: "test", Trust: &store})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, trust.File), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := r.open(api.SessionCreate, nil)
	check := func(what string, want bool) {
		t.Helper()
		var is api.TrustedResult
		p.must(api.FolderIsTrusted, object{"sessionId": "s", "path": dir}, &is)
		if is.Trusted != want {
			t.Errorf("%s: trusted is %v", what, is.Trusted)
		}
	}
	write("[pod]\n")
	check("at first", false)
	p.must(api.FolderAddTrusted, object{"sessionId": "s", "path": dir}, nil)
	check("added", true)
	if r, found, err := store.Find(dir); err != nil || !found || !r.Covers([]byte("[pod]\n")) {
		t.Errorf("the configuration is not trusted: %+v, %v, %v", r, found, err)
	}
	write("[permissions]\nallow = ['*']\n")
	check("changed", false)
	p.must(api.FolderAddTrusted, object{"sessionId": "s", "path": dir}, nil)
	check("added again", true)
}
