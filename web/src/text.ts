// Text of models, commands and files as text that is safe to look at: no control characters,
// no invisible characters that change how a line reads, no escape codes.

// Characters that a reader does not see but that change what a line seems to say: controls,
// marks that change the direction, and characters without width.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

function shown(c: string): string {
  const code = c.codePointAt(0)!;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return "⟨U+" + code.toString(16).toUpperCase().padStart(4, "0") + "⟩";
}

/** visible replaces every unseen character by a visible sign. New lines and tabs stay. */
export function visible(s: string): string {
  return s.replace(/\r\n/g, "\n").replace(unseen, shown);
}

// Escape codes of terminals: CSI, OSC and other strings, and short ones.
const escapes = /\u001b\[[0-?]*[ -\/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -\/]*[0-~]|\u009b[0-?]*[ -\/]*[@-~]/g;

/** plain is the text of a terminal's output: without escape codes, and with each line as it
 * looked after the last carriage return. */
export function plain(s: string): string {
  const text = s.replace(escapes, "").replace(/\r\n/g, "\n");
  if (!text.includes("\r") && !text.includes("\b")) return visible(text);
  return visible(text.split("\n").map(overwritten).join("\n"));
}

function overwritten(line: string): string {
  const parts = line.split("\r");
  let out = "";
  for (const p of parts) {
    let q = p;
    while (q.includes("\b")) {
      const next = q.replace(/[^\u0008]\u0008|^\u0008+/g, "");
      if (next === q) break;
      q = next;
    }
    out = q.length >= out.length ? q : q + out.slice(q.length);
  }
  return out;
}

/** cut shortens a text to n characters and says so. */
export function cut(s: string, n: number): string {
  return s.length > n ? s.slice(0, n - 1).trimEnd() + "…" : s;
}

/** line is a text on one line, at most n characters long. */
export function line(s: string, n = 200): string {
  const text = visible(s.slice(0, n * 4)).replace(/\s+/g, " ").trim();
  return s.length > n * 4 ? text.slice(0, n - 1).trimEnd() + "…" : cut(text, n);
}

const month = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function clockTime(t: number): string {
  return Number.isFinite(t) ? clock.format(t) : "";
}

export function fullTime(t: number): string {
  return Number.isFinite(t) ? full.format(t) : "";
}

/** span is a length of time in the two largest units: "3 min", "2 h 5 min". */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  if (ms < 0) ms = 0;
  if (ms < 1000) return Math.round(ms) + " ms";
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1) + " s";
  if (s < 60) return Math.round(s) + " s";
  const min = Math.floor(s / 60);
  if (min < 60) return min < 10 && Math.round(s % 60) ? `${min} min ${Math.round(s % 60)} s` : `${min} min`;
  const h = Math.floor(min / 60);
  if (h < 48) return min % 60 ? `${h} h ${min % 60} min` : `${h} h`;
  return Math.floor(h / 24) + " days";
}

/** ago says how long before now a time is: "now", "3 min", "2 h", or a date. */
export function ago(t: number, now: number): string {
  const ms = now - t;
  if (!Number.isFinite(ms)) return "";
  if (ms < 45_000) return "now";
  if (ms < 3_600_000) return Math.max(1, Math.round(ms / 60_000)) + " min";
  if (ms < 86_400_000) return Math.round(ms / 3_600_000) + " h";
  if (ms < 7 * 86_400_000) return Math.round(ms / 86_400_000) + " d";
  return month.format(t);
}

export function usd(n: number | null | undefined): string {
  if (n === null || n === undefined) return "";
  if (n === 0) return "$0";
  if (n < 0.01) return "< $0.01";
  return "$" + (n < 10 ? n.toFixed(2) : n.toFixed(n < 100 ? 1 : 0));
}

export function count(n: number): string {
  if (n < 1000) return String(Math.round(n));
  if (n < 100_000) return (n / 1000).toFixed(1).replace(/\.0$/, "") + "k";
  if (n < 1_000_000) return Math.round(n / 1000) + "k";
  return (n / 1e6).toFixed(1).replace(/\.0$/, "") + "M";
}

export function bytes(n: number): string {
  if (n < 1000) return n + " B";
  if (n < 1e6) return (n / 1e3).toFixed(n < 1e4 ? 1 : 0) + " kB";
  return (n / 1e6).toFixed(1) + " MB";
}

export function plural(n: number, word: string, more = word + "s"): string {
  return n === 1 ? `1 ${word}` : `${n} ${more}`;
}

/** shortPath leaves out the middle of a long path. */
export function shortPath(p: string, max = 44): string {
  const clean = visible(p);
  if (clean.length <= max) return clean;
  const parts = clean.split("/");
  let tail = parts.pop() ?? "";
  while (parts.length && tail.length + parts[parts.length - 1].length + 3 < max) tail = parts.pop() + "/" + tail;
  return tail.length > max ? "…" + tail.slice(-max) : "…/" + tail;
}
