// Makes the pictures of the console: real sessions of a scripted model, on a desktop and a phone, light and dark.
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Daemon, browser, run, signIn, until } from "./lib.mjs";

const out = resolve(process.argv[2] ?? "../docs/screens");
const only = process.argv[3] ?? "";
mkdirSync(out, { recursive: true });
const d = new Daemon();
d.folder = join(d.dir, "shop");
mkdirSync(join(d.folder, "cart"), { recursive: true });
writeFileSync(join(d.folder, "cart/total.go"), "package cart\n\n// Total adds up the prices.\nfunc Total(prices []int) int {\n\tsum := 0\n\tfor _, p := range prices {\n\t\tsum += p\n\t}\n\treturn sum\n}\n");
const git = (...a) => run("git", ["-C", d.folder, "-c", "user.name=a", "-c", "user.email=a@example.com", ...a], { stdio: ["ignore", "pipe", "ignore"] });
git("init", "-qb", "discounts"); git("add", "."); git("commit", "-qm", "cart: add up prices");
mkdirSync(join(d.dir, "prices"));
writeFileSync(join(d.dir, "prices/list.json"), "{\n  \"currency\": \"EUR\",\n  \"shipping\": 490,\n  \"wrapping\": 250\n}\n");
await d.start();
const usage = (n) => ({ inputTokens: n, outputTokens: 420, cacheReadTokens: n * 3 });
const model = d.scenario("shop", [
  { when: { userContains: "discount", step: 1 }, reply: { text: "I will look at how the total is computed before I change it.", calls: [{ tool: "bash", arguments: { command: "cat cart/total.go && git log --oneline | head -5", description: "Read the code" } }], usage: usage(4100) } },
  { when: { userContains: "discount", step: 2 }, reply: { calls: [{ tool: "edit", arguments: { path: join(d.folder, "cart/total.go"), old_str: "\treturn sum\n", new_str: "\tif sum >= 10_000 {\n\t\tsum -= sum / 10\n\t}\n\treturn sum\n" } }], usage: usage(5200) } },
  { when: { userContains: "discount", step: 3 }, reply: { text: "Orders from **100 €** on now get 10 % off.\n\n| order | before | after |\n|---|---|---|\n| 99.99 € | 99.99 € | 99.99 € |\n| 100.00 € | 100.00 € | 90.00 € |\n\n- The discount is computed on the **sum**, in cents, so nothing is rounded twice.\n- `Total` keeps its signature; callers stay as they are.\n\n```go\nif sum >= 10_000 {\n\tsum -= sum / 10\n}\n```\n\nShall I add a test for the boundary?", usage: usage(6100) } },
  { when: { userContains: "deploy", step: 1 }, reply: { text: "The build is green. Now I push the branch and tell the server.", calls: [{ tool: "bash", arguments: { command: "git push origin discounts && curl -fsS -X POST https://deploy.example.com/shop > deploy.log", description: "Push and deploy" } }], usage: usage(8300) } },
  { when: { userContains: "dev server", step: 1 }, reply: { calls: [{ tool: "bash", arguments: { command: "for i in $(seq 1 24); do echo \"$(date +%H:%M:%S) GET /cart/$i 200 $((i * 7 % 40 + 3)) ms\"; done; sleep 600", description: "Start the dev server", mode: "async" } }], usage: usage(3000) } },
  { when: { userContains: "price list" }, reply: { calls: [{ tool: "edit", arguments: { path: join(d.dir, "prices/list.json"), old_str: "  \"shipping\": 490,\n", new_str: "  \"shipping\": 390,\n  \"express\": 990,\n" } }], usage: usage(3000) } },
  { when: { userContains: "boundary", step: 1 }, reply: { calls: [{ tool: "bash", arguments: { command: "sleep 0.4", description: "Run the tests" } }], usage: usage(4100) } },
  { when: { userContains: "boundary", step: 2 }, reply: { deltas: ["The test ", "covers ", "99.99 € ", "and ", "100 €."], deltaDelay: "150ms", usage: usage(5100) } },
  { reply: { text: "Done.", usage: usage(2000) } },
]);
const ask = async (text, more = {}) => d.session(text, { model, ...more });
const shop = await ask("Give orders from 100 € on a discount of 10 %.", { approve: "all", name: "Discount for large orders" });
await d.state(shop.id, "idle");
const boundary = await ask("Add a test for the boundary.", { approve: "all", name: "Test for the boundary" });
await until("the model answers", async () => (await d.log(boundary.id)).filter((e) => e.type === "assistant.turn_start").length > 1);
await d.kill();
await d.start();
await d.state(boundary.id, "idle");
const deploy = await ask("Please deploy this branch to staging when the tests pass.", { name: "Deploy to staging" });
await d.state(deploy.id, "needs_you");
const colour = await d.session("Ask me: Should free samples count towards the 100 €, or only what is paid for?", { name: "Rules for samples" });
await d.state(colour.id, "needs_you");
const prices = await ask("Lower the shipping costs in the price list to 3.90 €, and add express for 9.90 €.", { name: "Shipping costs" });
await d.state(prices.id, "needs_you");
const server = await ask("Start the dev server and keep it running.", { approve: "all", name: "Dev server" });
await until("the server runs", async () => (await d.api("GET", "/tasks?session=" + server.id)).tasks.length);
for (const [name, text] of [["Update the changelog", "Reply with exactly: The changelog has a line for the discount."], ["Find slow queries", "Reply with exactly: Two queries have no index: orders by date, and carts by user."]]) await d.state((await d.session(text, { name })).id, "idle");

const b = await browser();
const page = await b.newPage();
page.on("pageerror", (e) => { console.error(e.message); process.exitCode = 1; });
const places = [
  ["inbox", "inbox", ".choice.armed"], ["sessions", "sessions", ".session-row"], ["session", `s/${shop.id}`, ".block.end"], ["question", `s/${prices.id}`, ".choice.armed"],
  ["commands", `s/${server.id}/commands`, ".tail:not(:text('Nothing was'))"], ["timeline", `s/${boundary.id}/timeline`, "#timeline-table tbody tr"], ["usage", `s/${shop.id}/usage`, "#usage-table tbody tr"], ["log", `s/${shop.id}/log`, ".log li"], ["cost", "cost", "#cost-other tbody tr"],
];
await page.goto(await d.link());
for (const [device, size] of [["desktop", { width: 1280, height: 860 }], ["phone", { width: 390, height: 844 }]]) {
  await page.setViewportSize(size);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const shot = (name) => page.screenshot({ path: join(out, `console-${name}-${device}-${colorScheme}.png`) });
    if (await page.getByRole("button", { name: "Sign in" }).isVisible()) { await shot("signin"); if (colorScheme === "dark") await page.getByRole("button", { name: "Sign in" }).click(); else continue; await page.getByRole("navigation", { name: "Main" }).waitFor(); await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" }); await pictures("light"); await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" }); }
    await pictures(colorScheme);
    async function pictures(colorScheme) {
      for (const [name, place, ready] of places) {
        if (only && !name.match(only)) continue;
        await page.goto(d.origin + "/#/" + place);
        await page.locator(ready).first().waitFor();
        if (name === "log") await page.getByRole("button", { name: "Verify the chain" }).click().then(() => page.getByText("as they were stored").waitFor());
        await page.mouse.move(size.width - 5, 5);
        await page.screenshot({ path: join(out, `console-${name}-${device}-${colorScheme}.png`) });
      }
    }
  }
}
await b.close();
await d.stop();
