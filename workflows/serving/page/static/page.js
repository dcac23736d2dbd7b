// The page around a conversation: the list of all, the settings, and what the keyboard does.

import { deleteShown, keepTyped, look, lookAnew, panelClosed, renameShown, rest, setUpConversations, show, shownId, stopShown, submit } from "./conversation.js";
import { cover, goTo, uncover } from "./covering.js";
import { announce, button, fill, find, make } from "./dom.js";
import { setUpDocuments } from "./documents.js";
import { setConditions, setUpFilters, where } from "./filters.js";
import { closePanel, setUpPanel } from "./panel.js";
import { personal, setUpReading } from "./reading.js";
import { get, onTrouble } from "./server.js";

const LOOK_MS = 3000;
const SETTINGS = ["workspace", "workflow", "mode"];
let listed = ""; // what the list of conversations shows
let hasRunning = false; // whether one of them is being answered
let notice = "";
let trouble = ""; // why the server cannot be used; told in place of a notice

// ---- The list of conversations

async function loadThreads() {
  try {
    const { conversations } = await get("api/conversations");
    hasRunning = conversations.some((each) => each.running);
    const text = JSON.stringify(conversations.map((each) => [each.id, each.title, each.running]));
    if (text === listed) {
      markThread();
      return;
    }
    listed = text;
    const working = () => make("span", { className: "working", role: "img", ariaLabel: "(being answered)" });
    const links = conversations.map((each) => make("li", {}, make("a", { href: `#/c/${each.id}`, dir: "auto", title: each.title }, each.running ? working() : null, each.title)));
    const focused = find("thread-list").contains(document.activeElement) ? document.activeElement.hash : "";
    fill(find("thread-list"), ...links);
    if (focused) find("thread-list").querySelector(`a[href="${focused}"]`)?.focus();
    find("no-threads").hidden = links.length > 0;
    find("thread-list").hidden = !links.length;
    markThread();
  } catch (fault) {
    if (fault.status) say(fault.message);
  }
}

function markThread() {
  for (const link of find("thread-list").querySelectorAll("a")) {
    if (link.hash === `#/c/${shownId()}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

const isListOpen = () => find("threads").classList.contains("open");

// On a phone the list covers the conversation.
function toggleList(isOpen) {
  if (isOpen === isListOpen()) return;
  find("threads").classList.toggle("open", isOpen);
  find("open-threads").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) cover(() => toggleList(false));
  else uncover();
  (isOpen ? find("close-threads") : find("open-threads")).focus();
}

// Goes from the list to a conversation.
function choose(hash) {
  const wasOpen = isListOpen();
  find("threads").classList.remove("open");
  find("open-threads").setAttribute("aria-expanded", "false");
  goTo(hash);
  if (wasOpen) find("conversation").focus();
}

// ---- Around it

function say(text) {
  notice = text;
  tell();
}

function tell() {
  const close = () => button("✕", () => { say(""); find("question").focus(); }, { className: "icon", ariaLabel: "Close this message" });
  fill(find("trouble"), trouble || notice, trouble || !notice ? null : close());
  find("trouble").hidden = !(trouble || notice);
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

function settings() {
  const chosen = Object.fromEntries(SETTINGS.map((id) => [id, find(id).value]));
  if (!chosen.mode) delete chosen.mode;
  // Not kept for the next visit: whoever comes back asks about today.
  if (find("as_of").value) chosen.as_of = find("as_of").value;
  return { ...chosen, ...personal(), where: where() };
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
    await tried(() => renameShown(find("new-title").value));
  });
  find("delete").addEventListener("click", () => find("delete-dialog").showModal());
  find("delete-now").addEventListener("click", async () => {
    find("delete-dialog").close();
    await tried(deleteShown);
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
    if (isListOpen()) toggleList(false);
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
  setUpPanel(panelClosed);
  setUpDialogs();
  setUpKeys();
  setUpConversations({ say, settings, changed: loadThreads });
  onTrouble((text) => {
    const isBack = trouble && !text;
    trouble = text;
    tell();
    if (isBack) { announce("The server is back"); lookAnew(); loadThreads(); }
  }, askForKey);
  find("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  find("stop").addEventListener("click", () => { stopShown(); find("question").focus(); });
  find("new").addEventListener("click", () => { choose("#/"); find("question").focus(); });
  find("open-threads").addEventListener("click", () => toggleList(true));
  find("close-threads").addEventListener("click", () => toggleList(false));
  find("thread-list").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(link.hash);
  });
  document.addEventListener("click", (event) => { if (isListOpen() && !event.target.closest("#threads, #open-threads")) toggleList(false); });
  window.addEventListener("hashchange", () => {
    for (const dialog of document.querySelectorAll("#rename-dialog, #delete-dialog")) dialog.close();
    say("");
    open();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) rest();
    else { look(); loadThreads(); }
  });
  window.addEventListener("focus", look);
  setInterval(() => {
    if (document.hidden) return;
    look();
    if (hasRunning) loadThreads();
  }, LOOK_MS);
  setUpFilters(() => find("workspace").value, () => {});
  const told = await setUpWithServer();
  setUpSettings(told);
  setUpReading(told.history, say);
  setUpDocuments(told.uploads, () => find("workspace").value);
  open();
  loadThreads();
  find("question").focus();
}

function open() {
  show(conversationInAddress());
  markThread();
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
