package audit

import (
	"strconv"

	"github.com/abide-run/abide/internal/audit/stored"
)

// signals decides I7 from the journals of processes: a signal is written down
// before it is sent, with the identity of whoever it is for.
func (a *auditor) signals(p stored.Process) {
	found := Finding{Process: p.ID}
	if p.Spec != nil {
		found.Session = p.Spec.Get("owner")
	}
	w := witness{auditor: a, found: found, sent: make(map[int64]bool)}
	for _, entry := range p.Journal {
		w.take(entry)
	}
}

// A witness follows a journal.
type witness struct {
	*auditor
	found                  Finding
	keeper, command, start string
	sent                   map[int64]bool
	claimed, exited, gone  bool
}

func (w *witness) broken(rule, text string) {
	w.found.Rule, w.found.Text = rule, "the record "+w.found.Process+" "+text
	w.auditor.found.add(w.found)
}

func (w *witness) take(entry stored.Entry) {
	switch entry.Kind {
	case "claimed":
		w.claimed, w.keeper = true, entry.Get("pid")
	case "started":
		w.command, w.start = entry.Get("pid"), entry.Get("start")
	case "signal":
		w.signal(entry)
	case "exited":
		w.exit(entry)
	case "ended":
		w.gone = true
	}
}

func (w *witness) signal(entry stored.Entry) {
	number, ok := entry.Int("signal")
	pids, starts, group := entry.All("pid"), entry.All("start"), entry.Get("group")
	switch {
	case !ok || number < 1 || number > 64:
		w.broken("signal.number", "has a signal "+strconv.Quote(entry.Get("signal"))+", which there is not")
	case !w.claimed:
		w.broken("signal.unclaimed", "has a signal before any keeper has claimed it")
	case w.gone:
		w.broken("signal.after-end", "has a signal after nothing was left of the command")
	case group != "" && w.exited:
		w.broken("signal.group-gone", "has a signal to the group "+group+" after the command ended: the number may be another's")
	case group != "" && (group != w.command || entry.Get("start") != w.start):
		w.broken("signal.foreign", "has a signal to the group "+group+"; the command is "+strconv.Quote(w.command))
	case group == "" && (len(pids) == 0 || len(pids) != len(starts)):
		w.broken("signal.unidentified", "has a signal without the identity of whom it is for")
	case group == "":
		w.others(pids, starts)
	}
	w.sent[number] = true
}

// others looks at a signal to processes that the command has started. That they
// were its own is known to the keeper alone.
func (w *witness) others(pids, starts []string) {
	for i, pid := range pids {
		switch n, err := strconv.Atoi(pid); {
		case err != nil || n <= 1 || pid == w.keeper:
			w.broken("signal.foreign", "has a signal to the process "+strconv.Quote(pid)+", which is none of the command's")
			return
		case starts[i] == "" || starts[i] == "0":
			w.broken("signal.unidentified", "has a signal to the process "+pid+" without when that was started")
			return
		}
	}
	found := w.found
	found.Rule, found.Text = "signal.descendants", "the record "+found.Process+" has a signal to processes below the command; that they were below it is not recorded"
	w.auditor.found.doubt(found)
}

// exit looks for a command that was killed by us without a signal in the journal.
func (w *witness) exit(entry stored.Entry) {
	w.exited = true
	status, _ := entry.Int("status")
	if signal := status & 0x7f; signal != 0 && entry.Get("killed") == "signal" && !w.sent[signal] {
		w.broken("signal.unrecorded", "says that a signal of ours has ended the command, and has no such signal")
	}
}
