package rest

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/attach"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
)

// The states of a session.
const (
	stateNeedsYou   = "needs_you"
	stateRunning    = "running"
	stateParked     = "parked"
	stateUnfinished = "unfinished"
	stateDamaged    = "damaged"
	stateIdle       = "idle"
)

// A Session is a session in a list.
type Session struct {
	ID           event.SessionID  `json:"id"`
	Name         string           `json:"name,omitempty"`
	Summary      string           `json:"summary,omitempty" doc:"first line of the first message"`
	Title        string           `json:"title" doc:"the name, or the summary, or the id"`
	State        string           `json:"state" enum:"needs_you,running,parked,unfinished,damaged,idle"`
	Created      string           `json:"created,omitempty"`
	Modified     string           `json:"modified,omitempty" doc:"time of the last event"`
	Position     event.Seq        `json:"position" doc:"position of the last event"`
	Hash         string           `json:"hash,omitempty" doc:"hash of the chain there"`
	Questions    int              `json:"questions" doc:"number of open questions"`
	WaitingSince string           `json:"waitingSince,omitempty" doc:"time at which the oldest open question was asked"`
	ParkedUntil  string           `json:"parkedUntil,omitempty" doc:"time at which the model is asked again"`
	Tasks        int              `json:"tasks" doc:"number of commands in the background"`
	Folder       string           `json:"folder,omitempty"`
	Repository   string           `json:"repository,omitempty"`
	Branch       string           `json:"branch,omitempty"`
	Client       string           `json:"client,omitempty"`
	Parent       event.SessionID  `json:"parent,omitempty" doc:"session that it was forked from"`
	Workspace    *event.Workspace `json:"workspace,omitempty"`
	Damage       string           `json:"damage,omitempty"`
	Cost         *Cost            `json:"cost,omitempty"`
	MessageID    string           `json:"messageId,omitempty" doc:"id of the message that was sent with the creation"`
}

// A Cost is what the model requests of a session and its agents have cost.
type Cost struct {
	USD              *float64 `json:"usd" doc:"null if no price is known"`
	Requests         int64    `json:"requests"`
	Unpriced         int64    `json:"unpricedRequests"`
	InputTokens      int64    `json:"inputTokens"`
	OutputTokens     int64    `json:"outputTokens"`
	CacheReadTokens  int64    `json:"cacheReadTokens"`
	CacheWriteTokens int64    `json:"cacheWriteTokens"`
}

// A Queued is a message that waits.
type Queued struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Mode string `json:"mode" enum:"queue,steer,interrupt"`
}

// A Range is a range of positions.
type Range struct {
	From event.Seq `json:"from"`
	To   event.Seq `json:"to"`
}

// A Detail is a session with all that is known of it.
type Detail struct {
	Session
	Model     string       `json:"model,omitempty"`
	Mode      string       `json:"mode,omitempty"`
	Active    bool         `json:"active"`
	Totals    event.Totals `json:"totals"`
	Queue     []Queued     `json:"queue"`
	Open      []Question   `json:"openQuestions"`
	Request   string       `json:"request,omitempty" doc:"the last message of a person"`
	Answer    string       `json:"lastAnswer,omitempty" doc:"the last text of the model"`
	TakenBack []Range      `json:"takenBack" doc:"ranges of events that were rewound"`
}

// plain returns what the index knows of a session.
func (s *Server) plain(of eventlog.Session) Session {
	v := Session{
		ID: of.ID, Name: of.Info.Name, Summary: of.Info.Summary, State: s.state(of), Position: of.End.Seq, Questions: of.Info.Questions, Tasks: of.Info.Tasks,
		Title: cmp.Or(of.Info.Name, of.Info.Summary, string(of.ID)), Folder: of.Info.Dir, Client: of.Info.Client, Parent: of.Parent, Workspace: of.Info.Workspace,
	}
	if !of.Created.IsZero() {
		v.Created, v.Modified, v.Hash = event.FormatTime(of.Created), event.FormatTime(of.Modified), hex.EncodeToString(of.End.Hash[:])
	}
	if p := of.Info.Parked; p != nil {
		v.ParkedUntil = event.FormatTime(time.UnixMilli(p.At + p.WaitMs))
	}
	if of.Damage != nil {
		v.Damage = of.Damage.Error()
	}
	return v
}

func (s *Server) state(of eventlog.Session) string {
	switch {
	case of.Damage != nil:
		return stateDamaged
	case of.Info.Questions > 0:
		return stateNeedsYou
	case of.Info.Parked != nil:
		return stateParked
	case of.Info.Active && !of.Info.Waiting && !s.host.Work.GoesOn(of.ID):
		return stateUnfinished
	case of.Info.Active:
		return stateRunning
	}
	return stateIdle
}

// described returns a session with what it has cost and since when it waits.
func (s *Server) described(ctx context.Context, of eventlog.Session) (Session, error) {
	v := s.plain(of)
	cost, err := s.costOf(ctx, of.ID)
	v.Cost = cost
	if err == nil && v.State == stateNeedsYou {
		v.WaitingSince, err = s.waitingSince(ctx, of.ID)
	}
	return v, err
}

func (s *Server) costOf(ctx context.Context, id event.SessionID) (*Cost, error) {
	sums, _, err := s.host.Ledger.Costs(ctx, eventlog.CostQuery{Session: id})
	if err != nil {
		return nil, err
	}
	c := &Cost{}
	for _, sum := range sums {
		c.Requests, c.Unpriced = c.Requests+sum.Requests, c.Unpriced+sum.Unpriced
		c.InputTokens, c.OutputTokens = c.InputTokens+sum.Input, c.OutputTokens+sum.Output
		c.CacheReadTokens, c.CacheWriteTokens = c.CacheReadTokens+sum.CacheRead, c.CacheWriteTokens+sum.CacheWrite
		if sum.Unpriced < sum.Requests {
			usd := sum.USD()
			if c.USD != nil {
				usd += *c.USD
			}
			c.USD = &usd
		}
	}
	return c, nil
}

// waitingSince returns when the oldest open question of a session was asked.
func (s *Server) waitingSince(ctx context.Context, id event.SessionID) (string, error) {
	st, err := s.host.Status(ctx, id)
	s.host.Unload(id)
	if err != nil {
		return "", err
	}
	since := ""
	for _, e := range st.Questions {
		if head, err := e.Head(); err == nil && (since == "" || event.FormatTime(head.Time) < since) {
			since = event.FormatTime(head.Time)
		}
	}
	return since, nil
}

// Sessions is a page of a list of sessions.
type Sessions struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"nextCursor,omitempty" doc:"continues the list; missing at its end"`
}

// protocolStates are the states of the protocol's list that have the sessions of a state.
var protocolStates = map[string]string{
	stateNeedsYou: api.StateWaiting, stateRunning: api.StateActive, stateParked: api.StateActive,
	stateUnfinished: api.StateUnfinished, stateDamaged: api.StateDamaged, stateIdle: api.StateIdle, "": "",
}

// list lists sessions, the last modified first.
func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := number(r, "limit", 1, 200, 50)
	if err != nil {
		return err
	}
	unlisted, err := flag(r, "unlisted")
	if err != nil {
		return err
	}
	state, known := protocolStates[q.Get("state")]
	if !known {
		return invalid("state is %q: use needs_you, running, parked, unfinished, damaged or idle", q.Get("state"))
	}
	c, err := s.connected(r.Context())
	if err != nil {
		return err
	}
	found, err := c.ListPage(r.Context(), api.ListParams{Limit: int(limit), Cursor: q.Get("cursor"), Filter: api.Filter{
		State: state, Cwd: q.Get("folder"), Text: q.Get("text"), IDPrefix: q.Get("idPrefix"), Repository: q.Get("repository"), Branch: q.Get("branch"),
		ModifiedSince: q.Get("since"), ModifiedBefore: q.Get("before"), Unlisted: unlisted,
	}})
	if err != nil {
		return err
	}
	page := Sessions{Sessions: []Session{}, Next: found.NextCursor}
	for _, one := range found.Sessions {
		info, err := s.host.Info(r.Context(), one.SessionID)
		if errors.Is(err, session.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		v, err := s.described(r.Context(), info)
		if err != nil && v.State != stateDamaged {
			return err
		}
		if want := q.Get("state"); want == "" || want == v.State {
			page.Sessions = append(page.Sessions, v)
		}
	}
	return reply(w, http.StatusOK, page)
}

// show answers with all that is known of a session.
func (s *Server) show(w http.ResponseWriter, r *http.Request) error {
	d, err := s.detail(r.Context(), sessionID(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, d)
}

func (s *Server) detail(ctx context.Context, id event.SessionID) (Detail, error) {
	info, err := s.host.Info(ctx, id)
	if err != nil {
		return Detail{}, err
	}
	d := Detail{Queue: []Queued{}, Open: []Question{}, TakenBack: []Range{}}
	if d.Session, err = s.described(ctx, info); err != nil && d.State != stateDamaged {
		return d, err
	}
	d.place(ctx, s)
	if d.State == stateDamaged {
		return d, nil
	}
	st, err := s.host.Status(ctx, id)
	if err != nil {
		return d, err
	}
	d.Model, d.Mode, d.Active, d.Totals = st.Model, st.Mode, st.Active, st.Totals
	for _, in := range st.Queue {
		d.Queue = append(d.Queue, Queued{in.InputID, in.Prompt, modeNames[in.Mode]})
	}
	for _, h := range st.TakenBack() {
		d.TakenBack = append(d.TakenBack, Range{h.From, h.To})
	}
	if d.Open, err = s.questionsOf(ctx, id); err != nil {
		return d, err
	}
	d.Request, d.Answer, err = s.lastWords(ctx, id, st)
	return d, err
}

// place adds what git says of the folder of a session, if it is on this machine.
func (v *Session) place(ctx context.Context, s *Server) {
	if v.Folder != "" && v.Workspace == nil && s.opts.Checkout != nil {
		v.Repository, v.Branch = s.opts.Checkout(ctx, v.Folder)
	}
}

// lookBack is how many events are searched for the last words of a session.
const lookBack = 4096

// lastWords returns the last message of a person and the last text of the model.
func (s *Server) lastWords(ctx context.Context, id event.SessionID, st session.Status) (request, answer string, err error) {
	for before, length := st.End.Seq+1, event.Seq(128); before > 1 && st.End.Seq-before < lookBack && request == ""; length *= 2 {
		from := max(1, before-length)
		asked, said := "", ""
		for e, err := range s.host.Log.Events(ctx, id, from-1) {
			if err != nil {
				return request, answer, err
			}
			if e.Seq >= before {
				break
			}
			if st.Hides(e.Seq) {
				continue
			}
			switch e.Type {
			case event.UserMessage:
				if d, err := event.As[event.UserMessageData](e); err == nil && (d.Source == "" || d.Source == "user") {
					asked, said = d.Content, ""
				}
			case event.AssistantMessage:
				if d, err := event.As[event.AssistantMessageData](e); err == nil && d.Content != "" {
					said = d.Content
				}
			}
		}
		request, answer, before = asked, cmp.Or(answer, said), from
	}
	return request, answer, nil
}

// A Create is the request for a new session.
type Create struct {
	ID              event.SessionID `json:"id,omitempty"`
	Name            string          `json:"name,omitempty"`
	Folder          string          `json:"folder,omitempty" doc:"working directory; that of the server if missing"`
	Model           string          `json:"model,omitempty"`
	ReasoningEffort string          `json:"reasoningEffort,omitempty"`
	Workspace       string          `json:"workspace,omitempty"`
	Sealed          bool            `json:"sealed,omitempty"`
	Approve         string          `json:"approve,omitempty" enum:"workspace,all"`
	MaxSteps        int             `json:"maxSteps,omitempty"`
	Message         *Message        `json:"message,omitempty" doc:"is sent at once"`
}

// check refuses what no session can have. It returns the attachments of the message in the form
// of the protocol.
func (in Create) check() (files []json.RawMessage, err error) {
	switch {
	case in.Folder != "" && !filepath.IsAbs(in.Folder) && !path.IsAbs(in.Folder):
		return nil, invalid("folder: %q is not absolute: it would depend on where the server was started", in.Folder)
	case in.MaxSteps < 0:
		return nil, invalid("maxSteps is %d: give a positive number", in.MaxSteps)
	case in.Message == nil:
		return nil, nil
	}
	return in.Message.check()
}

// isHidden reports whether a character cannot be seen, or changes how others are shown.
func isHidden(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) || r == utf8.RuneError
}

// create makes a session. Its questions wait for people: somebody can answer them here.
func (s *Server) create(w http.ResponseWriter, r *http.Request) error {
	var in Create
	if err := decode(w, r, maxMessage, &in); err != nil {
		return err
	}
	files, err := in.check()
	if err != nil {
		return err
	}
	derived, sameKey := newSession(r.Context())
	id, err := s.newID(r.Context(), in.ID, derived, sameKey)
	if err != nil {
		return err
	}
	if _, err := s.host.Info(r.Context(), id); err == nil && id == derived {
		// the answer to the same request was lost
	} else if err == nil {
		return conflict("conflict", "there is a session %s already", id)
	} else if !errors.Is(err, session.ErrNotFound) {
		return err
	} else if err := s.open(r.Context(), id, in); err != nil {
		return err
	}
	sent := ""
	if in.Message != nil {
		if sent, err = s.deliver(r.Context(), id, *in.Message, files, cmp.Or(engineKey(r.Context(), false), "http/"+string(id))); err != nil {
			return err
		}
	}
	info, err := s.host.Info(r.Context(), id)
	if err != nil {
		return err
	}
	v, err := s.described(r.Context(), info)
	if err != nil {
		return err
	}
	v.MessageID = sent
	w.Header().Set("Location", Prefix+"/sessions/"+url.PathEscape(string(id)))
	return reply(w, http.StatusCreated, v)
}

// newID returns the id of a session to be made.
func (s *Server) newID(ctx context.Context, given, derived event.SessionID, sameKey string) (event.SessionID, error) {
	switch {
	case strings.ContainsFunc(string(given), isHidden):
		return "", invalid("id: %q has a character that cannot be seen", given)
	case given != "" && (strings.ContainsAny(string(given), "/,@\x00") || len(given) > 200 || given == "." || given == ".."):
		return "", invalid("id: %q has a character that cannot be in a path, or is too long", given)
	case given != "":
		return given, nil
	case derived == "":
		return event.SessionID(event.NewID()), nil
	}
	return derived, s.refuseOther(ctx, derived, sameKey)
}

// refuseOther refuses a key with which another session was made.
func (s *Server) refuseOther(ctx context.Context, derived event.SessionID, sameKey string) error {
	for other, err := range s.host.List(ctx, eventlog.Query{IDPrefix: sameKey}) {
		if err != nil {
			return err
		}
		if other.ID != derived {
			return keyReused("given")
		}
	}
	return nil
}

// open makes a session on a connection of its own, and leaves it: the work does not need
// the connection.
func (s *Server) open(ctx context.Context, id event.SessionID, in Create) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Create(ctx, api.OpenParams{
		SessionID: id, Model: in.Model, ReasoningEffort: in.ReasoningEffort, WorkingDirectory: in.Folder, ClientName: api.ClientHTTP, Streaming: true,
		RequestPermission: true, RequestUserInput: true, RequestElicitation: true, RequestExitPlan: true,
		Abide: &api.OpenAbide{Name: in.Name, Approve: in.Approve, MaxSteps: in.MaxSteps, Workspace: in.Workspace, Sealed: in.Sealed},
	})
	return err
}

// A Patch changes a session.
type Patch struct {
	Name            *string `json:"name,omitempty"`
	Model           *string `json:"model,omitempty"`
	ReasoningEffort string  `json:"reasoningEffort,omitempty" doc:"only with model"`
	Mode            *string `json:"mode,omitempty" enum:"interactive,plan,autopilot"`
}

// change changes the name, the model or the mode of a session.
func (s *Server) change(w http.ResponseWriter, r *http.Request) error {
	var in Patch
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	if in.Model == nil && in.ReasoningEffort != "" {
		return invalid("reasoningEffort: give the model as well")
	}
	c, err := s.connected(r.Context())
	if err != nil {
		return err
	}
	id := sessionID(r)
	if in.Name != nil {
		if err := c.Rename(r.Context(), id, *in.Name); err != nil {
			return err
		}
	}
	if in.Model != nil {
		if err := c.SwitchModel(r.Context(), api.SwitchParams{SessionID: id, ModelID: *in.Model, ReasoningEffort: in.ReasoningEffort}); err != nil {
			return err
		}
	}
	if in.Mode != nil {
		if err := c.SetMode(r.Context(), id, *in.Mode); err != nil {
			return err
		}
	}
	return s.show(w, r)
}

// remove deletes a session.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) error {
	if err := s.host.Delete(r.Context(), sessionID(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A Fork is the request for a session that shares the events of another.
type Fork struct {
	At     event.Seq `json:"at,omitempty" doc:"last position that is included; the end if missing"`
	Before string    `json:"beforeEvent,omitempty" doc:"id of the first event that is not included, instead of at"`
	Name   string    `json:"name,omitempty"`
}

func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var in Fork
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	at, err := s.forkAt(r.Context(), sessionID(r), in)
	if err != nil {
		return err
	}
	derived, sameKey := newSession(r.Context())
	if derived != "" {
		if err := s.refuseOther(r.Context(), derived, sameKey); err != nil {
			return err
		}
	}
	id := derived
	if _, err := s.host.Info(r.Context(), derived); derived == "" || errors.Is(err, session.ErrNotFound) {
		if id, err = s.host.Fork(r.Context(), derived, sessionID(r), at, in.Name); err != nil {
			return err
		}
	}
	info, err := s.host.Info(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Location", Prefix+"/sessions/"+url.PathEscape(string(id)))
	return reply(w, http.StatusCreated, s.plain(info))
}

// forkAt returns the last position that a fork has; zero is the end.
func (s *Server) forkAt(ctx context.Context, id event.SessionID, in Fork) (event.Seq, error) {
	switch {
	case in.At < 0 || in.At > 0 && in.Before != "":
		return 0, invalid("at: give a position, or beforeEvent alone")
	case in.Before == "":
		return in.At, nil
	}
	for e, err := range s.host.Log.Events(ctx, id, 0) {
		if err != nil {
			return 0, err
		}
		if head, err := e.Head(); err == nil && head.ID == in.Before {
			if e.Seq == 1 {
				return 0, invalid("beforeEvent: it is the first event, so that nothing would be left")
			}
			return e.Seq - 1, nil
		}
	}
	return 0, notFound(fmt.Sprintf("session %s has no event %s", id, in.Before))
}

// A Rewind takes back an event and all after it.
type Rewind struct {
	Event string `json:"event" doc:"id of the first event to take back"`
	Files *bool  `json:"files,omitempty" doc:"false leaves the files as they are"`
}

func (s *Server) rewind(w http.ResponseWriter, r *http.Request) error {
	var in Rewind
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	p := api.RewindParams{SessionID: sessionID(r), EventID: in.Event, Mode: api.ConversationAndFiles}
	if in.Files != nil && !*in.Files {
		p.Mode = api.ConversationOnly
	}
	return calls(s, w, r, func(c caller) (api.RewindResult, error) { return c.Rewind(r.Context(), p) })
}

func (s *Server) previewRewind(w http.ResponseWriter, r *http.Request) error {
	var in Rewind
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	p := api.RewindParams{SessionID: sessionID(r), EventID: in.Event}
	return calls(s, w, r, func(c caller) (api.RewindPreview, error) { return c.PreviewRewind(r.Context(), p) })
}

// export writes all events, one a line, as they are stored.
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := s.host.Log.Export(r.Context(), sessionID(r), Patient(w)); err != nil {
		s.log.Error("a session could not be exported", "session", sessionID(r), "err", err)
		panic(http.ErrAbortHandler) // a part must not look like the whole
	}
	return nil
}

// A Message is what a person says.
type Message struct {
	Text        string       `json:"text"`
	Mode        string       `json:"mode,omitempty" enum:"queue,steer,interrupt" doc:"queue: after the turn; steer: before the next model request; interrupt: now, and the turn is stopped"`
	Attachments []Attachment `json:"attachments,omitempty"`
}

// An Attachment is a file with a message.
type Attachment struct {
	Name   string `json:"name"`
	Base64 []byte `json:"base64" doc:"an image, a PDF document or a text, in base64"`
}

// Sent is the answer to a message.
type Sent struct {
	SessionID event.SessionID `json:"sessionId"`
	MessageID string          `json:"messageId"`
}

// modes are the modes of the protocol, and modeNames the other way round.
var (
	modes     = map[string]string{"": event.ModeQueue, "queue": event.ModeQueue, "steer": event.ModeSteer, "interrupt": event.ModeInterrupt}
	modeNames = map[string]string{event.ModeQueue: "queue", event.ModeSteer: "steer", event.ModeInterrupt: "interrupt"}
)

// send gives a session a message. It is stored when the answer goes out.
func (s *Server) send(w http.ResponseWriter, r *http.Request) error {
	var in Message
	if err := decode(w, r, maxMessage, &in); err != nil {
		return err
	}
	files, err := in.check()
	if err != nil {
		return err
	}
	id, err := s.deliver(r.Context(), sessionID(r), in, files, engineKey(r.Context(), false))
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, Sent{sessionID(r), id})
}

// check refuses what no session can be told. It returns the attachments in the form of the
// protocol.
func (in Message) check() (files []json.RawMessage, err error) {
	if _, known := modes[in.Mode]; !known {
		return nil, invalid("mode is %q: use queue, steer or interrupt", in.Mode)
	}
	if strings.TrimSpace(in.Text) == "" && len(in.Attachments) == 0 {
		return nil, invalid("text: it is empty")
	}
	return attachments(in.Attachments)
}

// deliver gives a session a message that was checked, and returns the message's id.
func (s *Server) deliver(ctx context.Context, id event.SessionID, in Message, files []json.RawMessage, key string) (string, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return "", err
	}
	sent, err := c.Send(ctx, api.SendParams{SessionID: id, Prompt: in.Text, Mode: modes[in.Mode], Attachments: files, Key: key, RequireAttachments: len(files) > 0})
	if err == nil && key != "" {
		err = s.checkSent(ctx, id, sent, in)
	}
	return sent, err
}

func attachments(list []Attachment) ([]json.RawMessage, error) {
	var blobs []attach.Blob
	for i, a := range list {
		b, err := attach.New(a.Name, a.Base64)
		if err != nil {
			return nil, invalid("attachments[%d]: %v", i, err)
		}
		blobs = append(blobs, b)
	}
	files, err := attach.Encode(blobs)
	if err != nil {
		return nil, invalid("attachments: %v", err)
	}
	return files, nil
}

// checked is how many of the last events are searched for a message that was just accepted.
const checked = 200

// checkSent refuses a message whose key belongs to another one: the engine has returned
// the id of that one, and has accepted nothing.
func (s *Server) checkSent(ctx context.Context, id event.SessionID, sent string, in Message) error {
	info, err := s.host.Info(ctx, id)
	if err != nil {
		return err
	}
	for e, err := range s.host.Log.Events(ctx, id, max(0, info.End.Seq-checked)) {
		if err != nil {
			return err
		}
		if e.Type != event.InputAccepted || !strings.Contains(string(e.Bytes), sent) {
			continue
		}
		if d, err := event.As[event.InputAcceptedData](e); err == nil && d.InputID == sent && d.Prompt != in.Text {
			return keyReused("given")
		}
	}
	return nil
}

// unqueue takes a message back that waits.
func (s *Server) unqueue(w http.ResponseWriter, r *http.Request) error {
	found := false
	_, err := s.host.Queues.Change(r.Context(), sessionID(r), engineKey(r.Context(), true), func(q *session.Queue) error {
		found = q.Remove(r.PathValue("message"))
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		return conflict("not_open", "no message %s waits: it was delivered, or taken back", r.PathValue("message"))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A Stop is the request to stop a session.
type Stop struct {
	Reason    string `json:"reason,omitempty"`
	DropQueue bool   `json:"dropQueue,omitempty" doc:"true drops the messages that wait"`
}

// Stopped is what was stopped.
type Stopped struct {
	Turn       bool       `json:"turn" doc:"true if a turn was running"`
	Compaction bool       `json:"compaction"`
	Queued     int        `json:"queued" doc:"number of messages that wait"`
	Dropped    int        `json:"dropped"`
	Background int        `json:"background" doc:"number of commands that go on"`
	Stopped    []api.Task `json:"stopped" doc:"commands that were ended"`
}

// stop stops the turn of a session. It is stored, and its commands have ended, when the
// answer goes out.
func (s *Server) stop(w http.ResponseWriter, r *http.Request) error {
	var in Stop
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	p := api.AbortParams{SessionID: sessionID(r), Reason: in.Reason, KeepQueue: !in.DropQueue, Key: engineKey(r.Context(), true)}
	return calls(s, w, r, func(c caller) (Stopped, error) {
		a, err := c.Abort(r.Context(), p)
		return Stopped{a.Turn, a.Compaction, a.Queued, a.Dropped, a.Background, filled(a.Stopped)}, err
	})
}
