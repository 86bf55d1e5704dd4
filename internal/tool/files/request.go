package files

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
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
	Omitted    string   `json:"omitted,omitempty"`    // an addition of abide: what of the change Diff does not show
}

// request returns the request for paths and the judgements about them, and about the
// working directory.
func request(call tool.Call, kind string, names []string, found []workspace.Judgement, dir workspace.Judgement, body any) (*approval.Request, error) {
	ask, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r := &approval.Request{Kind: kind, Aliases: names, Dirs: []string{call.Dir}, Allowed: true, Ask: ask, Prompt: ask}
	for _, f := range found {
		r.Details = append(r.Details, f.Path)
		if f.Err == nil && f.Kind == scope.Folder {
			r.Folders = append(r.Folders, f.Path)
		}
		r.Allowed = r.Allowed && f.Verdict == scope.Allowed && f.Protected == ""
		r.Protected = cmp.Or(r.Protected, f.Protected)
	}
	if dir.Path != "" && dir.Path != call.Dir {
		r.Dirs = append(r.Dirs, dir.Path)
	}
	return r, nil
}

// checkAskable returns the error of a path that is denied or cannot be followed: it is not
// asked about.
func checkAskable(j workspace.Judgement, path string, mode scope.Mode) error {
	switch {
	case j.Path == "":
		return unusable(path, j.Err)
	case j.Verdict == scope.Denied:
		return unusable(path, &scope.Refusal{Finding: j.Finding, Name: path, Mode: mode})
	}
	return nil
}

// leadsTo returns the paths without links, or nil for a single path that has none.
func leadsTo(paths []string, found []workspace.Judgement) []string {
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
func (f *files) requestRead(ctx context.Context, call tool.Call, paths []string, intention func(isFolder bool) string) (*approval.Request, error) {
	ctx, cancel := limitedContext(ctx)
	defer cancel()
	at, err := f.access(ctx, call)
	if err != nil {
		return nil, err
	}
	asked := []workspace.Question{{Path: call.Dir, Mode: scope.Read}}
	for _, path := range paths {
		asked = append(asked, workspace.Question{Path: path, Mode: scope.Read})
	}
	found, err := at.judge(ctx, asked...)
	if err != nil {
		return nil, err
	}
	dir, found := found[0], found[1:]
	for i, j := range found {
		if err := checkAskable(j, paths[i], scope.Read); err != nil {
			return nil, err
		}
	}
	body := readRequest{
		Kind: approval.Read, ToolCallID: call.ID, Path: strings.Join(paths, ", "),
		Intention: intention(found[0].Err == nil && found[0].Kind == scope.Folder) + strings.Join(paths, ", "),
		LeadsTo:   leadsTo(paths, found),
	}
	if body.LeadsTo != nil && !slices.Equal(body.LeadsTo, paths) {
		body.Intention += " (leads to " + strings.Join(body.LeadsTo, ", ") + ")"
	}
	return request(call, approval.Read, paths, found, dir, body)
}
