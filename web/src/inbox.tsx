// Everything that waits for a person, across all sessions.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { QuestionCard, objectOf, verbOf } from "./question";
import { answered, byId, failure, href, questions, reloadQuestions, sessions, titleOf, waiting } from "./state";
import { line, plural } from "./text";
import { Age, Boundary, Empty, Failure, Icon, Loading } from "./ui";

const chosen = signal("");

export function Inbox() {
  useEffect(() => { void reloadQuestions(); }, []);
  const list = waiting.value;
  if (!questions.value) return failure.value ? <Failure error={failure.value} retry={() => void reloadQuestions()} /> : <Loading what="the inbox" />;
  const current = list.find((q) => q.id === chosen.value) ?? list[0];
  const index = current ? list.indexOf(current) : -1;
  const pick = (i: number) => { const q = list[(i + list.length) % list.length]; if (q) chosen.value = q.id; };
  const ended = [...answered.value].slice(-3).reverse();
  if (!current) return (
    <main class="view" tabIndex={-1} id="main">
      <Empty icon="check" title="Nothing waits for you">
        <p>{sessions.value?.some((s) => s.state === "running") ? plural(sessions.value.filter((s) => s.state === "running").length, "session") + " at work. You will see it here when one of them needs a decision." : "When an agent needs a decision, it appears here, from every session."}</p>
        {ended.length > 0 && <p class="small">Last: {ended[0][1]}</p>}
        <p><a class="button" href={href("sessions")}>Look at the sessions</a></p>
      </Empty>
    </main>
  );
  return (
    <main class="view inbox" tabIndex={-1} id="main" onKeyDown={(e) => {
      if ((e.target as HTMLElement).closest("textarea,input,select")) return;
      if (e.key === "j" || e.key === "ArrowDown" && e.altKey) { e.preventDefault(); pick(index + 1); }
      if (e.key === "k" || e.key === "ArrowUp" && e.altKey) { e.preventDefault(); pick(index - 1); }
    }}>
      <header class="view-head">
        <h1>Inbox</h1>
        <div class="pager">
          <button type="button" class="iconbutton" aria-label="Previous question" disabled={list.length < 2} onClick={() => pick(index - 1)}><Icon name="back" /></button>
          <span aria-live="polite">{index + 1} of {list.length}</span>
          <button type="button" class="iconbutton" aria-label="Next question" disabled={list.length < 2} onClick={() => pick(index + 1)}><Icon name="next" /></button>
        </div>
      </header>
      <div class="inbox-columns">
        <nav class="inbox-list" aria-label="Open questions">
          <ul>
            {list.map((q) => {
              const s = q.session ?? byId(q.sessionId);
              return (
                <li key={q.id}>
                  <button type="button" class="entry" aria-current={q === current ? "true" : undefined} onClick={() => { chosen.value = q.id; }}>
                    <span class="entry-top"><b>{verbOf(q)}</b><Age t={Date.parse(q.since)} /></span>
                    <span class={"entry-object" + (q.kind === "permission" ? " mono" : "")} dir="auto">{line(objectOf(q), 90)}</span>
                    <span class="entry-where">{s ? line(titleOf(s), 48) : q.sessionId.slice(0, 8)}</span>
                  </button>
                </li>
              );
            })}
          </ul>
        </nav>
        <Boundary key={current.id + current.digest} what="This question"><QuestionCard q={current} place={String(index)} /></Boundary>
      </div>
    </main>
  );
}
