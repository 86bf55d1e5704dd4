// Markdown of models as elements. No HTML is ever parsed: what is not understood stays text.
// A text is cut into chunks at blank lines, and a chunk is drawn again only if it changed, so
// that a streamed answer costs what its last chunk costs.
import type { ComponentChildren, VNode } from "preact";
import { memo } from "./memo";
import { visible } from "./text";

const longest = 20_000; // characters of a chunk that are read as Markdown; longer ones are shown as they are

export function Markdown({ text }: { text: string }) {
  const parts = chunks(visible(text));
  return <div class="md" dir="auto">{parts.map((c, i) => <Chunk key={i} text={c} />)}</div>;
}

const Chunk = memo(function Chunk({ text }: { text: string }) {
  if (text.length > longest && !/^\s*(```|~~~)/.test(text)) return <pre class="astext">{text}</pre>;
  return <>{blocks(text.split("\n"), 0)}</>;
}, (a, b) => a.text === b.text);

/** chunks cuts a text at blank lines that are not inside a fence or a list. */
export function chunks(text: string): string[] {
  const out: string[] = [];
  let chunk: string[] = [];
  let fence = "";
  let blank = false;
  for (const l of text.split("\n")) {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(l);
    if (!fence && !l.trim()) { blank = true; if (chunk.length) chunk.push(l); continue; }
    if (!fence && blank && chunk.length && !/^\s{2,}\S/.test(l)) { out.push(chunk.join("\n").trimEnd()); chunk = []; }
    blank = false;
    chunk.push(l);
    if (mark) {
      if (!fence) fence = mark[1];
      else if (mark[1][0] === fence[0] && mark[1].length >= fence.length && l.trim() === mark[1]) fence = "";
    }
  }
  if (chunk.join("").trim()) out.push(chunk.join("\n").trimEnd());
  return out;
}

const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

function blocks(lines: string[], depth: number): VNode[] {
  const out: VNode[] = [];
  let i = 0;
  if (depth > 12) return [<p>{lines.join("\n")}</p>];
  while (i < lines.length) {
    const l = lines[i];
    if (!l.trim()) { i++; continue; }
    const fence = /^\s{0,3}(`{3,}|~{3,})\s*([^\s`]*)/.exec(l);
    if (fence) {
      const body: string[] = [];
      i++;
      while (i < lines.length && !(lines[i].trim().startsWith(fence[1]) && !lines[i].trim().replace(/[`~]/g, ""))) body.push(lines[i++]);
      i++;
      out.push(<Code text={body.join("\n")} lang={fence[2]} />);
      continue;
    }
    const head = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(l);
    if (head) {
      const level = Math.min(6, head[1].length + 2);
      const H = ("h" + level) as "h3";
      out.push(<H>{inline(head[2])}</H>);
      i++;
      continue;
    }
    if (/^\s{0,3}([-*_])\s*(\1\s*){2,}$/.test(l)) { out.push(<hr />); i++; continue; }
    if (/^\s{0,3}>/.test(l)) {
      const body: string[] = [];
      while (i < lines.length && /^\s{0,3}>/.test(lines[i])) body.push(lines[i++].replace(/^\s{0,3}>\s?/, ""));
      out.push(<blockquote>{blocks(body, depth + 1)}</blockquote>);
      continue;
    }
    if (l.includes("|") && i + 1 < lines.length && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[i + 1]) && lines[i + 1].includes("-")) {
      const rows: string[][] = [];
      const head = cells(l);
      i += 2;
      while (i < lines.length && lines[i].includes("|")) rows.push(cells(lines[i++]));
      out.push(
        <div class="scroll" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead><tr>{head.map((c) => <th scope="col">{inline(c)}</th>)}</tr></thead>
            <tbody>{rows.map((r) => <tr>{head.map((_, n) => <td>{inline(r[n] ?? "")}</td>)}</tr>)}</tbody>
          </table>
        </div>,
      );
      continue;
    }
    const first = item.exec(l);
    if (first) { i = list(lines, i, first, out, depth); continue; }
    const body: string[] = [];
    while (i < lines.length && lines[i].trim() && !(body.length && starts(lines[i]))) body.push(lines[i++]);
    out.push(<p>{inline(body.join("\n"))}</p>);
  }
  return out;
}

function starts(l: string): boolean {
  return /^\s{0,3}(#{1,6}\s|>|`{3,}|~{3,}|[-*+]\s|1[.)]\s)/.test(l);
}

function cells(l: string): string[] {
  return l.trim().replace(/^\||\|$/g, "").split("|").map((c) => c.trim());
}

function list(lines: string[], i: number, first: RegExpExecArray, out: VNode[], depth: number): number {
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const items: string[][] = [];
  while (i < lines.length) {
    const m = item.exec(lines[i]);
    if (m && m[1].length <= indent + 1 && m[1].length >= indent && /\d/.test(m[2]) === ordered) { items.push([m[3]]); i++; continue; }
    if (m && m[1].length < indent) break;
    if (!lines[i].trim()) { items[items.length - 1].push(""); i++; continue; }
    if (/^\s+/.test(lines[i]) && /^\s*/.exec(lines[i])![0].length > indent) {
      items[items.length - 1].push(lines[i].slice(Math.min(indent + 2, /^\s*/.exec(lines[i])![0].length)));
      i++;
      continue;
    }
    break;
  }
  const body = items.map((it) => {
    const task = /^\[([ xX])\]\s+/.exec(it[0]);
    const rest = task ? [it[0].slice(task[0].length), ...it.slice(1)] : it;
    const content: ComponentChildren = rest.length === 1 ? inline(rest[0]) : tight(blocks(rest, depth + 1));
    return task
      ? <li class="task"><span class={"box" + (task[1] === " " ? "" : " on")} role="img" aria-label={task[1] === " " ? "open" : "done"} />{content}</li>
      : <li>{content}</li>;
  });
  out.push(ordered ? <ol start={parseInt(first[2], 10)}>{body}</ol> : <ul>{body}</ul>);
  return i;
}

// The first paragraph of an item stands on the line of its bullet.
function tight(nodes: VNode[]): ComponentChildren {
  const [first, ...rest] = nodes;
  return first && first.type === "p" ? [...[(first.props as { children: ComponentChildren }).children], ...rest] : nodes;
}

export function Code({ text, lang }: { text: string; lang?: string }) {
  return (
    <figure class="code">
      {lang && <figcaption>{lang}</figcaption>}
      <pre tabIndex={0} dir="ltr"><code>{text}</code></pre>
    </figure>
  );
}

/** inline reads the marks inside a paragraph. It looks at each character a bounded number of times. */
export function inline(s: string, depth = 0): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  if (depth > 6) return [s];
  let text = "";
  const flush = () => { if (text) { out.push(text); text = ""; } };
  let i = 0;
  while (i < s.length) {
    const c = s[i];
    if (c === "\\" && i + 1 < s.length && /[\\`*_{}[\]()#+\-.!~|>]/.test(s[i + 1])) { text += s[i + 1]; i += 2; continue; }
    if (c === "`") {
      const ticks = /^`+/.exec(s.slice(i, i + 8))![0];
      const end = s.indexOf(ticks, i + ticks.length);
      if (end > 0 && end - i < longest) {
        flush();
        out.push(<code dir="ltr">{s.slice(i + ticks.length, end).replace(/^ (.*) $/, "$1")}</code>);
        i = end + ticks.length;
        continue;
      }
    }
    if (c === "*" || c === "_" || c === "~") {
      const two = s[i + 1] === c;
      const mark = two ? c + c : c;
      const inner = i + mark.length;
      const openable = inner < s.length && !/\s/.test(s[inner]) && (c !== "_" || i === 0 || !/\w/.test(s[i - 1])) && (c !== "~" || two);
      if (openable) {
        const end = closing(s, mark, inner);
        if (end > 0) {
          flush();
          const body = inline(s.slice(inner, end), depth + 1);
          out.push(c === "~" ? <del>{body}</del> : two ? <strong>{body}</strong> : <em>{body}</em>);
          i = end + mark.length;
          continue;
        }
      }
    }
    if (c === "[" || (c === "!" && s[i + 1] === "[")) {
      const from = c === "!" ? i + 2 : i + 1;
      const mid = s.indexOf("](", from);
      if (mid > 0 && mid - from < 1000 && !s.slice(from, mid).includes("\n\n")) {
        const end = s.indexOf(")", mid + 2);
        if (end > 0 && end - mid < 2000) {
          flush();
          const target = s.slice(mid + 2, end).trim().split(/\s/)[0];
          // A picture is not fetched: its address could tell somebody that it was looked at.
          out.push(<Link href={target}>{c === "!" ? "Picture: " + s.slice(from, mid) : inline(s.slice(from, mid), depth + 1)}</Link>);
          i = end + 1;
          continue;
        }
      }
    }
    if (c === "h" && (s.startsWith("http://", i) || s.startsWith("https://", i)) && (i === 0 || !/\w/.test(s[i - 1]))) {
      const m = /^https?:\/\/[^\s<>"'`)\]]{1,1000}/.exec(s.slice(i, i + 1100));
      if (m) {
        const url = m[0].replace(/[.,;:!?*]+$/, "");
        flush();
        out.push(<Link href={url}>{url}</Link>);
        i += url.length;
        continue;
      }
    }
    if (c === "\n") { flush(); out.push(<br />); i++; continue; } // models end a line where they mean to, as in the terminal
    text += c;
    i++;
  }
  flush();
  return out;
}

function closing(s: string, mark: string, from: number): number {
  let at = from;
  for (let tries = 0; tries < 20; tries++) {
    at = s.indexOf(mark, at);
    if (at < 0 || at - from > 5000) return -1;
    const alone = mark.length === 2 || (s[at + 1] !== mark && s[at - 1] !== mark);
    if (at > from && !/\s/.test(s[at - 1]) && alone && (mark[0] !== "_" || !/\w/.test(s[at + mark.length] ?? ""))) return at;
    at += mark.length;
  }
  return -1;
}

/** Link leads only to web and mail addresses, in a tab of its own that knows nothing of this one. */
export function Link({ href, children }: { href: string; children: ComponentChildren }) {
  const safe = /^(https?:\/\/|mailto:)/i.test(href);
  if (!safe) return <span class="nolink" title={"Not opened: " + visible(href)}>{children}</span>;
  let host = "";
  try { host = new URL(href).host; } catch { return <span class="nolink">{children}</span>; }
  return <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={host || href} referrerpolicy="no-referrer">{children}</a>;
}
