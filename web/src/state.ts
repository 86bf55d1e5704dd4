// What all views share: the sessions, the questions, where the person is, and what they saw.
import { computed, effect, signal } from "@preact/signals";
import * as api from "./api";
import { serverNow } from "./clock";
import { onSession } from "./stream";

export const sessions = signal<api.Session[] | null>(null);
export const questions = signal<api.Question[] | null>(null);
export const failure = signal("");
export const version = signal("");

/** answered has the questions that this page has answered, or found answered, and how. */
export const answered = signal<Map<string, string>>(new Map());

export const waiting = computed(() => (questions.value ?? []).filter((q) => !answered.value.has(q.id)));

function store<T>(name: string, empty: T): { get: () => T; set: (v: T) => void } {
  return {
    get: () => { try { return JSON.parse(localStorage.getItem(name) ?? "null") ?? empty; } catch { return empty; } },
    set: (v) => { try { localStorage.setItem(name, JSON.stringify(v)); } catch { /* it is only a convenience */ } },
  };
}

const seenStore = store<Record<string, number>>("abide-seen", {});
/** seen has the position up to which each session was looked at in this browser. */
export const seen = signal<Record<string, number>>(seenStore.get());
export function see(id: string, position: number): void {
  if ((seen.value[id] ?? 0) >= position) return;
  seen.value = { ...seen.value, [id]: position };
  seenStore.set(seen.value);
}

const lookedStore = store<number>("abide-looked", 0);
/** looked is when this browser last looked at the page before this visit. */
export const looked = lookedStore.get();
function looking(): void { if (!document.hidden) lookedStore.set(serverNow()); }
setInterval(looking, 30_000);
addEventListener("pagehide", looking);

export const theme = signal<string>(store<string>("abide-theme", "auto").get());
effect(() => {
  store<string>("abide-theme", "auto").set(theme.value);
  document.documentElement.dataset.theme = theme.value;
});

/** at is the place that the address names: ["sessions"], ["s", id, "log"]. */
export const at = signal<string[]>(place());
function place(): string[] {
  const h = location.hash.replace(/^#\/?/, "");
  return h.startsWith("signin=") || !h ? ["inbox"] : h.split("/").map(decodeURIComponent);
}
addEventListener("hashchange", () => { at.value = place(); });
export function go(...to: string[]): void { location.hash = "#/" + to.map(encodeURIComponent).join("/"); }
export const href = (...to: string[]) => "#/" + to.map(encodeURIComponent).join("/");

let loading = false, again = false;
/** reload asks for the list of sessions again; calls that come meanwhile are one more call. */
export async function reload(): Promise<void> {
  if (loading) { again = true; return; }
  loading = true;
  try {
    sessions.value = await api.sessions();
    failure.value = "";
  } catch (e) {
    if (!(e instanceof api.Problem && e.status === 401)) failure.value = String((e as Error).message);
  }
  loading = false;
  if (again) { again = false; void reload(); }
}

let asking = false, askAgain = false;
export async function reloadQuestions(): Promise<void> {
  if (asking) { askAgain = true; return; }
  asking = true;
  try {
    questions.value = (await api.questions()).questions;
  } catch (e) {
    if (!(e instanceof api.Problem && e.status === 401)) failure.value = String((e as Error).message);
  }
  asking = false;
  if (askAgain) { askAgain = false; void reloadQuestions(); }
}

onSession((s, change) => {
  if (!s) { void reload(); void reloadQuestions(); return; }
  const list = sessions.value;
  if (!list) return;
  if (change === "deleted") { sessions.value = list.filter((x) => x.id !== s.id); void reloadQuestions(); return; }
  const was = list.find((x) => x.id === s.id);
  if ((was?.questions ?? 0) !== (s.questions ?? 0) || s.questions) void reloadQuestions();
  if (!was || was.state !== s.state) void reload(); // what a turn has cost is only in the list
  if (!was) return;
  // The stream leaves out what takes time to find: what was known stays.
  sessions.value = list.map((x) => (x.id === s.id ? { ...x, ...s, cost: s.cost ?? x.cost, branch: s.branch ?? x.branch, repository: s.repository ?? x.repository } : x));
});

export const byId = (id: string) => sessions.value?.find((s) => s.id === id);
export const titleOf = (s: { title?: string; name?: string; summary?: string; id: string }) => s.title || s.name || s.summary || "Session " + s.id.slice(0, 8);
