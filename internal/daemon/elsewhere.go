package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/workspace"
)

// placedTasks are the background commands of sessions, wherever they run. What is in
// another workspace is not asked for while a session waits for the answer, and a command
// there is not lost because its workspace is away.
type placedTasks struct {
	session.TaskSource
	tools *toolbox
}

// watchPause is the pause between attempts to watch a task whose workspace is away. Each
// attempt waits for the workspace as long as any call does.
const watchPause = time.Second

// endPause is the first pause between attempts to end a command in a workspace that is away.
const endPause = 50 * time.Millisecond

// Watch waits until a task has ended or has another status. As long as its workspace
// cannot be used, nothing is known of it.
func (t placedTasks) Watch(ctx context.Context, id event.SessionID, key, last string) (event.TaskReportedData, error) {
	if !t.tools.workspaces.isRemote(ctx, id) {
		return t.TaskSource.Watch(ctx, id, key, last)
	}
	for said := false; ; said = true {
		news, err := t.tools.watchElsewhere(ctx, t.TaskSource, taskName{id, key}, last)
		if err == nil || ctx.Err() != nil {
			return news, err
		}
		if !said {
			t.tools.log.Warn("a command in another workspace cannot be watched; it is tried again until it can", "session", id, "key", key, "err", err)
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return news, ctx.Err()
		}
	}
}

// taskName identifies a command of a session by the key of its call.
type taskName struct {
	session event.SessionID
	key     string
}

// watchElsewhere watches a command as long as its workspace can be used.
func (t *toolbox) watchElsewhere(ctx context.Context, source session.TaskSource, name taskName, last string) (event.TaskReportedData, error) {
	if _, gone := t.givenUp.Load(name); gone {
		return givenUp(name.key, ""), nil
	}
	return source.Watch(ctx, name.session, name.key, last)
}

// givenUp returns the report about a command that a person has given up.
func givenUp(key, id string) event.TaskReportedData {
	return event.TaskReportedData{
		Key: key, TaskID: id, Status: event.TaskLost, Ended: true,
		Text: strings.TrimSpace("A background task was given up: "+id) + ". Its workspace cannot be reached, and a person no longer waits for it. Nobody knows whether it goes on there.",
	}
}

// newsTime is how long a step waits for the end of a command elsewhere.
const newsTime = 5 * time.Second

// News returns the end of a task. Nothing is known of one in a workspace that is away.
func (t placedTasks) News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool) {
	if !t.tools.workspaces.isRemote(ctx, id) {
		return t.TaskSource.News(ctx, id, key)
	}
	ctx, cancel := within(ctx, newsTime)
	defer cancel()
	if t.tools.workspaces.answersSoon(ctx, id) != nil {
		return event.TaskReportedData{}, false
	}
	return t.TaskSource.News(ctx, id, key)
}

// summaryTime is how long a model request waits for the list of commands elsewhere.
const summaryTime = 5 * time.Second

// Summary describes the running tasks. Those in a workspace that is away are left out.
func (t placedTasks) Summary(ctx context.Context, id event.SessionID, keys []string) (string, error) {
	if !t.tools.workspaces.isRemote(ctx, id) {
		return t.TaskSource.Summary(ctx, id, keys)
	}
	ctx, cancel := within(ctx, summaryTime)
	defer cancel()
	return t.TaskSource.Summary(ctx, id, keys)
}

// seenTime is how long a workspace elsewhere has to note that the end of a task was told.
const seenTime = time.Minute

// Seen says that the model was told of a task's end. The session does not wait until a
// workspace elsewhere knows that.
func (t placedTasks) Seen(ctx context.Context, id event.SessionID, key string) {
	if !t.tools.workspaces.isRemote(ctx, id) {
		t.TaskSource.Seen(ctx, id, key)
		return
	}
	t.tools.later.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, seenTime)
		defer cancel()
		t.TaskSource.Seen(ctx, id, key)
	})
}

// endTask ends the command of a call, because its turn was stopped. It does not wait for a
// workspace that is away: the command is ended when the workspace is back.
func (t *toolbox) endTask(ctx context.Context, id event.SessionID, key string) error {
	if !t.workspaces.isRemote(ctx, id) {
		return t.commands.Stop(ctx, id, key)
	}
	name := taskName{id, key}
	err := t.endThere(ctx, name, t.workspaces.answersSoon)
	if err == nil {
		return nil
	}
	if _, known := t.stops.LoadOrStore(name, true); !known {
		t.later.Go(func() { t.endLater(ctx, name) })
	}
	return err
}

// endThere ends a command in another workspace, if that answers.
func (t *toolbox) endThere(ctx context.Context, name taskName, answers func(context.Context, event.SessionID) error) error {
	if err := answers(ctx, name.session); err != nil {
		return err
	}
	return t.commands.Stop(hurriedly(ctx), name.session, name.key)
}

// endLater tries to end a command until its workspace is back, a person gives it up, or this
// engine ends; the next engine tries again. Whoever watches the command cannot do that: after
// a short absence of the workspace it has noticed nothing.
func (t *toolbox) endLater(ctx context.Context, name taskName) {
	defer t.stops.Delete(name)
	for pause := endPause; ; pause = min(2*pause, watchPause) { // it may only have answered late
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if _, gone := t.givenUp.Load(name); gone {
			return
		}
		err := t.endThere(ctx, name, t.workspaces.answers)
		if err == nil || isOfAnotherServer(err) { // that server ends it
			return
		}
	}
}

// isOfAnotherServer reports whether an error means that another server goes on with a session.
func isOfAnotherServer(err error) bool {
	return errors.Is(err, workspace.ErrFenced) || errors.Is(err, eventlog.ErrNotOwner) || errors.Is(err, eventlog.ErrFenced)
}

// lastPlace returns the workspace of a session that was deleted; nil for this machine.
func (t *toolbox) lastPlace(id event.SessionID) (*event.Workspace, error) {
	text, err := os.ReadFile(deletions{folder: t.folder}.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		place, err := t.workspaces.choice(context.Background(), id)
		if errors.Is(err, eventlog.ErrNotFound) {
			return nil, nil
		}
		return place, err
	}
	var d session.Deletion
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	return d.Workspace, err
}

// endTime is how long an attempt to end the commands of a deleted session waits for their
// workspace.
const endTime = 10 * time.Second

// release stops the commands of a deleted session in its workspace, if that can be reached now,
// and lets their output be removed in time.
func (t *toolbox) release(ctx context.Context, d session.Deletion) error {
	ctx, cancel := within(ctx, endTime)
	defer cancel()
	c, err := t.workspaces.registry.Open(*d.Workspace)
	if err != nil {
		return err
	}
	if err := c.AnswersSoon(ctx); err != nil {
		return err
	}
	processes, owner := c.Workspace().Processes, process.Owner(d.Session)
	list, err := processes.List(ctx, owner)
	if err != nil {
		return err
	}
	// A new session with the id has started none of these if it is not stored after they were
	// listed. Otherwise they are left to it: nobody could tell them apart.
	if _, err := t.store.Session(ctx, d.Session); !errors.Is(err, eventlog.ErrNotFound) {
		return err
	}
	var errs []error
	for _, p := range list {
		if !p.Gone {
			_, err := processes.Stop(ctx, owner, p.ID)
			errs = append(errs, err)
		}
		errs = append(errs, processes.MarkSeen(ctx, owner, p.ID))
	}
	return errors.Join(errs...)
}
