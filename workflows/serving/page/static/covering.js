// What covers the conversation, the panel or the list on a phone: Back closes it before it leaves.

const phone = matchMedia("(max-width: 760px)");
let close = null;
let place = "";
let covering = null; // what leaves nothing else in sight on a phone

export function cover(act, whole = null) {
  if (!history.state?.covered) history.pushState({ covered: true }, "");
  close = act;
  place = location.hash;
  covering = whole;
  shade();
}

// Takes that step back where what covered the conversation was closed otherwise.
export function uncover() {
  reveal();
  if (!close) return;
  close = null;
  if (history.state?.covered) history.back();
}

// Goes to another conversation, in place of that step.
export function goTo(hash) {
  reveal();
  close = null;
  if (history.state?.covered) location.replace(hash);
  else location.hash = hash;
}

export function reveal() {
  covering = null;
  shade();
}

// What is covered is not reached by the keyboard, either.
function shade() {
  for (const each of document.querySelectorAll("#threads, #main, #panel")) each.inert = phone.matches && covering !== null && each !== covering;
}

phone.addEventListener("change", shade);
window.addEventListener("popstate", () => {
  if (!close || history.state?.covered || location.hash !== place) return;
  const act = close;
  close = null;
  reveal();
  act();
});
if (history.state?.covered) history.back(); // The page was loaded again, and nothing covers it.
