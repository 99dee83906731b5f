// dom.js - elements. What comes from a hub is set as text and as values of attributes, never as
// markup; the page's policy lets no script make markup of a text at all.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false)
      continue;
    if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else
      node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false)
      continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

/** An element of HTML: h("p", {class: "soft"}, "text", otherElement). */
export function h(name, attrs, ...children) {
  return fill(document.createElement(name), attrs, children);
}

/** The same of SVG. */
export function s(name, attrs, ...children) {
  return fill(document.createElementNS(SVG, name), attrs, children);
}

/** Replaces what is in @node. */
export function set(node, ...children) {
  node.replaceChildren();
  add(node, children);
}

/** Makes @made all that is in @node, where that is another thing: it may be announced, or have the focus. */
export function swap(node, made) {
  if (node.firstChild?.outerHTML !== made.outerHTML)
    set(node, made);
}

/** Sets a text where it is another one, so that nothing is announced twice. */
export function say(node, text) {
  if (node.textContent !== text)
    node.textContent = text;
}

/**
 * Makes the children of @parent those of @items, in that order. A child stays, with its focus, as
 * long as its key and @textOf, from which it is made, are as before.
 */
export function keyed(parent, items, keyOf, textOf, make) {
  const old = new Map();
  for (const child of [...parent.children])
    old.set(child.weftKey, child);
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const text = textOf(item);
    let child = old.get(key);
    old.delete(key);
    if (!child || child.weftText !== text) {
      const made = make(item);
      made.weftKey = key;
      made.weftText = text;
      if (child) {
        keepFocus(child, made);
        if (at === child)
          at = made;
        child.replaceWith(made);
      }
      child = made;
    }
    if (child === at)
      at = at.nextElementSibling;
    else
      parent.insertBefore(child, at);
  }
  for (const child of old.values())
    child.remove();
}

// Details that were open stay so, and what had the focus has it.
function keepFocus(before, after) {
  const open = [...before.querySelectorAll("details")].map((d) => d.open);
  after.querySelectorAll("details").forEach((d, i) => { d.open = open[i] === true; });
  const places = (node) => [...node.querySelectorAll("a, button, summary, input, select")];
  const index = places(before).indexOf(document.activeElement);
  if (index >= 0)
    requestAnimationFrame(() => places(after)[index]?.focus());
}

/** A table whose rows become cards on a narrow screen: each cell has its heading with it. */
export function table(caption, heads, rows) {
  return h("div", {class: "table"}, h("table", {},
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", {scope: "col"}, head)))),
    h("tbody", {}, rows.map((cells) => row(heads, cells)))));
}

export function row(heads, cells) {
  return h("tr", {}, cells.map((cell, i) =>
    i === 0 ? h("th", {scope: "row"}, cell) : h("td", {"data-head": heads[i]}, cell)));
}
