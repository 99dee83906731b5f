// live.js - what the hub tells of a network, as it changes, and what it was since the page was
// opened.

/** The states of a pair, as the letters of a row of the matrix count them. */
export const STATES = ["off", "refused", "failing", "never-applied", "agent-silent", "fell-back",
  "unreached", "no-path", "stream", "relay", "direct", "lan", "idle"];

/** What a state is drawn as: the kinds of a legend. */
const KINDS = {stream: "stream", relay: "relay", direct: "direct", lan: "lan", idle: "idle",
  off: "off"};

export function kindOf(state) {
  return KINDS[state] || "trouble";
}

/** In words. */
export const KIND_WORDS = {lan: "LAN", direct: "direct", relay: "relay", stream: "in TLS",
  idle: "idle", off: "off", trouble: "trouble"};

const PATHS = ["none", "lan", "direct", "relay", "stream"];
const HISTORY_EACH = 240;
const HISTORY_ALL = 300000;

/** A pair out of its text: "kRb4G1x", see live_view.h. */
export function decode(text) {
  if (!text)
    return null;
  const pair = {state: STATES[text.charCodeAt(0) - 97] || "idle"};
  const names = {R: "rtt", P: "path", X: "lossAb", Y: "lossBa", G: "goodAb", H: "goodBa"};
  for (let at = 1; at < text.length;) {
    let end = at + 1;
    while (end < text.length && (text[end] > "Z" || text[end] <= "9"))
      end++;
    if (names[text[at]])
      pair[names[text[at]]] = parseInt(text.slice(at + 1, end), 36);
    at = end;
  }
  if (pair.path !== undefined)
    pair.path = PATHS[pair.path];
  return pair;
}

export function pairKey(a, b) {
  return a < b ? `${a}--${b}` : `${b}--${a}`;
}

export class Live {
  /** @onChange: called with the keys that have changed; @onState: "open", "waiting", "refused". */
  constructor(network, onChange, onState) {
    this.network = network;
    this.onChange = onChange;
    this.onState = onState;
    this.rows = new Map();
    this.names = [];
    this.index = new Map();
    this.codes = [];   // by node, the texts of its pairs
    this.pairs = [];   // the same, decoded
    this.history = new Map(); // by pairKey: [time, text]
    this.kept = 0;
    this.opened = Date.now() / 1000;
    this.closed = false;
    this.open();
  }

  open() {
    this.source = new EventSource(`/v1/networks/${encodeURIComponent(this.network)}/live`);
    this.source.onopen = () => this.onState("open");
    this.source.onmessage = (event) => {
      performance.clearMarks();
      performance.mark("weft-event");
      this.take(JSON.parse(event.data));
    };
    this.source.onerror = () => {
      if (this.source.readyState !== EventSource.CLOSED) {
        this.onState("waiting");
        return;
      }
      this.onState("refused");
      this.retry = setTimeout(() => { if (!this.closed) this.open(); }, 5000);
    };
  }

  close() {
    this.closed = true;
    clearTimeout(this.retry);
    this.source.close();
  }

  take(event) {
    const changed = new Set();
    if (event.all)
      for (const key of this.rows.keys())
        if (!(key in event.rows))
          event.rows[key] = null;
    for (const [key, value] of Object.entries(event.rows)) {
      if (value === null)
        this.rows.delete(key);
      else
        this.rows.set(key, value);
      changed.add(key);
    }
    this.takePairs(changed);
    this.at = Date.now() / 1000;
    this.onChange(changed);
  }

  takePairs(changed) {
    if (changed.has("names")) {
      this.names = this.rows.get("names") || [];
      this.index = new Map(this.names.map((name, i) => [name, i]));
      this.codes = [];
      this.pairs = [];
    }
    this.names.forEach((name, i) => {
      if (this.codes[i] !== undefined && !changed.has(`m/${name}`))
        return;
      const row = this.rows.get(`m/${name}`) || "";
      const codes = i < this.names.length - 1 ? row.split(",") : [];
      const before = this.codes[i] || [];
      const pairs = this.pairs[i] || [];
      codes.forEach((code, k) => {
        if (before[k] === code)
          return;
        pairs[k] = decode(code);
        this.remember(name, this.names[i + 1 + k], code);
      });
      pairs.length = codes.length;
      this.codes[i] = codes;
      this.pairs[i] = pairs;
    });
  }

  remember(a, b, code) {
    const key = `${a}--${b}`;
    let list = this.history.get(key);
    if (!code && !list)
      return;
    if (!list)
      this.history.set(key, list = []);
    if (list.length && list[list.length - 1][1] === code)
      return;
    list.push([Date.now() / 1000, code]);
    this.kept++;
    if (list.length > HISTORY_EACH) {
      list.shift();
      this.kept--;
    }
    if (this.kept > HISTORY_ALL)
      this.shorten();
  }

  shorten() {
    this.kept = 0;
    for (const list of this.history.values()) {
      list.splice(0, list.length >> 1);
      this.kept += list.length;
    }
  }

  /** The pair as seen from @a: what goes from it, and what comes. NULL: nothing is known. */
  pair(a, b) {
    let i = this.index.get(a);
    let j = this.index.get(b);
    return i === undefined || j === undefined ? null : this.pairAt(i, j);
  }

  pairAt(i, j) {
    if (i === j)
      return null;
    const p = i < j ? this.pairs[i]?.[j - i - 1] : this.pairs[j]?.[i - j - 1];
    if (!p || i < j)
      return p || null;
    return {...p, lossAb: p.lossBa, lossBa: p.lossAb, goodAb: p.goodBa, goodBa: p.goodAb};
  }

  /** All rows whose keys begin so: [name, value]. */
  all(prefix) {
    const found = [];
    for (const [key, value] of this.rows)
      if (key.startsWith(prefix))
        found.push([key.slice(prefix.length), value]);
    return found.sort((x, y) => (x[0] < y[0] ? -1 : 1));
  }

  nodes() {
    return this.all("n/").map(([name, node]) => ({name, ...node}));
  }

  findings() {
    const grave = {critical: 0, warning: 1, note: 2};
    return this.all("f/").map(([key, f]) => ({key, ...f})).sort((x, y) =>
      grave[x.severity] - grave[y.severity] || x.since - y.since || (x.key < y.key ? -1 : 1));
  }

  /** Those about a node, its pairs and its parts of jobs. */
  findingsOf(name) {
    return this.findings().filter((f) => subjectNodes(f).includes(name));
  }

  /** How many pairs there are of each kind; "away": of a machine that is not there. */
  counts() {
    const counts = {};
    const away = this.names.map((name) => this.rows.get(`n/${name}`)?.reachable === false);
    this.pairs.forEach((pairs, i) => pairs.forEach((pair, k) => {
      if (!pair)
        return;
      const kind = away[i] || away[i + 1 + k] ? "away" : kindOf(pair.state);
      counts[kind] = (counts[kind] || 0) + 1;
    }));
    return counts;
  }
}

/** The nodes that a finding names. */
export function subjectNodes(f) {
  switch (f.about) {
  case "node":
    return [f.subject];
  case "pair":
    return f.subject.split("--");
  case "way":
    return f.subject.split(">");
  case "rank":
    return f.subject.split("/").slice(1);
  }
  return [];
}
