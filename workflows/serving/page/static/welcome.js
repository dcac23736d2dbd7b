// The first screen: what is in the workspace, questions that it answers, and what is missing.

import { ask } from "./conversation.js";
import { button, fill, find, make, plural } from "./dom.js";
import { get } from "./server.js";

const NO_MODEL = "Answers are quotes of your documents: no model is set to write them. ";
const SET_ONE = [" Set ", "OPENAI_API_KEY", ", or ", "OPENAI_BASE_URL", " and ", "MARA_CHAT_MODEL", " for a server of your own, or ", "MARA_CHAT_MODEL=local", " for the packaged one; then start the server again."];
let shown = null; // the workspace

export function setUpWelcome({ chat_model, has_key }) {
  find("model-card").hidden = chat_model !== "offline";
  const how = has_key ? ["The operator of this server can set one."] : SET_ONE.map((part, place) => (place % 2 ? make("code", {}, part) : part));
  fill(find("model-card"), NO_MODEL, ...how);
  find("first-documents").addEventListener("click", () => find("documents").click());
}

// `anew`: whether something may have changed since the workspace was looked at.
export async function welcome(anew = false) {
  const workspace = find("workspace").value;
  if (workspace === shown && !anew) return;
  shown = workspace;
  try {
    const { passages, documents, unread, questions } = await get(`api/welcome?workspace=${encodeURIComponent(workspace)}`);
    if (workspace !== shown) return;
    const held = passages ? `${plural(passages, "passage")} from ${plural(documents, "document")}.` : "There are no documents yet.";
    fill(find("holdings"), held, unread ? ` ${plural(unread, "file")} could not be read.` : null);
    fill(find("suggestions"), ...questions.map((question) => make("li", {}, button(question, () => ask(question), { dir: "auto" }))));
    find("first-documents").hidden = passages > 0 || find("documents").hidden;
  } catch (fault) {
    fill(find("holdings"), fault.message);
  }
}
