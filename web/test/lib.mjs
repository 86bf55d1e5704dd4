// What the tests and the pictures share: the real program, its API, and a real browser.
import { spawn, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].concat(process.env.CHROMIUM ?? []).reverse().find((p) => p && existsSync(p));
export const program = process.env.ABIDE ?? join(import.meta.dirname, "../../bin/abide");
const patience = Number(process.env.PATIENCE ?? 90_000); // a guard against hanging, never a measure

/** until waits for something to be true. It asks again when a moment has passed, because nothing tells it. */
export async function until(what, f, ms = patience) {
  const end = Date.now() + ms;
  for (;;) {
    let last;
    try { const v = await f(); if (v) return v; } catch (e) { last = e; }
    if (Date.now() > end) throw new Error(`${what}: it did not happen` + (last ? `: ${last.message}` : ""));
    await new Promise((r) => setTimeout(r, 50));
  }
}

// freePort finds a port below those that the system gives to outgoing connections: while the
// daemon is down, the browser tries to connect to it, and must not be given its port.
async function freePort() {
  for (let port = 20_000 + (process.pid % 10_000); ; port++) {
    if (await new Promise((ok) => { const s = createServer(); s.on("error", () => ok(false)); s.listen(port, "127.0.0.1", () => s.close(() => ok(true))); })) return port;
  }
}

/** A Daemon is the real program with a data folder of its own. */
export class Daemon {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "abide-web-"));
    this.home = join(this.dir, "home");
    this.folder = join(this.dir, "work");
    mkdirSync(this.folder, { recursive: true });
    this.token = "t".repeat(43);
    writeFileSync(join(this.dir, "token"), this.token + "\n", { mode: 0o600 });
    this.env = { PATH: process.env.PATH, HOME: this.dir, ABIDE_HOME: this.home, XDG_CONFIG_HOME: join(this.dir, "config"), LANG: "C.UTF-8" };
  }
  async start() {
    this.port ??= await freePort();
    this.child = spawn(program, ["serve", "--http", `127.0.0.1:${this.port}`, "--token-file", join(this.dir, "token")], { cwd: this.folder, env: this.env, stdio: ["ignore", "ignore", "pipe"] });
    this.stderr = "";
    this.child.stderr.on("data", (b) => { this.stderr += b; });
    const child = this.child;
    this.ended = new Promise((r) => child.on("exit", r));
    await until("the daemon answers: " + this.stderr, async () => {
      if (child.exitCode !== null) throw new Error("it ended: " + this.stderr);
      return (await fetch(`http://127.0.0.1:${this.port}/readyz`)).ok;
    });
    return this;
  }
  get origin() { return `http://abide.localhost:${this.port}`; }
  async kill() { this.child.kill("SIGKILL"); await this.ended; }
  async stop() {
    for (const s of (await this.api("GET", "/sessions?limit=200").catch(() => ({ sessions: [] }))).sessions ?? []) {
      for (const t of (await this.api("GET", `/tasks?session=${s.id}`).catch(() => ({ tasks: [] }))).tasks ?? []) await this.api("POST", `/sessions/${s.id}/tasks/${t.taskId}/stop`, {}).catch(() => {});
    }
    this.child.kill("SIGTERM");
    const t = setTimeout(() => this.child.kill("SIGKILL"), 5000);
    await this.ended;
    clearTimeout(t);
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
  async api(method, path, body, headers = {}) {
    const r = await fetch(`http://127.0.0.1:${this.port}/api/v0${path}`, { method, headers: { Authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers }, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await r.text();
    if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }
  async link() { return (await this.api("POST", "/signin/links", {})).url; }
  session(message, more = {}) { return this.api("POST", "/sessions", { folder: this.folder, ...more, ...(message ? { message: { text: message } } : {}) }); }
  /** state waits until a session is in a state. */
  state(id, ...states) { return until(`session ${id} is ${states}`, async () => { const s = await this.api("GET", "/sessions/" + id); return states.includes(s.state) && s; }); }
  async log(id) {
    const out = [];
    for (let after = 0; ;) { const p = await this.api("GET", `/sessions/${id}/log?after=${after}&limit=500`); out.push(...p.events); if (!p.more) return out; after = p.next; }
  }
  /** scenario writes a file for the scripted model, and returns the name of the model. */
  scenario(name, rules) { const f = join(this.dir, name + ".json"); writeFileSync(f, JSON.stringify({ rules })); return "scripted:" + f; }
}

export async function browser() {
  const { chromium: pw } = await import("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "abide-chromium-"));
  const b = await pw.launchPersistentContext(profile, {
    executablePath: chromium, headless: true, viewport: { width: 1280, height: 860 }, locale: "en-GB", timezoneId: "UTC",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  b.setDefaultTimeout(patience);
  const close = b.close.bind(b);
  b.close = async () => { await close(); rmSync(profile, { recursive: true, force: true, maxRetries: 5 }); };
  return b;
}

/** signIn opens a link of abide open and clicks. */
export async function signIn(page, daemon) {
  await page.goto(await daemon.link());
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}

export function run(cmd, args, opts = {}) { return execFileSync(cmd, args, { encoding: "utf8", ...opts }); }
export { readFileSync };
