// The panel beside the conversation: the passages of an answer, and the reasons for it.

import { cover, reveal, uncover } from "./covering.js";
import { button, fill, find, make, name, plural } from "./dom.js";
import { closeSource, openSource } from "./reading.js";
import { get, key } from "./server.js";

const RELATIONS = { entity_entity: "Between names", entity_passage: "From names to passages" };
const known = new Map();
let opener = null;
let closed = () => {};

// `onClosed`: called once the visitor has closed the panel.
export function setUpPanel(onClosed) {
  closed = onClosed;
  find("close-panel").addEventListener("click", closePanel);
  find("close-graph").addEventListener("click", () => find("graph-dialog").close());
  find("graph-dialog").addEventListener("close", () => { find("graph").src = "about:blank"; });
}

export async function openPassage(turn, number, from) {
  const details = await show(turn, from, "Sources");
  if (!details) return;
  const passages = details.passages.filter((each) => each.cited || each.number === number);
  const others = details.passages.filter((each) => !passages.includes(each));
  const drawn = passages.map((each) => passage(each, each.number === number));
  fill(find("panel-body"), make("section", {}, ...drawn), others.length ? more(others) : null);
  find("panel-body").querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  const mark = find("panel-body").querySelector(".chosen mark");
  mark?.scrollIntoView({ block: "nearest" });
  openSource(turn, number, find("panel-body").querySelector(".chosen .reading"));
}

export async function openReasons(turn, from) {
  const details = await show(turn, from, "Why this answer?");
  if (!details) return;
  fill(find("panel-body"), details.walked ? graph(turn) : null, facts(details), weights(details), seeds(details), claims(details), followUps(details), notes(details), about(details));
}

export function closePanel() {
  if (find("panel").hidden) return;
  const from = opener;
  hidePanel();
  uncover();
  closed();
  (from?.isConnected ? from : find("question")).focus();
}

// Puts the panel away with its conversation, in which it may be opened again.
export function hidePanel() {
  if (find("panel").hidden) return;
  closeSource();
  reveal();
  find("panel").hidden = true;
  document.body.classList.remove("with-panel");
  opener?.removeAttribute("aria-expanded");
  opener = null;
}

async function show(turn, from, title) {
  closeSource();
  opener?.removeAttribute("aria-expanded");
  opener = from;
  if (from.classList.contains("citation")) from.setAttribute("aria-expanded", "true");
  find("panel").hidden = false;
  document.body.classList.add("with-panel");
  cover(closePanel, find("panel"));
  find("panel-title").textContent = title;
  fill(find("panel-body"), make("p", { className: "note" }, "Opening …"));
  find("panel-title").focus();
  try {
    if (!known.has(turn.id)) known.set(turn.id, await get(`api/turns/${turn.id}`));
  } catch (fault) {
    fill(find("panel-body"), make("p", { className: "broken" }, fault.message));
    return null;
  }
  return opener === from ? known.get(turn.id) : null;
}

function passage(each, isChosen) {
  const text = make("p", { className: "text", dir: "auto" }, ...each.pieces.map((piece) => (piece.cited ? make("mark", {}, piece.text) : piece.text)));
  const pairs = Object.entries(each.metadata).filter(([label]) => !["document", "file"].includes(label));
  return make(
    "article",
    { className: isChosen ? "passage chosen" : "passage" },
    make("h3", {}, `[${each.mark}] `, name(each.title)),
    make("p", { className: "note" }, name(each.source)),
    each.moved ? make("p", { className: "note" }, name(each.moved[0].toUpperCase() + each.moved.slice(1))) : null,
    text,
    pairs.length ? table(pairs) : null,
    isChosen ? make("div", { className: "reading" }) : null,
  );
}

function more(others) {
  const part = make("section", {}, button(`Show ${plural(others.length, "passage")} that ${others.length === 1 ? "was" : "were"} found and not cited`, () => {
    fill(part, ...others.map((each) => passage(each, false)));
    part.querySelector("h3").tabIndex = -1;
    part.querySelector("h3").focus();
  }, { className: "plain" }));
  return part;
}

const table = (pairs) => make("dl", { className: "pairs" }, ...pairs.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, name(String(value)))]));

const section = (title, ...children) => make("section", {}, make("h3", {}, title), ...children);

function graph(turn) {
  const open = button("Show the graph", () => {
    const form = find("graph-form");
    form.action = `explanation/${turn.id}`;
    find("graph-key").value = key();
    form.target = "graph";
    find("graph-dialog").showModal();
    form.submit();
  });
  return make("section", {}, make("p", { className: "note" }, "The walk over the graph: which facts and names carried weight to the passages."), open);
}

function facts(details) {
  if (!details.facts.length) return null;
  const rows = details.facts.map((fact) => make(
    "li",
    { className: fact.kept ? "" : "dropped" },
    name(`${fact.subject} · ${fact.predicate} · ${fact.object}`),
    make("small", {}, ` ${fact.relation.toLowerCase()}, ${fact.kept ? "kept" : "not kept"}`),
  ));
  return section(`Facts (${details.facts.filter((fact) => fact.kept).length} of ${details.facts.length} kept)`, make("ul", { className: "facts" }, ...rows));
}

function weights(details) {
  if (!details.beta) return null;
  const bars = Object.entries(RELATIONS).flatMap(([part, title]) => {
    const shares = Object.entries(details.beta[part] ?? {});
    const rows = shares.flatMap(([label, share]) => [
      make("span", {}, label.toLowerCase()),
      make("meter", { min: 0, max: 1, value: share, ariaLabel: `${label.toLowerCase()}: ${Math.round(share * 100)} %` }),
      make("span", {}, `${Math.round(share * 100)} %`),
    ]);
    return rows.length ? [make("p", { className: "note" }, title), make("div", { className: "weights" }, ...rows)] : [];
  });
  return section("What the question asks of each relation", ...bars);
}

function seeds(details) {
  if (!details.seeds.length) return null;
  const rows = details.seeds.map((seed) => make("li", {}, make("span", {}, name(seed.text), make("small", {}, ` ${seed.kind}`)), make("small", {}, seed.weight.toFixed(3))));
  return section("Where the walk started", make("ul", { className: "seeds" }, ...rows));
}

function claims(details) {
  if (!details.claims.length) return null;
  const rows = details.claims.map((claim) => make("li", {}, name(claim.text), make("small", { className: "note" }, ` ${claim.verdict}${claim.kept ? "" : ", left out"}`)));
  return section(`Claims${details.coverage ? ` (${details.coverage.toLowerCase()})` : ""}`, make("ol", { className: "listed" }, ...rows));
}

function followUps(details) {
  if (!details.follow_ups.length) return null;
  const rows = details.follow_ups.map((each) => make("li", {}, name(each.question), make("small", { className: "note" }, ` ${each.outcome}`)));
  return section("Asked for what was missing", make("ul", { className: "listed" }, ...rows));
}

function notes(details) {
  if (!details.notes.length) return null;
  return section("Notes", make("ul", { className: "listed" }, ...details.notes.map((note) => make("li", { dir: "auto" }, note))));
}

function about(details) {
  const times = Object.entries(details.timings).map(([step, ms]) => [step, `${Math.round(ms)} ms`]);
  return section("How it was made", table([...Object.entries(details.about), ...times]));
}
