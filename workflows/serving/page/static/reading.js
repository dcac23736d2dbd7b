// What the history knows of the source that is open; that it was open, and for how long, goes there, too.

import { button, fill, find, make, name, plural } from "./dom.js";
import { get, postLast } from "./server.js";

const PERSONAL = "mara-personalise";
let isKept = false;
let tell = () => {};
let open = null; // the source that is open: {path, ms, since}, since null while it is out of sight

export function setUpReading(isHistoryKept, say) {
  isKept = isHistoryKept;
  tell = say;
  find("personalise-setting").hidden = !isKept;
  if (!isKept) return;
  const choice = find("personalise");
  choice.checked = localStorage.getItem(PERSONAL) === "yes";
  choice.addEventListener("change", () => localStorage.setItem(PERSONAL, choice.checked ? "yes" : "no"));
  document.addEventListener("visibilitychange", () => { if (document.hidden) pause(); else if (open) open.since ??= performance.now(); });
  window.addEventListener("pagehide", closeSource);
}

// The part of a question's settings that asks for a personal ranking.
export const personal = () => (isKept && find("personalise").checked ? { personalise: true } : {});

// `openRelated`: called with a related document that the visitor chose.
export async function openSource(turn, number, place, openRelated) {
  if (!isKept) return;
  const source = { path: `api/turns/${turn.id}/sources/${number}`, ms: 0, since: document.hidden ? null : performance.now() };
  open = source;
  try {
    const told = await get(source.path);
    if (open === source) fill(place, ...views(told.views), ...related(told.related, openRelated));
  } catch (fault) {
    if (open === source) fill(place, make("p", { className: "note" }, fault.message));
  }
}

export function closeSource() {
  if (!open) return;
  pause();
  const { path, ms } = open;
  open = null;
  postLast(`${path}/views`, { seconds: Math.round(ms / 1000) }).catch((fault) => { if (fault.status) tell(fault.message); });
}

function pause() {
  if (!open || open.since === null) return;
  open.ms += performance.now() - open.since;
  open.since = null;
}

function views(told) {
  if (!told) return [];
  const took = told.seconds ? `for ${plural(told.seconds, "second")} in all` : "for less than a second";
  const came = told.count > 0 ? ` With the answers that cite it, it came up ${plural(told.count, "time")} before this one.` : "";
  return [make("h4", {}, "You read this document before"), make("p", { className: "note" }, `It was open ${took}.${came}`)];
}

function related(told, open) {
  if (!told.length) return [];
  const rows = told.map((each) => make("li", { title: each.path }, make("button", { type: "button", className: "plain", on: { click: () => open(each) } }, name(each.title)), make("small", {}, " ", name(each.told))));
  return [make("h4", {}, "Related"), make("ul", { className: "listed" }, ...rows)];
}

// ---- A document, passage by passage

export const readPart = (turn, number, where) => get(`api/turns/${turn.id}/passages/${number}?${new URLSearchParams(where)}`);

// The text of a passage, with buttons that read on before and after it; of a related document where its id is given.
export function partsOf(turn, number, part, related = "") {
  const parts = make("div", { className: "parts" }, ...textOf(part));
  const more = (way, add) => {
    if (!part[way]) return null;
    let last = part.id;
    const open = button(`Show what stands ${way}`, async () => {
      try {
        const told = await readPart(turn, number, { [way]: last, ...(related && { related }) });
        last = told.id;
        const [text] = add(textOf(told));
        if (told[way]) return;
        text.tabIndex = -1;
        text.focus();
        open.remove();
      } catch (fault) {
        open.replaceWith(make("p", { className: "note", role: "status" }, fault.message));
      }
    }, { className: "plain" });
    return open;
  };
  return [more("before", (texts) => { parts.prepend(...texts); return texts; }), parts, more("after", (texts) => { parts.append(...texts); return texts; })];
}

function textOf(part) {
  if (!part.html) return [];
  const text = make("div", { className: "answer text", dir: "auto" });
  text.innerHTML = part.html; // Sanitised by the server.
  return [text, ...(part.notes ?? []).map((note) => make("p", { className: "note" }, note))];
}
