// Drawing the turns of a conversation.

import { announce, button, fill, make, name, plural } from "./dom.js";

const SAY_MS = 4000; // between two steps that are read out

const STATES = {
  stopped: "The answer was stopped.",
  cut: "The answer was cut off: the server ended before it was there.",
};

// `acts`: ask(question, how), turnTo(id), differs(turn), openPassage(turn, number, from), openReasons(turn, from).
export function drawTurn(turn, acts) {
  const item = make("li", { className: "turn", id: `turn-${turn.id}`, tabIndex: -1 });
  item.append(make("h2", { className: "asked", dir: "auto" }, make("span", { className: "unseen" }, "You asked: "), turn.question));
  const about = aboutQuestion({ asked_with: [], versions: [], ...turn }, acts);
  if (turn.state === "running") about.style.visibility = "hidden"; // It keeps its place for the answer.
  item.append(about);
  if (turn.state === "running") item.append(...running(turn));
  else if (turn.state === "answered") item.append(...answered(turn, acts));
  else item.append(...unanswered(turn, acts));
  return item;
}

function running(turn) {
  const steps = make("details", { className: "steps" }, make("summary", {}, "Asking …"), make("ol", {}));
  return [make("div", { className: "answer draft", dir: "auto" }), steps];
}

function answered(turn, acts) {
  const answer = written(turn.html, turn, acts);
  for (const table of answer.querySelectorAll("table")) {
    const scroll = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Table" });
    table.replaceWith(scroll);
    scroll.append(table);
  }
  for (const code of answer.querySelectorAll("pre")) {
    const box = make("div", { className: "code" }, copying(() => code.textContent, "The code"));
    code.tabIndex = 0;
    code.replaceWith(box);
    box.prepend(code);
  }
  return [
    turn.understood && !turn.asked_back ? understood(turn, acts) : null,
    turn.label ? make("p", { className: "kind" }, turn.label) : null,
    answer,
    turn.related ? related(turn, acts) : null,
    ...turn.remarks.map((remark) => make("p", { className: "remark", dir: "auto" }, remark)),
    turn.goes_on ? button("Go on", () => acts.ask(turn.question, { alone: turn.alone, replaces: turn.id, settings: { ...turn.settings, answer_tokens: turn.goes_on } })) : null,
    turn.asked_back ? choices(turn, acts) : sources(turn, acts),
    tools(turn, acts),
  ].filter(Boolean);
}

function written(html, turn, acts) {
  const text = make("div", { className: "answer", dir: "auto" });
  text.innerHTML = html; // Sanitised by the server.
  text.addEventListener("click", (event) => {
    const mark = event.target.closest("button.citation");
    if (mark) acts.openPassage(turn, Number(mark.dataset.number), mark);
  });
  return text;
}

const related = (turn, acts) => make("details", { className: "related" }, make("summary", {}, turn.also_related), written(turn.related, turn, acts));

// The settings that differ, the versions of a turn, and the way to another one.
function aboutQuestion(turn, acts) {
  const line = make("div", { className: "tools about" }, name(turn.asked_with.join(" · ")), versions(turn, acts));
  const edit = button("Edit", () => reword(line, edit, turn.question, "The question", { alone: turn.alone, replaces: turn.id }, acts), { className: "plain", ariaLabel: "Edit this question" });
  line.append(edit);
  return line;
}

function versions(turn, acts) {
  if (turn.versions.length < 2) return null;
  const at = turn.versions.indexOf(turn.id);
  const turnTo = (place, sign, ariaLabel) => button(sign, () => acts.turnTo(turn.versions[place]), { className: "icon", ariaLabel, disabled: !turn.versions[place] });
  const group = { className: "versions", role: "group", ariaLabel: "Versions" };
  return make("span", group, turnTo(at - 1, "‹", "The version before"), ` ${at + 1} of ${turn.versions.length} `, turnTo(at + 1, "›", "The next version"));
}

// Puts a form with some words in place of a line, until they are asked or left.
function reword(line, opener, words, ariaLabel, how, acts) {
  const field = make("textarea", { value: words, dir: "auto", ariaLabel, rows: 1, maxLength: 10000 });
  const leave = () => { form.replaceWith(line); opener.focus(); };
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) acts.ask(field.value.trim(), how);
  };
  const keydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key !== "Escape") return;
    event.stopPropagation();
    leave();
  };
  const form = make("form", { className: "correction", on: { submit, keydown } }, field, make("button", { type: "submit", className: "main" }, "Ask this"), button("Cancel", leave));
  line.replaceWith(form);
  field.focus();
  field.select();
}

function understood(turn, acts) {
  const line = make("p", { className: "understood" }, make("span", {}, "Understood as:"), name(turn.understood.question));
  const how = { alone: true, replaces: turn.id, settings: turn.settings };
  const correct = button("Correct", () => reword(line, correct, turn.understood.question, "The whole question", how, acts), { className: "plain", ariaLabel: "Correct what the question was understood as" });
  line.append(correct);
  return line;
}

function choices(turn, acts) {
  const offered = turn.understood?.choices ?? [];
  const buttons = offered.map((choice) => button(choice, () => acts.ask(choice, { alone: true, settings: turn.settings }), { dir: "auto" }));
  return make("div", { className: "choices", role: "group", ariaLabel: "What do you mean?" }, ...buttons);
}

function sources(turn, acts) {
  if (!turn.sources.length) return null;
  const buttons = turn.sources.map((source) => {
    const open = button("", () => acts.openPassage(turn, source.number, open), { title: source.source });
    open.append(make("b", {}, String(source.mark)), name(source.title), make("small", {}, " ", name(source.place)));
    return make("li", {}, open);
  });
  return make("ul", { className: "sources", ariaLabel: turn.sources_label }, ...buttons);
}

function tools(turn, acts) {
  const why = button("Why this answer?", () => acts.openReasons(turn, why), { className: "plain" });
  const copy = copying(() => turn.copied, "The answer");
  const notes = turn.notes.map((note) => make("li", { dir: "auto" }, note));
  const told = notes.length ? make("details", { className: "notes" }, make("summary", {}, plural(notes.length, "note")), make("ul", {}, ...notes)) : null;
  return make("div", { className: "tools" }, turn.asked_back ? null : why, copy, ...again(turn, acts), make("span", { className: "note" }, turn.took), told);
}

function copying(text, what) {
  const copy = button("Copy", async () => {
    await copyText(text());
    copy.textContent = "Copied";
    announce(`${what} was copied`);
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  }, { className: "plain" });
  return copy;
}

function unanswered(turn, acts) {
  const draft = turn.text ? written(turn.html, turn, acts) : null;
  draft?.classList.add("draft");
  const reason = turn.state === "failed" ? turn.error : STATES[turn.state];
  const parts = [draft, make("p", { className: "broken", dir: "auto" }, reason), make("div", { className: "tools" }, ...again(turn, acts))];
  return parts.filter(Boolean);
}

// With the settings that are chosen now, or else with those of then.
function again(turn, acts) {
  const how = { alone: turn.alone, replaces: turn.id };
  const ask = (text, more) => button(text, () => acts.ask(turn.question, { ...how, ...more }), { className: "plain" });
  return [ask("Ask again"), ...(acts.differs(turn) ? [ask("Ask again with the settings of then", { settings: turn.settings })] : [])];
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", { value: text, className: "unseen" });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

// A turn that is being answered.
export class Draft {
  constructor(turn, acts) {
    this.item = drawTurn(turn, acts);
    this.saidAt = 0;
  }

  step(text, replaces) {
    const [line, steps] = this.item.querySelector(".steps").children;
    if (replaces && steps.lastChild) steps.lastChild.textContent = text;
    else if (steps.lastChild?.textContent !== text) steps.append(make("li", {}, text));
    line.textContent = `${text} …`;
    if (!this.item.isConnected || performance.now() - this.saidAt < SAY_MS) return;
    this.saidAt = performance.now();
    announce(text);
  }

  // Takes in the blocks of an answer from a place on; the server made and sanitised them.
  write(from, blocks) {
    const draft = this.item.querySelector(".draft");
    while (draft.childElementCount > from) draft.lastElementChild.remove();
    draft.insertAdjacentHTML("beforeend", blocks.join(""));
  }

  void() {
    fill(this.item.querySelector(".draft"));
  }
}
