package rpc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/project/trust"
	"github.com/abide-run/abide/internal/turn"
)

// These methods remember what people allow in a place, for all sessions there.
var _ = register(map[string]method{
	api.LocationsResolve:     on((*conn).resolveLocation),
	api.LocationsApply:       on((*conn).applyLocation),
	api.LocationsAddApproval: on((*conn).addApproval),
	api.FolderIsTrusted:      on((*conn).folderTrusted),
	api.FolderAddTrusted:     on((*conn).trustFolder),
})

// location finds the place that a request is about.
func (c *conn) location(ctx context.Context, p api.LocationParams) (api.LocationResult, error) {
	if !filepath.IsAbs(p.WorkingDirectory) {
		return api.LocationResult{}, errBadParams{errors.New("workingDirectory: want an absolute path")}
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	there := st.Config
	there.WorkingDirectory = p.WorkingDirectory
	return locate(there.Location()), noSession(p.SessionID, err)
}

func locate(dir string) api.LocationResult {
	at := places.Locate(dir)
	return api.LocationResult{Key: at.Key, Kind: at.Kind}
}

func (c *conn) resolveLocation(ctx context.Context, p api.LocationParams) (api.LocationResult, error) {
	return c.location(ctx, p)
}

// applyLocation lets what is allowed in a place be allowed in the session.
func (c *conn) applyLocation(ctx context.Context, p api.LocationParams) (api.AppliedResult, error) {
	at, err := c.location(ctx, p)
	if err != nil {
		return api.AppliedResult{}, err
	}
	rules, err := c.server.places.Rules(at.Key)
	if err != nil {
		return api.AppliedResult{}, err
	}
	result := api.AppliedResult{LocationResult: at, Rules: append([]event.Rule{}, rules...), RuleCount: len(rules)}
	err = c.server.host.Permissions.ChangeRules(ctx, p.SessionID, func(to *event.ClientRules) error {
		result.Changed = to.Location != at.Key
		to.Location, to.FromThere = at.Key, rules
		return nil
	})
	return result, noSession(p.SessionID, err)
}

// approvedRules is an approval for a place as rules. It covers no more than its words
// can: commands by names with which no command can run other code, and files below the
// folder of the place.
func approvedRules(a api.Approval, place string) ([]event.Rule, error) {
	switch a.Kind {
	case "commands":
		return approvedCommands(a.Commands)
	case approval.Read, approval.Write:
		if !filepath.IsAbs(place) {
			return nil, errBadParams{errors.New("locationKey: want the absolute path of the folder whose files are meant")}
		}
		return []event.Rule{turn.GrantRule(event.Grant{Kind: a.Kind, Folder: filepath.Clean(place)})}, nil
	case "memory":
		return []event.Rule{{Kind: a.Kind}}, nil
	case approval.CustomTool:
		if a.ToolName == nil || *a.ToolName == "" {
			return nil, errBadParams{errors.New("approval.toolName: it is empty")}
		}
		return []event.Rule{turn.GrantRule(event.Grant{Kind: a.Kind, Subject: *a.ToolName})}, nil
	case "mcp":
		if a.Server == "" {
			return nil, errBadParams{errors.New("approval.serverName: it is empty")}
		}
		subject := a.Server
		if a.ToolName != nil {
			subject += "/" + *a.ToolName
		}
		return []event.Rule{turn.GrantRule(event.Grant{Kind: a.Kind, Subject: subject})}, nil
	}
	return nil, errBadParams{fmt.Errorf("approval.kind: %q is not supported", a.Kind)}
}

// approvedCommands is an approval of commands by their names as rules. A name with which
// commands can run other code stands for the command without further words.
func approvedCommands(names []string) ([]event.Rule, error) {
	if len(names) == 0 {
		return nil, errBadParams{errors.New("approval.commandIdentifiers: it is empty")}
	}
	var rules []event.Rule
	for i, name := range names {
		plain, err := shell.ReadPlain(name)
		if err != nil {
			return nil, errBadParams{fmt.Errorf("approval.commandIdentifiers[%d]: %q is not the name of a command: it has %w", i, name, err)}
		}
		g := event.Grant{Kind: approval.Shell, Command: plain.String()}
		if words := plain.Commands()[0].Words; len(plain.Commands()) == 1 && approval.SafePrefix(words) {
			g = event.Grant{Kind: approval.Shell, Prefix: words}
		}
		rules = append(rules, turn.GrantRule(g))
	}
	return rules, nil
}

// addApproval remembers an approval for a place.
func (c *conn) addApproval(ctx context.Context, p api.ApprovalParams) (api.Success, error) {
	if strings.TrimSpace(p.Location) == "" {
		return api.Success{}, errBadParams{errors.New("locationKey: it is empty")}
	}
	rules, err := approvedRules(p.Approval, p.Location)
	if err != nil {
		return api.Success{}, err
	}
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return succeeded(p.SessionID, err)
	}
	return succeeded(p.SessionID, c.server.places.Change(p.Location, adding(rules)))
}

func adding(more []event.Rule) func([]event.Rule) []event.Rule {
	return func(rules []event.Rule) []event.Rule { return addRules(rules, more) }
}

// modifyLocation changes the rules of the place where the session works.
func (c *conn) modifyLocation(ctx context.Context, p api.ModifyRulesParams) (api.Success, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return succeeded(p.SessionID, err)
	}
	key := locate(st.Config.Location()).Key
	err = c.server.places.Change(key, func(rules []event.Rule) []event.Rule { return modified(rules, p) })
	return succeeded(p.SessionID, err)
}

func (c *conn) folderTrusted(ctx context.Context, p api.PathParams) (api.TrustedResult, error) {
	if !filepath.IsAbs(p.Path) {
		return api.TrustedResult{}, errBadParams{errors.New("path: want an absolute path")}
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.TrustedResult{}, noSession(p.SessionID, err)
	}
	if st.Config.Workspace != nil { // a folder of the same name on this machine is another one
		return api.TrustedResult{}, nil
	}
	trusted, err := c.trusts(followed(p.Path))
	return api.TrustedResult{Trusted: trusted}, err
}

// trusts reports whether a folder is trusted as its configuration is now.
func (c *conn) trusts(dir string) (bool, error) {
	trusted, err := c.server.places.Trusted(dir)
	if err != nil || c.server.opts.Trust == nil {
		return trusted, err
	}
	record, known, err := c.server.opts.Trust.Find(dir)
	if err != nil || !known && !trusted {
		return false, err
	}
	content, err := trust.Read(dir)
	return err == nil && record.Covers(content), err
}

func (c *conn) trustFolder(ctx context.Context, p api.PathParams) (api.Success, error) {
	st, dir, err := c.folder(ctx, p)
	if err != nil {
		return api.Success{}, err
	}
	if st.Config.Workspace != nil {
		return api.Success{}, said("path %s: only folders on the machine of the engine can be trusted, and the session works in the workspace %s", p.Path, st.Config.Workspace.Label())
	}
	dir = followed(dir)
	if c.server.opts.Trust != nil { // the configuration of the folder shall apply, too
		if err := c.server.opts.Trust.TrustNow(dir); err != nil {
			return api.Success{}, said("path %s: %v", p.Path, err)
		}
	}
	return succeeded(p.SessionID, c.server.places.Trust(dir))
}
