// The list of sessions: what needs a person first, then what is stuck, then what costs.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import * as api from "./api";
import { failure, go, href, looked, reload, seen, sessions, titleOf } from "./state";
import { ago, cut, line, plural, shortPath, usd } from "./text";
import { Age, Button, Chip, Dialog, Empty, Failure, Icon, Loading, now, say } from "./ui";

const stuckAfter = 5 * 60_000;

export function isStuck(s: api.Session, t: number): boolean {
  return s.state === "parked" || s.state === "damaged" || s.state === "unfinished" || (s.state === "running" && t - Date.parse(s.modified) > stuckAfter);
}

/** waitsFor says in words what a session is doing or waiting for. */
export function waitsFor(s: api.Session, t: number): string {
  switch (s.state) {
    case "needs_you": return plural(s.questions ?? 1, "question") + " for you" + (s.waitingSince && t - Date.parse(s.waitingSince) > 45_000 ? ", for " + ago(Date.parse(s.waitingSince), t) : "");
    case "parked": return s.parkedUntil ? `its model cannot be reached; asked again ${Date.parse(s.parkedUntil) > t ? "in " + ago(t - (Date.parse(s.parkedUntil) - t), t).replace("now", "a moment") : "now"}` : "its model cannot be reached";
    case "unfinished": return "a turn is unfinished; it goes on when you send something";
    case "damaged": return s.damage ? "damaged: " + s.damage : "damaged";
    case "running": return t - Date.parse(s.modified) > stuckAfter ? `no event for ${ago(Date.parse(s.modified), t)}` + (s.tasks ? `; ${plural(s.tasks, "command")} running` : "; the model or a tool has not answered") : s.tasks ? plural(s.tasks, "command") + " running" : "at work";
  }
  return s.tasks ? plural(s.tasks, "command") + " in the background" : "";
}

export function StateChip({ s }: { s: api.Session }) {
  const t = now.value;
  if (s.state === "needs_you") return <Chip kind="warn dot">Needs you</Chip>;
  if (s.state === "damaged") return <Chip kind="bad dot">Damaged</Chip>;
  if (s.state === "parked") return <Chip kind="warn dot">Waits for its model</Chip>;
  if (s.state === "unfinished") return <Chip kind="plain dot">Unfinished</Chip>;
  if (s.state === "running") return isStuck(s, t) ? <Chip kind="warn dot">Stuck?</Chip> : <Chip kind="good dot live">Working</Chip>;
  return <Chip kind="plain">Idle</Chip>;
}

const query = signal("");
const order = signal<"attention" | "cost" | "recent">("attention");

function rank(s: api.Session, t: number): number { return s.state === "needs_you" ? 0 : isStuck(s, t) ? 1 : s.state === "running" ? 2 : 3; }

export function sorted(list: api.Session[], by: string, t: number): api.Session[] {
  const recent = (a: api.Session, b: api.Session) => Date.parse(b.modified) - Date.parse(a.modified);
  const cost = (a: api.Session, b: api.Session) => (b.cost?.usd ?? 0) - (a.cost?.usd ?? 0);
  return [...list].sort((a, b) => by === "cost" ? cost(a, b) || recent(a, b) : by === "recent" ? recent(a, b) : rank(a, t) - rank(b, t) || (rank(a, t) < 2 ? Date.parse(a.modified) - Date.parse(b.modified) : 0) || recent(a, b));
}

function Since({ list }: { list: api.Session[] }) {
  if (!looked || now.value - looked < 60_000) return null;
  const fresh = list.filter((s) => Date.parse(s.modified) > looked);
  if (!fresh.length) return <p class="since muted">Nothing has happened since you last looked, <Age t={looked} suffix=" ago" />.</p>;
  const waiting = fresh.filter((s) => s.state === "needs_you").length, running = fresh.filter((s) => s.state === "running").length;
  const done = fresh.filter((s) => s.state === "idle").length;
  const parts = [done && plural(done, "session") + " came to rest", running && plural(running, "session") + " at work", waiting && plural(waiting, "session") + " waiting for you"].filter(Boolean);
  return <p class="since"><b>Since you last looked</b>, <Age t={looked} suffix=" ago" />: {parts.join(", ") || plural(fresh.length, "session") + " changed"}.</p>;
}

function Row({ s }: { s: api.Session }) {
  const t = now.value;
  const last = seen.value[s.id];
  const fresh = last !== undefined ? Math.max(0, s.position - last) : Date.parse(s.modified) > looked && looked ? s.position : 0;
  const waits = waitsFor(s, t);
  return (
    <li>
      <a class="session-row" href={href("s", s.id)}>
        <span class="row-main">
          <span class="row-title" dir="auto">{line(titleOf(s), 110)}</span>
          <span class="row-sub">{waits && <span class={rank(s, t) < 2 ? "warn-text" : ""}>{line(waits, 110)}</span>}{s.folder && <span dir="ltr">{shortPath(s.folder, 40)}</span>}{s.parent && <span><Icon name="fork" size={12} /> fork</span>}</span>
        </span>
        <span class="row-side">
          <StateChip s={s} />
          <span class="row-numbers">{fresh > 0 && <span class="fresh" title="Events since you last looked">{cut(String(fresh), 6)} new</span>}{s.cost?.usd ? <span>{usd(s.cost.usd)}</span> : null}<Age t={Date.parse(s.modified)} /></span>
        </span>
      </a>
    </li>
  );
}

const groups: [string, (r: number) => boolean][] = [["Needs you", (r) => r === 0], ["Stuck", (r) => r === 1], ["At work", (r) => r === 2], ["At rest", (r) => r === 3]];

export function Sessions() {
  const [creating, setCreating] = useState(false);
  const [limit, setLimit] = useState(100);
  const t = now.value;
  const all = sessions.value;
  const words = query.value.trim().toLowerCase();
  const list = all && sorted(words ? all.filter((s) => `${titleOf(s)} ${s.folder ?? ""} ${s.branch ?? ""} ${s.id}`.toLowerCase().includes(words)) : all, order.value, t);
  return (
    <main class="view" tabIndex={-1} id="main">
      <header class="view-head"><h1>Sessions</h1><Button kind="primary" icon="plus" onClick={() => setCreating(true)}>New session</Button></header>
      {failure.value && <Failure error={failure.value} retry={() => void reload()} />}
      {all && <Since list={all} />}
      <div class="tools">
        <input type="search" class="search" placeholder="Find by words, folder or branch" aria-label="Find sessions" value={query.value} onInput={(e) => { query.value = e.currentTarget.value; }} />
        <label class="order">Sort by <select value={order.value} onChange={(e) => { order.value = e.currentTarget.value as typeof order.value; }}><option value="attention">attention</option><option value="cost">cost</option><option value="recent">last change</option></select></label>
      </div>
      {!list ? <Loading what="sessions" /> : !list.length ? (
        words ? <Empty icon="sessions" title="No session matches" /> : <Empty icon="sessions" title="No sessions yet"><p>Start one here, or with <code>abide run</code> in a folder.</p></Empty>
      ) : order.value === "attention" ? groups.map(([name, is]) => {
        const part = list.filter((s) => is(rank(s, t)));
        return part.length > 0 && <section key={name} class="group"><h2 class="group-head">{name} <span class="muted">{part.length}</span></h2><ul class="rows">{part.slice(0, limit).map((s) => <Row key={s.id} s={s} />)}</ul></section>;
      }) : <ul class="rows">{list.slice(0, limit).map((s) => <Row key={s.id} s={s} />)}</ul>}
      {list && list.length > limit && <button type="button" class="more" onClick={() => setLimit(limit + 200)}>Show more</button>}
      {creating && <NewSession onClose={() => setCreating(false)} />}
    </main>
  );
}

function NewSession({ onClose }: { onClose: () => void }) {
  const folders = [...new Set((sessions.value ?? []).map((s) => s.folder).filter(Boolean))].slice(0, 30) as string[];
  const [folder, setFolder] = useState(folders[0] ?? "");
  const [model, setModel] = useState("");
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      const s = await api.createSession({ ...(folder ? { folder } : {}), ...(model ? { model } : {}), ...(text.trim() ? { message: { text } } : {}) });
      onClose();
      void reload();
      go("s", s.id);
    } catch (err) { say(String((err as Error).message), "bad"); }
    setBusy(false);
  };
  return (
    <Dialog title="New session" onClose={onClose}>
      <form onSubmit={submit}>
        <div class="field"><label for="new-text">What should it do?</label><textarea id="new-text" rows={4} value={text} onInput={(e) => setText(e.currentTarget.value)} autofocus /></div>
        <div class="field"><label for="new-folder">Folder</label><input id="new-folder" list="folders" value={folder} onInput={(e) => setFolder(e.currentTarget.value)} placeholder="/home/me/project" dir="ltr" /><datalist id="folders">{folders.map((f) => <option key={f} value={f} />)}</datalist></div>
        <div class="field"><label for="new-model">Model <span class="muted">(the configured one if empty)</span></label><input id="new-model" value={model} onInput={(e) => setModel(e.currentTarget.value)} /></div>
        <div class="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" disabled={busy}>Start</Button></div>
      </form>
    </Dialog>
  );
}
