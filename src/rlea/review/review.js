"use strict";
// All text of the graphs reaches the page through `textContent` or text nodes: none of it is ever read as markup.

const $ = (id) => document.getElementById(id);
const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, "0")).join("");
const count = (n) => n.toLocaleString("en");
const figure = (x) => (x === null || x === undefined ? "–" : x.toFixed(2));

let card = null; // the pair that is shown
let state = null; // progress and curve
let busy = false; // a request is under way: keys wait
let choosing = false; // the search looks for another target of this pair

// A window keeps its name when it is loaded again, so it gets the same pair again; a copy of it gets another name.
function windowName() {
  const kind = performance.getEntriesByType("navigation")[0];
  let name = sessionStorage.getItem("holder");
  if (!name || !kind || kind.type === "navigate") {
    name = random();
    sessionStorage.setItem("holder", name);
  }
  return name;
}
const holder = windowName();

// ---- the server ----------------------------------------------------------------------------------------------------

class Refused extends Error {}

async function ask(path, fields, body) {
  const query = fields ? "?" + new URLSearchParams(fields) : "";
  const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
  const reply = await fetch(path + query, { ...options, credentials: "same-origin", cache: "no-store" });
  if (reply.status === 403) throw new TypeError("no access"); // as a server that is gone: it may have been started again
  const found = await reply.json();
  if (!reply.ok) throw new Refused(found.message);
  return found;
}

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

// What must not fail because the server is gone for a while is asked every second until it answers.
async function persist(work, sentence) {
  for (;;) {
    try {
      return await work();
    } catch (problem) {
      if (problem instanceof Refused) throw problem;
      trouble("The server does not answer. " + sentence + " If rlea review was started again, open the address that it prints, in this browser.");
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

// Answers are sent until the server says that it has them, always with the same key, by which it knows a repetition.
async function keep(path, body) {
  sessionStorage.setItem("pending", JSON.stringify([path, body]));
  try {
    const found = await persist(() => ask(path, null, body), "Your last answer is not saved yet; it is sent again every second.");
    trouble("");
    return found;
  } finally {
    sessionStorage.removeItem("pending");
  }
}

// The pair that was answered must not stay, or it would be answered again.
const goOn = (load) => persist(load, "Your last answer is saved; the next pair is asked for every second.");

function filters() {
  const form = new FormData($("filters"));
  const fields = { holder, reviewer: reviewer(), blind: $("blind").checked ? "1" : "0" };
  for (const [name, value] of form) fields[name] = name === "disagree" ? "1" : value;
  return fields;
}

const reviewer = () => $("reviewer").value.trim();

async function during(work) {
  if (busy) return;
  busy = true;
  try {
    await work();
  } catch (problem) {
    trouble(problem instanceof Refused ? problem.message : "The server does not answer. Load the page again once it does.");
  } finally {
    busy = false;
  }
}

async function loadNext(word = "") {
  const found = await ask("/api/next", filters());
  trouble("");
  show(found, word);
}

async function loadPair(source, target, word = "") {
  const found = await ask("/api/pair", { ...filters(), source, target });
  trouble("");
  show(found, found.card.busy ? "Somebody else is looking at this pair as well." : word);
}

// ---- answers -------------------------------------------------------------------------------------------------------

const WORDS = { accept: "the same", reject: "not the same", skip: "skipped" };

function answer(kind, rival) {
  if (!card) return;
  if (!reviewer()) {
    $("status").textContent = "Say who you are first.";
    $("reviewer").focus();
    return;
  }
  const shown = card;
  during(async () => {
    const body = {
      source: shown.source.identifier, target: shown.target.identifier, answer: kind, reviewer: reviewer(), key: random(),
      blind: shown.blind, instead: rival ? rival.identifier : "",
    };
    await keep("/api/verdict", body);
    endChoosing();
    const word = "Saved: " + shown.source.name + (rival ? " is " + rival.name : " – " + shown.target.name + ", " + WORDS[kind]) + ".";
    await goOn(() => loadNext(word));
  });
}

function undo() {
  during(async () => {
    const found = await keep("/api/undo", { reviewer: reviewer(), key: random() });
    if (!found.undone) $("status").textContent = "There is nothing to undo.";
    else await goOn(() => loadPair(...found.undone, "Undone. Your answer about this pair is gone."));
  });
}

// ---- the card ------------------------------------------------------------------------------------------------------

function make(tag, options, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const pieces = (parts) => parts.map(([text, marked]) => (marked ? make("mark", {}, text) : text));

function entity(side, one) {
  return make("section", { class: "part", "aria-label": side },
    make("span", { class: "side" }, side), make("span", { class: "name", dir: "auto" }, ...pieces(one.pieces)),
    make("span", { class: "identifier" }, one.identifier), ...one.types.map((name) => make("span", { class: "type" }, name)));
}

function table(name, title, heads, rows, more) {
  if (!rows.length) return null;
  const head = make("tr", { role: "row" }, ...heads.map((text) => make("th", { scope: "col", role: "columnheader" }, text)));
  return make("section", { class: "part" },
    make("table", { class: name, role: "table" }, make("caption", {}, title), make("thead", { role: "rowgroup" }, head),
      make("tbody", { role: "rowgroup" }, ...rows)),
    more ? make("p", { class: "more" }, "and " + count(more) + " more") : null);
}

const row = (...cells) => make("tr", { role: "row" }, ...cells);
const cell = (options, ...children) => make("td", { role: "cell", ...options }, ...children);
const chip = (kind, text) => make("span", { class: "chip " + kind }, text);

const MARKS = { same: ["good", "same"], similar: ["half", "similar"], differs: ["bad", "differs"], "source only": ["", "only source"],
  "target only": ["", "only target"] };

function valueRow(one) {
  const names = [...new Set([one.source_attribute, one.target_attribute].filter(Boolean))].join(" / ");
  const side = (parts) => (parts.length ? cell({ dir: "auto" }, ...pieces(parts)) : cell({ class: "none" }, "–"));
  return row(make("th", { scope: "row", role: "rowheader" }, names), side(one.source), side(one.target), cell({}, chip(...MARKS[one.mark])));
}

const KINDS = { seed: ["good", "linked (seed)"], linked: ["good", "linked"], "only source": ["bad", "only source"],
  "only target": ["bad", "only target"], "no link": ["", "no link"] };

function neighbourRow(one) {
  const side = (name, way, other) => {
    if (!name) return cell({ class: "none" }, "–");
    const lacking = !way && other ? "not a neighbour here" : way;
    return cell({ dir: "auto" }, name, make("span", { class: "way" }, lacking));
  };
  return row(side(one.source, one.source_relation, one.target), side(one.target, one.target_relation, one.source), cell({}, chip(...KINDS[one.kind])));
}

function channelRow(one) {
  const says = { 1: ["good", "for"], "-1": ["bad", "against"], 0: ["", "neither"] }[one.says];
  return row(make("th", { scope: "row", role: "rowheader" }, one.channel + ": " + one.meaning), cell({ class: "num" }, figure(one.value)),
    cell({ class: "num" }, figure(one.rival)), cell({}, says ? chip(...says) : ""));
}

function rivalItem(one, place) {
  return make("li", {}, make("button", { type: "button", onclick: () => answer("other", one) },
    make("kbd", {}, String(place + 1)), make("b", { dir: "auto" }, one.name),
    one.facts.length ? make("span", { class: "fact", dir: "auto" }, one.facts.join("; ")) : null,
    one.reason ? make("span", { class: "why" }, one.reason) : null));
}

function said(rows) {
  if (!rows.length) return null;
  const words = (one) => one.reviewer + ": " + (one.answer === "other" ? "another one, " + one.instead : WORDS[one.answer]);
  return make("p", { class: "said" }, "Answered before: " + rows.map(words).join("; ") + ".");
}

function show(found, word) {
  card = found.card;
  for (const name of ["accept", "reject", "other", "skip"]) $(name).disabled = !card;
  if (!card) {
    $("heading").textContent = "No question is left with these filters.";
    $("card").replaceChildren();
  } else {
    $("heading").textContent = "Are these the same?";
    $("card").replaceChildren(...[
      make("div", { class: "ends" }, entity("source", card.source), entity("target", card.target)),
      said(card.said),
      card.decision ? make("p", { class: "decision" }, card.decision + (card.now ? " " + card.now : "")) : null,
      table("values", "Values", ["attribute", "source", "target", "compared"], card.values.map(valueRow), card.more_values),
      card.rivals.length
        ? make("section", { class: "part", "aria-labelledby": "rivals-heading" },
          make("h2", { id: "rivals-heading" }, "Or is the source one of these?"), make("ol", { class: "rivals" }, ...card.rivals.map(rivalItem)))
        : null,
      table("neighbours", "Neighbours", ["of the source", "of the target", "link"], card.neighbours.map(neighbourRow), card.more_neighbours),
      table("channels", "What the channels say", ["channel", "this pair", "best rival", "says"], (card.channels || []).map(channelRow)),
    ].filter(Boolean));
  }
  $("status").textContent = word + (card ? " " + card.source.name + " and " + card.target.name + "?" : "");
  document.title = (card ? card.source.name + " – " + card.target.name : "no question") + " – rlea review";
  window.scrollTo(0, 0);
  $("heading").focus({ preventScroll: true });
  showState(found.state);
}

// ---- progress, threshold -------------------------------------------------------------------------------------------

function change(title, pairs, total) {
  if (!total) return null;
  const rows = pairs.map(([source, target]) => make("li", { dir: "auto" }, source + " – " + target));
  return make("details", {}, make("summary", {}, title + ": " + count(total)), make("ul", {}, ...rows));
}

// What the last answers changed beside their own pairs: the links that came, went, or are surer or less sure now.
function liveChange(one) {
  const side = (end) => (end.name ? end.name + " (" + figure(end.confidence) + ")" : "no link");
  const same = one.before.name === one.after.name;
  const text = same ? one.after.name + ": " + figure(one.before.confidence) + " → " + figure(one.after.confidence)
    : side(one.before) + " → " + side(one.after);
  return make("li", { dir: "auto" }, make("button", { type: "button", onclick: () => during(() => loadPair(...one.pair)) }, "Look"),
    " " + one.source + " – " + text);
}

let asking = 0; // the timer of the next question about the live part

function showLive(live) {
  clearTimeout(asking);
  const waits = { making: 3000, deciding: 300 }[live.status];
  if (waits) asking = setTimeout(() => askLive(waits), waits);
  $("live").textContent = live.text;
  $("live").hidden = !live.text;
}

// A page that shows what is no longer so: asked again until the server has told, or the answers have counted.
async function askLive(waits) {
  try {
    if (!busy) return showState(await ask("/api/state", filters()));
  } catch (problem) {
    // The next request of the person says so.
  }
  asking = setTimeout(() => askLive(waits), waits);
  return undefined;
}

function dispute(one) {
  return make("li", {}, make("button", { type: "button", onclick: () => during(() => loadPair(one.source, one.target)) }, "Look"),
    " " + one.source + " – " + one.target + ": " + one.reason);
}

let openLive = false; // the list of what the last answer changed stays open when it is made anew

function showState(found) {
  state = found;
  const s = found;
  $("bar").max = Math.max(1, s.answers + s.left);
  $("bar").value = s.answers;
  const lines = [
    make("p", {}, count(s.answers) + (s.answers === 1 ? " answer, " : " answers, ") + count(s.mine) + " of them yours; " + count(s.left) + " left with these filters"),
    make("p", {}, count(s.accepted) + " same, " + count(s.rejected) + " not same, " + count(s.skipped) + " skipped"),
    make("p", {}, "Links: " + count(s.links_before) + (s.answers ? " → " + count(s.links_now) : "") + "; expected right: " +
      count(Math.round(s.expected_before)) + (s.answers ? " → " + count(Math.round(s.expected_now)) : "")),
    change("Links taken away", s.removed, s.num_removed), change("Links added", s.added, s.num_added),
  ];
  const live = s.live;
  if (live.moved) lines.push(make("p", {}, "Confidences moved by .05 or more: " + count(live.moved)));
  if (live.num_changes) {
    const rows = live.changes.map(liveChange);
    lines.push(make("details", { open: openLive ? "" : undefined, ontoggle: (event) => { openLive = event.target.open; } },
      make("summary", {}, "The last answer changed elsewhere: " + count(live.num_changes)), make("ul", {}, ...rows)));
  }
  showLive(live);
  if (s.disputed.length) {
    lines.push(make("details", {}, make("summary", {}, "Contradictions: " + count(s.disputed.length)), make("ul", {}, ...s.disputed.map(dispute))));
  }
  $("progress").replaceChildren(...lines.filter(Boolean));
  const line = (values) => values.map((y, x) => (y === null ? "" : x + "," + (2 + 40 * (1 - y)))).filter(Boolean).join(" ");
  $("precision-line").setAttribute("points", line(s.curve.precision));
  $("recall-line").setAttribute("points", line(s.curve.recall));
  showThreshold();
}

function showThreshold() {
  const at = Number($("threshold").value);
  $("threshold-value").textContent = (at / 100).toFixed(2);
  $("cut").setAttribute("x1", at);
  $("cut").setAttribute("x2", at);
  if (!state) return;
  const part = (name, text, kind) => make("div", { class: kind }, make("dt", {}, name), make("dd", {}, text));
  $("expected").replaceChildren(part("links", count(state.curve.links[at]), ""), part("precision", figure(state.curve.precision[at]), "precision"),
    part("recall", figure(state.curve.recall[at]), "recall"));
}

// ---- search --------------------------------------------------------------------------------------------------------

let searches = 0;

async function search() {
  const text = $("text").value.trim();
  const number = (searches += 1);
  if (!text) return $("found").replaceChildren();
  const hits = await ask("/api/search", { text, side: choosing ? "target" : "both" });
  if (number !== searches) return undefined; // a later one is under way
  const rows = hits.map((hit) => {
    const act = () => {
      if (choosing) return answer("other", hit);
      return during(() => loadPair(...hit.pair));
    };
    const about = choosing ? hit.identifier : hit.side + (hit.pair ? ", with " + hit.other : ", without a candidate");
    const button = make("button", { type: "button", onclick: act }, make("span", { dir: "auto" }, hit.name), make("span", { class: "fact" }, about));
    button.disabled = !choosing && !hit.pair;
    return make("li", {}, button);
  });
  $("found").replaceChildren(...(rows.length ? rows : [make("li", { class: "soft" }, "Nothing is called that.")]));
  return undefined;
}

function beginChoosing() {
  if (!card) return;
  choosing = true;
  $("search-label").textContent = "The target that " + card.source.name + " is";
  $("text").value = "";
  $("found").replaceChildren();
  $("text").focus();
}

function endChoosing() {
  choosing = false;
  $("search-label").textContent = "Name or identifier";
  $("text").value = "";
  $("found").replaceChildren();
}

// ---- keys and controls ---------------------------------------------------------------------------------------------

const KEYS = { y: () => answer("accept"), n: () => answer("reject"), s: () => answer("skip"), o: beginChoosing, u: undo,
  b: () => $("blind").click(), "/": () => $("text").focus(), "?": () => $("help").showModal() };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || $("help").open) return;
  const place = event.target;
  if (place.matches("input:not([type=checkbox]):not([type=range]), select")) {
    if (event.key === "Escape") {
      endChoosing();
      place.blur();
    }
    return;
  }
  const act = KEYS[event.key] || (/^[1-5]$/.test(event.key) && card && card.rivals[event.key - 1]
    ? () => answer("other", card.rivals[event.key - 1]) : null);
  if (act) {
    event.preventDefault();
    act();
  }
});

for (const kind of ["accept", "reject", "skip"]) $(kind).addEventListener("click", () => answer(kind));
$("other").addEventListener("click", beginChoosing);
$("undo").addEventListener("click", undo);
$("help-open").addEventListener("click", () => $("help").showModal());
$("threshold").addEventListener("input", showThreshold);
$("text").addEventListener("input", () => search().catch(() => trouble("The server does not answer.")));
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  // What is shown may still be of the text before: the answer would go to another one.
  search().then(() => $("found").querySelector("button:not(:disabled)")?.focus()).catch(() => trouble("The server does not answer."));
});
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("filters").addEventListener("change", () => {
  sessionStorage.setItem("filters", JSON.stringify([...new FormData($("filters"))]));
  during(() => loadNext());
});
$("reviewer").addEventListener("change", () => {
  localStorage.setItem("reviewer", reviewer());
  askLive(1000); // not `during`, in which keys are not heard
});
$("blind").addEventListener("change", () => {
  sessionStorage.setItem("blind", $("blind").checked ? "1" : "");
  if (card) during(() => loadPair(card.source.identifier, card.target.identifier, $("blind").checked ? "Scores are hidden." : "Scores are shown."));
});

function options(select, values) {
  for (const value of values) {
    const [key, text] = Array.isArray(value) ? value : [value, value];
    select.append(make("option", { value: key }, text));
  }
}

during(async () => {
  $("blind").checked = sessionStorage.getItem("blind") === "1";
  const pending = sessionStorage.getItem("pending"); // of before the page was loaded again
  const start = await ask("/api/start");
  $("title").textContent = start.title ? " of " + start.title : "";
  $("reviewer").value = localStorage.getItem("reviewer") || start.reviewer;
  const form = $("filters").elements;
  options(form.order, start.orders);
  options(form.scope, start.scopes);
  options(form.kind, start.kinds);
  options(form.channel, start.channels);
  options(form.class, start.classes);
  form.channel.parentElement.hidden = !start.channels.length;
  form.disagree.parentElement.hidden = !start.channels.length;
  $("classes").hidden = !start.classes.length;
  $("uncalibrated").hidden = start.calibrated;
  for (const [name, value] of JSON.parse(sessionStorage.getItem("filters") || "[]")) {
    if (name === "disagree") form.disagree.checked = true;
    else if (form[name]) form[name].value = value;
  }
  if (pending) await keep(...JSON.parse(pending));
  await loadNext();
});
