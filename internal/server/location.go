package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// locationMethods remember what people allow in a place, for all sessions there.
var locationMethods = map[string]method{
	api.LocationsResolve:     on((*conn).resolveLocation),
	api.LocationsApply:       on((*conn).applyLocation),
	api.LocationsAddApproval: on((*conn).addApproval),
	api.FolderIsTrusted:      on((*conn).folderTrusted),
	api.FolderAddTrusted:     on((*conn).trustFolder),
}

// A place is what is remembered of a location.
type place struct {
	Allow []event.Rule `json:"allow,omitempty"`
}

// places is what is remembered of all locations, in a file.
type places struct {
	path string // kept in memory alone if empty

	mu     sync.Mutex
	loaded bool
	known  struct {
		Locations map[string]*place `json:"locations"`
		Trusted   []string          `json:"trusted"`
	}
}

func (p *places) loadLocked() error {
	if p.loaded || p.path == "" {
		return nil
	}
	b, err := os.ReadFile(p.path)
	if err == nil {
		err = json.Unmarshal(b, &p.known)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what is allowed in places: %w", err)
	}
	p.loaded = true
	return nil
}

func (p *places) saveLocked() error {
	if p.path == "" {
		return nil
	}
	b, err := json.MarshalIndent(p.known, "", "  ")
	if err == nil {
		err = replaceFile(p.path, append(b, '\n'))
	}
	if err != nil {
		p.loaded = false // the file is the truth
		return fmt.Errorf("remember what is allowed in places: %w", err)
	}
	return nil
}

// rules returns what is allowed in a location.
func (p *places) rules(key string) ([]event.Rule, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return nil, err
	}
	if at := p.known.Locations[key]; at != nil {
		return slices.Clone(at.Allow), nil
	}
	return nil, nil
}

// any reports whether anything is remembered of any location.
func (p *places) any() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.loadLocked()
	return len(p.known.Locations) > 0, err
}

// change changes what is remembered of a location, or forgets it. It is on the
// disk when change returns.
func (p *places) change(key string, f func(*place), forget bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return err
	}
	if p.known.Locations == nil {
		p.known.Locations = make(map[string]*place)
	}
	at := p.known.Locations[key]
	if at == nil {
		at = new(place)
	}
	f(at)
	p.known.Locations[key] = at
	if forget || len(at.Allow) == 0 {
		delete(p.known.Locations, key)
	}
	return p.saveLocked()
}

// trusted reports whether somebody trusts a folder, or one above it.
func (p *places) trusted(dir string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.loadLocked()
	return slices.ContainsFunc(p.known.Trusted, func(t string) bool { return below(t, dir) }), err
}

func (p *places) trust(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return err
	}
	if slices.Contains(p.known.Trusted, dir) {
		return nil
	}
	p.known.Trusted = append(p.known.Trusted, dir)
	return p.saveLocked()
}

// locate finds the place of a folder: the repository that it is in, or itself.
func locate(dir string) api.LocationResult {
	dir = filepath.Clean(dir)
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return api.LocationResult{Key: at, Kind: "repo"}
		}
		if at == filepath.Dir(at) {
			return api.LocationResult{Key: dir, Kind: "dir"}
		}
	}
}

// location finds the place that a request is about.
func (c *conn) location(ctx context.Context, p api.LocationParams) (api.LocationResult, error) {
	if !filepath.IsAbs(p.WorkingDirectory) {
		return api.LocationResult{}, errBadParams{errors.New("workingDirectory: want an absolute path")}
	}
	_, err := c.server.host.Status(ctx, p.SessionID)
	return locate(p.WorkingDirectory), noSession(p.SessionID, err)
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
	rules, err := c.server.places.rules(at.Key)
	if err != nil {
		return api.AppliedResult{}, err
	}
	result := api.AppliedResult{LocationResult: at, Rules: append([]event.Rule{}, rules...), RuleCount: len(rules)}
	err = c.server.host.Rules(ctx, p.SessionID, func(to *event.ClientRules) error {
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

// addApproval remembers an approval for a place, and lets it hold in this
// session if that is its place.
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
	if err := c.server.places.change(p.Location, func(at *place) { at.Allow = addRules(at.Allow, rules) }, false); err != nil {
		return api.Success{}, err
	}
	return succeeded(p.SessionID, c.refreshLocation(ctx, p.SessionID, p.Location))
}

// approveForLocation remembers an answer for the place where the session works.
// One that does not say what it covers holds for the session alone.
func (c *conn) approveForLocation(ctx context.Context, id event.SessionID, answer json.RawMessage) error {
	var d struct {
		Location string       `json:"locationKey"`
		Approval api.Approval `json:"approval"`
	}
	if err := json.Unmarshal(answer, &d); err != nil {
		return errBadParams{fmt.Errorf("result: %w", err)}
	}
	rules, err := approved(d.Approval)
	if err != nil {
		return nil
	}
	if d.Location == "" {
		st, err := c.server.host.Status(ctx, id)
		if err != nil {
			return noSession(id, err)
		}
		d.Location = locate(st.Config.WorkingDirectory).Key
	}
	return c.server.places.change(d.Location, func(at *place) { at.Allow = addRules(at.Allow, rules) }, false)
}

// recall lets a session that was opened know what is allowed in its place.
func (c *conn) recall(ctx context.Context, id event.SessionID) error {
	if known, err := c.server.places.any(); err != nil || !known {
		return err
	}
	st, err := c.server.host.Status(ctx, id)
	if err != nil {
		return err
	}
	key := locate(st.Config.WorkingDirectory).Key
	rules, err := c.server.places.rules(key)
	if err != nil || (len(rules) == len(st.Rules.FromThere) && len(addRules(rules, st.Rules.FromThere)) == len(rules)) {
		return err
	}
	return c.refreshLocation(ctx, id, key)
}

// refreshLocation lets a session know what changed in its place.
func (c *conn) refreshLocation(ctx context.Context, id event.SessionID, key string) error {
	st, err := c.server.host.Status(ctx, id)
	if err != nil || (st.Rules.Location != key && locate(st.Config.WorkingDirectory).Key != key) {
		return err
	}
	rules, err := c.server.places.rules(key)
	if err != nil {
		return err
	}
	return c.server.host.Rules(ctx, id, func(to *event.ClientRules) error {
		to.Location, to.FromThere = key, rules
		return nil
	})
}

// modifyLocation changes the rules of the place where the session works.
func (c *conn) modifyLocation(ctx context.Context, p api.ModifyRulesParams) (api.Success, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return succeeded(p.SessionID, err)
	}
	key := locate(st.Config.WorkingDirectory).Key
	if err := c.server.places.change(key, func(at *place) { at.Allow = modified(at.Allow, p) }, false); err != nil {
		return api.Success{}, err
	}
	return succeeded(p.SessionID, c.refreshLocation(ctx, p.SessionID, key))
}

func (c *conn) folderTrusted(ctx context.Context, p api.PathParams) (api.TrustedResult, error) {
	if !filepath.IsAbs(p.Path) {
		return api.TrustedResult{}, errBadParams{errors.New("path: want an absolute path")}
	}
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return api.TrustedResult{}, noSession(p.SessionID, err)
	}
	trusted, err := c.server.places.trusted(followed(p.Path))
	return api.TrustedResult{Trusted: trusted}, err
}

func (c *conn) trustFolder(ctx context.Context, p api.PathParams) (api.Success, error) {
	_, dir, err := c.folder(ctx, p)
	if err != nil {
		return api.Success{}, err
	}
	return succeeded(p.SessionID, c.server.places.trust(followed(dir)))
}
