package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A caller makes calls of the protocol.
type caller = *client.Client

// calls makes a call of the protocol, and answers with its result.
func calls[R any](s *Server, w http.ResponseWriter, r *http.Request, f func(caller) (R, error)) error {
	c, err := s.connected(r.Context())
	if err != nil {
		return err
	}
	result, err := f(c)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, result)
}

// A Log is a part of a log as it is stored.
type Log struct {
	Events []json.RawMessage `json:"events" doc:"the events as they are stored, hidden kinds too"`
	First  event.Seq         `json:"first" doc:"position of the first of them"`
	Next   event.Seq         `json:"next" doc:"position of the last of them"`
	Hash   string            `json:"hash,omitempty" doc:"hash of the chain there"`
	More   bool              `json:"more"`
	Damage string            `json:"damage,omitempty"`
}

// storedLog answers with a part of the log as it is stored.
func (s *Server) storedLog(w http.ResponseWriter, r *http.Request) error {
	after, err := number(r, "after", 0, 1<<62, 0)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", 1, maxPage, 500)
	if err != nil {
		return err
	}
	last, err := number(r, "last", 1, maxPage, 0)
	if err != nil {
		return err
	}
	if last > 0 {
		end, err := s.end(r.Context(), sessionID(r))
		if err != nil {
			return err
		}
		after, limit = max(0, int64(end)-last), last
	}
	p := api.ReadParams{SessionID: sessionID(r), After: event.Seq(after), Hash: r.URL.Query().Get("hash"), Max: int(limit)}
	return calls(s, w, r, func(c caller) (Log, error) {
		page, err := c.Read(r.Context(), p)
		return Log{page.Events, p.After + 1, page.Next, page.Hash, page.More, page.Damage}, err
	})
}

// A Verified is the outcome of a check of a session's chain.
type Verified struct {
	Events event.Seq   `json:"events"`
	Hash   string      `json:"hash"`
	Damage *api.Damage `json:"damage" doc:"null if the chain is whole"`
}

func (s *Server) verify(w http.ResponseWriter, r *http.Request) error {
	return calls(s, w, r, func(c caller) (Verified, error) {
		v, err := c.Verify(r.Context(), sessionID(r))
		return Verified{v.Events, v.Hash, v.Damage}, err
	})
}

func (s *Server) context(w http.ResponseWriter, r *http.Request) error {
	return calls(s, w, r, func(c caller) (api.ContextResult, error) { return c.Context(r.Context(), sessionID(r)) })
}

// Servers is the MCP servers of a session.
type Servers struct {
	Servers []event.MCPServerState `json:"servers"`
}

func (s *Server) servers(w http.ResponseWriter, r *http.Request) error {
	return calls(s, w, r, func(c caller) (Servers, error) {
		list, err := c.MCPServers(r.Context(), sessionID(r))
		return Servers{filled(list.Servers)}, err
	})
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) error {
	return calls(s, w, r, func(c caller) (api.ModelsResult, error) {
		list, err := c.Models(r.Context())
		return api.ModelsResult{Models: filled(list)}, err
	})
}

func (s *Server) cost(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	p := api.CostParams{SessionID: event.SessionID(q.Get("session")), Since: q.Get("since")}
	if by := q.Get("by"); by != "" {
		p.By = strings.Split(by, ",")
	}
	return calls(s, w, r, func(c caller) (api.CostResult, error) { return c.Cost(r.Context(), p) })
}

// remembers refuses requests about memory where there is none.
func (s *Server) remembers(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Memory == nil {
			return &Problem{Status: http.StatusNotImplemented, Code: "unsupported", Detail: "this server remembers nothing"}
		}
		return h(w, r)
	}
}

func (s *Server) memory(w http.ResponseWriter, r *http.Request) error {
	books, err := s.opts.Memory.Show(r.Context(), api.MemoryParams{Cwd: r.URL.Query().Get("folder")})
	if err != nil {
		return err
	}
	if books.Books == nil {
		books.Books = []api.MemoryBook{}
	}
	return reply(w, http.StatusOK, books)
}

// memoryPage answers with one page of memory and its text.
func (s *Server) memoryPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	user, err := flag(r, "user")
	if err != nil {
		return err
	}
	version, err := number(r, "version", 1, 1<<31, 0)
	if err != nil {
		return err
	}
	if q.Get("page") == "" {
		return invalid("page: it is missing")
	}
	found, err := s.opts.Memory.Show(r.Context(), api.MemoryParams{Cwd: q.Get("folder"), Page: q.Get("page"), User: user, Version: int(version)})
	if err != nil {
		return notFound(err.Error())
	}
	for _, b := range found.Books {
		for _, p := range b.Pages {
			return reply(w, http.StatusOK, p)
		}
	}
	return notFound("there is no page " + q.Get("page"))
}

func (s *Server) searchMemory(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 1, 1000, 50)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if q.Get("q") == "" {
		return invalid("q: it is missing")
	}
	found, err := s.opts.Memory.Search(r.Context(), api.MemorySearchParams{Cwd: q.Get("folder"), Query: q.Get("q"), Max: int(limit)})
	if err != nil {
		return err
	}
	if found.Matches == nil {
		found.Matches = []api.MemoryMatch{}
	}
	return reply(w, http.StatusOK, found)
}

func (s *Server) rules(w http.ResponseWriter, r *http.Request) error {
	return calls(s, w, r, func(c caller) (api.RulesResult, error) { return c.Rules(r.Context()) })
}

// A Revoke takes back a rule.
type Revoke struct {
	Rule     string `json:"rule" doc:"text of the rule"`
	Location string `json:"location,omitempty" doc:"place of the rule; one that holds everywhere if missing"`
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	var in Revoke
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	c, err := s.connected(r.Context())
	if err != nil {
		return err
	}
	found, err := c.RevokeRule(r.Context(), api.RevokeParams{Location: in.Location, Rule: in.Rule})
	if err == nil && !found {
		err = notFound("there is no such rule")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) jobs(w http.ResponseWriter, r *http.Request) error {
	list, err := s.opts.Memory.Jobs(r.Context(), event.SessionID(r.URL.Query().Get("session")))
	if err != nil {
		return err
	}
	if list.Jobs == nil {
		list.Jobs = []api.Job{}
	}
	return reply(w, http.StatusOK, list)
}

func (s *Server) retryJob(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, maxBody, &struct{}{}); err != nil {
		return err
	}
	if err := s.opts.Memory.Retry(r.Context(), r.PathValue("job")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A Match is a message that a search has found.
type Match struct {
	Session  Session    `json:"session"`
	Position event.Seq  `json:"position"`
	Type     event.Type `json:"type"`
	Line     string     `json:"line"`
}

// Found is the result of a search.
type Found struct {
	Matches []Match `json:"matches"`
	More    bool    `json:"more,omitempty"`
	Behind  int     `json:"behind,omitempty" doc:"number of sessions that are not in the index yet: search again"`
}

func (s *Server) search(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 1, 1000, 100)
	if err != nil {
		return err
	}
	p := api.SearchParams{Text: r.URL.Query().Get("q"), Max: int(limit)}
	return calls(s, w, r, func(c caller) (Found, error) {
		found, err := c.Search(r.Context(), p)
		list := Found{Matches: []Match{}, More: found.More, Behind: found.Behind}
		for _, m := range found.Matches {
			if info, err := s.host.Info(r.Context(), m.Session.SessionID); err == nil {
				list.Matches = append(list.Matches, Match{s.plain(info), m.Seq, m.Type, m.Line})
			}
		}
		return list, err
	})
}

func (s *Server) workspaces(w http.ResponseWriter, r *http.Request) error {
	return calls(s, w, r, func(c caller) (api.WorkspacesResult, error) { return c.Workspaces(r.Context()) })
}

// A Status is what the server does.
type Status struct {
	Version  string       `json:"version"`
	Started  string       `json:"started"`
	Time     string       `json:"time" doc:"the server's clock"`
	Sessions StatusCounts `json:"sessions"`
	Open     int          `json:"questions" doc:"number of open questions"`
}

// StatusCounts counts sessions by what they do.
type StatusCounts struct {
	NeedsYou   int `json:"needsYou"`
	Running    int `json:"running"`
	Parked     int `json:"parked"`
	Unfinished int `json:"unfinished"`
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	st := Status{Version: s.opts.Version, Started: event.FormatTime(s.started), Time: event.FormatTime(time.Now())}
	for one, err := range s.host.List(r.Context(), eventlog.Query{Busy: true}) {
		if err != nil {
			return err
		}
		st.Open += one.Info.Questions
		switch s.state(one) {
		case stateNeedsYou:
			st.Sessions.NeedsYou++
		case stateRunning:
			st.Sessions.Running++
		case stateParked:
			st.Sessions.Parked++
		case stateUnfinished:
			st.Sessions.Unfinished++
		}
	}
	return reply(w, http.StatusOK, st)
}
