package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/workspace"
)

// These methods change what a session may do without asking.
var _ = register(map[string]method{
	api.PermissionsSetApproveAll: on((*conn).setApproveAll),
	api.PermissionsSetMode:       on((*conn).setPermissionMode),
	api.PermissionsGetMode:       on((*conn).permissionMode),
	api.PermissionsConfigure:     on((*conn).configurePermissions),
	api.PermissionsModifyRules:   on((*conn).modifyRules),
	api.PermissionsReset:         on((*conn).resetApprovals),
	api.PermissionsSetRequired:   on((*conn).setRequired),
	api.PermissionsPromptShown:   on((*conn).promptShown),
	api.PathsList:                on((*conn).paths),
	api.PathsAdd:                 on((*conn).addPath),
	api.PathsUpdatePrimary:       on((*conn).updatePrimary),
	api.PathsAllowed:             on((*conn).pathAllowed),
	api.PathsWorkspace:           on((*conn).pathInWorkspace),
	api.URLsUnrestricted:         on((*conn).setURLsUnrestricted),
})

// missing names a field that has to be there.
func missing(field string) error { return errBadParams{fmt.Errorf("%s: it is missing", field)} }

// succeeded answers a request that only tells whether it had an effect.
func succeeded(id event.SessionID, err error) (api.Success, error) {
	return api.Success{Success: err == nil}, noSession(id, err)
}

func (c *conn) setApproveAll(ctx context.Context, p api.EnabledParams) (api.Success, error) {
	if p.Enabled == nil {
		return api.Success{}, missing("enabled")
	}
	return succeeded(p.SessionID, c.server.host.Permissions.AllowAll(ctx, p.SessionID, *p.Enabled))
}

func (c *conn) setPermissionMode(ctx context.Context, p api.ModeParams) (api.PermissionModeResult, error) {
	all := p.Mode == turn.PermissionMode(true)
	if !all && p.Mode != turn.PermissionMode(false) {
		return api.PermissionModeResult{}, errBadParams{fmt.Errorf("mode: %q is not supported; use manual or allow-all", p.Mode)}
	}
	err := c.server.host.Permissions.AllowAll(ctx, p.SessionID, all)
	return api.PermissionModeResult{Mode: p.Mode, Success: err == nil}, noSession(p.SessionID, err)
}

func (c *conn) permissionMode(ctx context.Context, p api.SessionParams) (api.PermissionModeResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	return api.PermissionModeResult{Mode: turn.PermissionMode(st.AllowsAll)}, noSession(p.SessionID, err)
}

// checkRules finds the first rule that makes no sense.
func checkRules(field string, rules []event.Rule) error {
	for i, r := range rules {
		if r.Kind == "" {
			return errBadParams{fmt.Errorf("%s[%d].kind: it is empty", field, i)}
		}
		if r.Grant != nil {
			return errBadParams{fmt.Errorf("%s[%d].grant: only an answer to a question can grant something", field, i)}
		}
		var tools []string
		if r.Kind == approval.CustomTool && r.Argument != nil { // a client may call its tool whatever it likes
			tools = append(tools, *r.Argument)
		}
		if err := approval.Check(turn.RuleText(r), tools...); err != nil {
			return errBadParams{fmt.Errorf("%s[%d]: %w", field, i, err)}
		}
	}
	return nil
}

func (c *conn) configurePermissions(ctx context.Context, p api.ConfigureParams) (api.Success, error) {
	if r := p.Rules; r != nil {
		if err := errors.Join(checkRules("rules.approved", r.Approved), checkRules("rules.denied", r.Denied)); err != nil {
			return api.Success{}, err
		}
	}
	if w := p.Paths; w != nil {
		for i, dir := range append([]string{cmp.Or(w.Workspace, "/")}, w.Directories...) {
			if !filepath.IsAbs(dir) {
				return api.Success{}, errBadParams{fmt.Errorf("paths: %q (directory %d) is not absolute", dir, i)}
			}
		}
	}
	err := c.server.host.Permissions.ChangeRules(ctx, p.SessionID, func(to *event.ClientRules) error { configureRules(to, p); return nil })
	if err == nil && p.ApproveAll != nil {
		err = c.server.host.Permissions.AllowAll(ctx, p.SessionID, *p.ApproveAll)
	}
	return succeeded(p.SessionID, err)
}

// configureRules takes over what a client says; what it does not say stays.
func configureRules(to *event.ClientRules, p api.ConfigureParams) {
	if p.ApproveRead != nil {
		to.AllowReads = *p.ApproveRead
	}
	if r := p.Rules; r != nil {
		to.Allow, to.Deny = r.Approved, r.Denied
	}
	if w := p.Paths; w != nil {
		to.Primary, to.AnyPath, to.Temp = w.Workspace, w.Unrestricted, w.Temp == nil || *w.Temp
		to.Directories = nil
		for _, dir := range w.Directories {
			to.Directories = append(to.Directories, filepath.Clean(dir))
		}
	}
	if u := p.URLs; u != nil {
		to.URLs, to.AnyURL = u.Allowed, u.Unrestricted
	}
}

// modifyRules adds and removes rules, of the session or of the place where it
// works.
func (c *conn) modifyRules(ctx context.Context, p api.ModifyRulesParams) (api.Success, error) {
	if err := errors.Join(checkRules("add", p.Add), checkRules("remove", p.Remove)); err != nil {
		return api.Success{}, err
	}
	switch p.Scope {
	case "session":
		return succeeded(p.SessionID, c.server.host.Permissions.ChangeRules(ctx, p.SessionID, func(to *event.ClientRules) error {
			to.Allow = modified(to.Allow, p)
			return nil
		}))
	case "location":
		return c.modifyLocation(ctx, p)
	}
	return api.Success{}, errBadParams{fmt.Errorf("scope: %q is unknown; use session or location", p.Scope)}
}

func modified(rules []event.Rule, p api.ModifyRulesParams) []event.Rule {
	if p.RemoveAll {
		return nil
	}
	rules = addRules(rules, p.Add)
	return slices.DeleteFunc(rules, func(r event.Rule) bool {
		return slices.ContainsFunc(p.Remove, func(o event.Rule) bool { return turn.RuleText(r) == turn.RuleText(o) })
	})
}

// addRules adds the rules that are not there yet.
func addRules(rules, more []event.Rule) []event.Rule {
	rules = slices.Clone(rules)
	for _, r := range more {
		if !slices.ContainsFunc(rules, r.Equal) {
			rules = append(rules, r)
		}
	}
	return rules
}

func (c *conn) resetApprovals(ctx context.Context, p api.ResetParams) (api.Success, error) {
	location := p.Location == nil || *p.Location
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err == nil && location && st.Rules.Location != "" {
		err = c.server.places.Change(st.Rules.Location, func([]event.Rule) []event.Rule { return nil })
	}
	if err == nil {
		err = c.server.host.Permissions.ResetGrants(ctx, p.SessionID, location)
	}
	return succeeded(p.SessionID, err)
}

// setRequired tells whether this client wants to be asked. That somebody did is
// never forgotten: a question then waits for an answer instead of being denied.
func (c *conn) setRequired(ctx context.Context, p api.RequiredParams) (api.Success, error) {
	if p.Required == nil {
		return api.Success{}, missing("required")
	}
	if !*p.Required {
		_, err := c.server.host.Status(ctx, p.SessionID)
		return succeeded(p.SessionID, err)
	}
	return succeeded(p.SessionID, c.server.host.Permissions.Declare(ctx, p.SessionID))
}

func (c *conn) promptShown(ctx context.Context, p api.PromptShownParams) (api.Success, error) {
	if p.Message == "" {
		return api.Success{}, errBadParams{errors.New("message: it is empty")}
	}
	_, err := c.server.host.Status(ctx, p.SessionID)
	return succeeded(p.SessionID, err)
}

func (c *conn) setURLsUnrestricted(ctx context.Context, p api.EnabledParams) (api.Success, error) {
	if p.Enabled == nil {
		return api.Success{}, missing("enabled")
	}
	return succeeded(p.SessionID, c.server.host.Permissions.ChangeRules(ctx, p.SessionID, func(to *event.ClientRules) error {
		to.AnyURL = *p.Enabled
		return nil
	}))
}

// primary is the main folder of a session.
func primary(st session.Status) string { return cmp.Or(st.Rules.Primary, st.Config.WorkingDirectory) }

// directories are all folders of a session, the main one first.
func (c *conn) directories(ctx context.Context, st session.Status) ([]string, error) {
	list := []string{primary(st)}
	more := slices.Concat(st.Config.Directories, st.Rules.Directories)
	if st.Rules.Temp {
		files, err := c.server.host.Work.Files(st.ID)
		if err != nil {
			return nil, err
		}
		there, err := files.Folders(ctx)
		if err != nil {
			return nil, err
		}
		more = append(slices.Clip(more), there.Temp)
	}
	for _, dir := range more {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list, nil
}

func (c *conn) paths(ctx context.Context, p api.SessionParams) (api.PathsResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.PathsResult{}, noSession(p.SessionID, err)
	}
	all, err := c.directories(ctx, st)
	return api.PathsResult{Directories: all, Primary: primary(st)}, err
}

// folder finds a folder that a client names, from the session's working
// directory on.
func (c *conn) folder(ctx context.Context, p api.PathParams) (session.Status, string, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return st, "", noSession(p.SessionID, err)
	}
	if p.Path == "" {
		return st, "", errBadParams{errors.New("path: it is empty")}
	}
	dir := p.Path
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(st.Config.WorkingDirectory, dir)
	}
	files, err := c.server.host.Work.Files(p.SessionID)
	if err != nil {
		return st, "", err
	}
	info, err := files.Stat(ctx, workspace.At(dir))
	if err == nil && !info.Mode.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return st, "", said("path %s: %v", p.Path, err)
	}
	return st, filepath.Clean(dir), nil
}

func (c *conn) addPath(ctx context.Context, p api.PathParams) (api.Success, error) {
	_, dir, err := c.folder(ctx, p)
	if err != nil {
		return api.Success{}, err
	}
	return succeeded(p.SessionID, c.server.host.Permissions.ChangeRules(ctx, p.SessionID, func(to *event.ClientRules) error {
		if !slices.Contains(to.Directories, dir) {
			to.Directories = append(slices.Clip(to.Directories), dir)
		}
		return nil
	}))
}

func (c *conn) updatePrimary(ctx context.Context, p api.PathParams) (api.Success, error) {
	_, dir, err := c.folder(ctx, p)
	if err != nil {
		return api.Success{}, err
	}
	return succeeded(p.SessionID, c.server.host.Permissions.ChangeRules(ctx, p.SessionID, func(to *event.ClientRules) error {
		to.Primary = dir
		return nil
	}))
}

func (c *conn) pathAllowed(ctx context.Context, p api.PathParams) (api.AllowedResult, error) {
	return c.pathWithin(ctx, p, func(st session.Status) ([]string, error) {
		if st.Rules.AnyPath {
			return []string{"/"}, nil
		}
		return c.directories(ctx, st)
	})
}

func (c *conn) pathInWorkspace(ctx context.Context, p api.PathParams) (api.AllowedResult, error) {
	return c.pathWithin(ctx, p, func(st session.Status) ([]string, error) { return []string{primary(st)}, nil })
}

func (c *conn) pathWithin(ctx context.Context, p api.PathParams, dirs func(session.Status) ([]string, error)) (api.AllowedResult, error) {
	if p.Path == "" {
		return api.AllowedResult{}, errBadParams{errors.New("path: it is empty")}
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.AllowedResult{}, noSession(p.SessionID, err)
	}
	path := p.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(st.Config.WorkingDirectory, path)
	}
	all, err := dirs(st)
	if err != nil {
		return api.AllowedResult{}, err
	}
	real, err := c.followedThere(ctx, p.SessionID, append([]string{path}, all...))
	if err != nil {
		return api.AllowedResult{}, err
	}
	within := slices.ContainsFunc(real[1:], func(dir string) bool { return places.Within(dir, real[0]) })
	return api.AllowedResult{Allowed: within}, nil
}

// followed follows links of this machine as far as the path exists.
func followed(path string) string {
	path = filepath.Clean(path)
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(followed(parent), filepath.Base(path))
}

// followedThere follows the links of paths as far as they exist, in the workspace of a
// session.
func (c *conn) followedThere(ctx context.Context, id event.SessionID, paths []string) ([]string, error) {
	files, err := c.server.host.Work.Files(id)
	if err != nil {
		return nil, err
	}
	real := make([]string, len(paths))
	for i, path := range paths {
		var asked []disk.Question
		for at := filepath.Clean(path); len(asked) == 0 || at != asked[len(asked)-1].Path; at = filepath.Dir(at) {
			asked = append(asked, disk.Question{Kind: disk.Leads, Path: at})
		}
		found, err := files.Look(ctx, asked...)
		if err != nil {
			return nil, err
		}
		real[i] = filepath.Clean(path)
		if j := slices.IndexFunc(found, func(a disk.Answer) bool { return a.OK }); j >= 0 {
			real[i] = filepath.Join(found[j].Text, strings.TrimPrefix(real[i], asked[j].Path))
		}
	}
	return real, nil
}
