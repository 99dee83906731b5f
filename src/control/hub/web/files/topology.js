// topology.js - a network as a picture: a few nodes on a circle with all their lines, many in boxes
// by island with the lines that are in trouble, and those of the node that is chosen.

import {h, s, set, swap} from "/web/dom.js";
import {KIND_WORDS, kindOf, subjectNodes} from "/web/live.js";
import {nodeState, pairsOf} from "/web/lists.js";
import {plural} from "/web/format.js";

const CIRCLE_MAX = 24;
const LABELS_MAX = 60; // on a narrow screen
const LINES_MAX = 600;

function onCircle(nodes, width) {
  const hubs = nodes.filter((n) => n.kind === "hub");
  const others = nodes.filter((n) => n.kind !== "hub");
  const height = Math.max(320, Math.min(width, 600));
  const rx = Math.max(90, width / 2 - (width < 600 ? 62 : 110));
  const ry = height / 2 - 44;
  const places = new Map();
  others.forEach((n, i) => {
    const angle = 2 * Math.PI * i / Math.max(others.length, 1) - Math.PI / 2;
    places.set(n.name, {x: width / 2 + rx * Math.cos(angle), y: height / 2 + ry * Math.sin(angle)});
  });
  hubs.forEach((n, i) => places.set(n.name,
    {x: width / 2 + (i - (hubs.length - 1) / 2) * 80, y: height / 2}));
  return {places, boxes: [], height, labels: true};
}

/** Boxes side by side, as many as fit, each with its nodes in a grid. */
function inBoxes(nodes, width) {
  const labels = width >= 700 || nodes.length <= LABELS_MAX;
  const cell = labels ? {w: 92, h: 44} : {w: 26, h: 26};
  const pad = 10;
  const head = 24;
  const islands = new Map();
  for (const n of nodes) {
    const island = n.kind === "hub" ? "\0hubs" : n.island || "\uffff";
    islands.set(island, [...(islands.get(island) || []), n]);
  }
  const fit = Math.max(1, Math.floor((width - 2 * pad - 2) / cell.w));
  const places = new Map();
  const boxes = [];
  let x = 1;
  let y = 1;
  let tallest = 0;
  for (const key of [...islands.keys()].sort()) {
    const members = islands.get(key);
    const columns = Math.min(fit, members.length,
      labels ? Math.max(2, Math.ceil(Math.sqrt(members.length * cell.h / cell.w * 3))) : fit);
    const w = Math.max(columns * cell.w, 84) + 2 * pad;
    const tall = Math.ceil(members.length / columns) * cell.h + head + pad;
    if (x > 1 && x + w > width) {
      x = 1;
      y += tallest + 12;
      tallest = 0;
    }
    boxes.push({x, y, w, h: tall, members, title: key === "\0hubs" ? plural(members.length, "hub")
      : `${key === "\uffff" ? "no island" : key} · ${members.length}`});
    members.forEach((n, i) => places.set(n.name, {x: x + pad + (i % columns + 0.5) * cell.w,
      y: y + head + (Math.floor(i / columns) + 0.5) * cell.h - (labels ? 8 : 0)}));
    x += w + 12;
    tallest = Math.max(tallest, tall);
  }
  return {places, boxes, height: y + tallest + 1, labels};
}

function shape(kind) {
  switch (kind) {
  case "hub":
    return s("rect", {x: -8, y: -8, width: 16, height: 16, rx: 3, class: "shape"});
  case "relay":
    return s("path", {d: "M0-9 9 0 0 9-9 0z", class: "shape"});
  case "stock":
    return s("path", {d: "M0-9 8.5 6.5h-17z", class: "shape"});
  }
  return s("circle", {r: 7, class: "shape"});
}

/** The signs of a legend: how a pair goes. */
export function legend(kinds) {
  return h("ul", {class: "legend", "aria-label": "What the lines and colours mean"}, kinds.map((kind) =>
    h("li", {}, h("span", {class: `swatch ${kind}`, "aria-hidden": "true"}), KIND_WORDS[kind])));
}

const SHAPES = [["node", "node"], ["hub", "hub"], ["relay", "relay"], ["stock", "without an agent"]];

function shapes() {
  return h("ul", {class: "legend", "aria-label": "What the shapes mean"}, SHAPES.map(([kind, words]) =>
    h("li", {}, s("svg", {width: 20, height: 20, viewBox: "-10 -10 20 20", "aria-hidden": "true", class: "topology"},
      s("g", {class: "node"}, shape(kind))), words)),
  h("li", {}, s("svg", {width: 20, height: 20, viewBox: "-10 -10 20 20", "aria-hidden": "true", class: "topology"},
    s("g", {class: "node down"}, shape("node"), cross())), "not reachable"));
}

function cross() {
  return s("path", {d: "M-4-4 4 4M4-4-4 4", class: "cross"});
}

export function topologyView(app) {
  const lines = s("g", {});
  const boxes = s("g", {});
  const points = s("g", {});
  const svg = s("svg", {class: "topology", role: "group", "aria-label": "Nodes; arrow keys move, Enter chooses"},
    boxes, lines, points);
  const frame = h("div", {class: "frame"}, svg);
  const detail = h("aside", {class: "card", "aria-live": "polite", "aria-label": "The chosen node"},
    h("p", {class: "soft"}, "Choose a node to see its lines."));
  const el = h("section", {}, h("div", {class: "legends"}, shapes(),
    legend(["lan", "direct", "relay", "stream", "trouble"])), frame, detail);
  let layout = null;
  let shown = "";
  let chosen = null;
  let current = null;
  let marks = new Map();

  function move(key) {
    const from = layout.places.get(current);
    let best = null;
    for (const [name, at] of layout.places) {
      const dx = at.x - from.x;
      const dy = at.y - from.y;
      const along = {ArrowRight: dx, ArrowLeft: -dx, ArrowDown: dy, ArrowUp: -dy}[key];
      const aside = key === "ArrowLeft" || key === "ArrowRight" ? Math.abs(dy) : Math.abs(dx);
      if (along > 1 && (!best || along + 3 * aside < best.far))
        best = {name, far: along + 3 * aside};
    }
    if (best)
      focus(best.name);
  }

  function focus(name) {
    marks.get(current)?.setAttribute("tabindex", "-1");
    current = name;
    marks.get(name).setAttribute("tabindex", "0");
    marks.get(name).focus();
  }

  function choose(name) {
    chosen = name === chosen ? null : name;
    update();
  }

  points.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow"))
      move(event.key);
    else if (event.key === "Enter" || event.key === " ")
      choose(current);
    else if (event.key === "Escape" && chosen)
      choose(chosen);
    else
      return;
    event.preventDefault();
  });

  function draw(nodes, width) {
    layout = nodes.length <= CIRCLE_MAX ? onCircle(nodes, width) : inBoxes(nodes, width);
    svg.setAttribute("viewBox", `0 0 ${width} ${layout.height}`);
    svg.setAttribute("height", layout.height);
    set(boxes, layout.boxes.map((box) => s("g", {}, s("rect", {class: "box", x: box.x, y: box.y,
      width: box.w, height: box.h, rx: 8}), s("text", {class: "title", x: box.x + 10, y: box.y + 16}, box.title))));
    marks = new Map();
    set(points, nodes.map((n) => {
      const at = layout.places.get(n.name);
      const mark = s("g", {transform: `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)})`, role: "button",
        tabindex: "-1", onclick: () => { focus(n.name); choose(n.name); }},
      s("circle", {r: 13, class: "ring"}), shape(n.kind), cross(), s("circle", {cx: 8, cy: -8, r: 4, class: "dot"}),
      layout.labels ? s("text", {y: 24, class: "name"}, n.name.length > 13 ? `${n.name.slice(0, 12)}…` : n.name) : null,
      s("title", {}, n.name));
      marks.set(n.name, mark);
      return mark;
    }));
    if (!marks.has(current))
      current = nodes[0]?.name;
    marks.get(current)?.setAttribute("tabindex", "0");
  }

  // The pairs of a machine that is not there follow from that, and are shown if it is chosen.
  function wanted() {
    const found = [];
    const away = new Set(app.live.nodes().filter((n) => !n.reachable).map((n) => n.name));
    const all = app.live.names.length <= CIRCLE_MAX;
    app.live.names.forEach((a, i) => {
      for (let j = i + 1; j < app.live.names.length; j++) {
        const pair = app.live.pairAt(i, j);
        const b = app.live.names[j];
        if (!pair || !layout.places.has(a) || !layout.places.has(b))
          continue;
        const kind = kindOf(pair.state);
        if (kind === "off" || kind === "idle" && a !== chosen && b !== chosen)
          continue;
        if (a === chosen || b === chosen || !away.has(a) && !away.has(b) && (all || kind === "trouble"))
          found.push({a, b, kind, dim: chosen && a !== chosen && b !== chosen});
      }
    });
    const order = {trouble: 2};
    return found.sort((x, y) => (order[y.kind] || 0) - (order[x.kind] || 0)).slice(0, LINES_MAX).reverse();
  }

  function drawDetail(node) {
    if (!node) {
      swap(detail, h("p", {class: "soft"}, "Choose a node to see its lines."));
      return;
    }
    const pairs = pairsOf(app, node.name);
    const counts = {};
    for (const [, pair] of pairs)
      counts[kindOf(pair.state)] = (counts[kindOf(pair.state)] || 0) + 1;
    const found = app.live.findingsOf(node.name);
    swap(detail, h("div", {}, h("h2", {}, h("a", {href: app.link("node", node.name)}, node.name)),
      h("p", {}, nodeState(node), ` · ${node.kind}${node.island ? ` of island ${node.island}` : ""} · ${node.address4}`),
      h("p", {}, Object.entries(counts).map(([kind, n]) => h("span", {class: `kind ${kind}`}, `${n} ${KIND_WORDS[kind]} `))),
      h("ul", {}, pairs.filter(([, pair]) => kindOf(pair.state) === "trouble").slice(0, 8).map(([other, pair]) =>
        h("li", {}, h("a", {href: app.link("pair", node.name, other)}, other), `: ${pair.state}`))),
      h("ul", {}, found.slice(0, 8).map((x) => h("li", {}, `${x.severity}: ${x.subject}: ${x.title}`)))));
  }

  function update() {
    const nodes = app.live.nodes();
    const width = Math.floor(svg.getBoundingClientRect().width) || 340;
    const now = `${width} ${nodes.map((n) => `${n.name}/${n.island || ""}/${n.kind}`).join()}`;
    const found = {};
    if (now !== shown) {
      const had = points.contains(document.activeElement);
      draw(nodes, width);
      shown = now;
      if (had && current)
        marks.get(current).focus();
    }
    for (const finding of app.live.findings())
      for (const name of subjectNodes(finding))
        found[name] = (found[name] || 0) + 1;
    for (const n of nodes) {
      const mark = marks.get(n.name);
      mark.setAttribute("class", `node${n.reachable ? "" : " down"}${found[n.name] ? " found" : ""}` +
        `${n.name === chosen ? " chosen" : ""}`);
      mark.setAttribute("aria-pressed", String(n.name === chosen));
      mark.setAttribute("aria-label", `${n.name}, ${n.kind}, ${n.reachable ? "reachable" : "not reachable"}` +
        `${n.island ? `, island ${n.island}` : ""}${found[n.name] ? `, ${plural(found[n.name], "finding")}` : ""}`);
    }
    const made = wanted().map((line) => {
      const p = layout.places.get(line.a);
      const q = layout.places.get(line.b);
      return s("path", {class: `line ${line.kind}${line.dim ? " dim" : ""}`,
        d: `M${p.x.toFixed(1)} ${p.y.toFixed(1)}L${q.x.toFixed(1)} ${q.y.toFixed(1)}`});
    });
    set(lines, made);
    drawDetail(nodes.find((n) => n.name === chosen));
  }
  return {title: "Topology", el, update, resize: update};
}
