// What the history knows of the source that is open; that it was open, and for how long, goes there, too.

import { fill, find, make, name, plural } from "./dom.js";
import { get, postLast } from "./server.js";

const PERSONAL = "mara-personalise";
let isKept = false;
let tell = () => {};
let open = null; // the source that is open: {path, ms, since}, since null while nobody sees it

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

export async function openSource(turn, number, place) {
  if (!isKept) return;
  const source = { path: `api/turns/${turn.id}/sources/${number}`, ms: 0, since: document.hidden ? null : performance.now() };
  open = source;
  try {
    const told = await get(source.path);
    if (open === source) fill(place, ...views(told.views), ...related(told.related));
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
  const heading = make("h4", {}, "You read");
  if (!told) return [heading, make("p", { className: "note" }, "Not before now.")];
  const last = new Date(told.last).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  const took = told.seconds ? `, open for ${plural(told.seconds, "second")} in all` : "";
  return [heading, make("p", { className: "note" }, `This document ${plural(told.count, "time")}, the last on ${last}${took}.`)];
}

function related(told) {
  if (!told.length) return [];
  const rows = told.map((each) => make("li", { title: each.path }, name(each.title), make("small", {}, " ", name(each.told))));
  return [make("h4", {}, "Related"), make("ul", { className: "listed" }, ...rows)];
}
