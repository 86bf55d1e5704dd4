package files

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
)

// A readRequest is what people are shown of a call that wants to read.
type readRequest struct {
	Kind       string   `json:"kind"`
	ToolCallID string   `json:"toolCallId"`
	Intention  string   `json:"intention"`
	Path       string   `json:"path"`
	LeadsTo    []string `json:"leadsTo,omitempty"` // ours: where links lead, or all paths if there are several
}

// A writeRequest is what people are shown of a call that wants to write.
type writeRequest struct {
	Kind       string   `json:"kind"`
	ToolCallID string   `json:"toolCallId"`
	Intention  string   `json:"intention"`
	FileName   string   `json:"fileName"`
	Diff       string   `json:"diff"`
	Contents   *string  `json:"newFileContents,omitempty"`
	CanOffer   bool     `json:"canOfferSessionApproval"`
	LeadsTo    []string `json:"leadsTo,omitempty"`    // ours: where a link leads
	Digest     string   `json:"fileDigest,omitempty"` // ours: what the file held
}

// request completes a request about paths that were judged.
func request(call tool.Call, s *scope.Scope, kind string, names []string, found []scope.Finding, body any) (*approval.Request, error) {
	ask, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r := &approval.Request{Kind: kind, Aliases: names, Dirs: []string{call.Dir}, Allowed: true, Ask: ask, Prompt: ask}
	for _, f := range found {
		r.Details = append(r.Details, f.Path)
		r.Allowed = r.Allowed && f.Verdict == scope.Allowed
	}
	if dir, err := s.Judge(call.Dir, scope.Read); err == nil && dir.Path != call.Dir {
		r.Dirs = append(r.Dirs, dir.Path)
	}
	return r, nil
}

// judge judges paths. What is denied need not be asked about.
func judge(s *scope.Scope, mode scope.Mode, paths ...string) ([]scope.Finding, error) {
	var found []scope.Finding
	for _, path := range paths {
		f, err := s.Judge(path, mode)
		if err != nil {
			return nil, unusable(path, err)
		}
		if f.Verdict == scope.Denied {
			return nil, unusable(path, &scope.Refusal{Finding: f, Name: path, Mode: mode})
		}
		found = append(found, f)
	}
	return found, nil
}

// leadsTo returns where paths lead, if that is not what they say.
func leadsTo(paths []string, found []scope.Finding) []string {
	var real []string
	for _, f := range found {
		real = append(real, f.Path)
	}
	if slices.Equal(real, paths) && len(paths) == 1 {
		return nil
	}
	return real
}

// reading asks to read paths. The intention depends on whether they are folders.
func (f *files) reading(call tool.Call, paths []string, intention func(isFolder bool) string) (*approval.Request, error) {
	s, err := f.Scope(call)
	if err != nil {
		return nil, err
	}
	found, err := judge(s, scope.Read, paths...)
	if err != nil {
		return nil, err
	}
	info, err := s.With(found[0].Path, scope.Read).Stat(found[0].Path)
	body := readRequest{
		Kind: approval.Read, ToolCallID: call.ID, Path: strings.Join(paths, ", "),
		Intention: intention(err == nil && info.Kind == scope.Folder) + strings.Join(paths, ", "),
		LeadsTo:   leadsTo(paths, found),
	}
	if body.LeadsTo != nil && !slices.Equal(body.LeadsTo, paths) {
		body.Intention += " (leads to " + strings.Join(body.LeadsTo, ", ") + ")"
	}
	return request(call, s, approval.Read, paths, found, body)
}
