package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// managedRules returns the restrictions that a client sets for the life of a session; nil
// if it sets none. What is not understood is an error, because it was meant to restrict.
func managedRules(raw json.RawMessage) (*event.ManagedRules, error) {
	if !given(raw) {
		return nil, nil
	}
	var m api.ManagedSettings
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return nil, errBadParams{fmt.Errorf("managedSettings: %s; permissions with allow, ask, deny and disableBypassPermissionsMode are supported", strings.TrimPrefix(err.Error(), "json: "))}
	}
	p := m.Permissions
	if p == nil {
		return nil, nil
	}
	rules := &event.ManagedRules{Deny: unscoped(p.Deny), Ask: unscoped(p.Ask), NoBypass: p.DisableBypass != ""}
	if p.Allow != nil {
		rules.Allow = [][]string{*p.Allow}
	}
	for field, list := range map[string][]string{"deny": rules.Deny, "ask": rules.Ask, "allow": slices.Concat(rules.Allow...)} {
		for i, rule := range list {
			if err := approval.Check(rule); err != nil {
				return nil, errBadParams{fmt.Errorf("managedSettings.permissions.%s[%d]: %w", field, i, err)}
			}
		}
	}
	return rules, nil
}

// unscoped returns rules that restrict. A pattern that matches everything is dropped, so
// that it matches outside of the working directory too.
func unscoped(rules []string) []string {
	var list []string
	for _, rule := range rules {
		for _, all := range []string{"(**)", "(*)", "(**/*)", "(/**)"} {
			rule = strings.TrimSuffix(rule, all)
		}
		list = append(list, rule)
	}
	return list
}

// additionalDirectories returns the further folders that a session may use.
func additionalDirectories(dirs []string) ([]string, error) {
	var list []string
	for i, dir := range dirs {
		if !filepath.IsAbs(dir) {
			return nil, errBadParams{fmt.Errorf("additionalDirectories[%d]: want an absolute path", i)}
		}
		list = append(list, filepath.Clean(dir))
	}
	return list, nil
}

// given reports whether a field says anything.
func given(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", "[]", `""`, "false":
		return false
	}
	return true
}

// withoutEffect returns the fields that a client has set and that have no effect here.
func withoutEffect(p api.OpenParams) []string {
	var names []string
	for _, field := range []struct {
		name string
		raw  json.RawMessage
	}{
		{"pluginDirectories", p.PluginDirectories}, {"sessionLimits", p.SessionLimits},
		{"organizationCustomInstructions", p.OrganizationInstructions}, {"cloud", p.Cloud}, {"canvases", p.Canvases}, {"configDir", p.ConfigDir},
	} {
		if given(field.raw) {
			names = append(names, field.name)
		}
	}
	if p.EnableManagedSettings && !given(p.ManagedSettings) {
		names = append(names, "enableManagedSettings (there is no account to fetch settings from)")
	}
	return names
}

// warnUnsupported tells the client what it has set in vain. Nothing of it restricts the
// session, so the session goes on without it.
func (c *conn) warnUnsupported(ctx context.Context, p api.OpenParams) {
	names := withoutEffect(p)
	if len(names) == 0 {
		return
	}
	c.server.log.Warn("a client sets what is not supported", "session", p.SessionID, "fields", names)
	warning := event.SessionWarningData{WarningType: "unsupported", Message: "Not supported, and without effect: " + strings.Join(names, ", ")}
	if _, err := c.server.host.Log.Note(ctx, p.SessionID, warning, true); err != nil && !errors.Is(err, context.Canceled) {
		c.server.log.Error("a client could not be warned", "session", p.SessionID, "err", err)
	}
}
