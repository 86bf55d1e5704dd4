// The console in a real browser, against the real program.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Daemon, browser, signIn, until } from "./lib.mjs";
import "./long.mjs";
import "./network.mjs";

let d, b, page, other, tried;
const problems = [];

before(async () => {
  d = await new Daemon().start();
  b = await browser();
  page = await b.newPage();
  watch(page);
});
after(async () => { await b?.close(); await d?.stop(); });

// Whatever a test does, the page reports no error, and asks no other server for anything.
function watch(p) {
  p.on("pageerror", (e) => problems.push("error in the page: " + e.message));
  p.on("console", (m) => { if (/Content Security Policy|TrustedHTML/.test(m.text())) problems.push(m.text()); });
  p.on("request", (r) => { const u = new URL(r.url()); if (u.protocol.startsWith("http") && u.origin !== d.origin) problems.push("a request to " + r.url()); });
}
const calm = () => assert.deepEqual(problems.splice(0), []);
const open = async (...place) => { await page.goto(d.origin + "/#/" + place.join("/")); };
const armed = (name) => page.locator(".choice.armed", { hasText: name }).first();
const gone = (l) => l.waitFor({ state: "detached" });

/** take gives an answer. One that has just moved is armed again, and a click on it does not count: then a person
 * clicks once more. */
const take = async (name) => {
  for (let taken = false; !taken;) {
    const button = await armed(name).elementHandle();
    await button.click();
    taken = await button.waitForElementState("hidden", { timeout: 3000 }).then(() => true, () => false);
  }
};

test("signing in: a link works once, and only by a click", async () => {
  const link = await d.link();
  await page.goto(link);
  const button = page.getByRole("button", { name: "Sign in" });
  await button.waitFor();
  assert.equal(new URL(page.url()).hash, "", "the token is still in the address");
  await page.reload(); // looking at the link has not spent it, and the token is gone with the page
  await page.getByText("abide open").waitFor();
  await page.goto(link);
  await button.click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  assert.equal((await b.cookies()).filter((c) => c.httpOnly && c.sameSite === "Strict").length, 1);
  await page.goto("about:blank");
  await page.goto(link);
  await button.click();
  await page.getByText("This link was used or is too old").waitFor();
  await page.reload();
  await page.getByText("Nothing waits for you").waitFor();
  calm();
});

test("sending, streaming, stopping", async () => {
  const model = d.scenario("slow", [{ when: { user: "Count" }, reply: { deltas: Array.from({ length: 400 }, (_, i) => `number ${i} `), deltaDelay: "150ms" } }, { reply: { text: "A **short** answer." } }]);
  const s = await d.session("", { model });
  await open("s", s.id);
  await page.getByLabel("Message").fill("Say something");
  await page.keyboard.press("Enter");
  await page.locator(".block.text strong", { hasText: "short" }).waitFor();
  await page.getByLabel("Message").fill("Count");
  await page.keyboard.press("Enter");
  await page.locator(".block.text.streaming", { hasText: "number 1" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".block.note", { hasText: "Stopped" }).waitFor();
  await d.state(s.id, "idle");
  await gone(page.locator(".streaming"));
  assert.equal((await d.log(s.id)).filter((e) => e.type === "abort").length, 1);
  calm();
});

test("the inbox: buttons arm without moving, and a yes does what it says", async () => {
  await open("inbox");
  // The first click comes as early as a click can come.
  await page.evaluate(() => {
    window.early = [];
    new MutationObserver(() => { const c = document.querySelector(".choice.yes"); if (c && !window.early.length) { const r = c.getBoundingClientRect(); window.early.push([r.x, r.y, r.width, r.height]); c.click(); } }).observe(document, { subtree: true, childList: true });
  });
  const s = await d.session("Run `touch made.txt`");
  const yes = armed("Allow once");
  await yes.waitFor();
  assert.equal(await page.locator(".ask .verb").innerText(), "Run");
  assert.match(await page.locator(".object").innerText(), /touch made\.txt/);
  assert.match(await page.locator(".facts-list").innerText(), /no rule or grant allows it/);
  assert.match(await page.locator(".facts").innerText(), /Redirects into no file/); // it writes one, which the line does not tell
  const box = await yes.boundingBox();
  assert.deepEqual([box.x, box.y, box.width, box.height], (await page.evaluate(() => window.early))[0], "the button moved while it armed");
  assert.equal((await d.api("GET", "/sessions/" + s.id)).state, "needs_you", "a click before the button was armed counted");
  assert.equal(existsSync(join(d.folder, "made.txt")), false);
  await yes.click();
  await page.getByText("Nothing waits for you").waitFor();
  await d.state(s.id, "idle");
  assert.equal(existsSync(join(d.folder, "made.txt")), true);
  const done = (await d.log(s.id)).find((e) => e.type === "permission.completed");
  assert.equal(done.data.result.kind, "approved");
  assert.equal(done.data.grants, undefined, "allowing once granted more");
  calm();
});

test("the inbox: an answer that came from elsewhere is not given twice", async () => {
  const s = await d.session("Run `touch other.txt`");
  await open("inbox");
  await armed("Allow once").waitFor();
  await page.route("**/answer?*", async (route) => {
    const [q] = (await d.api("GET", "/questions?session=" + s.id)).questions;
    await d.api("POST", `/questions/${q.id}/answer`, { digest: q.digest, answer: { decision: "reject", feedback: "use another name" } });
    await route.continue();
  });
  await take("Allow once");
  await page.getByText("Answered elsewhere").first().waitFor();
  await page.unroute("**/answer?*");
  await d.state(s.id, "idle");
  assert.equal(existsSync(join(d.folder, "other.txt")), false);
  calm();
});

test("the inbox: wider answers grant exactly what they show", async () => {
  const s = await d.session("Run `touch wide.txt`");
  await open("inbox");
  await armed("Allow more").click();
  const offer = page.locator(".offer").first();
  await offer.waitFor();
  const label = await offer.innerText();
  const [q] = (await d.api("GET", "/questions?session=" + s.id)).questions;
  const said = q.answers.find((a) => a.label === label);
  assert.ok(said, `the label ${label} is not one of the answers`);
  await take("Allow for this session");
  await d.state(s.id, "idle");
  const done = (await d.log(s.id)).find((e) => e.type === "permission.completed");
  assert.equal(done.data.result.kind, "approved-for-session");
  assert.deepEqual(done.data.grants, said.grants);
  calm();
});

test("in a session: answers that were moved are armed again", async () => {
  const s = await d.session("Run `touch moved.txt`");
  await open("s", s.id);
  await armed("Allow once").waitFor();
  // They move, and the click comes before anything else can happen. Where something above grows, the page may
  // scroll them back at once; a transform moves them for good.
  await page.evaluate(() => {
    const yes = document.querySelector(".choice.yes");
    window.classes = [];
    new MutationObserver(() => window.classes.push(yes.className)).observe(yes, { attributeFilter: ["class"] });
    yes.closest(".answers").style.transform = "translateY(-90px)";
    yes.click();
  });
  await until("the answers are armed again", () => page.evaluate(() => window.classes.some((c) => !c.includes("armed")) && window.classes.at(-1).includes("armed")));
  assert.equal((await d.api("GET", "/sessions/" + s.id)).state, "needs_you", "a click on answers that have just moved counted");
  await take("Allow once");
  await d.state(s.id, "idle");
  assert.equal(existsSync(join(d.folder, "moved.txt")), true);
  calm();
});

test("a question of the model is answered in its session", async () => {
  const s = await d.session("Ask me: which colour?");
  await open("s", s.id);
  await page.getByLabel("Your answer").fill("green");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await d.state(s.id, "idle");
  await page.locator(".block.text", { hasText: "green" }).waitFor();
  calm();
});

test("a command in the background is watched and stopped", async () => {
  const s = await d.session("Run `printf '\\033[31mred\\033[0m <b>bold</b>\\n'; sleep 600` in the background", { approve: "all" });
  await until("a command runs", async () => (await d.api("GET", "/tasks?session=" + s.id)).tasks.length);
  await open("s", s.id, "commands");
  const tail = page.locator(".tail", { hasText: "red <b>bold</b>" });
  await tail.waitFor();
  assert.equal(await page.locator(".tail b").count(), 0);
  await page.locator(".inputline").getByRole("button", { name: "Stop" }).click();
  await page.locator(".command-box .chip", { hasText: /Exit|Ended|killed|failed/ }).waitFor();
  await until("no command runs", async () => !(await d.api("GET", "/tasks?session=" + s.id)).tasks.length);
  calm();
});

test("a command that reads nothing can be stopped while a line for it waits", async () => {
  const model = d.scenario("deaf", [{ when: { step: 1 }, reply: { calls: [{ tool: "bash", arguments: { command: "echo up; exec sleep 600", description: "Wait", shellId: "deaf", stdin: true, mode: "async" } }] } }, { reply: { text: "It runs." } }]);
  const s = await d.session("Go", { model, approve: "all" });
  await until("a command runs", async () => (await d.api("GET", "/tasks?session=" + s.id)).tasks.length);
  await open("s", s.id, "commands");
  const input = page.getByLabel("Input to the command");
  await input.fill("x".repeat(200_000)); // more than fits into a pipe
  const send = page.getByRole("button", { name: "Send line" });
  await send.click();
  await until("the line waits", () => send.isDisabled());
  await page.locator(".inputline").getByRole("button", { name: "Stop" }).click();
  await page.locator(".command-box .chip", { hasText: /Exit|Ended|killed|failed/ }).waitFor();
  await until("no command runs", async () => !(await d.api("GET", "/tasks?session=" + s.id)).tasks.length);
  calm();
});

test("the servers of a session, and what is wrong with them", async () => {
  const server = `const lines = require("node:readline").createInterface({ input: process.stdin });
    lines.on("line", (l) => { const m = JSON.parse(l); if (m.id === undefined) return;
      const result = m.method === "initialize" ? { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "w", version: "1" } } : { tools: [] };
      console.log(JSON.stringify({ jsonrpc: "2.0", id: m.id, result })); });`;
  writeFileSync(join(d.home, "mcp.json"), JSON.stringify({ mcpServers: { works: { command: process.execPath, args: ["-e", server] }, off: { command: "true", disabled: true }, dies: { command: "no-such-<b>program</b>\u001b[31m\u202e" } } }), { mode: 0o600 });
  const s = await d.session("Reply with exactly: HELLO");
  await d.state(s.id, "idle");
  await open("s", s.id);
  await page.getByRole("link", { name: "Servers" }).click();
  const row = (name) => page.locator(".rows .rule", { has: page.locator("b", { hasText: name }) });
  await row("works").locator(".chip.good", { hasText: "connected" }).waitFor();
  await row("off").locator(".chip", { hasText: "disabled" }).waitFor();
  await row("dies").locator(".chip.bad", { hasText: "failed" }).waitFor();
  assert.match(await row("dies").innerText(), /no-such-<b>program<\/b>/);
  assert.doesNotMatch(await row("dies").innerText(), /[\u001b\u202e]/);
  const { servers } = await d.api("GET", `/sessions/${s.id}/servers`);
  assert.equal(await page.locator(".rows .rule").count(), servers.length);
  writeFileSync(join(d.home, "mcp.json"), "{}", { mode: 0o600 });
  const none = await d.session("Reply with exactly: HELLO");
  await d.state(none.id, "idle");
  await open("s", none.id, "servers");
  await page.getByText("This session has no MCP servers").waitFor();
  calm();
});

test("rewinding takes a message back", async () => {
  const s = await d.session("Reply with exactly: first");
  await d.state(s.id, "idle");
  await d.api("POST", `/sessions/${s.id}/messages`, { text: "Reply with exactly: second" });
  await until("two answers", async () => (await d.log(s.id)).filter((e) => e.type === "session.idle").length === 2);
  await open("s", s.id);
  const second = page.locator(".block.text", { hasText: /^second$/ });
  await second.waitFor();
  await page.locator(".block.user", { hasText: "second" }).getByRole("button", { name: "Rewind" }).click();
  const button = page.getByRole("dialog").getByRole("button", { name: "Rewind" });
  await button.click();
  await gone(second);
  await page.locator(".block.text", { hasText: /^first$/ }).waitFor();
  await until("the log says so", async () => (await d.log(s.id)).some((e) => e.type === "history.hidden"));
  calm();
});

test("the daemon is killed and started again: nothing is lost or doubled", async () => {
  const model = d.scenario("long", [{ when: { user: "Go on" }, reply: { deltas: Array.from({ length: 12 }, (_, i) => `part ${i} `), deltaDelay: "120ms" } }, { reply: { text: "Answer to {{user}}" } }]);
  const s = await d.session("one", { model });
  await d.state(s.id, "idle");
  await open("s", s.id);
  await page.locator(".block.text", { hasText: "Answer to one" }).waitFor();
  await d.api("POST", `/sessions/${s.id}/messages`, { text: "Go on" });
  await page.locator(".block.text", { hasText: "part 1" }).waitFor(); // usually in the middle of the answer
  await d.kill();
  await page.getByText("abide cannot be reached").waitFor();
  await d.start();
  await d.state(s.id, "idle");
  await d.api("POST", `/sessions/${s.id}/messages`, { text: "two" });
  await page.locator(".block.text", { hasText: "Answer to two" }).waitFor();
  await gone(page.locator(".offline"));
  const log = await d.log(s.id);
  const want = log.filter((e) => e.type === "user.message" || (e.type === "assistant.message" && e.data.content)).map((e) => e.data.content.trim());
  await until("the page shows what the log has", async () => JSON.stringify(await page.locator(".block.user .said, .block.text .md").evaluateAll((l) => l.map((e) => e.textContent.trim()))) === JSON.stringify(want));
  assert.equal(await page.locator(".streaming").count(), 0);
  // The timeline of the turn that was cut off shows what the log says of it.
  await open("s", s.id, "timeline");
  const turn = page.getByRole("combobox", { name: "Turn" });
  await turn.selectOption({ index: 1 });
  await page.locator("#timeline-table tbody tr").first().waitFor();
  const spans = await page.locator("#timeline-table tbody tr").evaluateAll((l) => l.map((r) => [r.dataset.kind, Number(r.dataset.seq), Number(r.dataset.ms)]));
  const over = log.map((e, i) => ({ ...e, seq: i + 1 })).filter((e) => e.type === "turn.taken_over");
  assert.equal(over.length, 1, "the daemon was killed in the middle of a turn");
  const away = Date.parse(over[0].timestamp) - Date.parse(over[0].data.lastTime);
  assert.deepEqual(spans.filter((x) => x[0] === "takeover" || x[0] === "gap"), [["gap", over[0].seq, away], ["takeover", over[0].seq, 0]]);
  assert.deepEqual(spans.filter((x) => x[0] === "model").map((x) => x[1]), [log.findLastIndex((e, i) => e.type === "assistant.turn_start" && i < over[0].seq) + 1, over[0].seq]);
  calm();
});

test("tabs share one stream, and the next one takes over", async () => {
  const streams = [];
  b.on("request", (r) => { if (/\/api\/v0\/events/.test(r.url())) streams.push(r.frame().page()); });
  const s = await d.session("Reply with exactly: shared");
  await d.state(s.id, "idle");
  other = await b.newPage();
  watch(other);
  await other.goto(d.origin + "/#/s/" + s.id);
  await other.locator(".block.text", { hasText: "shared" }).waitFor();
  await open("s", s.id);
  await page.locator(".block.text", { hasText: "shared" }).waitFor();
  await d.api("POST", `/sessions/${s.id}/messages`, { text: "Reply with exactly: to both" });
  for (const p of [page, other]) await p.locator(".block.text", { hasText: "to both" }).waitFor();
  assert.equal(streams.filter((p) => p === other).length, 0, "the second tab opened a stream");
  await page.close();
  await d.api("POST", `/sessions/${s.id}/messages`, { text: "Reply with exactly: to the one that is left" });
  await other.locator(".block.text", { hasText: "to the one that is left" }).waitFor();
  assert.equal(await other.locator(".block.text", { hasText: "to both" }).count(), 1);
  page = other;
  calm();
});

test("hostile content is inert", async () => {
  const evil = [
    "<script>window.pwned = 1</script><img src=x onerror=\"window.pwned = 1\"><svg onload=\"window.pwned = 1\">",
    "[click](javascript:window.pwned=1) [data](data:text/html,<script>1</script>) [vb]( JaVaScRiPt:1)",
    "![picture](http://evil.example/x.png) <iframe src=\"http://evil.example\"></iframe> <style>body{display:none}</style>",
    "\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u202Egnp.exe \u200bzero",
    "| a |\n|---|\n| <b onmouseover=alert(1)>x</b> |",
    "x".repeat(300_000),
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
  ].join("\n\n");
  const model = d.scenario("evil", [{ reply: { text: evil.replaceAll("{{", "") } }]);
  const s = await d.session("<img src=x onerror=\"window.pwned = 1\"> hello", { model, name: "<script>window.pwned = 1</script>\u202Ename" });
  await d.state(s.id, "idle");
  await open("s", s.id);
  await page.locator(".block.text").last().waitFor();
  await page.locator(".block.end").waitFor();
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator(".transcript script, .transcript iframe, .transcript style, .transcript img, .transcript svg:not(.icon)").count(), 0);
  const hrefs = await page.locator(".block.text a").evaluateAll((l) => l.map((a) => a.getAttribute("href")));
  for (const h of hrefs) assert.match(h, /^(https?:\/\/|mailto:)/i);
  const text = await page.locator(".transcript").innerText();
  assert.match(text, /<script>window\.pwned = 1<\/script>/);
  assert.doesNotMatch(text, /[\u0000-\u0008\u001b\u202a-\u202e\u2066-\u2069\u200b]/);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "a long line makes the page wider than the screen");
  await open("sessions");
  await page.getByText("<script>window.pwned = 1</script>").first().waitFor();
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  calm();
});

test("a hostile server on another port of the same host reads and answers nothing", async () => {
  const s = await d.session("Run `touch stolen.txt`");
  await d.state(s.id, "needs_you");
  const [q] = (await d.api("GET", "/questions?session=" + s.id)).questions;
  const evil = createServer((_, r) => { r.setHeader("Content-Type", "text/html"); r.end("<!doctype html><title>evil</title><body>hello"); });
  await new Promise((ok) => evil.listen(0, "127.0.0.1", ok));
  const { port } = evil.address();
  for (const host of ["abide.localhost", "127.0.0.1", "localhost"]) {
    const p = await b.newPage();
    await p.goto(`http://${host}:${port}/`);
    const got = await p.evaluate(async ({ origin, id, digest }) => {
      const out = [];
      const body = JSON.stringify({ digest, answer: { decision: "once" } });
      const attempts = [
        ["/api/v0/questions", {}], ["/api/v0/sessions", {}], ["/api/v0/me", {}], ["/api/v0/events", {}], ["/api/v0/openapi.json", {}],
        [`/api/v0/questions/${id}/answer`, { method: "POST", body, headers: { "Content-Type": "application/json" } }],
        [`/api/v0/questions/${id}/answer`, { method: "POST", body, mode: "no-cors" }],
        [`/api/v0/questions/${id}/answer`, { method: "POST", body, headers: { "Content-Type": "application/json", "Abide-Key": localStorage.getItem("abide-key") ?? "x" } }],
        ["/api/v0/signin/links", { method: "POST", body: "{}", mode: "no-cors" }],
      ];
      for (const [path, init] of attempts) {
        try { const r = await fetch(origin + path, { credentials: "include", ...init }); out.push([path, r.type, r.status, r.type === "opaque" ? "" : await r.text()]); } catch { out.push([path, "failed"]); }
      }
      const frame = document.createElement("iframe");
      frame.src = origin + "/";
      document.body.append(frame);
      await new Promise((ok) => { frame.onload = ok; });
      try { out.push(["frame", frame.contentDocument ? "same" : "other"]); } catch { out.push(["frame", "other"]); }
      return { out, key: localStorage.getItem("abide-key") };
    }, { origin: d.origin, id: q.id, digest: q.digest });
    assert.equal(got.key, null, "another port has the key of the console");
    for (const [path, type, status] of got.out) {
      if (path === "frame") assert.equal(type, "other");
      else assert.ok(type === "failed" || (type === "opaque" && status === 0), `${host}: ${path} gave ${type} ${status}`);
    }
    await p.evaluate(({ origin, id, digest }) => {
      const form = document.createElement("form");
      form.method = "POST"; form.enctype = "text/plain"; form.action = `${origin}/api/v0/questions/${id}/answer`;
      const i = document.createElement("input");
      i.name = `{"digest":"${digest}","answer":{"decision":"once"},"x":"`; i.value = `"}`;
      form.append(i); document.body.append(form); form.submit();
    }, { origin: d.origin, id: q.id, digest: q.digest });
    await p.waitForURL(/answer$/);
    await p.close();
  }
  evil.closeAllConnections();
  await new Promise((ok) => evil.close(ok));
  assert.equal((await d.api("GET", "/sessions/" + s.id)).state, "needs_you", "a page of another port has answered");
  assert.equal(existsSync(join(d.folder, "stolen.txt")), false);
  tried = s.id;
});

test("a phone: one question fits the screen", async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open("inbox");
  await armed("Allow once").waitFor();
  const fits = await page.evaluate(() => ({ w: document.documentElement.scrollWidth, h: document.documentElement.scrollHeight, body: (() => { const e = document.querySelector(".question-body"); return e.scrollHeight - e.clientHeight; })() }));
  assert.ok(fits.w <= 390 && fits.h <= 844 && fits.body <= 0, "the question does not fit: " + JSON.stringify(fits));
  for (const c of await page.locator(".answers button").all()) {
    const r = await c.boundingBox();
    assert.ok(r.height >= 44 && r.y + r.height <= 844 - 58, "a button is too small or out of sight: " + JSON.stringify(r));
  }
  for (const place of ["sessions", "commands", "cost", "memory", "rules", "jobs", "more", `s/${tried}`, `s/${tried}/log`, `s/${tried}/timeline`, `s/${tried}/usage`]) {
    await open(place);
    await page.locator("#main h1").waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), place + " is wider than the phone");
  }
  await page.setViewportSize({ width: 1280, height: 860 });
  calm();
});

test("the keyboard alone is enough", async () => {
  await open("sessions");
  await page.locator(".session-row").first().waitFor();
  await page.evaluate(() => { document.activeElement?.blur(); });
  const focused = () => page.evaluate(() => { const e = document.activeElement; return e ? (e.getAttribute("aria-label") ?? e.textContent ?? "").trim() : ""; });
  const tabTo = async (what, limit = 80) => { for (let i = 0; i < limit; i++) { await page.keyboard.press("Tab"); if (what.test(await focused())) return; } assert.fail(`${what} was not reached with Tab`); };
  await tabTo(/^Inbox/);
  await page.keyboard.press("Enter");
  await armed("Deny").waitFor();
  await tabTo(/^Deny, and say why/);
  await page.keyboard.press("Enter");
  await page.getByLabel("What should it do instead?").waitFor();
  await page.keyboard.type("not this file");
  await tabTo(/^Deny$/, 10);
  await page.keyboard.press("Enter");
  await page.getByText("Nothing waits for you").waitFor();
  await d.state(tried, "idle");
  assert.equal((await d.log(tried)).find((e) => e.type === "permission.completed").data.result.feedback, "not this file");
  assert.equal(existsSync(join(d.folder, "stolen.txt")), false);
  calm();
});

test("charts have tables, and the tables are the log", async () => {
  const model = d.scenario("usage", [{ when: { step: 1 }, reply: { text: "Look.", calls: [{ tool: "bash", arguments: { command: "true" } }], usage: { inputTokens: 1200, outputTokens: 30, cacheReadTokens: 800 } } }, { reply: { text: "Done.", usage: { inputTokens: 2300, outputTokens: 12 } } }]);
  const s = await d.session("Go", { model, approve: "all" });
  await d.state(s.id, "idle");
  const log = (await d.log(s.id)).map((e, i) => ({ ...e, seq: i + 1 }));
  await open("s", s.id, "usage");
  await page.locator("#usage-table tbody tr").nth(1).waitFor();
  const rows = await page.locator("#usage-table tbody tr").evaluateAll((l) => l.map((r) => [Number(r.dataset.seq), Number(r.dataset.context), Number(r.dataset.output)]));
  const want = log.filter((e) => e.type === "assistant.usage" || e.type === "ledger.request").map((e) => [e.seq, e.data.inputTokens + e.data.cacheReadTokens + e.data.cacheWriteTokens, e.data.outputTokens]).reverse();
  assert.deepEqual(rows, want);
  assert.equal(await page.locator(".chart rect").count() % want.length, 0);
  await open("s", s.id, "timeline");
  await page.locator("#timeline-table tbody tr").nth(2).waitFor();
  const spans = await page.locator("#timeline-table tbody tr").evaluateAll((l) => l.map((r) => [r.dataset.kind, Number(r.dataset.seq), Number(r.dataset.ms)]));
  const at = (type, n = 0) => log.filter((e) => e.type === type)[n];
  const ms = (a, z) => Date.parse(z.timestamp) - Date.parse(a.timestamp);
  assert.deepEqual(spans.filter((x) => x[0] !== "compaction"), [
    ["model", at("assistant.turn_start").seq, ms(at("assistant.turn_start"), at("assistant.message"))],
    ["tool", at("tool.execution_begun").seq, ms(at("tool.execution_begun"), at("tool.execution_complete"))],
    ["model", at("assistant.turn_start", 1).seq, ms(at("assistant.turn_start", 1), at("assistant.message", 1))],
  ]);
  assert.equal(await page.locator(".timeline .bar").count(), spans.length);
  await open("s", s.id, "log");
  await page.getByRole("button", { name: "Verify the chain" }).click();
  await page.getByText(`All ${log.length} events are as they were stored`).waitFor();
  await open("cost");
  await page.locator("#cost-days tbody tr").first().waitFor();
  const days = (await d.api("GET", "/cost?by=day")).costs;
  assert.equal(await page.locator("#cost-days tbody tr").count(), days.length);
  assert.equal(await page.locator("#cost-days tbody td").nth(1).innerText(), days.at(-1).requests.toLocaleString("en-GB"));
  calm();
});

test("no serious barrier, in light and dark", async () => {
  const { AxeBuilder } = await import("@axe-core/playwright");
  const asking = await d.session("Run `touch again.txt`");
  await d.state(asking.id, "needs_you");
  const talk = await d.session("Reply with exactly: # Title\n\nText with `code` and [a link](https://example.com).\n\n- one\n- two\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  await d.state(talk.id, "idle");
  const places = [["inbox", ".choice.armed"], ["sessions", ".session-row"], [`s/${talk.id}`, ".block.end"], [`s/${asking.id}`, ".choice.armed"], [`s/${talk.id}/log`, ".log li"], [`s/${talk.id}/usage`, "#usage-table"], [`s/${talk.id}/timeline`, "#timeline-table"], ["cost", "#cost-days"], ["rules", "h1"]];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const [place, ready] of places) {
      await open(place);
      await page.locator(ready).first().waitFor();
      // Only contrast differs between the themes.
      const r = await new AxeBuilder({ page }).options({ resultTypes: ["violations"], iframes: false, runOnly: colorScheme === "light" ? ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] : { type: "rule", values: ["color-contrast"] } }).analyze();
      const serious = r.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${colorScheme} ${place}: ${v.id}: ${v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).slice(0, 3).join("; ")}`);
      assert.deepEqual(serious, []);
    }
  }
  calm();
});

test("a question about a change shows all its lines, whatever they begin with", async () => {
  const path = join(d.dir, "lines.sql"), lines = (sign) => [`${sign} one`, `${sign.repeat(2)} two`, `${sign.repeat(3)} three`, `@@ -1 +1 @@ ${sign}`, `diff --git ${sign}`];
  const long = "x".repeat(3000) + " the end of the line";
  writeFileSync(path, ["first", ...lines("-"), "last", ""].join("\n"));
  const model = d.scenario("lines", [{ when: { step: 1 }, reply: { calls: [{ tool: "edit", arguments: { path, old_str: lines("-").join("\n"), new_str: [...lines("+"), long].join("\n") } }] } }, { reply: { text: "Done." } }]);
  const s = await d.session("Change the lines", { model });
  await open("s", s.id);
  await armed("Deny").waitFor();
  const diff = page.locator(".question .diff");
  const shown = (kind) => diff.locator(`tr.${kind} td.text`).evaluateAll((l) => l.map((e) => e.textContent));
  assert.deepEqual(await shown("del"), lines("-"));
  assert.deepEqual((await shown("add")).slice(0, -1), lines("+"));
  assert.deepEqual(await shown("ctx"), ["first", "last"]);
  assert.match(await page.locator(".question .diffhead .stat").innerText(), /\+6 −5/);
  assert.equal(await diff.getByText("the end of the line").count(), 0);
  await diff.getByRole("button", { name: "the line is cut: show all 3,020 characters" }).click();
  assert.deepEqual(await shown("add"), [...lines("+"), long]);
  await take("Deny");
  await d.state(s.id, "idle");
  calm();
});

test("what is asked is never cut without saying so, and all of it can be shown", async () => {
  const ask = async (name, command) => {
    const model = d.scenario(name, [{ when: { step: 1 }, reply: { calls: [{ tool: "bash", arguments: { command, description: "Print" } }] } }, { reply: { text: "Done." } }]);
    const s = await d.session("Print something", { model });
    await open("s", s.id);
    await armed("Deny").waitFor();
    return s;
  };
  const deny = async (s) => { await take("Deny"); await d.state(s.id, "idle"); };
  const notice = page.locator(".question .more.cut", { hasText: "not shown" });
  const unseen = await ask("unseen", `echo '${"\u200b".repeat(1000)}'; touch the-tail.txt`);
  const object = page.locator(".question pre.object");
  assert.doesNotMatch(await object.innerText(), /the-tail/);
  await notice.click();
  assert.match(await object.innerText(), /⟨U\+200B⟩'; touch the-tail\.txt$/);
  assert.equal(await notice.count(), 0);
  await deny(unseen);
  const many = await ask("many", Array.from({ length: 11 }, (_, i) => `echo ${i}`).join("; ") + "; touch the-tail.txt");
  const reading = page.locator(".question .reading li");
  assert.equal(await reading.count(), 8);
  await page.getByRole("button", { name: "4 more commands of this line are not shown: show all" }).click();
  assert.equal(await reading.count(), 12);
  assert.match(await reading.last().innerText(), /touch the-tail\.txt/);
  assert.equal(await notice.count(), 0);
  await deny(many);
  calm();
});

test("a deleted session ends for itself only", async () => {
  const say = (id, text) => d.api("POST", `/sessions/${id}/messages`, { text: "Reply with exactly: " + text });
  const kept = await d.session("Reply with exactly: kept");
  const second = await b.newPage();
  watch(second);
  await open("s", kept.id);
  await page.locator(".block.text", { hasText: "kept" }).waitFor();
  // The first is deleted while a stream tells of it, the second while no stream is open.
  for (const connected of [true, false]) {
    const lost = await d.session("Reply with exactly: lost");
    await d.state(lost.id, "idle");
    await second.goto(d.origin + "/#/s/" + lost.id);
    await second.locator(".block.text", { hasText: "lost" }).waitFor();
    await say(lost.id, "both are followed");
    await second.locator(".block.text", { hasText: "both are followed" }).waitFor();
    await d.state(lost.id, "idle");
    if (!connected) {
      await b.route("**/api/v0/events?*", (route) => route.abort());
      await d.kill();
      await d.start();
    }
    await d.api("DELETE", "/sessions/" + lost.id);
    if (!connected) await b.unroute("**/api/v0/events?*");
    await second.getByText("This session was deleted").waitFor();
    await say(kept.id, "still told " + connected);
    await page.locator(".block.text", { hasText: "still told " + connected }).waitFor();
  }
  await second.close();
  calm();
});

test("a question that cannot be shown leaves the others", async () => {
  const made = [await d.session("Run `touch odd.txt`"), await d.session("Run `touch even.txt`")];
  for (const s of made) await d.state(s.id, "needs_you");
  await page.route("**/api/v0/questions*", async (route) => {
    const body = await d.api("GET", "/questions");
    for (const q of body.questions) if (q.sessionId === made[0].id) q.answers = [{ id: "more" }, { id: "form" }];
    await route.fulfill({ json: body });
  });
  await open("sessions");
  await page.reload();
  await open("inbox");
  await page.locator(".entry", { hasText: "odd.txt" }).click();
  await page.getByText("This question cannot be shown here").waitFor();
  await page.locator(".entry", { hasText: "even.txt" }).click();
  await take("Allow once");
  await d.state(made[1].id, "idle");
  assert.equal(existsSync(join(d.folder, "even.txt")), true);
  await page.unroute("**/api/v0/questions*");
  await page.reload();
  await page.locator(".entry", { hasText: "odd.txt" }).click();
  await take("Deny");
  await d.state(made[0].id, "idle");
  calm();
});

test("signing out", async () => {
  await open("sessions");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("abide open").waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem("abide-key")), null);
  await signIn(page, d);
  calm();
});
