package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A readmeStory says how a block of commands of README.md is run in an empty home: what is
// there before, and what stands in the place of what differs from one machine to the next.
type readmeStory struct {
	first  string      // beginning of the block
	before string      // script that is run before it
	other  [][2]string // texts of the block, and what is run instead
	after  string      // script that is run after it
	wants  []string    // patterns of the output, in order
}

// session names the session that was changed last.
const session = `abide sessions list --json | grep -o '[0-9a-f]\{8\}-[0-9a-f-]*' | head -n 1`

// readmeStories has a line for each block of commands of README.md.
var readmeStories = []readmeStory{
	{first: `$ abide run "Reply with exactly: HELLO"`, wants: []string{`^session ID$`, `^abide: no provider is configured`, `^HELLO$`}},
	{
		first:  `git diff | abide run`,
		before: `git init -q; printf '\211PNG\r\n\032\nIMAGE' > screen.png; echo '{"type":"object","required":["bug"]}' > bug.json; echo '{"rules":[{"reply":{"text":"{\"bug\":\"x\"}"}}]}' > bug-scenario.json`,
		other:  [][2]string{{`abide run`, `abide run --scenario bug-scenario.json`}},
		wants:  []string{`^\{"bug":"x"\}$`, `^\{"bug":"x"\}$`},
	},
	{
		first: `$ echo '{"rules"`,
		other: [][2]string{
			{`"10s"`, `"3s"`},
			{`& sleep 1; kill`, `& until abide sessions list --json | grep -q Think; do sleep 0.1; done; kill`},
		},
		wants: []string{`^Done\.$`},
	},
	{
		first: `$ abide run "Ask me: which colour?"`,
		other: [][2]string{{`01a1e0a9-d03e`, `$(` + session + `)`}},
		wants: []string{`^5$`, `^the model asks: which colour\?$`, `^  abide answer ID TEXT$`, `^User responded: blue$`},
	},
	{
		first:  `$ abide run --detach`,
		before: `abide serve > served 2>&1 & until grep -q engine served; do sleep 0.1; done`,
		other:  [][2]string{{`01a1e0a9-f177`, `$(` + session + `)`}},
		after:  `kill %1; wait`,
		wants:  []string{`^ID$`, `stopped`},
	},
	{
		first:  `abide sessions list `,
		before: `abide run "Reply with exactly: HELLO"`,
		other:  [][2]string{{`01a1dd5e-3a4c`, `$(abide sessions list --json | grep -o '{"sessionId":"[^"]*","[^{]*"summary":"Reply' | head -n 1 | cut -d'"' -f4)`}},
		wants:  []string{`no matches`, `assistant  HELLO`, `^undid 5 visible events of session ID`, `^ID$`, `intact`, `^I9 +ok`},
	},
	{
		first:  `abide backup`,
		before: `mkdir mnt; abide run "Reply with exactly: HELLO" < /dev/null`,
		other:  [][2]string{{`/mnt/backup`, `mnt`}, {`abide restore`, `ABIDE_HOME=$PWD/restored abide restore`}},
		after:  `ABIDE_HOME=$PWD/restored abide sessions verify`,
		wants:  []string{`would go: 0`, `intact`},
	},
	{
		first:  "$ abide run --yolo 'Run `make all` in the background'",
		before: `printf 'all:\n\t@echo building; until test -e stop; do sleep 0.05; done\ntest:\n\t@echo tested\n' > Makefile`,
		other: [][2]string{
			{`abide logs -f pmkqvo`, `TASK=$(abide ps --json | grep -o '"taskId":"[^"]*' | cut -d'"' -f4); abide logs -f $TASK & FOLLOWER=$!`},
			{`abide stop pmkqvo`, `abide stop $TASK; wait $FOLLOWER`},
		},
		wants: []string{`^TASK +SESSION +STARTED +STATUS +OUTPUT +COMMAND$`, `running .* make all$`},
	},
	{first: "$ abide run --sealed 'Run `make test`'", before: `printf 'test:\n\t@echo tested\n' > Makefile`, wants: []string{`^tested$`}},
	{
		first:  `$ abide workspace`,
		before: `mkdir src; printf 'test:\n\t@echo tested there\n' > src/Makefile`,
		other: [][2]string{
			{`abide workspace --listen unix:/run/box.sock --dir /src     # there`, `ABIDE_HOME=$PWD/there abide workspace --listen unix:$PWD/box.sock --dir $PWD/src > box.log 2>&1 & until test -S box.sock; do sleep 0.1; done`},
			{`/run/box.sock`, `$PWD/box.sock`},
			{`abide run --workspace`, `abide run --yolo --workspace`},
		},
		after: `kill %1; wait`,
		wants: []string{`background`},
	},
	{first: `abide context SESSION`, before: `abide run "Reply with exactly: HELLO" < /dev/null`, other: [][2]string{{`SESSION `, `$(` + session + `) `}}, wants: []string{`tokens used`, `undo it with: abide compact --undo ID`}},
	{first: `abide memory show`},
	{first: `$ abide mcp add`, other: [][2]string{{`npx -y @modelcontextprotocol/server-filesystem .`, `mcp-server`}}, wants: []string{`^files was added`, `^files works; tools: 3$`}},
}

// made are the first lines of the blocks that other tests run.
var made = []string{`make install`}

// TestTheCommandsOfTheReadme: every block of commands of README.md does in an empty home what
// the page says.
func TestTheCommandsOfTheReadme(t *testing.T) {
	for _, tool := range []string{"bash", "git", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	told := 0
	for _, b := range blocks {
		if b[1] != "" && b[1] != "sh" || slices.ContainsFunc(made, func(first string) bool { return strings.HasPrefix(b[2], first) }) {
			continue
		}
		at := slices.IndexFunc(readmeStories, func(s readmeStory) bool { return strings.HasPrefix(b[2], s.first) })
		if at < 0 {
			t.Errorf("README.md has a block that readmeStories does not know:\n%s", b[2])
			continue
		}
		told++
		t.Run(fmt.Sprint(told), func(t *testing.T) { readmeStories[at].run(t, b[2]) })
	}
	if told != len(readmeStories) {
		t.Errorf("%d of %d stories are in README.md", told, len(readmeStories))
	}
}

// run runs the commands of a block.
func (s readmeStory) run(t *testing.T, block string) {
	for _, o := range s.other {
		if !strings.Contains(block, o[0]) {
			t.Errorf("the block does not say %q any more", o[0])
		}
		block = strings.ReplaceAll(block, o[0], o[1])
	}
	script := "set -euo pipefail\n" + s.before + "\n"
	prompts := strings.HasPrefix(block, "$ ")
	for line := range strings.Lines(block) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case prompts && !isCommand: // output
			continue
		case strings.Contains(command, "; echo $?"): // it is to fail
			command = "set +e\n" + command + "set -e\n"
		}
		script += command
	}
	script += s.after
	dir, err := os.MkdirTemp("", "readme") // the name of a socket in it must not be long
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.MkdirAll(filepath.Join(dir, "work"), 0o700))
	dropIgnoredSignals()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", script)
	c.Dir = filepath.Join(dir, "work")
	c.Env = append(os.Environ(), "HOME="+dir, "ABIDE_HOME="+filepath.Join(dir, "home"), "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=", "ABIDE_TOKEN=", "XDG_CONFIG_HOME=", "GORACE="+noRaceSleep)
	c.WaitDelay = 10 * time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	rest := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{3,4}(-[0-9a-f-]+)?`).ReplaceAllString(string(out), "ID")
	for _, want := range s.wants {
		at := regexp.MustCompile("(?m)" + want).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("%s is not in the rest of what is printed by\n%s\n%s", want, script, out)
		}
		rest = rest[at[1]:]
	}
}

// TestInstallInAnEmptyHome: make install leaves a program that runs, and its manual pages.
func TestInstallInAnEmptyHome(t *testing.T) {
	if testing.Short() {
		t.Skip("the program is not built in short tests")
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	home := t.TempDir()
	goEnv, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	must(t, err)
	caches := strings.Fields(string(goEnv))
	install := exec.Command("make", "-C", "../..", "install")
	install.Env = append(os.Environ(), "HOME="+home, "GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "MAKEFLAGS=", "PREFIX="+filepath.Join(home, ".local"))
	if out, err := install.CombinedOutput(); err != nil || !strings.Contains(string(out), "to PATH") {
		t.Fatalf("%v\n%s", err, out)
	}
	version := exec.Command("abide", "--version")
	version.Path = filepath.Join(home, ".local/bin/abide")
	version.Env = []string{"HOME=" + home}
	if out, err := version.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "abide ") {
		t.Errorf("abide --version: %v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(home, ".local/share/man/man1/abide.1")); err != nil {
		t.Error(err)
	}
}
