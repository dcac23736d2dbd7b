// The conversations that this window knows: each has its turns, the answer under way, and what its visitor left in it.

import { announce, find, settle } from "./dom.js";
import { hidePanel, openPassage, openReasons } from "./panel.js";
import { Away, patch, poll, post, remove, stream } from "./server.js";
import { Draft, drawTurn } from "./turns.js";

const SPOKEN = 1000; // characters of an answer that are read out by themselves
const AGAIN_MS = 300;
const ENDS = { stopped: "The answer was stopped", failed: "The question failed", cut: "The answer was cut off" };
const wide = matchMedia("(min-width: 761px)"); // the panel covers nothing

const WAIT = "One question at a time in a conversation: stop the answer first, or wait for it.";

// `at`: the version of a turn that its visitor turned to; empty: the turn asked last is shown, with those before it.
const fresh = (id) => ({ id, version: -1, at: "", title: "", turns: [], run: null, drawn: new Map(), scroll: null, panel: null });
const talks = new Map(); // by id
let shown = fresh(""); // its id is empty where it is new
let page = {}; // say(text), changed(), settings()

export const newId = () => (crypto.randomUUID ? crypto.randomUUID() : Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(""));

export function setUpConversations(around) {
  page = around;
  find("conversation").addEventListener("scroll", markEnd);
  find("to-end").addEventListener("click", () => { toEnd(); find("conversation").focus(); });
}

export const shownId = () => shown.id;
export const exportPath = (id) => `api/conversations/${id}/text${id === shown.id ? `?at=${shown.at}` : ""}`;

// ---- What is shown

export async function show(id) {
  if (id === shown.id && talks.has(id)) return;
  leave();
  shown = talks.get(id) ?? fresh(id);
  if (id) talks.set(id, shown);
  find("question").value = typed();
  draw();
  find("conversation").scrollTop = shown.scroll ?? find("conversation").scrollHeight;
  if (shown.panel && wide.matches) shown.panel();
  await look();
}

function leave() {
  keepTyped();
  shown.scroll = atEnd() ? null : find("conversation").scrollTop;
  rest();
  hidePanel();
}

// Lets go of the stream: what comes meanwhile is read when the conversation is looked at again.
export function rest() {
  if (shown.run?.hasBegun) shown.run.reading?.abort();
}

// Asks what is new in the conversation that is shown.
export async function look() {
  const talk = shown;
  if (!talk.id || talk.isLeaving || document.hidden) return;
  if (talk.run) {
    await follow(talk);
    return;
  }
  try {
    const told = await poll(`api/conversations/${talk.id}?version=${talk.version}${talk.at && `&at=${talk.at}`}`);
    if (told.unchanged || talk.run || told.version < talk.version) return;
    const isNew = talk.version !== told.version;
    Object.assign(talk, { version: told.version, title: told.title, turns: told.turns });
    const running = told.turns.find((turn) => turn.state === "running");
    if (running) talk.run = { ...runOf(running, told.version + 1), hasBegun: true };
    if (isNew) page.changed();
    if (talk !== shown) return;
    draw();
    if (running) await follow(talk);
  } catch (fault) {
    if (fault.status === 404) forget(talk);
  }
}

// Loads the conversation again, whatever changed.
export function lookAnew() {
  shown.version = -1;
  return look();
}

export function draw() {
  const talk = shown;
  const isAtEnd = atEnd();
  const focused = document.activeElement?.closest(".turn")?.id;
  const items = talk.turns.map((turn) => {
    if (turn.id === talk.run?.turn.id) return talk.run.draft.item;
    const text = JSON.stringify([turn, acts.differs(turn)]);
    const known = talk.drawn.get(turn.id);
    if (known?.text === text) return known.item;
    const item = drawTurn(turn, acts);
    talk.drawn.set(turn.id, { text, item });
    return item;
  });
  settle(find("turns"), items);
  if (focused && document.activeElement === document.body) focusTurn(focused);
  find("title").textContent = talk.title || (talk.id ? "Opening …" : "New conversation");
  document.title = talk.title ? `${talk.title} · mara` : "mara";
  find("welcome").hidden = Boolean(talk.id);
  for (const id of ["rename", "delete"]) find(id).hidden = !items.length;
  find("send").hidden = Boolean(talk.run);
  find("stop").hidden = !talk.run;
  if (isAtEnd) toEnd(talk.run?.draft.item);
  markEnd();
}

const focusTurn = (id) => document.getElementById(id)?.focus({ preventScroll: true });
const atEnd = () => {
  const box = find("conversation");
  return box.scrollHeight - box.scrollTop - box.clientHeight < 80;
};

// Scrolls to the end; while a turn is being answered, no farther than to its question.
const toEnd = (item) => {
  const box = find("conversation");
  const most = item ? box.scrollTop + item.getBoundingClientRect().top - box.getBoundingClientRect().top - 12 : Infinity;
  box.scrollTop = Math.max(box.scrollTop, Math.min(most, box.scrollHeight));
};
const markEnd = () => { find("to-end").hidden = atEnd(); };

// Changes what is drawn; the first line of an answer stays where it is seen.
function steadily(id, change) {
  const top = () => find(`turn-${id}`)?.querySelector(".answer")?.getBoundingClientRect().top ?? 0;
  const before = top();
  change();
  find("conversation").scrollTop += top() - before;
}

// Leaves a conversation that is not there, or not there any more.
function drop(talk) {
  talks.delete(talk.id);
  talk.run?.reading?.abort();
  talk.run = null;
  if (talk !== shown) return;
  history.replaceState(null, "", "#/");
  show("");
}

function forget(talk) {
  const isShown = talk === shown;
  drop(talk);
  page.changed();
  if (isShown) page.say("There is no such conversation: it may have been deleted.");
}

export async function deleteTalk(id) {
  const talk = talks.get(id) ?? fresh(id);
  talk.isLeaving = true; // It is not looked for meanwhile.
  try {
    await remove(`api/conversations/${id}`);
  } catch (fault) {
    talk.isLeaving = false;
    throw fault;
  }
  sessionStorage.removeItem(typedIn(id));
  if (id === shown.id) find("question").value = "";
  drop(talk);
  page.changed();
}

export async function renameTalk(id, title) {
  await patch(`api/conversations/${id}`, { title });
  if (talks.has(id)) talks.get(id).title = title;
  if (id === shown.id) draw();
  page.changed();
}

// Shows another version of a turn, with what followed that.
async function turnTo(id) {
  if (shown.run) {
    page.say(WAIT);
    return;
  }
  Object.assign(shown, { at: id, version: -1 });
  await look();
  const versions = document.getElementById(`turn-${id}`)?.querySelector(".versions");
  versions?.querySelector("button:enabled").focus();
  if (versions) announce(`Version ${versions.textContent.slice(1, -1).trim()}`);
}

// ---- Asking, and following the answer

const set = (settings) => JSON.stringify(Object.entries(settings).filter(([, value]) => value && JSON.stringify(value) !== "{}").sort());

const acts = {
  ask,
  turnTo,
  differs: (turn) => set(turn.settings) !== set(page.settings()),
  openPassage: (turn, number, from) => keepOpen(() => openPassage(turn, number, from)),
  openReasons: (turn, from) => keepOpen(() => openReasons(turn, from)),
};

function keepOpen(open) {
  shown.panel = open;
  open();
}

export function panelClosed() {
  shown.panel = null;
}

// A run as this window sees it. `expects`: the version of the conversation once it has ended, where nothing else changes.
const runOf = (turn, expects) => ({ turn, expects, draft: new Draft(turn, acts), position: 0, hasBegun: false, isStopping: false, reading: null, before: [] });

export async function ask(question, how = {}) {
  const talk = shown;
  if (talk.run) {
    page.say(WAIT);
    return false;
  }
  page.say("");
  const turn = { id: newId(), question, alone: how.alone === true, settings: how.settings ?? page.settings(), state: "running" };
  if (!talk.id) {
    Object.assign(talk, { id: newId(), version: 0, title: question });
    talks.set(talk.id, talk);
    history.replaceState(null, "", `#/c/${talk.id}`);
  }
  const place = talk.turns.findIndex((each) => each.id === how.replaces);
  talk.run = runOf(turn, talk.version + 2);
  talk.run.before = talk.turns;
  talk.turns = [...(place < 0 ? talk.turns : talk.turns.slice(0, place)), turn];
  talk.at = "";
  draw();
  if (place < 0) toEnd(talk.run.draft.item);
  else talk.run.draft.item.scrollIntoView({ block: "nearest" });
  if (document.activeElement === document.body) focusTurn(`turn-${turn.id}`);
  announce("The question was asked");
  const follows = talk.turns.at(-2)?.id ?? "";
  const body = { conversation: talk.id, turn: turn.id, question, alone: turn.alone, settings: turn.settings, replaces: how.replaces ?? "", follows };
  return follow(talk, body);
}

// Takes in what happens to an answer, until it is there or the conversation is left. Returns whether it was asked.
async function follow(talk, body) {
  const run = talk.run;
  if (run.reading) return true;
  run.reading = new AbortController();
  const path = body ? "api/turns" : `api/turns/${run.turn.id}/events?from=${run.position}`;
  try {
    for await (const told of stream(path, body, run.reading.signal)) take(talk, run, told);
  } catch (fault) {
    if (!run.hasBegun) refuse(talk, run);
    if (fault.status === 404 && run.hasBegun) gone(talk);
    else if (fault.status) {
      page.say(fault.message);
      if (fault.status === 404) await lookAnew();
    }
    else if (fault instanceof Away) setTimeout(look, AGAIN_MS);
    else if (fault.name !== "AbortError") throw fault;
  } finally {
    run.reading = null;
  }
  return run.hasBegun;
}

function take(talk, run, told) {
  const isAtEnd = talk === shown && atEnd();
  if (told.at !== undefined) run.position = told.at + 1;
  if (told.kind === "begun") begun(talk, run);
  else if (told.kind === "step") run.draft.step(told.text, told.replaces);
  else if (told.html) run.draft.write(told.from, told.html);
  else if (told.kind === "void") run.draft.void();
  else if (told.kind === "ended") ended(talk, run, told.turn, told.version);
  else if (told.kind === "gone") gone(talk);
  if (isAtEnd && talk.run) toEnd(run.draft.item);
  markEnd();
}

function begun(talk, run) {
  if (run.hasBegun) return;
  run.hasBegun = true;
  page.changed();
  if (run.isStopping) stopShown(talk);
  if (talk !== shown) run.reading.abort();
}

function ended(talk, run, turn, version) {
  talk.turns = talk.turns.map((each) => (each.id === turn.id ? turn : each));
  talk.version = version === run.expects ? version : -1;
  talk.run = null;
  page.changed();
  if (talk !== shown) return;
  steadily(turn.id, draw);
  if (talk.version < 0) setTimeout(look, AGAIN_MS);
  const answer = find(`turn-${turn.id}`)?.querySelector(".answer")?.innerText ?? "";
  if (turn.state === "answered") announce(`${turn.asked_back ? "A question back" : "The answer"}: ${answer.slice(0, SPOKEN)}`);
  else announce(ENDS[turn.state]);
}

// Its conversation was deleted, or the question was asked again by another window.
function gone(talk) {
  talk.run = null;
  talk.version = -1;
  setTimeout(look, AGAIN_MS);
}

// The server did not take the question in.
function refuse(talk, run) {
  talk.turns = run.before;
  talk.run = null;
  if (talk === shown) draw();
}

export async function stopShown(talk = shown) {
  const run = talk.run;
  if (!run) return;
  run.isStopping = true;
  if (run.hasBegun) await post(`api/turns/${run.turn.id}/stop`, {}).catch((fault) => { if (fault.status) page.say(fault.message); });
}

export async function submit() {
  const field = find("question");
  const talk = shown;
  const question = field.value.trim();
  if (!question) return;
  if (!talk.run) {
    field.value = "";
    keepTyped();
  }
  if (!(await ask(question)) && !talk.run) giveBack(talk, question);
}

// What the server did not take in can be asked again, where it was asked.
function giveBack(talk, question) {
  const place = talks.has(talk.id) && talk.turns.length ? talk.id : "";
  if (!place) drop(talk);
  if (shown.id === place && !find("question").value) {
    find("question").value = question;
    keepTyped();
  } else if (!sessionStorage.getItem(typedIn(place))) sessionStorage.setItem(typedIn(place), question);
}

// ---- What was typed is kept, whatever happens to the page or the server

const typedIn = (id) => `mara-typed-${id}`;
const typed = () => sessionStorage.getItem(typedIn(shown.id)) ?? "";

export function keepTyped() {
  const text = find("question").value;
  if (text) sessionStorage.setItem(typedIn(shown.id), text);
  else sessionStorage.removeItem(typedIn(shown.id));
}
