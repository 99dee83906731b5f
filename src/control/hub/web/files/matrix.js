// matrix.js - all pairs at once. A row is the sender and a column who receives, so that loss and
// goodput may differ by direction. Colour is not the only sign: cells have letters where there is
// space, and shapes where there is little; the line above says what the chosen cell is; and a table
// has the worst ones.

import {h, keyed, row, say, set} from "/web/dom.js";
import * as f from "/web/format.js";
import {KIND_WORDS, kindOf} from "/web/live.js";

const LETTERS = {lan: "L", direct: "D", relay: "R", stream: "T", trouble: "!", idle: "·", off: "-"};
const LABEL = 12; // px of a cell from which on rows and columns have names
const LETTER = 13;
const CELL_MAX = 34;

/** What a cell may show; bins: from which value on, the best first. */
const METRICS = {
  state: {name: "How they go"},
  rtt: {name: "Round trip", of: (p) => p.rtt, bins: [1, 1000, 5000, 20000, 80000], text: f.rtt,
    bad: 1, unit: "RTT is what weft probe --report measures."},
  loss: {name: "Loss", of: (p) => p.lossAb, bins: [0, 100, 1000, 10000, 50000], text: f.loss, bad: 1,
    unit: "From row to column, by WireGuard's counters; grey where it is not known."},
  goodput: {name: "Goodput", of: (p) => p.goodAb, bins: [1, 1e6, 1e7, 1e8, 1e9], text: f.rate, bad: -1,
    unit: "From row to column, what the connections of jobs carry."},
};

function binOf(metric, value) {
  let bin = 0;
  while (bin + 1 < metric.bins.length && value >= metric.bins[bin + 1])
    bin++;
  return bin;
}

export function describe(a, b, pair) {
  if (a === b)
    return `${a}: itself`;
  if (!pair)
    return `${a} → ${b}: nothing is known`;
  const kind = kindOf(pair.state);
  const parts = [kind === "trouble" ? `trouble: ${pair.state}` : KIND_WORDS[kind]];
  if (pair.path && kind === "trouble")
    parts.push(`path ${pair.path}`);
  if (pair.rtt)
    parts.push(`RTT ${f.rtt(pair.rtt)}`);
  if (pair.lossAb !== undefined || pair.lossBa !== undefined)
    parts.push(`loss ${f.loss(pair.lossAb)} there, ${f.loss(pair.lossBa)} back`);
  if (pair.goodAb || pair.goodBa)
    parts.push(`goodput ${f.rate(pair.goodAb)} there, ${f.rate(pair.goodBa)} back`);
  return `${a} → ${b}: ${parts.join(", ")}`;
}

const HEADS = ["From", "To", "How", "RTT", "Loss", "Goodput"];

export function matrixView(app) {
  const metricSelect = h("select", {id: "metric", onchange: () => update()},
    Object.entries(METRICS).map(([key, metric]) => h("option", {value: key}, metric.name)));
  const orderSelect = h("select", {id: "order", onchange: () => update()},
    h("option", {value: "name"}, "name"), h("option", {value: "island"}, "island"));
  const canvas = h("canvas", {tabindex: "0", role: "application", "aria-roledescription": "matrix of pairs",
    "aria-describedby": "matrix-help matrix-cell", "aria-label": "Pairs; rows send, columns receive"});
  const readout = h("p", {id: "matrix-cell", class: "readout", role: "status", "aria-live": "polite"});
  const key = h("ul", {class: "legend"});
  const unit = h("p", {class: "soft"});
  const frame = h("div", {class: "frame"}, canvas);
  const body = h("tbody", {});
  const caption = h("caption", {});
  const el = h("section", {},
    h("div", {class: "choices"}, h("label", {for: "metric"}, "Show"), metricSelect,
      h("label", {for: "order"}, "in the order of"), orderSelect),
    h("p", {id: "matrix-help", class: "soft"}, "Arrow keys, Home and End move the cell; Enter opens the pair."),
    key, unit, readout, frame,
    h("div", {class: "table"}, h("table", {}, caption, h("thead", {}, h("tr", {}, HEADS.map((head) =>
      h("th", {scope: "col"}, head)))), body)));
  const base = document.createElement("canvas");
  let order = [];
  let cell = 10;
  let left = 0;
  let top = 0;
  let at = {i: 0, j: 1};

  function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function sortNames() {
    const names = [...app.live.names];
    if (orderSelect.value === "island") {
      const island = (name) => app.live.rows.get(`n/${name}`)?.island || "\uffff";
      names.sort((x, y) => (island(x) < island(y) ? -1 : island(x) > island(y) ? 1 : x < y ? -1 : 1));
    }
    order = names.map((name) => app.live.index.get(name));
  }

  // Sizes, so that all of it fits the width.
  function measure(g) {
    const width = Math.floor(canvas.getBoundingClientRect().width) || 340;
    const n = Math.max(order.length, 1);
    g.font = "11px system-ui, sans-serif";
    left = 0;
    top = 0;
    cell = Math.min(CELL_MAX, width / n);
    if (cell >= LABEL && order.length) {
      const longest = Math.max(...order.map((i) => g.measureText(app.live.names[i]).width));
      left = Math.min(Math.ceil(longest) + 8, width * 0.3);
      top = left;
      cell = Math.min(CELL_MAX, (width - left) / n);
    }
    if (cell < LABEL) {
      left = top = 0;
      cell = width / n;
    }
    return {width, height: Math.ceil(top + n * cell)};
  }

  function colours() {
    const kinds = {};
    for (const kind of Object.keys(LETTERS))
      kinds[kind] = style(`--${kind}`);
    const steps = [1, 2, 3, 4, 5].map((i) => style(`--step-${i}`));
    return {kinds, steps, ink: style("--ink"), paper: style("--paper"), none: style("--none")};
  }

  // Shapes for cells without a letter: a triangle of what is relayed, half of what is in TLS, and a
  // cross of what is in trouble.
  function mark(g, kind, x, y, size) {
    if (kind === "relay" || kind === "stream") {
      g.beginPath();
      g.moveTo(x, y + size);
      g.lineTo(x + size, y + size);
      g.lineTo(kind === "relay" ? x : x + size, y + (kind === "relay" ? 0 : size / 2));
      if (kind === "stream")
        g.lineTo(x, y + size / 2);
      g.fill();
    } else if (kind === "trouble" && size >= 3) {
      g.beginPath();
      g.moveTo(x, y);
      g.lineTo(x + size, y + size);
      g.moveTo(x + size, y);
      g.lineTo(x, y + size);
      g.stroke();
    }
  }

  function drawCell(g, metric, tint, i, j, x, y) {
    const pair = app.live.pairAt(i, j);
    const size = cell > 6 ? cell - 1 : cell;
    if (!pair) {
      g.fillStyle = i === j ? tint.paper : tint.none;
      if (i !== j && cell >= 3)
        g.fillRect(x, y, size, size);
      return;
    }
    const kind = kindOf(pair.state);
    let letter = LETTERS[kind];
    g.fillStyle = tint.kinds[kind];
    if (metric.of && kind !== "trouble") {
      const value = metric.of(pair);
      const bin = value === undefined || metric.bins[0] > value ? -1 : binOf(metric, value);
      g.fillStyle = bin < 0 ? tint.none : tint.steps[metric.bad > 0 ? bin : tint.steps.length - 1 - bin];
      letter = bin < 0 ? "" : String(bin + 1);
    }
    if (metric.of || kind !== "relay" && kind !== "stream" || cell >= LETTER || cell < 3) {
      g.fillRect(x, y, size, size);
    } else {
      const colour = g.fillStyle;
      g.fillStyle = tint.none;
      g.fillRect(x, y, size, size);
      g.fillStyle = colour;
      mark(g, kind, x, y, size);
    }
    if (cell >= LETTER && letter) {
      g.fillStyle = contrast(g.fillStyle);
      g.fillText(letter, x + size / 2, y + size / 2 + 0.5);
    } else if (kind === "trouble" && cell < LETTER) {
      g.strokeStyle = tint.ink;
      mark(g, kind, x, y, size);
    }
  }

  function drawNames(g, tint) {
    g.fillStyle = tint.ink;
    order.forEach((i, k) => {
      const name = app.live.names[i];
      g.textAlign = "right";
      g.fillText(fitted(g, name, left - 8), left - 5, top + (k + 0.5) * cell);
      g.save();
      g.translate(left + (k + 0.5) * cell, top - 5);
      g.rotate(-Math.PI / 2);
      g.textAlign = "left";
      g.fillText(fitted(g, name, top - 8), 0, 0);
      g.restore();
    });
    g.textAlign = "center";
  }

  // All but the chosen cell, which moves with the pointer.
  function draw() {
    const g = base.getContext("2d");
    const ratio = devicePixelRatio || 1;
    const size = measure(g);
    const tint = colours();
    const metric = METRICS[metricSelect.value];
    base.width = canvas.width = size.width * ratio;
    base.height = canvas.height = size.height * ratio;
    canvas.style.height = `${size.height}px`;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = "11px system-ui, sans-serif";
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.lineWidth = 1;
    if (left > 0)
      drawNames(g, tint);
    order.forEach((i, r) => order.forEach((j, c) =>
      drawCell(g, metric, tint, i, j, left + c * cell, top + r * cell)));
    paint();
  }

  function paint() {
    const g = canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, canvas.width, canvas.height);
    if (base.width && base.height)
      g.drawImage(base, 0, 0);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (document.activeElement === canvas || canvas.matches(":hover")) {
      g.strokeStyle = style("--ink");
      g.lineWidth = 2;
      g.strokeRect(left + at.j * cell - 1, top + at.i * cell - 1, cell + 1, cell + 1);
      if (cell < LABEL) {
        g.globalAlpha = 0.35;
        g.lineWidth = 1;
        g.strokeRect(left, top + at.i * cell, order.length * cell, cell);
        g.strokeRect(left + at.j * cell, top, cell, order.length * cell);
        g.globalAlpha = 1;
      }
    }
  }

  function pick(i, j) {
    const most = order.length - 1;
    at = {i: Math.max(0, Math.min(i, most)), j: Math.max(0, Math.min(j, most))};
    paint();
    tellCell();
  }

  function tellCell() {
    if (order.length < 2)
      say(readout, "A matrix takes two nodes.");
    else
      say(readout, describe(app.live.names[order[at.i]], app.live.names[order[at.j]],
        app.live.pairAt(order[at.i], order[at.j])));
  }

  function open() {
    if (at.i !== at.j && order.length > 1)
      location.hash = app.link("pair", app.live.names[order[at.i]], app.live.names[order[at.j]]);
  }

  function cellOf(event) {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top - top) / cell), Math.floor((event.clientX - box.left - left) / cell)];
  }

  canvas.addEventListener("keydown", (event) => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (step)
      pick(at.i + step[0], at.j + step[1]);
    else if (event.key === "Home")
      pick(at.i, 0);
    else if (event.key === "End")
      pick(at.i, order.length - 1);
    else if (event.key === "Enter")
      open();
    else
      return;
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    const [i, j] = cellOf(event);
    if (event.pointerType === "mouse" && i >= 0 && j >= 0 && (i !== at.i || j !== at.j))
      pick(i, j);
  });
  canvas.addEventListener("pointerleave", () => paint());
  canvas.addEventListener("focus", () => { paint(); tellCell(); });
  canvas.addEventListener("blur", () => paint());
  canvas.addEventListener("click", (event) => {
    const [i, j] = cellOf(event);
    const same = i === at.i && j === at.j;
    if (i < 0 || j < 0)
      return;
    pick(i, j);
    // By touch the first one shows what it is, and the next one opens it.
    if (event.pointerType !== "touch" || same)
      open();
  });

  function drawKey(metric) {
    const items = metric.of
      ? metric.bins.map((from, i) => [`step-${metric.bad > 0 ? i + 1 : metric.bins.length - i}`, String(i + 1),
        i === 0 ? `up to ${metric.text(metric.bins[1])}` : `${metric.text(from)} or more`])
      : Object.entries(LETTERS).filter(([kind]) => kind !== "off").map(([kind, letter]) => [kind, letter, KIND_WORDS[kind]]);
    if (metric.of)
      items.push(["trouble", "!", "trouble"]);
    set(key, items.map(([name, letter, words]) => h("li", {},
      h("span", {class: `swatch cell ${name}`, "aria-hidden": "true"}, letter), words)));
    say(unit, `${metric.unit || ""}${cell < LETTER ? " Small cells: a cross is trouble" +
      `${metric.of ? "" : ", a triangle relayed, a half in TLS"}.` : ""}`.trim());
  }

  function weight(metric, pair) {
    const trouble = kindOf(pair.state) === "trouble" ? 1e18 : 0;
    if (!metric.of)
      return trouble + ({relay: 2e9, stream: 3e9}[kindOf(pair.state)] || -1e9) + (pair.rtt || 0);
    const value = metric.of(pair);
    return value ? metric.bad > 0 ? value : 1e15 / value : 0;
  }

  function drawWorst(metric) {
    const found = [];
    const names = app.live.names;
    // Those of a machine that is not there follow from that.
    const away = names.map((name) => app.live.rows.get(`n/${name}`)?.reachable === false);
    for (let i = 0; i < names.length; i++)
      for (let j = 0; j < names.length; j++) {
        const pair = i === j || away[i] || away[j] ? null : app.live.pairAt(i, j);
        if (!pair || !metric.of && j < i || metricSelect.value === "rtt" && j < i)
          continue;
        const w = weight(metric, pair);
        if (w > 0 && (found.length < 20 || w > found[found.length - 1].w)) {
          found.push({w, a: names[i], b: names[j], pair});
          found.sort((x, y) => y.w - x.w);
          found.length = Math.min(found.length, 20);
        }
      }
    say(caption, found.length ? `The worst by ${metric.name.toLowerCase()}` : "None stands out.");
    keyed(body, found, (x) => `${x.a}>${x.b}`, (x) => JSON.stringify(x.pair), ({a, b, pair}) => row(HEADS,
      [a, h("a", {href: app.link("pair", a, b)}, b), h("span", {class: `kind ${kindOf(pair.state)}`},
        kindOf(pair.state) === "trouble" ? `✖ ${pair.state}` : KIND_WORDS[kindOf(pair.state)]),
      f.rtt(pair.rtt), f.loss(pair.lossAb), f.rate(pair.goodAb)]));
  }

  function update() {
    const metric = METRICS[metricSelect.value];
    sortNames();
    draw();
    drawKey(metric);
    tellCell();
    drawWorst(metric);
    const more = (app.live.rows.get("net")?.nodes || 0) - app.live.names.length;
    if (more > 0)
      say(unit, `The first ${app.live.names.length} nodes by name; weft get edges has the pairs of ${more} more. ${metric.unit || ""}`);
  }
  return {title: "Pairs", el, update, resize: draw};
}

function fitted(g, text, width) {
  if (g.measureText(text).width <= width)
    return text;
  while (text.length > 1 && g.measureText(`${text}…`).width > width)
    text = text.slice(0, -1);
  return `${text}…`;
}

/** Black or white, whichever is seen better on the colour "#rrggbb". */
function contrast(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255)
    .map((v) => (v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}
