"use strict";

// What the page is made of: texts, elements, and the marks that stand for kinds of nodes and for relation types.

const byId = (id) => document.getElementById(id);
// Control characters, and marks that turn the direction of what stands beside a text, are not shown.
const UNSHOWN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
const clean = (text) => String(text).replace(UNSHOWN, "");
const percent = (share) => (share === 0 ? "0 %" : `${Number((share * 100).toPrecision(3))} %`);
const signOf = (number) => (number === 0 ? "±" : number < 0 ? "−" : "+");

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const isolated = (text) => make("bdi", {}, clean(text));
const pairs = (rows) => rows.flatMap(([term, value]) => [make("dt", {}, term), make("dd", {}, value)]);

function drawn(width, height, shape, attributes) {
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const figure = document.createElementNS("http://www.w3.org/2000/svg", shape);
  const all = [[picture, { width, height, "aria-hidden": "true" }], [figure, attributes]];
  for (const [element, values] of all) for (const name in values) element.setAttribute(name, values[name]);
  picture.append(figure);
  return picture;
}

function kindSwatch(kind) {
  const paint = { fill: `var(--${kind})`, stroke: `var(--${kind}-line)`, "stroke-width": 1.5 };
  if (kind === "seed") return drawn(16, 16, "path", { d: "M8 1 15 8 8 15 1 8Z", ...paint });
  if (kind === "entity") return drawn(16, 16, "circle", { cx: 8, cy: 8, r: 6, ...paint });
  return drawn(16, 16, "rect", { x: 2, y: 2, width: 12, height: 12, rx: 2, ...paint });
}

// Of each relation type a line as the drawing has it, the name of its colour, and its words.
function relationMarks(dashes, words) {
  const relationWord = (relation) => (Object.hasOwn(words, relation) ? words[relation] : clean(relation));
  const colourOf = (relation) => `var(--${relation in dashes ? relation : "quiet"})`;
  const relationSwatch = (relation) => {
    const dash = (relation in dashes ? dashes[relation] : []).join(" ");
    const line = { x1: 1, y1: 6, x2: 33, y2: 6, stroke: colourOf(relation), "stroke-width": 3.5, "stroke-dasharray": dash };
    return drawn(34, 12, "line", line);
  };
  return { colourOf, relationSwatch, relationWord };
}
