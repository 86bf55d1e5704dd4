// From events to what a transcript shows. The fold looks at the events of a window of the log:
// a result whose call is older than the window is shown alone until the older page is there.
import { questionKinds, text, time, type Event, type Stored } from "./event";

export interface UserBlock { k: "user"; text: string; delivery: string; source: string; attachments: any[] }
export interface TextBlock { k: "text"; text: string; model: string; streaming: boolean }
export interface ThoughtBlock { k: "thought"; text: string; streaming: boolean }
export interface ToolBlock {
  k: "tool"; callId: string; name: string; args: any; state: "intended" | "asked" | "running" | "done" | "failed";
  result?: any; error?: any; begun?: number; ended?: number; attempt: number; task?: { key: string; status: string; ended: boolean };
  input: string; // arguments that are still being written
}
export interface NoteBlock { k: "note"; level: "info" | "warn" | "bad" | "good"; text: string; detail?: string }
export interface QuestionBlock { k: "question"; event: Event; answer?: Event }
export interface EndBlock { k: "end"; ms: number; requests: number; tokens: number; cost: number | null; aborted: boolean }
export interface TodoBlock { k: "todo"; items: { id: number; subject: string; status: string }[] }

export type Block = (UserBlock | TextBlock | ThoughtBlock | ToolBlock | NoteBlock | QuestionBlock | EndBlock | TodoBlock) & {
  key: string; // the same as long as the block is
  v: string; // changes when the block looks different
  seq: number; time: number; eventId: string; agent: string;
};

/** Pieces of an answer that is not stored yet. */
export interface Pieces {
  messages: Map<string, string>;
  thoughts: Map<string, string>;
  calls: Map<string, { name: string; input: string }>;
}

export function noPieces(): Pieces { return { messages: new Map(), thoughts: new Map(), calls: new Map() }; }

/** takePiece adds a piece to what was streamed; false if the event is none. */
export function takePiece(p: Pieces, e: Event): boolean {
  const d = e.data;
  switch (e.type) {
    case "assistant.message_start": p.messages.set(d.messageId, p.messages.get(d.messageId) ?? ""); return true;
    case "assistant.message_delta": p.messages.set(d.messageId, (p.messages.get(d.messageId) ?? "") + d.deltaContent); return true;
    case "assistant.reasoning_delta": p.thoughts.set(d.reasoningId, (p.thoughts.get(d.reasoningId) ?? "") + d.deltaContent); return true;
    case "assistant.tool_call_delta": {
      const c = p.calls.get(d.toolCallId) ?? { name: d.toolName ?? "", input: "" };
      p.calls.set(d.toolCallId, { name: d.toolName || c.name, input: c.input + d.inputDelta });
      return true;
    }
    case "assistant.turn_retry": case "assistant.idle": clearPieces(p); return true;
  }
  return false;
}

export function clearPieces(p: Pieces): void { p.messages.clear(); p.thoughts.clear(); p.calls.clear(); }

/** storedPiece drops the pieces that a stored event replaces. Events and pieces come in order. */
export function storedPiece(p: Pieces, e: Event): void {
  switch (e.type) {
    case "assistant.message":
      p.messages.delete(e.data.messageId);
      p.thoughts.clear();
      for (const r of e.data.toolRequests ?? []) p.calls.delete(r.toolCallId);
      break;
    case "session.idle": case "abort": case "session.error": clearPieces(p); break;
  }
}

export interface Range { from: number; to: number }

/** fold makes blocks of stored events, which are in order, and of pieces. */
export function fold(events: Stored[], hidden: Range[], pieces: Pieces): Block[] {
  const out: Block[] = [];
  const calls = new Map<string, Block & ToolBlock>();
  const questions = new Map<string, Block & QuestionBlock>();
  const byKey = new Map<string, string>(); // key of a call's work → the call
  const todos = new Map<number, { id: number; subject: string; status: string }>();
  let turn = { start: NaN, requests: 0, tokens: 0, cost: null as number | null };

  const put = (s: Stored, key: string, b: any): any => {
    const block = { key, v: String(s.seq), seq: s.seq, time: time(s.event), eventId: s.event.id, agent: s.event.agentId ?? "", ...b };
    out.push(block);
    return block;
  };
  const note = (s: Stored, level: NoteBlock["level"], text: string, detail?: string) => put(s, s.event.id, { k: "note", level, text, detail });
  const call = (s: Stored, id: string, name: string, args: any): Block & ToolBlock => {
    const known = calls.get(id);
    if (known) return known;
    const b = put(s, "call-" + id, { k: "tool", callId: id, name, args, state: "intended", attempt: 0, input: "" }) as Block & ToolBlock;
    calls.set(id, b);
    return b;
  };

  for (const s of events) {
    const e = s.event, d = e.data ?? {};
    if (hidden.some((r) => s.seq >= r.from && s.seq <= r.to)) continue;
    switch (e.type) {
      case "user.message":
        if (!e.agentId) turn = { start: time(e), requests: 0, tokens: 0, cost: null };
        put(s, e.id, { k: "user", text: d.content ?? "", delivery: d.delivery ?? "", source: d.source ?? "", attachments: d.attachments ?? [] });
        break;
      case "assistant.message":
        if (d.reasoningText) put(s, "thought-" + d.messageId, { k: "thought", text: d.reasoningText, streaming: false });
        if (d.content) put(s, "msg-" + d.messageId, { k: "text", text: d.content, model: d.model ?? "", streaming: false });
        for (const r of d.toolRequests ?? []) call(s, r.toolCallId, r.toolTitle || r.name, r.arguments);
        break;
      case "assistant.usage":
        turn.requests++;
        turn.tokens += (d.inputTokens ?? 0) + (d.outputTokens ?? 0) + (d.cacheReadTokens ?? 0) + (d.cacheWriteTokens ?? 0);
        if (typeof d.costUsd === "number") turn.cost = (turn.cost ?? 0) + d.costUsd;
        break;
      case "tool.execution_start": {
        const b = call(s, d.toolCallId, d.toolName, d.arguments);
        b.args = d.arguments ?? b.args;
        break;
      }
      case "tool.execution_begun": {
        const b = call(s, d.toolCallId, "", undefined);
        b.state = "running"; b.begun = time(e); b.attempt = d.attempt ?? 1; b.v = String(s.seq);
        byKey.set(d.key, d.toolCallId);
        break;
      }
      case "tool.execution_complete": {
        const b = call(s, d.toolCallId, "", undefined);
        b.state = d.success ? "done" : "failed"; b.result = d.result; b.error = d.error; b.ended = time(e); b.v = String(s.seq);
        break;
      }
      case "task.started": {
        const id = d.toolCallId ?? byKey.get(d.key);
        const b = id && calls.get(id);
        if (b) { b.task = { key: d.key, status: "running", ended: false }; b.v = String(s.seq); byKey.set(d.key, id); }
        break;
      }
      case "task.reported": {
        const b = calls.get(byKey.get(d.key) ?? "");
        if (b) { b.task = { key: d.key, status: d.status, ended: d.ended }; b.v = String(s.seq); }
        break;
      }
      case "system.notification": note(s, "info", "Told the model: " + text(d.content)); break;
      case "todo.changed": {
        todos.set(d.id, { id: d.id, subject: d.subject, status: d.status });
        const last = out[out.length - 1];
        const items = [...todos.values()].sort((a, b) => a.id - b.id);
        if (last?.k === "todo") { last.items = items; last.v = String(s.seq); }
        else put(s, "todo-" + e.id, { k: "todo", items });
        break;
      }
      case "session.model_change": if (d.previousModel) note(s, "info", `Model changed from ${d.previousModel} to ${d.newModel}`); break;
      case "session.mode_changed": note(s, "info", `Mode: ${d.newMode}`); break;
      case "session.permissions_changed": note(s, "warn", d.mode === "allow-all" ? "From here on, nobody is asked for permission" : "From here on, people are asked for permission again"); break;
      case "session.info": note(s, "info", text(d.message)); break;
      case "session.warning": note(s, "warn", text(d.message)); break;
      case "session.error": note(s, "bad", text(d.message), d.errorType); break;
      case "session.resume": if (d.sessionWasActive) note(s, "info", "A client came back while the turn was unfinished"); break;
      case "session.compaction_start": note(s, "info", "The context is being compacted"); break;
      case "session.compaction_complete":
        note(s, d.outcome === "failed" || d.success === false ? "warn" : "info", d.success === false || d.outcome === "failed" ? "Compacting failed" : d.outcome === "skipped" ? "Compacting was skipped"
          : `Context compacted: ${d.preCompactionTokens ?? "?"} → ${d.postCompactionTokens ?? "?"} tokens`, d.error?.message ?? d.error ?? d.summaryContent);
        break;
      case "turn.parked": note(s, "warn", `The model did not answer (${d.errorType}${d.statusCode ? " " + d.statusCode : ""}); asked again in ${Math.round((d.waitMs ?? 0) / 1000)} s`, d.message); break;
      case "turn.fallback": note(s, "warn", `Gave up ${d.previousModel ?? "the model"}; the turn goes on with ${d.model}`, d.message); break;
      case "turn.ended": note(s, "info", text(d.reason)); break;
      case "abort":
        note(s, "warn", d.detail ? "Stopped: " + d.detail : "Stopped");
        break;
      case "history.hidden": note(s, "info", `Rewound: ${d.to - d.from + 1} events are no longer part of the conversation`, d.reason); break;
      case "files.restored": note(s, "info", d.error ? "Files could not be put back: " + d.error : `Files put back: ${(d.files ?? []).map((f: any) => f.path).join(", ") || "none"}`); break;
      case "session.forked": note(s, "info", `Forked from ${d.parentSessionId} at event ${d.position}`); break;
      case "skill.invoked": note(s, "info", "Skill: " + d.name); break;
      case "budget.raised": note(s, "info", "The limit was raised"); break;
      case "session.idle":
        if (!e.agentId && Number.isFinite(turn.start)) put(s, e.id, { k: "end", ms: time(e) - turn.start, requests: turn.requests, tokens: turn.tokens, cost: turn.cost, aborted: !!d.aborted });
        turn = { start: NaN, requests: 0, tokens: 0, cost: null };
        break;
      default: {
        if (e.type in questionKinds) {
          const q = put(s, "q-" + d.requestId, { k: "question", event: e }) as Block & QuestionBlock;
          questions.set(d.requestId, q);
          const b = calls.get(d.toolCallId);
          if (b && b.state === "intended") { b.state = "asked"; b.v = String(s.seq); }
          break;
        }
        if (e.type.endsWith(".completed") && d.requestId) {
          const q = questions.get(d.requestId);
          if (q) { q.answer = e; q.v = String(s.seq); }
          const b = q && calls.get((q.event.data as any).toolCallId);
          if (b && b.state === "asked") { b.state = "intended"; b.v = String(s.seq); }
        }
      }
    }
  }
  const end = events.length ? events[events.length - 1] : undefined;
  const live = (key: string, n: number, b: any) => out.push({ key, v: "live" + n, seq: end?.seq ?? 0, time: NaN, eventId: "", agent: "", ...b } as Block);
  for (const [id, t] of pieces.thoughts) live("thought-live-" + id, t.length, { k: "thought", text: t, streaming: true });
  for (const [id, t] of pieces.messages) if (t) live("msg-" + id, t.length, { k: "text", text: t, model: "", streaming: true });
  for (const [id, c] of pieces.calls) if (!calls.has(id)) live("call-" + id, c.input.length, { k: "tool", callId: id, name: c.name, args: undefined, state: "intended", attempt: 0, input: c.input });
  return out;
}
