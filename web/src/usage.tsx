// How full the context was and what it cost, request by request.
import { useState } from "preact/hooks";
import * as api from "./api";
import { time, type Stored } from "./event";
import { useHistory } from "./history";
import { clockTime, count, shortPath, usd } from "./text";
import { Empty, Failure, Loading, useLoaded } from "./ui";

export interface Request { seq: number; time: number; model: string; purpose: string; context: number; output: number; cached: number; cost: number | null; sum: number }

export function requests(events: Stored[]): Request[] {
  let sum = 0;
  return events.filter((s) => s.event.type === "assistant.usage" || s.event.type === "ledger.request").map((s) => {
    const d = s.event.data;
    sum += d.costUsd ?? 0;
    return { seq: s.seq, time: time(s.event), model: d.model ?? "", purpose: s.event.type === "assistant.usage" ? "turn" : d.purpose ?? "", context: (d.inputTokens ?? 0) + (d.cacheReadTokens ?? 0) + (d.cacheWriteTokens ?? 0), output: d.outputTokens ?? 0, cached: d.cacheReadTokens ?? 0, cost: d.costUsd ?? null, sum };
  });
}

export function Bars({ values, label, top, format, mark }: { values: number[]; label: string; top?: number; format: (n: number) => string; mark?: { at: number; name: string } }) {
  const max = Math.max(top ?? 0, ...values, 1e-9);
  const shown = values.slice(-200);
  const w = 720, h = 150, gap = shown.length > 100 ? 0.5 : 2;
  const bw = w / Math.max(shown.length, 24);
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${w} ${h}`} role="img" aria-label={label + ". The table below has the same numbers."} preserveAspectRatio="none">
        <line x1="0" x2={w} y1={h} y2={h} class="base" />
        {mark && mark.at <= max && <line x1="0" x2={w} y1={h - (mark.at / max) * (h - 6)} y2={h - (mark.at / max) * (h - 6)} class="mark" />}
        {shown.map((v, i) => <rect key={i} x={i * bw + gap / 2} width={Math.max(0.5, Math.min(bw - gap, 24))} y={h - Math.max(1, (v / max) * (h - 6))} height={Math.max(1, (v / max) * (h - 6))} rx={Math.min(2, bw / 4)} />)}
      </svg>
      <figcaption><span>{label}</span><span>highest {format(max)}{mark && mark.at <= max ? ` · line: ${mark.name}` : ""}</span></figcaption>
    </figure>
  );
}

export function Usage({ id, position }: { id: string; position: number }) {
  const [n, setN] = useState(2000);
  const h = useHistory(id, position, n);
  const c = useLoaded(id + position, () => api.context(id));
  if (h.error) return <Failure error={h.error} />;
  if (!h.events) return <Loading what="usage" />;
  const list = requests(h.events);
  if (!list.length) return <Empty icon="cost" title="No request was made yet" />;
  const ctx = c.value;
  const window = Number(ctx?.window ?? 0);
  const priced = list.some((r) => r.cost !== null);
  return (
    <div class="panel">
      {ctx && window > 0 && (
        <section class="meter-box">
          <p class="lead">{count(Number(ctx.currentTokens ?? 0))} of {count(window)} tokens in the context <span class="muted">{ctx.source === "estimate" ? "(estimated)" : ""}</span></p>
          <div class="meter" role="meter" aria-valuemin={0} aria-valuemax={window} aria-valuenow={Number(ctx.currentTokens ?? 0)} aria-label="Context in use"><span style={{ width: `${Math.min(100, (Number(ctx.currentTokens ?? 0) / window) * 100)}%` }} /></div>
        </section>
      )}
      {!h.whole && <p><button type="button" class="more" onClick={() => setN(n * 5)}>Only the last {n} events are counted. Load more</button></p>}
      <Bars values={list.map((r) => r.context)} label="Tokens of each request" format={count} mark={window ? { at: window, name: "the model's window" } : undefined} />
      {priced ? <Bars values={list.map((r) => r.sum)} label="Cost so far" format={(x) => usd(x)} /> : <p class="muted small">The price of this model is not known.</p>}
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of requests">
        <table class="data" id="usage-table">
          <caption>Requests to models</caption>
          <thead><tr><th scope="col">Time</th><th scope="col">Model</th><th scope="col">For</th><th scope="col" class="num">In</th><th scope="col" class="num">Cached</th><th scope="col" class="num">Out</th><th scope="col" class="num">Cost</th></tr></thead>
          <tbody>{[...list].reverse().slice(0, 500).map((r) => <tr key={r.seq} data-seq={r.seq} data-context={r.context} data-output={r.output}><td>{clockTime(r.time)}</td><td>{shortPath(r.model, 26)}</td><td>{r.purpose}</td><td class="num">{r.context.toLocaleString()}</td><td class="num">{r.cached.toLocaleString()}</td><td class="num">{r.output.toLocaleString()}</td><td class="num">{r.cost === null ? "–" : usd(r.cost)}</td></tr>)}</tbody>
        </table>
      </div>
    </div>
  );
}
