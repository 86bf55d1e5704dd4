// A session of 10,000 events and 20 MB: what its transcript costs a browser. What does not depend on the machine
// is held in every run; times are printed, and held with FIGURES=1, for a machine that does nothing else.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Daemon, browser, signIn, until } from "./lib.mjs";

const strict = process.env.FIGURES === "1";
const limits = { events: 10_000, bytes: 20e6, readableMs: 300, taskMs: 50, heap: 60e6 };

describe("a long session", () => {
  let d, b, page, s, bytes = 0;
  before(async () => {
    d = await new Daemon().start();
    ({ s, bytes } = await longSession(d));
    b = await browser();
    page = await b.newPage();
    await signIn(page, d);
  });
  after(async () => { await b?.close(); await d?.stop(); });

  test("it is long", async () => {
    const { position } = await d.api("GET", "/sessions/" + s.id);
    assert.ok(position >= limits.events && bytes >= limits.bytes, `only ${position} events and ${bytes} bytes`);
  });

  test("its last message can be read at once", async (t) => {
    const figures = { cold: [], inside: [] };
    for (let i = 0; i < 5; i++) {
      // In a new page, from the address on.
      await page.goto("about:blank");
      await page.goto(`${d.origin}/#/s/${s.id}`, { waitUntil: "commit" });
      figures.cold.push(await readable(page));
      // In a page that is there, from a click on.
      await page.evaluate(() => { location.hash = "#/rules"; });
      await page.locator("h1", { hasText: "Rules" }).waitFor();
      figures.inside.push(await readable(page, s.id));
    }
    hold(t, "last message readable after a cold start, ms", middle(figures.cold), limits.readableMs);
    hold(t, "last message readable after a click, ms", middle(figures.inside), limits.readableMs);
  });

  test("it is scrolled to its beginning and back", async (t) => {
    await page.goto("about:blank");
    await page.goto(`${d.origin}/#/s/${s.id}`);
    await readable(page);
    const cdp = await b.newCDPSession(page);
    const traced = await trace(cdp);
    const seen = await page.evaluate(async () => {
      const box = document.querySelector(".scroller"), frame = () => new Promise((r) => requestAnimationFrame(r));
      let nodes = 0, blocks = 0, frames = 0;
      const look = () => { nodes = Math.max(nodes, document.querySelectorAll("*").length); blocks = Math.max(blocks, document.querySelectorAll(".slot").length); };
      const end = performance.now() + 1_200_000; // a guard against hanging
      const atTop = () => box.scrollTop <= 0 && !document.querySelector(".transcript > .begin button");
      const scroll = async (by) => { box.scrollTop += by; await frame(); if (frames++ % 16 === 0) look(); };
      while (!atTop() && performance.now() < end) await scroll(-2400);
      for (let i = 0; i < 200; i++) await scroll(2400); // some pages back
      document.querySelector(".to-end").click();
      while (!(box.scrollHeight - box.scrollTop - box.clientHeight < 2 && box.textContent.includes("The last word")) && performance.now() < end) await frame();
      look();
      return { nodes, blocks, frames, over: performance.now() >= end };
    });
    const tasks = await traced();
    assert.equal(seen.over, false, "scrolling came to no end: " + JSON.stringify(seen));
    t.diagnostic(`frames, and nodes and blocks at most: ${JSON.stringify(seen)}`);
    if (process.env.TRACE) writeFileSync(process.env.TRACE, JSON.stringify(tasks.slice(0, 40), null, 1));
    t.diagnostic(`the longest tasks, ms of processor time: ${tasks.slice(0, 8).map((x) => Math.round(x.cpu))}`);
    hold(t, "longest task while scrolling, ms of processor time", tasks[0].cpu, limits.taskMs);
    await cdp.send("HeapProfiler.collectGarbage");
    const { usedSize } = await cdp.send("Runtime.getHeapUsage");
    t.diagnostic(`heap after scrolling: ${(usedSize / 1e6).toFixed(1)} MB (at most ${limits.heap / 1e6})`);
    assert.ok(usedSize <= limits.heap, `the heap has ${usedSize} bytes after scrolling`);
    assert.ok(seen.blocks <= 400 && seen.nodes <= 15_000, "the page holds more than a window: " + JSON.stringify(seen));
  });

  // hold prints a time, and compares it where the machine does nothing else.
  function hold(t, what, value, most) {
    t.diagnostic(`${what}: ${Math.round(value)} (at most ${most})`);
    if (strict) assert.ok(value <= most, `${what}: ${value}, and not at most ${most}`);
  }
});

const middle = (l) => [...l].sort((a, b) => a - b)[l.length >> 1];

// readable returns how long it takes until the last message is drawn: from the start of the page, or from
// the moment in which a page that is there opens a session.
export async function readable(page, id) {
  return page.evaluate(async (id) => {
    const begin = id ? performance.now() : 0;
    if (id) location.hash = "#/s/" + id;
    for (;;) {
      await new Promise((r) => requestAnimationFrame(r));
      const box = document.querySelector(".scroller")?.getBoundingClientRect(), last = [...document.querySelectorAll(".block.text .md")].at(-1);
      const r = last?.getBoundingClientRect();
      if (r && last.textContent.includes("The last word") && r.bottom > box.top && r.top < box.bottom) break;
    }
    await new Promise((r) => { const c = new MessageChannel(); c.port1.onmessage = r; c.port2.postMessage(0); }); // after the frame was drawn
    return performance.now() - begin;
  }, id);
}

// trace returns a function that returns the tasks of the page since then, the longest first, with the
// processor time that each took. Other programs of the machine take the processor away, so that the time
// that has passed says little.
export async function trace(cdp) {
  const events = [];
  cdp.on("Tracing.dataCollected", (d) => events.push(...d.value));
  await cdp.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { recordMode: "recordAsMuchAsPossible", includedCategories: ["toplevel", "devtools.timeline"], excludedCategories: ["*"] } });
  return async () => {
    const complete = new Promise((r) => cdp.once("Tracing.tracingComplete", r));
    await cdp.send("Tracing.end");
    await complete;
    const mains = new Set(events.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => e.pid + "/" + e.tid));
    const main = events.filter((e) => mains.has(e.pid + "/" + e.tid) && e.ph === "X");
    const tasks = main.filter((e) => e.name === "ThreadControllerImpl::RunTask" || e.name === "RunTask").map((e) => ({ cpu: (e.tdur ?? e.dur) / 1000, ms: e.dur / 1000, ts: e.ts, end: e.ts + e.dur, at: e.pid + "/" + e.tid }));
    tasks.sort((a, b) => b.cpu - a.cpu);
    for (const t of tasks.slice(0, 40)) {
      t.parts = {};
      for (const e of main) if (e.ts >= t.ts && e.ts + e.dur <= t.end && e.pid + "/" + e.tid === t.at && !/RunTask/.test(e.name)) t.parts[e.name] = Math.round(((t.parts[e.name] ?? 0) + (e.tdur ?? e.dur) / 1000) * 10) / 10;
    }
    return tasks;
  };
}

/** longSession makes a session as a long day of work leaves it: reads, searches, edits, answers with lists, tables and code. */
export async function longSession(d, turns = 260) {
  const text = (n, seed) => Array.from({ length: Math.ceil(n / 80) }, (_, i) => `${seed} line ${i}: the quick brown fox jumps over the lazy dog and goes on ${i * 7919 % 1000}`).join("\n").slice(0, n);
  mkdirSync(join(d.folder, "src"), { recursive: true });
  for (let i = 0; i < 10; i++) writeFileSync(join(d.folder, `src/file${i}.txt`), text(1000 + i * 400, "file " + i));
  writeFileSync(join(d.folder, "src/counter.txt"), "odd\n" + text(600, "counter") + "\n");
  const answer = (k) => [`## What I found in part ${k}`, text(900, "finding").replaceAll("\n", " "), "", ...Array.from({ length: 12 }, (_, i) => `- **Point ${i}** is about \`file${i}.txt\`: ${text(120, "note").replaceAll("\n", " ")}`), "",
    "| file | lines | state |", "|---|---|---|", ...Array.from({ length: 14 }, (_, i) => `| src/file${i}.txt | ${i * 31} | *checked* |`), "", "```go", text(2500, "\tcode"), "```", "",
    ...Array.from({ length: 6 + k }, (_, i) => text(800, `Paragraph ${i} of [a link](https://example.com/${i})`).replaceAll("\n", " ") + "\n")].join("\n");
  const calls = Array.from({ length: 10 }, (_, i) => ({ tool: "view", arguments: { path: join(d.folder, `src/file${i}.txt`) } }));
  const edit = (a, z) => ({ tool: "edit", arguments: { path: join(d.folder, "src/counter.txt"), old_str: a + "\n", new_str: z + "\n" } });
  const rules = [];
  for (let k = 0; k < 10; k++) rules.push({ when: { userMatches: `turn \\d*${k}$`, step: 1 }, reply: { text: "I look at all files again, and change one.", calls: [...calls.slice(k % 2), k % 2 ? edit("even", "odd") : edit("odd", "even")] } }, { when: { userMatches: `turn \\d*${k}$`, step: 2 }, reply: { text: answer(k) } });
  rules.push({ when: { user: "Finish" }, reply: { text: "**The last word** of a long day." } }, { reply: { text: "A summary of all that was done so far." } });
  const s = await d.session("", { model: d.scenario("long", rules), approve: "all", name: "A long day" });
  const say = async (text, at) => {
    await d.api("POST", `/sessions/${s.id}/messages`, { text });
    return until("a turn ends", async () => {
      const p = await d.api("GET", `/sessions/${s.id}/events?after=${at}&wait=30&limit=1000`);
      at = p.next;
      return p.events.some((e) => e.event.type === "session.idle") && at;
    });
  };
  let at = 0;
  for (let i = 0; i < turns; i++) at = await say(`Work on it, turn ${i}`, at);
  await say("Finish", at);
  const r = await fetch(`http://127.0.0.1:${d.port}/api/v0/sessions/${s.id}/export`, { headers: { Authorization: `Bearer ${d.token}` } });
  return { s, bytes: (await r.arrayBuffer()).byteLength };
}
