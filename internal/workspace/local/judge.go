package local

import (
	"context"
	"slices"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
)

// Scope implements workspace.Files.
func (w *files) Scope(_ context.Context, allow, deny []scope.Rule) (*scope.Scope, error) {
	return scope.New(allow, deny)
}

// Judge implements workspace.Files.
func (w *files) Judge(ctx context.Context, s *scope.Scope, asked ...workspace.Question) ([]workspace.Judgement, error) {
	s = w.scopeHere(s)
	list, left := make([]workspace.Judgement, len(asked)), int64(workspace.MaxFile)
	for i, q := range asked {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		q.Most = min(q.Most, left)
		list[i] = w.judge(s, q, q.Most > 0 || asked[i].Most > 0)
		left -= int64(len(list[i].Content))
	}
	return list, nil
}

// Look implements workspace.Files.
func (w *files) Look(ctx context.Context, asked ...disk.Question) ([]disk.Answer, error) {
	if len(asked) > workspace.MaxLooks {
		return nil, workspace.ErrTooMany
	}
	list := make([]disk.Answer, len(asked))
	for i, q := range asked {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if list[i] = disk.Unknown(q); w.mayAnswer(q) {
			list[i] = w.withoutOutside(q, disk.Here.Ask(q))
		}
	}
	return list, nil
}

// mayAnswer reports whether the answer to a question tells nothing of what is outside of
// the folder that calls are confined to. A repository can be larger than that folder.
func (w *files) mayAnswer(q disk.Question) bool {
	if w.confined == "" {
		return true
	}
	if q.Kind == disk.Program || !w.isConfined(q.Path) {
		return false
	}
	at := disk.Here.Ask(disk.Question{Kind: disk.Place, Path: q.Path})
	return q.Kind == disk.Leads || q.Kind == disk.Folder || q.Kind == disk.Name || w.isConfined(at.Text)
}

// withoutOutside returns an answer without what was read in a configuration file outside of
// the folder that calls are confined to: a repository in the folder can name one.
func (w *files) withoutOutside(q disk.Question, a disk.Answer) disk.Answer {
	isOutside := func(path string) bool { return !w.isConfined(path) }
	switch {
	case q.Kind == disk.Remotes && slices.ContainsFunc(protect.ConfigsOf(q.Path), isOutside):
		return disk.Unknown(q)
	case q.Kind == disk.Submodules && a.OK && slices.ContainsFunc(protect.ConfigsOf(a.Text), isOutside):
		a.More = "its configuration is outside of " + w.confined
	}
	return a
}

// judge answers one question.
func (w *files) judge(s *scope.Scope, q workspace.Question, content bool) workspace.Judgement {
	found, err := s.Judge(q.Path, q.Mode)
	if err != nil {
		return workspace.Judgement{Err: err}
	}
	found = w.denyOutside(found)
	if found.Protected == "" && q.Mode == scope.Write && w.protected != nil {
		found.Protected, _ = w.protected(found.Path)
	}
	j := workspace.Judgement{Finding: found}
	if found.Verdict == scope.Denied {
		j.Err = &scope.Refusal{Finding: found, Name: q.Path, Mode: q.Mode}
		return j
	}
	s = s.With(found.Path, q.Mode)
	if content {
		j.Kind = scope.Regular
		j.Content, j.Err = s.ReadFile(q.Path, q.Most)
		return j
	}
	info, err := s.Stat(q.Path)
	j.Kind, j.Err = info.Kind, err
	return j
}
