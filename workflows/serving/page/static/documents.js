// Adding documents: files are sent one by one, then indexed together.

import { button, fill, find, make, name, plural } from "./dom.js";
import { put, stream } from "./server.js";

const STAGES = { read: "Reading", extract: "Finding facts", embed: "Embedding", commit: "Writing", graph: "Building the graph" };
let limits = null;
let workspaceOf = () => "";
let added = () => {};
let waiting = 0; // drops that are not indexed yet
let work = Promise.resolve();

// `act`: called once documents were added.
export function setUpDocuments(given, workspace, act) {
  limits = given;
  workspaceOf = workspace;
  added = act;
  find("documents").hidden = !limits;
  if (!limits) return;
  find("documents").addEventListener("click", open);
  find("close-documents").addEventListener("click", () => find("documents-dialog").close());
  // Chromium gives the focus back to the question, but no keys, where it had the focus as files were dropped.
  find("documents-dialog").addEventListener("close", () => { find("question").blur(); find("question").focus(); });
  find("files").addEventListener("change", (event) => { add([...event.target.files]); event.target.value = ""; });
  let depth = 0;
  const over = make("div", { className: "over-page", ariaHidden: "true" }, "Drop to add these documents");
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  document.addEventListener("dragenter", (event) => { if (hasFiles(event) && depth++ === 0) document.body.append(over); });
  document.addEventListener("dragleave", (event) => { if (hasFiles(event) && --depth <= 0) { depth = 0; over.remove(); } });
  document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    over.remove();
    add([...event.dataTransfer.files]);
  });
}

function open() {
  const megabytes = Math.round(limits.file_bytes / 2 ** 20);
  find("documents-note").textContent = `Text, Markdown, HTML, PDF, Word and tables; at most ${limits.files} files of ${megabytes} MB each at once. Documents stay until the operator of the server removes them.`;
  if (find("documents-dialog").open) return;
  if (!waiting) {
    fill(find("file-list"));
    find("indexing").hidden = true;
  }
  find("documents-dialog").showModal();
}

// One drop after the other: a workspace has one writer at a time.
function inTurn(task) {
  waiting += 1;
  work = work.then(task).finally(() => { waiting -= 1; });
}

function add(files) {
  open();
  inTurn(() => addNow(files));
}

async function addNow(files) {
  if (files.length > limits.files) {
    fill(find("file-list"), make("li", { className: "refused" }, `These are ${files.length} files: add at most ${limits.files} at once.`));
    return;
  }
  const sent = [];
  for (const file of files) if (await send(file, false)) sent.push(file.name);
  if (sent.length) await index(sent, []);
}

async function send(file, isReplacing) {
  const line = make("li", {}, name(file.name), make("span", { className: "note" }, "sending …"));
  line.dataset.name = file.name;
  [...find("file-list").children].find((each) => each.dataset.name === file.name)?.remove();
  find("file-list").append(line);
  if (file.size > limits.file_bytes) return refuse(line, "It is too large.");
  try {
    await put(`api/documents/${encodeURIComponent(file.name)}?workspace=${encodeURIComponent(workspaceOf())}${isReplacing ? "&replace=yes" : ""}`, file);
  } catch (fault) {
    refuse(line, fault.message);
    if (fault.status === 409) {
      line.append(button("Replace", () => inTurn(async () => { if (await send(file, true)) await index([file.name], [file.name]); })));
    }
    return false;
  }
  line.lastChild.textContent = "taken in";
  return true;
}

function refuse(line, reason) {
  line.lastChild.className = "refused";
  line.lastChild.textContent = reason;
  return false;
}

async function index(names, replaced) {
  find("indexing").hidden = false;
  const bar = find("stage-progress");
  try {
    for await (const told of stream("api/documents", { workspace: workspaceOf(), names, replaced })) {
      if (told.kind === "progress") {
        find("stage").textContent = `${STAGES[told.stage] ?? told.stage}: ${told.done} of ${told.total}`;
        bar.max = Math.max(1, told.total);
        bar.value = told.done;
      } else if (told.kind === "failed") find("stage").textContent = told.message;
      else { ended(names, told.report); added(); }
    }
  } catch (fault) {
    find("stage").textContent = `${fault.message}. The documents are there; indexing goes on at the server.`;
  }
}

function ended(names, report) {
  find("stage-progress").value = find("stage-progress").max;
  const failed = report.failed ? `; ${plural(report.failed, "passage")} without facts` : "";
  find("stage").textContent = `Added ${plural(report.added, "passage")}${failed}. The workspace has ${plural(report.passages, "passage")}.`;
  for (const line of find("file-list").children) {
    const refused = report.refused.find((each) => each.name === line.dataset.name);
    if (refused) refuse(line, refused.reason);
    else if (names.includes(line.dataset.name)) line.lastChild.textContent = "added";
  }
}
