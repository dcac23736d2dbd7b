"use strict";
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  DATA.dashes = Object.assign(Object.create(null), DATA.dashes);
  const LAST = DATA.stops.length - 1;
  const SHOWN_PASSAGES = 10;
  const LONG_QUESTION = 240;
  const NODES = new Map(DATA.nodes.map((node) => [node.id, node]));
  const EDGES = new Map(DATA.edges.map((edge) => [edge.id, edge]));
  if (window.parent !== window) document.documentElement.classList.add("framed"); // by a page that shows questions and their users
  const state = { stop: LAST, pinned: null, hovered: null, allPassages: false };
  let drawing = null;

  const marks = relationMarks(DATA.dashes, DATA.words);
  const { relationSwatch, colourOf, relationWord } = marks;

  // what the numbers say

  const title = (node) => `${node.number === null ? "" : `[${node.number}] `}${clean(node.label)}`;
  const flow = (edge, stop = state.stop) => edge.forward[stop] + edge.backward[stop];
  const passages = () => DATA.nodes.filter((node) => node.kind === "passage");

  function kindOf(node) {
    if (node.kind === "passage") return node.number === null ? "passage" : "cited";
    return LAST >= 0 && node.restart[LAST] > 0 ? "seed" : "entity";
  }

  function ranked(stop) {
    const found = passages();
    return LAST < 0 ? found : found.sort((one, other) => one.rank[stop] - other.rank[stop]);
  }

  function rankChange(node) {
    const up = node.rank[0] - node.rank[state.stop];
    if (up === 0) return "same rank";
    return up > 0 ? `▲ up ${up}` : `▼ down ${-up}`;
  }

  function stopWords(stop) {
    if (LAST < 1) return "as it was ranked";
    return stop === 0 ? "all alike" : "as the question asks";
  }

  function story() {
    if (LAST < 1) return "";
    const label = stopWords(state.stop);
    if (state.stop === 0) return "All kinds of relations count alike. Move the slider to see what the question changes.";
    const near = passages().filter((node) => Math.min(node.rank[0], node.rank[state.stop]) <= SHOWN_PASSAGES);
    const moved = near.filter((node) => node.rank[0] !== node.rank[state.stop]);
    moved.sort((one, other) => one.rank[state.stop] - other.rank[state.stop]);
    const words = moved.slice(0, 3).map((node) => {
      const way = node.rank[0] > node.rank[state.stop] ? "rises" : "falls";
      return `${title(node)} ${way} from rank ${node.rank[0]} to ${node.rank[state.stop]}`;
    });
    if (moved.length > 3) words.push(`${moved.length - 3} more change places`);
    const cited = DATA.nodes.filter((node) => node.number !== null);
    const mass = (stop) => percent(cited.reduce((sum, node) => sum + node.mass[stop], 0));
    const changes = words.join("; ") || "all keep their ranks";
    const said = [`${label.charAt(0).toUpperCase()}${label.slice(1)}, compared with all alike: ${changes}.`];
    if (cited.length) said.push(`The cited passages hold ${mass(state.stop)} of all scores; with all alike, ${mass(0)}.`);
    return said.join(" ");
  }

  // the parts of the page around the drawing

  function showHeader() {
    document.title = `${clean(DATA.question)} · explanation`;
    showQuestion();
    byId("why").append(...DATA.why.map((sentence) => make("li", { dir: "auto" }, ...sentence.map((piece) => (piece.kind ? make(piece.kind === "quote" ? "q" : "em", {}, isolated(piece.text)) : clean(piece.text))))));
    byId("answer-part").hidden = !DATA.answer;
    byId("answer").append(...answerParts());
    const about = [
      ["mode", DATA.mode], ["ranked by", DATA.ranked_by + (DATA.walk ? ` (${DATA.walk.engine})` : "")],
      ["damping", DATA.damping], ["passage weight", DATA.passage_weight], ["chat", DATA.models.chat],
      ["embedding", DATA.models.embedding], ["store", DATA.models.store],
      ["workspace", DATA.workspace], ["generation", DATA.generation],
    ].filter(([, value]) => value !== null && value !== undefined && value !== "");
    byId("about").append(...about.map((pair) => make("div", {}, ...pairs([[pair[0], isolated(pair[1])]]))));
  }

  function showQuestion() {
    const [heading, whole] = [byId("question"), byId("whole-question")];
    const length = Array.from(DATA.question).length;
    heading.textContent = clean(DATA.question);
    heading.classList.toggle("long", length > LONG_QUESTION);
    const clamp = (on) => {
      heading.classList.toggle("clamped", on);
      whole.setAttribute("aria-expanded", String(!on));
      whole.textContent = on ? `Show all of the question (${length.toLocaleString("en")} characters)` : "Show less";
    };
    clamp(length > LONG_QUESTION);
    whole.hidden = heading.scrollHeight <= heading.clientHeight;
    if (whole.hidden) heading.classList.remove("clamped");
    whole.addEventListener("click", () => clamp(!heading.classList.contains("clamped")));
  }

  function answerParts() {
    const cited = DATA.nodes.filter((node) => node.number !== null);
    const numbers = new Map(cited.map((node) => [String(node.number), node]));
    return clean(DATA.answer).split(/(\[\d+(?:\s*,\s*\d+)*\])/).flatMap((part, i) => {
      const found = i % 2 ? part.match(/\d+/g) : [];
      if (!found.length || !found.every((number) => numbers.has(number))) return [part];
      return found.map((number) => citation(numbers.get(number)));
    });
  }

  function citation(node) {
    const choose = (event) => { event.preventDefault(); pinNode(node.id); };
    const name = `citation ${node.number}: ${clean(node.label)}`;
    const link = { class: "citation", href: `#passage-${node.id}`, "aria-label": name, onclick: choose };
    return make("a", link, `${node.number}`);
  }

  function nodeButton(node) {
    return make("button", { type: "button", class: "plain", onclick: () => pinNode(node.id) }, isolated(title(node)));
  }

  function showPassages() {
    const found = ranked(state.stop);
    const rows = found.filter((node, i) => state.allPassages || i < SHOWN_PASSAGES || node.number !== null);
    const compared = state.stop > 0;
    const walked = ["Rank", "Passage", "Score", ...(compared ? ["All alike", "Change"] : [])];
    const heads = LAST < 0 ? ["Kind", "Passage"] : walked;
    const headRow = heads.map((head, i) => make("th", { scope: "col", class: i > 1 ? "number" : null }, head));
    const body = make("tbody", {}, ...rows.map((node) => passageRow(node, compared)));
    byId("passages").replaceChildren(make("thead", {}, make("tr", {}, ...headRow)), body);
    byId("all-passages").hidden = rows.length === found.length;
    byId("all-passages").textContent = `Show all ${found.length} passages`;
  }

  function passageRow(node, compared) {
    const cells = [make("td", {}, LAST < 0 ? kindSwatch(kindOf(node)) : `${node.rank[state.stop]}`)];
    const more = LAST < 0 ? [passageText(node)] : [];
    const source = make("span", { class: "source" }, isolated(node.source));
    cells.push(make("td", {}, nodeButton(node), " ", source, ...more));
    if (LAST >= 0) cells.push(make("td", { class: "number" }, percent(node.mass[state.stop])));
    if (compared) {
      const points = Number(((node.mass[state.stop] - node.mass[0]) * 100).toFixed(2));
      cells.push(make("td", { class: "number" }, `rank ${node.rank[0]}, ${percent(node.mass[0])}`));
      cells.push(make("td", { class: "number" }, `${rankChange(node)}, ${signOf(points)}${Math.abs(points)} points`));
    }
    return make("tr", { id: `passage-${node.id}`, class: isPinned("node", node.id) ? "chosen" : null }, ...cells);
  }

  function passageText(node) {
    const signs = Array.from(node.text);
    const ranges = DATA.citations.filter((mark) => mark.passage_id === node.ref && mark.start !== null);
    const parts = [];
    let at = 0;
    for (const { start, end } of ranges.sort((one, other) => one.start - other.start)) {
      if (start < at || start >= signs.length) continue;
      parts.push(clean(signs.slice(at, start).join("")), make("mark", {}, clean(signs.slice(start, end).join(""))));
      at = end;
    }
    const beyond = ranges.some((mark) => mark.start >= signs.length);
    const later = beyond ? " … (the cited words come later in the text)" : "";
    return make("div", { class: "text", dir: "auto", tabindex: "0" }, ...parts, clean(signs.slice(at).join("")), later);
  }

  // details of what is chosen

  const isPinned = (kind, id) => state.pinned !== null && state.pinned.kind === kind && state.pinned.id === id;

  function showDetails() {
    const chosen = [state.hovered, state.pinned].find((one) => one && one.kind !== "path");
    byId("details").replaceChildren(...detailsOf(chosen));
    const [text, mark] = [byId("details").querySelector(".text"), byId("details").querySelector("mark")];
    if (mark) text.scrollTop = mark.offsetTop - 8;
  }

  function detailsOf(chosen) {
    if (chosen?.kind === "node") return nodeDetails(NODES.get(chosen.id));
    if (chosen?.kind === "edge") return edgeDetails(EDGES.get(chosen.id));
    const words = "Point at a name, a passage or a line, tap it, or find it by name, to see what it is and what came over it.";
    return [make("p", {}, words)];
  }

  function nodeDetails(node) {
    const words = { seed: "name that the search began at", entity: "name", passage: "passage", cited: "cited passage" }[kindOf(node)];
    const rows = [["kind", words]];
    if (node.type) rows.push(["type", clean(node.type)]);
    if (node.source) rows.push(["source", isolated(node.source)]);
    const without = (words) => (state.stop > 0 ? ` (all alike: ${words})` : "");
    const beside = (values, words) => words(values[state.stop]) + without(words(values[0]));
    if (node.rank) rows.push(["rank among all passages", beside(node.rank, String)]);
    rows.push(["score", beside(node.mass, percent)]);
    rows.push(["of it, started here", percent(node.restart[state.stop])]);
    rows.push(["came over lines not shown", percent(node.hidden[state.stop])]);
    const head = make("h3", { tabindex: "-1" }, kindSwatch(kindOf(node)), isolated(title(node)));
    return [head, ...(node.text ? [passageText(node)] : []), make("dl", {}, ...pairs(rows)), linksOf(node)];
  }

  function linksOf(node) {
    const links = DATA.edges.filter((edge) => edge.source === node.id || edge.target === node.id);
    links.sort((one, other) => flow(other) - flow(one));
    return make("ul", { "aria-label": "Lines that carried most" }, ...links.slice(0, 6).map((edge) => {
      const other = NODES.get(edge.source === node.id ? edge.target : edge.source);
      const arrived = edge.source === node.id ? edge.backward[state.stop] : edge.forward[state.stop];
      const words = `${relationWord(edge.relation)}, ${percent(arrived)} in`;
      return make("li", {}, nodeButton(other), make("span", { class: "number" }, words));
    }));
  }

  function edgeDetails(edge) {
    const [source, target] = [NODES.get(edge.source), NODES.get(edge.target)];
    const rows = [["relation", make("span", {}, relationSwatch(edge.relation), ` ${relationWord(edge.relation)}`)]];
    if (Object.hasOwn(DATA.own_relations, edge.relation)) rows.push(["meaning", isolated(DATA.own_relations[edge.relation])]);
    if (edge.link) rows.push(["link", clean(edge.link)]);
    rows.push(["weight", String(Number(edge.weight.toPrecision(4)))]);
    rows.push([isolated(`to ${title(target)}`), percent(edge.forward[state.stop])]);
    rows.push([isolated(`to ${title(source)}`), percent(edge.backward[state.stop])]);
    if (state.stop > 0) rows.push(["both ways, all alike", percent(flow(edge, 0))]);
    const predicates = edge.predicates.map((predicate) => make("li", {}, isolated(predicate)));
    const head = make("h3", { tabindex: "-1" }, make("span", {}, nodeButton(source), " — ", nodeButton(target)));
    return [head, make("ul", {}, ...predicates), make("dl", {}, ...pairs(rows))];
  }

  // choosing

  function pinNode(id) {
    if (!drawing) byId("passages-part").open = true;
    const within = byId("details").contains(document.activeElement);
    pin({ kind: "node", id });
    if (drawing) drawing.reveal(id);
    byId(drawing ? "details" : `passage-${id}`).scrollIntoView({ block: "nearest" });
    if (within) byId("details").querySelector("h3").focus();
  }

  function pin(chosen) {
    state.pinned = chosen;
    state.hovered = null;
    showChoice();
    const rows = byId("passages").querySelectorAll("tbody tr");
    for (const row of rows) row.classList.toggle("chosen", row.id === `passage-${chosen?.id}`);
  }

  function hover(chosen) {
    state.hovered = chosen;
    showChoice();
  }

  function showChoice() {
    showDetails();
    const buttons = byId("paths").querySelectorAll("button");
    for (const button of buttons) button.setAttribute("aria-pressed", String(isPinned("path", button.id)));
    const passing = state.hovered !== null && (state.pinned === null || state.hovered.kind === "path");
    drawing?.light(passing ? state.hovered : state.pinned, passing);
  }

  // paths, legend, search

  function showPaths() {
    byId("paths").append(...DATA.paths.map((path, i) => {
      const chosen = { kind: "path", id: `path${i}` };
      const button = make("button", {
        type: "button", id: chosen.id, "aria-pressed": "false",
        onclick: () => pin(isPinned("path", chosen.id) ? null : chosen),
        onmouseenter: () => hover(chosen), onmouseleave: () => hover(null),
        onfocus: () => hover(chosen), onblur: () => hover(null),
      });
      const carried = `${percent(path.mass)} of all scores came this way`;
      button.append(make("span", { class: "words" }, ...pathWords(path)), make("span", { class: "path-mass" }, carried));
      return make("li", {}, button);
    }));
    if (!DATA.paths.length) byId("paths").append(make("li", {}, "No path leads over the lines shown."));
  }

  function pathWords(path) {
    if (!path.steps.length) return [isolated(path.words)];
    const rest = path.steps.flatMap((step) => [" ", stepWords(step), " ", stopName(step.to)]);
    return [stopName(path.steps[0].from), ...rest];
  }

  function stopName(id) {
    const node = NODES.get(id);
    const name = make("span", { class: "stop-name" }, isolated(title(node)));
    return node.kind === "passage" ? make("span", {}, "passage ", name) : name;
  }

  function stepWords(step) {
    const share = Number(step.share.toPrecision(2));
    const relation = relationWord(step.relation);
    const words = step.predicate ? [isolated(step.predicate), ` (${relation}, ${share})`] : [`${relation} (${share})`];
    const [before, after] = step.reversed ? ["←", "—"] : ["—", "→"];
    const made = make("span", { class: "step" }, before, ...words, after);
    made.style.textDecorationColor = colourOf(step.relation);
    return made;
  }

  function showLegend() {
    const kinds = [["seed", "where it began"], ["entity", "name"], ["passage", "passage"], ["cited", "cited passage"]];
    const drawn = new Set(DATA.edges.map((edge) => edge.relation));
    const present = new Set([...Object.keys(DATA.dashes), ...drawn].filter((relation) => drawn.has(relation)));
    const hint = "The larger a name or passage, the higher its score; the wider a line, the more came over it, most of it "
      + "the way of its arrow. Click a kind of relation to hide it. The wheel zooms after a click into the drawing.";
    const many = `Seen from afar, the lines are drawn that carry ${percent(MAIN_SHARE)} of what all of them carry. `
      + "Zoom in, or choose a name, for the others. ";
    byId("legend").append(
      ...kinds.map(([kind, words]) => make("span", { class: "kind" }, kindSwatch(kind), words)),
      ...[...present].map(relationSwitch), make("span", { class: "hint" }, (isLarge(DATA) ? many : "") + hint));
  }

  function relationSwitch(relation) {
    const count = DATA.edges.filter((edge) => edge.relation === relation).length;
    const button = make("button", { type: "button", "aria-pressed": "true", "data-relation": relation });
    button.append(relationSwatch(relation), `${relationWord(relation)} ${count}`);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(on));
      drawing.showRelation(relation, on);
    });
    return button;
  }

  function prepareSearch() {
    const [box, list] = [byId("search"), byId("matches")];
    const close = () => { list.hidden = true; };
    const choose = (node) => { close(); pinNode(node.id); };
    box.addEventListener("input", () => {
      const words = box.value.trim().toLocaleLowerCase();
      const found = words ? DATA.nodes.filter((node) => title(node).toLocaleLowerCase().includes(words)) : [];
      found.sort((one, other) => other.mass[state.stop] - one.mass[state.stop]);
      const rows = found.slice(0, 12).map((node) => {
        const button = make("button", { type: "button", onclick: () => choose(node) });
        button.append(kindSwatch(kindOf(node)), isolated(title(node)));
        return make("li", {}, button);
      });
      list.replaceChildren(...(rows.length ? rows : [make("li", {}, "Nothing shown has that name.")]));
      list.hidden = !words;
    });
    box.addEventListener("keydown", (event) => { if (event.key === "Enter") list.querySelector("button")?.click(); });
    byId("finder").addEventListener("focusout", (event) => {
      if (!byId("finder").contains(event.relatedTarget)) close();
    });
  }

  // putting it together

  function showShown() {
    const { nodes, of_nodes: ofNodes, edges, of_edges: ofEdges } = DATA.shown;
    const count = (number) => number.toLocaleString("en");
    byId("shown").textContent = `Shown: ${count(nodes)} of ${count(ofNodes)} names and passages, and ${count(edges)} of ${count(ofEdges)} lines.`;
  }

  function prepareStops() {
    const slider = byId("stop");
    slider.hidden = LAST < 1;
    document.querySelector("label[for=stop]").hidden = LAST < 1;
    slider.max = LAST;
    slider.value = LAST;
    slider.addEventListener("input", () => {
      state.stop = Number(slider.value);
      drawing.showStop(state.stop);
      showStop();
    });
  }

  function showStop() {
    const label = stopWords(state.stop);
    byId("stop-label").textContent = label;
    byId("stop").setAttribute("aria-valuetext", label);
    byId("story").textContent = story();
    showPassages();
    showDetails();
  }

  function prepareView() {
    byId("zoom-in").addEventListener("click", () => drawing.zoomBy(1.4));
    byId("zoom-out").addEventListener("click", () => drawing.zoomBy(1 / 1.4));
    byId("fit").addEventListener("click", drawing.fit);
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") pin(null); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawing.repaint);
    for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) {
      window.addEventListener(event, () => {
        document.documentElement.classList.toggle("printing", on);
        if (on) for (const part of document.querySelectorAll("details")) part.open = true;
        drawing.repaint();
      });
    }
  }

  function showWalk() {
    showShown();
    showPaths();
    prepareStops();
    prepareSearch();
    showLegend();
    const words = { kindOf, title, clean, flow };
    drawing = makeDrawing({ data: DATA, container: byId("drawing"), words, onHover: hover, onChoose: pin });
    prepareView();
    showStop();
  }

  function showNoWalk() {
    byId("walk").hidden = true;
    byId("no-walk").hidden = false;
    byId("no-walk-reason").textContent = `The passages were ranked by likeness (${clean(DATA.ranked_by)}): no path over the graph leads to them.`;
    byId("passages-part").open = true;
    showPassages();
  }

  showHeader();
  showReasons(DATA, marks);
  byId("all-passages").addEventListener("click", () => {
    state.allPassages = true;
    showPassages();
    byId("passages").querySelectorAll("tbody button")[SHOWN_PASSAGES].focus();
  });
  if (LAST < 0) showNoWalk();
  else showWalk();
})();
