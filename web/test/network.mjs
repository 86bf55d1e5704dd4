// The console behind a proxy that holds streams back, in a machine that slept, and in one whose clock is wrong.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { after, afterEach, before, describe, test } from "node:test";
import { Daemon, browser, signIn, until } from "./lib.mjs";

/** A Proxy passes requests on to a daemon. Streams can be held back, or go silent without an end. */
class Proxy {
  holds = false; // what a stream says is passed on when the stream ends, as by a proxy with a buffer
  opened = 0; // number of streams
  streams = new Set();
  async start(port) {
    this.server = createServer((req, res) => {
      const to = request({ host: "127.0.0.1", port, method: req.method, path: req.url, headers: req.headers }, (r) => {
        if (!(r.headers["content-type"] ?? "").startsWith("text/event-stream")) { res.writeHead(r.statusCode, r.headers); r.pipe(res); return; }
        const stream = { silent: false, held: this.holds ? [] : null };
        this.opened++;
        this.streams.add(stream);
        if (!stream.held) res.writeHead(r.statusCode, r.headers);
        r.on("data", (b) => { if (stream.held) stream.held.push(b); else if (!stream.silent) res.write(b); });
        r.on("end", () => { this.streams.delete(stream); if (stream.held) { res.writeHead(r.statusCode, r.headers); res.write(Buffer.concat(stream.held)); } res.end(); });
      });
      to.on("error", () => res.destroy());
      res.on("close", () => to.destroy());
      req.pipe(to);
    });
    await new Promise((ok) => this.server.listen(0, "127.0.0.1", ok));
    return this;
  }
  get origin() { return `http://abide.localhost:${this.server.address().port}`; }
  stop() { this.server.closeAllConnections(); return new Promise((ok) => this.server.close(ok)); }
}

describe("networks and clocks", () => {
  let d, proxy, b;
  before(async () => {
    d = await new Daemon().start();
    proxy = await new Proxy().start(d.port);
    d.link = async () => (await d.api("POST", "/signin/links", {})).url.replace(d.origin, proxy.origin);
  });
  afterEach(async () => { await b?.close(); b = undefined; proxy.holds = false; });
  after(async () => { await b?.close(); await proxy.stop(); await d.stop(); });

  // visit opens the console behind the proxy, in a browser of its own whose clock the test moves.
  async function visit(time) {
    b = await browser();
    const page = await b.newPage();
    await page.clock.install(time ? { time } : undefined);
    await signIn(page, d);
    return page;
  }
  const say = (s, text) => d.api("POST", `/sessions/${s.id}/messages`, { text: "Reply with exactly: " + text });
  const answers = (page) => page.locator(".block.text .md").allInnerTexts();
  const shows = (page, ...want) => until("the page shows " + want, async () => JSON.stringify(await answers(page)) === JSON.stringify(want));
  // reply answers the question that is shown. An answer that has just moved is armed again, and a click on it does
  // not count: then a person clicks once more.
  async function reply(page, text) {
    const button = page.getByRole("button", { name: "Answer", exact: true });
    await page.getByLabel("Your answer").fill(text);
    await until("the answer is taken", async () => {
      if (await button.count() === 0) return true;
      if (await button.isEnabled({ timeout: 1000 }).catch(() => false)) await button.click({ timeout: 2000 }).catch(() => {});
      return false;
    });
  }
  const mode = (page, name) => page.locator(".connection." + name).waitFor();

  test("a proxy that holds streams back: the page asks instead, and misses nothing", async () => {
    const s = await d.session("Reply with exactly: one");
    await d.state(s.id, "idle");
    proxy.holds = true;
    const page = await visit();
    await page.goto(`${proxy.origin}/#/s/${s.id}`);
    await shows(page, "one");
    await until("a stream is held", () => proxy.opened > 0);
    await page.clock.fastForward(31_000);
    await mode(page, "poll");
    await say(s, "two");
    await shows(page, "one", "two");
    // What waits for a person is told as well, also where no session is followed.
    await page.goto(`${proxy.origin}/#/inbox`);
    await page.getByText("Nothing waits for you").waitFor();
    const asking = await d.session("Run `touch held.txt`");
    await page.locator(".question .object", { hasText: "touch held.txt" }).waitFor();
    await d.api("POST", `/sessions/${asking.id}/stop`, {});
    await page.getByText("Nothing waits for you").waitFor();
    await page.goto(`${proxy.origin}/#/s/${s.id}`);
    await shows(page, "one", "two");
    // From time to time a stream is tried again. As long as it is held back, that takes three seconds, and not thirty.
    const before = proxy.opened;
    await page.clock.fastForward(121_000);
    await d.state(s.id, "idle");
    await say(s, "three"); // ends the call that waits
    await until("a stream is tried again", () => proxy.opened > before);
    await say(s, "four");
    await page.clock.fastForward(4_000);
    await shows(page, "one", "two", "three", "four");
    proxy.holds = false;
    await page.clock.fastForward(121_000);
    await d.state(s.id, "idle");
    await say(s, "five");
    await mode(page, "stream");
    await say(s, "six");
    await shows(page, "one", "two", "three", "four", "five", "six");
  });

  test("a browser that slept for an hour goes on where it was", async () => {
    const s = await d.session("Reply with exactly: evening");
    await d.state(s.id, "idle");
    const page = await visit();
    await page.goto(`${proxy.origin}/#/s/${s.id}`);
    await mode(page, "stream");
    await shows(page, "evening");
    for (const [ms, text] of [[26_000, "nap"], [3_600_000, "morning"]]) {
      for (const stream of proxy.streams) stream.silent = true; // a connection that died in the sleep says nothing any more
      await say(s, text);
      await d.state(s.id, "idle");
      await page.clock.fastForward(ms);
      await page.locator(".block.text", { hasText: text }).waitFor();
    }
    await say(s, "day");
    await shows(page, "evening", "nap", "morning", "day");
    // What was asked while it slept can be answered.
    for (const stream of proxy.streams) stream.silent = true;
    await d.api("POST", `/sessions/${s.id}/messages`, { text: "Ask me: tea?" });
    await d.state(s.id, "needs_you");
    await page.clock.fastForward(3_600_000);
    await reply(page, "tea");
    await d.state(s.id, "idle");
  });

  test("a wrong clock: ages go by the clock of the server, and the page says so", async () => {
    const s = await d.session("Ask me: now?");
    await d.state(s.id, "needs_you");
    for (const [hours, says] of [[3, "3 h ahead of"], [-50, "2 days behind"]]) {
      const page = await visit(Date.now() + hours * 3_600_000);
      await page.locator(".clock", { hasText: says }).waitFor();
      assert.match(await page.locator(".question .fact", { hasText: "Waiting" }).innerText(), /now|\d min/);
      await page.goto(`${proxy.origin}/#/sessions`);
      await page.locator(".session-row .row-numbers", { hasText: /now|\d min/ }).first().waitFor();
      await page.locator(".clock").getByRole("button", { name: "Close" }).click();
      await page.locator(".clock").waitFor({ state: "detached" });
      await b.close();
    }
    const page = await visit();
    await page.locator(".question").waitFor();
    assert.equal(await page.locator(".clock").count(), 0);
    await reply(page, "yes");
    await d.state(s.id, "idle");
  });
});
