package rpc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
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
	_, err := c.server.host.Status(ctx, p.SessionID)
	return locate(p.WorkingDirectory), noSession(p.SessionID, err)
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

// approved is an approval as rules.
func approved(a api.Approval) ([]event.Rule, error) {
	switch a.Kind {
	case "commands":
		if len(a.Commands) == 0 {
			return nil, errBadParams{errors.New("approval.commandIdentifiers: it is empty")}
		}
		var rules []event.Rule
		for _, name := range a.Commands {
			rules = append(rules, event.Rule{Kind: "shell", Argument: &name})
		}
		return rules, checkRules("approval.commandIdentifiers", rules)
	case "read", "write", "memory":
		return []event.Rule{{Kind: a.Kind}}, nil
	case "custom-tool":
		if a.ToolName == nil || *a.ToolName == "" {
			return nil, errBadParams{errors.New("approval.toolName: it is empty")}
		}
		rules := []event.Rule{{Kind: a.Kind, Argument: a.ToolName}}
		return rules, checkRules("approval.toolName", rules)
	case "mcp":
		argument := a.Server
		if a.ToolName != nil {
			argument += "/" + *a.ToolName
		}
		rules := []event.Rule{{Kind: a.Kind, Argument: &argument}}
		return rules, checkRules("approval.serverName", rules)
	}
	return nil, errBadParams{fmt.Errorf("approval.kind: %q is not supported", a.Kind)}
}

// addApproval remembers an approval for a place.
func (c *conn) addApproval(ctx context.Context, p api.ApprovalParams) (api.Success, error) {
	if strings.TrimSpace(p.Location) == "" {
		return api.Success{}, errBadParams{errors.New("locationKey: it is empty")}
	}
	rules, err := approved(p.Approval)
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
	key := locate(st.Config.WorkingDirectory).Key
	err = c.server.places.Change(key, func(rules []event.Rule) []event.Rule { return modified(rules, p) })
	return succeeded(p.SessionID, err)
}

func (c *conn) folderTrusted(ctx context.Context, p api.PathParams) (api.TrustedResult, error) {
	if !filepath.IsAbs(p.Path) {
		return api.TrustedResult{}, errBadParams{errors.New("path: want an absolute path")}
	}
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return api.TrustedResult{}, noSession(p.SessionID, err)
	}
	trusted, err := c.server.places.Trusted(followed(p.Path))
	return api.TrustedResult{Trusted: trusted}, err
}

func (c *conn) trustFolder(ctx context.Context, p api.PathParams) (api.Success, error) {
	_, dir, err := c.folder(ctx, p)
	if err != nil {
		return api.Success{}, err
	}
	return succeeded(p.SessionID, c.server.places.Trust(followed(dir)))
}
