// The events of one session that are in memory: a window of the log, which begins at its end
// and moves backwards by pages. However long a session is, memory and page hold one window.
import { signal } from "@preact/signals";
import * as api from "./api";
import type { Event, Stored } from "./event";
import { clearPieces, fold, noPieces, storedPiece, takePiece, type Block, type Range } from "./fold";
import { see } from "./state";
import { follow, onSession } from "./stream";

const page = 60; // events of a page
const firstPage = 24; // events of the first page: the last message is to be read at once
const most = 300; // events of a window
const mostBytes = 3_000_000;
const perFrame = 4_000; // characters of blocks that are drawn above the others in one frame

const asked = new Map<string, Promise<api.LogPage>>();

/** prefetch asks for the end of a session that is going to be opened. */
export function prefetch(id: string): void {
  const end = api.logEnd(id, firstPage);
  end.catch(() => {}); // whoever opens the session is told
  asked.set(id, end);
}

export class Transcript {
  readonly blocks = signal<Block[]>([]);
  readonly ready = signal(false);
  readonly atStart = signal(false);
  readonly atEnd = signal(true);
  readonly newer = signal(0); // stored events after the window
  readonly busy = signal(false);
  readonly failed = signal("");
  readonly gone = signal(false);
  /** last is the newest position that is known, in the window or not. */
  last = 0;

  private events: Stored[] = [];
  private hidden: Range[] = [];
  private pieces = noPieces();
  private unfollow: (() => void) | null = null;
  private frame = 0;
  private growing = 0;
  private all: Block[] = []; // blocks of the window
  private top = ""; // key of the first block that is drawn
  private filling = false;
  private known = 0; // how long the log is, as the list of sessions says
  private ended = false;

  constructor(readonly id: string) {}

  /** open shows the end of the log and follows it. */
  async open(): Promise<void> {
    this.failed.value = "";
    try {
      await this.toEnd();
    } catch (e) {
      this.failed.value = String((e as Error).message);
      return;
    }
    if (this.ended) return;
    // The stream leaves hidden kinds out: what is known of them is that the log has grown.
    const unwatch = onSession((s) => { if (s?.id === this.id && s.position > this.last) void this.fill(s.position); });
    const unfollow = follow(this.id, {
      position: () => this.last,
      stored: (seq, e) => this.stored(seq, e),
      piece: (e) => { if (this.atEnd.value && takePiece(this.pieces, e)) this.draw(); },
      deleted: () => { this.gone.value = true; this.stopFollowing(); },
      replaced: () => { this.stopFollowing(); this.hidden = []; this.last = this.known = 0; void this.open(); },
      missed: () => { clearPieces(this.pieces); this.draw(); },
    });
    this.unfollow = () => { unwatch(); unfollow(); };
  }

  /** hiddenAbove is true while blocks of the window are not drawn yet. */
  get hiddenAbove(): boolean { return this.blocks.value.length < this.all.length; }

  private stopFollowing(): void { this.unfollow?.(); this.unfollow = null; }

  close(): void { this.ended = true; this.stopFollowing(); cancelAnimationFrame(this.frame); cancelAnimationFrame(this.growing); }

  /** toEnd shows the end of the log. */
  async toEnd(): Promise<void> {
    this.busy.value = true;
    try {
      const read = () => api.logEnd(this.id, firstPage);
      const end = await (asked.get(this.id)?.catch(read) ?? read());
      if (this.ended) return;
      this.events = end.events;
      this.note(end.events);
      this.last = Math.max(this.last, end.next);
      this.atStart.value = end.first <= 1;
      this.atEnd.value = true;
      this.newer.value = 0;
      this.drawNow();
      this.ready.value = true;
      if (this.last > end.next) void this.fill(this.last); // the stream has told of more meanwhile
    } finally {
      asked.delete(this.id);
      this.busy.value = false;
    }
  }

  /** read reads the events after a position up to another one, both in the log. */
  private async read(after: number, to: number): Promise<Stored[]> {
    const out: Stored[] = [];
    while (after < to) {
      const p = await api.log(this.id, after, Math.min(500, to - after));
      out.push(...p.events);
      if (!p.events.length || p.next <= after) break;
      after = p.next;
    }
    return out;
  }

  async older(): Promise<void> {
    if (this.growing || this.busy.value || this.atStart.value || !this.events.length) return;
    this.busy.value = true;
    try {
      const to = this.events[0].seq - 1;
      const from = Math.max(0, to - page);
      const events = await this.read(from, to);
      this.note(events);
      this.events = [...events, ...this.events];
      this.atStart.value = from === 0;
      while (this.events.length > most || this.weight() > mostBytes && this.events.length > page * 2) {
        this.events.splice(-page);
        this.atEnd.value = false;
      }
      this.newer.value = this.last - (this.events.at(-1)?.seq ?? 0);
      this.drawNow();
    } catch (e) {
      this.failed.value = String((e as Error).message);
    } finally {
      this.busy.value = false;
    }
  }

  async newerPage(): Promise<void> {
    if (this.busy.value || this.atEnd.value || !this.events.length) return;
    this.busy.value = true;
    try {
      const after = this.events.at(-1)!.seq;
      const to = Math.min(this.last, after + page);
      const events = await this.read(after, to);
      this.note(events);
      this.events = [...this.events, ...events];
      if (to >= this.last) this.atEnd.value = true;
      this.trimFront();
      this.newer.value = this.last - (this.events.at(-1)?.seq ?? 0);
      this.drawNow();
    } finally {
      this.busy.value = false;
    }
  }

  private weight(): number { let n = 0; for (const e of this.events) n += e.size; return n; }

  private trimFront(): void {
    while (this.events.length > most || this.weight() > mostBytes && this.events.length > page * 2) {
      this.events.splice(0, page);
      this.atStart.value = false;
    }
  }

  /** note keeps what later events say about earlier ones. */
  private note(events: Stored[]): void {
    for (const s of events) if (s.event.type === "history.hidden") {
      const { from, to } = s.event.data;
      if (!this.hidden.some((r) => r.from === from && r.to === to)) this.hidden.push({ from, to });
    }
  }

  private stored(seq: number, e: Event): void {
    const gap = seq > this.last + 1;
    const before = this.last;
    this.last = seq;
    if (!this.atEnd.value) { this.newer.value = this.last - (this.events.at(-1)?.seq ?? 0); return; }
    this.events.push({ seq, event: e, size: api.sizeOf(e) });
    storedPiece(this.pieces, e);
    if (gap && before) void this.fill(seq);
    this.draw();
  }

  /** fill reads the hidden events that the stream leaves out, up to a position. */
  private async fill(to: number): Promise<void> {
    this.known = Math.max(this.known, to);
    if (this.filling || !this.atEnd.value) return;
    this.filling = true;
    try {
      await new Promise((r) => setTimeout(r, 120)); // several gaps are one call
      while (!this.ended && this.atEnd.value) {
        const have = new Set(this.events.map((s) => s.seq));
        const end = Math.max(this.known, this.last);
        let from = -1;
        for (let n = this.events[0]?.seq ?? 1; n <= end; n++) if (!have.has(n)) { from = n - 1; break; }
        if (from < 0) break;
        const read = await this.read(from, end);
        const now = new Set(this.events.map((s) => s.seq)); // the stream went on meanwhile
        const missing = read.filter((s) => !now.has(s.seq));
        if (!missing.length) break;
        this.note(missing);
        for (const s of missing) if (s.seq > this.last) storedPiece(this.pieces, s.event);
        this.events = [...this.events, ...missing].sort((a, b) => a.seq - b.seq);
        this.last = Math.max(this.last, missing.at(-1)!.seq);
        this.draw();
      }
    } catch { /* the next gap tries again */ }
    this.filling = false;
  }

  private draw(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.drawNow(); });
  }

  private drawNow(): void {
    if (this.atEnd.value) { this.trimFront(); if (!document.hidden) see(this.id, this.last); }
    this.all = fold(this.events, this.hidden, this.pieces);
    this.show();
  }

  /** show draws the blocks that were drawn before and all after them, and a few more above
   * them in each frame: a page of long answers at once would hold up scrolling. */
  private show(): void {
    let start = this.all.findIndex((b) => b.key === this.top);
    if (start < 0) start = this.all.length;
    for (let room = perFrame; start > 0 && room > 0; start--) room -= weightOf(this.all[start - 1]);
    this.top = this.all[start]?.key ?? "";
    this.blocks.value = start ? this.all.slice(start) : this.all;
    if (start > 0 && !this.growing) this.growing = requestAnimationFrame(() => { this.growing = 0; if (!this.ended) this.show(); });
  }
}

function weightOf(b: Block): number { return 400 + (b.k === "text" || b.k === "user" ? Math.min(b.text.length, 40_000) : 0); }
