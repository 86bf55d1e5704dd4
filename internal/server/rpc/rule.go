package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// These methods show what people have allowed for longer than a session, and take
// it back.
var _ = register(map[string]method{
	api.Rules:      on((*conn).rules),
	api.RuleRevoke: on((*conn).revoke),
})

// A keeping is what an answer wants to have remembered; nothing if it is nil.
type keeping struct {
	places   *places.Places
	location string // always if empty
	rules    []event.Rule
	added    []event.Rule // rules that were not there before
}

func (k *keeping) change(f func([]event.Rule) []event.Rule) error {
	if k.location == "" {
		return k.places.ChangeAlways(f)
	}
	return k.places.Change(k.location, f)
}

// save remembers it.
func (k *keeping) save() error {
	if k == nil {
		return nil
	}
	return k.change(func(is []event.Rule) []event.Rule {
		all := addRules(is, k.rules)
		k.added = all[len(is):]
		return all
	})
}

// takeBack forgets what the answer added, because it was none.
func (k *keeping) takeBack() error {
	if k == nil || len(k.added) == 0 {
		return nil
	}
	return k.change(without(k.added))
}

func without(rules []event.Rule) func([]event.Rule) []event.Rule {
	return func(is []event.Rule) []event.Rule {
		return slices.DeleteFunc(is, func(r event.Rule) bool {
			return slices.ContainsFunc(rules, r.Equal)
		})
	}
}

// remembered finds out what a decision wants to have remembered: what it says,
// or what the question says that a yes for longer covers.
func (c *conn) remembered(ctx context.Context, p api.AnswerPermissionParams, d *turn.Decision) (*keeping, error) {
	if d.Kind != turn.ApproveForLocation && d.Kind != turn.ApprovePermanently {
		return nil, nil
	}
	var said struct {
		Location string        `json:"locationKey"`
		Domain   string        `json:"domain"`
		Approval *api.Approval `json:"approval"`
	}
	if err := json.Unmarshal(p.Result, &said); err != nil {
		return nil, errBadParams{fmt.Errorf("result: %w", err)}
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return nil, noSession(p.SessionID, err)
	}
	k := &keeping{places: c.server.places}
	there := st.Config // a person was shown the directory in which the session was when it asked
	there.WorkingDirectory = cmp.Or(st.Dirs[p.RequestID], there.WorkingDirectory)
	if d.Kind == turn.ApproveForLocation {
		if k.location = said.Location; k.location == "" {
			k.location = places.Locate(there.Location()).Key
		}
		d.Location = k.location
	}
	d.Standing = true
	switch {
	case said.Domain != "":
		k.rules = domain(said.Domain)
	case said.Approval != nil && said.Approval.Kind != "" && said.Approval.Kind != "commands" && d.Offer == "":
		k.rules, err = approvedRules(*said.Approval, cmp.Or(k.location, there.WorkingDirectory))
	default:
		k.rules, err = covered(st.Questions, p.RequestID, there.WorkingDirectory, d)
	}
	return k, err
}

// domain lets all addresses of a domain pass.
func domain(name string) []event.Rule {
	var rules []event.Rule
	for _, scheme := range []string{"https://", "http://"} {
		pattern := scheme + name + "/*"
		rules = append(rules, event.Rule{Kind: "url", Argument: &pattern})
	}
	return rules
}

// covered is what an answer to an open question covers for longer, as rules. Nothing is
// remembered about a question that is not open: its answer is too late anyway. A command in
// the working directory that is approved for always is approved in that of every session.
func covered(open []event.Event, requestID, dir string, d *turn.Decision) ([]event.Rule, error) {
	for _, e := range open {
		asked, err := event.As[event.PermissionAskedData](e)
		if e.Type != event.PermissionAsked || err != nil || asked.RequestID != requestID {
			continue
		}
		var offers []event.Offer
		if asked.Abide != nil {
			offers = asked.Abide.Offers
		}
		grants, err := d.Grants(asked.Grants, offers)
		if err != nil {
			return nil, errBadParams{err}
		}
		if len(grants) == 0 {
			return nil, errBadParams{errors.New("result.kind: what this call does cannot be told in advance, so that a yes to it cannot be remembered; use approve-once")}
		}
		var rules []event.Rule
		for _, g := range turn.Narrow(grants) {
			if d.Kind == turn.ApprovePermanently && asked.Abide != nil && asked.Abide.Dir == dir {
				g.Dir = ""
			}
			rules = append(rules, turn.GrantRule(g))
		}
		return rules, nil
	}
	return nil, nil
}

// rules lists what is allowed always, and what in which place.
func (c *conn) rules(context.Context, struct{}) (api.RulesResult, error) {
	always, there, err := c.server.places.All()
	result := api.RulesResult{Always: shownRules(always), Locations: make(map[string][]api.ShownRule, len(there))}
	for key, rules := range there {
		result.Locations[key] = shownRules(rules)
	}
	return result, err
}

func shownRules(rules []event.Rule) []api.ShownRule {
	list := make([]api.ShownRule, len(rules))
	for i, r := range rules {
		list[i] = api.ShownRule{Rule: r, Text: turn.RuleText(r)}
	}
	return list
}

// revoke takes a rule back, which is named by its text. That holds from now on,
// in every session.
func (c *conn) revoke(_ context.Context, p api.RevokeParams) (api.Success, error) {
	if strings.TrimSpace(p.Rule) == "" {
		return api.Success{}, errBadParams{errors.New("rule: it is empty")}
	}
	k := &keeping{places: c.server.places, location: p.Location}
	found := false
	err := k.change(func(is []event.Rule) []event.Rule {
		left := slices.DeleteFunc(is, func(r event.Rule) bool { return turn.RuleText(r) == p.Rule })
		found = len(left) < len(is)
		return left
	})
	return api.Success{Success: err == nil && found}, err
}
