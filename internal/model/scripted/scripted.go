// Package scripted is a model that plays a scenario: a file of rules, each with
// conditions on the request and a reply.
//
//   - The first rule whose conditions hold gives the reply. If none does, the
//     attempt fails with [model.KindScenario] and says what was asked.
//   - The reply depends on the request alone, so the same request gets the same
//     reply, byte for byte, in any process and at any time.
//   - One thing cannot be told from the request: how often it was made, because
//     a retry is the same request. A rule that fails a number of times counts
//     its attempts in a file outside, the scenario's witness.
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

// Name is what the model is called.
const Name = "scripted"

// A Model plays one scenario.
type Model struct {
	name    string // of the scenario
	witness string // path of the file that counts attempts; empty for none
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

// Parse reads a scenario. Its name stands in errors, and a relative witness is
// looked for beside it. An error names line and column.
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

// Ask replies as the scenario says.
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

// fails decides whether this attempt is one of those that fail.
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

// noRule says what was asked and what the scenario has.
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

// pause waits, unless ctx is done first.
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
