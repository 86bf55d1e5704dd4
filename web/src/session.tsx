// One session: its transcript and what can be done with it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { serverNow } from "./clock";
import { Diff, StatLine, diffstat, looksLikeDiff } from "./diff";
import { text as asText } from "./event";
import type { Block, ToolBlock } from "./fold";
import { Log } from "./log";
import { Code, Markdown } from "./markdown";
import { memo } from "./memo";
import { QuestionCard } from "./question";
import { StateChip } from "./sessions";
import { at, byId, go, href, looked, reload, seen, titleOf, waiting } from "./state";
import { Command, TaskList } from "./tasks";
import { bytes, clockTime, count, fullTime, line, plain, plural, shortPath, span, usd, visible } from "./text";
import { Servers } from "./pages";
import { Timeline } from "./timeline";
import { Transcript } from "./transcript";
import { Boundary, Button, Clipped, Dialog, Empty, Failure, Fold, Icon, Loading, say, useLoaded } from "./ui";
import { Usage } from "./usage";

const tabs: [string, string][] = [["", "Transcript"], ["commands", "Commands"], ["timeline", "Timeline"], ["usage", "Usage"], ["log", "Log"], ["servers", "Servers"]];

export function SessionView({ id, tab }: { id: string; tab: string }) {
  const listed = byId(id);
  const detail = useLoaded(`${id} ${listed?.state} ${listed?.questions}`, () => api.session(id));
  const kept = useRef<api.SessionDetail | undefined>(undefined);
  if (detail.value) kept.current = detail.value;
  const d = kept.current?.id === id ? kept.current : undefined;
  const s: api.Session | undefined = d && listed ? { ...d, ...listed, branch: d.branch, repository: d.repository } : d ?? listed;
  const [dialog, setDialog] = useState("");
  if (detail.error && !d) return <main class="view" id="main"><Failure error={detail.error} retry={detail.reload} /><p><a href={href("sessions")}>All sessions</a></p></main>;
  return (
    <main class={"view session" + (tab === "" ? " talk" : "")} tabIndex={-1} id="main">
      <header class="session-head">
        <a class="iconbutton" href={href("sessions")} aria-label="All sessions"><Icon name="back" /></a>
        <div class="session-title">
          <h1 dir="auto" title={s ? visible(titleOf(s)) : ""}>{s ? line(titleOf(s), 120) : "Session"}</h1>
          <p class="session-sub">
            {s?.folder && <span dir="ltr"><Icon name="folder" size={13} /> {shortPath(s.folder, 34)}</span>}
            {s?.branch && <span><Icon name="branch" size={13} /> {line(s.branch, 30)}</span>}
            {d?.model && <span class="optional">{line(d.model, 40)}</span>}
            {s?.cost?.usd ? <span>{usd(s.cost.usd)}</span> : null}
          </p>
        </div>
        <div class="session-side">{s && <StateChip s={s} />}<Menu onPick={setDialog} /></div>
      </header>
      <nav class="tabs" aria-label="Parts of the session">
        {tabs.map(([key, name]) => <a key={key} href={key ? href("s", id, key) : href("s", id)} aria-current={tab === key ? "page" : undefined}>{name}{key === "commands" && s?.tasks ? <span class="badge">{s.tasks}</span> : null}</a>)}
      </nav>
      {tab === "" && <Conversation key={id} id={id} s={s} d={d} onChange={detail.reload} />}
      {tab === "commands" && <TaskList session={id} />}
      {tab === "timeline" && <Timeline id={id} position={s?.position ?? 0} />}
      {tab === "usage" && <Usage id={id} position={s?.position ?? 0} />}
      {tab === "log" && <Log id={id} position={s?.position ?? 0} />}
      {tab === "servers" && <Servers id={id} />}
      {dialog === "rename" && <Rename id={id} was={s?.name ?? ""} onClose={() => { setDialog(""); detail.reload(); }} />}
      {dialog === "fork" && <ForkDialog id={id} onClose={() => setDialog("")} />}
      {dialog === "delete" && <DeleteDialog id={id} title={s ? titleOf(s) : id} onClose={() => setDialog("")} />}
    </main>
  );
}

function Menu({ onPick }: { onPick: (what: string) => void }) {
  const [open, set] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (e: Event) => { if (!ref.current?.contains(e.target as Node)) set(false); };
    addEventListener("pointerdown", close);
    return () => removeEventListener("pointerdown", close);
  }, [open]);
  const pick = (what: string) => { set(false); onPick(what); };
  return (
    <div class="menu" ref={ref} onKeyDown={(e) => { if (e.key === "Escape") set(false); }}>
      <button type="button" class="iconbutton" aria-label="More about this session" aria-expanded={open} onClick={() => set(!open)}><Icon name="more" /></button>
      {open && <div class="menu-list"><button type="button" onClick={() => pick("rename")}>Rename</button><button type="button" onClick={() => pick("fork")}>Fork from the end</button><button type="button" class="bad-text" onClick={() => pick("delete")}>Delete…</button></div>}
    </div>
  );
}

function Rename({ id, was, onClose }: { id: string; was: string; onClose: () => void }) {
  const [name, set] = useState(was);
  return <Dialog title="Rename the session" onClose={onClose}><form onSubmit={async (e) => { e.preventDefault(); try { await api.rename(id, name); void reload(); onClose(); } catch (x) { say(String((x as Error).message), "bad"); } }}>
    <div class="field"><label for="name">Name</label><input id="name" value={name} onInput={(e) => set(e.currentTarget.value)} autofocus /></div>
    <div class="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary">Rename</Button></div>
  </form></Dialog>;
}

function ForkDialog({ id, before, onClose }: { id: string; before?: string; onClose: () => void }) {
  const run = async () => { try { const s = await api.fork(id, before); onClose(); void reload(); say("Forked"); go("s", s.id); } catch (x) { say(String((x as Error).message), "bad"); } };
  return <Dialog title="Fork the session" onClose={onClose}><p>A new session begins with {before ? "everything before this message" : "all events so far"}. This one stays as it is. Files are shared: a fork does not copy the folder.</p><div class="row end"><Button onClick={onClose}>Cancel</Button><Button kind="primary" onClick={run}>Fork</Button></div></Dialog>;
}

function DeleteDialog({ id, title, onClose }: { id: string; title: string; onClose: () => void }) {
  const run = async () => { try { await api.remove(id); onClose(); void reload(); go("sessions"); say("Deleted"); } catch (x) { say(String((x as Error).message), "bad"); } };
  return <Dialog title="Delete the session?" onClose={onClose}><p>“{line(title, 80)}” and its log are removed for good. Files in its folder stay.</p><div class="row end"><Button onClick={onClose}>Cancel</Button><Button kind="danger" onClick={run}>Delete</Button></div></Dialog>;
}

function RewindDialog({ id, event, onClose }: { id: string; event: string; onClose: () => void }) {
  const p = useLoaded(event, () => api.previewRewind(id, event));
  const [files, setFiles] = useState(true);
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      const r = await api.rewind(id, event, files && !!p.value?.fileCount);
      onClose();
      say(`Rewound ${plural(r.eventsRemoved, "event")}` + (r.restoredFiles?.length ? `, ${plural(r.restoredFiles.length, "file")} put back` : "") + (r.skippedFiles?.length ? `, ${r.skippedFiles.length} left as they are` : ""));
    } catch (x) { say(String((x as Error).message), "bad"); }
    setBusy(false);
  };
  return (
    <Dialog title="Rewind to before this message?" onClose={onClose}>
      {p.error ? <Failure error={p.error} /> : !p.value ? <Loading what="what would change" /> : (
        <>
          <p>This message and what followed leave the conversation. The log keeps them.</p>
          {p.value.fileCount > 0 ? (
            <>
              <label class="check"><input type="checkbox" checked={files} onChange={(e) => setFiles(e.currentTarget.checked)} /> Put back {plural(p.value.fileCount, "file")}</label>
              <ul class="files">{p.value.files.slice(0, 12).map((f) => <li key={f.path}><span dir="ltr" class="path">{shortPath(f.path)}</span> <StatLine stat={{ files: 1, added: f.linesAdded, removed: f.linesRemoved }} /></li>)}</ul>
            </>
          ) : <p class="muted">No file was changed by edits since then. What commands did is not undone.</p>}
          {p.value.skippedFiles?.length > 0 && <p class="small muted">Not put back: {p.value.skippedFiles.map((f) => `${shortPath(f.path)} (${f.reason})`).join(", ")}</p>}
        </>
      )}
      <div class="row end"><Button onClick={onClose}>Cancel</Button><Button kind="danger" disabled={busy || !p.value} onClick={run}>Rewind</Button></div>
    </Dialog>
  );
}

function Conversation({ id, s, d, onChange }: { id: string; s: api.Session | undefined; d: api.SessionDetail | undefined; onChange: () => void }) {
  const t = useMemo(() => new Transcript(id), [id]);
  const mark = useMemo(() => seen.peek()[id] ?? 0, [id]);
  useEffect(() => { void t.open(); return () => t.close(); }, [t]);
  const scroller = useRef<HTMLDivElement>(null);
  const stick = useRef(true);
  const anchor = useRef<{ key: string; top: number } | null>(null);
  const [act, setAct] = useState<{ what: string; event: string } | null>(null);
  const blocks = t.blocks.value;
  const open = waiting.value.filter((q) => q.sessionId === id);

  // Before blocks are added above, the block at the top of the view is noted, and put back after.
  const note = () => {
    const box = scroller.current;
    if (!box) return;
    const top = box.getBoundingClientRect().top;
    for (const el of box.querySelectorAll<HTMLElement>("[data-key]")) {
      const r = el.getBoundingClientRect();
      if (r.bottom > top + 4) { anchor.current = { key: el.dataset.key!, top: r.top - top }; return; }
    }
  };
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    if (stick.current && t.atEnd.value) { box.scrollTop = box.scrollHeight; return; }
    const a = anchor.current;
    if (!a) return;
    const el = box.querySelector<HTMLElement>(`[data-key="${CSS.escape(a.key)}"]`);
    if (el) box.scrollTop += el.getBoundingClientRect().top - box.getBoundingClientRect().top - a.top;
  }, [blocks, open.length]);
  useEffect(() => {
    const box = scroller.current?.firstElementChild;
    if (!box) return;
    const ro = new ResizeObserver(() => { if (stick.current && t.atEnd.value && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight; });
    ro.observe(box);
    return () => ro.disconnect();
  }, [t.ready.value]);
  // The page in view may be shorter than the view: older ones are loaded until it is full.
  useEffect(() => {
    const box = scroller.current;
    if (box && t.ready.value && !t.atStart.value && box.scrollHeight < box.clientHeight * 2) { void t.older(); }
  }, [blocks]);
  const onScroll = () => {
    const box = scroller.current;
    if (!box) return;
    stick.current = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    note();
    if (box.scrollTop < 900) void t.older();
    if (!t.atEnd.value && box.scrollHeight - box.scrollTop - box.clientHeight < 900) void t.newerPage();
  };
  const toEnd = async () => { stick.current = true; if (!t.atEnd.value) await t.toEnd(); if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight; };

  if (t.gone.value) return <Empty icon="cross" title="This session was deleted" />;
  if (t.failed.value && !t.ready.value) return <Failure error={t.failed.value} retry={() => void t.open()} />;
  const away = !t.atEnd.value || t.newer.value > 0;
  let marked = !mark || mark >= t.last;
  return (
    <div class="conversation">
      <div class="scroller" ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label="Transcript">
        <div class="transcript">
          {!t.ready.value ? <Loading what="the transcript" /> : t.atStart.value && !t.hiddenAbove ? <p class="begin muted small">{s && `Began ${fullTime(Date.parse(s.created))}`}</p> : <p class="begin"><button type="button" class="more" onClick={() => { note(); stick.current = false; void t.older(); }}>{t.busy.value ? "Loading earlier events…" : "Load earlier events"}</button></p>}
          {t.ready.value && !blocks.length && !open.length && <Empty icon="sessions" title="Nothing was said yet"><p>Write a message below to begin.</p></Empty>}
          {blocks.map((b) => {
            const line = !marked && b.seq > mark && serverNow() - looked > 60_000;
            if (line) marked = true;
            return <div key={b.key} data-key={b.key} class="slot">{line && <div class="new-line" role="separator"><span>New since you last looked</span></div>}<BlockView b={b} id={id} onAct={setAct} /></div>;
          })}
          {open.map((q, i) => <Boundary key={q.id + q.digest} what="This question"><QuestionCard q={q} place={String(i)} inSession /></Boundary>)}
          <Working s={s} blocks={blocks} />
        </div>
      </div>
      {(away || !stick.current) && t.ready.value && <button type="button" class="to-end" onClick={toEnd}><Icon name="down" size={16} /> {t.newer.value > 0 ? `${t.newer.value} later events` : "To the end"}</button>}
      <Composer id={id} s={s} d={d} onChange={onChange} onSent={() => void toEnd()} />
      {act?.what === "rewind" && <RewindDialog id={id} event={act.event} onClose={() => { setAct(null); onChange(); }} />}
      {act?.what === "fork" && <ForkDialog id={id} before={act.event} onClose={() => setAct(null)} />}
    </div>
  );
}

function Working({ s, blocks }: { s: api.Session | undefined; blocks: Block[] }) {
  if (s?.state !== "running") return null;
  const last = blocks[blocks.length - 1];
  if (last && (last.k === "text" || last.k === "thought") && last.streaming) return null;
  const doing = last?.k === "tool" && last.state === "running" ? "Running " + last.name : "Working";
  return <p class="working" role="status"><span class="dots" aria-hidden="true"><i /><i /><i /></span>{doing}</p>;
}

const BlockView = memo(function BlockView({ b, id, onAct }: { b: Block; id: string; onAct: (a: { what: string; event: string }) => void }) {
  const cls = `block ${b.k}${b.agent ? " of-agent" : ""}`;
  switch (b.k) {
    case "user":
      return (
        <section class={cls} aria-label={b.source ? "Added by " + b.source : "You"}>
          {b.source ? <p class="small muted">Added by {visible(b.source)}</p> : null}
          <div class="bubble" dir="auto"><Clipped text={b.text} render={(t) => <span class="said">{visible(t)}</span>} />{b.attachments.length > 0 && <Attachments list={b.attachments} />}</div>
          <p class="under"><time dateTime={new Date(b.time).toISOString()} title={fullTime(b.time)}>{clockTime(b.time)}</time>{b.delivery === "steering" && <span>steered the running turn</span>}{b.delivery === "queued" && <span>was queued</span>}
            {!b.agent && b.eventId && <span class="acts"><button type="button" onClick={() => onAct({ what: "rewind", event: b.eventId })}><Icon name="rewind" size={14} /> Rewind</button><button type="button" onClick={() => onAct({ what: "fork", event: b.eventId })}><Icon name="fork" size={14} /> Fork</button></span>}</p>
        </section>
      );
    case "text":
      return <section class={cls + (b.streaming ? " streaming" : "")} aria-label="Answer"><Clipped text={b.text} max={20_000} render={(t) => <Markdown text={t} />} /></section>;
    case "thought":
      return <section class={cls}><Fold tight head={<><Icon name="think" size={15} /><span class="fold-title">{b.streaming ? "Thinking…" : "Thought"}</span><span class="fold-sub" dir="auto">{line(b.text, 90)}</span></>}>{() => <Clipped text={b.text} render={(t) => <Markdown text={t} />} />}</Fold></section>;
    case "tool": return <section class={cls}><ToolView b={b} id={id} /></section>;
    case "note": return <section class={cls + " " + b.level}>{b.detail && b.detail.length > 80 ? <Fold tight head={<span class="fold-title" dir="auto">{line(b.text, 200)}</span>}>{() => <Clipped text={asText(b.detail)} render={(t) => <Markdown text={t} />} />}</Fold> : <p dir="auto">{line(b.text, 400)}{b.detail ? <span class="muted"> {line(b.detail, 160)}</span> : null}</p>}</section>;
    case "todo": return <section class={cls} aria-label="Tasks of the model"><ul>{b.items.map((i) => <li key={i.id} class={i.status}><span class="mark" role="img" aria-label={i.status.replace("_", " ")} /><span dir="auto">{line(i.subject, 200)}</span></li>)}</ul></section>;
    case "question": {
      if (!b.answer) return null; // open ones stand at the end, with their answers
      const r = b.answer.data, d = b.event.data;
      if (b.event.type === "permission.requested") {
        const kind: string = r.result?.kind ?? "";
        const yes = kind.startsWith("approved");
        return <section class={cls}><p><Icon name={yes ? "check" : "cross"} size={15} /> {yes ? "Allowed" : kind === "cancelled" ? "Not answered: stopped" : "Denied"}{kind === "approved-for-session" ? " for this session" : kind === "approved-for-location" ? " in this folder" : ""}{r.result?.feedback ? <span dir="auto">: {line(r.result.feedback, 200)}</span> : null}</p></section>;
      }
      if (b.event.type === "user_input.requested") return <section class={cls + " asked"}><p class="small muted">It asked</p><p dir="auto">{line(d.question, 400)}</p><p class="small muted">Answer</p><p dir="auto">{r.answer ? line(r.answer, 400) : "none"}</p></section>;
      if (b.event.type === "external_tool.requested") return null;
      return <section class={cls}><p dir="auto">{line(d.message ?? d.summary ?? "", 160)} <span class="muted">{r.action ?? (r.approved ? "approved" : "sent back")}</span></p></section>;
    }
    case "end": return <section class={cls}><p>{b.aborted ? "Stopped" : "Done"} · {span(b.ms)}{b.requests ? ` · ${plural(b.requests, "request")} · ${count(b.tokens)} tokens` : ""}{b.cost !== null ? " · " + usd(b.cost) : ""}</p></section>;
  }
}, (a, b) => a.b.key === b.b.key && a.b.v === b.b.v && a.id === b.id);

function Attachments({ list }: { list: any[] }) {
  return <ul class="attachments">{list.map((a, i) => {
    const type: string = a.mimeType ?? a.mediaType ?? "";
    const data: string = a.data ?? "";
    const name = visible(a.displayName ?? a.name ?? a.path ?? "attachment");
    if (/^image\/(png|jpeg|gif|webp)$/.test(type) && /^[A-Za-z0-9+/=]+$/.test(data.slice(0, 100))) return <li key={i}><img alt={name} src={`data:${type};base64,${data}`} loading="lazy" decoding="async" /></li>;
    return <li key={i} class="file"><Icon name="file" size={14} /> {name}</li>;
  })}</ul>;
}

const argument: Record<string, string[]> = { bash: ["command"], read: ["path"], view: ["path"], edit: ["path"], create: ["path"], write: ["path"], grep: ["pattern"], glob: ["pattern"], task: ["description", "prompt"], agent: ["description"], ask_user: ["question"] };
export function callLine(name: string, args: any, input: string): string {
  if (!args || typeof args !== "object") return line(input, 160);
  for (const k of [...(argument[name] ?? []), "command", "path", "file_path", "pattern", "query", "url", "description"]) if (typeof args[k] === "string" && args[k]) return line(args[k], 160);
  const s = JSON.stringify(args);
  return s === "{}" ? "" : line(s, 160);
}

function ToolView({ b, id }: { b: Block & ToolBlock; id: string }) {
  const detail: string = b.result?.detailedContent ?? "";
  const diff = looksLikeDiff(detail) ? detail : "";
  const states = { intended: "waits", asked: "waits for you", running: "running", done: "", failed: "failed" };
  const state = b.task && !b.task.ended ? "in the background" : b.task ? b.task.status : states[b.state];
  const ms = b.begun !== undefined && b.ended !== undefined ? b.ended - b.begun : NaN;
  return (
    <Fold class={"call " + (b.task && !b.task.ended ? "running" : b.state)} open={diff !== "" && diff.length < 6000} head={<>
      <span class="call-mark" aria-hidden="true"><Icon name={b.state === "failed" ? "cross" : b.state === "done" ? "check" : "tool"} size={14} /></span>
      <span class="fold-title mono">{line(b.name || "call", 40)}</span>
      <span class="fold-sub mono" dir="ltr">{callLine(b.name, b.args, b.input)}</span>
      {diff && <StatLine stat={diffstat(diff)} />}
      {state && <span class="call-state">{state}</span>}
      {ms > 1000 && <span class="call-time">{span(ms)}</span>}
    </>}>
      {() => (
        <div class="call-body">
          {typeof b.args?.command === "string" ? <pre class="command" dir="ltr" tabIndex={0}>{visible(b.args.command)}</pre> : !diff && b.args !== undefined && <Clipped text={JSON.stringify(b.args, null, 2)} max={3000} render={(t) => <Code text={visible(t)} />} />}
          {b.input && <Code text={visible(b.input)} />}
          {b.attempt > 1 && <p class="small warn-text">Attempt {b.attempt}: an earlier one was cut off</p>}
          {diff ? <Diff diff={diff} first={60} /> : null}
          {b.error && <div class="result bad"><Clipped text={asText(b.error.message)} max={4000} render={(t) => <pre dir="ltr" tabIndex={0}>{plain(t)}</pre>} />{b.error.code === "interrupted" && <p class="small warn-text">It was cut off: it may have had effects.</p>}</div>}
          {b.result && !diff && <div class="result"><Clipped text={asText(detail || b.result.content)} max={4000} render={(t) => <pre dir="ltr" tabIndex={0}>{plain(t) || "No output"}</pre>} /></div>}
          {Array.isArray(b.result?.binaryResultsForLlm) && <Attachments list={b.result.binaryResultsForLlm} />}
          {b.task && <TaskOfCall id={id} block={b} />}
        </div>
      )}
    </Fold>
  );
}

function TaskOfCall({ id, block }: { id: string; block: ToolBlock }) {
  const tasks = useLoaded(id + block.task?.status, () => api.tasks(id, true));
  const command = typeof block.args?.command === "string" ? block.args.command : "";
  const t = tasks.value?.filter((x) => x.command === command).at(-1);
  return t ? <Command t={t} open /> : tasks.value ? <p class="small muted">Its output is under <a href={href("s", id, "commands")}>Commands</a>.</p> : null;
}

async function toBase64(f: Blob): Promise<string> {
  const url = await new Promise<string>((ok, no) => { const r = new FileReader(); r.onload = () => ok(String(r.result)); r.onerror = () => no(r.error); r.readAsDataURL(f); });
  return url.slice(url.indexOf(",") + 1);
}

const drafts = new Map<string, string>();

function Composer({ id, s, d, onChange, onSent }: { id: string; s: api.Session | undefined; d: api.SessionDetail | undefined; onChange: () => void; onSent: () => void }) {
  const [text, setText] = useState(drafts.get(id) ?? "");
  const [files, setFiles] = useState<api.Attachment[]>([]);
  const [busy, setBusy] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const active = s?.state === "running" || s?.state === "needs_you" || s?.state === "parked";
  const [mode, setMode] = useState("steer");
  useLayoutEffect(() => { const el = box.current; if (el) { el.style.height = "auto"; el.style.height = Math.min(el.scrollHeight, innerHeight * 0.4) + "px"; } }, [text]);
  const type = (v: string) => { setText(v); drafts.set(id, v); };
  const submit = async () => {
    if (busy || !text.trim() && !files.length) return;
    setBusy(true);
    try {
      await api.send(id, text, active ? mode : "queue", files);
      type("");
      setFiles([]);
      onSent();
      onChange();
    } catch (e) { say(String((e as Error).message), "bad"); }
    setBusy(false);
    box.current?.focus();
  };
  const stop = async () => {
    setBusy(true);
    try {
      const r = await api.stop(id);
      say("Stopped" + (r.background ? `; ${plural(r.background, "command")} in the background ${r.background === 1 ? "goes" : "go"} on` : ""));
    } catch (e) { say(String((e as Error).message), "bad"); }
    setBusy(false);
  };
  const attach = async (list: Iterable<File>) => {
    for (const f of list) {
      if (f.size > 15_000_000) { say(`${f.name} has ${bytes(f.size)}: more than 15 MB cannot be sent`, "bad"); continue; }
      const base64 = await toBase64(f);
      setFiles((l) => [...l, { name: f.name || "picture.png", base64 }]);
    }
  };
  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
      {d?.queue && d.queue.length > 0 && <ul class="queue" aria-label="Waiting messages">{d.queue.map((m) => <li key={m.id}><span class="muted small">{m.mode === "steer" ? "steers" : "queued"}</span><span class="clip" dir="auto">{line(m.text, 120)}</span><button type="button" class="iconbutton" aria-label="Take this message back" onClick={async () => { try { await api.unqueue(id, m.id); onChange(); } catch (e) { say(String((e as Error).message), "bad"); } }}><Icon name="cross" size={14} /></button></li>)}</ul>}
      {files.length > 0 && <ul class="queue">{files.map((f, i) => <li key={i}><Icon name="file" size={14} /><span class="clip">{visible(f.name)}</span><button type="button" class="iconbutton" aria-label={"Remove " + f.name} onClick={() => setFiles(files.filter((_, n) => n !== i))}><Icon name="cross" size={14} /></button></li>)}</ul>}
      <div class="composer-box">
        <textarea ref={box} id="message" rows={1} aria-label="Message" placeholder={active ? "Steer the running turn, or queue a message" : "Send a message"} value={text} dir="auto"
          onInput={(e) => type(e.currentTarget.value)}
          onPaste={(e) => { const f = [...(e.clipboardData?.files ?? [])]; if (f.length) { e.preventDefault(); void attach(f); } }}
          onKeyDown={(e) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing && matchMedia("(pointer: fine)").matches) { e.preventDefault(); void submit(); } if (e.key === "Escape" && active && !text) void stop(); }} />
        <div class="composer-row">
          <button type="button" class="iconbutton" aria-label="Attach files" onClick={() => picker.current?.click()}><Icon name="plus" /></button>
          <input ref={picker} type="file" multiple hidden onChange={(e) => { void attach(e.currentTarget.files ?? []); e.currentTarget.value = ""; }} />
          {active && <div class="modes" role="radiogroup" aria-label="When it is delivered">{[["steer", "Steer"], ["queue", "Queue"]].map(([m, name]) => <label key={m} class={mode === m ? "on" : ""}><input type="radio" name="mode" checked={mode === m} onChange={() => setMode(m)} />{name}</label>)}</div>}
          <span class="grow" />
          {active && <Button kind="stop" icon="stop" disabled={busy} onClick={stop}>Stop</Button>}
          <button type="submit" class="button primary round" aria-label={active ? (mode === "steer" ? "Steer" : "Queue") : "Send"} disabled={busy || !text.trim() && !files.length}><Icon name="send" /></button>
        </div>
      </div>
    </form>
  );
}

export function sessionPlace(): { id: string; tab: string } { return { id: at.value[1] ?? "", tab: at.value[2] ?? "" }; }
