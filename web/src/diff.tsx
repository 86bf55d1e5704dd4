// Unified diffs: what they change in numbers, and how they look.
import { useMemo, useState } from "preact/hooks";
import { visible } from "./text";

export interface Stat { files: number; added: number; removed: number }

export function looksLikeDiff(s: string): boolean {
  return /^(diff --git |--- [^\n]*\n\+\+\+ |@@ -\d)/m.test(s.slice(0, 4000));
}

interface Line { sign: string; text: string; kind: string }

/** linesOf reads a diff. What is a head and what is a line of a file cannot be told by its
 * first characters: a line "++ x" that is added reads "+++ x". So heads are read only outside
 * of hunks, and a hunk has as many lines as its head says. A line that is no known head is shown. */
function linesOf(diff: string): Line[] {
  const out: Line[] = [];
  const all = visible(diff).split("\n");
  if (all.at(-1) === "") all.pop();
  let old = 0, now = 0; // lines that the hunk still has of each side
  for (let i = 0; i < all.length; i++) {
    const l = all[i];
    // Lines of a hunk begin with a sign or a blank, so that these two are always heads.
    if (l.startsWith("@@")) {
      const m = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(l);
      old = m ? Number(m[1] ?? 1) : Infinity;
      now = m ? Number(m[2] ?? 1) : Infinity;
      out.push({ sign: "", text: l, kind: "hunk" });
      continue;
    }
    if (l.startsWith("diff --git ")) { old = now = 0; continue; }
    if (old <= 0 && now <= 0) {
      if (!l || /^(index [\da-f]+\.\.|(create|new|deleted) file mode \d+$)/.test(l)) continue;
      if (l.startsWith("--- ") && all[i + 1]?.startsWith("+++ ") && (all[i + 2] ?? "@@").startsWith("@@")) {
        out.push({ sign: "", text: all[++i].slice(4).replace(/^[ab]\//, "").replace(/\t.*$/, ""), kind: "file" });
        continue;
      }
    }
    if (l.startsWith("+")) { now--; out.push({ sign: "+", text: l.slice(1), kind: "add" }); }
    else if (l.startsWith("-")) { old--; out.push({ sign: "−", text: l.slice(1), kind: "del" }); }
    else {
      if (l.startsWith(" ") || !l) { old--; now--; }
      out.push({ sign: "", text: l.replace(/^ /, ""), kind: "ctx" });
    }
  }
  return out;
}

/** diffstat counts the files and lines of a diff. */
export function diffstat(diff: string): Stat { return statOf(linesOf(diff)); }

function statOf(lines: Line[]): Stat {
  const of = (kind: string) => lines.filter((l) => l.kind === kind).length;
  const stat = { files: of("file"), added: of("add"), removed: of("del") };
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

const lineMost = 2000; // characters of a line that are shown at first
const step = 5000; // lines that are shown more with each click

/** LineText shows a line; of a long one its beginning, and the rest on request. */
function LineText({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  if (all || text.length <= lineMost) return <>{text || " "}</>;
  return <>{text.slice(0, lineMost)}<button type="button" class="rest" onClick={() => setAll(true)}>… the line is cut: show all {text.length.toLocaleString()} characters</button></>;
}

/** Diff shows a diff; at first only so many lines of it. The name of the file is left out on
 * request, if there is only one. */
export function Diff({ diff, first = 200, file = true }: { diff: string; first?: number; file?: boolean }) {
  const [most, setMost] = useState(first);
  const lines = useMemo(() => {
    const all = linesOf(diff);
    return !file && statOf(all).files < 2 ? all.filter((l) => l.kind !== "file") : all;
  }, [diff, file]);
  const shown = lines.slice(0, most);
  const rest = lines.length - shown.length;
  return (
    <div class="diff" dir="ltr" role="group" aria-label="Change">
      <div class="scroll" tabIndex={0} role="region" aria-label="Lines of the change">
        <table>
          <tbody>
            {shown.map((l, i) => (
              <tr key={i} class={l.kind}>
                <td class="sign" aria-label={l.kind === "add" ? "added" : l.kind === "del" ? "removed" : undefined}>{l.sign}</td>
                <td class="text"><LineText text={l.text} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rest > 0 && (
        <button type="button" class="more" onClick={() => setMost(most + step)}>
          {rest > step ? `Show ${step.toLocaleString()} of ${rest.toLocaleString()} more lines` : `Show ${rest.toLocaleString()} more lines`}
        </button>
      )}
    </div>
  );
}
