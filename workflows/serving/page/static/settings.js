// The settings of the questions to come, behind one button.

import { fill, find, make } from "./dom.js";
import { setConditions, setUpFilters, where } from "./filters.js";
import { personal } from "./reading.js";

const KEPT = ["workspace", "workflow", "mode"]; // for the next visit, which asks about today
let changed = () => {};

export function settings() {
  const chosen = Object.fromEntries([...KEPT, "as_of"].map((id) => [id, find(id).value]).filter(([id, value]) => value || id === "workspace"));
  return { ...chosen, ...personal(), where: where() };
}

function offer(id, choices, kept) {
  fill(find(id), ...choices.map(([value, label]) => make("option", { value }, label)));
  if (choices.some(([value]) => value === kept)) find(id).value = kept;
}

export function setUpSettings(told, act) {
  changed = act;
  const kept = JSON.parse(localStorage.getItem("mara-settings") ?? "{}");
  offer("workspace", told.workspaces.map((each) => [each.name, each.title]), kept.workspace);
  offer("workflow", told.workflows, kept.workflow);
  offer("mode", [["", "As usual"], ...told.modes], kept.mode);
  find("workspace-setting").hidden = told.workspaces.length < 2;
  setUpFilters(() => find("workspace").value, take);
  find("open-settings").addEventListener("click", () => find("settings-dialog").showModal());
  find("settings-dialog").addEventListener("change", (event) => {
    localStorage.setItem("mara-settings", JSON.stringify(Object.fromEntries(KEPT.map((id) => [id, find(id).value]))));
    if (event.target.id === "workspace") setConditions([]);
    else take();
  });
  find("use-defaults").addEventListener("click", () => {
    for (const id of KEPT) find(id).selectedIndex = 0;
    find("as_of").value = "";
    if (find("personalise").checked) find("personalise").click();
    setConditions([]);
    find("workspace").dispatchEvent(new Event("change", { bubbles: true }));
  });
  take();
}

function take() {
  const count = KEPT.filter((id) => find(id).selectedIndex > 0).length + [find("as_of").value, personal().personalise, Object.keys(where()).length].filter(Boolean).length;
  find("open-settings").textContent = count ? `Settings (${count})` : "Settings";
  changed();
}
