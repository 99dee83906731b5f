// pair.js - one pair of nodes: both ways, what each end says of it, how it has been since the page was
// opened, and before that as the hub has kept it.

import {h, keyed, row, s, say, set} from "/web/dom.js";
import * as f from "/web/format.js";
import {KIND_WORDS, decode, kindOf, pairKey} from "/web/live.js";
import {cards, eventRow, events, eventsTable, tickAges} from "/web/lists.js";

const WIDEST = 720;
let wide = WIDEST; // px; letters are as large in a narrow window
const HEIGHT = 150;

/** A time on an axis of so many seconds. */
function when(t, wide_s) {
  return wide_s > 86400 ? f.date(t) : f.clock(t);
}

/** Values over time as steps, each lasting until the next one; @points: [time, value or undefined]. */
function chart(title, points, from, to, text) {
  const known = points.filter(([, v]) => v !== undefined).map(([, v]) => v);
  if (!known.length)
    return h("figure", {}, h("figcaption", {}, `${title}: nothing was measured`));
  const most = Math.max(...known) * 1.1 || 1;
  const x = (t) => 46 + (wide - 56) * (t - from) / Math.max(to - from, 1);
  const y = (v) => HEIGHT - 22 - (HEIGHT - 36) * v / most;
  let path = "";
  let pen = false;
  points.forEach(([t, v], i) => {
    const until = i + 1 < points.length ? points[i + 1][0] : to;
    if (v === undefined) {
      pen = false;
      return;
    }
    path += `${pen ? "L" : "M"}${x(Math.max(t, from)).toFixed(1)} ${y(v).toFixed(1)}H${x(until).toFixed(1)}`;
    pen = true;
  });
  const words = `${title}: now ${text(known[known.length - 1])}, between ${text(Math.min(...known))} and ` +
    `${text(Math.max(...known))} since ${when(from, to - from)}`;
  return h("figure", {}, h("figcaption", {}, words),
    s("svg", {viewBox: `0 0 ${wide} ${HEIGHT}`, class: "chart", role: "img", "aria-label": words},
      [0, 0.5, 1].map((part) => [s("path", {class: "grid", d: `M46 ${y(most * part / 1.1)}H${wide - 10}`}),
        s("text", {x: 42, y: y(most * part / 1.1) + 4, "text-anchor": "end"}, part ? text(most * part / 1.1) : "0")]),
      s("text", {x: 46, y: HEIGHT - 4}, when(from, to - from)),
      s("text", {x: wide - 10, y: HEIGHT - 4, "text-anchor": "end"}, when(to, to - from)),
      s("path", {class: "curve", d: path})));
}

/** Which way packets went, as a strip. */
function strip(points, from, to) {
  const x = (t) => 46 + (wide - 56) * (t - from) / Math.max(to - from, 1);
  const words = points.map(([t, pair]) => `${when(t, to - from)} ${pair ? pair.state : "nothing known"}`).join(", ");
  return h("figure", {}, h("figcaption", {}, "How packets went"),
    s("svg", {viewBox: `0 0 ${wide} 22`, class: "chart", role: "img", "aria-label": words},
      points.map(([t, pair], i) => {
        const begin = x(Math.max(t, from));
        const end = x(i + 1 < points.length ? points[i + 1][0] : to);
        const kind = pair ? kindOf(pair.state) : "none";
        return [s("rect", {x: begin, y: 2, width: Math.max(end - begin, 1), height: 18, class: `fill ${kind}`}),
          end - begin > 60 ? s("text", {x: begin + 4, y: 15, class: `on ${kind}`}, pair ? pair.state : "") : null];
      })));
}

/** Charts of the points that the hub keeps, one each @each seconds; where one is missing nothing is drawn. */
function keptCharts(nodes, list, each) {
  const from = list[0].at;
  const to = list[list.length - 1].at + each;
  const points = [];
  list.forEach((p, i) => {
    points.push([p.at, p]);
    if (i + 1 < list.length && list[i + 1].at > p.at + each)
      points.push([p.at + each, null]);
  });
  const of = (value) => points.map(([t, p]) => [t, p ? value(p) : undefined]);
  const parts = [strip(points, from, to)];
  if (list.some((p) => p.rttMs))
    parts.push(chart("Round trip", of((p) => p.rttMs && p.rttMs * 1000), from, to, f.rtt));
  if (list.some((p) => p.jitterMs))
    parts.push(chart("Jitter", of((p) => p.jitterMs && p.jitterMs * 1000), from, to, f.rtt));
  for (const [name, i] of [[`${nodes[0]} → ${nodes[1]}`, 0], [`${nodes[1]} → ${nodes[0]}`, 1]]) {
    if (list.some((p) => p.lossPercent?.[i] > 0))
      parts.push(chart(`Loss ${name}`, of((p) => p.lossPercent?.[i] == null ? undefined : p.lossPercent[i] * 10000),
        from, to, f.loss));
    if (list.some((p) => p.bytesPerSecond?.[i]))
      parts.push(chart(`Goodput ${name}`, of((p) => p.bytesPerSecond?.[i]), from, to, f.rate));
  }
  return parts;
}

const WAY_HEADS = ["Way", "Loss", "Goodput", "Path", "Last handshake", "Probe in the tunnel", "Probe beside it"];

function reach(part, name) {
  if (!part || part[name] === undefined)
    return "–";
  const rtt = part[name === "tunnel" ? "tunnelRttMs" : "underlayRttMs"];
  return `${part[name]}${rtt ? `, ${f.rtt(Math.round(rtt * 1000))}` : ""}${part.stale ? " (old)" : ""}`;
}

function way(from, to, pair, status) {
  const agent = status?.[`agent/${from}`];
  const probe = status?.[`probe/${from}`];
  const age = agent?.handshakeAgeSeconds;
  return [`${from} → ${to}`, f.loss(pair?.lossAb), f.rate(pair?.goodAb),
    agent?.path ? `${agent.path}${agent.endpoint ? ` to ${agent.endpoint}` : ""}${agent.stale ? " (old)" : ""}` : "–",
    agent?.stale ? "old" : typeof age === "number" ? `${f.span(age)} ago` : "–", reach(probe, "tunnel"),
    reach(probe, "underlay")];
}

export function pairView(app, a, b) {
  const head = h("p", {class: "big"});
  const why = h("p", {});
  const list = h("div", {class: "cards"});
  const body = h("tbody", {});
  const history = h("div", {class: "charts"});
  const kept = h("div", {class: "charts"});
  const made = eventsTable("What has happened to it, by the hub: the newest first.");
  const swap = h("a", {}, "From the other end");
  const el = h("section", {}, head, why, list,
    h("div", {class: "table"}, h("table", {}, h("thead", {}, h("tr", {}, WAY_HEADS.map((x) => h("th", {scope: "col"}, x)))), body)),
    h("h2", {}, "Since this page was opened"),
    h("p", {class: "soft"}, "The page keeps these samples itself, the last 240 changes of a pair."),
    history, kept, h("h2", {}, "Events"), made.el, h("p", {}, swap));
  let status = null;
  let hub = null; // the history that the hub keeps
  let asked = 0;
  let shownEvents = -1;

  async function load() {
    asked = f.now();
    const number = app.live.rows.get("net")?.events;
    // The hub has no object of a pair of which nobody has said anything.
    const object = app.live.pair(a, b) && await app.attempt(() =>
      app.ask("GET", `/v1/networks/${app.network}/objects/MeshEdge/${pairKey(a, b)}`), 404);
    status = object?.status || null;
    hub = await app.attempt(() =>
      app.ask("GET", `/v1/networks/${app.network}/edges/${pairKey(a, b)}/history`), 404);
    if (number !== shownEvents) {
      shownEvents = number;
      const all = await app.attempt(() => events(app, a, b)) || [];
      keyed(made.body, all, (e) => String(e.number), (e) => String(e.number), eventRow);
      if (!all.length)
        set(made.body, h("tr", {}, h("td", {colspan: "4"}, "None.")));
    }
    show();
  }

  function show() {
    const pair = app.live.pair(a, b);
    const kind = pair ? kindOf(pair.state) : "none";
    const facts = pair ? [KIND_WORDS[kind], kind === "trouble" ? pair.state : null,
      pair.rtt ? `RTT ${f.rtt(pair.rtt)}` : null].filter(Boolean).join(" · ") : "nothing is known of this pair";
    set(head, h("span", {class: `kind ${kind}`}, kind === "trouble" ? "✖ " : "", facts));
    say(why, status?.hub?.why || "");
    cards(app, list, app.live.findings().filter((x) =>
      [pairKey(a, b), `${a}>${b}`, `${b}>${a}`].includes(x.subject)));
    set(body, row(WAY_HEADS, way(a, b, pair, status)), row(WAY_HEADS,
      way(b, a, pair && {lossAb: pair.lossBa, goodAb: pair.goodBa}, status)));
    drawHistory();
    drawKept();
  }

  function drawKept() {
    const parts = [];
    for (const [title, list, each] of [["The last hour", hub?.minutes, 60], ["The last week", hub?.hours, 3600]])
      if (list?.length)
        parts.push(h("h2", {}, title), ...keptCharts(hub.nodes, list, each));
    set(kept, parts);
  }

  function drawHistory() {
    const to = f.now();
    const from = app.live.opened;
    wide = Math.max(260, Math.min(WIDEST, Math.floor(history.clientWidth) || WIDEST));
    const first = a < b ? 1 : -1;
    const points = (app.live.history.get(pairKey(a, b)) || []).map(([t, code]) => [t, decode(code)]);
    const of = (name) => points.map(([t, pair]) => [t, pair?.[name]]);
    const there = first > 0 ? ["lossAb", "goodAb"] : ["lossBa", "goodBa"];
    const back = first > 0 ? ["lossBa", "goodBa"] : ["lossAb", "goodAb"];
    const figures = [strip(points, from, to), chart("Round trip", of("rtt"), from, to, f.rtt)];
    for (const [name, text, i] of [["Loss", f.loss, 0], ["Goodput", f.rate, 1]])
      for (const [words, field] of [[`${a} → ${b}`, there[i]], [`${b} → ${a}`, back[i]]])
        if (points.some(([, pair]) => pair?.[field]))
          figures.push(chart(`${name} ${words}`, of(field), from, to, text));
    set(history, points.length ? figures : h("p", {class: "soft"}, "Nothing has been said of it yet."));
  }

  swap.setAttribute("href", app.link("pair", b, a));
  return {title: `${a} ⇄ ${b}`, el, update(changed) {
    const mine = !changed || [`m/${a}`, `m/${b}`, "net", `n/${a}`, `n/${b}`].some((key) => changed.has(key));
    if (f.now() - asked > (mine ? 5 : 15))
      load();
    show();
  }, tick() {
    tickAges(list);
    if (f.now() - asked > 15)
      load();
    drawHistory();
  }};
}
