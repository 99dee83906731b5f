// app.js - the page: who is at it, which network and which view of it.

import {h, say, set} from "/web/dom.js";
import * as f from "/web/format.js";
import {Live} from "/web/live.js";
import {eventsView, findingsView, jobsView, nodeView, nodesView} from "/web/lists.js";
import {matrixView} from "/web/matrix.js";
import {pairView} from "/web/pair.js";
import {tokensView} from "/web/tokens.js";
import {topologyView} from "/web/topology.js";

const VIEWS = {findings: findingsView, topology: topologyView, pairs: matrixView, jobs: jobsView,
  nodes: nodesView, events: eventsView, tokens: tokensView, node: nodeView, pair: pairView};
const TABS = [["findings", "Findings"], ["topology", "Topology"], ["pairs", "Pairs"], ["jobs", "Jobs"],
  ["nodes", "Nodes"], ["events", "Events"], ["tokens", "Tokens"]];
const LOGIN = /^#login=([A-Za-z0-9_-]{43})$/;

const part = (id) => document.getElementById(id);

const app = {
  session: null, // who is at the page
  network: "",
  live: null,
  view: null,
  shown: "", // the hash of it

  /** The hash of a view: link("pair", "a", "b"). */
  link(...words) {
    return `#/${[app.network, ...words].map(encodeURIComponent).join("/")}`;
  },

  /** Asks the hub; throws its sentence. */
  async ask(method, path, body) {
    const answer = await fetch(path, {method, headers: body ? {"Content-Type": "application/json"} : {},
      body: body ? JSON.stringify(body) : undefined, cache: "no-store", credentials: "same-origin"});
    const said = answer.status === 204 ? null : await answer.json();
    if (answer.ok)
      return said;
    const error = new Error(said?.error || `the hub has answered ${answer.status}`);
    error.status = answer.status;
    throw error;
  },

  /** The same, and says what is refused, but for a status that may be; null then. */
  async attempt(what, mayBe) {
    try {
      return await what() ?? true;
    } catch (error) {
      if (error.status === 401)
        leave("You are logged out.");
      else if (error.status !== mayBe)
        app.notice(error.message || "The hub does not answer.");
      return null;
    }
  },

  async codes() {
    app.codesKnown ||= app.ask("GET", "/web/codes.json");
    return app.codesKnown;
  },

  notice(text) {
    const note = h("p", {}, text);
    part("notices").append(note);
    setTimeout(() => note.remove(), 8000);
  },
};

// ---- who is at it

function loginView(why) {
  const input = h("input", {id: "login", autocomplete: "off", spellcheck: "false", required: true});
  const form = h("form", {class: "card login", onsubmit: (event) => {
    event.preventDefault();
    const text = input.value.trim();
    logIn((LOGIN.exec(text.slice(text.lastIndexOf("#"))) || LOGIN.exec(`#login=${text}`))?.[1] || text);
  }}, h("h1", {tabindex: "-1"}, "Log in"), why ? h("p", {role: "alert", class: "bad"}, why) : null,
  h("p", {}, "On the hub, or with an admin token from elsewhere, ", h("code", {}, "weft web"),
    " prints a URL that is used once. Open it, or put it here:"),
  h("div", {class: "field"}, h("label", {for: "login"}, "URL or login"), input),
  h("button", {type: "submit"}, "Log in"));
  set(part("main"), form);
  input.focus();
}

async function logIn(login) {
  try {
    app.session = await app.ask("POST", "/v1/web/login", {login});
  } catch (error) {
    loginView(error.message);
    return;
  }
  await enter();
}

function leave(why) {
  app.live?.close();
  app.live = null;
  app.view = null;
  app.shown = "";
  app.session = null;
  for (const id of ["network-box", "tabs", "logout"])
    part(id).hidden = true;
  say(part("who"), "");
  say(part("link"), "");
  loginView(why);
}

async function logOut() {
  if (await app.attempt(() => app.ask("DELETE", "/v1/web/session")))
    leave("You are logged out.");
}

async function enter() {
  const answer = await app.attempt(() => app.ask("GET", "/v1/networks"));
  if (!answer)
    return;
  const names = answer.networks.map((n) => n.metadata.name);
  set(part("network"), names.map((name) => h("option", {}, name)));
  part("network-box").hidden = false;
  part("tabs").hidden = false;
  part("logout").hidden = false;
  say(part("who"), `${app.session.role} · hub ${app.session.hub} · weft ${app.session.version}`);
  app.networks = names;
  navigate();
}

// ---- which network and which view

function navigate() {
  if (!app.session)
    return;
  const words = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  const network = app.networks.includes(words[0]) ? words[0]
    : app.networks.includes(app.network) ? app.network : app.networks[0];
  const view = Object.hasOwn(VIEWS, words[1] || "") ? words[1] : "findings";
  if (!network) {
    set(part("main"), h("p", {}, "This hub has no network."));
    return;
  }
  if (network !== app.network || !app.live)
    watch(network);
  show(view, words.slice(2));
}

function watch(network) {
  app.live?.close();
  app.network = network;
  part("network").value = network;
  app.shown = "";
  app.live = new Live(network, schedule, (state) => {
    say(part("link"), {open: "● live", waiting: "○ connecting again", refused: "✖ not connected"}[state]);
    part("link").className = `link ${state}`;
    if (state === "refused")
      app.attempt(() => app.ask("GET", "/v1/web/session"));
  });
}

function drawTabs(view) {
  const tabs = TABS.filter(([name]) => name !== "tokens" || app.session.role !== "viewer");
  const current = {node: "nodes", pair: "pairs"}[view] || view;
  const had = part("tabs").contains(document.activeElement);
  set(part("tabs"), tabs.map(([name, words]) =>
    h("a", {href: app.link(name), "aria-current": name === current ? "page" : null}, words)));
  if (had)
    part("tabs").querySelector("[aria-current]")?.focus();
}

function show(name, words) {
  if (location.hash === app.shown && app.view)
    return;
  const first = !app.shown;
  const allowed = name !== "tokens" || app.session.role !== "viewer";
  const make = VIEWS[allowed ? name : "findings"];
  const byTab = part("tabs").contains(document.activeElement);
  app.shown = location.hash || "#";
  app.view = make(app, ...words.concat(["", ""]).slice(0, 2));
  drawTabs(allowed ? name : "findings");
  const title = h("h1", {tabindex: "-1"}, app.view.title);
  set(part("main"), title, app.view.el);
  document.title = `${app.view.title} · ${app.network} · weft`;
  if (app.live.at)
    app.view.update();
  else
    say(part("link"), "○ connecting");
  if (!first && !byTab) {
    title.focus({preventScroll: true});
    scrollTo(0, 0);
  }
}

// ---- what changes

let changes = null;

function schedule(changed) {
  if (changes) {
    for (const key of changed)
      changes.add(key);
    return;
  }
  changes = new Set(changed);
  requestAnimationFrame(() => {
    const all = changes;
    changes = null;
    if (!app.view || !app.live)
      return;
    app.view.update(all);
    // Once it is on the screen: from the event until then.
    setTimeout(() => {
      performance.clearMeasures();
      performance.measure("weft-shown", "weft-event");
      part("main").dataset.at = String(f.now());
    });
  });
}

setInterval(() => { if (app.live?.at) app.view?.tick?.(); }, 1000);
new ResizeObserver(() => { if (app.live?.at) app.view?.resize?.(); }).observe(part("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.view?.resize?.());
addEventListener("hashchange", () => {
  const login = LOGIN.exec(location.hash);
  if (login) {
    history.replaceState(null, "", location.pathname);
    logIn(login[1]);
  } else {
    navigate();
  }
});
part("network").addEventListener("change", (event) => {
  location.hash = `#/${encodeURIComponent(event.target.value)}/findings`;
});
part("logout").addEventListener("click", logOut);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  part("main").focus();
});

// The login leaves the address bar and the history before anything else is done.
const login = LOGIN.exec(location.hash);
if (login) {
  history.replaceState(null, "", location.pathname);
  await logIn(login[1]);
} else {
  try {
    app.session = await app.ask("GET", "/v1/web/session");
    await enter();
  } catch (error) {
    loginView(error.status === 401 ? "" : error.message);
  }
}
