// The list of conversations: searched, by date, with a menu for each.

import { deleteTalk, exportPath, renameTalk, shownId } from "./conversation.js";
import { cover, goTo, uncover } from "./covering.js";
import { announce, button, fill, find, make } from "./dom.js";
import { get, poll } from "./server.js";

const DAY_MS = 86_400_000;
const SEARCH_MS = 200;
const KEPT_MS = 60_000;
let listed = ""; // what the list shows
let hasRunning = false; // whether one of the conversations is being answered
let meant = { id: "", title: "" }; // the conversation that the menu and the dialogs are about
let say = () => {};
let waiting = 0;

export async function loadThreads() {
  const words = find("search").value.trim();
  try {
    const { conversations } = await poll(`api/conversations?words=${encodeURIComponent(words)}`);
    if (words !== find("search").value.trim()) return;
    hasRunning = conversations.some((each) => each.running);
    const rows = conversations.map(({ id, title, running, changed }) => ({ id, title, running, period: period(changed * 1000) }));
    const text = JSON.stringify([words, rows]);
    if (text !== listed) drawThreads(rows, words);
    listed = text;
    markThread();
  } catch (fault) {
    if (fault.status) say(fault.message);
  }
}

// In the time zone of the visitor.
function period(at) {
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / DAY_MS);
  return days < 1 ? "Today" : days < 2 ? "Yesterday" : days < 8 ? "Last 7 days" : "Earlier";
}

function drawThreads(rows, words) {
  const list = find("thread-list");
  const { localName } = document.activeElement;
  const focused = list.contains(document.activeElement) && document.activeElement.closest("li").dataset.id;
  fill(list, ...[...Map.groupBy(rows, (row) => row.period)].map(([title, each]) => make("section", { ariaLabel: title }, make("p", { className: "note", ariaHidden: "true" }, title), make("ul", {}, ...each.map(drawThread)))));
  if (focused) list.querySelector(`[data-id="${focused}"] ${localName}`)?.focus();
  find("no-threads").textContent = rows.length ? "" : words ? "No conversation holds these words." : "Conversations appear here.";
  list.hidden = !rows.length;
}

function drawThread({ id, title, running }) {
  const working = running ? make("span", { className: "working", role: "img", ariaLabel: "(being answered)" }) : null;
  const menu = button("⋯", () => openMenu({ id, title }, menu), { className: "icon", ariaLabel: `Menu of ${title}` });
  menu.setAttribute("aria-haspopup", "true");
  const item = make("li", {}, make("a", { href: `#/c/${id}`, dir: "auto", title }, working, title), menu);
  item.dataset.id = id;
  return item;
}

export function markThread() {
  for (const link of find("thread-list").querySelectorAll("a")) {
    if (link.hash === `#/c/${shownId()}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// It also tells whether the server is there, where no conversation is open.
export const loadRunning = () => { if (hasRunning || !shownId()) loadThreads(); };

// ---- The menu of a conversation

function openMenu(conversation, opener) {
  meant = conversation;
  const menu = find("thread-menu");
  menu.showPopover();
  const { left, bottom } = opener.getBoundingClientRect();
  menu.style.left = `${Math.min(left, innerWidth - menu.offsetWidth - 8)}px`;
  menu.style.top = `${Math.min(bottom, innerHeight - menu.offsetHeight - 8)}px`;
  menu.querySelector("button").focus();
}

function openDialog(kind) {
  find("thread-menu").hidePopover();
  find("new-title").value = meant.title;
  find("delete-named").textContent = meant.title;
  find(`${kind}-dialog`).showModal();
  if (kind === "rename") find("new-title").select();
}

async function exportMeant() {
  find("thread-menu").hidePopover();
  const { text } = await get(exportPath(meant.id));
  const href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  make("a", { href, download: `${meant.title.replace(/[^\p{L}\p{N} -]+/gu, " ").trim() || "Conversation"}.md` }).click();
  setTimeout(() => URL.revokeObjectURL(href), KEPT_MS);
  announce("The conversation was exported");
}

const tried = (work) => work().catch((fault) => say(fault.message));

export function setUpList(tell) {
  say = tell;
  find("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(loadThreads, SEARCH_MS);
  });
  find("thread-list").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(link.hash);
  });
  for (const kind of ["rename", "delete"]) {
    find(`${kind}-meant`).addEventListener("click", () => openDialog(kind));
    find(kind).addEventListener("click", () => {
      meant = { id: shownId(), title: find("title").textContent };
      openDialog(kind);
    });
  }
  find("export-meant").addEventListener("click", () => tried(exportMeant));
  find("rename-form").addEventListener("submit", (event) => {
    event.preventDefault();
    find("rename-dialog").close();
    tried(() => renameTalk(meant.id, find("new-title").value));
  });
  find("delete-now").addEventListener("click", async () => {
    find("delete-dialog").close();
    await tried(() => deleteTalk(meant.id));
    find("question").focus();
  });
  find("open-threads").addEventListener("click", () => toggleList(true));
  find("close-threads").addEventListener("click", () => toggleList(false));
  document.addEventListener("click", (event) => { if (isListOpen() && !event.target.closest("#threads, #open-threads, dialog")) toggleList(false); });
}

// ---- On a phone the list covers the conversation

export const isListOpen = () => find("threads").classList.contains("open");

export function toggleList(isOpen) {
  if (isOpen === isListOpen()) return;
  find("threads").classList.toggle("open", isOpen);
  find("open-threads").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) cover(() => toggleList(false));
  else uncover();
  (isOpen ? find("close-threads") : find("open-threads")).focus();
}

// Goes from the list to a conversation.
export function choose(hash) {
  const wasOpen = isListOpen();
  find("threads").classList.remove("open");
  find("open-threads").setAttribute("aria-expanded", "false");
  goTo(hash);
  if (wasOpen) find("conversation").focus();
}
