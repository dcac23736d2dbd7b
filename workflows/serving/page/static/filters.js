// Filtering by what passages say of themselves: their source and their metadata.

import { button, fill, find, make, plural } from "./dom.js";
import { get } from "./server.js";

const SIGNS = { $eq: "is", $ne: "is not", $gte: "at least", $lte: "at most" };
const known = new Map();
let conditions = [];
let changed = () => {};

export function setUpFilters(workspace, act) {
  changed = act;
  find("filter").addEventListener("click", () => open(workspace()));
  find("add-condition").addEventListener("click", () => find("filter-rows").append(row(known.get(workspace()) ?? [])));
  find("clear-filter").addEventListener("click", () => { setConditions([]); find("filter-dialog").close(); });
  find("filter-form").addEventListener("submit", () => setConditions(read()));
}

// What the server takes as `where`.
export function where() {
  const made = {};
  for (const { key, sign, value } of conditions) made[key] = { ...made[key], [sign]: value };
  return made;
}

export function setConditions(given) {
  conditions = given;
  const chips = conditions.map((each) => button(`${each.key} ${SIGNS[each.sign]} ${each.value} ✕`, () => {
    setConditions(conditions.filter((other) => other !== each));
    find("open-settings").focus();
  }, { ariaLabel: `Remove the condition ${each.key} ${SIGNS[each.sign]} ${each.value}`, dir: "auto" }));
  fill(find("conditions"), ...chips);
  find("conditions").hidden = !chips.length;
  changed(conditions);
}

async function open(workspace) {
  fill(find("filter-rows"));
  find("filter-note").textContent = "Opening …";
  find("filter-dialog").showModal();
  try {
    const { keys } = await get(`api/filters?workspace=${encodeURIComponent(workspace)}`);
    known.set(workspace, keys);
    find("filter-note").textContent = keys.length ? "All conditions must hold." : "No passage has a source or metadata to filter by.";
    fill(find("filter-rows"), ...(conditions.length ? conditions : [null]).map((each) => row(keys, each)));
    find("filter-rows").querySelector("select")?.focus();
  } catch (fault) {
    find("filter-note").textContent = fault.message;
  }
}

function row(keys, given) {
  const key = make("select", { ariaLabel: "What" }, ...keys.map((each) => make("option", { value: each.key }, each.key)));
  const sign = make("select", { ariaLabel: "How" }, ...Object.entries(SIGNS).map(([value, label]) => make("option", { value }, label)));
  const list = make("datalist", { id: `values-${Math.random().toString(36).slice(2)}` });
  const value = make("input", { ariaLabel: "Value", dir: "auto" });
  value.setAttribute("list", list.id);
  const offer = () => {
    const chosen = keys.find((each) => each.key === key.value);
    fill(list, ...(chosen?.values ?? []).map((each) => make("option", { value: String(each) })));
    value.placeholder = chosen ? plural(chosen.n_values, "known value") : "";
  };
  if (given) [key.value, sign.value, value.value] = [given.key, given.sign, String(given.value)];
  key.addEventListener("change", () => { value.value = ""; offer(); });
  offer();
  const drawn = make("div", { className: "condition", role: "group", ariaLabel: "Condition" }, key, sign, value, list);
  drawn.append(button("✕", () => { drawn.remove(); find("add-condition").focus(); }, { className: "icon", ariaLabel: "Remove this condition" }));
  drawn.read = () => (value.value.trim() ? { key: key.value, sign: sign.value, value: typed(keys, key.value, value.value.trim()) } : null);
  return drawn;
}

const read = () => [...find("filter-rows").children].map((each) => each.read()).filter(Boolean);

// A value is of the type that the documents have it in.
function typed(keys, key, text) {
  const chosen = keys.find((each) => each.key === key);
  const same = chosen?.values.find((each) => String(each) === text);
  if (same !== undefined) return same;
  return chosen?.numbers && !Number.isNaN(Number(text)) ? Number(text) : text;
}
