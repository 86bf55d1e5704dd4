// Events for charts: the end of a log, and more of it on request.
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import type { Stored } from "./event";

/** useHistory reads the last n events of a session, and again when the session has grown. */
export function useHistory(id: string, position: number, n: number): { events: Stored[] | null; error: string; whole: boolean } {
  const [state, set] = useState<{ key: string; events: Stored[]; error: string }>({ key: "", events: [], error: "" });
  const key = `${id} ${n}`;
  useEffect(() => {
    if (!position) return;
    let gone = false;
    void (async () => {
      try {
        const have = state.key === key ? state.events : [];
        let after = have.at(-1)?.seq ?? Math.max(0, position - n);
        const events = [...have];
        while (after < position) {
          const p = await api.log(id, after, 500);
          if (gone || !p.events.length) break;
          events.push(...p.events.map((s) => ({ ...s, event: small(s.event) })));
          after = p.next;
        }
        if (!gone) set({ key, events, error: "" });
      } catch (e) { if (!gone) set({ key, events: [], error: String((e as Error).message) }); }
    })();
    return () => { gone = true; };
  }, [key, position]);
  return { events: state.key === key ? state.events : null, error: state.error, whole: position <= n };
}

// Charts do not show texts, so those of long sessions are not kept.
function small(e: Stored["event"]): Stored["event"] {
  const data: any = {};
  for (const [k, v] of Object.entries(e.data ?? {})) data[k] = typeof v === "string" && v.length > 300 ? v.slice(0, 300) : k === "result" || k === "toolRequests" || k === "attachments" ? undefined : v;
  return { ...e, data };
}
