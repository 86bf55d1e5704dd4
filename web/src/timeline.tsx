// What the time of a turn was spent on, as bars and as a table.
import { useState } from "preact/hooks";
import { questionKinds, time, type Stored } from "./event";
import { useHistory } from "./history";
import { clockTime, fullTime, line, shortPath, span } from "./text";
import { Chip, Empty, Failure, Loading } from "./ui";

export interface Span { kind: "model" | "tool" | "wait" | "compaction" | "parked" | "gap" | "takeover"; name: string; from: number; to: number; open: boolean; note: string; seq: number }
export interface Turn { id: string; prompt: string; from: number; to: number; open: boolean; spans: Span[] }

/** turns finds the turns in events, and what each of them spent its time on. */
export function turns(events: Stored[]): Turn[] {
  const out: Turn[] = [];
  let turn: Turn | null = null;
  let calls = new Map<string, { name: string; at: number; seq: number; attempt: number; span?: Span }>();
  let waits = new Map<string, Span>();
  let step: Span | null = null;
  let compaction: Span | null = null;
  let parked: Span | null = null;
  const add = (s: Span) => { turn?.spans.push(s); return s; };
  const close = (s: Span | null, t: number) => { if (s?.open) { s.to = t; s.open = false; } };
  for (const s of events) {
    const e = s.event, d = e.data ?? {}, t = time(e);
    if (e.agentId) continue;
    if (turn && e.type !== "session.idle") turn.to = Math.max(turn.to, t);
    const mk = (kind: Span["kind"], name: string, from = t): Span => ({ kind, name, from, to: from, open: true, note: "", seq: s.seq });
    switch (e.type) {
      case "user.message":
        if (d.delivery === "steering" && turn) break;
        if (turn && d.interactionId && turn.id === d.interactionId) break;
        turn = { id: d.interactionId ?? e.id, prompt: line(d.content ?? "", 100), from: t, to: t, open: true, spans: [] };
        out.push(turn);
        calls = new Map(); waits = new Map(); step = compaction = parked = null;
        break;
      case "assistant.turn_start": close(parked, t); if (turn) step = add(mk("model", "Model")); break;
      case "turn.taken_over": {
        // What was under way is cut off, nobody knows when between the last event and this one.
        if (!turn) break;
        const last = Math.min(t, Math.max(turn.from, Date.parse(d.lastTime) || t));
        add({ kind: "takeover", name: "Another engine", from: t, to: t, open: false, note: `goes on with the turn; nothing was stored for ${span(t - last)}`, seq: s.seq });
        const cut = turn.spans.filter((x) => x.open && (x.kind === "model" || x.kind === "tool" || x.kind === "compaction"));
        for (const x of cut) { close(x, Math.max(x.from, last)); x.note = [x.note, "cut off"].filter(Boolean).join(", "); }
        if (cut.length) add({ kind: "gap", name: "Program was away", from: last, to: t, open: false, note: `cut off: ${cut.map((x) => x.name).join(", ")}`, seq: s.seq });
        if (cut.includes(step!)) step = add({ ...mk("model", "Model"), note: "asked again" });
        break;
      }
      case "assistant.usage":
        if (step) {
          step.name = d.model ?? "Model";
          step.note = `${step.note ? step.note + "; " : ""}${(d.inputTokens ?? 0) + (d.cacheReadTokens ?? 0) + (d.cacheWriteTokens ?? 0)} tokens in, ${d.outputTokens ?? 0} out`;
          // What is longer than the request itself was spent on attempts that gave no answer, or while no program was there.
          if (d.duration > 0 && t - step.from - d.duration > 3000 && !turn?.spans.some((x) => x.kind === "parked" && x.from >= step!.from)) {
            add({ kind: "gap", name: "Asked again", from: step.from, to: t - d.duration, open: false, note: "the first request gave no answer, or the program was restarted", seq: s.seq });
            step.from = t - d.duration;
          }
        }
        break;
      case "assistant.message": close(parked, t); close(step, t); step = null; break;
      case "ledger.request": if (d.failed && turn) add({ kind: "model", name: d.model ?? "Model", from: t, to: t, open: false, note: "paid for, and gave no answer", seq: s.seq }); break;
      case "turn.parked": close(step, t); close(parked, t); parked = add({ ...mk("parked", "Waits for the model"), note: `${d.errorType ?? ""} ${d.statusCode ?? ""} ${line(d.message ?? "", 80)}`.trim() }); break;
      case "turn.fallback": close(parked, t); if (turn) add({ kind: "parked", name: "Other model", from: t, to: t, open: false, note: `${d.previousModel ?? ""} → ${d.model}`, seq: s.seq }); break;
      case "tool.execution_start": calls.set(d.toolCallId, { name: d.toolName, at: t, seq: s.seq, attempt: 0 }); break;
      case "tool.execution_begun": {
        const c = calls.get(d.toolCallId);
        if (!c) break;
        if (c.span?.open) { close(c.span, c.span.from); c.span.note = "cut off"; add({ kind: "gap", name: "Program was away", from: c.span.from, to: t, open: false, note: "the call was begun again", seq: s.seq }); }
        c.attempt = d.attempt ?? 1;
        c.span = add({ ...mk("tool", c.name), note: c.attempt > 1 ? `attempt ${c.attempt}` : "" });
        break;
      }
      case "tool.execution_complete": {
        const c = calls.get(d.toolCallId);
        if (!c) break;
        if (!c.span) c.span = add({ ...mk("tool", c.name, c.at), note: "" });
        close(c.span, t);
        if (!d.success) c.span.note = [c.span.note, d.error?.code === "interrupted" ? "cut off: may have had effects" : d.error?.code ?? "failed"].filter(Boolean).join(", ");
        break;
      }
      case "session.compaction_start": compaction = add(mk("compaction", "Compaction")); break;
      case "session.compaction_complete": close(compaction, t); if (compaction) compaction.note = d.outcome ?? (d.success ? "done" : "failed"); compaction = null; break;
      case "abort": if (turn) for (const x of turn.spans) close(x, t); break;
      case "session.idle": if (turn) { turn.open = false; turn.to = Math.max(turn.to, t); for (const x of turn.spans) close(x, t); } break;
      default:
        if (e.type in questionKinds) waits.set(d.requestId, add({ ...mk("wait", "Waits for you"), note: line(d.question ?? d.message ?? d.permissionRequest?.fullCommandText ?? d.permissionRequest?.fileName ?? "", 80) }));
        else if (e.type.endsWith(".completed") && waits.has(d.requestId)) close(waits.get(d.requestId)!, t);
    }
  }
  return out;
}

const names: Record<Span["kind"], string> = { model: "Model", tool: "Tools", wait: "Waiting for you", compaction: "Compaction", parked: "Waiting for the model", gap: "Gaps", takeover: "Takeovers" };

export function Timeline({ id, position }: { id: string; position: number }) {
  const [n, setN] = useState(1500);
  const h = useHistory(id, position, n);
  const [chosen, choose] = useState<number>(-1);
  if (h.error) return <Failure error={h.error} />;
  if (!h.events) return <Loading what="the timeline" />;
  const all = turns(h.events);
  if (!all.length) return <Empty icon="clock" title="No turn yet" />;
  const index = chosen < 0 || chosen >= all.length ? all.length - 1 : chosen;
  const turn = all[index];
  const end = turn.open ? Math.max(turn.to, turn.from + 1) : turn.to;
  const total = Math.max(1, end - turn.from);
  const spans = [...turn.spans].sort((a, b) => a.from - b.from || a.seq - b.seq);
  const to = (s: Span) => (s.open ? end : s.to);
  const sums = (Object.keys(names) as Span["kind"][]).map((k) => [k, spans.filter((s) => s.kind === k).reduce((x, s) => x + to(s) - s.from, 0)] as const).filter(([, ms]) => ms > 0);
  return (
    <div class="panel">
      <div class="tools">
        <label>Turn <select value={String(index)} onChange={(e) => choose(Number(e.currentTarget.value))}>{all.map((t, i) => <option key={t.id} value={String(i)}>{clockTime(t.from)} · {t.prompt || "…"}</option>).reverse()}</select></label>
        {!h.whole && <button type="button" class="more" onClick={() => setN(n * 4)}>Load earlier turns</button>}
      </div>
      <p class="lead">{span(total)}{turn.open ? " so far" : ""}<span class="muted"> · {sums.map(([k, ms]) => `${names[k].toLowerCase()} ${span(ms)}`).join(" · ") || "nothing took time"}</span></p>
      <div class="timeline" role="img" aria-label={`Timeline of the turn: ${spans.length} spans in ${span(total)}. The table below has the same.`}>
        {spans.slice(0, 300).map((s, i) => (
          <div key={i} class="lane"><span class="lane-name" title={line(s.name)}>{shortPath(s.name, 20)}</span><span class="lane-track"><span class={"bar " + s.kind} style={{ left: `${((s.from - turn.from) / total) * 100}%`, width: `${Math.max(0.4, ((to(s) - s.from) / total) * 100)}%` }} /></span></div>
        ))}
        <div class="lane axis"><span class="lane-name" /><span class="lane-track"><span>0</span><span>{span(total / 2)}</span><span>{span(total)}</span></span></div>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of the turn">
        <table class="data" id="timeline-table">
          <caption>Spans of the turn of {fullTime(turn.from)}</caption>
          <thead><tr><th scope="col">What</th><th scope="col">Name</th><th scope="col" class="num">Began after</th><th scope="col" class="num">Took</th></tr></thead>
          <tbody>{spans.map((s, i) => <tr key={i} data-kind={s.kind} data-seq={s.seq} data-ms={to(s) - s.from}><td><Chip kind={"span-" + s.kind}>{names[s.kind]}</Chip></td><td>{shortPath(s.name, 26)}{s.note && <><br /><span class="small muted">{line(s.note, 120)}</span></>}</td><td class="num">{span(s.from - turn.from)}</td><td class="num">{span(to(s) - s.from)}{s.open ? " …" : ""}</td></tr>)}</tbody>
        </table>
      </div>
    </div>
  );
}
