// Unified diffs: what they change in numbers, and how they look.
import { useState } from "preact/hooks";
import { visible } from "./text";

export interface Stat { files: number; added: number; removed: number }

export function looksLikeDiff(s: string): boolean {
  return /^(diff --git |--- [^\n]*\n\+\+\+ |@@ -\d)/m.test(s.slice(0, 4000));
}

/** diffstat counts the files and lines of a diff. */
export function diffstat(diff: string): Stat {
  const stat = { files: 0, added: 0, removed: 0 };
  let body = false;
  for (const l of diff.split("\n")) {
    if (l.startsWith("@@")) { body = true; continue; }
    if (l.startsWith("+++ ") && !body) { stat.files++; continue; }
    if (l.startsWith("--- ") || l.startsWith("diff --git ")) { if (!body || l.startsWith("diff ")) { body = false; continue; } }
    if (l.startsWith("+++ ")) { stat.files++; continue; }
    if (l.startsWith("+")) stat.added++;
    else if (l.startsWith("-")) stat.removed++;
  }
  if (!stat.files && (stat.added || stat.removed)) stat.files = 1;
  return stat;
}

export function StatLine({ stat }: { stat: Stat }) {
  return (
    <span class="stat">
      {stat.files > 1 && <span>{stat.files} files </span>}
      <ins aria-label={stat.added + " lines added"}>+{stat.added}</ins>{" "}
      <del aria-label={stat.removed + " lines removed"}>−{stat.removed}</del>
    </span>
  );
}

interface Line { sign: string; text: string; kind: string }

function linesOf(diff: string): Line[] {
  const out: Line[] = [];
  for (const l of visible(diff).split("\n")) {
    if (l.startsWith("diff --git ") || l.startsWith("index ") || l.startsWith("--- ") || l.startsWith("\\ ")) continue;
    if (l.startsWith("+++ ")) { out.push({ sign: "", text: l.slice(4).replace(/^[ab]\//, "").replace(/\t.*$/, ""), kind: "file" }); continue; }
    if (l.startsWith("@@")) { out.push({ sign: "", text: l, kind: "hunk" }); continue; }
    if (l.startsWith("+")) out.push({ sign: "+", text: l.slice(1), kind: "add" });
    else if (l.startsWith("-")) out.push({ sign: "−", text: l.slice(1), kind: "del" });
    else out.push({ sign: "", text: l.replace(/^ /, ""), kind: "ctx" });
  }
  // What stands before the first hunk is no part of the change.
  const hunk = out.findIndex((l) => l.kind === "hunk");
  if (hunk > 0) out.splice(0, hunk, ...out.slice(0, hunk).filter((l) => l.kind === "file"));
  while (out.length && out[out.length - 1].kind === "ctx" && !out[out.length - 1].text) out.pop();
  return out;
}

/** Diff shows a diff; at first only so many lines of it, from its first hunk on. */
export function Diff({ diff, first = 200, file = true }: { diff: string; first?: number; file?: boolean }) {
  const [all, setAll] = useState(false);
  const lines = linesOf(diff.length > 400_000 && !all ? diff.slice(0, 400_000) : diff).filter((l) => file || l.kind !== "file");
  const shown = all ? lines.slice(0, 5000) : lines.slice(0, first);
  return (
    <div class="diff" dir="ltr" role="group" aria-label="Change">
      <div class="scroll" tabIndex={0} role="region" aria-label="Lines of the change">
        <table>
          <tbody>
            {shown.map((l, i) => (
              <tr key={i} class={l.kind}>
                <td class="sign" aria-label={l.kind === "add" ? "added" : l.kind === "del" ? "removed" : undefined}>{l.sign}</td>
                <td class="text">{l.text.length > 2000 ? l.text.slice(0, 2000) + "…" : l.text || " "}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {lines.length > shown.length && (
        <button type="button" class="more" onClick={() => setAll(true)}>
          {all ? `${lines.length - shown.length} more lines are in the log` : `Show ${lines.length - shown.length} more lines`}
        </button>
      )}
    </div>
  );
}
