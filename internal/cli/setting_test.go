package cli

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/daemon"
)

// settingBases are configurations in which a setting can take effect: the usual one, one
// whose model belongs to a provider of its own, and one with an MCP server.
var settingBases = []string{"", "model.model_id = 'p/m'\nproviders.p.base_url = 'http://l'\n", "mcp.servers.s.command = 'x'\n"}

// settingValues are values to try, by the type of a setting that has no list of allowed
// values. At least one of them is valid for each setting and not its default.
var settingValues = map[string][]string{
	"string":  {"'7m'", "'http://x'", "'https://x/y'", "'TEST_KEY'", "'unix:/w'", "'sqlite:/x.db'", "'/w'", `'{"a":1}'`},
	"integer": {"7"},
	"number":  {"0.5"},
	"boolean": {"true", "false"},
	"array":   {"['exec']", "['OPENAI_API_KEY']", "['waits']"},
	"object":  {"{a = 'b'}"},
}

// settingLines returns lines that set a key, one for each value to try.
func settingLines(e config.Entry) (lines []string) {
	key := strings.NewReplacer("models.*", "models.m", "providers.*", "providers.p", "workspaces.*", "workspaces.w", "mcp.servers.*", "mcp.servers.s").Replace(e.Key)
	if list, field, ok := strings.Cut(strings.TrimPrefix(key, "scope."), "."); ok && strings.HasPrefix(key, "scope.") {
		rule := map[string]string{"target": "{target = '/x', permission = 'read'}", "permission": "{target = '/p', permission = 'write'}"}[field]
		return []string{"scope." + list + " = [" + rule + "]"}
	}
	if e.Enum != nil {
		for _, word := range e.Enum {
			lines = append(lines, key+" = '"+word+"'")
		}
		return lines
	}
	for _, value := range settingValues[e.Type] {
		lines = append(lines, key+" = "+value)
	}
	return lines
}

// TestEverySettingTakesEffect: a setting that is read and given to nobody looks as if it
// worked.
func TestEverySettingTakesEffect(t *testing.T) {
	setenv(t, map[string]string{"OPENAI_API_KEY": "k"})
	t.Setenv("TEST_KEY", "another key")
	for _, e := range config.Entries() {
		switch valid, changes := tryLines(t, settingLines(e)); {
		case !valid:
			t.Errorf("no value that is tried is valid for %s: add one to settingValues in internal/cli/setting_test.go", e.Key)
		case !changes:
			t.Errorf("%s changes nothing: give it to the daemon in internal/cli/engine.go", e.Key)
		}
	}
}

// tryLines reports whether one of the lines is valid in one of the bases, and whether one
// of them makes the daemon's configuration another one.
func tryLines(t *testing.T, lines []string) (valid, changes bool) {
	t.Helper()
	dir := t.TempDir()
	for _, base := range settingBases {
		before, _ := daemonConfig(t, dir, base, "")
		for _, line := range lines {
			after, ok := daemonConfig(t, dir, base, line)
			valid = valid || ok
			changes = changes || ok && !cmp.Equal(before, after, comparableSettings)
		}
	}
	return valid, changes
}

// daemonConfig returns the daemon's configuration for a base and a line, and false if the
// line is invalid.
func daemonConfig(t *testing.T, dir, base, line string) (daemon.Config, bool) {
	t.Helper()
	l, err := config.Load(config.Layer{Name: "base", Path: "/p/base", Data: []byte(base)}, config.Layer{Name: "line", Path: "/p/line", Data: []byte(line)})
	if err != nil {
		return daemon.Config{}, false
	}
	a := &app{out: &printer{}, err: &printer{}, logLevel: "error", loaded: l}
	c, err := a.config(dir)
	return c, err == nil
}

// comparableSettings compares all of a daemon's configuration except functions and the
// logger.
var comparableSettings = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmpopts.IgnoreFields(daemon.Config{}, "Log"),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type().Kind() == reflect.Func }, cmp.Ignore()),
}
