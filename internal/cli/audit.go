package cli

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/audit"
)

func (a *app) auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Check from what is stored that every promise was kept",
		Long: `Reads the log, the index and the records of processes, and decides the invariants
I1 to I9 for every session: nothing lost or doubled, no call repeated, no question
forgotten, no process absent, nothing untold, the hash chain, no foreign signal, what
was stopped stays stopped, and every effect was allowed. docs/AUDIT.md has the rules.

It shares no code with the engine and changes nothing. It works beside a running
engine, and on a folder whose engine was killed: what is unfinished is not broken.
VERDICT is ok, broken, or unknown if stored state does not decide it. Exits with
code 1 if something is broken, and says what, in which session, and where.`,
		Example: "  abide audit\n  abide audit --json | jq '.findings[]'\n  abide audit --home /backup/abide --once deploy\n  abide audit --workspace /backup/box",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	once := c.Flags().StringSlice("once", nil, "further `TOOL`s of your own whose calls must never be begun again after a crash")
	places := c.Flags().StringSlice("workspace", nil, "data folder `DIR` of an abide workspace, for the records of the commands that ran there")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, log, err := a.store()
		if err != nil {
			return err
		}
		show := a.newMeter("events")
		report, err := audit.Run(cmd.Context(), dir, audit.Options{Log: log, Once: *once, Workspaces: *places, Progress: show.tell})
		show.end()
		if stopped := context.Cause(cmd.Context()); stopped != nil {
			return stopped
		}
		if err != nil {
			return configError(err)
		}
		if *asJSON {
			err = a.out.json(report)
		} else {
			err = a.printAudit(report)
		}
		if err == nil && !report.Clean() {
			err = &exitError{code: exitFailed}
		}
		return err
	}
	return c
}

// printAudit prints the verdicts, then what is broken, then what is unknown.
func (a *app) printAudit(r *audit.Report) error {
	broken, unknown := make(map[string]int), make(map[string]int)
	for _, f := range r.Findings {
		broken[f.Invariant]++
	}
	for _, d := range r.Unknown {
		unknown[d.Invariant] += d.Count
	}
	t := &table{head: []string{"INVARIANT", "VERDICT", "BROKEN", "UNKNOWN", "PROMISE"}}
	for _, i := range audit.Invariants {
		t.add(i, string(r.Verdicts[i]), strconv.Itoa(broken[i]), strconv.Itoa(unknown[i]), promises[i])
	}
	if err := a.print(t); err != nil {
		return err
	}
	a.out.printf("sessions %d (unfinished %d), events %d, processes %d\n", r.Sessions, r.Unfinished, r.Events, r.Processes)
	for _, f := range r.Findings {
		a.out.printf("%s %s: %s\n", f.Invariant, placed(f), plain(f.Text))
	}
	if r.Omitted > 0 {
		a.out.printf("%d more findings are not listed\n", r.Omitted)
	}
	for _, d := range r.Unknown {
		a.out.printf("%s unknown, %d times, first %s: %s\n", d.Invariant, d.Count, placed(d.Finding), plain(d.Text))
	}
	return a.out.err
}

// placed says where something was found, and by which rule.
func placed(f audit.Finding) string {
	where := "process " + f.Process
	if f.Session != "" {
		where = "session " + plain(f.Session)
	}
	if f.Seq > 0 {
		where += " event " + strconv.FormatInt(f.Seq, 10)
	}
	return where + " [" + cmp.Or(f.Rule, "?") + "]"
}

// promises are the invariants in a few words.
var promises = map[string]string{
	"I1": "every event is there, once, in order",
	"I2": "every call has one end, and none is repeated",
	"I3": "every question is open or answered once",
	"I4": "every process is known, ended or lost",
	"I5": "the end of every task is told once",
	"I6": "the hash chain verifies",
	"I7": "no foreign process was signalled",
	"I8": "what was stopped stays stopped",
	"I9": "every effect was allowed",
}
