// Package notify tells people, by a command or a webhook, when a session waits for them or
// has ended its turn.
//
//   - Each notification is a row in a file, made from an event of a session. What is in the
//     file with the rows is how far each session was read, so that no event makes two rows
//     and, after a crash, none is missed.
//   - A delivery that fails is tried again, later each time, and given up in the end.
//   - A crash during a delivery may repeat it. It has the same id then, by which a receiver
//     can tell.
//   - A question that was answered before it is told is not told.
package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
)

// The kinds of notifications.
const (
	Waits = "waits" // a question is open
	Ends  = "ends"  // a turn has ended
)

// Options are the settings. Host and File are required, and a Command or a Webhook.
type Options struct {
	Host *session.Host
	Log  *slog.Logger
	File string // path of the file with the rows

	Command string                // command line for sh, which gets the notification on its standard input
	Env     []string              // environment of the command
	Start   func(*exec.Cmd) error // starts the command, confined; nil starts it as it is
	Webhook string                // URL to which the notification is posted
	Secret  string                // key of the signatures of the webhook
	Kinds   []string              // kinds to tell of; all if empty

	Delay time.Duration   // time that a person has to answer a question before it is told
	Again []time.Duration // pauses before further attempts; a delivery is given up after the last one
}

// DefaultAgain are the pauses before further attempts.
var DefaultAgain = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}

// A Notification is what a receiver gets.
type Notification struct {
	ID        string          `json:"id"` // id of the event
	Kind      string          `json:"kind"`
	Time      string          `json:"time"`
	SessionID event.SessionID `json:"sessionId"`
	Position  event.Seq       `json:"position"`
	Title     string          `json:"title"` // name of the session, or its first line
	Folder    string          `json:"folder,omitempty"`
	Event     event.Type      `json:"event"`
}

// A row is a notification that is to be delivered to one receiver.
type row struct {
	Notification
	To       string    `json:"to"` // toCommand or toWebhook
	Due      time.Time `json:"due"`
	Attempts int       `json:"attempts,omitempty"`
	Error    string    `json:"error,omitempty"`
	Aside    bool      `json:"aside,omitempty"` // true if it was given up
}

// The receivers.
const (
	toCommand = "command"
	toWebhook = "webhook"
)

// rows is the content of the file.
type rows struct {
	Since time.Time                     `json:"since"` // events before it are not told: notifications were off
	Read  time.Time                     `json:"read"`  // sessions that changed later may have events that were not read
	Seen  map[event.SessionID]event.Seq `json:"seen"`  // how far sessions were read
	Rows  []row                         `json:"rows"`
}

// A Notifier makes rows of events, and delivers them.
type Notifier struct {
	opts Options
	rows rows

	mu      sync.Mutex
	changed map[event.SessionID]bool // sessions in which something happened
	wake    chan struct{}            // holds a token if changed has something
}

// maxSeen is how many sessions the file remembers, and maxAside how many rows that were
// given up.
const (
	maxSeen  = 10000
	maxAside = 100
)

// New returns a notifier, which does nothing before Run.
func New(opts Options) (*Notifier, error) {
	if opts.Again == nil {
		opts.Again = DefaultAgain
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Start == nil {
		opts.Start = (*exec.Cmd).Start
	}
	n := &Notifier{opts: opts, changed: make(map[event.SessionID]bool), wake: make(chan struct{}, 1)}
	b, err := os.ReadFile(opts.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		n.rows.Since, n.rows.Read = time.Now(), time.Now()
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(b, &n.rows); err != nil {
			return nil, fmt.Errorf("%s: %w; remove it to begin anew", opts.File, err)
		}
	}
	if n.rows.Seen == nil {
		n.rows.Seen = make(map[event.SessionID]event.Seq)
	}
	n.rows.Rows = slices.DeleteFunc(n.rows.Rows, isOver) // a killed process may have left them
	return n, n.save()
}

// save writes the file. It is complete on disk when save returns. Rows that are over stay in
// memory while a loop goes over them, but are never written.
func (n *Notifier) save() error {
	kept := n.rows
	kept.Rows = slices.DeleteFunc(slices.Clone(n.rows.Rows), isOver)
	b, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(n.opts.File), ".notify-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), n.opts.File)
}

// Run makes and delivers notifications until ctx is done.
func (n *Notifier) Run(ctx context.Context) {
	defer n.opts.Host.Clients.WatchList(&session.Watcher{Tell: n.tell})()
	if err := n.findChanged(ctx); err != nil && ctx.Err() == nil {
		n.opts.Log.Error("what happened before cannot be told", "err", err)
	}
	for ctx.Err() == nil {
		if err := n.readChanged(ctx); err != nil && ctx.Err() == nil {
			n.opts.Log.Error("a notification could not be written down", "err", err)
		}
		n.wait(ctx, n.deliverDue(ctx))
	}
}

// wait waits until a session has changed, or for a time unless it is zero.
func (n *Notifier) wait(ctx context.Context, next time.Time) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-n.wake:
	case <-due:
	case <-ctx.Done():
	}
}

// tell takes in that a session has changed.
func (n *Notifier) tell(c session.Notice) {
	if c.Kind == session.Deleted || c.Session.Info.Questions == 0 && c.Session.Info.Active {
		return // a turn that runs on is not told
	}
	n.note(c.Session.ID)
}

func (n *Notifier) note(id event.SessionID) {
	n.mu.Lock()
	n.changed[id] = true
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// overlap is how long before the last time that was read sessions are read again: what is told
// of sessions that change at the same time does not come in order, and clocks are set. Seen
// says what of them was told.
const overlap = 10 * time.Minute

// findChanged finds the sessions that may have changed since the file was written last.
func (n *Notifier) findChanged(ctx context.Context) error {
	for s, err := range n.opts.Host.List(ctx, eventlog.Query{ModifiedSince: n.rows.Read.Add(-overlap)}) {
		if err != nil {
			return err
		}
		n.note(s.ID)
	}
	return nil
}

// readChanged makes rows of what happened in the sessions that have changed.
func (n *Notifier) readChanged(ctx context.Context) error {
	n.mu.Lock()
	ids := n.changed
	n.changed = make(map[event.SessionID]bool)
	n.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	for id := range ids {
		if err := n.read(ctx, id); err != nil && !errors.Is(err, session.ErrNotFound) {
			n.opts.Log.Warn("a session cannot be read, and is not told of", "session", id, "err", err)
		}
	}
	for id := range n.rows.Seen {
		if len(n.rows.Seen) <= maxSeen {
			break
		}
		delete(n.rows.Seen, id) // its events are older than Read
		n.rows.Since = n.rows.Read
	}
	return n.save()
}

// read makes rows of the events of a session that were not read yet. Those that a fork shares
// with its parent were told for the parent.
func (n *Notifier) read(ctx context.Context, id event.SessionID) error {
	info, err := n.opts.Host.Info(ctx, id)
	if err != nil {
		return err
	}
	for e, err := range n.opts.Host.Log.Events(ctx, id, max(n.rows.Seen[id], info.Shared)) {
		if err != nil {
			return err
		}
		n.rows.Seen[id] = e.Seq
		if kind := n.kindOf(e, info); kind != "" {
			n.add(kind, e, info)
		}
	}
	if info.Modified.After(n.rows.Read) {
		n.rows.Read = info.Modified
	}
	return nil
}

// kindOf returns the kind of notification that an event makes; empty if it makes none. The
// turns of agents are part of a turn of their session.
func (n *Notifier) kindOf(e event.Event, of eventlog.Session) string {
	kind := ""
	switch {
	case e.Kind().Question:
		kind = Waits
	case e.Type == event.SessionIdle && of.Info.Listed:
		kind = Ends
	}
	if len(n.opts.Kinds) > 0 && !slices.Contains(n.opts.Kinds, kind) {
		return ""
	}
	return kind
}

// add adds a row for each receiver, unless notifications were off at the time of the event.
func (n *Notifier) add(kind string, e event.Event, of eventlog.Session) {
	head, err := e.Head()
	if err != nil || head.Time.Before(n.rows.Since.Truncate(time.Millisecond)) {
		return
	}
	r := row{Due: time.Now(), Notification: Notification{
		ID: head.ID, Kind: kind, Time: event.FormatTime(head.Time), SessionID: of.ID, Position: e.Seq, Title: cmp.Or(of.Info.Name, of.Info.Summary, string(of.ID)), Folder: of.Info.Dir, Event: e.Type,
	}}
	if kind == Waits {
		r.Due = r.Due.Add(n.opts.Delay)
	}
	for _, to := range n.receivers() {
		r.To = to
		n.rows.Rows = append(n.rows.Rows, r)
	}
}

// receivers returns who is told.
func (n *Notifier) receivers() (list []string) {
	if n.opts.Command != "" {
		list = append(list, toCommand)
	}
	if n.opts.Webhook != "" {
		list = append(list, toWebhook)
	}
	return list
}

// deliverDue delivers what is due, and returns when the next row is.
func (n *Notifier) deliverDue(ctx context.Context) (next time.Time) {
	if len(n.rows.Rows) == 0 {
		return next
	}
	for _, to := range n.receivers() {
		n.deliverTo(ctx, to)
	}
	for i := range n.rows.Rows {
		if !slices.Contains(n.receivers(), n.rows.Rows[i].To) { // it was configured before
			n.rows.Rows[i].Attempts = over
		}
	}
	n.rows.Rows = slices.DeleteFunc(n.rows.Rows, isOver)
	aside := 0
	for _, r := range slices.Backward(n.rows.Rows) {
		if r.Aside {
			aside++
		} else if next.IsZero() || r.Due.Before(next) {
			next = r.Due
		}
	}
	for aside > maxAside {
		i := slices.IndexFunc(n.rows.Rows, func(r row) bool { return r.Aside })
		n.rows.Rows, aside = slices.Delete(n.rows.Rows, i, i+1), aside-1
	}
	if err := n.save(); err != nil && ctx.Err() == nil {
		n.opts.Log.Error("what became of notifications is not written down", "err", err)
	}
	return next
}

// patience is how long one attempt may take before the others for the same receiver wait for the next
// round.
const patience = time.Second

// deliverTo delivers what is due to a receiver. One that is slow holds up only what is for itself: its
// other rows wait until the other receivers had their turn.
func (n *Notifier) deliverTo(ctx context.Context, to string) {
	for i := 0; i < len(n.rows.Rows) && ctx.Err() == nil; i++ {
		r := &n.rows.Rows[i]
		if r.To != to || r.Aside || isOver(*r) || r.Due.After(time.Now()) {
			continue
		}
		began := time.Now()
		n.attempt(ctx, r)
		if time.Since(began) > patience {
			return
		}
	}
}

// over marks a row that is to be removed.
const over = -1

func isOver(r row) bool { return r.Attempts < 0 }

// attempt delivers a row once. The next attempt is in the file before this one begins.
func (n *Notifier) attempt(ctx context.Context, r *row) {
	if r.Kind == Waits && !n.isOpen(ctx, r.Notification) {
		r.Attempts = over
		return
	}
	last := r.Attempts >= len(n.opts.Again)
	if !last {
		r.Due = time.Now().Add(n.opts.Again[r.Attempts])
	}
	r.Attempts++
	if err := n.save(); err != nil {
		n.opts.Log.Error("a notification is not delivered, because that cannot be written down", "err", err)
		return
	}
	switch err := n.deliver(ctx, r.To, r.Notification); {
	case err == nil:
		r.Attempts = over
	case ctx.Err() != nil: // the next engine tries again
	default:
		r.Error, r.Aside = err.Error(), last
		n.opts.Log.Warn("a notification was not delivered", "id", r.ID, "session", r.SessionID, "attempt", r.Attempts, "last", last, "err", err)
	}
}

// isOpen reports whether a question still waits. If that cannot be found out, it does.
func (n *Notifier) isOpen(ctx context.Context, of Notification) bool {
	info, err := n.opts.Host.Info(ctx, of.SessionID)
	if errors.Is(err, session.ErrNotFound) {
		return false
	}
	if err == nil && info.Info.Questions == 0 {
		return false
	}
	st, err := n.opts.Host.Status(ctx, of.SessionID)
	n.opts.Host.Unload(of.SessionID)
	return err != nil || slices.ContainsFunc(st.Questions, func(e event.Event) bool {
		head, err := e.Head()
		return err == nil && head.ID == of.ID
	})
}

// The time that a delivery may take, and that one under way has when this process ends: what
// was delivered and not written down would be delivered again.
const (
	deliverTime = 30 * time.Second
	endTime     = 2 * time.Second
)

func (n *Notifier) deliver(ctx context.Context, to string, of Notification) error {
	body, err := json.Marshal(of)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(endTime):
			cancel()
		case <-limited.Done():
		}
	})()
	if to == toCommand {
		return n.run(limited, of, body)
	}
	return n.post(limited, of, body)
}

// run runs the command. Exit code 0 means that it is delivered.
func (n *Notifier) run(ctx context.Context, of Notification, body []byte) error {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", n.opts.Command)
	c.Env = append(slices.Clip(n.opts.Env), "ABIDE_NOTIFY_KIND="+of.Kind, "ABIDE_NOTIFY_ID="+of.ID, "ABIDE_NOTIFY_SESSION="+string(of.SessionID), "ABIDE_NOTIFY_TITLE="+strings.ReplaceAll(of.Title, "\x00", ""))
	c.Stdin, c.WaitDelay = bytes.NewReader(body), time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := n.opts.Start(c)
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		said := out.Bytes()
		return fmt.Errorf("the command: %w: %s", err, strings.TrimSpace(string(said[:min(len(said), 500)])))
	}
	return nil
}

// client follows no redirects: a notification goes to the address that was configured.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// post posts to the webhook. The headers are those of Standard Webhooks, and so is the
// signature. A status of 2xx means that it is delivered.
func (n *Notifier) post(ctx context.Context, of Notification, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.opts.Webhook, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the webhook: %w", withoutURL(err))
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", of.ID)
	r.Header.Set("webhook-timestamp", stamp)
	if n.opts.Secret != "" {
		r.Header.Set("webhook-signature", "v1,"+Sign(n.opts.Secret, of.ID, stamp, body))
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("the webhook: %w", withoutURL(err))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answers %s", answer.Status)
	}
	return nil
}

// withoutURL returns an error without the URL that it is about: the URL of a webhook often has
// a secret, and errors are logged and written down.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Sign returns the signature of a notification: HMAC-SHA256 of ID.TIMESTAMP.BODY, in base64.
func Sign(secret, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
