// Making elements; texts go in as text alone.

export const find = (id) => document.getElementById(id);

export function make(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name in element && name !== "list") element[name] = value;
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export function button(text, act, given = {}) {
  return make("button", { type: "button", ...given, on: { click: act } }, text);
}

export function fill(element, ...children) {
  element.replaceChildren(...children.filter(Boolean));
}

// Puts children in place as `fill` does; those that stay are not touched, and so keep the focus.
export function settle(element, items) {
  items.forEach((item, place) => {
    if (element.childNodes[place] !== item) element.insertBefore(item, element.childNodes[place] ?? null);
  });
  while (element.childNodes.length > items.length) element.lastChild.remove();
}

// Names and sources come from documents: whatever direction they are written in, they turn nothing around them.
export const name = (text) => make("bdi", {}, text);

export function announce(text) {
  find("announcer").textContent = text;
}

export function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}
