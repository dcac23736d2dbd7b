// The panel beside the conversation: the passages of an answer, and the reasons for it.

import { cover, enlarge, reveal, uncover } from "./covering.js";
import { button, fill, find, make, name, plural } from "./dom.js";
import { closeSource, openSource, partsOf, readPart } from "./reading.js";
import { get, key } from "./server.js";

const known = new Map();
let opener = null;
let closed = () => {};

// `onClosed`: called once the visitor has closed the panel.
export function setUpPanel(onClosed) {
  closed = onClosed;
  find("close-panel").addEventListener("click", closePanel);
}

export async function openPassage(turn, number, from) {
  const details = await show(turn, from, "Sources");
  if (!details) return;
  const passages = details.passages.filter((each) => each.cited || each.number === number);
  const others = details.passages.filter((each) => !passages.includes(each));
  const drawn = passages.map((each) => passage(turn, each, each.number === number));
  fill(find("panel-body"), make("section", {}, ...drawn), others.length ? more(turn, others) : null);
  find("panel-body").querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  const mark = find("panel-body").querySelector(".chosen mark");
  mark?.scrollIntoView({ block: "nearest" });
  openSource(turn, number, find("panel-body").querySelector(".chosen .reading"), (related) => openRelated(turn, number, related, from));
}

// Opens a document that is related to a source, at its beginning.
async function openRelated(turn, number, related, from) {
  closeSource();
  const first = await readPart(turn, number, { related: related.document }).catch((fault) => ({ title: related.title, place: fault.message }));
  if (opener !== from) return;
  const back = button("Back to the source", () => openPassage(turn, number, from), { className: "plain" });
  const opened = make("article", { className: "passage" }, make("h3", {}, name(first.title)), make("p", { className: "note" }, name(first.place)), ...partsOf(turn, number, first, related.document));
  fill(find("panel-body"), back, opened);
  back.focus();
}

export async function openReasons(turn, from) {
  const details = await show(turn, from, "Why this answer?");
  if (!details) return;
  const told = make("section", {}, make("p", { className: "note" }, "Following the path …"));
  fill(find("panel-body"), told, claims(details), followUps(details), notes(details), times(details));
  try {
    const { why, problem } = await get(`api/turns/${turn.id}/why`);
    const sentences = why.map((pieces) => make("li", { dir: "auto" }, ...pieces.map((piece) => (piece.kind ? make(piece.kind === "quote" ? "q" : "em", {}, name(piece.text)) : piece.text))));
    fill(told, make("ol", { className: "why" }, ...sentences), problem ? make("p", { className: "note" }, problem) : null);
    if (details.walked && !problem && told.isConnected) draw(turn, told);
  } catch (fault) {
    fill(told, make("p", { className: "broken" }, fault.message));
  }
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
  find("panel").classList.remove("large");
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

function passage(turn, each, isChosen) {
  const pairs = Object.entries(each.metadata);
  return make(
    "article",
    { className: isChosen ? "passage chosen" : "passage" },
    make("h3", {}, `[${each.mark}] `, name(each.title)),
    make("p", { className: "note" }, name(each.place)),
    each.moved ? make("p", { className: "note" }, name(each.moved[0].toUpperCase() + each.moved.slice(1))) : null,
    ...partsOf(turn, each.number, each),
    pairs.length ? table(pairs) : null,
    isChosen ? make("div", { className: "reading" }) : null,
  );
}

function more(turn, others) {
  const part = make("section", {}, button(`Show ${plural(others.length, "passage")} that ${others.length === 1 ? "was" : "were"} found and not cited`, () => {
    fill(part, ...others.map((each) => passage(turn, each, false)));
    part.querySelector("h3").tabIndex = -1;
    part.querySelector("h3").focus();
  }, { className: "plain" }));
  return part;
}

const table = (pairs) => make("dl", { className: "pairs" }, ...pairs.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, name(String(value)))]));

const section = (title, ...children) => make("details", { className: "behind" }, make("summary", {}, title), ...children);

// The drawing of the path, in a frame of its own; it can fill the window.
function draw(turn, place) {
  const form = make("form", { method: "post", action: `explanation/${turn.id}`, target: "graph" }, make("input", { type: "hidden", name: "key", value: key() }));
  const large = button("Show it large", () => {
    const isLarge = find("panel").classList.toggle("large");
    enlarge(isLarge);
    large.textContent = isLarge ? "Show it small" : "Show it large";
  }, { className: "plain" });
  form.append(large, make("button", { type: "submit", className: "plain", formTarget: "_blank" }, "Open in a new tab"));
  const frame = make("iframe", { id: "graph", name: "graph", title: "The graph behind the answer" });
  frame.setAttribute("sandbox", "allow-scripts");
  place.append(frame, form);
  form.submit();
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

function times(details) {
  const steps = Object.entries(details.timings).map(([step, ms]) => [step, `${Math.round(ms)} ms`]);
  return section("How long it took", table(steps));
}
