package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/audit/stored"
)

// processes decides I4 from the log's side: every command that a session has begun
// is running and known, ended with the status that was told, or reported lost.
type processes struct {
	keys map[string]int64 // positions at which the commands of the turn were begun, by key
}

func newProcesses() *processes { return &processes{make(map[string]int64)} }

// kept is how long the record of a process is sure to be there after its end: it
// may be removed after 30 days.
const kept = 29 * 24 * time.Hour

func (p *processes) fold(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "tool.execution_begun":
		p.keys[b.Key] = e.Seq
	case "tool.execution_complete":
		if c := s.call(b.ToolCallID); c != nil && s.own && c.begun > s.session.Shared && runs(c.name) {
			p.completed(s, e, b, c)
		}
	case "task.started":
		p.taskStarted(s, e, b)
	case "task.reported":
		p.taskReported(s, e, b)
	case "user.message", "session.idle":
		if s.turn == nil || e.Type == "session.idle" {
			clear(p.keys)
		}
	}
}

// completed looks at the process of a command whose call is finished.
func (p *processes) completed(s *scene, e *stored.Event, b *body, c *call) {
	id := stored.ProcessID(s.session.Name, c.key)
	records, ok := s.records()
	if !ok {
		s.unknownRecord(e.Seq, id)
		return
	}
	record, found, err := records.Process(id)
	switch {
	case err != nil:
		s.broken("process.unreadable", e.Seq, "the record %s of the command that event %d has begun cannot be read: %v", id, c.begun, err)
	case !found && b.Success && s.recent(e.Time):
		s.broken("process.missing", e.Seq, "event %d tells what the command of event %d gave, and there is no record %s of it", e.Seq, c.begun, id)
	case !found:
	case record.Spec == nil:
		s.halfMade(id)
		s.broken("process.half-made", e.Seq, "the command of event %d has a record %s without what was asked for: its key is taken, and nothing can ever run under it", c.begun, id)
	default:
		p.sameCommand(s, c, record)
		p.sameEnd(s, e, b, record)
	}
}

// sameCommand compares the command of a record with the one that was allowed.
func (p *processes) sameCommand(s *scene, c *call, record stored.Process) {
	if c.decision != nil && c.decision.Command != "" && record.Spec.Get("command") != c.decision.Command {
		s.broken("decision.other-command", c.begun, "event %d allows one command, and the record %s is of another", c.begun, record.ID)
	}
	// Only a person or a hook, asked about this one call, lets a command of a sealed session run
	// unsealed.
	if s.config.Sealed && c.decision != nil && c.decision.By != "answer" && c.decision.By != "hook" && record.Spec.Get("profile") != "sealed" {
		s.broken("decision.unsealed", c.begun, "event %d allows a command of a sealed session, and by the record %s it was not sealed", c.begun, record.ID)
	}
}

// recent reports whether the record of a process that ended then is sure to be kept.
func (s *scene) recent(t time.Time) bool { return s.options.Now.Sub(t) < kept }

// sameEnd compares what a call says of its command with the record.
func (p *processes) sameEnd(s *scene, e *stored.Event, b *body, record stored.Process) {
	said, ok := saidEnd(b.Result)
	if !ok {
		return
	}
	end := endOf(record)
	switch {
	case end.state == "running" || end.state == "starting":
		s.broken("process.told-early", e.Seq, "event %d tells that the command of record %s ended with code %d, and the record has no end", e.Seq, record.ID, said)
	case end.state != "lost" && end.code != said:
		s.broken("process.other-status", e.Seq, "event %d tells that the command of record %s ended with code %d; the record says %d", e.Seq, record.ID, said, end.code)
	}
}

// saidEnd is the exit code that a result tells of; false if it tells of none.
func saidEnd(raw json.RawMessage) (code int, ok bool) {
	var r struct {
		Contents []struct {
			Type   string `json:"type"`
			Result struct {
				ExitCode *int `json:"exit_code"`
			} `json:"result"`
		} `json:"contents"`
	}
	if json.Unmarshal(raw, &r) != nil || len(r.Contents) != 1 || r.Contents[0].Result.ExitCode == nil {
		return 0, false
	}
	return *r.Contents[0].Result.ExitCode, true
}

// An ending is what a journal says of a process so far.
type ending struct {
	state    string // starting, running, failed, exited, killed or lost
	code     int
	stopping bool
}

func endOf(p stored.Process) (end ending) {
	end.state = "starting"
	for _, entry := range p.Journal {
		switch entry.Kind {
		case "started":
			if end.state == "starting" {
				end.state = "running"
			}
		case "failed":
			end.state = "failed"
		case "stopping":
			end.stopping = true
		case "lost":
			if end.state == "starting" || end.state == "running" {
				end.state = "lost"
			}
		case "exited":
			if end.state != "starting" && end.state != "running" {
				continue
			}
			end.state = "exited"
			if entry.Get("killed") != "" {
				end.state = "killed"
			}
			status, _ := entry.Int("status")
			end.code = exitCode(status)
		}
	}
	return end
}

// exitCode is the code of a status as wait(2) gives it.
func exitCode(status int64) int {
	if signal := int(status & 0x7f); signal != 0 {
		return 128 + signal
	}
	return int(status >> 8 & 0xff)
}

// taskStarted looks at what goes on without its call.
func (p *processes) taskStarted(s *scene, e *stored.Event, b *body) {
	c := s.call(b.ToolCallID)
	switch {
	case s.tasks[b.Key] != nil:
		s.broken("task.twice", e.Seq, "event %d starts the task of the key %s, which event %d has started", e.Seq, b.Key, s.tasks[b.Key].started)
	case c == nil || c.key != b.Key:
		s.broken("task.unbegun", e.Seq, "event %d says that what was begun with the key %s goes on, and no call of this step was begun with it", e.Seq, b.Key)
	case !c.detaches:
		s.broken("task.attached", e.Seq, "event %d says that the call %s of %s goes on as a task, which it cannot", e.Seq, c.id, c.name)
	}
}

// statusOf is what a record makes of a task's status.
func (e ending) status() string {
	switch {
	case e.state == "exited" && e.code == 0:
		return "completed"
	case e.state == "exited":
		return "failed"
	case e.state == "killed", e.state == "lost":
		return e.state
	case e.state == "failed":
		return "none"
	}
	return "running"
}

// taskReported compares news of a task with the record of its process.
func (p *processes) taskReported(s *scene, e *stored.Event, b *body) {
	if !b.Ended || !s.own || s.tasks[b.Key] == nil || s.givenUp(b) {
		return
	}
	records, ok := s.records()
	if !ok {
		s.unknownRecord(e.Seq, stored.ProcessID(s.session.Name, b.Key))
		return
	}
	record, found, err := records.Process(stored.ProcessID(s.session.Name, b.Key))
	if err != nil || !found || record.Spec == nil {
		if b.Status != "none" && b.Status != "lost" && s.recent(e.Time) {
			s.broken("task.missing", e.Seq, "event %d reports a task as %s, and there is no record %s of it", e.Seq, b.Status, stored.ProcessID(s.session.Name, b.Key))
		}
		return
	}
	switch status := endOf(record).status(); {
	case status == b.Status:
	case status == "running":
		s.broken("task.ended-early", e.Seq, "event %d reports the task of record %s as %s, and the record has no end", e.Seq, record.ID, b.Status)
	default:
		s.broken("task.other-status", e.Seq, "event %d reports the task of record %s as %s; the record says %s", e.Seq, record.ID, b.Status, status)
	}
}

// end looks at the records of what is open when the log ends.
func (p *processes) end(s *scene) {
	records, ok := s.records()
	if !ok {
		return // a call that is open is only unfinished
	}
	for _, c := range openCalls(s.calls()) {
		if c.begun > s.session.Shared && runs(c.name) {
			p.openCall(s, c, records)
		}
	}
	for key, t := range s.tasks {
		record, found, err := records.Process(stored.ProcessID(s.session.Name, key))
		if err == nil && found && record.Spec == nil {
			s.halfMade(record.ID)
			s.broken("process.half-made", t.started, "the task of event %d has a record %s without what was asked for", t.started, record.ID)
		}
	}
}

// openCall looks at the record of a command whose call is open. That there is none
// yet is only unfinished.
func (p *processes) openCall(s *scene, c *call, records stored.ProcessRecords) {
	record, found, err := records.Process(stored.ProcessID(s.session.Name, c.key))
	switch {
	case err != nil:
		s.broken("process.unreadable", c.begun, "the record of the command that event %d has begun cannot be read: %v", c.begun, err)
	case found && record.Spec == nil:
		s.halfMade(record.ID)
		s.broken("process.half-made", c.begun, "the command of event %d has a record %s without what was asked for: its key is taken, and nothing can ever run under it", c.begun, record.ID)
	case found:
		p.sameCommand(s, c, record)
	}
}

// halfMade remembers that the owner of a folder without a spec is known.
func (s *scene) halfMade(id string) { s.half[id] = true }

// record decides I4 from the folder's side: what a process folder says is sound,
// and its owner exists.
func (a *auditor) record(p stored.Process) error {
	if p.Spec == nil {
		if !a.found.half[p.ID] {
			a.left(Finding{Rule: "process.ownerless", Process: p.ID, Text: fmt.Sprintf("the record %s does not say what was asked for, nor by whom", p.ID)})
		}
		return nil
	}
	broken, owner := a.breaker(p), p.Spec.Get("owner")
	if id := stored.ProcessID(owner, p.Spec.Get("key")); id != p.ID {
		broken("process.misnamed", "the record %s is that of the process %s", p.ID, id)
	}
	a.kept(p, a.journal(p, broken), broken)
	if strings.HasPrefix(owner, "mcp/shared-") { // an MCP server that sessions share
		return nil
	}
	exists, err := a.exists(strings.TrimPrefix(owner, "mcp/")) // an MCP server belongs to the session that uses it
	if err == nil && !exists {
		a.left(Finding{Rule: "process.orphaned", Session: owner, Process: p.ID, Text: fmt.Sprintf("the process of record %s belongs to the session %q, which does not exist", p.ID, owner)})
	}
	return err
}

// journal looks at the order of what happened to a process, and counts the entries by kind.
func (a *auditor) journal(p stored.Process, broken func(rule, format string, args ...any)) map[string]int {
	seen := make(map[string]int)
	for _, entry := range p.Journal {
		switch entry.Kind {
		case "started", "failed":
			if seen["claimed"] == 0 {
				broken("journal.unclaimed", "the record %s says %s before any keeper has claimed it", p.ID, entry.Kind)
			}
		case "exited":
			if seen["started"] == 0 {
				broken("journal.unstarted", "the record %s says how the command ended, and not that it was started", p.ID)
			}
		case "ended":
			if seen["exited"] == 0 && seen["lost"] == 0 {
				broken("journal.endless", "the record %s says that nothing is left of the command, and not how it ended", p.ID)
			}
			a.output(p, entry, seen["lost"] > 0, broken)
		}
		if seen[entry.Kind]++; seen[entry.Kind] == 2 && once[entry.Kind] {
			broken("journal.twice", "the record %s says %s twice", p.ID, entry.Kind)
		}
	}
	switch {
	case p.Claim != nil && p.Claim.Kind == "abandoned" && seen["started"] > 0:
		broken("process.abandoned", "the record %s was abandoned before anything ran, and says that the command was started", p.ID)
	case p.Claim == nil && seen["started"] > 0:
		broken("process.unclaimed", "the record %s says that the command was started, and nobody has claimed it", p.ID)
	}
	return seen
}

// once are the entries that a journal has at most once.
var once = map[string]bool{"claimed": true, "started": true, "failed": true, "exited": true, "lost": true, "ended": true}

// output compares what was kept of the output with what is there.
func (a *auditor) output(p stored.Process, end stored.Entry, lost bool, broken func(rule, format string, args ...any)) {
	kept, counted := end.Int("kept")
	for _, entry := range p.Journal {
		if entry.Kind == "dropped" {
			return
		}
	}
	if counted && !lost && kept != p.Output {
		broken("process.output", "the record %s says that %d bytes of output were kept, and there are %d", p.ID, kept, p.Output)
	}
}

// kept looks at a process that should be running. Without an engine, nobody has
// noticed yet that its keeper is gone.
func (a *auditor) kept(p stored.Process, seen map[string]int, broken func(rule, format string, args ...any)) {
	if seen["started"] == 0 || seen["exited"]+seen["lost"]+seen["ended"] > 0 || p.Claim == nil || stored.Alive(*p.Claim) || !a.report.Engine {
		return
	}
	switch {
	case stored.Elsewhere(*p.Claim):
		a.found.doubt(Finding{Rule: "process.keeper-gone", Session: p.Spec.Get("owner"), Process: p.ID, Text: fmt.Sprintf("the keeper of record %s is numbered in another container, so whether it lives cannot be seen from here", p.ID)})
	case a.stillRunning(p.ID):
		broken("process.keeper-gone", "the command of record %s has no keeper any more, and the engine has not recorded it as lost", p.ID)
	}
}

// stillRunning reports whether a process is said to be running a moment after the
// first such one was found: its keeper may have died just now.
func (a *auditor) stillRunning(id string) bool {
	if !a.waited {
		a.waited = true
		select {
		case <-time.After(time.Second):
		case <-a.ctx.Done():
		}
	}
	again, found, err := a.folder.Process(id)
	return err == nil && found && endOf(again).state == "running"
}
