// tokens.js - who may join, and who may administer: made and ended, as far as the role allows.

import {h, set, table} from "/web/dom.js";
import * as f from "/web/format.js";

const TTLS = [["1 hour", 3600], ["1 day", 86400], ["7 days", 604800], ["30 days", 2592000]];

function ttlSelect(id, chosen) {
  return h("select", {id}, TTLS.map(([words, seconds]) =>
    h("option", {value: seconds, selected: seconds === chosen}, words)));
}

function field(label, input) {
  return h("div", {class: input.type === "checkbox" ? "field check" : "field"}, h("label", {for: input.id}, label), input);
}

// A secret is shown once, until the view is left.
function secret(words, text) {
  const box = h("output", {class: "secret"}, h("p", {}, words), h("code", {}, text));
  box.append(h("button", {type: "button", onclick: async (event) => {
    try {
      await navigator.clipboard.writeText(text);
      event.target.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(box.querySelector("code"));
    }
  }}, "Copy"));
  return box;
}

function ask(words, verb) {
  return new Promise((resolve) => {
    const dialog = h("dialog", {"aria-label": words}, h("p", {}, words), h("form", {method: "dialog", class: "buttons"},
      h("button", {value: "no", autofocus: true}, "Keep it"), h("button", {value: "yes", class: "danger"}, verb)));
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Ends what @path names, once it is confirmed, and shows the list anew.
function endButton(app, what, path, reload) {
  return h("button", {type: "button", class: "danger", "aria-label": `End ${what}`, onclick: async () => {
    if (!await ask(`End ${what}? It opens nothing any more from then on.`, "End it"))
      return;
    if (await app.attempt(() => app.ask("DELETE", path)))
      app.notice(`${what} is ended.`);
    await reload();
  }}, "End");
}

function joinPart(app) {
  const path = `/v1/networks/${app.network}/tokens`;
  const list = h("div", {});
  const made = h("div", {});
  const uses = h("input", {id: "join-uses", type: "number", min: "1", max: "100000", value: "1", required: true});
  const ttl = ttlSelect("join-ttl", 3600);
  const relay = h("input", {id: "join-relay", type: "checkbox"});
  const ephemeral = h("input", {id: "join-ephemeral", type: "checkbox"});
  async function reload() {
    const {tokens} = await app.ask("GET", path);
    const rows = tokens.filter((t) => t.usesLeft > 0 && t.expires > f.now()).sort((x, y) => x.expires - y.expires)
      .map((t) => [h("code", {}, t.id), String(t.usesLeft), f.date(t.expires),
        [t.ephemeral && "ephemeral", t.relay && "relay", t.routes && "routes"].filter(Boolean).join(", ") || "–",
        t.createdBy || "–", endButton(app, `the join token ${t.id}`, `${path}/${t.id}`, reload)]);
    set(list, rows.length ? table("Join tokens that admit somebody",
      ["ID", "Uses left", "Expires", "Its nodes are", "Made by", ""], rows)
      : h("p", {class: "soft"}, "No join token admits anybody now."));
  }
  const form = h("form", {class: "row", onsubmit: async (event) => {
    event.preventDefault();
    const answer = await app.attempt(() => app.ask("POST", path, {uses: Number(uses.value),
      ttlSeconds: Number(ttl.value), relay: relay.checked, ephemeral: ephemeral.checked}));
    if (answer)
      set(made, secret("Shown once. On each machine:", `weft join ${answer.token}`));
    await reload();
  }}, field("Machines that it admits", uses), field("Good for", ttl),
  field("They may relay for others", relay), field("They go when they stay away", ephemeral),
  h("button", {type: "submit"}, "Make a join token"));
  return {el: h("section", {}, h("h2", {}, "Join tokens"), form, made, list), reload};
}

function adminPart(app) {
  const list = h("div", {});
  const made = h("div", {});
  const name = h("input", {id: "admin-name", required: true, pattern: "[a-z0-9]([a-z0-9\\-]*[a-z0-9])?", maxlength: "63"});
  const role = h("select", {id: "admin-role"}, ["viewer", "operator", "admin"].map((r) => h("option", {}, r)));
  const ttl = ttlSelect("admin-ttl", 2592000);
  const only = h("input", {id: "admin-only", type: "checkbox", checked: true});
  async function reload() {
    const {adminTokens} = await app.ask("GET", "/v1/admin-tokens");
    const rows = adminTokens.map((t) => [t.name, t.role, t.network || "all", f.date(t.expires), t.createdBy,
      t.lastUsed ? f.date(t.lastUsed) : "–",
      endButton(app, `the admin token ${t.name}`, `/v1/admin-tokens/${t.name}`, reload)]);
    set(list, rows.length ? table("Admin tokens", ["Name", "Role", "Network", "Expires", "Made by", "Last used", ""], rows)
      : h("p", {class: "soft"}, "There are no admin tokens but the one in STATE/admin.token."));
  }
  const form = h("form", {class: "row", onsubmit: async (event) => {
    event.preventDefault();
    const body = {name: name.value, role: role.value, ttlSeconds: Number(ttl.value)};
    if (only.checked)
      body.network = app.network;
    const answer = await app.attempt(() => app.ask("POST", "/v1/admin-tokens", body));
    if (answer)
      set(made, secret("Shown once; for weft's --admin-token-file:", answer.token));
    await reload();
  }}, field("Name", name), field("Role", role), field("Good for", ttl),
  field(`For network ${app.network} only`, only), h("button", {type: "submit"}, "Make an admin token"));
  return {el: h("section", {}, h("h2", {}, "Admin tokens"), form, made, list), reload};
}

export function tokensView(app) {
  const parts = [joinPart(app)];
  if (app.session.role === "admin" && !app.session.network)
    parts.push(adminPart(app));
  let loaded = false;
  return {title: "Tokens", el: h("div", {}, parts.map((part) => part.el)), update() {
    if (loaded)
      return;
    loaded = true;
    for (const part of parts)
      app.attempt(() => part.reload());
  }};
}
