// lists.js - the views that are lists: findings, jobs, nodes and events.

import {h, keyed, say, set, row} from "/web/dom.js";
import * as f from "/web/format.js";
import {KIND_WORDS, kindOf, pairKey, subjectNodes} from "/web/live.js";

const SIGNS = {critical: "✖", warning: "▲", note: "●"};

/** A severity as a sign, a word and a colour. */
export function badge(severity) {
  return h("span", {class: `badge ${severity}`}, h("span", {"aria-hidden": "true"}, SIGNS[severity] || "●"),
    ` ${severity}`);
}

/** What a finding is about, with links to whom it names. */
function subject(app, finding) {
  const nodes = subjectNodes(finding).filter((name) => app.live.rows.has(`n/${name}`));
  if ((finding.about === "pair" || finding.about === "way") && nodes.length === 2)
    return h("a", {href: app.link("pair", ...nodes)}, finding.about === "way"
      ? `${nodes[0]} → ${nodes[1]}` : `${nodes[0]} ⇄ ${nodes[1]}`);
  if (finding.about === "node" && nodes.length)
    return h("a", {href: app.link("node", nodes[0])}, nodes[0]);
  if (finding.about === "job" || finding.about === "rank")
    return h("a", {href: app.link("jobs")}, finding.subject);
  return finding.subject;
}

// What the code means, asked for when somebody wants to know.
function meaning(app, finding) {
  const body = h("div", {class: "soft"});
  return h("details", {ontoggle: async (event) => {
    if (!event.target.open || body.firstChild)
      return;
    const code = (await app.codes())[finding.code];
    if (code)
      set(body, h("p", {}, code.means), h("p", {}, "To see it in a test network: ", code.provoke));
  }}, h("summary", {}, `What ${finding.code} means`), body);
}

/** A finding as a card. */
export function card(app, finding) {
  return h("article", {class: `card ${finding.severity}`},
    h("header", {}, badge(finding.severity), h("code", {class: "soft"}, finding.code),
      h("span", {class: "age soft", "data-since": finding.since}, f.since(finding.since))),
    h("h3", {}, subject(app, finding), ": ", finding.title),
    h("p", {}, finding.text),
    h("p", {class: "fix"}, h("b", {}, "What to do: "), finding.fix),
    meaning(app, finding));
}

/** Ages go on by themselves. */
export function tickAges(root) {
  for (const node of root.querySelectorAll("[data-since]"))
    say(node, f.since(Number(node.dataset.since)));
}

export function cards(app, parent, findings) {
  keyed(parent, findings, (x) => x.key || `${x.code}/${x.subject}`, (x) => JSON.stringify(x),
    (x) => card(app, x));
}

// ---- findings

function tile(name, value, kind, href) {
  return h("a", {class: `tile ${kind || ""}`, href}, h("span", {class: "value"}, value),
    h("span", {class: "soft"}, name));
}

const PAIRS = {direct: "pairs direct", lan: "pairs on a LAN", relay: "pairs relayed", stream: "pairs in TLS"};

function tiles(app) {
  const nodes = app.live.nodes();
  const reached = nodes.filter((n) => n.reachable).length;
  const findings = app.live.findings();
  const counts = app.live.counts();
  const held = app.live.all("j/").filter(([, job]) => job.heldUpBy?.length).length;
  const jobs = app.live.all("j/").filter(([, job]) => job.present?.length).length;
  const critical = findings.filter((x) => x.severity === "critical").length;
  return [
    tile("findings", String(findings.length), critical ? "critical" : findings.length ? "warning" : "good",
      app.link("findings")),
    tile("nodes reachable", `${reached} of ${nodes.length}`, reached < nodes.length ? "critical" : "good",
      app.link("nodes")),
    tile("pairs in trouble", String(counts.trouble || 0), counts.trouble ? "critical" : "good",
      app.link("pairs")),
    ...Object.entries(PAIRS).filter(([kind]) => counts[kind]).map(([kind, words]) =>
      tile(words, String(counts[kind]), "", app.link("pairs"))),
    tile("jobs running", String(jobs), "", app.link("jobs")),
    held ? tile("jobs held up", String(held), "critical", app.link("jobs")) : null,
  ];
}

export function findingsView(app) {
  const top = h("div", {class: "tiles"});
  const list = h("div", {class: "cards"});
  const none = h("p", {class: "soft"}, "Nothing is found wrong.");
  const kinds = h("div", {class: "choices", role: "group", "aria-label": "Severities to show"});
  const shown = new Set(["critical", "warning", "note"]);
  for (const severity of shown) {
    const id = `show-${severity}`;
    kinds.append(h("span", {}, h("input", {type: "checkbox", id, checked: true, onchange: (event) => {
      if (event.target.checked)
        shown.add(severity);
      else
        shown.delete(severity);
      update();
    }}), h("label", {for: id}, badge(severity))));
  }
  function update() {
    const findings = app.live.findings().filter((x) => shown.has(x.severity));
    keyed(top, tiles(app).filter(Boolean), (x) => x.lastChild.textContent, (x) => x.outerHTML, (x) => x);
    none.hidden = findings.length > 0;
    cards(app, list, findings);
  }
  return {title: "Findings", el: h("section", {}, top, kinds, none, list), update,
    tick: () => tickAges(list)};
}

// ---- jobs

function names(app, list, max = 12) {
  const shown = list.slice(0, max).map((name, i) => [i ? ", " : "",
    app.live.rows.has(`n/${name}`) ? h("a", {href: app.link("node", name)}, name) : name]);
  return [shown, list.length > max ? ` and ${list.length - max} more` : ""];
}

function jobCard(app, name, job) {
  const present = job.present || [];
  const held = job.heldUpBy || [];
  const culprits = [...new Set(held.flatMap((x) => subjectNodes(x)))];
  const waiting = present.filter((x) => !culprits.includes(x));
  const facts = [`run ${job.run}`, f.plural(present.length, "node")];
  if (job.step !== undefined)
    facts.push(`step ${job.step}, ${job.stepsPerSecond.toFixed(2)} a second`);
  if (job.limitHits)
    facts.push(`met a limit ${f.plural(job.limitHits, "time")}: ${job.lastLimit || ""}`);
  return h("article", {class: `card ${held.length ? held[0].severity : present.length ? "good" : ""}`},
    h("header", {}, h("span", {class: "soft"}, facts.join(" · "))),
    h("h2", {}, name, " ", held.length ? h("span", {class: "badge critical"}, "✖ held up")
      : present.length ? h("span", {class: "badge good"}, "✔ runs") : h("span", {class: "badge"}, "nobody is in it")),
    culprits.length ? h("p", {class: "waits"}, h("span", {class: "who bad"}, names(app, culprits)),
      h("span", {}, " ← ", waiting.length ? ["waited for by ", names(app, waiting)] : "nobody else is there")) : null,
    held.map((x) => card(app, x)),
    job.nccl?.filter((x) => x.verdict === "other").map((x) =>
      h("p", {}, h("b", {}, `${x.node}: `), x.text)),
    present.length ? h("details", {}, h("summary", {}, "Its nodes"), h("p", {}, names(app, present, 64))) : null);
}

export function jobsView(app) {
  const list = h("div", {class: "cards"});
  const none = h("p", {class: "soft"});
  return {title: "Jobs", el: h("section", {}, none, list), update() {
    const jobs = app.live.all("j/").sort((x, y) =>
      (y[1].heldUpBy?.length || 0) - (x[1].heldUpBy?.length || 0) ||
      (y[1].present?.length || 0) - (x[1].present?.length || 0) || (x[0] < y[0] ? -1 : 1));
    say(none, app.live.rows.get("net")?.jobsElsewhere ? "Another hub serves the jobs of this network."
      : jobs.length ? "" : "This network has no jobs.");
    keyed(list, jobs, (x) => x[0], (x) => JSON.stringify(x[1]), (x) => jobCard(app, x[0], x[1]));
  }, tick: () => tickAges(list)};
}

// ---- nodes

const NODE_HEADS = ["Node", "State", "Address", "Island", "Kind", "Engine", "Version", "Found"];

export function nodeState(node) {
  return node.reachable
    ? h("span", {class: "ok"}, "● reachable", node.inTls ? " in TLS" : "")
    : h("span", {class: "bad"}, "✖ not reachable",
      node.lastSeen ? `, last seen ${f.date(node.lastSeen)}` : "");
}

function nodeRow(app, node) {
  return row(NODE_HEADS, [h("a", {href: app.link("node", node.name)}, node.name), nodeState(node),
    node.address4, node.island || "–", node.kind, node.engine || "–", node.version || "–",
    node.found ? h("span", {class: "bad"}, f.plural(node.found, "finding")) : "–"]);
}

export function nodesView(app) {
  const filter = h("input", {type: "search", id: "node-filter", placeholder: "name, island, kind, address",
    oninput: () => update()});
  const body = h("tbody", {});
  const count = h("p", {class: "soft", role: "status"});
  const el = h("section", {}, h("p", {class: "choices"}, h("label", {for: "node-filter"}, "Show only"), filter),
    count, h("div", {class: "table"}, h("table", {}, h("thead", {}, h("tr", {}, NODE_HEADS.map((head) =>
      h("th", {scope: "col"}, head)))), body)));
  function update() {
    const words = filter.value.toLowerCase();
    const found = {};
    for (const finding of app.live.findings())
      for (const name of subjectNodes(finding))
        found[name] = (found[name] || 0) + 1;
    const all = app.live.nodes();
    const nodes = all.filter((n) => `${n.name} ${n.island || ""} ${n.kind} ${n.address4}`.toLowerCase().includes(words))
      .map((n) => ({...n, found: found[n.name] || 0}))
      .sort((x, y) => x.reachable - y.reachable || y.found - x.found || (x.name < y.name ? -1 : 1));
    const left = app.live.rows.get("net")?.leftOut;
    say(count, `${nodes.length} of ${f.plural(all.length, "node")}${left ? `; ${left} more: weft nodes` : ""}`);
    keyed(body, nodes, (n) => n.name, (n) => JSON.stringify(n), (n) => nodeRow(app, n));
  }
  return {title: "Nodes", el, update};
}

// ---- one node

const PAIR_HEADS = ["Other node", "How", "RTT", "Loss to it", "Loss from it", "To it", "From it"];

export function pairCells(app, self, other, pair) {
  const kind = kindOf(pair.state);
  return [h("a", {href: app.link("pair", self, other)}, other),
    h("span", {class: `kind ${kind}`}, kind === "trouble" ? `✖ ${pair.state}` : KIND_WORDS[kind]),
    f.rtt(pair.rtt), f.loss(pair.lossAb), f.loss(pair.lossBa), f.rate(pair.goodAb), f.rate(pair.goodBa)];
}

export function pairsOf(app, name) {
  return app.live.names.map((other) => [other, app.live.pair(name, other)]).filter(([, pair]) => pair)
    .sort((x, y) => (kindOf(y[1].state) === "trouble") - (kindOf(x[1].state) === "trouble") ||
      (y[1].rtt || 0) - (x[1].rtt || 0) || (x[0] < y[0] ? -1 : 1));
}

export function nodeView(app, name) {
  const facts = h("dl", {class: "facts"});
  const list = h("div", {class: "cards"});
  const body = h("tbody", {});
  const none = h("p", {class: "soft"});
  const el = h("section", {}, facts, list, h("h2", {}, "Its pairs"), none,
    h("div", {class: "table"}, h("table", {}, h("thead", {}, h("tr", {}, PAIR_HEADS.map((head) =>
      h("th", {scope: "col"}, head)))), body)));
  return {title: name, el, update() {
    const node = app.live.rows.get(`n/${name}`);
    if (!node) {
      set(facts, h("div", {}, h("dt", {}, "node"), h("dd", {}, `There is no node "${name}" now.`)));
      return;
    }
    const rows = [["state", nodeState(node)], ["addresses", [node.address4, node.address6].filter(Boolean).join(", ")],
      ["kind", node.kind], ["island", node.island], ["engine", node.engine], ["version", node.version],
      ["seen at", node.endpoint], ["subnets behind it", node.routes?.join(", ")],
      ["not direct, though they should be", node.alarms && f.plural(node.alarms, "pair")]];
    keyed(facts, rows.filter(([, value]) => value), (x) => x[0],
      (x) => (x[1] instanceof Node ? x[1].outerHTML : String(x[1])),
      (x) => h("div", {}, h("dt", {}, x[0]), h("dd", {}, x[1])));
    cards(app, list, app.live.findingsOf(name));
    const pairs = pairsOf(app, name);
    say(none, pairs.length ? "" : app.live.index.has(name) ? "Nobody has said anything about its pairs."
      : `The matrix has the first ${app.live.names.length} nodes by name, and this is none of them: weft get edges.`);
    keyed(body, pairs, (x) => x[0], (x) => JSON.stringify(x[1]),
      (x) => row(PAIR_HEADS, pairCells(app, name, x[0], x[1])));
  }, tick: () => tickAges(list)};
}

// ---- events

const EVENT_HEADS = ["When", "What", "About", "Text"];

/** The events of the hub, newest first; of a pair, only those about it and its ends. */
export async function events(app, a, b) {
  const answer = await app.ask("GET", `/v1/networks/${app.network}/events`);
  const wanted = a && [pairKey(a, b), a, b, `${a}>${b}`, `${b}>${a}`];
  return answer.events.filter((e) => !wanted || wanted.includes(e.object)).reverse();
}

export function eventRow(event) {
  return row(EVENT_HEADS, [h("time", {datetime: new Date(event.time * 1000).toISOString()}, f.date(event.time)),
    event.code ? `${event.type} ${event.code}` : event.type, event.object, event.text]);
}

export function eventsTable(caption) {
  const body = h("tbody", {});
  return {body, el: h("div", {class: "table"}, h("table", {}, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, EVENT_HEADS.map((head) => h("th", {scope: "col"}, head)))), body))};
}

export function eventsView(app) {
  const made = eventsTable("What has happened to edges and agents, newest first: the last 512, since the hub's start.");
  let last = -1;
  return {title: "Events", el: h("section", {}, made.el), async update() {
    const number = app.live.rows.get("net")?.events;
    if (number === last)
      return;
    last = number;
    const list = await app.attempt(() => events(app));
    if (!list)
      return;
    keyed(made.body, list, (e) => String(e.number), (e) => String(e.number), eventRow);
    if (!list.length)
      set(made.body, h("tr", {}, h("td", {colspan: "4"}, "Nothing has happened yet.")));
  }};
}
