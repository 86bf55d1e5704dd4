package killtest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/abide-run/abide/internal/cli"
	"github.com/abide-run/abide/internal/eventlog"
)

// instructionsVariable is the environment variable that makes this binary a victim.
const instructionsVariable = "ABIDE_VICTIM"

// instructions tell a victim how to behave, beside its arguments.
type instructions struct {
	Dir      string   // the data folder
	Effects  string   // the file in which the tools count their effects
	Stop     stop     // the point at which the victim dies, if any
	On       kindStop // the kind of events at whose write the victim dies, if any
	Step     step     // the step at which the victim dies, if any
	Kill     []string // what dies at the stop; the victim alone if nil
	Servers  string   // folder in which the MCP servers note their processes
	OneByOne bool     // true if parallel calls finish one after the other
	ReadOnly bool     // true if the data folder is mounted read-only
	Args     []string // arguments of the program; those of an SDK if nil
	Checked  bool     // true if the victim has the race detector, where the tests run with it
}

// program returns the path of the victim's program.
func (o instructions) program() string {
	if checked := os.Getenv(checkedVariable); checked != "" && o.Checked {
		return checked
	}
	return os.Args[0]
}

// arguments returns the arguments of the program. By default it serves its parent as
// it serves an SDK.
func (o instructions) arguments() []string {
	if o.Args != nil {
		return append([]string{"--home", o.Dir}, o.Args...)
	}
	return []string{"--headless", "--stdio", "--home", o.Dir}
}

// retries are the pauses between attempts at a model request. They are short, so
// that no test waits for a clock.
var retries = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond}

// lookTime is longer than any look takes, so that a busy machine does not make two
// transactions of one, and every victim has the same writes.
const lookTime = time.Minute

// victim runs the program, abide with three more tools, and returns the exit code.
func victim(text string) int {
	var o instructions
	err := json.Unmarshal([]byte(text), &o)
	if err == nil && o.ReadOnly {
		err = makeReadOnly(o.Dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		return exitBadInstructions
	}
	tools := newCountingTools(o.Effects, o.OneByOne)
	reports := &reporter{to: json.NewEncoder(os.NewFile(3, "reports"))}
	steps := &stepCounter{stop: o.Step, done: make(map[string]int), reports: reports}
	return cli.Process(cli.Options{
		Version: "test", Tools: tools.tools(), Retries: retries, LookTime: lookTime, AtStep: steps.reached,
		Wrap: func(s eventlog.Store) eventlog.Store {
			reports.send(report{Engine: true})
			return &faultyStore{Store: s, stop: o.Stop, on: o.On, kill: o.kill, tools: tools, reports: reports, steps: steps}
		},
	})
}

// exitBadInstructions is the exit code of a victim that cannot follow its instructions.
const exitBadInstructions = 99
