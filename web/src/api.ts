// Calls of the HTTP API. This is the only file that knows its paths.
import { signal } from "@preact/signals";
import { setClock } from "./clock";
import type { Event, Stored } from "./event";

export interface Cost { usd: number | null; requests: number; inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number; unpricedRequests?: number }

export interface Session {
  id: string; name?: string; summary?: string; title?: string; state: string; created: string; modified: string; position: number; hash?: string;
  questions?: number; waitingSince?: string; parkedUntil?: string; tasks?: number; folder?: string; repository?: string; branch?: string;
  client?: string; parent?: string; damage?: string; cost?: Cost;
}

export interface SessionDetail extends Session {
  model?: string; mode?: string; active?: boolean; totals?: Record<string, number>;
  queue?: { id: string; text: string; mode: string }[]; openQuestions?: Question[]; request?: string; lastAnswer?: string;
}

export interface Answer { id: string; label: string; scopes?: string[]; grants?: object[] }

export interface Permission {
  kind: string; tool?: string; directory?: string; command?: string; terminal?: boolean; input?: boolean;
  reading?: { join?: string; words: string[]; redirects?: { operator: string; target: string }[] }[];
  writes?: string[]; network?: boolean; outside?: string[]; understood?: boolean; file?: string; leadsTo?: string[]; protected?: string; putBack?: boolean;
  diff?: string; diffstat?: { files: number; added: number; removed: number }; url?: string; server?: string; arguments?: any; reasons?: string[]; details?: any;
}

export interface Question {
  id: string; digest: string; sessionId: string; askedBy?: string; kind: string; since: string; agentPath?: string[]; verb?: string; object?: string;
  session?: Session; request?: string; undoable?: boolean; permission?: Permission;
  input?: { question: string; choices?: string[]; freeform?: boolean };
  plan?: { summary: string; content: string; actions: string[]; recommended?: string };
  form?: { message: string; schema?: any; source?: string; budget?: any };
  external?: { tool: string; arguments?: any };
  answers?: Answer[];
}

export interface Task {
  sessionId: string; taskId: string; command: string; description?: string; cwd?: string; status: string; reason?: string; pid?: number;
  startedAt?: string; endedAt?: string; exitCode?: number; signal?: string; outputBytes?: number; outputOmitted?: number;
}

export interface CostRow { sessionId?: string; day?: string; model?: string; purpose?: string; requests: number; failedRequests?: number; unpricedRequests?: number; inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number; costUsd: number | null }

/** A Problem is an answer that is an error (RFC 9457). */
export class Problem extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) { super(detail); }
}

const base = "/api/v0";
const keyName = "abide-key";

/** signedIn is null until it is known. */
export const signedIn = signal<boolean | null>(null);

export function key(): string { try { return localStorage.getItem(keyName) ?? ""; } catch { return ""; } }
function setKey(k: string): void { try { if (k) localStorage.setItem(keyName, k); else localStorage.removeItem(keyName); } catch { /* a browser without storage asks for a link each time */ } }

export function headers(more: Record<string, string> = {}): Record<string, string> { return { "Abide-Key": key(), ...more }; }

export function uuid(): string {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

async function problem(r: Response): Promise<Problem> {
  let code = "", detail = "";
  try { const p = await r.json(); code = p.code ?? ""; detail = p.detail || p.title || ""; } catch { /* not JSON */ }
  if (r.status === 401 && code !== "link_spent") { signedIn.value = false; }
  return new Problem(r.status, code, detail || `The server answered ${r.status}.`);
}

async function once(method: string, path: string, body: unknown, idempotency: string, signal?: AbortSignal): Promise<Response> {
  const h = headers();
  if (body !== undefined) h["Content-Type"] = "application/json";
  if (idempotency) h["Idempotency-Key"] = idempotency;
  const r = await fetch(base + path, { method, headers: h, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin", cache: "no-store", redirect: "error", signal });
  setClock(r.headers.get("Date"));
  return r;
}

const pause = (ms: number) => new Promise((r) => setTimeout(r, ms));

/** request makes a call. A write that may have been lost is made again with the same key, so that it is done once. */
async function request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const idempotency = method === "GET" ? "" : uuid();
  for (let attempt = 0; ; attempt++) {
    let r: Response;
    try {
      r = await once(method, path, body, idempotency, signal);
    } catch (e) {
      if (signal?.aborted) throw e;
      if (attempt >= 8) throw new Problem(0, "unreachable", method === "GET" ? "abide cannot be reached." : "abide cannot be reached. Whether what you did was stored is not known: look when it is back, before you do it again.");
      await pause(Math.min(4000, 200 * 2 ** attempt));
      continue;
    }
    if (r.status === 503 && attempt < 8) { await pause(Math.min(4000, 300 * 2 ** attempt)); continue; }
    if (!r.ok) throw await problem(r);
    return r;
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> { return (await request("GET", path, undefined, signal)).json(); }
async function write<T>(method: string, path: string, body?: unknown): Promise<T> {
  const r = await request(method, path, body);
  return (r.status === 204 ? undefined : await r.json()) as T;
}

const q = (o: Record<string, string | number | boolean | undefined>) => {
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(o)) if (v !== undefined && v !== "" && v !== false) p.set(k, String(v));
  const s = p.toString();
  return s ? "?" + s : "";
};
const sess = (id: string) => "/sessions/" + encodeURIComponent(id);

export async function signin(token: string): Promise<void> {
  const r = await fetch(base + "/signin", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }), credentials: "same-origin", redirect: "error" });
  if (!r.ok) throw await problem(r);
  setKey((await r.json()).key);
  signedIn.value = true;
}

export async function signout(): Promise<void> {
  try { await write("POST", "/signout"); } finally { setKey(""); signedIn.value = false; }
}

export interface Me { kind: string; version?: string; expires?: string }
/** checkSignIn finds out whether this browser is signed in. One with a key is taken to be, until the server says
 * otherwise: what is to be shown is asked for at the same time. */
export async function checkSignIn(): Promise<Me | null> {
  if (!key()) { signedIn.value = false; return null; }
  signedIn.value = true;
  try {
    const me = await get<Me>("/me");
    signedIn.value = true;
    return me;
  } catch (e) {
    if (e instanceof Problem && e.status === 401) { signedIn.value = false; return null; }
    throw e;
  }
}

export const sessions = async (): Promise<Session[]> => {
  const all: Session[] = [];
  let cursor = "";
  do {
    const page: { sessions: Session[]; nextCursor?: string } = await get("/sessions" + q({ limit: 200, cursor }));
    all.push(...page.sessions);
    cursor = page.nextCursor ?? "";
  } while (cursor && all.length < 2000);
  return [...new Map(all.map((s) => [s.id, s])).values()];
};
export const session = (id: string, signal?: AbortSignal) => get<SessionDetail>(sess(id), signal);
export const createSession = (body: object) => write<Session>("POST", "/sessions", body);
export const rename = (id: string, name: string) => write<SessionDetail>("PATCH", sess(id), { name });
export const remove = (id: string) => write<void>("DELETE", sess(id));
export const fork = (id: string, beforeEvent?: string) => write<Session>("POST", sess(id) + "/fork", beforeEvent ? { beforeEvent } : {});
export interface RewindPreview { available: boolean; fileCount: number; files: { path: string; changeType: string; linesAdded: number; linesRemoved: number }[]; skippedFiles: { path: string; reason: string }[]; eventsRemoved: number }
export const previewRewind = (id: string, event: string) => write<RewindPreview>("POST", sess(id) + "/rewind/preview", { event });
export const rewind = (id: string, event: string, files: boolean) => write<{ outcome: string; eventsRemoved: number; restoredFiles: string[]; skippedFiles: { path: string; reason: string }[] }>("POST", sess(id) + "/rewind", { event, files });
export interface Attachment { name: string; base64: string }
export const send = (id: string, text: string, mode: string, attachments: Attachment[] = []) =>
  write<{ messageId: string }>("POST", sess(id) + "/messages", { text, mode, ...(attachments.length ? { attachments } : {}) });
export const unqueue = (id: string, message: string) => write<void>("DELETE", sess(id) + "/queue/" + encodeURIComponent(message));
export const stop = (id: string) => write<{ turn?: boolean; background?: number; queued?: number }>("POST", sess(id) + "/stop", {});

export interface LogPage { events: Stored[]; first: number; next: number; hash?: string; more: boolean; damage?: string }
/** log reads stored events after a position, hidden kinds too. */
export const log = (id: string, after: number, limit: number, signal?: AbortSignal) => logPage(id, { after: after || undefined, limit }, signal);
/** logEnd reads the last stored events. */
export const logEnd = (id: string, last: number) => logPage(id, { last });

async function logPage(id: string, part: Record<string, number | undefined>, signal?: AbortSignal): Promise<LogPage> {
  const r = await get<{ events: Event[]; first: number; next: number; hash?: string; more: boolean; damage?: string }>(sess(id) + "/log" + q(part), signal);
  return { ...r, events: r.events.map((event, i) => ({ seq: r.first + i, event, size: sizeOf(event) })) };
}
/** sizeOf estimates how much memory an event takes, without making its JSON again. */
export function sizeOf(v: unknown): number {
  if (typeof v === "string") return v.length + 16;
  if (v && typeof v === "object") { let n = 32; for (const x of Object.values(v)) n += sizeOf(x) + 16; return n; }
  return 8;
}
export const verify = (id: string) => get<{ events: number; hash: string; damage: null | { position: number; reason: string } }>(sess(id) + "/verify");
export const context = (id: string) => get<Record<string, number | string>>(sess(id) + "/context");
export interface Server { name: string; status: string; error?: string; source?: string; transport?: string }
export const servers = (id: string) => get<{ servers: Server[] }>(sess(id) + "/servers").then((r) => r.servers ?? []);

export const questions = (known = "", wait = 0, signal?: AbortSignal) => get<{ questions: Question[]; version: string }>("/questions" + q({ known, wait: wait || undefined }), signal);
export const answer = (question: Question, body: object) => write<{ accepted: boolean }>("POST", "/questions/" + encodeURIComponent(question.id) + "/answer" + q({ session: question.sessionId }), { digest: question.digest, answer: body });

export const tasks = (session?: string, all = false) => get<{ tasks: Task[] }>("/tasks" + q({ session, all })).then((r) => r.tasks ?? []);
const taskPath = (t: { sessionId: string; taskId: string }) => sess(t.sessionId) + "/tasks/" + encodeURIComponent(t.taskId);
export interface Output { offset: number; text?: string; base64?: string; next: number; omitted?: number; end: boolean; task: Task }
export const output = (t: { sessionId: string; taskId: string }, at: { offset?: number; tail?: number; wait?: boolean }, signal?: AbortSignal) => get<Output>(taskPath(t) + "/output" + q(at), signal);
export const taskInput = (t: { sessionId: string; taskId: string }, text: string) => write<void>("POST", taskPath(t) + "/input", { text });
export const taskStop = (t: { sessionId: string; taskId: string }) => write<Task>("POST", taskPath(t) + "/stop", {});

export const models = (session?: string) => get<{ models: { id: string; name: string }[] }>("/models" + q({ session }));
export const cost = (by: string, session?: string, since?: string) => get<{ costs: CostRow[]; unread?: number }>("/cost" + q({ by, session, since }));
export interface Book { path: string; user?: boolean; pages: { name: string; path: string; title?: string; facts: number; version?: number; text?: string }[] }
export const memory = (folder?: string) => get<{ books: Book[] }>("/memory" + q({ folder })).then((r) => r.books ?? []);
export const memoryPage = (folder: string | undefined, page: string, user?: boolean) => get<{ name: string; title?: string; text: string; version?: number }>("/memory/page" + q({ folder, page, user }));
export interface RuleRow { kind: string; argument?: string; text: string }
export const rules = () => get<{ always: RuleRow[]; locations: Record<string, RuleRow[]> }>("/rules");
export const revoke = (rule: string, location?: string) => write<void>("POST", "/rules/revoke", location ? { rule, location } : { rule });
export interface Job { jobId: string; kind: string; sessionId: string; attempts: number; status: string; dueAt?: string; error?: string }
export const jobs = () => get<{ jobs: Job[]; stats?: Record<string, number> }>("/jobs");
export const retryJob = (id: string) => write<void>("POST", "/jobs/" + encodeURIComponent(id) + "/retry", {});
export const search = (text: string) => get<{ matches: { session: Session; position: number; type: string; line: string }[]; behind?: number }>("/search" + q({ q: text, limit: 30 }));
export interface Status { version: string; started?: string; time?: string; sessions?: Record<string, number>; questions?: number }
export const status = () => get<Status>("/status");

/** events opens the one stream of this browser. */
export const events = (sessions: string, signal: AbortSignal) =>
  fetch(base + "/events" + q({ sessions }), { headers: headers({ Accept: "text/event-stream" }), credentials: "same-origin", cache: "no-store", redirect: "error", signal });

/** eventsPage waits for stored events of one session, without a stream. */
export const eventsPage = (id: string, after: number, wait: number, signal: AbortSignal) =>
  get<{ events: { position: number; event: Event }[]; next: number; more: boolean }>(sess(id) + "/events" + q({ after, wait: wait || undefined, limit: 500 }), signal);
