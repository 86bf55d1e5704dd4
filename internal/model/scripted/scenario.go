package scripted

import "fmt"

// scenario reads a whole scenario into m.
func (in *reader) scenario(m *Model) error {
	if err := in.check(); err != nil {
		return err
	}
	at := in.next()
	err := in.object(fields{
		"about":   func(in *reader, key string) error { _, _, err := decode[string](in, key); return err },
		"witness": into(&m.witness),
		"rules":   func(in *reader, _ string) error { return in.list(func() error { return in.rule(m) }) },
	})
	if err != nil {
		return err
	}
	if len(m.rules) == 0 {
		return in.errorf(at, `this scenario has no rules: give it a list of "rules"`)
	}
	return in.checkWitness(m)
}

// rule reads one rule and adds it to m.
func (in *reader) rule(m *Model) error {
	at := in.next()
	if n := len(m.rules); n > 0 && len(m.rules[n-1].when) == 0 {
		return in.errorf(at, "this rule is never reached, because %s has no conditions: move that one to the end", m.rules[n-1].name)
	}
	r := &rule{name: fmt.Sprintf("rule %d", len(m.rules)+1), at: at}
	replies := false
	err := in.object(fields{
		"name":  func(in *reader, key string) error { return r.readName(in, key) },
		"when":  func(in *reader, _ string) error { return in.object(r.conditions()) },
		"reply": func(in *reader, _ string) error { replies = true; return r.readReply(in) },
	})
	if err == nil && !replies {
		err = in.errorf(at, `this rule has no "reply"`)
	}
	m.rules = append(m.rules, r)
	return err
}

func (r *rule) readName(in *reader, key string) error {
	name, raw, err := decode[string](in, key)
	if err == nil && name != "" {
		r.name += " " + excerpt(raw)
	}
	return err
}

func (r *rule) readReply(in *reader) error {
	at := in.next()
	if err := in.object(r.reply.fields()); err != nil {
		return err
	}
	if problem := r.reply.problem(); problem != "" {
		return in.errorf(at, "%s", problem)
	}
	return nil
}

// problem returns what is wrong with a reply as a whole, or "" if it is fine.
func (r *reply) problem() string {
	says := r.text != nil || len(r.deltas) > 0
	switch {
	case r.text != nil && len(r.deltas) > 0:
		return `this reply has "text" and "deltas": the deltas are the text, so remove one`
	case !says && len(r.calls) == 0 && r.failure == nil:
		return `this reply says nothing: give it "text", "deltas", "calls" or "error"`
	case r.failure == nil:
		return ""
	case r.failure.afterDeltas > 0 && !says:
		return `this error comes after deltas, but there are none: give the reply "text" or "deltas"`
	case r.failure.times > 0 && !says && len(r.calls) == 0:
		return `this reply fails only some times, but says nothing then: give it "text", "deltas" or "calls"`
	case r.failure.times == 0 && (len(r.calls) > 0 || says && r.failure.afterDeltas == 0):
		return `this reply always fails, so the rest of it is never sent: remove that, or give the error "times"`
	}
	return ""
}

// checkWitness returns an error if a rule has to count attempts, and the scenario names
// no witness file to count them in.
func (in *reader) checkWitness(m *Model) error {
	for _, r := range m.rules {
		if f := r.reply.failure; f != nil && f.times > 0 && m.witness == "" {
			return in.errorf(r.at, `this rule fails only some times, but a retry is the same request: name a "witness" for the scenario, a file in which attempts are counted`)
		}
	}
	return nil
}
