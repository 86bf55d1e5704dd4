// Commands in the background: what they print, as it is printed, and how to talk to them.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { byId, href, titleOf } from "./state";
import { bytes, line, plain, shortPath, span, visible } from "./text";
import { Age, Button, Chip, Empty, Failure, Fold, Icon, Loading, now, say, useLoaded } from "./ui";

const kept = 200_000; // characters of the end of an output that are shown

function decode(o: api.Output): string {
  if (o.text !== undefined) return o.text;
  if (!o.base64) return "";
  return new TextDecoder().decode(Uint8Array.from(atob(o.base64), (c) => c.charCodeAt(0)));
}

/** Tail shows the end of what a command prints, and follows it until it ends. */
export function Tail({ t, onEnd }: { t: api.Task; onEnd: (t: api.Task) => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const [cutOff, setCut] = useState(false);
  const box = useRef<HTMLPreElement>(null);
  const stick = useRef(true);
  useEffect(() => {
    const ctl = new AbortController();
    void (async () => {
      let at: { offset?: number; tail?: number } = { tail: 64_000 };
      let raw = "";
      for (let failures = 0; !ctl.signal.aborted;) {
        try {
          const o = await api.output(t, { ...at, wait: at.offset !== undefined }, ctl.signal);
          failures = 0;
          raw += decode(o);
          if (o.offset > 0 || o.omitted) setCut(true);
          if (raw.length > kept) { raw = raw.slice(-kept); setCut(true); }
          setText(raw);
          at = { offset: o.next };
          if (o.end) { onEnd(o.task); return; }
        } catch (e) {
          if (ctl.signal.aborted) return;
          if (e instanceof api.Problem && e.status >= 400 && e.status < 500) { setError(e.message); return; }
          await new Promise((r) => setTimeout(r, Math.min(5000, 300 * 2 ** failures++)));
        }
      }
    })();
    return () => ctl.abort();
  }, [t.sessionId, t.taskId]);
  useLayoutEffect(() => { if (stick.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [text]);
  if (error) return <Failure error={error} />;
  return (
    <>
      {cutOff && <p class="small muted">The beginning is not shown.</p>}
      <pre class="tail" ref={box} dir="ltr" tabIndex={0} role="log" aria-label={"Output of " + line(t.command, 60)} onScroll={(e) => { const el = e.currentTarget; stick.current = el.scrollHeight - el.scrollTop - el.clientHeight < 30; }}>{plain(text) || "Nothing was printed yet."}</pre>
    </>
  );
}

export function TaskChip({ t }: { t: api.Task }) {
  if (t.status === "running") return <Chip kind="good dot live">Running</Chip>;
  if (t.exitCode === 0) return <Chip kind="plain">Ended</Chip>;
  if (t.exitCode !== undefined) return <Chip kind="bad">Exit {t.exitCode}</Chip>;
  return <Chip kind={t.status === "completed" ? "plain" : "warn"}>{t.signal ? "Ended by " + visible(t.signal) : visible(t.status)}</Chip>;
}

export function Command({ t: given, open = false, where = false }: { t: api.Task; open?: boolean; where?: boolean }) {
  const [ended, setEnded] = useState<api.Task | null>(null);
  const t = ended ?? given;
  const [text, setText] = useState("");
  const [busy, setBusy] = useState("");
  const running = t.status === "running";
  const run = async (what: string, f: () => Promise<void>) => { setBusy(what); try { await f(); } catch (e) { say(String((e as Error).message), "bad"); } setBusy((now) => (now === what ? "" : now)); };
  const s = where ? byId(t.sessionId) : undefined;
  const began = Date.parse(t.startedAt ?? "");
  return (
    <Fold class="command-box" open={open} head={<><span class="fold-title mono" dir="ltr">{line(t.command, 140)}</span><TaskChip t={t} /></>}>
      {() => (
        <div class="command-body">
          <p class="small muted">{where && <><a href={href("s", t.sessionId, "commands")}>{s ? line(titleOf(s), 60) : "Session"}</a> · </>}{t.cwd && <span dir="ltr">{shortPath(t.cwd)} · </span>}{running ? <>since <Age t={began} /></> : t.endedAt ? <>took {span(Date.parse(t.endedAt) - began)}</> : null}{t.outputBytes ? ` · ${bytes(t.outputBytes)}` : ""}{t.pid && running ? ` · process ${t.pid}` : ""}{t.reason ? ` · ${visible(t.reason)}` : ""}</p>
          <Tail t={given} onEnd={setEnded} />
          {running && (
            <form class="inputline" onSubmit={(e) => { e.preventDefault(); void run("input", async () => { await api.taskInput(t, text + "\n"); setText(""); }); }}>
              <input aria-label="Input to the command" placeholder="Type a line for the command" value={text} onInput={(e) => setText(e.currentTarget.value)} dir="ltr" />
              <Button type="submit" disabled={!!busy}>Send line</Button>
              <Button kind="stop" icon="stop" disabled={busy === "stop"} onClick={() => run("stop", async () => { setEnded(await api.taskStop(t)); say("The command was stopped"); })}>Stop</Button>
            </form>
          )}
        </div>
      )}
    </Fold>
  );
}

export function TaskList({ session }: { session?: string }) {
  const [all, setAll] = useState(!!session);
  const tick = session ? byId(session)?.tasks : 0;
  const l = useLoaded(`${session} ${all} ${tick} ${session ? "" : Math.floor(now.value / 10_000)}`, () => api.tasks(session, all));
  const kept = useRef<api.Task[] | undefined>(undefined);
  if (l.value) kept.current = l.value;
  const list = kept.current && [...kept.current].reverse();
  return (
    <div class="panel">
      <div class="tools"><label class="check"><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> Also commands that have ended</label></div>
      {l.error ? <Failure error={l.error} retry={l.reload} /> : !list ? <Loading what="commands" /> : !list.length ? <Empty icon="commands" title="No commands">{session ? <p>Commands that run on in the background appear here with what they print.</p> : <p>No command of any session is running.</p>}</Empty>
        : <div class="stack">{list.slice(0, 100).map((t, i) => <Command key={t.sessionId + t.taskId} t={t} where={!session} open={!!session && i === 0 && t.status === "running"} />)}</div>}
    </div>
  );
}

export function TasksView() {
  return <main class="view" id="main" tabIndex={-1}><header class="view-head"><h1>Commands</h1></header><p class="lead muted"><Icon name="commands" size={15} /> What runs in the background, in all sessions.</p><TaskList /></main>;
}
