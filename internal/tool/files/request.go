package files

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
)

// A readRequest is the permission request that clients show for reading.
type readRequest struct {
	Kind       string   `json:"kind"`
	ToolCallID string   `json:"toolCallId"`
	Intention  string   `json:"intention"`
	Path       string   `json:"path"`
	LeadsTo    []string `json:"leadsTo,omitempty"` // an addition of abide: the paths without links, if they differ or are several
}

// A writeRequest is the permission request that clients show for writing.
type writeRequest struct {
	Kind       string   `json:"kind"`
	ToolCallID string   `json:"toolCallId"`
	Intention  string   `json:"intention"`
	FileName   string   `json:"fileName"`
	Diff       string   `json:"diff"`
	Contents   *string  `json:"newFileContents,omitempty"`
	CanOffer   bool     `json:"canOfferSessionApproval"`
	LeadsTo    []string `json:"leadsTo,omitempty"`    // an addition of abide: the path without links, if it differs
	Digest     string   `json:"fileDigest,omitempty"` // an addition of abide: digest of the old content
	Protected  string   `json:"protected,omitempty"`  // an addition of abide: why the file is protected
}

// request returns the request for paths and the findings about them.
func request(call tool.Call, s *scope.Scope, kind string, names []string, found []scope.Finding, body any) (*approval.Request, error) {
	ask, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r := &approval.Request{Kind: kind, Aliases: names, Dirs: []string{call.Dir}, Allowed: true, Ask: ask, Prompt: ask}
	for _, f := range found {
		r.Details = append(r.Details, f.Path)
		r.Allowed = r.Allowed && f.Verdict == scope.Allowed && f.Protected == ""
		r.Protected = cmp.Or(r.Protected, f.Protected)
	}
	if dir, err := s.Judge(call.Dir, scope.Read); err == nil && dir.Path != call.Dir {
		r.Dirs = append(r.Dirs, dir.Path)
	}
	return r, nil
}

// judge applies the scope to paths. A denied path is an error: it is not asked about.
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

// leadsTo returns the paths without links, or nil for a single path that has none.
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

// requestRead returns the request to read paths. The intention depends on whether the first
// is a folder.
func (f *files) requestRead(call tool.Call, paths []string, intention func(isFolder bool) string) (*approval.Request, error) {
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
