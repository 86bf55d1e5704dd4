package difftest

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/test/seedtest"
)

// numberFrom returns the value of a variable, or a default.
func numberFrom(t testing.TB, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, want a number", variable, text)
	}
	return n
}

// maxFailures is the number of scripts that are reported.
const maxFailures = 5

// A trial is a script that is read as a plain one.
type trial struct {
	number  int // number of the trial, the first is 1
	script  string
	plain   *shell.Plain
	allowed bool // true if rules allow it
}

// A campaign is a series of trials from a seed.
type campaign struct {
	gen     *generator
	rules   *judge
	seen    map[string]bool
	tried   int // scripts that were made
	trials  int // scripts that were run
	allowed int // trials that rules allow
	quoted  int // trials that rules allow and that are more than words and blanks

	mu       sync.Mutex
	runs     int // shells that were started
	failures int
}

// next returns the next trial. Of the scripts that are read as plain ones and that no
// rule allows, it leaves out seven in eight.
func (c *campaign) next() trial {
	for {
		c.tried++
		script := c.gen.next()
		plain, err := shell.Parse(script).Plain()
		if err != nil || strings.Contains(script, "\x00") || c.seen[script] {
			continue
		}
		c.seen[script] = true
		c.gen.keep(script)
		one := trial{number: c.trials + 1, script: script, plain: plain, allowed: c.rules.allow(script)}
		if !one.allowed && len(c.seen)%8 != 0 {
			continue
		}
		c.trials++
		if one.allowed {
			c.allowed++
			if strings.ContainsAny(script, "'\"\\|&;<>\n") {
				c.quoted++
			}
		}
		return one
	}
}

// failed reports whether enough scripts failed.
func (c *campaign) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures >= maxFailures
}

// report reports a trial that failed, and counts the shells of a trial.
func (c *campaign) report(t *testing.T, one trial, runs int, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs += runs
	if why != "" {
		c.failures++
		t.Errorf("script %d, %q: %s", one.number, one.script, why)
	}
}

func TestScriptsDoWhatWasJudged(t *testing.T) {
	wanted := numberFrom(t, "ABIDE_SCRIPTS", 1500)
	if testing.Short() && os.Getenv("ABIDE_SCRIPTS") == "" {
		wanted = 200
	}
	seed := seedtest.Seed()
	rules := newJudge(t, scope.Write)
	rules.rules = generousRules()
	c := &campaign{gen: newGenerator(t, seed), rules: rules, seen: map[string]bool{}}
	start := time.Now()
	trials := make(chan trial)
	var workers sync.WaitGroup
	programs := newSetup(t)
	for range runtime.GOMAXPROCS(0) {
		box := newSandbox(t, programs)
		workers.Go(func() {
			for one := range trials {
				runs, why := check(t, box, one)
				c.report(t, one, runs, why)
			}
		})
	}
	for c.allowed < wanted && !c.failed() {
		trials <- c.next()
		if c.trials%5000 == 0 {
			t.Log(c.figures())
		}
	}
	close(trials)
	workers.Wait()
	t.Logf("seed %d, %v: %s", seed, time.Since(start).Round(time.Second), c.figures())
}

// figures says how much was run.
func (c *campaign) figures() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d scripts were made, %d distinct ones run by %d shells; rules allow %d of them, of which %d (%d %%) are not plain words",
		c.tried, c.trials, c.runs, c.allowed, c.quoted, 100*c.quoted/max(1, c.allowed))
}

// check runs a script in all ways. It returns the number of runs, and how the script
// differs from what was judged, or "".
func check(t testing.TB, box *sandbox, one trial) (int, string) {
	ways := waysToRun(one)
	for i, way := range ways {
		if why := differs(t, box, way, one.plain.Commands()); why != "" {
			return i + 1, fmt.Sprintf("%s, run as %q, recorders end with %c: %s", way.Shell, way.Script, way.Status, why)
		}
	}
	return len(ways), ""
}

// waysToRun returns the runs for a script: as it was written, by bash, and as it is
// written again from the judged words, by bash or dash by turns. A script with branches
// is run with several statuses. Builtins are programs in most runs, so that their words
// are recorded; if rules allow the script and it has builtins, it is also run with them.
func waysToRun(one trial) []request {
	again := request{Shell: []string{"bash", "dash"}[one.number%2], Script: one.plain.String(), Status: 'h'}
	list := []request{{Shell: "bash", Script: one.script, Status: 'h'}, again}
	if slices.ContainsFunc(one.plain.Commands(), func(s shell.Simple) bool { return s.Joint == "&&" || s.Joint == "||" }) {
		other := again
		other.Status = "01"[one.number/2%2]
		list = append(list, request{Shell: "bash", Script: one.script, Status: '0'}, request{Shell: "bash", Script: one.script, Status: '1'}, other)
	}
	if one.allowed && slices.ContainsFunc(one.plain.Commands(), hasBuiltin) {
		list = append(list, request{Shell: "bash", Script: one.script, Status: 'h', Builtins: true}, request{Shell: "bash", Script: again.Script, Status: 'h', Builtins: true})
	}
	return list
}

// hasBuiltin reports whether a command is run by the shell itself.
func hasBuiltin(c shell.Simple) bool {
	return slices.Contains(harmlessBuiltins, c.Words[0]) || c.Words[0] == "cd" || c.Words[0] == "command"
}

// differs runs a script and returns how what it did differs from the commands, or "".
func differs(t testing.TB, box *sandbox, r request, commands []shell.Simple) string {
	if !isKnown(r, commands) {
		return ""
	}
	if first := commands[0].Words; first[0] == "cd" && len(first) == 2 && (r.Builtins || r.Shell == "dash") {
		r.Enter = first[1]
	}
	r.Probes = pathsOf(commands)
	res := box.run(t, r)
	if !res.Entered {
		r.Enter = ""
	}
	why, asked := "", 0
	for choices := uint(0); ; choices++ {
		m := newModel(r, res, choices)
		m.run(commands)
		if m.truncate {
			return ""
		}
		if why = m.compare(res); why == "" {
			return ""
		}
		asked = max(asked, m.asked) // a run that fails early is asked less than others
		if choices+1 >= 1<<min(asked, 10) {
			break
		}
	}
	if res.Stderr != "" {
		why += "\n    the shell said: " + strings.TrimSpace(res.Stderr)
	}
	return why
}

// dashBuiltins are the builtins of dash that the model does not know.
var dashBuiltins = strings.Fields(". alias bg break chdir continue eval exec export fc fg getopts hash jobs kill local read readonly return set shift times trap ulimit umask unalias unset wait")

// isKnown reports whether the model knows what a script does: the loader and the shells of
// the sandbox are no recorders, the builtins of dash cannot be switched off, and a file
// that commands of one pipe write and read is there or not by chance.
func isKnown(r request, commands []shell.Simple) bool {
	if slices.ContainsFunc(commands, isReal) || r.Shell == "dash" && slices.ContainsFunc(commands, usesDash) {
		return false
	}
	written, read := false, false
	for _, c := range commands {
		if c.Joint != "|" {
			written, read = false, false
		}
		for _, d := range c.Redirects {
			read = read || d.Op == "<"
			written = written || d.Op == ">" || d.Op == ">>"
		}
		if read && written && c.Joint == "|" {
			return false
		}
	}
	return true
}

// isReal reports whether a command is by its path a program that is no recorder.
func isReal(c shell.Simple) bool {
	at := path.Clean(c.Words[0])
	return strings.HasPrefix(at, "/lib") || strings.HasPrefix(at, "/usr/lib") || strings.HasPrefix(at, "/rec")
}

// usesDash reports whether a command uses a builtin of dash that the model does not know.
func usesDash(c shell.Simple) bool {
	inner := c.Words
	for inner[0] == "command" && len(inner) > 1 {
		inner = inner[1:]
	}
	return slices.Contains(dashBuiltins, inner[0]) || inner[0] == "command" || c.Words[0] != inner[0] && (inner[0] == "cd" || strings.HasPrefix(inner[0], "-"))
}
