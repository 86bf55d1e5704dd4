package shell_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/approval/shell"
)

// everything trusts every program.
func everything(string) bool { return true }

const forever = time.Duration(math.MaxInt64)

func TestASleepInTheForegroundIsFound(t *testing.T) {
	for script, want := range map[string]time.Duration{
		// plain
		"sleep 2":                   2 * time.Second,
		"sleep 10":                  10 * time.Second,
		"  sleep   10  ":            10 * time.Second,
		"sleep 5; x":                5 * time.Second,
		"sleep 5 && x":              5 * time.Second,
		"sleep 5 || true":           5 * time.Second,
		"sleep 10 | cat":            10 * time.Second,
		"sleep 10 |& cat":           10 * time.Second,
		"cat | sleep 10":            10 * time.Second,
		"sleep 3 2>/dev/null":       3 * time.Second,
		">/dev/null sleep 3":        3 * time.Second,
		"sleep 5\necho x":           5 * time.Second,
		"echo x\nsleep 5":           5 * time.Second,
		"# wait\nsleep 5 # a while": 5 * time.Second,
		"! sleep 5":                 5 * time.Second,
		"sleep 1":                   time.Second,
		"sleep 1.5":                 1500 * time.Millisecond,
		"sleep 0.5":                 500 * time.Millisecond,
		// numbers
		"sleep 1m":          time.Minute,
		"sleep 2h":          2 * time.Hour,
		"sleep 1d":          24 * time.Hour,
		"sleep 10s":         10 * time.Second,
		"sleep .5m":         30 * time.Second,
		"sleep 1e1":         10 * time.Second,
		"sleep 0x10":        16 * time.Second,
		"sleep 0x1d":        29 * time.Second,
		"sleep infinity":    forever,
		"sleep inf":         forever,
		"sleep 1e400":       forever,
		"sleep 99999999999": forever,
		"sleep 1 1":         2 * time.Second,
		"sleep 1m 30s":      90 * time.Second,
		"sleep -- 5":        5 * time.Second,
		`sleep "10"`:        10 * time.Second,
		`sleep '10'`:        10 * time.Second,
		`sleep $'10'`:       10 * time.Second,
		`sleep 1"0"`:        10 * time.Second,
		`sleep \10`:         10 * time.Second,
		// names
		"/bin/sleep 10":     10 * time.Second,
		"/usr/bin/sleep 10": 10 * time.Second,
		`\sleep 10`:         10 * time.Second,
		`"sleep" 10`:        10 * time.Second,
		`sl'ee'p 10`:        10 * time.Second,
		// compounds
		"(sleep 10)":                               10 * time.Second,
		"{ sleep 10; }":                            10 * time.Second,
		"true && sleep 7":                          7 * time.Second,
		"if true; then sleep 7; fi":                7 * time.Second,
		"if sleep 7; then x; fi":                   7 * time.Second,
		"if x; then y; else sleep 7; fi":           7 * time.Second,
		"if x; then y; elif sleep 7; then z; fi":   7 * time.Second,
		"while ! curl x; do sleep 5; done":         5 * time.Second,
		"until sleep 5; do x; done":                5 * time.Second,
		"for i in 1 2 3; do sleep 5; done":         5 * time.Second,
		"for ((;;)); do sleep 5; done":             5 * time.Second,
		"for i in $(sleep 5); do x; done":          5 * time.Second,
		"case x in a) sleep 3;; *) sleep 4;; esac": 4 * time.Second,
		"time sleep 5":                             5 * time.Second,
		"f() { sleep 5; }; f":                      5 * time.Second,
		"function f { sleep 5; }\nf":               5 * time.Second,
		"echo $(sleep 5)":                          5 * time.Second,
		"echo `sleep 5`":                           5 * time.Second,
		`echo "a $(sleep 5) b"`:                    5 * time.Second,
		"x=$(sleep 5)":                             5 * time.Second,
		"export x=$(sleep 5)":                      5 * time.Second,
		"[[ -n $(sleep 5) ]]":                      5 * time.Second,
		"cat <<E\n$(sleep 5)\nE":                   5 * time.Second,
		"echo x > $(sleep 5)":                      5 * time.Second,
		// prefixes
		"env sleep 10":                       10 * time.Second,
		"env -i A=1 B=2 sleep 10":            10 * time.Second,
		"env -u A sleep 10":                  10 * time.Second,
		"env -S 'sleep 10'":                  10 * time.Second,
		"A=1 sleep 10":                       10 * time.Second,
		"command sleep 10":                   10 * time.Second,
		"command -p sleep 10":                10 * time.Second,
		"exec sleep 10":                      10 * time.Second,
		"nohup sleep 10":                     10 * time.Second,
		"nice sleep 10":                      10 * time.Second,
		"nice -n 5 sleep 10":                 10 * time.Second,
		"nice -n5 sleep 10":                  10 * time.Second,
		"stdbuf -o L sleep 10":               10 * time.Second,
		"setsid -w sleep 10":                 10 * time.Second,
		"sudo -u root sleep 10":              10 * time.Second,
		"busybox sleep 10":                   10 * time.Second,
		"timeout 60 sleep 10":                10 * time.Second,
		"timeout -k 5 -s INT 60 sleep 10":    10 * time.Second,
		"timeout --signal KILL 1m sleep 10":  10 * time.Second,
		"timeout $T sleep 10":                10 * time.Second,
		"echo 1 | xargs -n 1 sleep 10":       10 * time.Second,
		"env nohup nice timeout 60 sleep 10": 10 * time.Second,
		"flock /tmp/x sleep 10":              10 * time.Second,
		// scripts in scripts
		"bash -c 'sleep 10'":                10 * time.Second,
		`sh -c "sleep 10"`:                  10 * time.Second,
		"/bin/bash -lc 'echo a; sleep 10'":  10 * time.Second,
		"bash -e -u -c 'sleep 10' name arg": 10 * time.Second,
		"bash -o pipefail -c 'sleep 10'":    10 * time.Second,
		"bash -eo pipefail -c 'sleep 10'":   10 * time.Second,
		"bash --norc -c 'sleep 10'":         10 * time.Second,
		`sh -c "bash -c 'sleep 10'"`:        10 * time.Second,
		"timeout 60 bash -c 'sleep 10'":     10 * time.Second,
		"eval sleep 10":                     10 * time.Second,
		"eval 'sleep 10'":                   10 * time.Second,
		"bash <<E\nsleep 10\nE":             10 * time.Second,
		"bash -s <<'E'\nsleep 10\nE":        10 * time.Second,
		"bash <<< 'sleep 10'":               10 * time.Second,
		"su -c 'sleep 10'":                  10 * time.Second,
		// in the background, and waited for later
		"sleep 10 & wait":       10 * time.Second,
		"sleep 10 & x; wait $!": 10 * time.Second,
		// before a syntax error
		"sleep 10\nfoo(": 10 * time.Second,
		// in the background, or not a sleep
		"":                            0,
		"echo sleep 5":                0,
		"cat sleep.txt":               0,
		"grep -r 'sleep 10' .":        0,
		"echo 'sleep 10' > run.sh":    0,
		"cat > f <<E\nsleep 10\nE":    0,
		"sleep 10 & echo x":           0,
		"(sleep 10 &)":                0,
		"setsid -f sleep 10":          0,
		"command -v sleep 10":         0,
		"diff <(sleep 10) x":          0,
		"coproc sleep 10":             0,
		"f() { sleep 5; }":            0,
		"sleep":                       0,
		"sleep x":                     0,
		"sleep -5":                    0,
		"sleep nan":                   0,
		"sleep 1_0":                   0,
		"sleep 10 x":                  0,
		"sleep $N":                    0,
		"sleep --help":                0,
		"bash sleep 10":               0,
		"bash -c \"$X\"":              0,
		"timeout 1 sleep 10":          time.Second,
		"timeout 1 bash -c 'sleep 9'": time.Second,
		"sleep 10 $N":                 10 * time.Second,
	} {
		if got := shell.Parse(script).Pause(); got.Longest != want {
			t.Errorf("%q: longest sleep is %v, want %v", script, got.Longest, want)
		}
	}
}

func TestAPauseIsTheSumOfConsecutiveSleeps(t *testing.T) {
	for script, want := range map[string]time.Duration{
		"sleep 5; sleep 5":                            10 * time.Second,
		"sleep 5 | sleep 7":                           7 * time.Second,
		"if x; then sleep 3; else sleep 4; fi":        4 * time.Second,
		"sleep 1; (sleep 2; bash -c 'sleep 3')":       6 * time.Second,
		"sleep 5 & sleep 3; wait":                     8 * time.Second, // this is an upper bound
		"sleep infinity; sleep infinity":              forever,
		"while x; do sleep 5; done":                   5 * time.Second,
		"timeout 3 sh -c 'sleep 2; sleep 2'; sleep 1": 4 * time.Second,
	} {
		if got := shell.Parse(script).Pause(); got.Total != want {
			t.Errorf("%q: pause is %v, want %v", script, got.Total, want)
		}
	}
	if got := shell.Parse("sleep 1; env /bin/sleep '10'").Pause().Text; got != "/bin/sleep 10" {
		t.Errorf("the longest sleep is shown as %q", got)
	}
}

// A stub of sleep records its arguments instead of sleeping, so that bash itself shows
// which sleeps a script runs.
func TestBashAgreesOnWhichSleepsAreRun(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	stub := "#!/bin/sh\necho \"$1\" >> '" + log + "'\n"
	if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		script := randomScript(t, 3)
		_ = os.Remove(log)
		cmd := exec.Command(bash, "-c", script)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte("syntax error")) {
			t.Skip("bash writes down a here-document inside $( ) in a way that it cannot read again")
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		slept, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		var longest time.Duration
		for _, line := range strings.Fields(string(slept)) {
			d, err := time.ParseDuration(line + "s")
			if err != nil {
				t.Fatal(err)
			}
			longest = max(longest, d)
		}
		if got := shell.Parse(script).Pause().Longest; got != longest {
			t.Fatalf("%s\nsleeps %v, found %v", script, longest, got)
		}
	})
}

// randomScript returns a random script of nested sleeps and other commands, all of which
// are run.
func randomScript(t *rapid.T, depth int) string {
	leaf := rapid.SampledFrom([]string{"sleep 3", "sleep 2.5", "sleep '7'", "true", "echo sleep 9", `"sleep" 4`, ": sleep 8", "env A=1 sleep 5", "nice sleep 6", "command sleep 2"})
	if depth == 0 {
		return leaf.Draw(t, "leaf")
	}
	inner := func() string { return randomScript(t, depth-1) }
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	switch rapid.IntRange(0, 14).Draw(t, "form") {
	case 0:
		return "{ " + inner() + "\n}; { " + inner() + "\n}"
	case 1:
		return inner() + "\n" + inner()
	case 2:
		return "{ " + inner() + "\n}"
	case 3:
		return "( " + inner() + "\n)"
	case 4:
		return "bash -c " + quote(inner())
	case 5:
		return "if { " + inner() + "\n} >/dev/null; then " + inner() + "\nfi"
	case 6:
		return "for i in 1 2; do " + inner() + "\ndone"
	case 7:
		return "x=\"$( " + inner() + "\n)\""
	case 8:
		return "{ " + inner() + "\n} | { cat; " + inner() + "\n}"
	case 9:
		return "eval " + quote(inner())
	case 10:
		return "bash <<'END" + quoteLevel(depth) + "'\n" + inner() + "\nEND" + quoteLevel(depth) + "\n"
	case 11:
		return "f" + quoteLevel(depth) + "() { " + inner() + "\n}\nf" + quoteLevel(depth)
	case 12:
		return "{ " + inner() + "\n} && { " + inner() + "\n}"
	case 13:
		return "case a in a) " + inner() + "\n;; esac"
	}
	return "timeout 100 bash -c " + quote(inner())
}

func quoteLevel(depth int) string { return string(rune('a' + depth)) }

func TestATrailingAmpersandMeansBackground(t *testing.T) {
	for _, test := range []struct {
		script, want string
		background   bool
	}{
		{"server &", "server", true},
		{"server&", "server", true},
		{"server & ", "server ", true},
		{"server &\n\n", "server\n\n", true},
		{"cd x && npm start &", "cd x && npm start", true},
		{"a; b &", "a; b", true},
		{"a & b &", "a & b", true},
		{"nohup server >log 2>&1 &", "nohup server >log 2>&1", true},
		{"server & # in the back", "server # in the back", true},
		{"cat <<E &\nx &\nE\n", "cat <<E\nx &\nE\n", true},
		{"{ a & } &", "{ a & }", true},
		{"server", "server", false},
		{"a & b", "a & b", false},
		{"a &&\nb", "a &&\nb", false},
		{"a |& b", "a |& b", false},
		{"(a &)", "(a &)", false},
		{"echo 'a &'", "echo 'a &'", false},
		{"echo a \\&", "echo a \\&", false},
		{"echo a # &", "echo a # &", false},
		{"a >&2", "a >&2", false},
		{"( &", "( &", false},
		{"", "", false},
		{"&", "&", false},
	} {
		if got, background := shell.Parse(test.script).Foreground(); got != test.want || background != test.background {
			t.Errorf("%q: %q, %v; want %q, %v", test.script, got, background, test.want, test.background)
		}
	}
}

func TestAReportListsEveryCommand(t *testing.T) {
	ro := func(names ...string) (list []shell.Command) {
		for _, n := range names {
			list = append(list, shell.Command{Identifier: n, ReadOnly: true})
		}
		return list
	}
	rw := func(names ...string) (list []shell.Command) {
		for _, n := range names {
			list = append(list, shell.Command{Identifier: n})
		}
		return list
	}
	for _, test := range []struct {
		script   string
		commands []shell.Command
		known    bool
	}{
		{"echo test", ro("echo"), true},
		{"echo hello && echo world", ro("echo"), true},
		{"node --version", rw("node"), true},
		{"ls -la | wc -l; pwd", ro("ls", "wc", "pwd"), true},
		{"/bin/ls", ro("ls"), true},
		{"git status", ro("git status"), true},
		{"git -C /x --no-pager log -3", ro("git log"), true},
		{"git -c core.pager=rm diff", rw("git diff"), true},
		{"git diff --output=x", rw("git diff"), true},
		{"git push origin main", rw("git push"), true},
		{"git $CMD", rw("git"), true},
		{"npm install", rw("npm install"), true},
		{"rm -rf x", rw("rm"), true},
		{"sudo rm x", rw("sudo", "rm"), true},
		{"sudo ls", rw("sudo", "ls"), true},
		{"env A=1 timeout 5 ls", rw("ls"), true},
		{"timeout 5 nice ls", ro("ls"), true},
		{"ls > f; ls", rw("ls"), true},
		{"ls 2>/dev/null", ro("ls"), true},
		{"ls | xargs rm", append(ro("ls"), rw("xargs", "rm")...), true},
		{"bash -c 'ls; rm x'", rw("ls", "rm"), true},
		{"bash run.sh", rw("bash run.sh"), true},
		{"bash $X", rw("bash $X"), false},
		{"bash <<E\nrm x\nE", rw("rm"), true},
		{"curl x.sh | bash", rw("curl", "bash"), false},
		{`bash -c "$X"`, rw("bash"), false},
		{`bash -c "ls; $X"`, rw("bash", "ls"), false},
		{"$CMD x", rw("$CMD"), false},
		{"$(which ls) x", rw("$(which ls)", "which"), false},
		{"find . -name x", ro("find"), true},
		{"find . -delete", rw("find"), true},
		{`find . -exec rm {} \;`, rw("find", "rm"), true},
		{`find . -exec chmod 1 {} + -execdir nice touch x \; -ok`, rw("find", "chmod", "touch"), true},
		{strings.Repeat("find -exec ", 2500), rw("find"), false},
		{"sed -n 1,5p f", ro("sed"), true},
		{"sed -i s/a/b/ f", rw("sed"), true},
		{"sort -o x y", rw("sort"), true},
		{"command -v rm", rw("rm"), true},
		{"f() { rm x; }; f", rw("rm", "f"), true},
		{"for i in a b; do rm $i; done", rw("rm"), true},
		{"PATH=/tmp/x; git status", rw("PATH=", "git status"), true},
		{"LD_PRELOAD=x ls", rw("ls", "LD_PRELOAD="), true},
		{"A=1 ls", rw("ls"), true},
		{"export A=1", rw("export"), true},
		{"[[ -f x ]]", nil, true},
		{"ls ((", nil, false},
		{"ls\nfoo(", rw("ls"), false},
		{strings.Repeat("#", 1<<20), nil, false},
		{"", nil, true},
	} {
		got := shell.Parse(test.script).Report(everything)
		if diff := cmp.Diff(test.commands, got.Commands); diff != "" || got.Known != test.known {
			t.Errorf("%.80q: known %v, want %v\n%s", test.script, got.Known, test.known, diff)
		}
	}
}

func TestAReportHasTheCommandsWithTheirArguments(t *testing.T) {
	for _, test := range []struct {
		script string
		lines  []string
	}{
		{`git commit -m "a b" && rm 'x'`, []string{"git commit -m a b", "rm x"}},
		{"rm $X a*", []string{"rm $X a*"}},
		{"git $(echo push)", []string{"git $(echo push)", "echo push"}},
		{"timeout 5 env A=1 rm x", []string{"rm x"}},
		{"sudo -u me rm x", []string{"sudo -u me rm x", "rm x"}},
		{"/bin/rm x", []string{"/bin/rm x"}},
		{"bash -c 'rm x; rm x'", []string{"rm x"}},
		{"PATH=/x ls", []string{"ls", "PATH=/x"}},
		{"export A=1", []string{"export A=1"}},
		{`"$CMD" x`, []string{`"$CMD" x`}},
		{"find . -exec rm {} +", []string{"find . -exec rm {} +", "rm {}"}},
	} {
		got := shell.Parse(test.script).Report(everything)
		if !slices.Equal(got.Lines, test.lines) {
			t.Errorf("%q: %q", test.script, got.Lines)
		}
	}
}

func TestAReportNamesPathsAddressesAndWrites(t *testing.T) {
	for _, test := range []struct {
		script string
		paths  []string
		urls   []string
		writes bool
	}{
		{"cat a.txt /etc/passwd ../x ~/y", []string{"a.txt", "/etc/passwd", "../x", "~/y"}, nil, false},
		{"curl -o out.html https://example.com/a?b=c", []string{"out.html"}, []string{"https://example.com/a?b=c"}, false},
		{"dd if=/dev/zero of=/tmp/x", []string{"/dev/zero", "/tmp/x"}, nil, false},
		{"echo x > f", []string{"f"}, nil, true},
		{"echo x >> d/f", []string{"d/f"}, nil, true},
		{"echo x &> f", []string{"f"}, nil, true},
		{"echo x >| f", []string{"f"}, nil, true},
		{"echo x >& f", []string{"f"}, nil, true},
		{"echo x > $F", nil, nil, true},
		{"make 2>&1 >/dev/null 2>/dev/stderr", nil, nil, false},
		{"wc -l < in.txt", []string{"in.txt"}, nil, false},
		{"bash -c 'echo > f'", []string{"f"}, nil, true},
		{"sleep 1.5; git commit -m 'Fix a/b thing.'", nil, nil, false},
	} {
		got := shell.Parse(test.script).Report(everything)
		if !slices.Equal(got.Paths, test.paths) || !slices.Equal(got.URLs, test.urls) || got.Writes != test.writes {
			t.Errorf("%q: paths %q, urls %q, writes %v", test.script, got.Paths, got.URLs, got.Writes)
		}
	}
}

func TestFileToolNamesTheToolThatReplacesACommand(t *testing.T) {
	for script, want := range map[string]string{
		"cat a.txt":                        shell.View,
		"cat a b":                          shell.View,
		"cat $F":                           shell.View,
		"cat a.txt 2>/dev/null":            shell.View,
		"cat a | head -20":                 shell.View,
		"cat a | sed -n 5,9p":              shell.View,
		"cd x && cat a":                    shell.View,
		"head -20 a":                       shell.View,
		"head -n 20 a":                     shell.View,
		"tail a":                           shell.View,
		"sed -n '10,20p' a":                shell.View,
		"less a":                           shell.View,
		"grep -n foo a.go":                 shell.Grep,
		"grep -rn foo":                     shell.Grep,
		"rg foo":                           shell.Grep,
		"grep foo a | head":                shell.Grep,
		"cat a | grep foo":                 shell.Grep,
		"find . -name '*.go'":              shell.Glob,
		"find . -type f -name x | head -5": shell.Glob,

		"cat":                       "",
		"cat a > b":                 "",
		"cat <<E\nx\nE":             "",
		"cat > a <<E\nx\nE":         "",
		"cat a | wc -l":             "",
		"cat a | jq .":              "",
		"tail -f a":                 "",
		"head -n 20":                "",
		"sed -i s/a/b/ a":           "",
		"sed -n 5p":                 "",
		"ps aux | grep x":           "",
		"grep foo":                  "",
		"find . -delete":            "",
		"find . -name x -exec rm +": "",
		"ls":                        "",
		"make && cat log":           "",
		"cat a; make":               "",
		"cat a &":                   "",
		"cat a |":                   "",
		"echo cat a":                "",
	} {
		if command, got := shell.Parse(script).FileTool(); got != want {
			t.Errorf("%q: %q can be done by %q, want %q", script, command, got, want)
		}
	}
}

func TestAScriptThatCannotBeParsedIsReported(t *testing.T) {
	for script, want := range map[string]bool{
		"ls":                             false,
		"ls (":                           true,
		"'":                              true,
		strings.Repeat("a;", 1<<20):      true,
		strings.Repeat("(", 1<<20):       true,
		strings.Repeat("( ')'", 5000):    true,
		strings.Repeat("if ", 5000):      true,
		"a" + strings.Repeat("|a", 5000): false,
	} {
		if err := shell.Parse(script).Err(); (err != nil) != want {
			t.Errorf("%.20q: %v", script, err)
		}
	}
	for _, script := range []string{strings.Repeat("(", 30000), strings.Repeat("a;", 20000), "sh -c 'sh -c \"eval eval eval eval ls\"'"} {
		s := shell.Parse(script)
		if script[0] != 's' && !errors.Is(s.Err(), shell.ErrTooLong) || s.Report(everything).Known {
			t.Errorf("%.20q: %v, %+v", script, s.Err(), s.Report(everything))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"sleep 10 | bash -c 'sleep 5'", "a &", "cat <<E\n$(x)\nE", "env -S 'a b' c", "timeout", "sudo -u", "f() { f; }; f",
		"bash -c", "eval", "find -exec", ">& 2", "a=(b c) d", "case x in esac", "xargs -I", "git -C", "((", "\x00", "sh -o", "time", "flock"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		s := shell.Parse(script)
		p := s.Pause()
		if p.Longest > p.Total || p.Longest < 0 {
			t.Errorf("the longest sleep %v is longer than all together, %v", p.Longest, p.Total)
		}
		if text, background := s.Foreground(); background && strings.Count(text, "&") != strings.Count(script, "&")-1 {
			t.Errorf("not one & was taken away: %q", text)
		}
		r := s.Report(everything)
		if s.Err() != nil && r.Known {
			t.Error("everything is known of what could not be read")
		}
		s.FileTool()
	})
}

// What stands after the & keeps its meaning.
func TestTheSignOfTheBackgroundIsCutWithCare(t *testing.T) {
	for script, want := range map[string]string{
		"make &":         "make",
		"make & \n":      "make \n",
		"git&# x; ls":    "git # x; ls",
		"ls \\ &\n":      "ls \\ \n",
		"ls 'a' &# more": "ls 'a' # more",
	} {
		if got, background := shell.Parse(script).Foreground(); got != want || !background {
			t.Errorf("%q: %q, %v; want %q", script, got, background, want)
		}
	}
}

// TestCallsAreBounded has commands inside of commands, each of which has all words of those
// inside of it.
func TestCallsAreBounded(t *testing.T) {
	for _, script := range []string{
		"find . " + strings.Repeat("-exec ", 4000),
		"find . " + strings.Repeat("-exec cat {} + ", 1500),
		strings.Repeat("env ", 7000) + "ls",
	} {
		calls := shell.Parse(script).Calls()
		words := 0
		for _, c := range calls.Words {
			words += len(c)
		}
		if words > 50_000 || calls.Hidden == "" {
			t.Errorf("%.40s…: %d words, and %q is hidden", script, words, calls.Hidden)
		}
	}
	if calls := shell.Parse("find . -exec cat {} + -exec env grep x {} +").Calls(); calls.Hidden != "" {
		t.Errorf("%q is hidden in an ordinary command", calls.Hidden)
	}
}
