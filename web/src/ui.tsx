// Small parts that every view uses.
import { effect, signal } from "@preact/signals";
import { Component, type ComponentChildren, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { serverNow, skew } from "./clock";
import { ago, fullTime } from "./text";

/** now is the time of the server. It ticks every ten seconds, so that ages on the page grow. */
export const now = signal(serverNow());
setInterval(() => { if (!document.hidden) now.value = serverNow(); }, 10_000);
document.addEventListener("visibilitychange", () => { now.value = serverNow(); });
effect(() => { now.value = Date.now() + skew.value; });

const paths: Record<string, string> = {
  inbox: "M3.5 12.5 6 4.5h12l2.5 8v6h-17zM3.5 12.5h5l1.2 2.5h4.6l1.2-2.5h5",
  sessions: "M4 5h16M4 10h10M4 15h16M4 20h7",
  commands: "M5 7l4.5 5L5 17M12 17h7",
  cost: "M4 20V10m5.5 10V4m5.5 16v-7m5 7V8",
  memory: "M5 4h11l3 3v13H5zM9 9h6M9 13h6M9 17h3",
  rules: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  back: "M14.5 5.5 8 12l6.5 6.5",
  next: "M9.5 5.5 16 12l-6.5 6.5",
  down: "M12 5v14m0 0 6-6m-6 6-6-6",
  send: "M12 19V5m0 0-6 6m6-6 6 6",
  stop: "M7 7h10v10H7z",
  plus: "M12 5v14M5 12h14",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6 6 18",
  warn: "M12 4 2.8 19.5h18.4zM12 10v4m0 2.8v.2",
  tool: "M14.5 6.5a4 4 0 0 0-5 5L4 17l3 3 5.5-5.5a4 4 0 0 0 5-5L15 12l-3-3z",
  think: "M9 18h6m-5 3h4M12 3a6 6 0 0 0-3.5 10.9V15.5h7v-1.6A6 6 0 0 0 12 3z",
  fork: "M7 4v6a4 4 0 0 0 4 4h2a4 4 0 0 1 4 4v2M7 10v10",
  rewind: "M4 12a8 8 0 1 0 3-6.2M4 4v5h5",
  jobs: "M12 7v5l3.5 2M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17z",
  file: "M6 3.5h8l4 4v13H6zM14 3.5v4h4",
  chevron: "M9 6l6 6-6 6",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1",
  branch: "M7 4v16M7 14c0-4 10-2 10-7M17 4v3M5 4h4M15 4h4M5 20h4",
  clock: "M12 7v5l3 2M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17z",
  folder: "M3.5 6h6l2 2.5h9V19h-17z",
  exit: "M14 4H6v16h8M11 12h9m0 0-3.5-3.5M20 12l-3.5 3.5",
};

export function Icon({ name, size = 18 }: { name: keyof typeof paths | string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width={name === "more" ? 2.8 : 1.7} stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">
      <path d={paths[name] ?? paths.more} />
    </svg>
  );
}

export function Age({ t, prefix = "", suffix = "" }: { t: number; prefix?: string; suffix?: string }) {
  if (!Number.isFinite(t)) return null;
  const text = ago(t, now.value);
  return <time dateTime={new Date(t).toISOString()} title={fullTime(t)}>{prefix}{text}{text === "now" ? "" : suffix}</time>;
}

export function Chip({ kind, children }: { kind: string; children: ComponentChildren }) {
  return <span class={"chip " + kind}>{children}</span>;
}

export function Empty({ icon, title, children }: { icon: string; title: string; children?: ComponentChildren }) {
  return <div class="empty"><Icon name={icon} size={30} /><h2>{title}</h2>{children && <div class="muted">{children}</div>}</div>;
}

export function Loading({ what }: { what: string }) {
  return <p class="loading" role="status">Loading {what}…</p>;
}

export function Failure({ error, retry }: { error: string; retry?: () => void }) {
  return (
    <div class="banner bad" role="alert">
      <Icon name="warn" /><span>{error}</span>
      {retry && <button type="button" class="button small" onClick={retry}>Try again</button>}
    </div>
  );
}

/** Boundary keeps an error in one part of the page from taking the other parts away. */
export class Boundary extends Component<{ what: string; children?: ComponentChildren }, { error: string }> {
  state = { error: "" };
  static getDerivedStateFromError(e: unknown) { return { error: String((e as Error)?.message ?? e) || "unknown error" }; }
  render() {
    if (!this.state.error) return <>{this.props.children}</>;
    return <Failure error={`${this.props.what} cannot be shown here: ${this.state.error}. The command line shows it.`} retry={() => this.setState({ error: "" })} />;
  }
}

export type ButtonProps = JSX.IntrinsicElements["button"] & { kind?: string; icon?: string };
export function Button({ kind = "", icon, children, class: cls, ...rest }: ButtonProps) {
  return <button type="button" {...rest} class={`button ${kind} ${(cls as string) ?? ""}`}>{icon && <Icon name={icon} />}{children}</button>;
}

/** toasts are short messages about what was just done. */
export const toast = signal<{ text: string; kind: "good" | "bad" } | null>(null);
let toastTimer = 0;
export function say(text: string, kind: "good" | "bad" = "good") {
  toast.value = { text, kind };
  clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => { toast.value = null; }, kind === "bad" ? 9000 : 4000);
}

export function Toast() {
  const t = toast.value;
  return <div class="toasts" role="status" aria-live="polite">{t && <div class={"toast " + t.kind}><Icon name={t.kind === "good" ? "check" : "warn"} />{t.text}</div>}</div>;
}

/** Dialog asks something in the middle of the page. Escape closes it. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => { ref.current?.showModal(); }, []);
  return (
    <dialog ref={ref} class="dialog" aria-labelledby="dialog-title" onCancel={(e) => { e.preventDefault(); onClose(); }} onClick={(e) => { if (e.target === ref.current) onClose(); }}>
      <div class="dialog-body">
        <h2 id="dialog-title">{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** Fold is a part that is opened by its heading; its content exists only while it is open. */
export function Fold({ head, open = false, class: cls = "", children, tight }: { head: ComponentChildren; open?: boolean; class?: string; tight?: boolean; children: () => ComponentChildren }) {
  const [is, set] = useState(open);
  return (
    <div class={`fold ${cls} ${is ? "open" : ""} ${tight ? "tight" : ""}`}>
      <button type="button" class="fold-head" aria-expanded={is} onClick={() => set(!is)}><span class="turner"><Icon name="chevron" size={14} /></span>{head}</button>
      {is && <div class="fold-body">{children()}</div>}
    </div>
  );
}

/** Clipped shows the beginning of a long text, and the rest on request. */
export function Clipped({ text, max = 12_000, render }: { text: string; max?: number; render: (t: string) => ComponentChildren }) {
  const [limit, set] = useState(max);
  const rest = text.length - limit;
  return (
    <>
      {render(rest > 0 ? text.slice(0, limit) : text)}
      {rest > 0 && <button type="button" class="more" onClick={() => set(Math.min(text.length, limit * 8))}>Show {Math.min(rest, limit * 7).toLocaleString()} more of {text.length.toLocaleString()} characters</button>}
    </>
  );
}

/** useLoaded loads something once for each key, and again on reload. */
export function useLoaded<T>(key: string, load: () => Promise<T>): { value: T | undefined; error: string; reload: () => void } {
  const [state, set] = useState<{ key: string; value?: T; error: string }>({ key: "", error: "" });
  const [n, again] = useState(0);
  useEffect(() => {
    let gone = false;
    load().then((value) => { if (!gone) set({ key, value, error: "" }); }, (e) => { if (!gone) set({ key, error: String(e?.message ?? e) }); });
    return () => { gone = true; };
  }, [key, n]);
  return { value: state.key === key ? state.value : undefined, error: state.key === key ? state.error : "", reload: () => again((x) => x + 1) };
}
