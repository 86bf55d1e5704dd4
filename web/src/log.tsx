// The log as it is stored, its chain of hashes, and a check of it.
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import type { Stored } from "./event";
import { Code } from "./markdown";
import { bytes, clockTime, fullTime, line, visible } from "./text";
import { Button, Clipped, Failure, Fold, Icon, Loading } from "./ui";

const page = 100;

export function Log({ id, position }: { id: string; position: number }) {
  const [events, setEvents] = useState<Stored[]>([]);
  const [hash, setHash] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [checked, setChecked] = useState<Awaited<ReturnType<typeof api.verify>> | null>(null);
  const [kind, setKind] = useState("");
  const first = events[0]?.seq ?? position + 1;
  const read = async (after: number, to: number) => {
    setBusy(true);
    try { const p = await api.log(id, after, to - after); if (p.hash) setHash(p.hash); if (p.damage) setError(p.damage); return p.events; }
    catch (e) { setError(String((e as Error).message)); return []; }
    finally { setBusy(false); }
  };
  useEffect(() => {
    if (!position) return;
    const after = events.at(-1)?.seq ?? Math.max(0, position - page);
    if (after >= position) return;
    let gone = false;
    void read(after, Math.min(position, after + 500)).then((l) => { if (!gone) setEvents((old) => [...old, ...l.filter((s) => s.seq > (old.at(-1)?.seq ?? 0))].slice(-1000)); });
    return () => { gone = true; };
  }, [id, position]);
  const older = async () => { const l = await read(Math.max(0, first - 1 - page), first - 1); setEvents((old) => [...l, ...old].slice(0, 1000)); };
  const verify = async () => { setBusy(true); setError(""); try { setChecked(await api.verify(id)); } catch (e) { setError(String((e as Error).message)); } setBusy(false); };
  const shown = events.filter((s) => !kind || s.event.type.includes(kind));
  return (
    <div class="panel">
      <div class="verify">
        <div>
          <p><b>{position.toLocaleString()}</b> events, each bound to all before it by a hash</p>
          {hash && <p class="small muted hash" dir="ltr">{hash}</p>}
        </div>
        <Button icon="check" disabled={busy} onClick={verify}>Verify the chain</Button>
      </div>
      <div role="status" aria-live="polite">{checked && (checked.damage ? <div class="banner bad"><Icon name="warn" /> The chain breaks at event {checked.damage.position}: {visible(checked.damage.reason)}</div> : <div class="banner good"><Icon name="check" /><span>All {checked.events.toLocaleString()} events are as they were stored.</span></div>)}</div>
      {error && <Failure error={error} />}
      <div class="tools"><input type="search" class="search" placeholder="Only kinds with…" aria-label="Filter by kind" value={kind} onInput={(e) => setKind(e.currentTarget.value)} /></div>
      {!events.length && !error ? <Loading what="the log" /> : (
        <>
          {first > 1 && <p><button type="button" class="more" disabled={busy} onClick={older}>Load {Math.min(page, first - 1)} earlier events</button></p>}
          <ol class="log">
            {shown.map((s) => (
              <li key={s.seq}>
                <Fold tight head={<><span class="log-seq">{s.seq}</span><span class="fold-title mono">{visible(s.event.type)}</span><span class="fold-sub" dir="auto">{summary(s)}</span><time title={fullTime(Date.parse(s.event.timestamp))}>{clockTime(Date.parse(s.event.timestamp))}</time></>}>
                  {() => { const json = JSON.stringify(s.event, null, 2); return <><p class="small muted">{s.event.id} · {bytes(json.length)}</p><Clipped text={json} max={6000} render={(t) => <Code text={visible(t)} />} /></>; }}
                </Fold>
              </li>
            ))}
          </ol>
        </>
      )}
    </div>
  );
}

function summary(s: Stored): string {
  const d = s.event.data ?? {};
  for (const k of ["content", "prompt", "message", "toolName", "question", "newModel", "reason", "status", "requestId", "toolCallId", "model", "name", "turnId"]) if (typeof d[k] === "string" && d[k]) return line(d[k], 100);
  return "";
}
