package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/event"
)

// A fault is one way in which a log can be broken. The event at the position that is
// returned is the one to be named.
type fault struct {
	rule    string
	session string
	spoil   func(*script) int64
	also    []string // further findings that cannot be avoided then
}

// none is an id that nobody has.
const none = "none"

// spoiled changes the line of the last event.
func spoiled(change func(string) string) func(*script) int64 {
	return func(l *script) int64 {
		l.get(l.end()).spoil = change
		return l.end()
	}
}

// edited changes a member of the nth event of a kind.
func edited(kind string, nth int, member string, value any) func(*script) int64 {
	return func(l *script) int64 { return l.set(kind, nth, member, value) }
}

// added puts an event at the end.
func added(kind string, data object) func(*script) int64 {
	return func(l *script) int64 { return l.add(kind, data) }
}

// aborted puts an event behind the abort.
func aborted(kind string, data object) func(*script) int64 {
	return func(l *script) int64 { return l.insert(l.at("abort", 1)+1, kind, data) }
}

// callOf is the id of the nth call that a session has intended.
func callOf(l *script, nth int) string {
	return l.get(l.at("tool.execution_start", nth)).Data["toolCallId"].(string)
}

var started = object{"turnId": "9", "interactionId": none}

var faults = []fault{
	// I1: envelopes
	{"envelope.malformed", "talk", spoiled(func(string) string { return "{}" }), nil},
	{"envelope.malformed", "talk", spoiled(func(string) string { return "" }), nil},
	{"envelope.malformed", "talk", spoiled(func(s string) string { return s[:len(s)-2] }), nil},
	{"envelope.malformed", "talk", spoiled(func(s string) string { return strings.Replace(s, `,"id"`, `, "id"`, 1) }), nil},
	{"envelope.malformed", "talk", spoiled(func(s string) string { return strings.Replace(s, `"timestamp":"2`, `"timestamp":"x`, 1) }), nil},
	{"envelope.malformed", "talk", spoiled(func(s string) string { return strings.Replace(s, `"parentId"`, `"parent"`, 1) }), nil},
	{"envelope.malformed", "talk", spoiled(func(s string) string { return strings.Replace(s, `"data":{`, `"data":[{`, 1) }), nil},
	{"envelope.malformed", "talk", func(l *script) int64 {
		l.get(l.end()).spoil = func(s string) string {
			head, _, _ := strings.Cut(s, `"data":`)
			return head + `"data":{"totals":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + "}}"
		}
		return l.end()
	}, nil},
	{"envelope.agent", "talk", spoiled(func(s string) string { return strings.Replace(s, `,"data"`, `,"agentId":"a","data"`, 1) }), nil},
	{"envelope.ephemeral", "talk", func(l *script) int64 { l.get(l.end()).Ephemeral = false; return l.end() }, nil},
	{"envelope.id", "talk", func(l *script) int64 { l.get(l.end()).ID = "nonsense"; return l.end() }, nil},
	{"envelope.id", "talk", func(l *script) int64 {
		l.get(l.end()).ID = "01a1dfaf-68b0-472f-b8ee-36e9c72f251f" // of version 4
		return l.end()
	}, nil},
	{"envelope.id-twice", "talk", func(l *script) int64 { l.get(l.end()).ID = l.get(2).ID; return l.end() }, nil},
	{"envelope.parent", "talk", func(l *script) int64 { l.get(l.end()).parent = &l.get(1).ID; return l.end() }, nil},
	{"envelope.parent", "talk", func(l *script) int64 { l.get(l.end()).parent = new(string); return l.end() }, nil},
	{"envelope.time", "talk", func(l *script) int64 { l.get(l.end()).Time = "2001-01-01T00:00:00.000Z"; return l.end() }, nil},
	{"envelope.time", "talk", func(l *script) int64 { l.get(l.end()).Time = "2999-01-01T00:00:00.000Z"; return l.end() }, nil},
	{"envelope.never-stored", "talk", added(string(event.MessageDelta), object{"messageId": "m", "deltaContent": "d"}), nil},
	{"body.lacks", "back", edited("tool.execution_begun", 2, "key", nil), nil},
	{"body.lacks", "talk", edited("session.resume", 1, "eventCount", nil), nil},
	{"body.malformed", "back", edited("tool.execution_begun", 2, "toolCallId", 7), nil},
	{"body.malformed", "back", edited("tool.execution_begun", 2, "attempt", "first"), nil},

	// I1: order
	{"start.again", "talk", func(l *script) int64 { return l.repeat(1, l.end()+1, nil) }, nil},
	{"start.missing", "talk", func(l *script) int64 {
		l.get(1).Type, l.get(1).Data = "session.info", object{"infoType": "i", "message": "m"}
		return 1
	}, nil},
	{"start.session", "talk", edited("session.start", 1, "sessionId", "other"), nil},
	{"resume.count", "talk", edited("session.resume", 1, "eventCount", 1), nil},
	{"fork.place", "talk", added("session.forked", object{"parentSessionId": "root", "position": 3, "hash": ""}), nil},
	{"fork.position", "branch", edited("session.forked", 1, "position", 1), nil},
	{"fork.unmarked", "branch", func(l *script) int64 {
		at := l.at("session.forked", 1)
		l.get(at).Type, l.get(at).Data = "session.named", object{"name": "branch"}
		return at
	}, nil},
	{"hidden.range", "back", edited("history.hidden", 1, "to", 900), nil},
	{"hidden.range", "back", edited("history.hidden", 1, "from", 0), nil},
	{"restored.undue", "talk", added("files.restored", object{"files": []any{}}), nil},
	{"compaction.open", "long", func(l *script) int64 {
		at := l.at("session.compaction_start", 1)
		return l.repeat(at, at, object{"compactionId": none}) + 1
	}, nil},
	{"compaction.unstarted", "long", edited("session.compaction_complete", 1, "compactionId", none), nil},
	{"epoch.number", "long", edited("context.epoch", 2, "number", 1), nil},
	{"epoch.range", "long", edited("context.epoch", 1, "from", 900), nil},
	{"memory.range", "talk", added("memory.extracted", object{"from": 5, "to": 3, "hash": ""}), nil},
	{"input.twice", "talk", func(l *script) int64 {
		at := l.at("input.accepted", 2)
		return l.repeat(at, at+1, object{"key": ""})
	}, nil},
	{"input.unknown", "long", func(l *script) int64 {
		at := l.at("user.message", 1)
		return l.repeat(at, at+1, object{"inputId": none})
	}, nil},
	{"input.delivered-twice", "long", func(l *script) int64 { at := l.at("user.message", 1); return l.repeat(at, at+1, nil) }, nil},
	{"idle.queue", "back", func(l *script) int64 {
		at := l.at("session.idle", 1)
		return l.repeat(l.at("input.accepted", 1), at, object{"inputId": none}) + 1
	}, []string{"idle.queue", "idle.queue", "idle.queue", "index.active"}},
	{"key.twice", "long", edited("input.accepted", 2, "key", "long-1"), nil},
	{"key.twice", "talk", func(l *script) int64 {
		l.set("session.resume", 1, "key", "r")
		return l.repeat(l.at("session.resume", 1), l.end()+1, object{"eventCount": shown(l)})
	}, nil},
	{"queue.unknown", "talk", added("queue.changed", object{"order": []any{none}}), nil},

	// I2: steps
	{"step.outside", "talk", added("assistant.turn_start", started), nil},
	{"step.interaction", "talk", edited("assistant.turn_start", 1, "interactionId", none), nil},
	{"step.number", "talk", edited("assistant.turn_start", 1, "turnId", "3"), nil},
	{"step.open", "long", func(l *script) int64 {
		at := l.at("assistant.turn_start", 2)
		return l.repeat(at, at+1, object{"turnId": "1"})
	}, []string{"step.other", "step.other"}},
	{"step.unstarted", "long", func(l *script) int64 {
		at := l.at("assistant.turn_end", 2)
		return l.repeat(at, at+1, nil)
	}, nil},
	{"step.left-open", "long", func(l *script) int64 {
		l.remove("assistant.turn_end", 1)
		l.remove("session.idle", 1)
		return l.at("user.message", 2)
	}, nil},
	{"step.unfinished", "back", func(l *script) int64 {
		l.remove("tool.execution_complete", 2)
		return l.at("assistant.turn_end", 5)
	}, nil},
	{"answer.unasked", "talk", func(l *script) int64 { return l.repeat(l.at("assistant.message", 1), l.end()+1, nil) }, nil},
	{"answer.twice", "long", func(l *script) int64 { at := l.at("assistant.message", 2); return l.repeat(at, at+1, nil) }, nil},

	// I2: calls
	{"call.requested-twice", "back", func(l *script) int64 {
		at := l.at("tool.execution_start", 2) - 1 // the answer that requests it
		list := l.get(at).Data["toolRequests"].([]any)
		l.get(at).Data["toolRequests"] = append(list, list[0])
		return at
	}, nil},
	{"call.unrequested", "back", func(l *script) int64 {
		at := l.at("tool.execution_start", 2)
		return l.repeat(at, at+1, object{"toolCallId": none})
	}, nil},
	{"call.started-twice", "back", func(l *script) int64 { at := l.at("tool.execution_start", 2); return l.repeat(at, at+1, nil) }, nil},
	{"call.started-late", "back", func(l *script) int64 {
		return l.repeat(l.at("tool.execution_start", 2), l.at("tool.execution_complete", 2)+1, nil)
	}, nil},
	{"call.name", "back", edited("tool.execution_start", 2, "toolName", "grep"), nil},
	{"call.left-open", "stopped", func(l *script) int64 {
		l.remove("tool.execution_complete", 1)
		return l.at("abort", 1)
	}, nil},
	{"begun.unrequested", "back", edited("tool.execution_begun", 2, "toolCallId", none), []string{"complete.unbegun"}},
	{"begun.unintended", "back", func(l *script) int64 {
		l.remove("tool.execution_start", 2)
		return l.at("tool.execution_begun", 2)
	}, []string{"complete.unintended"}},
	{"begun.finished", "back", func(l *script) int64 {
		return l.repeat(l.at("tool.execution_begun", 2), l.at("tool.execution_complete", 2)+1, object{"attempt": 2})
	}, nil},
	{"begun.attempt", "back", edited("tool.execution_begun", 2, "attempt", 2), nil},
	{"begun.attempt", "back", func(l *script) int64 { at := l.at("tool.execution_begun", 2); return l.repeat(at, at+1, nil) }, nil},
	{"begun.key-changed", "back", func(l *script) int64 {
		at := l.at("tool.execution_begun", 2)
		return l.repeat(at, at+1, object{"attempt": 2, "key": none})
	}, nil},
	{"begun.key-empty", "back", edited("tool.execution_begun", 2, "key", ""), nil},
	{"begun.key-reused", "back", func(l *script) int64 {
		return l.set("tool.execution_begun", 2, "key", l.get(l.at("tool.execution_begun", 1)).Data["key"])
	}, nil},
	{"begun.once-again", "back", func(l *script) int64 {
		l.f.once = []string{"view"}
		at := l.at("tool.execution_begun", 2)
		return l.repeat(at, at+1, object{"attempt": 2})
	}, nil},
	{"begun.once-again", "back", func(l *script) int64 {
		at := l.set("tool.execution_begun", 2, "replay", "once")
		return l.repeat(at, at+1, object{"attempt": 2})
	}, nil},
	{"complete.unrequested", "back", func(l *script) int64 {
		at := l.at("tool.execution_complete", 2)
		return l.repeat(at, at+1, object{"toolCallId": none})
	}, nil},
	{"complete.twice", "back", func(l *script) int64 { at := l.at("tool.execution_complete", 2); return l.repeat(at, at+1, nil) }, nil},
	{"complete.unintended", "denied", func(l *script) int64 {
		l.remove("tool.execution_start", 1)
		return l.at("tool.execution_complete", 1)
	}, []string{"question.unintended"}},
	{"complete.empty", "back", edited("tool.execution_complete", 2, "result", nil), nil},
	{"complete.unexplained", "denied", edited("tool.execution_complete", 1, "error", nil), nil},
	{"complete.unbegun", "commands", func(l *script) int64 {
		l.remove("tool.execution_begun", 1)
		return l.at("tool.execution_complete", 1)
	}, nil},

	// I3: questions
	{"question.twice", "denied", func(l *script) int64 {
		id := l.get(l.at("permission.requested", 1)).Data["requestId"]
		l.set("permission.completed", 2, "requestId", id)
		l.decide(1, object{"requestId": id})
		return l.set("permission.requested", 2, "requestId", id)
	}, nil},
	{"question.unrequested", "denied", func(l *script) int64 {
		at := l.at("permission.requested", 1)
		return l.repeat(at, at, object{"toolCallId": none, "requestId": none})
	}, nil},
	{"question.late", "denied", func(l *script) int64 {
		return l.repeat(l.at("permission.requested", 1), l.at("tool.execution_complete", 1)+1, object{"requestId": none})
	}, nil},
	{"question.second", "denied", func(l *script) int64 {
		at := l.at("permission.requested", 1)
		return l.repeat(at, at, object{"requestId": none}) + 1
	}, nil},
	{"question.session", "asks", edited("external_tool.requested", 1, "sessionId", "other"), nil},
	{"question.unasked", "denied", func(l *script) int64 {
		at := l.at("permission.completed", 1)
		return l.repeat(at, at, object{"requestId": none, "toolCallId": ""})
	}, nil},
	{"question.closed-twice", "denied", func(l *script) int64 { at := l.at("permission.completed", 1); return l.repeat(at, at+1, nil) }, nil},
	{"question.kind", "denied", func(l *script) int64 {
		at := l.at("permission.completed", 1)
		e := l.get(at)
		e.Type, e.Ephemeral, e.Data = "user_input.completed", true, object{"requestId": e.Data["requestId"], "wasFreeform": false}
		return at
	}, nil},
	{"question.call", "denied", edited("permission.completed", 1, "toolCallId", none), nil},
	{"question.result", "stopped", edited("permission.completed", 1, "result", object{"kind": "maybe"}), nil},
	{"question.finished", "denied", func(l *script) int64 {
		l.remove("permission.completed", 1)
		return l.at("tool.execution_complete", 1)
	}, nil},
	{"question.left-open", "stopped", func(l *script) int64 {
		l.remove("permission.completed", 1)
		l.remove("tool.execution_complete", 1)
		return l.at("abort", 1)
	}, nil},
	{"exchange.unasked", "form", func(l *script) int64 {
		at := l.at("elicitation.completed", 1)
		return l.repeat(at, at+1, object{"requestId": none})
	}, nil},
	{"exchange.closed-twice", "form", func(l *script) int64 { at := l.at("elicitation.completed", 1); return l.repeat(at, at+1, nil) }, nil},
	{"exchange.kind", "form", func(l *script) int64 {
		at := l.at("elicitation.completed", 1)
		l.get(at).Type, l.get(at).Data = "command.completed", object{"requestId": l.get(at).Data["requestId"]}
		return at
	}, nil},
	{"budget.unagreed", "budget", func(l *script) int64 { return l.set("elicitation.completed", 1, "action", "decline") + 1 }, nil},
	{"budget.other", "budget", edited("budget.raised", 1, "limits", object{"sessionTokens": 1 << 40}), nil},
	{"budget.unraised", "budget", func(l *script) int64 { return l.remove("budget.raised", 1) }, nil},
	{"hook.twice", "hooks", func(l *script) int64 { at := l.at("hook.start", 1); return l.repeat(at, at+1, nil) }, nil},
	{"hook.unasked", "hooks", func(l *script) int64 {
		at := l.at("hook.end", 1)
		return l.repeat(at, at+1, object{"hookInvocationId": none})
	}, nil},
	{"hook.kind", "hooks", edited("hook.end", 1, "hookType", "agentStop"), nil},
	{"hook.left-open", "hooks", func(l *script) int64 { l.remove("hook.end", 1); return l.at("session.idle", 1) }, nil},

	// I4: tasks
	{"task.twice", "commands", func(l *script) int64 { at := l.at("task.started", 1); return l.repeat(at, at+1, nil) }, nil},
	{"task.unbegun", "commands", edited("task.started", 1, "key", none), []string{"index.tasks", "news.unknown-task"}},
	{"task.attached", "commands", func(l *script) int64 {
		l.set("tool.execution_begun", 2, "detaches", nil)
		return l.at("task.started", 1)
	}, nil},
	{"task.other-status", "commands", edited("task.reported", 1, "status", "failed"), nil},
	{"task.other-status", "killed", edited("task.reported", 1, "status", "lost"), nil},

	// I5: news
	{"news.unknown-task", "talk", added("task.reported", object{"key": none, "status": "completed", "ended": true, "text": ""}), nil},
	{"news.after-end", "commands", func(l *script) int64 {
		return l.repeat(l.at("task.reported", 1), l.end(), object{"text": ""})
	}, nil},
	{"news.again", "commands", func(l *script) int64 {
		at, silent := l.at("task.reported", 1), object{"text": "", "status": "stalled", "ended": false}
		l.repeat(at, at, silent)
		return l.repeat(at, at+1, silent)
	}, nil},
	{"news.silent", "commands", edited("task.reported", 1, "text", ""), []string{"told.unknown"}},
	{"news.late", "commands", func(l *script) int64 {
		at := l.at("task.reported", 1)
		l.repeat(at, at, object{"status": "stalled", "ended": false})
		return l.at("assistant.turn_start", toldStep(l))
	}, []string{"news.untold"}},
	{"news.untold", "commands", func(l *script) int64 {
		l.repeat(l.at("task.reported", 1), l.at("task.started", 1)+1, object{"status": "stalled", "ended": false})
		return l.end()
	}, []string{"news.late", "news.late", "news.untold"}},
	{"told.unknown", "commands", func(l *script) int64 {
		at := l.at("system.notification", 1)
		return l.repeat(at, at+1, object{"report": 2})
	}, nil},
	{"told.twice", "commands", func(l *script) int64 { at := l.at("system.notification", 1); return l.repeat(at, at+1, nil) }, nil},
	{"told.otherwise", "commands", edited("system.notification", 1, "content", "All is well."), nil},
	{"told.hidden", "commands", func(l *script) int64 {
		at := l.at("system.notification", 1) + 1
		return l.insert(at, "context.epoch", object{"epochId": "e", "number": 1, "kind": "compaction", "from": at, "through": at - 1, "head": object{"summary": "It was quiet."}})
	}, nil},

	// I6: the chain, as far as the log says something about it
	{"chain.fork", "branch", edited("session.forked", 1, "hash", strings.Repeat("0", 64)), nil},

	// I8: what was stopped
	{"stopped.request", "stopped", aborted("assistant.turn_start", started), nil},
	{"stopped.request", "stopped", aborted("assistant.message", object{"messageId": "m", "content": "c", "toolRequests": []any{}}), nil},
	{"stopped.call", "stopped", aborted("tool.execution_begun", object{"toolCallId": none, "key": "k", "attempt": 1}), nil},
	{"stopped.call", "stopped", aborted("tool.execution_start", object{"toolCallId": none, "toolName": "bash"}), nil},
	{"stopped.question", "stopped", aborted("user_input.requested", object{"requestId": none, "question": "?", "toolCallId": none}), nil},
	{"stopped.result", "stopped", aborted("tool.execution_complete", object{"toolCallId": none, "success": false, "error": object{"code": "failure", "message": "m"}}), nil},
	{"stopped.notified", "stopped", func(l *script) int64 {
		return l.insert(l.at("abort", 1)+1, "system.notification", object{"content": "c", "kind": nil, "interactionId": none})
	}, nil},
	{"stopped.notified", "killed", func(l *script) int64 { // the session was at rest when it was stopped
		l.insert(l.at("session.idle", 1)+1, "abort", object{"reason": "user_initiated", "keepQueue": true, "hold": true})
		return l.at("system.notification", 1)
	}, nil},
	{"stopped.input", "stopped", func(l *script) int64 {
		at := l.at("input.accepted", 2)
		e := l.get(at)
		l.remove("input.accepted", 2)
		l.insert(l.at("abort", 1), "input.accepted", e.Data)
		return l.at("user.message", 2)
	}, nil},
	{"stopped.input", "stopped", func(l *script) int64 {
		at := l.at("input.accepted", 2)
		e := l.get(at)
		l.remove("input.accepted", 2)
		l.set("abort", 1, "keepQueue", true)
		l.set("abort", 1, "hold", true)
		l.insert(l.at("abort", 1), "input.accepted", e.Data)
		return l.at("user.message", 2)
	}, []string{"idle.queue"}},
	{"suspended.begun", "rests", func(l *script) int64 {
		return l.add("tool.execution_begun", object{"toolCallId": callOf(l, 1), "key": "k", "attempt": 1})
	}, nil},

	// I9: decisions
	{"decision.missing", "hooks", func(l *script) int64 {
		l.age()
		l.set("session.configured", 1, "approve", nil)
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.missing", "asks", func(l *script) int64 {
		l.age()
		l.remove("permission.requested", 2)
		l.remove("permission.completed", 2)
		return l.at("external_tool.requested", 2)
	}, nil},
	{"decision.baseless", "hooks", func(l *script) int64 {
		l.set("session.configured", 1, "approve", nil)
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.baseless", "hooks", func(l *script) int64 { return l.decide(1, object{"by": "hook"}) }, nil},
	{"decision.baseless", "hooks", func(l *script) int64 { return l.decide(1, object{"by": "scope"}) }, nil},
	{"decision.baseless", "hooks", func(l *script) int64 { return l.decide(1, object{"by": "nothing"}) }, nil},
	{"decision.baseless", "hooks", func(l *script) int64 { return l.decide(1, object{"by": "magic"}) }, nil},
	{"decision.baseless", "hooks", func(l *script) int64 { return l.decide(1, object{"by": "rule"}) }, nil},
	{"decision.baseless", "hooks", func(l *script) int64 {
		l.set("session.configured", 1, "permissions", object{"allow": []any{"bash(true)"}})
		return l.decide(1, object{"by": "rule", "rules": []any{"bash(echo *)"}, "command": "echo hooked"})
	}, nil},
	{"decision.baseless", "asks", func(l *script) int64 {
		l.remove("permission.requested", 2)
		l.remove("permission.completed", 2)
		return l.at("external_tool.requested", 2)
	}, nil},
	{"decision.baseless", "asks", func(l *script) int64 { return l.decide(1, object{"requestId": none}) }, nil},
	{"decision.baseless", "denied", func(l *script) int64 {
		l.set("permission.completed", 2, "grants", nil)
		return l.at("tool.execution_begun", 2)
	}, nil},
	{"decision.baseless", "denied", func(l *script) int64 {
		l.insert(l.at("user.message", 3), "grants.reset", object{})
		return l.at("tool.execution_begun", 2)
	}, nil},
	{"decision.baseless", "denied", func(l *script) int64 { return l.decide(2, object{"grants": nil}) }, nil},
	{"decision.words", "denied", func(l *script) int64 { return l.decide(2, object{"command": nil}) }, nil},
	{"decision.words", "denied", func(l *script) int64 { return l.decide(2, object{"command": "'echo' 'no'"}) }, []string{"decision.other-command"}},
	{"decision.other-command", "denied", func(l *script) int64 {
		other := []any{object{"kind": "shell", "command": "'echo' 'no'"}}
		l.set("permission.completed", 2, "grants", other)
		return l.decide(2, object{"command": "'echo' 'no'", "grants": other})
	}, nil},
	{"decision.changed", "denied", func(l *script) int64 {
		at := l.at("tool.execution_begun", 2)
		return l.repeat(at, at+1, object{"attempt": 2, "decision": object{"by": "set"}})
	}, nil},
	{"decision.open", "asks", func(l *script) int64 {
		l.remove("permission.completed", 1)
		return l.at("tool.execution_begun", 1)
	}, []string{"question.finished"}},
	{"decision.denied", "asks", func(l *script) int64 {
		l.set("permission.completed", 1, "result", object{"kind": "denied-interactively-by-user"})
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.hook-denied", "hooks", func(l *script) int64 {
		l.set("hook.end", preToolUse(l), "outputs", object{callOf(l, 1): object{"permissionDecision": "deny"}})
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.forbidden", "hooks", func(l *script) int64 {
		l.set("session.configured", 1, "permissions", object{"deny": []any{"bash"}})
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.forbidden", "hooks", func(l *script) int64 {
		l.set("session.configured", 1, "permissions", object{"deny": []any{"BASH"}})
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.forbidden", "hooks", func(l *script) int64 {
		allowing(l, object{"allowAll": true, "deny": []any{object{"kind": "bash", "argument": nil}}})
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.baseless", "hooks", func(l *script) int64 { // the rules of the first event are not those of the second
		allowing(l, object{"allow": []any{object{"kind": "shell", "argument": nil}}})
		allowing(l, object{"allowReads": true})
		return l.decide(1, object{"by": "rule", "rules": []any{"shell"}})
	}, nil},
	{"decision.baseless", "hooks", func(l *script) int64 { // a decision by a grant names one
		l.set("session.configured", 1, "permissions", object{"allow": []any{"bash"}})
		return l.decide(1, object{"by": "grant", "rules": []any{"bash"}})
	}, nil},
	{"decision.baseless", "back", func(l *script) int64 { return l.decide(2, object{"by": "nothing"}) }, nil},
	{"decision.baseless", "back", func(l *script) int64 { // what was granted is outside of the scope
		l.set("tool.execution_begun", 2, "granted", true)
		return l.decide(2, object{"by": "scope"})
	}, nil},
	{"decision.baseless", "asks", func(l *script) int64 {
		l.set("session.configured", 1, "approve", "workspace")
		return l.set("external_tool.requested", 2, "decision", object{"by": "scope"})
	}, nil},
	{"decision.baseless", "asks", edited("external_tool.requested", 2, "decision", object{"by": "nothing"}), nil},
	{"decision.baseless", "asks", func(l *script) int64 { // its client declares it anew, and wants to be asked
		l.insert(l.at("tool.execution_start", 2), "tools.declared", object{"tools": []any{object{"name": "fetch", "skipPermission": true}}})
		return l.at("external_tool.requested", 1)
	}, nil},
	{"decision.missing", "hooks", func(l *script) int64 { // a scope allows no command
		l.age()
		l.set("session.configured", 1, "approve", "workspace")
		return l.at("tool.execution_begun", 1)
	}, nil},
	{"decision.missing", "hooks", func(l *script) int64 { // no rule has granted it
		l.age()
		l.set("session.configured", 1, "approve", nil)
		l.set("session.configured", 1, "permissions", object{"allow": []any{"view"}})
		return l.set("tool.execution_begun", 1, "granted", nil)
	}, nil},
	{"decision.missing", "back", func(l *script) int64 { // it is outside of the scope, and there is nothing that could grant it
		l.age()
		l.set("session.configured", 1, "approve", "workspace")
		l.set("tool.execution_begun", 1, "granted", nil)
		return l.set("tool.execution_begun", 2, "granted", true)
	}, nil},
	{"grant.denied", "denied", edited("permission.completed", 1, "grants", []any{object{"kind": "shell"}}), nil},
	{"shown.call", "denied", func(l *script) int64 {
		at := l.at("permission.requested", 1)
		l.get(at).Data["permissionRequest"].(map[string]any)["toolCallId"] = none
		return at
	}, nil},
	{"shown.command", "denied", func(l *script) int64 {
		at := l.at("permission.requested", 1)
		l.get(at).Data["permissionRequest"].(map[string]any)["fullCommandText"] = "true"
		return at
	}, nil},

	// What an event says of its step, its call and its question
	{"step.other", "talk", edited("assistant.message", 1, "turnId", "7"), nil},
	{"step.other", "talk", edited("assistant.message", 1, "interactionId", none), nil},
	{"step.other", "talk", edited("assistant.turn_end", 1, "turnId", "7"), nil},
	{"step.other", "back", edited("tool.execution_start", 2, "turnId", "7"), nil},
	{"step.other", "denied", edited("tool.execution_complete", 1, "interactionId", none), nil},
	{"step.unanswered", "commands", func(l *script) int64 {
		l.remove("assistant.message", 1)
		for _, kind := range []string{"tool.execution_start", "tool.execution_begun", "tool.execution_complete"} {
			l.remove(kind, 1)
		}
		return l.at("assistant.turn_start", 2)
	}, nil},
	{"step.left-open", "talk", func(l *script) int64 {
		l.remove("assistant.turn_end", 1)
		return l.at("session.idle", 1)
	}, []string{"resume.count"}},
	{"call.arguments", "back", edited("tool.execution_start", 2, "arguments", object{"path": "/etc"}), nil},
	{"call.arguments", "back", edited("tool.execution_start", 2, "arguments", nil), nil},
	{"complete.unbegun", "back", func(l *script) int64 {
		l.remove("tool.execution_begun", 1) // the one of create: the file was written, and nothing says so
		return l.at("tool.execution_complete", 1)
	}, []string{"hidden.range"}},
	{"complete.unbegun", "agent", func(l *script) int64 {
		l.remove("tool.execution_begun", 1)
		return l.at("tool.execution_complete", 1)
	}, nil},
	{"question.unintended", "denied", func(l *script) int64 { return swapped(l, l.at("permission.requested", 1)) }, nil},
	{"question.unintended", "asks", func(l *script) int64 { return swapped(l, l.at("external_tool.requested", 1)) }, nil},
	{"question.unintended", "asks", func(l *script) int64 { return swapped(l, l.at("user_input.requested", 1)) }, nil},
	{"shown.tool", "asks", edited("external_tool.requested", 1, "toolName", "fetch"), nil},
	{"shown.tool", "asks", edited("external_tool.requested", 1, "arguments", object{"value": "other"}), nil},
	{"shown.nothing", "denied", edited("permission.requested", 1, "permissionRequest", object{}), nil},
	{"fork.parent", "branch", edited("session.forked", 1, "parentSessionId", "talk"), nil},
	{"idle.again", "talk", func(l *script) int64 { at := l.at("session.idle", 1); return l.repeat(at, at+1, nil) }, nil},
	{"input.other-words", "talk", func(l *script) int64 {
		l.set("user.message", 1, "content", "Reply with exactly: TEN")
		return l.at("user.message", 1)
	}, nil},
	{"input.other-words", "talk", func(l *script) int64 {
		l.set("input.accepted", 1, "prompt", "Reply with exactly: TEN")
		return l.at("user.message", 1)
	}, nil},
}

// swapped puts a question in front of the event before it, and returns its place.
func swapped(l *script, at int64) int64 {
	i := at - l.shared - 1
	l.events[i-1], l.events[i] = l.events[i], l.events[i-1]
	return at - 1
}

// allowing puts what clients have set in front of the first call of a session in which nothing
// else allows it.
func allowing(l *script, rules object) {
	l.set("session.configured", 1, "approve", nil)
	l.insert(l.at("tool.execution_start", 1), "permissions.configured", rules)
}

// shown counts the events that clients are shown.
func shown(l *script) (n int) {
	for _, e := range l.events {
		if isListed(e.Type) {
			n++
		}
	}
	return n
}

// toldStep is the number of the step that follows the notification.
func toldStep(l *script) (n int) {
	told := l.at("system.notification", 1)
	for i, e := range l.events {
		if e.Type == "assistant.turn_start" {
			if n++; int64(i) >= told {
				return n
			}
		}
	}
	return n
}

// preToolUse is the number of the hook.end of that hook.
func preToolUse(l *script) (n int) {
	for _, e := range l.events {
		if e.Type == "hook.end" {
			if n++; e.Data["hookType"] == "preToolUse" {
				return n
			}
		}
	}
	return 0
}

func TestEveryBrokenLogIsNamed(t *testing.T) {
	for i, c := range faults {
		t.Run(fmt.Sprintf("%s/%d", c.rule, i), func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			l := f.script(sessionNamed(f, c.session))
			at := c.spoil(l)
			l.save()
			expect(t, f.audit(audit.Options{}), audit.Finding{Rule: c.rule, Session: l.session, Seq: at}, c.also)
		})
	}
}

// sessionNamed returns the id of a session that tests know by another name: that of
// a fork is made up by the engine.
func sessionNamed(f *folder, name string) string {
	switch name {
	case "root2":
		return "talk"
	case "branch":
		return f.text("SELECT name FROM sessions WHERE parent = ?", f.row("root"))
	case "openfork":
		return f.text("SELECT name FROM sessions WHERE parent = ?", f.row("open"))
	case "helper":
		return f.text("SELECT name FROM sessions WHERE json_extract(info, '$.listed') IS NULL AND parent IS NULL")
	}
	return name
}

// expect fails unless the report has the finding, and beside it only what cannot be
// avoided.
func expect(t *testing.T, r *audit.Report, want audit.Finding, also []string) {
	t.Helper()
	var others []string
	found := false
	for _, got := range r.Findings {
		if !found && got.Rule == want.Rule && got.Session == want.Session && got.Seq == want.Seq && (want.Process == "" || got.Process == want.Process) {
			found = true
			if got.Text == "" || got.Invariant == "" {
				t.Errorf("the finding says nothing: %+v", got)
			}
			continue
		}
		others = append(others, got.Rule)
	}
	slices.Sort(others)
	also = slices.Clone(also)
	slices.Sort(also)
	if !found || !slices.Equal(others, also) {
		t.Errorf("want %+v and %v beside it; the findings are:", want, also)
		for _, got := range r.Findings {
			t.Logf("%+v", got)
		}
	}
}

// A blow breaks something beside the events.
type blow struct {
	rule  string
	spoil func(f *folder) audit.Finding // damage to the folder; it returns the finding that is expected, without the rule
	also  []string
}

func atEnd(f *folder, session string) audit.Finding {
	return audit.Finding{Session: session, Seq: f.seq(session)}
}

// record changes the record that holds the nth append of a session.
func (f *folder) recordKey(session string, nth int) int64 {
	return f.number("SELECT key FROM records WHERE key >> 32 = ? ORDER BY key LIMIT 1 OFFSET ?", f.row(session), nth-1)
}

const maxSeq = 1<<32 - 1

// ofProcess saves a made-up process and returns what is to be found of it.
func ofProcess(p *process) audit.Finding {
	p.save()
	return audit.Finding{Session: p.owner, Process: p.id}
}

var signal = entryLine("signal", "signal", "15", "group", "101", "start", "8")

// cutAfterTask ends the log of the session "commands" after its task was started, and returns the
// key of the task. If it is stopped, the call and its turn were stopped then.
func (f *folder) cutAfterTask(stopped bool) string {
	l := f.script("commands")
	at := l.at("task.started", 1)
	key := l.get(at).Data["key"].(string)
	l.events = l.events[:at]
	if stopped {
		l.set("tool.execution_complete", 2, "success", false)
		l.set("tool.execution_complete", 2, "result", nil)
		l.set("tool.execution_complete", 2, "error", object{"code": "interrupted", "message": "m"})
		l.add("abort", object{"reason": "user_initiated"})
		l.add("session.idle", object{"aborted": true, "totals": object{}})
	}
	l.save()
	f.info("commands", "active", !stopped)
	f.info("commands", "tasks", 1)
	f.exec("UPDATE sessions SET active = 1 WHERE name = 'commands'")
	return key
}

var blows = []blow{
	// the index
	{"index.active", func(f *folder) audit.Finding {
		f.info("open", "active", false)
		f.exec("UPDATE sessions SET active = 0 WHERE name = 'open'")
		return atEnd(f, "open")
	}, nil},
	{"index.due", func(f *folder) audit.Finding {
		f.exec("UPDATE sessions SET active = 1 WHERE name = 'talk'")
		return atEnd(f, "talk")
	}, nil},
	{"index.waiting", func(f *folder) audit.Finding {
		l := f.script("commands")
		l.events = l.events[:l.at("tool.execution_begun", 1)]
		l.save()
		f.info("commands", "active", true)
		f.info("commands", "waiting", true)
		return atEnd(f, "commands")
	}, nil},
	{"index.watch", func(f *folder) audit.Finding {
		f.info("talk", "watch", []object{{"key": none}})
		return atEnd(f, "talk")
	}, nil},
	{"index.questions", func(f *folder) audit.Finding { f.info("open", "questions", 0); return atEnd(f, "open") }, nil},
	{"index.questions", func(f *folder) audit.Finding { f.info("talk", "questions", 1); return atEnd(f, "talk") }, nil},
	{"index.tasks", func(f *folder) audit.Finding {
		f.info("commands", "tasks", 1)
		f.exec("UPDATE sessions SET active = 1 WHERE name = 'commands'")
		return atEnd(f, "commands")
	}, nil},
	{"index.name", func(f *folder) audit.Finding { f.info("talk", "name", "x"); return atEnd(f, "talk") }, nil},
	{"index.directory", func(f *folder) audit.Finding { f.info("talk", "dir", "/x"); return atEnd(f, "talk") }, nil},
	{"index.client", func(f *folder) audit.Finding { f.info("talk", "client", "x"); return atEnd(f, "talk") }, nil},
	{"index.malformed", func(f *folder) audit.Finding {
		f.exec("UPDATE sessions SET info = 'x' WHERE name = 'talk'")
		return atEnd(f, "talk")
	}, nil},
	{"index.times", func(f *folder) audit.Finding {
		f.exec("UPDATE sessions SET created = modified + 1 WHERE name = 'talk'")
		return atEnd(f, "talk")
	}, nil},
	{"index.quarantined", func(f *folder) audit.Finding {
		f.exec("UPDATE sessions SET damaged = 3, reason = 'r' WHERE name = 'talk'")
		return audit.Finding{Session: "talk", Seq: 3}
	}, nil},

	// what the index says of tasks, workspaces and models
	{"index.watch", func(f *folder) audit.Finding {
		f.cutAfterTask(false)
		f.info("commands", "watch", []object{{"key": none}})
		return atEnd(f, "commands")
	}, []string{"index.watch"}},
	{"index.watch", func(f *folder) audit.Finding {
		key := f.cutAfterTask(true)
		f.info("commands", "watch", []object{{"key": key}})
		return atEnd(f, "commands")
	}, nil},
	{"index.workspace", func(f *folder) audit.Finding {
		f.info("talk", "workspace", object{"address": "unix:/w", "identity": "it"})
		return atEnd(f, "talk")
	}, nil},
	{"index.workspace", func(f *folder) audit.Finding {
		l := f.script("talk")
		l.set("session.configured", 1, "workspace", object{"address": "unix:/w", "identity": "it"})
		l.save()
		f.info("talk", "workspace", object{"address": "unix:/w", "identity": "another"})
		return atEnd(f, "talk")
	}, nil},
	{"index.parked", func(f *folder) audit.Finding {
		f.info("waits", "parked", object{"at": 1, "waitMs": 1 << 50, "leftMs": 1 << 50})
		return atEnd(f, "waits")
	}, nil},
	{"stray.costs", func(f *folder) audit.Finding {
		f.exec("INSERT INTO costs SELECT 'ghost', 'ghost', day, model, purpose, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM costs LIMIT 1")
		return audit.Finding{Session: "ghost"}
	}, nil},
	{"fork.orphaned", func(f *folder) audit.Finding { // a ring of forks
		fork := sessionNamed(f, "branch")
		f.exec("UPDATE sessions SET parent = id WHERE name = ?", fork)
		return audit.Finding{Session: fork, Seq: f.number("SELECT shared + 1 FROM sessions WHERE name = ?", fork)}
	}, nil},
	{"decision.unsealed", func(f *folder) audit.Finding {
		l := f.script("hooks")
		l.set("session.configured", 1, "sealed", true)
		at := l.decide(1, object{"by": "rule", "rules": []any{"bash"}})
		l.save()
		return audit.Finding{Session: "hooks", Seq: at}
	}, nil},

	// records
	{"order.gap", func(f *folder) audit.Finding {
		key := f.recordKey("talk", 3)
		f.exec("DELETE FROM records WHERE key = ?", key)
		return audit.Finding{Session: "talk", Seq: key & maxSeq}
	}, nil},
	{"order.gap", func(f *folder) audit.Finding {
		f.exec("DELETE FROM records WHERE key = ?", f.recordKey("talk", 1))
		return audit.Finding{Session: "talk", Seq: 1}
	}, nil},
	{"order.missing", func(f *folder) audit.Finding {
		key := f.number("SELECT max(key) FROM records WHERE key >> 32 = ?", f.row("talk"))
		f.exec("DELETE FROM records WHERE key = ?", key)
		return audit.Finding{Session: "talk", Seq: key & maxSeq}
	}, nil},
	{"order.missing", func(f *folder) audit.Finding {
		f.exec("DELETE FROM records WHERE key >> 32 = ?", f.row("talk"))
		return audit.Finding{Session: "talk", Seq: 1}
	}, nil},
	{"order.overlap", func(f *folder) audit.Finding {
		// A record of several events: how many the engine stores in one depends on time.
		key := f.number("SELECT min(key) FROM records r WHERE key >> 32 = ? AND NOT EXISTS (SELECT 1 FROM records WHERE key = r.key + 1)", f.row("talk"))
		f.exec("INSERT INTO records SELECT key + 1, head, body FROM records WHERE key = ?", key)
		return audit.Finding{Session: "talk", Seq: key&maxSeq + 1}
	}, nil},
	{"order.beyond", func(f *folder) audit.Finding {
		f.exec("INSERT INTO records SELECT (key >> 32 << 32) + ?, head, body FROM records WHERE key = ?", f.seq("talk")+1, f.recordKey("talk", 1))
		return audit.Finding{Session: "talk", Seq: f.seq("talk") + 1}
	}, nil},
	{"order.beyond", func(f *folder) audit.Finding {
		f.exec("UPDATE sessions SET seq = seq - 1 WHERE name = 'talk'")
		return audit.Finding{Session: "talk", Seq: f.seq("talk") + 1}
	}, []string{"chain.index", "index.active"}},
	{"stray.records", func(f *folder) audit.Finding {
		f.exec("INSERT INTO records SELECT 900 << 32 | 1, head, body FROM records WHERE key = ?", f.recordKey("talk", 1))
		return audit.Finding{Session: "#900", Seq: 1}
	}, nil},
	{"stray.secrets", func(f *folder) audit.Finding {
		f.exec("INSERT INTO secrets VALUES (900, 'n', x'76')")
		return audit.Finding{Session: "#900"}
	}, nil},
	{"stray.jobs", func(f *folder) audit.Finding {
		f.exec("INSERT INTO jobs VALUES ('j', 900, 'extract', '', 1, 2, 0, NULL, '', '')")
		return audit.Finding{Session: "#900"}
	}, nil},
	{"job.range", func(f *folder) audit.Finding {
		f.exec("INSERT INTO jobs VALUES ('j', ?, 'extract', '', 3, 900, 0, NULL, '', '')", f.row("talk"))
		return audit.Finding{Session: "talk", Seq: 3}
	}, nil},

	// the chain
	{"chain.broken", func(f *folder) audit.Finding {
		key := f.recordKey("talk", 2)
		f.exec("UPDATE records SET body = CAST(replace(CAST(body AS TEXT), 'ONE', 'TEN') AS BLOB) WHERE key = ?", key)
		return audit.Finding{Session: "talk", Seq: key & maxSeq}
	}, nil},
	{"chain.broken", func(f *folder) audit.Finding {
		key := f.recordKey("talk", 2)
		f.exec("UPDATE records SET head = zeroblob(32) WHERE key = ?", key)
		return audit.Finding{Session: "talk", Seq: key & maxSeq}
	}, []string{"chain.broken"}},
	{"chain.length", func(f *folder) audit.Finding {
		key := f.recordKey("talk", 2)
		f.exec("UPDATE records SET head = x'00' WHERE key = ?", key)
		return audit.Finding{Session: "talk", Seq: key & maxSeq}
	}, []string{"chain.broken"}},
	{"chain.index", func(f *folder) audit.Finding {
		f.exec("UPDATE sessions SET head = zeroblob(32) WHERE name = 'talk'")
		return atEnd(f, "talk")
	}, nil},
	{"chain.base", func(f *folder) audit.Finding {
		fork := sessionNamed(f, "branch")
		f.exec("UPDATE sessions SET base = zeroblob(32) WHERE name = ?", fork)
		return audit.Finding{Session: fork, Seq: f.number("SELECT shared + 1 FROM sessions WHERE name = ?", fork)}
	}, nil},
	{"fork.orphaned", func(f *folder) audit.Finding {
		fork := sessionNamed(f, "branch")
		f.exec("UPDATE sessions SET parent = 900 WHERE name = ?", fork)
		return audit.Finding{Session: fork, Seq: f.number("SELECT shared + 1 FROM sessions WHERE name = ?", fork)}
	}, nil},
	{"fork.beyond", func(f *folder) audit.Finding {
		f.exec("UPDATE sessions SET seq = 5 WHERE name = 'root'")
		fork := sessionNamed(f, "branch")
		return audit.Finding{Session: fork, Seq: f.number("SELECT shared + 1 FROM sessions WHERE name = ?", fork)}
	}, []string{"chain.index", "index.active", "order.beyond"}},
	{"fork.call-open", func(f *folder) audit.Finding {
		fork := sessionNamed(f, "openfork")
		l := f.script(fork)
		l.remove("tool.execution_complete", 1)
		l.save()
		return audit.Finding{Session: fork, Seq: l.shared + 1}
	}, nil},

	// agents and folders
	{"agent.prompt-twice", func(f *folder) audit.Finding {
		l := f.script(sessionNamed(f, "helper"))
		at := l.repeat(l.at("input.accepted", 1), l.at("user.message", 1)+1, object{"inputId": "second"})
		l.repeat(l.at("user.message", 1), at+1, object{"inputId": "second"})
		l.save()
		return audit.Finding{Session: l.session, Seq: at}
	}, nil},
	{"agent.missing", func(f *folder) audit.Finding {
		helper := sessionNamed(f, "helper")
		f.exec("DELETE FROM records WHERE key >> 32 = ?", f.row(helper))
		f.db.Exec("DELETE FROM secrets WHERE session = ?", f.row(helper))
		f.exec("DELETE FROM sessions WHERE name = ?", helper)
		l := f.script("agent")
		return audit.Finding{Session: "agent", Seq: l.at("tool.execution_complete", 1)}
	}, []string{"stray.costs"}},
	{"agent.orphaned", func(f *folder) audit.Finding {
		helper := sessionNamed(f, "helper")
		f.exec("DELETE FROM records WHERE key >> 32 = ?", f.row("agent"))
		f.db.Exec("DELETE FROM secrets WHERE session = ?", f.row("agent"))
		f.exec("DELETE FROM sessions WHERE name = 'agent'")
		return atEnd(f, helper)
	}, []string{"stray.costs"}},
	{"folder.orphaned", func(f *folder) audit.Finding {
		if err := os.MkdirAll(filepath.Join(f.dir, "sessions", "ghost"), 0o700); err != nil {
			f.t.Fatal(err)
		}
		return audit.Finding{Session: "ghost"}
	}, nil},

	// processes that the log knows
	{"process.missing", func(f *folder) audit.Finding {
		os.RemoveAll(f.command("commands", 1).path(""))
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("tool.execution_complete", 1)}
	}, nil},
	{"task.missing", func(f *folder) audit.Finding {
		os.RemoveAll(f.command("commands", 2).path(""))
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("task.reported", 1)}
	}, []string{"process.missing"}},
	{"process.half-made", func(f *folder) audit.Finding {
		os.Remove(f.command("commands", 1).path("spec"))
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("tool.execution_complete", 1)}
	}, nil},
	{"process.half-made", func(f *folder) audit.Finding { // a kill in the middle of recovery, before the call is made again
		os.Remove(f.command("commands", 1).path("spec"))
		l := f.script("commands")
		at := l.at("tool.execution_begun", 1)
		l.events = l.events[:at]
		l.save()
		f.info("commands", "active", true)
		f.exec("UPDATE sessions SET active = 1 WHERE name = 'commands'")
		return audit.Finding{Session: "commands", Seq: at}
	}, nil},
	{"process.other-status", func(f *folder) audit.Finding {
		p := f.command("commands", 1)
		p.lines[p.find("exited")] = entryLine("exited", "status", "0", "kept", "4")
		p.save()
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("tool.execution_complete", 1)}
	}, nil},
	{"process.told-early", func(f *folder) audit.Finding {
		f.command("commands", 1).without("exited").without("ended").save()
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("tool.execution_complete", 1)}
	}, nil},
	{"process.told-early", func(f *folder) audit.Finding { // it was not even started
		f.command("commands", 1).without("started").without("exited").without("ended").save()
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("tool.execution_complete", 1)}
	}, nil},
	{"decision.other-command", func(f *folder) audit.Finding { // before the call is finished
		l := f.script("hooks")
		at := l.decide(1, object{"command": "'echo' 'another'"})
		l.events = l.events[:at]
		l.save()
		f.info("hooks", "active", true)
		f.exec("UPDATE sessions SET active = 1 WHERE name = 'hooks'")
		return audit.Finding{Session: "hooks", Seq: at}
	}, nil},
	{"task.ended-early", func(f *folder) audit.Finding {
		f.command("commands", 2).without("exited").without("ended").save()
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("task.reported", 1)}
	}, nil},
	{"process.unreadable", func(f *folder) audit.Finding {
		p := f.command("commands", 1)
		os.Remove(p.path("state"))
		os.Mkdir(p.path("state"), 0o700)
		l := f.script("commands")
		return audit.Finding{Session: "commands", Seq: l.at("tool.execution_complete", 1)}
	}, []string{"process.unreadable"}},

	// records of processes
	{"process.orphaned", func(f *folder) audit.Finding { return ofProcess(f.process("nobody", "k")) }, nil},
	{"process.ownerless", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		p.write("spec", "half a li")
		p.save()
		return audit.Finding{Process: p.id}
	}, nil},
	{"process.misnamed", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		p.save()
		other := f.process("talk", "other")
		os.RemoveAll(other.path(""))
		if err := os.Rename(p.path(""), other.path("")); err != nil {
			f.t.Fatal(err)
		}
		return audit.Finding{Session: "talk", Process: other.id}
	}, nil},
	{"process.abandoned", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		found := ofProcess(p)
		p.write("claim", entryLine("abandoned", "boot", "b")+"\n")
		return found
	}, nil},
	{"process.unclaimed", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		found := ofProcess(p)
		os.Remove(p.path("claim"))
		return found
	}, nil},
	{"process.output", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		p.write("out.0000000000000000", "more than there was")
		return ofProcess(p)
	}, nil},
	{"journal.twice", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		return ofProcess(p.with("started", p.lines[1]))
	}, nil},
	{"journal.unclaimed", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		claim := p.lines[0]
		found := ofProcess(p.without("claimed"))
		p.write("claim", claim+"\n")
		return found
	}, nil},
	{"journal.unclaimed", func(f *folder) audit.Finding {
		p := f.process("talk", "k").without("started").without("exited").without("ended")
		claim := p.lines[0]
		p.lines = []string{entryLine("failed", "reason", "no such file")}
		found := ofProcess(p)
		p.write("claim", claim+"\n")
		return found
	}, nil},
	{"journal.twice", func(f *folder) audit.Finding {
		lost := entryLine("lost", "reason", "r")
		return ofProcess(f.process("talk", "k").without("exited").with("started", lost).with("started", lost))
	}, nil},
	{"journal.unstarted", func(f *folder) audit.Finding { return ofProcess(f.process("talk", "k").without("started")) }, nil},
	{"journal.endless", func(f *folder) audit.Finding { return ofProcess(f.process("talk", "k").without("exited")) }, nil},

	// signals
	{"signal.number", func(f *folder) audit.Finding {
		return ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "99", "group", "101", "start", "8")))
	}, nil},
	{"signal.unclaimed", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		p.lines = slices.Insert(p.lines, 0, signal)
		return ofProcess(p)
	}, nil},
	{"signal.after-end", func(f *folder) audit.Finding { return ofProcess(f.process("talk", "k").with("ended", signal)) }, nil},
	{"signal.group-gone", func(f *folder) audit.Finding { return ofProcess(f.process("talk", "k").with("exited", signal)) }, nil},
	{"signal.foreign", func(f *folder) audit.Finding {
		return ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "15", "group", "102", "start", "8")))
	}, nil},
	{"signal.foreign", func(f *folder) audit.Finding {
		return ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "15", "group", "101", "start", "9")))
	}, nil},
	{"signal.foreign", func(f *folder) audit.Finding {
		return ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "15", "pid", "1", "start", "8")))
	}, nil},
	{"signal.foreign", func(f *folder) audit.Finding {
		return ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "15", "pid", "100", "start", "7")))
	}, nil},
	{"signal.unidentified", func(f *folder) audit.Finding {
		return ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "15", "pid", "300")))
	}, nil},
	{"signal.unidentified", func(f *folder) audit.Finding {
		return ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "15", "pid", "300", "start", "0")))
	}, nil},
	{"signal.unrecorded", func(f *folder) audit.Finding {
		p := f.process("talk", "k")
		p.lines[2] = entryLine("exited", "status", "9", "killed", "signal", "kept", "0")
		return ofProcess(p)
	}, nil},
}

func TestEveryBrokenRecordIsNamed(t *testing.T) {
	for i, c := range blows {
		t.Run(fmt.Sprintf("%s/%d", c.rule, i), func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			want := c.spoil(f)
			want.Rule = c.rule
			expect(t, f.audit(audit.Options{}), want, c.also)
		})
	}
}
