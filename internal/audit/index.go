package audit

import (
	"context"
	"encoding/json"
	"strconv"
)

// index compares what the index says of a session with what its log says. The index
// only saves reading the log: whatever it says is in the log, too.
func (a *auditor) index(s *scene) {
	row := s.session
	var info struct {
		Name      string `json:"name"`
		Dir       string `json:"dir"`
		Client    string `json:"client"`
		Active    bool   `json:"active"`
		Questions int    `json:"questions"`
		Tasks     int    `json:"tasks"`
		Waiting   bool   `json:"waiting"`
		Workspace *place `json:"workspace"`
		Watch     []watched
		Parked    json.RawMessage `json:"parked"`
	}
	end := max(row.Seq, 1)
	if err := json.Unmarshal(row.Info, &info); err != nil {
		s.broken("index.malformed", end, "the entry of the session in the index cannot be read: %v", err)
		return
	}
	if info.Questions != s.questions() {
		s.broken("index.questions", end, "the index counts %d open questions, the log has %d", info.Questions, s.questions())
	}
	if info.Tasks != len(s.tasks) {
		s.broken("index.tasks", end, "the index counts %d tasks, the log has %d", info.Tasks, len(s.tasks))
	}
	if info.Active != s.active() {
		s.broken("index.active", end, "the index says that the session has something left to do: %v; the log says %v", info.Active, s.active())
	}
	// A row that names its tasks need not be read for them. One of an older version
	// says neither that nor whether the session only waits.
	if due := info.Active && !info.Waiting || info.Tasks > 0; row.Active != due {
		s.broken("index.due", end, "the index marks the session as due: %v; its entry says %v", row.Active, due)
	}
	if info.Waiting && !s.waits() {
		s.broken("index.waiting", end, "the index says that the session only waits for an answer, so no engine would go on with it; the log says that something is to be done")
	}
	if len(info.Parked) > 0 && (s.turn == nil || !s.turn.parked) {
		s.broken("index.parked", end, "the index says that the session waits for its model, so that no engine would go on with it before; the log does not")
	}
	if at, there := s.config.Workspace, info.Workspace; (at == nil) != (there == nil) || at != nil && *at != *there {
		s.broken("index.workspace", end, "the index says that the session works in the workspace %s, the log says %s", there.label(), at.label())
	}
	s.watch(info.Watch, end)
	if info.Name != s.name {
		s.broken("index.name", end, "the index calls the session %q, the log %q", info.Name, s.name)
	}
	if info.Dir != s.config.WorkingDirectory {
		s.broken("index.directory", end, "the index says that the session works in %q, the log says %q", info.Dir, s.config.WorkingDirectory)
	}
	if info.Client != s.config.ClientName {
		s.broken("index.client", end, "the index names the client %q, the log %q", info.Client, s.config.ClientName)
	}
	if row.Created.After(row.Modified) {
		s.broken("index.times", end, "the index says that the session was changed before it was made")
	}
	if s.active() || len(s.tasks) > 0 {
		a.report.Unfinished++
	}
}

// A watched task is one that the index names.
type watched struct {
	Key  string `json:"key"`
	Stop bool   `json:"stop"`
}

// watch compares the tasks that the index names with those of the log. The index of an older
// version names none.
func (s *scene) watch(list []watched, end int64) {
	named := make(map[string]watched)
	for _, t := range list {
		if named[t.Key] = t; s.tasks[t.Key] == nil {
			s.broken("index.watch", end, "the index names the task %s, which the log does not have", t.Key)
		}
	}
	for key, t := range s.tasks {
		switch w, is := named[key]; {
		case len(list) == 0:
		case !is:
			s.broken("index.watch", end, "the index does not name the task %s, so that nobody would hear of its end", key)
		case !t.stopped.IsZero() && !w.Stop:
			s.broken("index.watch", end, "the index does not say that the task %s is to be ended, so that an engine that starts would not end it", key)
		}
	}
}

// waits reports whether nothing can be done in the session until somebody answers,
// resumes it or lets the queue go. A call that was begun has to be found again.
func (s *scene) waits() bool {
	for _, c := range s.calls() {
		if c.begun > 0 && c.done == 0 && c.question == "" && !c.held {
			return s.suspended
		}
	}
	return s.suspended || s.questions() > 0 || len(s.exchanges) > 0 || len(s.queue) > 0
}

// jobs looks at the upkeep that is to be done for a session.
func (a *auditor) jobs(ctx context.Context, s *scene) error {
	list, err := a.folder.Jobs(ctx, s.session.Row)
	for _, j := range list {
		if j.First < 0 || j.First > j.Last || j.Last > s.session.Seq {
			s.broken("job.range", max(j.First, 1), "the job %s is about the events %d to %d, and the log has %d", j.ID, j.First, j.Last, s.session.Seq)
		}
	}
	return err
}

// strays looks for what belongs to sessions that the index does not have.
func (a *auditor) strays(ctx context.Context) error {
	list, err := a.folder.Strays(ctx)
	for _, stray := range list {
		if stray.Name != "" {
			a.found.add(Finding{Rule: "stray." + stray.Table, Session: stray.Name, Text: "there are " + stray.Table + " of the session " + stray.Name + ", which the index does not have"})
			continue
		}
		a.found.add(Finding{Rule: "stray." + stray.Table, Session: "#" + number(stray.Row), Seq: stray.First, Text: "there are " + stray.Table + " of the session " + sessionOf(stray.Row) + ", which the index does not have"})
	}
	return err
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
