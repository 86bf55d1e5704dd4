// One stream of events for all tabs of this browser. Browsers open only six connections to a
// host, so one tab, the leader, reads the stream and tells the others. A lock of the browser
// decides who leads; it passes on when the leader's tab is closed.
//
// Nothing is lost or doubled, whatever ends: every stored event has a position, a tab ignores
// what it has, and a stream begins after the lowest position that a tab has.
import { signal } from "@preact/signals";
import * as api from "./api";
import type { Event } from "./event";

export type Mode = "connecting" | "stream" | "poll" | "offline";
/** link says how this tab hears of what happens. */
export const link = signal<Mode>("connecting");

export interface Listener {
  /** position returns the last position that the listener has. */
  position: () => number;
  stored: (seq: number, e: Event) => void;
  piece: (e: Event) => void;
  /** deleted is called once the session is gone; the listener hears nothing after it. */
  deleted: () => void;
  /** replaced is called if the log is another one, and shorter than what the listener has; it
   * hears nothing after it until it follows the session again. */
  replaced: () => void;
  /** missed is called if pieces may have been lost: a stream has ended. */
  missed: () => void;
}

const listeners = new Map<string, Set<Listener>>();
const changed = new Set<(s: api.Session | null, change: string) => void>();
const tab = api.uuid();

/** onSession calls f whenever a session changes; with null if any may have changed. */
export function onSession(f: (s: api.Session | null, change: string) => void): () => void { changed.add(f); return () => changed.delete(f); }

/** follow tells a listener of the events of a session, after the position that it has. */
export function follow(id: string, l: Listener): () => void {
  let set = listeners.get(id);
  if (!set) listeners.set(id, set = new Set());
  set.add(l);
  announce();
  return () => {
    if (!set.delete(l)) return;
    if (!set.size && listeners.get(id) === set) listeners.delete(id);
    announce();
  };
}

/** unfollow takes all listeners of a session out, and returns them. */
function unfollow(id: string): Listener[] {
  const set = listeners.get(id);
  if (!set) return [];
  const all = [...set];
  set.clear();
  listeners.delete(id);
  announce();
  return all;
}

type Wants = Record<string, number>;
type Message =
  | { t: "want"; tab: string; wants: Wants } | { t: "bye"; tab: string } | { t: "who" }
  | { t: "event"; id: string; seq: number; event: Event } | { t: "piece"; id: string; event: Event }
  | { t: "session"; session: api.Session | null; change: string } | { t: "deleted"; id: string } | { t: "replaced"; id: string } | { t: "missed" } | { t: "mode"; mode: Mode };

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("abide");
let leading = false;
const wanted = new Map<string, Wants>(); // of each tab; only the leader keeps it

function myWants(): Wants {
  const w: Wants = {};
  for (const [id, set] of listeners) w[id] = Math.min(...[...set].map((l) => l.position()));
  return w;
}

function announce(): void {
  const m: Message = { t: "want", tab, wants: myWants() };
  if (leading) lead(m); else channel?.postMessage(m);
}

function tell(m: Message): void { hear(m); channel?.postMessage(m); }

/** hear takes what the leader tells all tabs. */
function hear(m: Message): void {
  switch (m.t) {
    case "event": for (const l of listeners.get(m.id) ?? []) if (m.seq > l.position()) l.stored(m.seq, m.event); break;
    case "piece": for (const l of listeners.get(m.id) ?? []) l.piece(m.event); break;
    case "deleted": for (const l of unfollow(m.id)) l.deleted(); break;
    case "replaced": for (const l of unfollow(m.id)) l.replaced(); break;
    case "missed": for (const set of listeners.values()) for (const l of set) l.missed(); break;
    case "session": for (const f of changed) f(m.session, m.change); break;
    case "mode": link.value = m.mode; break;
    case "who": announce(); break;
  }
}

/** lead takes what tabs tell the leader. */
function lead(m: Message): void {
  if (m.t === "want") wanted.set(m.tab, m.wants);
  else if (m.t === "bye") wanted.delete(m.tab);
  else return;
  reader?.want(union());
}

/** union has, for each session that any tab shows, the lowest position that a tab has. */
function union(): Wants {
  const all: Wants = {};
  for (const w of wanted.values()) for (const [id, at] of Object.entries(w)) all[id] = Math.min(all[id] ?? Infinity, at);
  return all;
}

if (channel) channel.onmessage = (e: MessageEvent<Message>) => { if (leading && (e.data.t === "want" || e.data.t === "bye")) lead(e.data); else hear(e.data); };
addEventListener("pagehide", () => { if (!leading) channel?.postMessage({ t: "bye", tab } satisfies Message); });
addEventListener("pageshow", (e) => { if (e.persisted) announce(); });

let reader: Reader | null = null;

/** start makes this tab lead, once no other tab does. */
export function start(): void {
  const begin = () => {
    leading = true;
    wanted.set(tab, myWants());
    reader = new Reader();
    channel?.postMessage({ t: "who" } satisfies Message);
    reader.want(union());
    void reader.run();
  };
  if (!channel || !navigator.locks) { begin(); return; }
  void navigator.locks.request("abide-stream", () => { begin(); return new Promise<never>(() => {}); });
}

const waits = 3; // calls that wait at a time: a browser opens only six connections, and people need some
const silence = 30_000; // the server says something every 15 s
const tick = 5_000;
const slept = 20_000; // a tick that comes later than this has waited for a sleeping machine

class Reader {
  private at: Wants = {}; // what to read next: the last position of each session
  private stopped = new AbortController(); // ends the connection that is open
  private wake: () => void = () => {};
  private pollUntil = 0; // while a stream says nothing, events are polled for
  private held = false; // the last stream said nothing from its beginning on
  private questions = ""; // version of the list of questions that the last poll was told

  constructor() {
    // A browser that slept finds its connection dead before it notices.
    addEventListener("online", () => this.again());
    let hiddenAt = 0;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) hiddenAt = Date.now();
      else if (hiddenAt && Date.now() - hiddenAt > silence) this.again();
    });
    // A machine that slept with the page in view says nothing: its clock has gone on without its timers.
    let ticked = Date.now();
    setInterval(() => {
      const late = Date.now() - ticked - tick;
      ticked = Date.now();
      if (late > slept && !document.hidden) this.again();
    }, tick);
  }

  private again(): void { this.stopped.abort(); this.wake(); }

  want(w: Wants): void {
    let other = Object.keys(w).length !== Object.keys(this.at).length;
    const next: Wants = {};
    for (const [id, at] of Object.entries(w)) {
      const was = this.at[id];
      if (was === undefined || at < was) { other = true; next[id] = at; } else next[id] = was;
    }
    this.at = next;
    if (other) this.again();
  }

  async run(): Promise<void> {
    let failures = 0;
    for (;;) {
      if (!api.signedIn.value) { await this.sleep(500); continue; }
      this.stopped = new AbortController();
      try {
        if (performance.now() < this.pollUntil) await this.poll(); else await this.stream(() => { failures = 0; });
        failures = 0;
      } catch {
        if (!this.stopped.signal.aborted) failures++;
      }
      tell({ t: "missed" });
      if (this.stopped.signal.aborted) continue; // other sessions are wanted, or it is worth trying at once
      if (failures) {
        tell({ t: "mode", mode: "offline" });
        await this.sleep(Math.min(5000, 150 * 2 ** Math.min(failures, 6)) * (0.7 + Math.random() * 0.6));
      }
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((done) => { const t = setTimeout(done, ms); this.wake = () => { clearTimeout(t); done(); }; });
  }

  private async stream(ok: () => void): Promise<void> {
    const ctl = this.stopped;
    let timer = 0;
    const quiet = (ms: number) => { clearTimeout(timer); timer = window.setTimeout(() => { this.pollUntil = performance.now() + 120_000; ctl.abort(); }, ms); };
    quiet(this.held ? 3000 : silence); // a stream says something at once, so one that was held back is given up soon
    this.held = true;
    try {
      const list = Object.entries(this.at).map(([id, at]) => `${id}@${at}`).join(",");
      const r = await api.events(list, ctl.signal);
      if (r.status === 401) { api.signedIn.value = false; throw new Error("not signed in"); }
      if (!r.ok || !r.body) throw new Error("status " + r.status);
      const text = r.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = "";
      for (;;) {
        const { value, done } = await text.read();
        if (done) return;
        quiet(silence);
        this.held = false;
        ok();
        buffer += value;
        let end: number;
        while ((end = buffer.indexOf("\n\n")) >= 0) {
          this.record(buffer.slice(0, end));
          buffer = buffer.slice(end + 2);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private record(text: string): void {
    let kind = "", data = "";
    for (const l of text.split("\n")) {
      if (l.startsWith("event:")) kind = l.slice(6).trim();
      else if (l.startsWith("data:")) data += l.slice(5).replace(/^ /, "");
    }
    if (!kind) return;
    const d = data ? JSON.parse(data) : {};
    switch (kind) {
      case "ready": tell({ t: "mode", mode: "stream" }); tell({ t: "session", session: null, change: "all" }); break;
      case "event":
        this.passed(d.sessionId, d.position);
        tell({ t: "event", id: d.sessionId, seq: d.position, event: d.event });
        break;
      case "delta": tell({ t: "piece", id: d.sessionId, event: d.event }); break;
      case "session": tell({ t: "session", session: d.session, change: d.change }); break;
      case "deleted": case "replaced": this.drop(kind, d.sessionId); break;
    }
  }

  /** passed notes that all tabs are told of the events up to a position. */
  private passed(id: string, position: number): void {
    if (id in this.at) this.at[id] = Math.max(this.at[id], position);
    for (const w of wanted.values()) if (id in w) w[id] = Math.max(w[id], position);
  }

  /** drop ends the following of one session in all tabs; the others are followed as before. */
  private drop(why: "deleted" | "replaced", id: string): void {
    delete this.at[id];
    for (const w of wanted.values()) delete w[id];
    tell({ t: why, id });
  }

  /** dropIf drops a session if an error says that it cannot be followed, and throws the error otherwise. */
  private dropIf(e: unknown, id: string): void {
    const status = e instanceof api.Problem ? e.status : 0;
    if (status === 404 || status === 410) this.drop("deleted", id);
    else if (status === 409) this.drop("replaced", id);
    else throw e;
  }

  /** poll reads what happened since the last position, for networks that hold streams back. It returns when
   * something has happened in one of the sessions, or with the questions that wait for a person. */
  private async poll(): Promise<void> {
    const round = new AbortController();
    const signal = round.signal;
    this.stopped.signal.addEventListener("abort", () => round.abort(), { once: true });
    tell({ t: "mode", mode: "poll" });
    const ids = Object.keys(this.at);
    const read = async (id: string, wait: number) => {
      if (!(id in this.at)) return; // it was dropped meanwhile
      try {
        const page = await api.eventsPage(id, this.at[id], wait, signal);
        for (const e of page.events) tell({ t: "event", id, seq: e.position, event: e.event });
        this.passed(id, page.next);
      } catch (e) {
        if (signal.aborted) throw e;
        this.dropIf(e, id);
      }
    };
    const asked = async (wait: number) => { this.questions = (await api.questions(this.questions, wait, signal)).version; };
    try {
      if (ids.length < waits) await Promise.race([asked(20), ...ids.map((id) => read(id, 20))]);
      else {
        for (let i = 0; i < ids.length; i += waits) await Promise.all(ids.slice(i, i + waits).map((id) => read(id, 0)));
        await this.sleep(2000);
      }
    } finally {
      round.abort();
    }
    tell({ t: "session", session: null, change: "all" });
  }
}
