"use strict";

// Of many edges, those are drawn at first that carry this share of what all of them carry together.
const MAIN_SHARE = 0.95;
const isLarge = (data) => data.nodes.length > 140;

// Draws an explanation; `words` tells how page and drawing name things: kindOf, title, clean, flow. Tells `onHover` and
// `onChoose` what is pointed at or tapped: {kind: "node" | "edge", id}, or null.
function makeDrawing({ data: DATA, container, words: { kindOf, title, clean, flow }, onHover, onChoose }) {
  const LAST = DATA.stops.length - 1;
  const MANY = isLarge(DATA);
  const NEAR = 2.2;
  const DASHES = DATA.dashes;
  const NARROW = 560;
  const LONGEST_LABEL = 60;
  const EDGES = new Map(DATA.edges.map((edge) => [edge.id, edge]));
  let stop = LAST;
  let colours = getComputedStyle(document.documentElement);

  const BASE = Math.min(46, Math.max(15, 0.42 * Math.sqrt(1e6 / DATA.nodes.length)));
  const TOP_MASS = Math.max(...DATA.nodes.flatMap((node) => node.mass), 1e-12);
  const TOP_FLOW = DATA.edges.reduce((top, edge) => Math.max(top, ...DATA.stops.map((_, at) => flow(edge, at))), 1e-12);

  const LEAST = { seed: 0.5, cited: 0.62, best: 0.36, passage: 0.3, entity: 0.2 };
  const LEAST_OF_MANY = { seed: 1, cited: 1.2, best: 0.8, passage: 0.36, entity: 0.3 };

  function sizeOf(node) {
    const best = node.rank !== null && node.rank[LAST] <= 5;
    const least = (MANY ? LEAST_OF_MANY : LEAST)[best && kindOf(node) === "passage" ? "best" : kindOf(node)];
    return BASE * Math.max(least, Math.sqrt(node.mass[stop] / TOP_MASS));
  }

  function carried(edge) {
    const part = Math.sqrt(flow(edge, stop) / TOP_FLOW);
    const width = 0.6 + part * (MANY ? 6 : 10);
    const way = edge.forward[stop] >= edge.backward[stop] ? 1 : -1;
    return { width, way: width < 1.2 ? 0 : way, opacity: Math.min(1, (MANY ? 0.1 : 0.35) + part * 1.3) };
  }

  function atStop() {
    cy.batch(() => {
      for (const node of DATA.nodes) cy.$id(node.id).data("size", sizeOf(node));
      for (const edge of DATA.edges) cy.$id(edge.id).data(carried(edge));
      thinOut();
    });
  }

  // Of a large graph seen from afar, the faint edges are left out, and the nodes that have no others fade.
  function thinOut() {
    if (!MANY) return;
    const main = cy.collection(mainEdges().map((edge) => cy.$id(edge.id)));
    cy.elements().addClass("thin");
    main.union(main.connectedNodes()).union(cy.nodes(".seed, .cited")).removeClass("thin");
    whenNear(true);
  }

  function mainEdges() {
    const byFlow = [...DATA.edges].sort((one, other) => flow(other, stop) - flow(one, stop));
    let left = MAIN_SHARE * DATA.edges.reduce((sum, edge) => sum + flow(edge, stop), 0);
    return byFlow.filter((edge) => {
      const isMain = left > 0;
      left -= flow(edge, stop);
      return isMain;
    });
  }

  function whenNear(changed) {
    const isNear = cy.zoom() > NEAR * fitted;
    if (!MANY || (isNear === near && !changed)) return;
    near = isNear;
    cy.batch(() => cy.elements().toggleClass("far", !near));
  }

  function style() {
    const c = new Proxy({}, { get: (_, name) => colours.getPropertyValue(`--${name}`).trim() });
    const kinds = ["seed", "entity", "passage", "cited"].map((kind) => ({
      selector: `node.${kind}`, style: { "background-color": c[kind], "border-color": c[`${kind}-line`] },
    }));
    const relations = Object.keys(DASHES).map((relation) => ({
      selector: `edge.${relation}`,
      style: {
        "line-color": c[relation], "source-arrow-color": c[relation], "target-arrow-color": c[relation],
        "line-style": DASHES[relation].length ? "dashed" : "solid",
      },
    }));
    return [
      { selector: "node", style: { width: "data(size)", height: "data(size)", "border-width": MANY ? 0.8 : 1.6 } },
      ...kinds,
      { selector: "node.seed", style: { shape: "diamond" } },
      { selector: "node.passage, node.cited", style: { shape: "round-rectangle" } },
      { selector: "node.cited", style: { label: "data(number)", color: c["on-cited"], "z-index": 5 } },
      { selector: "node.cited", style: { "font-size": BASE * 0.36, "font-weight": 700, "text-valign": "center", "text-halign": "center" } },
      { selector: "edge", style: { width: "data(width)", "line-opacity": "data(opacity)", "line-color": c.quiet } },
      { selector: "edge", style: { "line-dash-pattern": dashOf, "curve-style": MANY ? "straight" : "bezier" } },
      { selector: "edge", style: { "arrow-scale": MANY ? 0.7 : 0.9 } },
      ...relations,
      { selector: "edge.bowed", style: { "curve-style": "unbundled-bezier", "control-point-distances": "data(bow)" } },
      { selector: "edge[way = 1]", style: { "target-arrow-shape": "triangle" } },
      { selector: "edge[way = -1]", style: { "source-arrow-shape": "triangle" } },
      { selector: "edge.thin.far", style: { display: "none" } },
      { selector: "node.thin.far", style: { opacity: 0.35 } },
      { selector: ".faded", style: { opacity: MANY ? 0.07 : 0.14 } },
      { selector: "node.lit", style: { "border-width": MANY ? 1.6 : 3, opacity: 1, "z-index": 9 } },
      { selector: "edge.lit", style: { "line-opacity": 1, display: "element", "z-index": 8 } },
      { selector: ".off", style: { display: "none" } },
    ];
  }

  function dashOf(edge) {
    const dashes = DASHES[edge.data("relation")];
    return dashes && dashes.length ? dashes.map((dash) => dash * Math.max(1, edge.data("width") / 3.5)) : [1];
  }

  function elements(upright) {
    const at = ([x, y]) => (upright ? { x: y, y: x } : { x, y });
    const nodes = DATA.nodes.map((node) => ({
      group: "nodes", classes: kindOf(node), position: at(DATA.positions[node.id]),
      data: { id: node.id, number: node.number, size: sizeOf(node) },
    }));
    const edges = DATA.edges.map((edge) => ({
      group: "edges", classes: [edge.relation in DASHES ? edge.relation : "other", ...(bowOf(edge) ? ["bowed"] : [])],
      data: { ...ends(edge), relation: edge.relation, bow: bowOf(edge), ...carried(edge) },
    }));
    return [...nodes, ...edges];
  }

  const ends = ({ id, source, target }) => ({ id, source, target });

  function bowOf(edge) {
    const [[x, y], [u, v]] = [DATA.positions[edge.source], DATA.positions[edge.target]];
    return !MANY && Math.abs(x - u) < 5 ? Math.sign(v - y) * (14 + 0.22 * Math.abs(y - v)) : 0;
  }

  const cy = cytoscape({
    container, elements: elements(container.clientWidth < NARROW), style: style(),
    layout: { name: "preset", fit: false }, minZoom: 0.1, maxZoom: 12,
    boxSelectionEnabled: false, autoungrabify: true, autounselectify: true, hideEdgesOnViewport: DATA.edges.length > 3000,
  });
  const canvas = container.parentElement.appendChild(document.createElement("canvas"));
  canvas.id = "labels";
  canvas.setAttribute("aria-hidden", "true");
  const pen = canvas.getContext("2d");
  const labelled = labelOrder();
  const cuts = new Map();
  let fitted = 1;
  let near = false;

  function fit() {
    const box = cy.nodes().boundingBox({ includeLabels: false });
    const room = cy.width() < NARROW ? 34 : 110;
    const [across, down] = [cy.width() - room - 34, cy.height() - 48];
    const zoom = Math.min(across / box.w, down / box.h);
    const x = 34 + (across - box.w * zoom) / 2 - box.x1 * zoom;
    const y = 24 + (down - box.h * zoom) / 2 - box.y1 * zoom;
    fitted = zoom;
    cy.viewport({ zoom, pan: { x, y } });
  }

  // labels, on a canvas of their own: of one size at every zoom, the weightiest first, none over another

  function labelOrder() {
    const onPaths = new Set(DATA.paths.flatMap((path) => [path.seed, ...path.steps.map((step) => step.to)]));
    const worth = (node) => ({ cited: 8, seed: 4 }[kindOf(node)] || 0) + (node.rank && node.rank[LAST] <= 5 ? 4 : 0)
      + (onPaths.has(node.id) ? 2 : 0) + node.mass[LAST] / TOP_MASS;
    const order = DATA.nodes.map((node) => {
      const weight = worth(node);
      return { words: title(node), worth: weight, strong: weight >= 4, shape: cy.$id(node.id) };
    });
    return order.sort((one, other) => other.worth - one.worth);
  }

  function drawLabels() {
    clearLabels();
    const chosen = cy.elements(".lit").nonempty();
    const shown = labelled.filter(({ shape }) => !chosen || shape.hasClass("lit"));
    const nodeBox = (shape) => boxOf(shape.renderedPosition(), shape.renderedWidth(), shape.renderedHeight());
    const taken = shown.slice(0, 150).map(({ shape }) => nodeBox(shape));
    let left = MANY ? 30 * Math.min(2.5, Math.max(1, cy.zoom() / fitted)) : Infinity;
    for (const label of shown) if (left > 0 && nodeLabel(label, taken)) left -= 1;
    for (const edge of edgesToLabel(chosen)) edgeLabel(edge, taken);
  }

  function clearLabels() {
    const [ratio, width, height] = [window.devicePixelRatio || 1, cy.width(), cy.height()];
    const size = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
    // In pixels: a canvas that stretched with the page would move its labels away from their nodes.
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
  }

  function boxOf({ x, y }, width, height) {
    return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
  }

  function meet(one, other) {
    return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  }

  const within = (box) => box.left >= 2 && box.top >= 2 && box.right <= cy.width() - 2 && box.bottom <= cy.height() - 2;

  function take(box, taken) {
    if (!within(box) || taken.some((other) => meet(box, other))) return false;
    taken.push(box);
    return true;
  }

  function nodeLabel({ words, strong, shape }, taken) {
    const font = `${strong ? "600 " : ""}12px ${colours.getPropertyValue("--sans")}`;
    const text = shortened(words, font, 190);
    const [at, width] = [shape.renderedPosition(), pen.measureText(text).width];
    const [aside, over] = [shape.renderedWidth() / 2 + 4 + width / 2, shape.renderedHeight() / 2 + 9];
    const places = [[aside, 0], [0, over], [-aside, 0], [0, -over]];
    const centres = places.map(([dx, dy]) => ({ x: at.x + dx, y: at.y + dy }));
    const spot = centres.find((centre) => take(boxOf(centre, width, 14), taken));
    if (spot) write(text, font, spot, 0, colours.getPropertyValue("--label"));
    return Boolean(spot);
  }

  function shortened(words, font, room) {
    pen.font = font;
    const key = `${font} ${room} ${words}`;
    if (!cuts.has(key)) cuts.set(key, cut(words, room));
    return cuts.get(key);
  }

  function cut(words, room) {
    const signs = Array.from(words);
    const kept = signs.slice(0, LONGEST_LABEL);
    const text = () => kept.join("").trimEnd() + (kept.length < signs.length ? "…" : "");
    while (kept.length > 1 && pen.measureText(text()).width > room) kept.pop();
    return text();
  }

  function edgesToLabel(chosen) {
    const lit = cy.edges(".lit").not(".off");
    if (lit.length > 0 && lit.length <= 6) return lit.toArray();
    if (MANY && !chosen) return [];
    const worded = (chosen ? lit : cy.edges().not(".off")).filter((edge) => EDGES.get(edge.id()).predicates.length > 0);
    return worded.toArray().sort((one, other) => other.data("width") - one.data("width")).slice(0, 14);
  }

  function edgeLabel(shape, taken) {
    const edge = EDGES.get(shape.id());
    const font = `italic 11px ${colours.getPropertyValue("--sans")}`;
    const text = shortened(clean(edge.predicates[0] || edge.relation.toLowerCase()), font, 150);
    const [from, to] = [shape.source().renderedPosition(), shape.target().renderedPosition()];
    const middle = shape.renderedMidpoint();
    const width = pen.measureText(text).width;
    if (Math.hypot(to.x - from.x, to.y - from.y) < width + 40) return;
    const angle = Math.atan((to.y - from.y) / ((to.x - from.x) || 0.01));
    const [across, down] = [Math.abs(Math.cos(angle)), Math.abs(Math.sin(angle))];
    if (!take(boxOf(middle, width * across + 12 * down, width * down + 12 * across), taken)) return;
    write(text, font, middle, angle, colours.getPropertyValue("--quiet"));
  }

  function write(text, font, { x, y }, angle, colour) {
    pen.save();
    pen.translate(x, y);
    pen.rotate(angle);
    Object.assign(pen, { font, textAlign: "center", textBaseline: "middle", lineJoin: "round", lineWidth: 4 });
    pen.strokeStyle = colours.getPropertyValue("--halo");
    pen.strokeText(text, 0, 0);
    pen.fillStyle = colour;
    pen.fillText(text, 0, 0);
    pen.restore();
  }

  function light(chosen, passing) {
    const lit = chosen ? elementsOf(chosen) : cy.collection();
    const fades = lit.length > 0 && !(MANY && passing && chosen.kind !== "path");
    cy.batch(() => {
      cy.elements(".lit").removeClass("lit");
      lit.addClass("lit");
      if (fades) cy.elements().not(lit).addClass("faded");
      else cy.elements(".faded").removeClass("faded");
      lit.removeClass("faded");
    });
  }

  function elementsOf({ kind, id }) {
    if (kind === "node") return cy.$id(id).closedNeighborhood();
    if (kind === "edge") return cy.$id(id).union(cy.$id(id).connectedNodes());
    const path = DATA.paths[Number(id.slice(4))];
    const ids = [path.seed, path.passage, ...path.steps.flatMap((step) => [step.from, step.edge, step.to])];
    return ids.reduce((found, one) => found.union(cy.$id(one)), cy.collection());
  }

  // The wheel scrolls the page until the drawing was clicked.
  function guardWheel(element) {
    let entered = false;
    element.addEventListener("pointerdown", () => { entered = true; });
    element.addEventListener("pointerleave", () => { entered = false; });
    const guard = (event) => { if (!entered && !event.ctrlKey) event.stopImmediatePropagation(); };
    element.addEventListener("wheel", guard, { capture: true });
  }

  function showStop(number) {
    stop = number;
    atStop();
  }

  function reveal(id) {
    const [view, at] = [cy.extent(), cy.$id(id).position()];
    if (at.x < view.x1 || at.x > view.x2 || at.y < view.y1 || at.y > view.y2) cy.center(cy.$id(id));
  }

  function repaint() {
    colours = getComputedStyle(document.documentElement);
    cy.style(style());
  }

  function zoomBy(factor) {
    cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  }

  function showRelation(relation, on) {
    cy.edges().filter((edge) => edge.data("relation") === relation).toggleClass("off", !on);
  }

  // Drawn at once, not a frame later: a picture may be taken of the first one.
  function follow() {
    if (container.clientWidth === cy.width() && container.clientHeight === cy.height()) return;
    cy.resize();
    cy.renderer().render();
  }

  const named = (target) => ({ kind: target.isNode() ? "node" : "edge", id: target.id() });

  fit();
  thinOut();
  guardWheel(container.parentElement);
  cy.on("mouseover", "node, edge", ({ target }) => onHover(named(target)));
  cy.on("mouseout", "node, edge", () => onHover(null));
  container.addEventListener("pointerleave", () => onHover(null));
  cy.on("tap", ({ target }) => onChoose(target === cy ? null : named(target)));
  cy.on("render", drawLabels);
  cy.on("resize", fit);
  cy.on("zoom", () => whenNear(false));
  new ResizeObserver(follow).observe(container);
  return { light, showStop, showRelation, reveal, repaint, fit, zoomBy };
}
