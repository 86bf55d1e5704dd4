// Cost, memory, rules, jobs and servers: plain lists.
import { useState } from "preact/hooks";
import * as api from "./api";
import { Markdown } from "./markdown";
import { byId, href, sessions, titleOf } from "./state";
import { count, fullTime, line, plural, shortPath, usd, visible } from "./text";
import { Button, Chip, Empty, Failure, Fold, Loading, say, useLoaded } from "./ui";
import { Bars } from "./usage";

function Table({ id, head, rows }: { id: string; head: string[]; rows: api.CostRow[]; }) {
  const [name, ...numbers] = head;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={"Cost by " + name.toLowerCase()}>
      <table class="data" id={id}>
        <thead><tr><th scope="col">{name}</th>{numbers.map((h) => <th scope="col" class="num" key={h}>{h}</th>)}</tr></thead>
        <tbody>{rows.map((r, i) => {
          const s = r.sessionId ? byId(r.sessionId) : undefined;
          return <tr key={i} data-cost={r.costUsd ?? ""}><td>{r.sessionId !== undefined ? <a href={href("s", r.sessionId)}>{s ? line(titleOf(s), 60) : line(r.sessionId, 13)}</a> : shortPath(r.day ?? r.model ?? r.purpose ?? "deleted sessions", 26)}</td><td class="num">{r.requests.toLocaleString()}</td><td class="num">{count(r.inputTokens + r.cacheReadTokens + r.cacheWriteTokens)}</td><td class="num">{count(r.outputTokens)}</td><td class="num">{r.costUsd === null ? "unknown" : usd(r.costUsd)}{r.costUsd !== null && r.unpricedRequests ? "*" : ""}</td></tr>;
        })}</tbody>
      </table>
    </div>
  );
}

const columns = ["Requests", "In", "Out", "Cost"];

export function CostView() {
  const [by, setBy] = useState("model");
  const days = useLoaded("days", () => api.cost("day"));
  const other = useLoaded(by, () => api.cost(by));
  const list = [...(days.value?.costs ?? [])].sort((a, b) => (a.day ?? "").localeCompare(b.day ?? ""));
  const total = list.reduce((x, r) => x + (r.costUsd ?? 0), 0);
  const priced = list.some((r) => r.costUsd !== null);
  const rows = [...(other.value?.costs ?? [])].sort((a, b) => (b.costUsd ?? 0) - (a.costUsd ?? 0) || b.requests - a.requests);
  return (
    <main class="view" id="main" tabIndex={-1}>
      <header class="view-head"><h1>Cost</h1></header>
      {days.error ? <Failure error={days.error} retry={days.reload} /> : !days.value ? <Loading what="costs" /> : !list.length ? <Empty icon="cost" title="No model was asked yet" /> : (
        <>
          <p class="lead">{priced ? <><b class="big">{usd(total)}</b> <span class="muted">in {plural(list.length, "day")}</span></> : <><b class="big">{count(list.reduce((x, r) => x + r.inputTokens + r.outputTokens + r.cacheReadTokens + r.cacheWriteTokens, 0))}</b> <span class="muted">tokens; no price is known</span></>}</p>
          <Bars values={list.map((r) => (priced ? r.costUsd ?? 0 : r.inputTokens + r.outputTokens + r.cacheReadTokens + r.cacheWriteTokens))} label={priced ? "Cost of each day" : "Tokens of each day"} format={priced ? (x) => usd(x) : count} />
          <Table id="cost-days" head={["Day", ...columns]} rows={[...list].reverse()} />
          <div class="tools"><label>Also by <select value={by} onChange={(e) => setBy(e.currentTarget.value)}><option value="model">model</option><option value="session">session</option><option value="purpose">purpose</option></select></label></div>
          {other.value && <Table id="cost-other" head={[by[0].toUpperCase() + by.slice(1), ...columns]} rows={rows.slice(0, 200)} />}
          {priced && list.some((r) => r.unpricedRequests) && <p class="small muted">* some requests have no known price and are not in the sum</p>}
        </>
      )}
    </main>
  );
}

function Page({ folder, book, page }: { folder: string; book: api.Book; page: api.Book["pages"][0] }) {
  const p = useLoaded(page.path, () => api.memoryPage(folder || undefined, page.name, book.user));
  return p.error ? <Failure error={p.error} /> : p.value ? <Markdown text={p.value.text ?? ""} /> : <Loading what="the page" />;
}

export function MemoryView() {
  const folders = [...new Set((sessions.value ?? []).map((s) => s.folder).filter(Boolean))] as string[];
  const [folder, setFolder] = useState(folders[0] ?? "");
  const m = useLoaded("m" + (folder || folders[0] || ""), () => api.memory(folder || folders[0]));
  return (
    <main class="view" id="main" tabIndex={-1}>
      <header class="view-head"><h1>Memory</h1></header>
      <p class="lead muted">What sessions have written down for later ones.</p>
      {folders.length > 1 && <div class="tools"><label>Folder <select value={folder || folders[0]} onChange={(e) => setFolder(e.currentTarget.value)}>{folders.map((f) => <option key={f} value={f}>{shortPath(f, 60)}</option>)}</select></label></div>}
      {m.error ? <Failure error={m.error} retry={m.reload} /> : !m.value ? <Loading what="memory" /> : !m.value.some((b) => b.pages?.length) ? <Empty icon="memory" title="Nothing is remembered here yet"><p>Pages appear when sessions in this folder have come to rest.</p></Empty>
        : m.value.filter((b) => b.pages?.length).map((b) => (
          <section key={b.path} class="group"><h2 class="group-head">{b.user ? "Yours" : <span dir="ltr">{shortPath(b.path, 60)}</span>}</h2>
            <div class="stack">{b.pages.map((p) => <Fold key={p.path} head={<><span class="fold-title">{line(p.title || p.name, 80)}</span><span class="fold-sub">{plural(p.facts, "fact")}</span></>}>{() => <Page folder={folder || folders[0]} book={b} page={p} />}</Fold>)}</div>
          </section>
        ))}
    </main>
  );
}

export function RulesView() {
  const r = useLoaded("rules", () => api.rules());
  const revoke = async (rule: string, location?: string) => { try { await api.revoke(rule, location); say("Revoked"); r.reload(); } catch (e) { say(String((e as Error).message), "bad"); } };
  const list = (rows: api.RuleRow[], where?: string) => <ul class="rows plainrows">{rows.map((x, i) => <li key={i} class="rule"><Chip kind="plain">{visible(x.kind)}</Chip><code dir="ltr" class="grow">{line(x.text, 200)}</code><Button onClick={() => revoke(x.text, where)} aria-label={"Revoke " + x.text}>Revoke</Button></li>)}</ul>;
  const places = Object.entries(r.value?.locations ?? {}).filter(([, l]) => l?.length);
  return (
    <main class="view" id="main" tabIndex={-1}>
      <header class="view-head"><h1>Rules</h1></header>
      <p class="lead muted">What you have allowed beyond a session. Rules of configuration files are not listed.</p>
      {r.error ? <Failure error={r.error} retry={r.reload} /> : !r.value ? <Loading what="rules" /> : !r.value.always?.length && !places.length ? <Empty icon="rules" title="No lasting rules"><p>They appear when you answer “always” or “in this folder”.</p></Empty> : (
        <>
          {r.value.always?.length > 0 && <section class="group"><h2 class="group-head">Always</h2>{list(r.value.always)}</section>}
          {places.map(([folder, rows]) => <section key={folder} class="group"><h2 class="group-head" dir="ltr">{shortPath(folder, 60)}</h2>{list(rows, folder)}</section>)}
        </>
      )}
    </main>
  );
}

export function JobsView() {
  const j = useLoaded("jobs", () => api.jobs());
  return (
    <main class="view" id="main" tabIndex={-1}>
      <header class="view-head"><h1>Jobs</h1></header>
      <p class="lead muted">Upkeep that nobody waits for, such as remembering what a session found.</p>
      {j.error ? <Failure error={j.error} retry={j.reload} /> : !j.value ? <Loading what="jobs" /> : !j.value.jobs?.length ? <Empty icon="jobs" title="No jobs are left to do">{j.value.stats && <p>{j.value.stats.done ?? 0} done since the program started.</p>}</Empty>
        : <ul class="rows plainrows">{j.value.jobs.map((x) => <li key={x.jobId} class="rule"><Chip kind={x.status === "aside" ? "bad" : x.status === "running" ? "good" : "plain"}>{line(x.status, 20)}</Chip><span class="grow"><b>{visible(x.kind)}</b> <a href={href("s", x.sessionId)}>{byId(x.sessionId) ? line(titleOf(byId(x.sessionId)!), 60) : line(x.sessionId, 13)}</a><br /><span class="small muted">{x.error ? line(x.error, 160) : x.dueAt ? "due " + fullTime(Date.parse(x.dueAt)) : ""}{x.attempts > 1 ? ` · attempt ${x.attempts}` : ""}</span></span>{x.status === "aside" && <Button onClick={async () => { try { await api.retryJob(x.jobId); j.reload(); } catch (e) { say(String((e as Error).message), "bad"); } }}>Try again</Button>}</li>)}</ul>}
    </main>
  );
}

/** Servers lists the MCP servers of a session. */
export function Servers({ id }: { id: string }) {
  const l = useLoaded("servers" + id, () => api.servers(id));
  const kind = (status: string) => (status === "connected" ? "good" : status === "failed" ? "bad" : status === "needs-auth" ? "warn" : "plain");
  return (
    <div class="panel">
      {l.error ? <Failure error={l.error} retry={l.reload} /> : !l.value ? <Loading what="servers" /> : !l.value.length ? <Empty icon="jobs" title="This session has no MCP servers" />
        : <ul class="rows plainrows">{l.value.map((x) => <li key={x.name} class="rule"><Chip kind={kind(x.status)}>{line(x.status, 20)}</Chip><span class="grow"><b dir="auto">{line(x.name, 80)}</b><br /><span class="small muted">{[x.transport, x.source].filter(Boolean).map((t) => line(t!, 40)).join(" · ")}{x.error ? <> · <span dir="auto">{line(x.error, 300)}</span></> : null}</span></span></li>)}</ul>}
    </div>
  );
}
