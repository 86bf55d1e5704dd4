package audit

import (
	"bytes"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/audit/stored"
)

// Whatever a log says, the rules say something about it and do not break.
func FuzzLog(f *testing.F) {
	const head = `","id":"01a1dfb6-3851-79d3-8d44-147937a6f78c","timestamp":"2026-11-15T14:57:03.569Z","parentId":null,"data":`
	for _, log := range [][2]string{
		{"session.start", `{"sessionId":"s","version":1,"producer":"abide","startTime":""}`},
		{"user.message", `{"content":"c","interactionId":"i"}`},
		{"assistant.message", `{"messageId":"m","content":"","toolRequests":[{"toolCallId":"c","name":"bash"}]}`},
		{"tool.execution_begun", `{"toolCallId":"c","key":"k","attempt":1}`},
		{"task.reported", `{"key":"k","status":"lost","ended":true,"text":"t"}`},
		{"context.epoch", `{"epochId":"e","number":1,"kind":"undo","from":1,"through":9,"head":{"a":["b"]}}`},
		{"hook.end", `{"hookInvocationId":"h","hookType":"t","success":true,"outputs":{"c":3}}`},
		{"history.hidden", `{"from":1,"to":2,"reason":"r","files":true}`},
	} {
		f.Add([]byte(`{"type":"` + log[0] + head + log[1] + "}"))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		found := newFindings()
		s := newScene(found, new(stored.Folder), nil, Options{Now: time.Unix(1794755538, 0)}, stored.Session{Name: "s", Seq: 9})
		w := &walk{auditor: &auditor{found: found, report: new(Report)}, scene: s, sets: newRuleSets(), hash: make([]byte, 32)}
		s.own = true
		for line := range bytes.SplitSeq(log, []byte{'\n'}) {
			w.event(w.seq+1, line)
		}
		w.sets.end(s)
		found.report(new(Report))
	})
}
