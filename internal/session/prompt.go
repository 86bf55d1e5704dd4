package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/workspace"
)

// A Transform lets a client rewrite sections of the system prompt.
type Transform func(ctx context.Context, id event.SessionID, sections map[string]string) (map[string]string, error)

// preparing is the activity of having a client rewrite the system prompt, and what
// the session knows of its prompt.
type preparing struct {
	now      *preparation      // nil if no client is asked
	prepared map[string]string // the sections as the client has rewritten them for the next turn; nil if it has not yet
	last     string            // the last system prompt
	lastOf   promptOf          // parts of the last system prompt
	branch   string            // branch of the working tree as it was last read
}

// A preparation is one request to a client to rewrite the system prompt.
type preparation struct {
	cancel context.CancelFunc
}

func (p *preparing) busy() bool { return p.now != nil }

func (p *preparing) stop(error) {
	if p.now != nil {
		p.now.cancel()
	}
	p.now, p.prepared = nil, nil
}

// abort changes nothing: the prompt is for the next turn.
func (p *preparing) abort(*txn, event.AbortData) error { return nil }

// unprepared reports whether a client wants to rewrite the system prompt of the next
// turn, and has not yet.
func (s *Session) unprepared() bool {
	return s.prompt.prepared == nil && s.clients.transformer() != nil
}

// startPreparing lets a client rewrite the system prompt. If the client fails, the
// prompt is used as it is.
func (s *Session) startPreparing(tx *txn) error {
	if err := tx.recordInstructions(); err != nil {
		return err
	}
	if err := tx.recordRecall(); err != nil {
		return err
	}
	sections, err := transcript.Transforms(tx.State.Setup.Config, tx.around(), tx.loadedText(), tx.State.Prompt.Context)
	client := s.clients.transformer()
	if err != nil || len(sections) == 0 || client == nil {
		s.prompt.prepared = map[string]string{}
		return err
	}
	ctx, cancel := context.WithTimeout(s.host.ctx, hookTime)
	p := &preparation{cancel}
	s.prompt.now = p
	tx.afterCommit = append(tx.afterCommit, func() {
		if !s.spawn(func() {
			defer cancel()
			changed, err := client.Transform(ctx, s.id, maps.Clone(sections))
			if err != nil {
				s.host.log.Warn("a client could not look over the system prompt", "session", s.id, "err", err)
				changed = sections
			}
			s.post(func(tx *txn) error {
				if tx.s.prompt.now == p {
					tx.s.prompt.now, tx.s.prompt.prepared = nil, changed
				}
				return nil
			})
		}) {
			cancel()
		}
	})
	return nil
}

// systemPrompt returns the system prompt of the turn that begins. A prompt that a
// client has rewritten stays as it is while that client is away.
func (tx *txn) systemPrompt() (string, error) {
	changed := tx.s.prompt.prepared
	tx.s.prompt.prepared = nil
	if changed == nil && tx.State.Prompt.System != "" {
		if wanted, err := transcript.Transforms(tx.State.Setup.Config, tx.around(), tx.loadedText(), tx.State.Prompt.Context); err == nil && len(wanted) > 0 {
			return tx.State.Prompt.System, nil
		}
	}
	if from := (promptOf{tx.State, tx.State.Setup.Offered, tx.around(), tx.loadedText(), tx.State.Prompt.Context}); len(changed) > 0 || tx.s.prompt.lastOf != from {
		prompt, err := transcript.System(tx.State.Setup.Config, from.around, tx.loadedText(), tx.State.Prompt.Context, changed)
		if err != nil || len(changed) > 0 {
			return prompt, err
		}
		tx.s.prompt.last, tx.s.prompt.lastOf = prompt, from
	}
	return tx.s.prompt.last, nil
}

// promptOf is what a system prompt depends on. The prompt is built again only if it
// has changed.
type promptOf struct {
	state           *turn.State
	offered         int // a count that changes with the configuration
	around          transcript.Around
	loaded, context string
}

// around returns what the prompt tells of the place. The branch was read with the
// instructions, at the beginning of the turn.
func (tx *txn) around() transcript.Around {
	a := transcript.Around{Branch: tx.s.prompt.branch, Model: tx.State.AskedModel()}
	if tx.State.Setup.Config.Workspace == nil {
		a.Platform = runtime.GOOS + "/" + runtime.GOARCH
	}
	return a
}

// inputText returns what the model reads of an input, without the date.
func (tx *txn) inputText(in event.InputAcceptedData) (string, error) {
	said, added := tx.State.Said(in)
	text := said
	if len(in.Attachments) > 0 {
		var err error
		h, id := tx.s.host, tx.s.id
		text, err = lookAt(tx.s, in.InputID, said, func(ctx context.Context) string {
			return transcript.Reads(said, in.Attachments, h.countAttached(ctx, id, in.Attachments))
		})
		if err != nil {
			return "", err
		}
	}
	if tx.State.Turn == nil {
		if gone := tx.toolsGone(); len(gone) > 0 {
			text = transcript.ToolsGone(gone) + "\n\n" + text
		}
	}
	if added != "" {
		text += "\n\n" + added
	}
	return text, nil
}

// countAttached returns a function that knows how many lines the attached files have, and
// how many entries the folders.
func (h *Host) countAttached(ctx context.Context, id event.SessionID, attached []json.RawMessage) transcript.CountFunc {
	var paths []string
	_ = transcript.Reads("", attached, func(path string) (int, bool) {
		paths = append(paths, path)
		return 0, false
	})
	known := make(map[string]int)
	err := h.withFiles(ctx, id, func(ctx context.Context, files workspace.Files) error {
		counts, err := files.Count(ctx, paths...)
		for i, n := range counts {
			known[paths[i]] = n
		}
		return err
	})
	if err != nil {
		h.log.Warn("attached files could not be counted", "session", id, "err", err)
	}
	return func(path string) (int, bool) {
		n, ok := known[path]
		return n, ok && n >= 0
	}
}

// toolsGone names the tools that the model could call in the last turn and can no
// longer call, because their clients left.
func (tx *txn) toolsGone() []string {
	if len(tx.State.Setup.Tools) == 0 {
		return nil
	}
	now, ok := tx.s.clients.tools(nil)
	if !ok || tx.State.About.Summary == "" {
		return nil
	}
	var gone []string
	for _, t := range tx.State.Setup.Tools {
		if !slices.ContainsFunc(now, func(n event.ExternalTool) bool { return n.Name == t.Name }) {
			gone = append(gone, t.Name)
		}
	}
	return gone
}

// openTurn records what has changed since the last turn: the tools of the attached
// clients, the instructions, the skills and the system prompt.
func (tx *txn) openTurn(interaction string) error {
	if tools, ok := tx.s.clients.tools(nil); ok && !sameTools(tools, tx.State.Setup.Tools) {
		if err := tx.record(event.ToolsDeclaredData{Tools: tools}); err != nil {
			return err
		}
	}
	tx.scheduleExtraction() // the last turn may have ended without the session being idle
	if err := tx.recordInstructions(); err != nil {
		return err
	}
	if err := tx.recordSkills(); err != nil {
		return err
	}
	if err := tx.recordMCPTools(); err != nil {
		return err
	}
	if err := tx.recordRecall(); err != nil {
		return err
	}
	prompt, err := tx.systemPrompt()
	if err != nil {
		return err
	}
	if prompt == tx.State.Prompt.System {
		return nil
	}
	return tx.record(event.SystemMessageData{Role: "system", Content: prompt, InteractionID: interaction, Context: tx.State.Prompt.Context})
}

// recordInstructions records what the project's files say, if it has changed.
func (tx *txn) recordInstructions() error {
	if tx.s.host.opts.Instructions == nil {
		return nil
	}
	var found instructionText
	if config := tx.State.Setup.Config; !config.SkipInstructions {
		var err error
		if found, err = tx.s.readInstructions(config); err != nil {
			return err
		}
	}
	if found.err != nil {
		tx.s.warnOnce("some instructions could not be read", found.err)
	}
	if isAway(found.err) {
		return nil
	}
	tx.s.prompt.branch = found.branch
	if found.text == tx.State.Prompt.Loaded {
		return nil
	}
	for _, source := range found.sources {
		if source.Cut {
			tx.send(event.SessionWarningData{WarningType: "instructions", Message: fmt.Sprintf(
				"The model is told only the first %d bytes of %s, because instructions are too long together; shorten them, or raise instructions.max_bytes.", source.Bytes, source.Path)})
		}
	}
	return tx.record(event.InstructionsLoadedData{Text: found.text, Sources: notNil(found.sources)})
}

// instructionText is what the files of a project say to agents.
type instructionText struct {
	text    string
	sources []event.InstructionSource
	branch  string // branch of the working tree; empty if there is none
	err     error
	near    bool // true if the folders are on disks of this machine
}

// instructionsOf is what a reading of the instructions depends on.
type instructionsOf struct {
	folders []string
	branch  bool // true if the branch is wanted, too
}

// readInstructions reads the instructions for a session. They are read before every turn:
// while their folders are on disks of this machine, that takes no second transaction on a
// busy machine, and no limit of its own.
func (s *Session) readInstructions(config event.SessionConfiguredData) (instructionText, error) {
	h, id := s.host, s.id
	if config.Workspace == nil {
		id = "" // the files of this machine, which are there without a look at the index
	}
	folders := append([]string{config.WorkingDirectory}, config.InstructionDirs...)
	of := instructionsOf{folders, transcript.ShowsPlace(config)}
	read := func(ctx context.Context, from workspace.Files) (found instructionText) {
		found.text, found.sources, found.err = h.opts.Instructions(ctx, from, folders[0], folders[1:]...)
		if of.branch && !isAway(found.err) { // it would only be waited for once more
			found.branch = readBranch(ctx, from, folders[0], config.Workspace == nil)
		}
		return found
	}
	if s.looking.isNear(folders) {
		found, err := lookFor(s, nearTime, "instructions", of, func(ctx context.Context) instructionText {
			files, err := h.Work.Files(id)
			if err != nil {
				return instructionText{err: &noWorkspace{err}}
			}
			return read(ctx, files)
		})
		if errors.Is(err, errLooking) {
			s.looking.near = nil
		}
		return found, err
	}
	found, err := lookAt(s, "instructions", of, func(ctx context.Context) (found instructionText) {
		err := h.withFiles(ctx, id, func(ctx context.Context, from workspace.Files) error {
			found = read(ctx, from)
			return found.err
		})
		found.err = err
		found.near = config.Workspace == nil && h.areOnDisk(folders)
		return found
	})
	if found.near {
		s.looking.near = folders
	}
	return found, err
}

// areOnDisk reports whether folders of this machine are known to be on its own disks.
func (h *Host) areOnDisk(folders []string) bool {
	if h.opts.OnDisk == nil {
		return false
	}
	return !slices.ContainsFunc(folders, func(dir string) bool { return !h.opts.OnDisk(dir) })
}

// warnOnce warns the operator about files that are read before every turn: once for
// each message.
func (s *Session) warnOnce(what string, err error) {
	about := what + ": " + err.Error()
	if s.warned[about] {
		return
	}
	if s.warned == nil {
		s.warned = make(map[string]bool)
	}
	s.warned[about] = true
	s.host.log.Warn(what, "session", s.id, "err", err)
}

// loadedText returns what the project's files and memory tell the model.
func (tx *txn) loadedText() string {
	loaded, recalled := tx.State.Prompt.Loaded, tx.State.Memory.Recalled
	if loaded == "" || recalled == "" {
		return loaded + recalled
	}
	return loaded + "\n\n" + recalled
}
