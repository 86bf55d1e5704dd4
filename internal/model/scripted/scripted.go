// Package scripted is a model that follows a scenario: a file of rules, each with
// conditions on the request and a reply.
//
//   - The first rule whose conditions hold gives the reply. If there is none, the
//     attempt fails with [model.KindScenario], and the error describes the request.
//   - The reply depends only on the request, so the same request gets the same
//     reply, byte for byte, in any process and at any time.
//   - The number of attempts cannot be known from the request, because a retry is the
//     same request. A rule that fails a number of times counts its attempts in a file,
//     the witness of the scenario.
//
// The format is described for users in docs/MODELS.md.
package scripted

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
)

// Name is the name of the model.
const Name = "scripted"

// A Model follows one scenario.
type Model struct {
	name    string // path of the scenario, for error messages
	witness string // path of the file that counts attempts; empty if there is none
	rules   []*rule
}

var _ model.Model = (*Model)(nil)

// Load reads a scenario file.
func Load(path string) (*Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a scenario. Errors contain the name, the line and the column. A relative
// path of the witness starts from the folder of the name.
func Parse(name string, data []byte) (*Model, error) {
	m := &Model{name: name}
	if err := newReader(name, data).scenario(m); err != nil {
		return nil, err
	}
	if m.witness != "" && !filepath.IsAbs(m.witness) {
		m.witness = filepath.Join(filepath.Dir(name), m.witness)
	}
	return m, nil
}

// Ask replies as the scenario says. It implements model.Model.
func (m *Model) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	a := &asked{req: req, turn: local.Read(req.Messages)}
	number, r := m.find(a)
	if r == nil {
		return nil, m.noRule(a)
	}
	fails, err := m.fails(number, r, req)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, r.reply.delay); err != nil {
		return nil, err
	}
	if fails {
		return nil, r.reply.fail(ctx, a, on)
	}
	return r.reply.play(ctx, a, on)
}

// find returns the first rule that holds, and its number.
func (m *Model) find(a *asked) (int, *rule) {
	for i, r := range m.rules {
		if r.holds(a) {
			return i + 1, r
		}
	}
	return 0, nil
}

// fails reports whether this attempt has to fail. It counts the attempt if the rule
// fails only a number of times.
func (m *Model) fails(number int, r *rule, req *model.Request) (bool, error) {
	failure := r.reply.failure
	if failure == nil || failure.times == 0 {
		return failure != nil, nil
	}
	key := fmt.Sprintf("%s rule %d session %q", local.Digest(req.Messages), number, req.Session)
	attempt, err := countAttempt(m.witness, key)
	if err != nil {
		return false, &model.Error{
			Kind:    model.KindScenario,
			Message: fmt.Sprintf("scenario %s cannot count attempts: %v; make its witness a file that can be written", m.name, err),
			Err:     err,
		}
	}
	return attempt <= failure.times, nil
}

// noRule returns the error for a request without a rule. It describes the request and
// lists the rules.
func (m *Model) noRule(a *asked) error {
	const most = 8
	var rules []string
	for i, r := range m.rules {
		if i == most {
			rules = append(rules, fmt.Sprintf("and %d more", len(m.rules)-most))
			break
		}
		rules = append(rules, r.String())
	}
	return &model.Error{
		Kind: model.KindScenario,
		Message: fmt.Sprintf("scenario %s has no reply for %s; its rules are %s; add a rule for this, or a last rule without \"when\"",
			m.name, a, strings.Join(rules, ", ")),
	}
}

// pause waits for the duration, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
