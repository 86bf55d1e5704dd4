// A question that waits for a person: what it is about, and what each answer grants.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { Diff, StatLine, diffstat } from "./diff";
import { Markdown } from "./markdown";
import { answered, href, questions, titleOf } from "./state";
import { line, shortPath, usd, visible } from "./text";
import { Age, Button, Chip, Icon, say } from "./ui";

const verbs: Record<string, string> = { run: "Run", write: "Write", read: "Read", fetch: "Fetch", call: "Call", answer: "Answer", approve: "Approve", "fill in": "Fill in", continue: "Continue" };
export const verbOf = (q: api.Question) => verbs[q.verb ?? ""] ?? (q.verb ? visible(q.verb) : "Decide");
export const objectOf = (q: api.Question) =>
  q.object || q.permission?.command || q.permission?.file || q.permission?.url || q.input?.question || q.plan?.summary || q.form?.message || q.external?.tool || "";

/** armTime is how long an answer must have been on the screen before it can be given. */
export const armTime = 500;

const same = (a: DOMRect, b: DOMRect) => Math.abs(a.top - b.top) < 3 && Math.abs(a.left - b.left) < 3 && Math.abs(a.height - b.height) < 3;

/** useArmed is true once the answers have stood at their place for a moment: a tap that was meant for what stood
 * here before does nothing. Answers that are moved, by what is said above them or by scrolling, are armed again. */
function useArmed(key: string, box: RefObject<HTMLElement | null>): { armed: boolean; stands: () => boolean } {
  const [armed, set] = useState("");
  const place = useRef<DOMRect | null>(null);
  useEffect(() => {
    let since = 0;
    const look = () => {
      const is = box.current?.getBoundingClientRect(), was = place.current, t = performance.now();
      place.current = is ?? null;
      if (!is || !was || !since || !same(is, was)) { since = t; set(""); }
      else if (t - since >= armTime) set(key);
    };
    look();
    const timer = setInterval(look, 50);
    return () => clearInterval(timer);
  }, [key]);
  // It may have moved since it was last looked at.
  const stands = () => { const is = box.current?.getBoundingClientRect(); return !!is && !!place.current && same(is, place.current); };
  return { armed: armed === key, stands };
}

/** useLater is true once a key has been the same for a moment: another offer that is chosen moves nothing, and
 * the same button means something else. */
function useLater(key: string): boolean {
  const [later, set] = useState("");
  useEffect(() => {
    const t = setTimeout(() => set(key), armTime);
    return () => clearTimeout(t);
  }, [key]);
  return later === key;
}

function Choice({ armed, busy, kind, label, sub, onClick }: { armed: boolean; busy: boolean; kind: string; label: string; sub?: ComponentChildren; onClick: () => void }) {
  return (
    <button type="button" class={`choice ${kind} ${armed ? "armed" : ""}`} aria-disabled={!armed || busy} onClick={() => { if (armed && !busy) onClick(); }}>
      <span class="choice-label">{label}</span>
      {sub && <span class="choice-sub">{sub}</span>}
    </button>
  );
}

/** settled notes how a question ended, so that it leaves the list on every part of the page. */
function settled(q: api.Question, how: string): void {
  answered.value = new Map(answered.value).set(q.id, how);
}

export function useAnswer(q: api.Question) {
  const [busy, set] = useState(false);
  const give = async (body: object, done: string) => {
    set(true);
    try {
      await api.answer(q, body);
      settled(q, done);
      say(done);
    } catch (e) {
      if (e instanceof api.Problem && (e.code === "not_open" || e.status === 404 || e.status === 410)) { settled(q, "Answered elsewhere"); say("Answered elsewhere: nothing was changed by your answer."); }
      else if (e instanceof api.Problem && e.code === "question_changed") {
        say("The question changed while you read it. Look at it again.", "bad");
        questions.value = (await api.questions()).questions;
      } else say(String((e as Error).message), "bad");
    }
    set(false);
  };
  return { busy, give };
}

/** Long shows a text that an answer allows. Its beginning stands there at first, with a notice
 * that it is cut; the notice shows all of it. What counts is the length of what is shown: a
 * character that nobody sees is shown as a sign of several. */
function Long({ text, max, class: cls = "" }: { text: string; max: number; class?: string }) {
  const [all, setAll] = useState(false);
  const whole = visible(text);
  const cut = !all && whole.length > max;
  return (
    <>
      <pre class={"object " + cls + (all ? " whole" : "")} dir="ltr" tabIndex={0}>{cut ? whole.slice(0, max) + "…" : whole}</pre>
      {cut && <ShowAll onClick={() => setAll(true)}>{(whole.length - max).toLocaleString()} more characters are not shown: show all</ShowAll>}
    </>
  );
}

function ShowAll({ onClick, children }: { onClick: () => void; children: ComponentChildren }) {
  return <button type="button" class="more cut" onClick={onClick}><Icon name="warn" size={15} /> {children}</button>;
}

/** Path shows a path, of a long one the end; then a button shows all of it. */
function Path({ path, max }: { path: string; max?: number }) {
  const [all, setAll] = useState(false);
  const whole = visible(path), short = shortPath(path, max);
  if (all || short === whole) return <span class="path" dir="ltr">{whole}</span>;
  return <span class="path" dir="ltr">{short} <button type="button" class="rest" aria-label="Show the whole path" onClick={() => setAll(true)}>show all</button></span>;
}

function Reading({ p }: { p: api.Permission }) {
  const [all, setAll] = useState(false);
  let cut = false;
  const some = (list: string[], n: number) => { if (all || list.length <= n) return list; cut = true; return list.slice(0, n); };
  const path = (w: string, n: number) => { const whole = visible(w), short = shortPath(w, n); if (all || short === whole) return whole; cut = true; return short; };
  const facts: ComponentChildren[] = [];
  if (p.understood === false) facts.push(<Chip kind="bad">Not understood: anything may happen</Chip>);
  if (p.network) facts.push(<Chip kind="warn">Network</Chip>);
  const outside = new Set(p.outside ?? []), writes = p.writes ?? [];
  const elsewhere = [...outside].filter((w) => !writes.includes(w));
  for (const w of some(writes, 4)) facts.push(outside.has(w) ? <Chip kind="bad">Writes outside the folder: {path(w, 30)}</Chip> : <Chip kind="warn">Writes {path(w, 32)}</Chip>);
  if (!all && writes.length > 4) facts.push(<Chip kind="warn">writes {writes.length - 4} more</Chip>);
  for (const w of some(elsewhere, 3)) facts.push(<Chip kind="bad">Outside the folder: {path(w, 32)}</Chip>);
  if (!all && elsewhere.length > 3) facts.push(<Chip kind="bad">{elsewhere.length - 3} more outside the folder</Chip>);
  if (p.protected) facts.push(<Chip kind="bad">Protected: {visible(p.protected)}</Chip>);
  if (p.terminal) facts.push(<Chip kind="plain">With a terminal</Chip>);
  if (p.input) facts.push(<Chip kind="plain">Takes input later</Chip>);
  if (!facts.length && p.kind === "shell" && p.understood !== false) facts.push(<Chip kind="plain">Redirects into no file, names no address</Chip>);
  return <>{facts.length > 0 && <div class="facts">{facts}{cut && <ShowAll onClick={() => setAll(true)}>Paths are cut: show all</ShowAll>}</div>}</>;
}

function CommandReading({ p }: { p: api.Permission }) {
  const [all, setAll] = useState(false);
  const list = p.reading ?? [];
  const most = 8;
  if (list.length < 2 && !list.some((c) => c.redirects?.length)) return null;
  return (
    <>
    <ol class="reading" aria-label="How the command line was read">
      {(all ? list : list.slice(0, most)).map((c, i) => (
        <li key={i}>
          <span class="join">{c.join ? visible(c.join) : ""}</span>
          <code dir="ltr">{c.words.map((w) => visible(w)).join(" ")}{(c.redirects ?? []).map((r) => <b> {r.operator} {visible(r.target)}</b>)}</code>
        </li>
      ))}
    </ol>
    {!all && list.length > most && <ShowAll onClick={() => setAll(true)}>{list.length - most} more commands of this line are not shown: show all</ShowAll>}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div class="fact"><dt>{name}</dt><dd>{children}</dd></div>;
}

/** QuestionCard shows one question so that it fits a phone, with its answers at the bottom. */
export function QuestionCard({ q, place = "", inSession = false }: { q: api.Question; place?: string; inSession?: boolean }) {
  const head = useRef<HTMLHeadingElement>(null);
  const p = q.permission;
  const s = q.session;
  return (
    <article class={"question" + (inSession ? " inline" : "")} aria-labelledby={"q-" + q.id}>
      <div class="question-body" tabIndex={0} role="region" aria-label="What is asked">
        <h2 id={"q-" + q.id} ref={head} class="ask"><span class="verb">{verbOf(q)}</span>{p?.tool && p.kind !== "shell" ? <span class="tool">{visible(p.tool)}</span> : null}</h2>
        <Object q={q} />
        {p && <Reading p={p} />}
        {p && <CommandReading p={p} />}
        {p?.leadsTo?.length ? <p class="small warn-text">The path leads to {p.leadsTo.map((x, i) => <>{i > 0 && ", "}<Path path={x} /></>)}</p> : null}
        {p?.diff && <div class="diffbox"><div class="diffhead"><Icon name="file" size={14} /><Path path={p.file ?? ""} /><StatLine stat={diffstat(p.diff)} /></div><Diff diff={p.diff} first={14} file={false} /></div>}
        {typeof p?.details?.omitted === "string" && p.details.omitted && <p class="small warn-text">The change is too large to be shown whole: {visible(p.details.omitted)}</p>}
        {q.plan && <div class="planbox"><Markdown text={q.plan.content || q.plan.summary} /></div>}
        <dl class="facts-list">
          {p?.reasons?.length ? <Fact name="Asked because">{p.reasons.map((r) => visible(r)).join("; ")}</Fact> : null}
          {!inSession && q.request && <Fact name="You asked for"><span class="clamp" dir="auto">{line(q.request, 240)}</span></Fact>}
          {!inSession && s && <Fact name="Session"><a href={href("s", q.sessionId)}>{line(titleOf(s), 60)}</a>{q.agentPath?.length ? <span class="muted"> › {q.agentPath.map((x) => line(x, 40)).join(" › ")}</span> : null}</Fact>}
          {(p?.directory || s?.folder) && <Fact name="Where"><Path path={p?.directory || s?.folder || ""} />{s?.branch && <span class="muted"> · <Icon name="branch" size={12} /> {line(s.branch, 30)}</span>}</Fact>}
          <Fact name="Waiting"><Age t={Date.parse(q.since)} />{s?.cost && s.cost.usd !== null && <span class="muted"> · {usd(s.cost.usd)} so far</span>}{q.undoable !== undefined && <span class="muted"> · {q.undoable ? "a rewind undoes it" : "a rewind does not undo it"}</span>}</Fact>
        </dl>
      </div>
      <Answers q={q} place={place} />
    </article>
  );
}

function Object({ q }: { q: api.Question }) {
  const text = objectOf(q);
  const code = q.kind === "permission" || q.kind === "external";
  if (q.kind === "plan") return <p class="object prose" dir="auto">{visible(q.plan?.summary ?? text)}</p>;
  if (q.external) return <Long text={q.external.tool + " " + JSON.stringify(q.external.arguments ?? {}, null, 1)} max={2000} />;
  if (!code) return <div class="object prose" dir="auto"><Markdown text={text} /></div>;
  return (
    <>
      <Long text={text} max={6000} />
      {q.permission?.arguments !== undefined && <Long class="args" text={JSON.stringify(q.permission.arguments, null, 1)} max={3000} />}
    </>
  );
}

const scopeNames: Record<string, string> = { session: "for this session", location: "in this folder", always: "always" };

function Answers({ q, place }: { q: api.Question; place: string }) {
  const box = useRef<HTMLDivElement>(null);
  const { armed, stands } = useArmed(q.id + q.digest + place, box);
  const early = (e: Event) => { if ((e.target as Element).closest(".choice") && !stands()) { e.preventDefault(); e.stopPropagation(); } };
  return <div class="answers" ref={box} onClickCapture={early}><AnswersOf q={q} armed={armed} /></div>;
}

function AnswersOf({ q, armed }: { q: api.Question; armed: boolean }) {
  const { busy, give } = useAnswer(q);
  const [why, setWhy] = useState<string | null>(null);
  if (q.input) return <InputAnswer q={q} armed={armed} busy={busy} give={give} />;
  if (q.form) return <FormAnswer q={q} armed={armed} busy={busy} give={give} />;
  if (q.external) return <><p class="muted small">A program that is connected to the session has to run this. You can end the wait with an error.</p><Choice armed={armed} busy={busy} kind="no" label="Answer with an error" sub="The model is told that nobody ran the tool" onClick={() => give({ error: "A person declined to run this tool." }, "Declined")} /></>;
  if (q.plan) return (
    <>
      {(q.plan.actions?.length ? q.plan.actions : [""]).map((a) => <Choice armed={armed} busy={busy} kind={a === q.plan!.recommended || !a ? "yes" : ""} label={a ? "Carry out: " + visible(a.replace(/_/g, " ")) : "Carry out the plan"} sub="The model goes on and makes changes" onClick={() => give(a ? { approved: true, action: a } : { approved: true }, "Plan approved")} />)}
      <Refuse id={q.id} armed={armed} busy={busy} why={why} setWhy={setWhy} label="Not yet" sub="The model keeps planning" give={(feedback) => give(feedback ? { approved: false, feedback } : { approved: false }, "Plan sent back")} />
    </>
  );
  const offers = (q.answers ?? []).filter((a) => a.id !== "reject");
  const once = offers.find((a) => a.id === "once");
  const wider = offers.filter((a) => a !== once);
  return (
    <>
      {why === null && <Choice armed={armed} busy={busy} kind="yes" label="Allow once" sub={once?.label ? visible(once.label) : "this call only"} onClick={() => give({ decision: "once" }, "Allowed once")} />}
      {why === null && wider.length > 0 && <Wider id={q.id} offers={wider} armed={armed} busy={busy} give={give} />}
      <Refuse id={q.id} armed={armed} busy={busy} why={why} setWhy={setWhy} label="Deny" sub="Nothing is done" give={(feedback) => give(feedback ? { decision: "reject", feedback } : { decision: "reject" }, "Denied")} />
    </>
  );
}

/** Wider offers answers that also cover later calls: what they cover is chosen first, then for how long. */
function Wider({ id, offers, armed, busy, give }: { id: string; offers: api.Answer[]; armed: boolean; busy: boolean; give: (body: object, done: string) => void }) {
  const [open, setOpen] = useState(false);
  const [chosen, choose] = useState(offers[0].id);
  const offer = offers.find((o) => o.id === chosen) ?? offers[0];
  const armedHere = useLater("wider" + open + chosen) && armed;
  if (!open) return <button type="button" class={"choice wide " + (armed ? "armed" : "")} aria-expanded={false} aria-disabled={!armed} onClick={() => armed && setOpen(true)}><span class="choice-label">Allow more…</span><span class="choice-sub" dir="ltr">{offers.map((o) => visible(o.label)).join(" · ")}</span></button>;
  return (
    <fieldset class="wider">
      <legend>Allow also later calls</legend>
      {offers.map((o) => (
        <label key={o.id} class="offer">
          <input type="radio" name={"offer-" + id} checked={o.id === chosen} onChange={() => choose(o.id)} />
          <span dir="ltr">{visible(o.label)}</span>
        </label>
      ))}
      <div class="scopes">
        {(offer.scopes ?? ["session"]).filter((s) => s !== "once").map((s) => (
          <Choice key={s} armed={armedHere} busy={busy} kind={s === "always" ? "danger" : ""} label={"Allow " + (scopeNames[s] ?? s)} onClick={() => give({ decision: s, offer: offer.id }, "Allowed " + (scopeNames[s] ?? s))} />
        ))}
        <Choice armed busy={busy} kind="" label="Back" onClick={() => setOpen(false)} />
      </div>
    </fieldset>
  );
}

function Refuse({ id, armed, busy, why, setWhy, label, sub, give }: { id: string; armed: boolean; busy: boolean; why: string | null; setWhy: (s: string | null) => void; label: string; sub: string; give: (feedback: string) => void }) {
  if (why === null) return (
    <div class="refuse">
      <Choice armed={armed} busy={busy} kind="no" label={label} sub={sub} onClick={() => give("")} />
      <Choice armed={armed} busy={busy} kind="no" label={label + ", and say why"} sub="It reads your words" onClick={() => setWhy("")} />
    </div>
  );
  return (
    <form class="why" onSubmit={(e) => { e.preventDefault(); give(why.trim()); }}>
      <label for={"why-" + id}>What should it do instead?</label>
      <textarea id={"why-" + id} rows={2} value={why} onInput={(e) => setWhy(e.currentTarget.value)} ref={(el) => { if (el && !el.value) el.focus(); }} />
      <div class="row"><Button type="button" onClick={() => setWhy(null)}>Back</Button><Button type="submit" kind="danger" disabled={busy}>{label}</Button></div>
    </form>
  );
}

function InputAnswer({ q, armed, busy, give }: { q: api.Question; armed: boolean; busy: boolean; give: (body: object, done: string) => void }) {
  const [text, set] = useState("");
  const choices = q.input?.choices ?? [];
  return (
    <>
      {choices.map((c) => <Choice key={c} armed={armed} busy={busy} kind="" label={visible(c)} onClick={() => give({ text: c }, "Answered")} />)}
      {(q.input?.freeform !== false || !choices.length) && (
        <form class="why" onSubmit={(e) => { e.preventDefault(); if (armed && text.trim()) give({ text }, "Answered"); }}>
          <label for={"in-" + q.id}>{choices.length ? "Or in your own words" : "Your answer"}</label>
          <textarea id={"in-" + q.id} rows={2} value={text} onInput={(e) => set(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); e.currentTarget.form?.requestSubmit(); } }} />
          <div class="row"><Button type="submit" kind="primary" disabled={busy || !armed || !text.trim()}>Answer</Button></div>
        </form>
      )}
    </>
  );
}

function FormAnswer({ q, armed, busy, give }: { q: api.Question; armed: boolean; busy: boolean; give: (body: object, done: string) => void }) {
  // The schema comes from an MCP server: it may be anything.
  const given = q.form?.schema?.properties;
  const properties: Record<string, any> = {};
  if (given && typeof given === "object") for (const [n, f] of window.Object.entries(given)) properties[n] = f && typeof f === "object" ? f : {};
  const required: string[] = Array.isArray(q.form?.schema?.required) ? q.form.schema.required : [];
  const names = window.Object.keys(properties);
  const words = (v: unknown) => visible(typeof v === "string" ? v : JSON.stringify(v) ?? "");
  const [values, set] = useState<Record<string, any>>(() => window.Object.fromEntries(names.map((n) => [n, properties[n].default ?? (properties[n].type === "boolean" ? false : "")])));
  const content = () => {
    const out: Record<string, any> = {};
    for (const n of names) {
      const v = values[n], t = properties[n].type;
      if (v === "" && !required.includes(n)) continue;
      out[n] = t === "number" || t === "integer" ? Number(v) : v;
    }
    return out;
  };
  const budget = q.form?.budget;
  return (
    <>
      {q.form?.source && <p class="small muted">Asked by the MCP server {visible(q.form.source)}</p>}
      <form class="form" onSubmit={(e) => { e.preventDefault(); if (armed) give(names.length ? { action: "accept", content: content() } : { action: "accept" }, budget ? "The session goes on" : "Sent"); }}>
        {names.map((n) => {
          const f = properties[n];
          const id = `f-${q.id}-${n}`;
          const label = words(f.title ?? n);
          const on = (v: any) => set({ ...values, [n]: v });
          return (
            <div class="field" key={n}>
              {f.type === "boolean" ? <label class="check"><input id={id} type="checkbox" checked={!!values[n]} onChange={(e) => on(e.currentTarget.checked)} /> {label}</label> : <label for={id}>{label}</label>}
              {Array.isArray(f.enum) ? <select id={id} value={values[n]} onChange={(e) => on(e.currentTarget.value)}>{!required.includes(n) && <option value="">–</option>}{f.enum.map((v: string, i: number) => <option key={v} value={v}>{words(f.enumNames?.[i] ?? v)}</option>)}</select>
                : f.type === "boolean" ? null
                : <input id={id} {...{ type: f.format === "password" || f.writeOnly ? "password" : f.type === "number" || f.type === "integer" ? "number" : "text" } as { type: "text" }} required={required.includes(n)} value={values[n]} onInput={(e) => on(e.currentTarget.value)} />}
              {f.description && <p class="small muted">{words(f.description)}</p>}
            </div>
          );
        })}
        <button type="submit" class={"choice yes " + (armed ? "armed" : "")} aria-disabled={!armed || busy}><span class="choice-label">{budget ? "Go on" : "Send"}</span><span class="choice-sub">{budget ? "The limit is raised as the question says" : "Your answers go to who asks"}</span></button>
      </form>
      <Choice armed={armed} busy={busy} kind="no" label={budget ? "Stop here" : "Decline"} sub={budget ? "The turn ends" : "Nothing is sent"} onClick={() => give({ action: "decline" }, "Declined")} />
    </>
  );
}
