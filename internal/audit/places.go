package audit

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/audit/stored"
)

// places are the records of processes in workspaces, by the identities of the workspaces.
type places map[string]stored.ProcessRecords

func openPlaces(dirs []string) (places, error) {
	all := make(places)
	for _, dir := range dirs {
		records, identity, err := stored.OpenWorkspace(dir)
		if err != nil {
			return nil, fmt.Errorf("audit: the records of a workspace cannot be read: %w", err)
		}
		all[identity] = records
	}
	return all, nil
}

// A place is the workspace of a session, if it is not the machine of the engine.
type place struct{ Name, Address, Identity string }

func (p *place) label() string {
	if p == nil {
		return "of this machine"
	}
	return cmp.Or(p.Name, p.Address)
}

// records returns where the processes of the session are recorded. It reports false if that
// is in a workspace whose data folder was not given.
func (s *scene) records() (stored.ProcessRecords, bool) {
	if s.config.Workspace == nil {
		return s.folder.ProcessRecords, true
	}
	records, ok := s.places[s.config.Workspace.Identity]
	return records, ok
}

// givenUp reports whether news say that a person has given up a task whose workspace was
// away. Its record there may go on, and end in any way.
func (s *scene) givenUp(news *body) bool {
	return s.config.Workspace != nil && news.Status == "lost" && strings.HasPrefix(news.Text, "A background task was given up:")
}

// unknownRecord notes that what an event says of a process cannot be compared with its
// record.
func (s *scene) unknownRecord(seq int64, id string) {
	s.unknown("process.elsewhere", seq, "the record %s of what event %d tells is in the workspace %s; name its data folder with --workspace", id, seq, s.config.Workspace.label())
}

// elsewhere looks at the records of processes in workspaces. Their owners may be sessions of
// other engines.
func (a *auditor) elsewhere(ctx context.Context) error {
	for _, records := range a.places {
		for id, err := range records.Processes() {
			if err != nil {
				return err
			}
			p, found, err := records.Process(id)
			if err != nil {
				a.found.add(Finding{Rule: "process.unreadable", Process: id, Text: fmt.Sprintf("the record %s cannot be read: %v", id, err)})
			}
			if err == nil && found && p.Spec != nil {
				a.report.Processes++
				a.journal(p, a.breaker(p))
				a.signals(p)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// breaker returns what notes that a rule is broken by the record of a process.
func (a *auditor) breaker(p stored.Process) func(rule, format string, args ...any) {
	return func(rule, format string, args ...any) {
		a.found.add(Finding{Rule: rule, Session: p.Spec.Get("owner"), Process: p.ID, Text: fmt.Sprintf(format, args...)})
	}
}
