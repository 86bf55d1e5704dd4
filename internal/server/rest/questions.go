package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/turn"
)

// The kinds of questions.
const (
	kindPermission = "permission"
	kindInput      = "input"
	kindPlan       = "plan"
	kindForm       = "form"
	kindExternal   = "external"
)

// A Question is an open question with what a person needs to answer it. Exactly one of
// Permission, Input, Plan, Form and External is set.
type Question struct {
	ID        string          `json:"id"`
	Digest    string          `json:"digest" doc:"digest of the question; an answer has to name it"`
	SessionID event.SessionID `json:"sessionId" doc:"session in which it is answered"`
	AskedBy   event.SessionID `json:"askedBy" doc:"session that asks: the same, or an agent of it"`
	Kind      string          `json:"kind" enum:"permission,input,plan,form,external"`
	Since     string          `json:"since"`
	AgentPath []string        `json:"agentPath" doc:"the agents between the session and the question, the outermost first"`
	Verb      string          `json:"verb" doc:"what is to be done: run, write, read, fetch, call, answer, approve, fill in or continue"`
	Object    string          `json:"object" doc:"what it is to be done with"`
	Session   Session         `json:"session"`
	Request   string          `json:"request,omitempty" doc:"the last message of a person in the session"`
	Undoable  *bool           `json:"undoable,omitempty" doc:"true if a rewind undoes it; missing if there is nothing to undo"`

	Permission *Permission      `json:"permission,omitempty"`
	Input      *UserInput       `json:"input,omitempty"`
	Plan       *Plan            `json:"plan,omitempty"`
	Form       *Form            `json:"form,omitempty"`
	External   *External        `json:"external,omitempty"`
	Answers    []PossibleAnswer `json:"answers,omitempty" doc:"what each answer to a permission request grants"`
}

// A Permission is a request for permission.
type Permission struct {
	Kind       string                 `json:"kind"`
	Tool       string                 `json:"tool,omitempty"`
	Directory  string                 `json:"directory,omitempty"`
	Command    string                 `json:"command,omitempty"`
	Terminal   bool                   `json:"terminal"`
	Input      bool                   `json:"input" doc:"true if the command can be given input later"`
	Reading    []event.CommandReading `json:"reading,omitempty" doc:"the command line as the parser understands it"`
	Understood bool                   `json:"understood" doc:"false for a command line that the parser does not understand: it may do anything"`
	Writes     []string               `json:"writes,omitempty" doc:"files that are written, as far as the parser can tell"`
	Network    bool                   `json:"network" doc:"true if the call names an address on a network, or runs a program that is known to use one; false says nothing about other programs"`
	Outside    []string               `json:"outside,omitempty" doc:"paths outside of the folder of the session"`
	File       string                 `json:"file,omitempty"`
	LeadsTo    []string               `json:"leadsTo,omitempty" doc:"where symbolic links lead"`
	Protected  string                 `json:"protected,omitempty" doc:"why the file is protected"`
	PutBack    bool                   `json:"putBack" doc:"true if a change that a command made was put back, and a yes makes it again"`
	Diff       string                 `json:"diff,omitempty"`
	Diffstat   *Diffstat              `json:"diffstat,omitempty"`
	URL        string                 `json:"url,omitempty"`
	Server     string                 `json:"server,omitempty"`
	Arguments  json.RawMessage        `json:"arguments,omitempty"`
	Reasons    []string               `json:"reasons,omitempty" doc:"why a person is asked: the rule, in a sentence"`
	Details    json.RawMessage        `json:"details,omitempty" doc:"the request in the form of the protocol"`
}

// A Diffstat counts the lines of a diff.
type Diffstat struct {
	Files   int `json:"files"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// A UserInput is a question of the model.
type UserInput struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices,omitempty"`
	Freeform bool     `json:"freeform"`
}

// A Plan is a plan that is to be approved.
type Plan struct {
	Summary     string   `json:"summary"`
	Content     string   `json:"content"`
	Actions     []string `json:"actions"`
	Recommended string   `json:"recommended,omitempty"`
}

// A Form is a form to fill in.
type Form struct {
	Message string               `json:"message"`
	Schema  json.RawMessage      `json:"schema,omitempty"`
	Source  string               `json:"source,omitempty" doc:"MCP server that asks"`
	Budget  *event.BudgetReached `json:"budget,omitempty" doc:"set if the question is whether to go on although a budget is reached"`
}

// An External is a call of a tool that a client has to carry out.
type External struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// A PossibleAnswer is an answer to a permission request, and what it grants.
type PossibleAnswer struct {
	ID     string        `json:"id" doc:"offer of an answer; reject is a decision"`
	Label  string        `json:"label"`
	Scopes []string      `json:"scopes,omitempty" doc:"decisions that can be given with it"`
	Grants []event.Grant `json:"grants,omitempty" doc:"what is granted beyond this call"`
}

// Questions is a list of open questions.
type Questions struct {
	Questions []Question `json:"questions"`
	Version   string     `json:"version" doc:"digest of the list; give it as known to wait for another one"`
}

// listQuestions lists the open questions, the oldest first, and waits for another list if
// the request says so.
func (s *Server) listQuestions(w http.ResponseWriter, r *http.Request) error {
	wait, err := number(r, "wait", 0, maxWait, 0)
	if err != nil {
		return err
	}
	timer := time.NewTimer(time.Duration(wait) * time.Second)
	defer timer.Stop()
	for {
		changed := s.hub.questions() // before reading the list, so that no change is missed
		list, err := s.questionList(r.Context(), event.SessionID(r.URL.Query().Get("session")))
		if err != nil {
			return err
		}
		if wait == 0 || list.Version != r.URL.Query().Get("known") {
			return reply(w, http.StatusOK, list)
		}
		if s.hub.expect(list.Questions) {
			continue
		}
		select {
		case <-changed:
		case <-timer.C:
			wait = 0
		case <-leaving(r.Context()):
			wait = 0
		case <-r.Context().Done():
			return nil
		}
	}
}

func (s *Server) questionList(ctx context.Context, id event.SessionID) (Questions, error) {
	var list []Question
	var err error
	if id != "" {
		if _, err := s.host.Info(ctx, id); err != nil {
			return Questions{}, err
		}
		list, err = s.questionsOf(ctx, id)
	} else {
		list, err = s.allQuestions(ctx)
	}
	if err != nil {
		return Questions{}, err
	}
	slices.SortStableFunc(list, func(a, b Question) int { return strings.Compare(a.Since, b.Since) })
	sum := sha256.New()
	for _, q := range list {
		sum.Write([]byte(q.SessionID + "\x00" + event.SessionID(q.Digest) + "\x00"))
	}
	return Questions{list, hex.EncodeToString(sum.Sum(nil)[:16])}, nil
}

// hidesNoOther reports whether an error is about one session alone, which is left out of
// the list.
func hidesNoOther(err error) bool {
	var damage *eventlog.Damage
	return errors.As(err, &damage) || errors.Is(err, session.ErrNotFound)
}

func (s *Server) allQuestions(ctx context.Context) ([]Question, error) {
	all, err := s.host.Questions.All(ctx, hidesNoOther)
	if err != nil {
		return nil, err
	}
	known := surroundings{server: s, sessions: make(map[event.SessionID]around)}
	list := []Question{}
	for _, open := range all {
		q, err := known.question(ctx, open)
		if hidesNoOther(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// questionsOf returns the open questions that are answered in a session.
func (s *Server) questionsOf(ctx context.Context, id event.SessionID) ([]Question, error) {
	list := []Question{}
	st, err := s.host.Status(ctx, id)
	if err != nil || len(st.Questions) == 0 {
		return list, err
	}
	all, err := s.allQuestions(ctx)
	for _, q := range all {
		if q.SessionID == id || q.AskedBy == id {
			list = append(list, q)
		}
	}
	return list, err
}

// surroundings remembers what the questions of a list have in common.
type surroundings struct {
	server   *Server
	sessions map[event.SessionID]around
}

// around is what a person needs to know of the session of a question.
type around struct {
	session Session
	request string
}

func (k surroundings) of(ctx context.Context, id event.SessionID) (around, error) {
	if a, known := k.sessions[id]; known {
		return a, nil
	}
	s := k.server
	info, err := s.host.Info(ctx, id)
	if err != nil {
		return around{}, err
	}
	var a around
	if a.session, err = s.described(ctx, info); err != nil {
		return a, err
	}
	a.session.place(ctx, s)
	st, err := s.host.Status(ctx, id)
	if err != nil {
		return a, err
	}
	if a.request, _, err = s.lastWords(ctx, id, st); err != nil {
		return a, err
	}
	s.host.Unload(id)
	k.sessions[id] = a
	return a, nil
}

// question returns an open question with all that belongs to it.
func (k surroundings) question(ctx context.Context, open session.Unanswered) (Question, error) {
	a, err := k.of(ctx, open.Session)
	if err != nil {
		return Question{}, err
	}
	head, err := open.Asked.Head()
	if err != nil {
		return Question{}, err
	}
	sum := sha256.Sum256(open.Asked.Bytes)
	q := Question{
		Digest: hex.EncodeToString(sum[:]), SessionID: open.Session, AskedBy: cmp.Or(open.Asker, open.Session), Since: event.FormatTime(head.Time),
		AgentPath: k.server.agentPath(ctx, open), Session: a.session, Request: a.request,
	}
	body, err := open.Asked.Body()
	if err != nil {
		return q, err
	}
	q.describe(body, a.session.Folder)
	return q, nil
}

// agentPath returns the kinds of the agents between a session and a question of one of them.
func (s *Server) agentPath(ctx context.Context, open session.Unanswered) []string {
	path := []string{}
	for id := open.Asker; id != "" && id != open.Session && len(path) < 10; {
		st, err := s.host.Status(ctx, id)
		if err != nil || st.Config.Agent == nil {
			break
		}
		path = append(path, strings.TrimSuffix(st.Config.Agent.Type+": "+st.Summary, ": "))
		s.host.Unload(id)
		id = st.Config.Agent.Session
	}
	slices.Reverse(path)
	return path
}

// describe adds what is asked.
func (q *Question) describe(body event.Payload, folder string) {
	switch d := body.(type) {
	case event.PermissionAskedData:
		q.ID, q.Kind = d.RequestID, kindPermission
		q.permission(d, folder)
	case event.UserInputAskedData:
		q.ID, q.Kind, q.Verb, q.Object = d.RequestID, kindInput, "answer", d.Question
		q.Input = &UserInput{d.Question, d.Choices, d.AllowFreeform}
	case event.ExitPlanAskedData:
		q.ID, q.Kind, q.Verb, q.Object = d.RequestID, kindPlan, "approve", d.Summary
		q.Plan = &Plan{d.Summary, d.PlanContent, filled(d.Actions), d.Recommended}
	case event.ElicitationAskedData:
		q.ID, q.Kind, q.Verb, q.Object = d.RequestID, kindForm, "fill in", d.Message
		if d.Budget != nil {
			q.Verb = "continue"
		}
		q.Form = &Form{d.Message, d.Schema, d.Source, d.Budget}
	case event.ExternalAskedData:
		q.ID, q.Kind, q.Verb, q.Object = d.RequestID, kindExternal, "call", d.ToolName
		q.External = &External{d.ToolName, d.Arguments}
	}
}

// A request is what is read of a permission request of the protocol.
type request struct {
	Kind      string            `json:"kind"`
	Command   string            `json:"fullCommandText"`
	Paths     []string          `json:"possiblePaths"`
	URLs      []json.RawMessage `json:"possibleUrls"`
	FileName  string            `json:"fileName"`
	Diff      string            `json:"diff"`
	Path      string            `json:"path"`
	LeadsTo   []string          `json:"leadsTo"`
	Protected string            `json:"protected"`
	PutBack   bool              `json:"putBack"`
	URL       string            `json:"url"`
	Server    string            `json:"serverName"`
	Tool      string            `json:"toolName"`
	Args      json.RawMessage   `json:"args"`
}

// permission describes a request for permission.
func (q *Question) permission(d event.PermissionAskedData, folder string) {
	var r request
	_ = json.Unmarshal(d.PermissionRequest, &r) // what cannot be read is in Details
	p := &Permission{
		Kind: r.Kind, Tool: r.Tool, Command: r.Command, File: cmp.Or(r.FileName, r.Path), LeadsTo: r.LeadsTo, Protected: r.Protected, PutBack: r.PutBack,
		Diff: r.Diff, URL: r.URL, Server: r.Server, Arguments: r.Args, Network: r.URL != "" || len(r.URLs) > 0, Details: d.PermissionRequest, Understood: true,
	}
	if more := d.Abide; more != nil {
		p.Tool, p.Directory, p.Terminal, p.Input = cmp.Or(more.Tool, p.Tool), more.Dir, more.Terminal, more.Input
		p.Reading, p.Reasons = more.Commands, more.Reasons
	}
	undo := false
	switch r.Kind {
	case "shell":
		q.Verb, q.Object, p.Understood = "run", r.Command, len(p.Reading) > 0
		p.Writes, p.Network = redirected(p.Reading), p.Network || reachesOut(p.Reading)
	case "write":
		q.Verb, q.Object, p.Writes, undo = "write", r.FileName, []string{r.FileName}, true
	case "read":
		q.Verb, q.Object = "read", r.Path
	case "url":
		q.Verb, q.Object = "fetch", r.URL
	default:
		q.Verb, q.Object = "call", strings.Trim(r.Server+"/"+cmp.Or(r.Tool, p.Tool, r.Kind), "/")
	}
	if r.Kind != "read" {
		q.Undoable = &undo
	}
	p.Outside = outside(cmp.Or(folder, p.Directory), cmp.Or(p.Directory, folder), slices.Concat(r.Paths, p.Writes, r.LeadsTo, single(r.Path)))
	if r.Diff != "" {
		p.Diffstat = diffstat(r.Diff)
	}
	q.Permission, q.Answers = p, possible(d, r.PutBack)
}

func single(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// redirected returns the files into which commands write.
func redirected(commands []event.CommandReading) (files []string) {
	for _, c := range commands {
		for _, f := range c.Files {
			if strings.Contains(f.Operator, ">") && !strings.Contains(f.Operator, "&") {
				files = append(files, f.Target)
			}
		}
	}
	return files
}

// outside returns the paths that are not below a folder. Relative paths start at dir.
func outside(folder, dir string, paths []string) (out []string) {
	for _, p := range paths {
		full := p
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
		rel, err := filepath.Rel(folder, full)
		if (err != nil || rel == ".." || strings.HasPrefix(rel, "../")) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// diffstat counts the lines of a unified diff. The head of a hunk says how many lines it has:
// within it, a line that looks like the head of a file is a changed line.
func diffstat(diff string) *Diffstat {
	var d Diffstat
	old, new := 0, 0 // lines of the hunk that are still to come
	for line := range strings.SplitSeq(diff, "\n") {
		inside := old > 0 || new > 0
		switch {
		case strings.HasPrefix(line, "@@ "):
			old, new = hunkLengths(line)
		case strings.HasPrefix(line, "diff "): // no line of a hunk begins so
			old, new = 0, 0
		case !inside && strings.HasPrefix(line, "+++ "):
			d.Files++
		case !inside && strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			d.Added, new = d.Added+1, new-1
		case strings.HasPrefix(line, "-"):
			d.Removed, old = d.Removed+1, old-1
		case strings.HasPrefix(line, "\\"): // it says that the line before has no newline
		default:
			old, new = old-1, new-1
		}
	}
	d.Files = max(1, d.Files)
	return &d
}

// hunkLengths returns how many lines a hunk has of the old and of the new file, as its head
// says: @@ -FIRST,LENGTH +FIRST,LENGTH @@. A missing length is 1.
func hunkLengths(head string) (old, new int) {
	fields := strings.Fields(head)
	if len(fields) < 3 {
		return 0, 0
	}
	length := func(field string) int {
		_, text, given := strings.Cut(field, ",")
		if !given {
			return 1
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0
		}
		return n
	}
	return length(fields[1]), length(fields[2])
}

// The decisions of an answer to a permission request.
const (
	decideOnce     = "once"
	decideSession  = "session"
	decideLocation = "location"
	decideAlways   = "always"
	decideReject   = "reject"
)

// possible returns the answers to a permission request, with what each grants.
func possible(d event.PermissionAskedData, putBack bool) []PossibleAnswer {
	var answers []PossibleAnswer
	if putBack {
		return []PossibleAnswer{
			{ID: event.OfferOnce, Label: "the change is made again", Scopes: []string{decideOnce}},
			{ID: decideReject, Label: "no, the file stays as it was before the command", Scopes: []string{decideReject}},
		}
	}
	if d.Abide != nil {
		for _, o := range d.Abide.Offers {
			a := PossibleAnswer{ID: o.ID, Label: o.Label, Grants: o.Grants, Scopes: []string{decideSession}}
			if o.ID == event.OfferOnce {
				a.Scopes = []string{decideOnce}
			} else if len(o.Grants) > 0 {
				a.Scopes = []string{decideSession, decideLocation, decideAlways}
			}
			answers = append(answers, a)
		}
	}
	if len(answers) == 0 {
		answers = append(answers, PossibleAnswer{ID: event.OfferOnce, Label: "this call only", Scopes: []string{decideOnce}})
	}
	return append(answers, PossibleAnswer{ID: decideReject, Label: "no", Scopes: []string{decideReject}})
}

// findQuestion returns an open question.
func (s *Server) findQuestion(ctx context.Context, id string) (Question, error) {
	all, err := s.allQuestions(ctx)
	if err != nil {
		return Question{}, err
	}
	for _, q := range all {
		if q.ID == id {
			return q, nil
		}
	}
	return Question{}, &Problem{Status: http.StatusNotFound, Code: "not_open", Detail: "there is no such open question: it was answered, or its turn is over"}
}

func (s *Server) showQuestion(w http.ResponseWriter, r *http.Request) error {
	q, err := s.findQuestion(r.Context(), r.PathValue("question"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, q)
}

// An Answer is the answer to a question that was shown with a digest.
type Answer struct {
	Digest string      `json:"digest" doc:"digest of the question that was shown"`
	Answer AnswerGiven `json:"answer"`
}

// AnswerGiven is what a person answers. Which fields count depends on the kind of the
// question.
type AnswerGiven struct {
	Decision string          `json:"decision,omitempty" enum:"once,session,location,always,reject" doc:"of a permission"`
	Offer    string          `json:"offer,omitempty" doc:"of a permission: id of one of answers, with session, location and always"`
	Feedback string          `json:"feedback,omitempty" doc:"of a refused permission or plan: what the model is told"`
	Text     *string         `json:"text,omitempty" doc:"of a question of the model"`
	Approved *bool           `json:"approved,omitempty" doc:"of a plan"`
	Action   string          `json:"action,omitempty" doc:"of a plan: one of its actions; of a form: accept, decline or cancel"`
	Content  json.RawMessage `json:"content,omitempty" doc:"of a form: an object that follows its schema"`
	Result   json.RawMessage `json:"result,omitempty" doc:"of a call of a client's tool"`
	Error    *string         `json:"error,omitempty" doc:"of a call of a client's tool that failed"`

	chosen bool // true if Text is one of the choices of the question
}

// Accepted is the answer to an Answer.
type Accepted struct {
	Accepted bool `json:"accepted"`
}

// answer answers a question, if it is the one that was shown.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	var in Answer
	if err := decode(w, r, maxBody, &in); err != nil {
		return err
	}
	if in.Digest == "" {
		return invalid("digest: it is missing: give that of the question that was shown")
	}
	id := r.PathValue("question")
	q, err := s.findQuestion(r.Context(), id)
	var closed *Problem
	if errors.As(err, &closed) && closed.Code == "not_open" {
		return s.answeredBefore(w, r, id, in)
	}
	if err != nil {
		return err
	}
	if q.Digest != in.Digest {
		return conflict("question_changed", "the question is not the one that was shown: read it again")
	}
	in.Answer.chosen = q.Input != nil && in.Answer.Text != nil && slices.Contains(q.Input.Choices, *in.Answer.Text)
	won, err := s.give(r.Context(), q.SessionID, q.Kind, q.ID, in.Answer)
	if err != nil {
		return err
	}
	if !won {
		return conflict("not_open", "somebody else has answered the question")
	}
	return reply(w, http.StatusOK, Accepted{true})
}

// answeredBefore answers a request about a question that is closed. If the same request
// has closed it, and only the reply was lost, it has succeeded.
func (s *Server) answeredBefore(w http.ResponseWriter, r *http.Request, id string, in Answer) error {
	closed := conflict("not_open", "the question is not open any more: somebody has answered it, or its turn is over")
	if _, keyed := onceIn(r.Context()); !keyed {
		return closed
	}
	of := event.SessionID(r.URL.Query().Get("session"))
	if of == "" {
		return closed
	}
	_, err := s.host.Info(r.Context(), of)
	won := false
	if err == nil {
		won, err = s.give(r.Context(), of, in.Answer.kind(), id, in.Answer)
	}
	if err != nil && toProblem(err).Status >= http.StatusInternalServerError {
		return err // it is not known whether the answer was given
	}
	if err != nil || !won {
		return closed
	}
	w.Header().Set(replayHeader, "true")
	return reply(w, http.StatusOK, Accepted{true})
}

// kind returns the kind of questions that an answer is for.
func (a AnswerGiven) kind() string {
	switch {
	case a.Decision != "":
		return kindPermission
	case a.Text != nil:
		return kindInput
	case a.Approved != nil:
		return kindPlan
	case a.Action != "":
		return kindForm
	}
	return kindExternal
}

// decisions are the kinds of decisions of the protocol.
var decisions = map[string]string{
	decideOnce: turn.ApproveOnce, decideSession: turn.ApproveForSession, decideLocation: turn.ApproveForLocation, decideAlways: turn.ApprovePermanently, decideReject: turn.Reject,
}

// give gives an answer to a session, and reports whether it counts.
func (s *Server) give(ctx context.Context, id event.SessionID, kind, question string, a AnswerGiven) (bool, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return false, err
	}
	key := engineKey(ctx, true)
	switch kind {
	case kindPermission:
		d, err := a.decision()
		if err != nil {
			return false, err
		}
		return c.AnswerPermission(ctx, api.AnswerPermissionParams{SessionID: id, RequestID: question, Result: d, Key: key})
	case kindInput:
		if a.Text == nil {
			return false, invalid("answer.text: it is missing")
		}
		return c.AnswerUserInput(ctx, api.AnswerUserInputParams{SessionID: id, RequestID: question, Response: api.UserInputResult{Answer: *a.Text, WasFreeform: !a.chosen}, Key: key})
	case kindPlan:
		if a.Approved == nil {
			return false, invalid("answer.approved: it is missing")
		}
		return c.AnswerPlan(ctx, api.AnswerExitPlanParams{SessionID: id, RequestID: question, Response: api.ExitPlanReply{Approved: a.Approved, SelectedAction: a.Action, Feedback: a.Feedback}, Key: key})
	case kindForm:
		if a.Action != turn.Accept && a.Action != turn.Dismiss && a.Action != turn.Cancel {
			return false, invalid("answer.action is %q: use %s, %s or %s", a.Action, turn.Accept, turn.Dismiss, turn.Cancel)
		}
		if a.Action == turn.Accept && len(a.Content) == 0 {
			a.Content = json.RawMessage("{}")
		}
		return c.AnswerForm(ctx, api.AnswerElicitationParams{SessionID: id, RequestID: question, Result: api.ElicitationResult{Action: a.Action, Content: a.Content}, Key: key})
	}
	if len(a.Result) == 0 && a.Error == nil {
		return false, invalid("answer.result: it is missing")
	}
	return c.AnswerTool(ctx, api.AnswerToolParams{SessionID: id, RequestID: question, Result: a.Result, Error: a.Error, Key: key})
}

// decision returns the decision in the form of the protocol.
func (a AnswerGiven) decision() (json.RawMessage, error) {
	kind, known := decisions[a.Decision]
	switch {
	case !known:
		return nil, invalid("answer.decision is %q: use once, session, location, always or reject", a.Decision)
	case a.Offer == "" && (a.Decision == decideSession || a.Decision == decideLocation || a.Decision == decideAlways):
		return nil, invalid("answer.offer: it is missing: say which of the answers is granted")
	case a.Decision == decideOnce || a.Decision == decideReject:
		a.Offer = ""
	}
	return json.Marshal(turn.Decision{Kind: kind, Feedback: a.Feedback, Offer: a.Offer})
}
