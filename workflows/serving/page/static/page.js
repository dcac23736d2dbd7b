// The page around a conversation: what the keyboard does, and what is told of the server.

import { draw, keepTyped, look, lookAnew, panelClosed, rest, setUpConversations, show, stopShown, submit } from "./conversation.js";
import { announce, button, fill, find } from "./dom.js";
import { setUpDocuments } from "./documents.js";
import { choose, isListOpen, loadRunning, loadThreads, markThread, setUpList, toggleList } from "./list.js";
import { closePanel, setUpPanel } from "./panel.js";
import { setUpReading } from "./reading.js";
import { get, onTrouble } from "./server.js";
import { settings, setUpSettings } from "./settings.js";
import { setUpWelcome, welcome } from "./welcome.js";

const LOOK_MS = 3000;
let notice = "";
let trouble = ""; // why the server cannot be used; told in place of a notice

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
}

const SHORTCUTS = {
  n: () => { choose("#/"); find("question").focus(); },
  f: () => { if (!find("search").checkVisibility()) toggleList(true); find("search").focus(); },
  x: stopShown,
  q: () => find("question").focus(),
};

// With Alt and Shift, which neither browsers nor screen readers take for these letters.
function shortcut(event) {
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "?" && !event.target.closest("input, textarea, select")) find("keys-dialog").showModal();
  if (!event.altKey || !event.shiftKey || event.ctrlKey || event.metaKey) return;
  const letter = /^[a-z]$/i.test(event.key) ? event.key.toLowerCase() : event.code.slice(3).toLowerCase();
  if (!SHORTCUTS[letter]) return;
  event.preventDefault();
  SHORTCUTS[letter]();
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
  document.addEventListener("keydown", shortcut);
  find("open-keys").addEventListener("click", () => find("keys-dialog").showModal());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.querySelector("dialog[open], :popover-open")) return;
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
  setUpList(say);
  setUpConversations({ say, settings, changed: loadThreads });
  onTrouble((text) => {
    const isBack = trouble && !text;
    trouble = text;
    tell();
    if (isBack) { announce("The server is back"); lookAnew(); loadThreads(); }
  }, askForKey);
  find("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  find("stop").addEventListener("click", () => { stopShown(); find("question").focus(); });
  find("new").addEventListener("click", SHORTCUTS.n);
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
    loadRunning();
  }, LOOK_MS);
  const told = await setUpWithServer();
  setUpReading(told.history, say);
  setUpWelcome(told);
  setUpSettings(told, () => { draw(); welcome(); });
  setUpDocuments(told.uploads, () => find("workspace").value, () => welcome(true));
  const model = told.chat_model === "offline" ? "no model: answers quote the documents" : `answers by ${told.chat_model}`;
  find("served").textContent = told.has_key ? `${told.name}; ${model}` : model;
  find("question").maxLength = told.question_limit;
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
