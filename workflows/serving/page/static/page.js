// The page: its conversations, the question that is being asked, and what the keyboard does.

import { announce, fill, find, make, settle } from "./dom.js";
import { setUpDocuments } from "./documents.js";
import { setConditions, setUpFilters, where } from "./filters.js";
import { closePanel, openPassage, openReasons, setUpPanel } from "./panel.js";
import { personal, setUpReading } from "./reading.js";
import { get, onTrouble, patch, remove, stream } from "./server.js";
import { Draft, drawTurn } from "./turns.js";

const LOOK_MS = 3000;
const SPOKEN = 1000; // characters of an answer that are read out by themselves
const SETTINGS = ["workspace", "workflow", "mode"];
const unread = (id) => ({ id, version: -1, title: "", turns: [] }); // a conversation; its id is empty where it is new
let open = unread("");
const drawn = new Map(); // by id: what was drawn, and its element
let listed = ""; // what the list of conversations shows
const runs = new Map(); // by conversation: {within, item, hides, place, stop}: the turn that this window is being answered
const broken = new Set(); // turns whose stream broke in this window

const acts = { ask, openPassage, openReasons };

const newId = () => (crypto.randomUUID ? crypto.randomUUID() : Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(""));

// ---- The conversation

async function openConversation(id) {
  keepTyped();
  open = runs.get(id)?.within ?? unread(id);
  drawn.clear();
  closePanel();
  tellTitle(open.title);
  find("question").value = typed();
  redraw();
  markThread();
  await look();
}

// Asks whether there is anything new, unless this window is being answered.
async function look() {
  const asked = open;
  if (!asked.id || runs.has(asked.id)) return;
  const waiting = asked.turns.some((turn) => turn.state === "running") ? "&running=1" : "";
  try {
    const told = await get(`api/conversations/${asked.id}?version=${asked.version}${waiting}`);
    if (told.unchanged || asked !== open || runs.has(asked.id)) return;
    const isNew = asked.version !== told.version;
    asked.version = told.version;
    asked.turns = told.turns.map((turn) => (turn.state === "running" && broken.has(turn.id) ? { ...turn, state: "broken" } : turn));
    tellTitle(told.title);
    redraw();
    if (isNew) loadThreads();
  } catch (fault) {
    if (fault.status === 404 && asked === open) {
      say("There is no such conversation: it may have been deleted.");
      location.hash = "#/";
    }
  }
}

function redraw() {
  const list = find("turns");
  const isAtEnd = atEnd();
  const run = runs.get(open.id);
  const items = open.turns.map((turn) => {
    const text = JSON.stringify(turn);
    const known = drawn.get(turn.id);
    if (known?.text === text) return known.item;
    const item = drawTurn(turn, acts);
    drawn.set(turn.id, { text, item });
    return item;
  });
  if (run) items.splice(run.place(), run.hides ? 1 : 0, run.item);
  settle(list, items);
  find("welcome").hidden = Boolean(open.id);
  for (const id of ["rename", "delete"]) find(id).hidden = !items.length;
  find("send").hidden = Boolean(run);
  find("stop").hidden = !run;
  if (isAtEnd) toEnd();
}

const atEnd = () => {
  const box = find("conversation");
  return box.scrollHeight - box.scrollTop - box.clientHeight < 80;
};
const toEnd = () => { find("conversation").scrollTop = find("conversation").scrollHeight; };

function tellTitle(title) {
  open.title = title;
  find("title").textContent = title || "New conversation";
  document.title = title ? `${title} · mara` : "mara";
}

// ---- Asking

function settings() {
  const chosen = Object.fromEntries(SETTINGS.map((id) => [id, find(id).value]));
  if (!chosen.mode) delete chosen.mode;
  // Not kept for the next visit: whoever comes back asks about today.
  if (find("as_of").value) chosen.as_of = find("as_of").value;
  return { ...chosen, ...personal(), where: where() };
}

async function ask(question, how = {}) {
  if (runs.has(open.id)) {
    say("One question at a time: stop the answer first, or wait for it.");
    return false;
  }
  const within = open;
  const turn = { id: newId(), question, alone: how.alone === true, settings: how.settings ?? settings(), state: "running" };
  const place = () => within.turns.findIndex((each) => each.id === how.replaces);
  const replaced = place();
  const stop = new AbortController();
  const draft = new Draft(turn, acts);
  const run = {
    within,
    stop,
    item: draft.item,
    hides: replaced >= 0,
    place: () => (replaced >= 0 ? Math.max(0, place()) : within.turns.length),
  };
  if (!within.id) {
    within.id = newId();
    within.version = 0;
    history.replaceState(null, "", `#/c/${within.id}`);
    tellTitle(question);
  }
  runs.set(within.id, run);
  closePanel();
  redraw();
  if (replaced < 0) toEnd();
  else draft.item.scrollIntoView({ block: "nearest" });
  announce("The question was asked");
  let hasBegun = false;
  let hasEnded = false;
  let isRefused = false;
  try {
    const body = { conversation: within.id, turn: turn.id, question, alone: turn.alone, settings: turn.settings, replaces: how.replaces ?? "" };
    for await (const told of stream("api/turns", body, stop.signal)) {
      hasBegun = true;
      const isAtEnd = atEnd();
      if (told.kind === "step") draft.step(told.text, told.replaces);
      else if (told.kind === "token") draft.token(told.text);
      else if (told.kind === "void") draft.void();
      else if (told.kind === "ended") {
        hasEnded = true;
        ended(run, told.turn, how.replaces);
        // The turn's begin and its end: where nothing else changed, nothing else is to be loaded.
        within.version = told.version === within.version + 2 ? told.version : -1;
      }
      if (isAtEnd && within === open) toEnd();
    }
  } catch (fault) {
    const isStopped = fault.name === "AbortError";
    isRefused = !hasBegun && !isStopped;
    if (fault.status) say(fault.message);
    if (isStopped) announce("The answer was stopped");
    else if (hasBegun) broken.add(turn.id);
    if (!isRefused && !within.turns.some((each) => each.id === turn.id)) ended(run, { ...draft.turn, steps: undefined, state: isStopped ? "stopped" : "broken" }, how.replaces);
  } finally {
    runs.delete(within.id);
    if (!hasEnded) within.version = -1;
    redraw();
    setTimeout(look, 150);
    loadThreads();
  }
  return !isRefused;
}

// Takes in how a turn ended; what it replaces goes where it was answered.
function ended(run, turn, replaces) {
  const turns = run.within.turns;
  const place = turns.findIndex((each) => each.id === replaces);
  if (place < 0) turns.push(turn);
  else if (turn.state === "answered" || turns[place].state !== "answered") turns[place] = turn;
  else turns.splice(place + 1, 0, turn);
  run.item = document.createComment("");
  run.hides = false;
  if (run.within !== open) return;
  if (turn.state === "answered") announce(`${turn.asked_back ? "A question back" : "The answer"}: ${turn.text.slice(0, SPOKEN)}`);
  if (turn.state === "failed") announce("The question failed");
}

async function submit() {
  const field = find("question");
  const within = open;
  const question = field.value.trim();
  if (!question || runs.has(within.id)) return;
  field.value = "";
  keepTyped();
  const isTaken = await ask(question);
  if (!isTaken && within === open && !field.value) {
    if (!within.turns.length) beginAnew();
    field.value = question;
    keepTyped();
  }
}

// Leaves a conversation that has no turn, as the server knows nothing of it.
function beginAnew() {
  open = unread("");
  history.replaceState(null, "", "#/");
  tellTitle("");
  redraw();
}

// ---- What was typed is kept, whatever happens to the page or the server

const typedIn = () => `mara-typed-${open.id}`;
const typed = () => sessionStorage.getItem(typedIn()) ?? "";
function keepTyped() {
  const text = find("question").value;
  if (text) sessionStorage.setItem(typedIn(), text);
  else sessionStorage.removeItem(typedIn());
}

// ---- The list of conversations

async function loadThreads() {
  try {
    const { conversations } = await get("api/conversations");
    const text = JSON.stringify(conversations.map((each) => [each.id, each.title]));
    if (text === listed) return;
    listed = text;
    const links = conversations.map((each) => make("li", {}, make("a", { href: `#/c/${each.id}`, dir: "auto", title: each.title }, each.title)));
    fill(find("thread-list"), ...links);
    find("no-threads").hidden = links.length > 0;
    find("thread-list").hidden = !links.length;
    markThread();
  } catch (fault) {
    if (fault.status) say(fault.message);
  }
}

function markThread() {
  for (const link of find("thread-list").querySelectorAll("a")) {
    if (link.hash === `#/c/${open.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function toggleThreads(isOpen) {
  find("threads").classList.toggle("open", isOpen);
  find("open-threads").setAttribute("aria-expanded", String(isOpen));
  (isOpen ? find("close-threads") : find("open-threads")).focus();
}

// ---- Around it

function say(text) {
  find("trouble").textContent = text;
  find("trouble").hidden = !text;
}

function askForKey(refused) {
  const dialog = find("key-dialog");
  find("key-refused").textContent = refused;
  find("key-refused").hidden = !refused;
  find("key").value = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((done) => {
    find("key-form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close();
      done(find("key").value.trim());
    };
  });
}

function offer(id, choices, kept) {
  const select = find(id);
  fill(select, ...choices.map(([value, label]) => make("option", { value }, label)));
  if (choices.some(([value]) => value === kept)) select.value = kept;
}

function setUpSettings(told) {
  const kept = JSON.parse(localStorage.getItem("mara-settings") ?? "{}");
  offer("workspace", told.workspaces.map((each) => [each.name, each.title]), kept.workspace);
  offer("workflow", told.workflows.map((each) => [each, each]), kept.workflow);
  offer("mode", [["", "default"], ...told.modes.map((each) => [each, each])], kept.mode);
  find("workspace-setting").hidden = told.workspaces.length < 2;
  for (const id of SETTINGS) {
    find(id).addEventListener("change", () => {
      localStorage.setItem("mara-settings", JSON.stringify(Object.fromEntries(SETTINGS.map((each) => [each, find(each).value]))));
      if (id === "workspace") setConditions([]);
    });
  }
  const model = told.chat_model === "offline" ? "no model: answers quote the documents" : `answers by ${told.chat_model}`;
  find("served").textContent = told.has_key ? `${told.name}; ${model}` : model;
  find("question").maxLength = told.question_limit;
}

function setUpTheme() {
  const theme = find("theme");
  theme.value = localStorage.getItem("mara-theme") ?? "light dark";
  const apply = () => { document.documentElement.style.colorScheme = theme.value; };
  theme.addEventListener("change", () => { localStorage.setItem("mara-theme", theme.value); apply(); });
  apply();
}

function setUpDialogs() {
  for (const cancel of document.querySelectorAll("dialog .cancel")) cancel.addEventListener("click", () => cancel.closest("dialog").close());
  find("key-dialog").addEventListener("cancel", (event) => event.preventDefault());
  find("rename").addEventListener("click", () => {
    find("new-title").value = find("title").textContent;
    find("rename-dialog").showModal();
    find("new-title").select();
  });
  find("rename-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    find("rename-dialog").close();
    const renamed = open;
    await tried(async () => {
      await patch(`api/conversations/${renamed.id}`, { title: find("new-title").value });
      renamed.title = find("new-title").value;
      tellTitle(open.title);
      await look();
    });
  });
  find("delete").addEventListener("click", () => find("delete-dialog").showModal());
  find("delete-now").addEventListener("click", async () => {
    find("delete-dialog").close();
    await tried(async () => { runs.get(open.id)?.stop.abort(); await remove(`api/conversations/${open.id}`); });
    location.hash = "#/";
    loadThreads();
    find("question").focus();
  });
}

async function tried(work) {
  try {
    await work();
  } catch (fault) {
    say(fault.message);
  }
}

function setUpKeys() {
  const field = find("question");
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  });
  field.addEventListener("input", () => { keepTyped(); fit(field); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    if (find("threads").classList.contains("open")) toggleThreads(false);
    else closePanel();
  });
}

// For browsers that do not let a field grow with its text by themselves.
function fit(field) {
  if (!CSS.supports("field-sizing", "content")) field.rows = Math.min(10, field.value.split("\n").length);
}

const conversationInAddress = () => /^#\/c\/([A-Za-z0-9-]{8,64})$/.exec(location.hash)?.[1] ?? "";

async function start() {
  setUpTheme();
  setUpPanel();
  setUpDialogs();
  setUpKeys();
  let wasAway = false;
  onTrouble((text) => {
    say(text);
    if (wasAway && !text) { announce("The server is back"); open.version = -1; look(); loadThreads(); }
    wasAway = Boolean(text);
  }, askForKey);
  find("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  find("stop").addEventListener("click", () => { runs.get(open.id)?.stop.abort(); find("question").focus(); });
  find("new").addEventListener("click", () => { location.hash = "#/"; toggleThreads(false); find("question").focus(); });
  find("open-threads").addEventListener("click", () => toggleThreads(true));
  find("close-threads").addEventListener("click", () => toggleThreads(false));
  find("thread-list").addEventListener("click", () => find("threads").classList.remove("open"));
  window.addEventListener("hashchange", () => { if (conversationInAddress() !== open.id) openConversation(conversationInAddress()); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { look(); loadThreads(); } });
  window.addEventListener("focus", look);
  setInterval(() => { if (!document.hidden) look(); }, LOOK_MS);
  setUpFilters(() => find("workspace").value, () => {});
  const told = await setUpWithServer();
  setUpSettings(told);
  setUpReading(told.history, say);
  setUpDocuments(told.uploads, () => find("workspace").value);
  await openConversation(conversationInAddress());
  loadThreads();
  find("question").focus();
}

// Waits for a server that is not there yet.
async function setUpWithServer() {
  for (;;) {
    try {
      return await get("api/setup");
    } catch (fault) {
      if (fault.status) say(fault.message);
      await new Promise((done) => setTimeout(done, LOOK_MS));
    }
  }
}

start();
