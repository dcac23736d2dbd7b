// What covers the conversation, the panel or the list on a phone: Back closes it before it leaves.

let close = null;
let place = "";

export function cover(act) {
  if (!history.state?.covered) history.pushState({ covered: true }, "");
  close = act;
  place = location.hash;
}

// Takes that step back where what covered the conversation was closed otherwise.
export function uncover() {
  if (!close) return;
  close = null;
  if (history.state?.covered) history.back();
}

// Goes to another conversation, in place of that step.
export function goTo(hash) {
  close = null;
  if (history.state?.covered) location.replace(hash);
  else location.hash = hash;
}

window.addEventListener("popstate", () => {
  if (!close || history.state?.covered || location.hash !== place) return;
  const act = close;
  close = null;
  act();
});
