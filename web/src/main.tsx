// The console: a client of the HTTP API, as the command line is one of the protocol.
import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { skew } from "./clock";
import { Inbox } from "./inbox";
import { CostView, JobsView, MemoryView, RulesView } from "./pages";
import { SessionView } from "./session";
import { Sessions } from "./sessions";
import { at, failure, href, reload, reloadQuestions, theme, titleOf, byId, version, waiting } from "./state";
import { link, start } from "./stream";
import { prefetch } from "./transcript";
import { TasksView } from "./tasks";
import { span } from "./text";
import { Boundary, Button, Failure, Icon, Loading, Toast, say } from "./ui";

// The token of a link leaves the address at once, so that it is neither in the history nor
// on the screen. It is spent only by a click: a program that opens links to look at them
// does not use it up.
const token = signal("");
function takeToken(): void {
  const m = /^#signin=([\w.~-]+)/.exec(location.hash);
  if (!m) return;
  token.value = m[1];
  history.replaceState(null, "", location.pathname);
}
takeToken();
addEventListener("hashchange", takeToken);

function SignIn() {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [spent, setSpent] = useState(false);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setError("");
    try {
      await api.signin(token.value);
      token.value = "";
    } catch (x) {
      if (x instanceof api.Problem && x.code === "link_spent") {
        setSpent(true);
        token.value = "";
        setError("This link was used or is too old.");
        if (api.signedIn.value) say("This link was used or is too old. You are signed in already.", "bad");
      }
      else setError(x instanceof api.Problem ? x.message : "abide cannot be reached.");
    }
    setBusy(false);
  };
  return (
    <main class="signin" id="main">
      <div class="signin-card">
        <img src="icon.svg" alt="" width="44" height="44" />
        <h1>abide</h1>
        {token.value && !spent ? (
          <form onSubmit={submit}>
            <p>Sign this browser in to <b>{location.host}</b>.</p>
            <Button type="submit" kind="primary wide" disabled={busy} autofocus>{busy ? "Signing in…" : "Sign in"}</Button>
            <p class="small muted">The link works once. Then it is this browser that is signed in, until you sign out.</p>
          </form>
        ) : (
          <>
            <p>{spent ? "Get a new link" : "To sign in, get a link"} on the machine where abide runs:</p>
            <pre class="command" dir="ltr">abide open</pre>
            <p class="small muted">Open the link that it prints in this browser.</p>
          </>
        )}
        {error && <p class="bad-text" role="alert">{error}</p>}
      </div>
    </main>
  );
}

const places: [string, string, string][] = [["inbox", "Inbox", "inbox"], ["sessions", "Sessions", "sessions"], ["commands", "Commands", "commands"], ["cost", "Cost", "cost"], ["memory", "Memory", "memory"], ["rules", "Rules", "rules"], ["jobs", "Jobs", "jobs"]];
const themes: [string, string][] = [["auto", "System"], ["light", "Light"], ["dark", "Dark"]];

function Nav() {
  const here = at.value[0] === "s" ? "sessions" : at.value[0];
  const n = waiting.value.length;
  return (
    <nav class="nav" aria-label="Main">
      <a class="brand" href={href("inbox")}><img src="icon.svg" alt="" width="24" height="24" /><span>abide</span></a>
      <ul>
        {places.map(([key, name, icon], i) => (
          <li key={key} class={i > 3 ? "extra" : ""}><a href={href(key)} aria-current={here === key ? "page" : undefined}><Icon name={icon} size={20} /><span>{name}</span>{key === "inbox" && n > 0 && <span class="badge" aria-label={`${n} waiting`}>{n}</span>}</a></li>
        ))}
        <li class="only-phone"><a href={href("more")} aria-current={here === "more" || ["memory", "rules", "jobs"].includes(here) ? "page" : undefined}><Icon name="more" size={20} /><span>More</span></a></li>
      </ul>
      <Foot />
    </nav>
  );
}

function Foot() {
  return (
    <div class="nav-foot">
      <Connection />
      <label class="theme"><span>Theme</span><select value={theme.value} onChange={(e) => { theme.value = e.currentTarget.value; }}>{themes.map(([v, name]) => <option key={v} value={v}>{name}</option>)}</select></label>
      <button type="button" class="link" onClick={() => void api.signout()}><Icon name="exit" size={15} /> Sign out</button>
      {version.value && <p class="small muted">{version.value}</p>}
    </div>
  );
}

function Connection() {
  const m = link.value;
  const text = { stream: "Live", poll: "Live, by asking", connecting: "Connecting…", offline: "Not connected" }[m];
  return <p class={"connection " + m} role="status"><i aria-hidden="true" />{text}</p>;
}

const clockRead = signal(false);
const about = (ms: number) => span(ms < 90_000 ? ms : Math.round(ms / 60_000) * 60_000);

/** Clock says that the clock of this device is wrong, until somebody has read it. */
function Clock() {
  if (!skew.value || clockRead.value || link.value === "offline") return null;
  return (
    <div class="offline clock" role="status">
      <Icon name="clock" size={16} />
      <span>This device's clock is {about(Math.abs(skew.value))} {skew.value > 0 ? "behind" : "ahead of"} that of abide. Ages and waiting times go by abide's clock.</span>
      <button type="button" class="iconbutton" aria-label="Close" onClick={() => { clockRead.value = true; }}><Icon name="cross" size={16} /></button>
    </div>
  );
}

function More() {
  return (
    <main class="view" id="main" tabIndex={-1}>
      <header class="view-head"><h1>More</h1></header>
      <ul class="rows">{places.slice(4).map(([key, name, icon]) => <li key={key}><a class="session-row" href={href(key)}><Icon name={icon} /><span class="row-main"><span class="row-title">{name}</span></span><Icon name="next" size={16} /></a></li>)}</ul>
      <Foot />
    </main>
  );
}

function View() {
  const [name, id, tab] = at.value;
  switch (name) {
    case "s": return <SessionView id={id ?? ""} tab={tab ?? ""} />;
    case "sessions": return <Sessions />;
    case "commands": return <TasksView />;
    case "cost": return <CostView />;
    case "memory": return <MemoryView />;
    case "rules": return <RulesView />;
    case "jobs": return <JobsView />;
    case "more": return <More />;
  }
  return <Inbox />;
}

function App() {
  const known = api.signedIn.value;
  const [error, setError] = useState("");
  const check = () => { setError(""); api.checkSignIn().then((me) => { version.value = me?.version ?? ""; }, (e) => setError(String(e.message))); };
  useEffect(check, []);
  const first = useRef(true);
  // A new place is announced: the focus moves to it.
  const where = at.value.slice(0, 2).join("/");
  useEffect(() => {
    if (first.current) { first.current = false; return; }
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [where]);
  if (token.value || known === false) return <SignIn />;
  if (error && known === null) return <main class="signin" id="main"><div class="signin-card"><Failure error={error} retry={check} /></div></main>;
  if (known === null) return <Loading what="abide" />;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
      <div class="app">
        <Nav />
        <Clock />
        {link.value === "offline" && <div class="offline" role="alert"><Icon name="warn" size={16} /> abide cannot be reached. What you see may be old; it goes on by itself.</div>}
        <Boundary key={at.value.slice(0, 2).join("/")} what="This page"><View /></Boundary>
      </div>
      <Toast />
    </>
  );
}

// What is looked at is asked for before anything else.
if (api.key() && at.value[0] === "s" && at.value[1] && !at.value[2]) prefetch(at.value[1]);
let started = false;
effect(() => {
  if (api.signedIn.value && !started) { started = true; start(); void reload(); void reloadQuestions(); }
});
effect(() => {
  const n = waiting.value.length;
  const [name, id] = at.value;
  const s = name === "s" && id ? byId(id) : undefined;
  document.title = (n ? `(${n}) ` : "") + (s ? titleOf(s).slice(0, 60) + " · " : "") + "abide";
});
effect(() => { if (link.value === "stream") failure.value = ""; });

render(<App />, document.getElementById("app")!);
